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

/// A module with copies of its parameters and buffers on one GPU.
pub struct Replica<'a, M: ?Sized> {
    module: &'a M,
    device: usize,
    cells: Vec<(Cell, Tensor)>,
}

impl<M: Module + ?Sized> Replica<'_, M> {
    /// Runs the module with this GPU as the current device.
    #[track_caller]
    pub fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _scope = scope::on_behalf_of(Location::caller());
        let _cells = stand_ins::enter(self.cells.iter().cloned());
        gpu::device(self.device, || self.module.forward(input))?
    }

    /// Returns the index of the GPU.
    pub fn device(&self) -> usize {
        self.device
    }
}

/// Copies the parameters and buffers of a module to each GPU (`torch.nn.parallel.replicate`).
///
/// The copies of parameters are not leaves: gradients flow back to the module's parameters and are summed there. A
/// tensor that is already on the GPU is not copied, so the module keeps buffer writes on its GPU; others are lost.
/// Tensors are copied one by one, where PyTorch packs small ones into chunks of 10 MiB.
///
/// Returns an error, with the module unchanged, if a GPU does not exist or its memory is full.
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
/// One thread queues the work of one GPU after another; the GPUs work in parallel as long as the host runs ahead.
/// (PyTorch has one thread per GPU, but Python runs one at a time.) Returns an error if the numbers of inputs and
/// replicas differ, or for an error in a replica, with the replica's number.
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
