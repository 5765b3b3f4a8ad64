//! A module that runs each batch in parts, on several GPUs at once.

use std::panic::Location;

use super::super::error::ModuleError;
use super::super::module::Module;
use super::{gather, parallel_apply, replicate, scatter};
use crate::device::Device;
use crate::error::Result;
use crate::gpu;
use crate::scope;
use crate::tensor::Tensor;

/// The keyword arguments of `torch.nn.DataParallel`.
#[derive(Clone, Debug, Default)]
pub struct DataParallelOptions {
    /// The GPUs to use; `None`: all of the machine.
    pub device_ids: Option<Vec<usize>>,
    /// Where the results are put together; `None`: on the first of them.
    pub output_device: Option<usize>,
    /// The dimension of the batch.
    pub dim: i64,
}

/// A module that cuts each batch into parts, runs them on several GPUs, and puts the results together
/// (`torch.nn.DataParallel`).
///
/// The module belongs on the first GPU. For each batch it is copied to the others, and the gradients of the copies
/// are summed in its own parameters: so the first GPU has more to do, and more in its memory, than any other. Where
/// the machine has no GPU, the module runs as it is.
///
/// ```
/// use todevice::{Device, Machine, Result, Tensor, nn, nn::Module};
///
/// # "sim:t4x2".parse::<Machine>().unwrap().enter(|| -> Result<()> {
/// let model = nn::DataParallel::new(nn::Linear::new(8, 1)?, Default::default())?;
/// model.to(Device::cuda(0))?;
/// let y = model.forward(&Tensor::randn(&[32, 8])?)?; // 16 rows on each GPU
/// y.square()?.mean()?.backward()?;
/// assert_eq!(y.device().to_string(), "cuda:0");
/// assert_eq!(model.module.weight.grad().unwrap().device().to_string(), "cuda:0");
/// # Ok(())
/// # })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub struct DataParallel<M> {
    /// The module that is run.
    pub module: M,
    device_ids: Vec<usize>,
    output_device: Device,
    dim: i64,
}

impl<M: Module> DataParallel<M> {
    /// Errors if there is no such GPU. A module for one GPU is moved there.
    #[track_caller]
    pub fn new(module: M, options: DataParallelOptions) -> Result<DataParallel<M>> {
        let _scope = scope::on_behalf_of(Location::caller());
        let device_ids = match options.device_ids {
            _ if !gpu::is_available() => Vec::new(),
            None => (0..gpu::device_count()).collect(),
            Some(device_ids) => device_ids,
        };
        let Some(first) = device_ids.first().copied() else {
            return Ok(DataParallel { module, device_ids, output_device: Device::Cpu, dim: options.dim });
        };
        let output = options.output_device.unwrap_or(first);
        for index in device_ids.iter().chain([&output]) {
            gpu::check_ordinal(*index)?;
        }
        if device_ids.len() == 1 {
            module.to(Device::cuda(first))?;
        }
        Ok(DataParallel { module, device_ids, output_device: Device::cuda(output), dim: options.dim })
    }
}

impl<M: Module> Module for DataParallel<M> {
    fn name(&self) -> &'static str {
        "DataParallel"
    }

    /// Errors if a parameter or a buffer is not on the first GPU.
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _scope = scope::on_behalf_of(Location::caller());
        let Some(first) = self.device_ids.first() else { return self.module.forward(input) };
        let first = Device::cuda(*first);
        let parameters = self.module.parameters().into_iter().map(|parameter| parameter.tensor());
        let buffers = self.module.named_buffers().into_iter().map(|(_, buffer)| buffer.tensor());
        if let Some(other) = parameters.chain(buffers).find(|tensor| tensor.device() != first) {
            return Err(ModuleError::NotOnFirstDevice { first, found: other.device() }.into());
        }
        let inputs = scatter(input, &self.device_ids, self.dim)?;
        if let ([_], [input]) = (&self.device_ids[..], &inputs[..]) {
            return self.module.forward(input);
        }
        let replicas = replicate(&self.module, &self.device_ids[..inputs.len()])?;
        let outputs = parallel_apply(&replicas, &inputs)?;
        gather(&outputs, self.output_device, self.dim)
    }

    fn children(&self) -> Vec<(String, &dyn Module)> {
        vec![("module".to_owned(), &self.module)]
    }
}
