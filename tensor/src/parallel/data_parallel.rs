use std::panic::Location;

use super::error::ParallelError;
use super::{gather, parallel_apply, replicate, scatter};
use crate::device::Device;
use crate::error::Result;
use crate::gpu::{self, DeviceProperties};
use crate::host_context::HostContext;
use crate::nn::Module;
use crate::options::{AndOptions, Keywords};
use crate::scope;
use crate::tensor::Tensor;

/// The keyword arguments of `torch.nn.DataParallel`.
#[derive(Clone, Debug, Default)]
pub struct DataParallelOptions {
    /// The GPUs. Default: all GPUs of the machine.
    pub device_ids: Option<Vec<usize>>,
    /// The GPU of the output. Default: the first of `device_ids`.
    pub output_device: Option<usize>,
    /// The batch dimension.
    pub dim: i64,
}

impl Keywords for DataParallelOptions {}

/// Runs the parts of each batch on several GPUs and joins the results (`torch.nn.DataParallel`).
///
/// The module must be on the first GPU. Each `forward` copies it to the others, and gradients are summed in its
/// parameters, so the first GPU does more work and needs more memory. Surplus GPUs of a small batch stay idle. Without
/// a GPU, the module runs unchanged. Buffer writes, such as batch norm statistics, are kept from the first part only.
///
/// ```
/// use todevice::parallel::DataParallel;
/// use todevice::{Device, Machine, Result, Tensor, nn, nn::Module};
///
/// # "sim:t4x2".parse::<Machine>()?.enter(|| -> Result<()> {
/// let model = DataParallel::new(nn::Linear::new(8, 1)?)?;
/// model.to(Device::cuda(0))?;
/// let y = model.forward(&Tensor::randn(&[32, 8])?)?; // 16 rows on each GPU
/// y.square()?.mean()?.backward()?;
/// assert_eq!(y.device().to_string(), "cuda:0");
/// assert_eq!(model.module().weight.grad().unwrap().device().to_string(), "cuda:0");
/// # Ok(())
/// # })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub struct DataParallel<M: Module> {
    module: M,
    device_ids: Vec<usize>,
    output_device: Device,
    dim: i64,
}

impl<M: Module> DataParallel<M> {
    /// Wraps `module` for all GPUs, or for those in the options. With one GPU the module is moved there.
    ///
    /// Returns an error if a GPU does not exist, or if the list is empty. Warns if a GPU has less than 75 % of the
    /// memory or multiprocessors of another.
    #[track_caller]
    pub fn new(module: impl AndOptions<M, DataParallelOptions>) -> Result<DataParallel<M>> {
        let (module, options) = module.split();
        let _scope = scope::on_behalf_of(Location::caller());
        let DataParallelOptions { device_ids, output_device, dim } = options;
        if !gpu::is_available() {
            return Ok(DataParallel { module, device_ids: Vec::new(), output_device: Device::Cpu, dim });
        }
        let device_ids = device_ids.unwrap_or_else(|| (0..gpu::device_count()).collect());
        let first = *device_ids.first().ok_or(ParallelError::NoDevices)?;
        let all = device_ids.iter().map(|index| gpu::get_device_properties(*index));
        if let Some(warning) = imbalance(&device_ids, &all.collect::<Result<Vec<_>>>()?) {
            HostContext::warn_once("imbalance of GPUs", || warning);
        }
        let output = output_device.unwrap_or(first);
        gpu::check_ordinal(output)?;
        if device_ids.len() == 1 {
            module.to(Device::cuda(first))?;
        }
        Ok(DataParallel { module, device_ids, output_device: Device::cuda(output), dim })
    }

    /// Returns the wrapped module (`DataParallel.module`), for saving, or for running on one GPU.
    pub fn module(&self) -> &M {
        &self.module
    }
}

impl<M: Module> Module for DataParallel<M> {
    fn name(&self) -> &'static str {
        "DataParallel"
    }

    /// Returns an error if a parameter or buffer is not on the first GPU, or if the input lacks the batch dimension.
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _scope = scope::on_behalf_of(Location::caller());
        let Some(first) = self.device_ids.first() else { return self.module.forward(input) };
        let first = Device::cuda(*first);
        let parameters = self.module.parameters().into_iter().map(|parameter| parameter.tensor());
        let buffers = self.module.named_buffers().into_iter().map(|(_, buffer)| buffer.tensor());
        if let Some(other) = parameters.chain(buffers).find(|tensor| tensor.device() != first) {
            return Err(ParallelError::NotOnFirstDevice { first, found: other.device() }.into());
        }
        let inputs = scatter(input, self.dim, &self.device_ids)?;
        if let ([_], [input]) = (&self.device_ids[..], &inputs[..]) {
            return self.module.forward(input);
        }
        let replicas = replicate(&self.module, &self.device_ids[..inputs.len()])?;
        let outputs = parallel_apply(&replicas, &inputs)?;
        gather(&outputs, self.dim, self.output_device)
    }

    fn children(&self) -> Vec<(String, &dyn Module)> {
        vec![("module".to_owned(), &self.module)]
    }
}

fn imbalance(device_ids: &[usize], properties: &[DeviceProperties]) -> Option<String> {
    let between = |values: Vec<f64>| {
        let at = |value: f64| device_ids[values.iter().position(|other| *other == value).unwrap_or(0)];
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        (least / most < 0.75).then(|| (at(least), at(most)))
    };
    let memory = properties.iter().map(|gpu| gpu.total_memory as f64).collect();
    let multiprocessors = properties.iter().map(|gpu| gpu.multi_processor_count as f64).collect();
    let (small, large) = between(memory).or_else(|| between(multiprocessors))?;
    Some(format!(
        "\n    There is an imbalance between your GPUs. You may want to exclude GPU {small} which\n    has less than 75% \
         of the memory or cores of GPU {large}. You can do so by setting\n    the device_ids argument to DataParallel, or \
         by setting the CUDA_VISIBLE_DEVICES\n    environment variable."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn a_much_smaller_gpu_is_worth_a_warning() {
        let machine: Machine = "sim:t4".parse().unwrap();
        let t4 = machine.enter(|| gpu::get_device_properties(0)).unwrap();
        let with = |change: fn(&mut DeviceProperties)| {
            let mut other = t4.clone();
            change(&mut other);
            imbalance(&[3, 5, 4], &[t4.clone(), other, t4.clone()])
        };
        assert_eq!(with(|_| ()), None);
        assert_eq!(with(|gpu| gpu.total_memory -= gpu.total_memory / 5), None);
        let warning = with(|gpu| gpu.total_memory /= 2).unwrap();
        assert!(warning.contains("You may want to exclude GPU 5 which\n    has less than 75%"), "{warning}");
        assert!(warning.contains("cores of GPU 3."), "{warning}");
        let warning = with(|gpu| gpu.multi_processor_count *= 2).unwrap();
        assert!(warning.contains("exclude GPU 3 which") && warning.contains("cores of GPU 5."), "{warning}");
    }
}
