//! The same module with its tensors on other GPUs.

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

/// A module as it is on one GPU: the same module, which finds copies of its parameters and buffers there.
pub struct Replica<'a, M: ?Sized> {
    module: &'a M,
    device: usize,
    cells: Vec<(Cell, Tensor)>,
}

impl<M: Module + ?Sized> Replica<'_, M> {
    /// Computes the output on this GPU, which is the current device meanwhile.
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
/// The copies of parameters are no leaves: their gradients flow back to the module's own parameters and are
/// summed there. A tensor that is on the GPU already is not copied. So what the module writes to its buffers on the GPU that
/// it is on, it keeps, and what it writes to those of the other replicas is gone with them.
///
/// Tensors travel one by one, where PyTorch packs small ones into parcels of 10 MiB.
///
/// Errors if there is no such GPU, or if its memory is full; the module is as before.
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
/// The host queues the work of the first GPU, then that of the second, where PyTorch has a thread for each, of which Python
/// lets one run at a time. The GPUs work at the same time as far as the host is ahead of them.
///
/// Errors if there are more inputs than replicas or fewer. What a forward pass errors with is the cause of an error that
/// says in which replica.
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
