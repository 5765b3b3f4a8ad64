//! The same module with its tensors on other GPUs.

use std::panic::Location;

use super::super::module::Module;
use super::super::overridden::{Cell, cells_of, override_cells, tensor_in};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::gpu;
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
        let _cells = override_cells(self.cells.iter().cloned());
        gpu::device(self.device, || self.module.forward(input))?
    }

    /// The index of its GPU.
    pub fn device(&self) -> usize {
        self.device
    }
}

/// Copies the parameters and buffers of a module to each GPU (`torch.nn.parallel.replicate`).
///
/// The copies of parameters are not leaves: their gradients flow back to the module's own parameters and are
/// summed there. A tensor that is on the GPU already is not copied, so what a module writes to its buffers there
/// stays, and what it writes to those of the other replicas is gone with them.
///
/// Errors if there is no such GPU, or if its memory is full; the module is as before.
#[track_caller]
pub fn replicate<'a, M: Module + ?Sized>(
    network: &'a M,
    device_ids: &[usize],
) -> Result<Vec<Replica<'a, M>>> {
    let _scope = scope::on_behalf_of(Location::caller());
    let own: Vec<(Cell, Tensor)> = cells_of(network)
        .into_iter()
        .map(|(_, cell)| {
            let tensor = tensor_in(&cell);
            (cell, tensor)
        })
        .collect();
    let on = |index: usize| -> Result<Replica<'a, M>> {
        let device = Device::cuda(index);
        let elsewhere = own.iter().filter(|(_, tensor)| tensor.device() != device);
        let copies = elsewhere.map(|(cell, tensor)| Ok((cell.clone(), tensor.to(device)?)));
        Ok(Replica { module: network, device: index, cells: copies.collect::<Result<_>>()? })
    };
    device_ids.iter().map(|index| on(*index)).collect()
}

/// Runs each replica on its input (`torch.nn.parallel.parallel_apply`).
///
/// One after the other: the host queues the work of the first GPU, then that of the second. The GPUs work at the
/// same time as far as the host is ahead of them.
///
/// Errors if there are more inputs than replicas or fewer, and with what a forward pass errors with.
#[track_caller]
pub fn parallel_apply<M: Module + ?Sized>(replicas: &[Replica<M>], inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let _scope = scope::on_behalf_of(Location::caller());
    if replicas.len() != inputs.len() {
        let (replicas, inputs) = (replicas.len(), inputs.len());
        return Err(Error::custom(format!(
            "The number of modules {replicas} is not equal to the number of inputs {inputs}"
        )));
    }
    replicas.iter().zip(inputs).map(|(replica, input)| replica.forward(input)).collect()
}
