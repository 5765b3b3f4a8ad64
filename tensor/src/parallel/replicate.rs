//! Replicas: one module with copies of its tensors on several GPUs.

use std::panic::Location;
use std::sync::Arc;

use super::error::ParallelError;
use crate::autograd::stand_ins::{self, Cell, tensor_in};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::gpu;
use crate::nn::Module;
use crate::nn::functional_call::cells_of;
use crate::scope;
use crate::tensor::Tensor;

/// A module's replica on one GPU: the same module, with copies of its parameters and buffers on that GPU.
pub struct Replica<'a, M: ?Sized> {
    module: &'a M,
    device: usize,
    cells: Vec<(Cell, Tensor)>,
}

impl<M: Module + ?Sized> Replica<'_, M> {
    /// Computes the output on this GPU, which is the current device for the call.
    #[track_caller]
    pub fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _scope = scope::on_behalf_of(Location::caller());
        let _cells = stand_ins::enter(self.cells.iter().cloned());
        gpu::device(self.device, || self.module.forward(input))?
    }

    /// The index of its GPU.
    pub fn device(&self) -> usize {
        self.device
    }
}

/// Copies the parameters and buffers of a module to each GPU (`torch.nn.parallel.replicate`).
///
/// The copies of parameters are not leaves: their gradients flow back to the module's own parameters and are summed
/// there. A tensor that is already on the GPU is not copied. So the module keeps writes to its buffers on its own
/// GPU, and writes to those of the other replicas are lost with them.
///
/// Tensors are copied one by one; PyTorch packs small ones into chunks of 10 MiB.
///
/// Returns an error if one of the GPUs does not exist or its memory is full; the module is then unchanged.
#[track_caller]
pub fn replicate<'a, M: Module + ?Sized>(
    network: &'a M,
    device_ids: &[usize],
) -> Result<Vec<Replica<'a, M>>> {
    let _scope = scope::on_behalf_of(Location::caller());
    let own: Vec<Cell> = cells_of(network).into_iter().map(|(_, cell)| cell).collect();
    let on = |index: usize| -> Result<Replica<'a, M>> {
        gpu::check_ordinal(index)?;
        let device = Device::cuda(index);
        let mut cells = Vec::new();
        for cell in &own {
            let tensor = tensor_in(cell);
            if tensor.device() != device {
                cells.push((cell.clone(), tensor.to(device)?));
            }
        }
        Ok(Replica { module: network, device: index, cells })
    };
    device_ids.iter().map(|index| on(*index)).collect()
}

/// Runs each replica on its input (`torch.nn.parallel.parallel_apply`).
///
/// The host queues the work of the first GPU, then that of the second. PyTorch has one thread per GPU, of which
/// Python runs one at a time. The GPUs work in parallel as long as the host runs ahead of them.
///
/// Returns an error if the numbers of inputs and replicas differ. An error in a forward pass becomes the cause of
/// an error that names the replica.
#[track_caller]
pub fn parallel_apply<M: Module + ?Sized>(replicas: &[Replica<M>], inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let _scope = scope::on_behalf_of(Location::caller());
    if replicas.len() != inputs.len() {
        let (modules, inputs) = (replicas.len(), inputs.len());
        return Err(ParallelError::ModulesAndInputs { modules, inputs }.into());
    }
    let mut outputs = Vec::new();
    for (replica, (module, input)) in replicas.iter().zip(inputs).enumerate() {
        let caught = |error: Error| {
            let (kind, device) = (error.kind(), module.device);
            ParallelError::InReplica { kind, replica, device, cause: Arc::new(error) }
        };
        outputs.push(module.forward(input).map_err(caught)?);
    }
    Ok(outputs)
}
