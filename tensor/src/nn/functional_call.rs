use std::panic::Location;

use super::error::ModuleError;
use super::module::Module;
use crate::autograd::stand_ins::{self, Cell};
use crate::error::Result;
use crate::scope;
use crate::tensor::Tensor;

/// Runs `module` with the given tensors in place of its parameters and buffers, by name (`torch.func.functional_call`).
///
/// The module does not change, and keeps its tensors for other names. Gradients flow into the given tensors. In-place
/// writes to a buffer change the given tensor; a replacement of the buffer is lost after the call. A parameter shared
/// by two modules has its name in the first.
///
/// ```
/// use todevice::{Tensor, func::functional_call, nn, nn::Module};
///
/// let layer = nn::Linear::new(2, 1)?;
/// let weight = Tensor::new([[1.0, 2.0]])?.requires_grad_(true)?;
/// let x = Tensor::new([[3.0, 4.0]])?;
/// let y = functional_call(&layer, [("weight", &weight), ("bias", &Tensor::zeros(&[1])?)], &x)?;
/// assert_eq!(y.item()?, 11.0);
/// y.sum()?.backward()?;
/// assert!(weight.grad().is_some() && layer.weight.grad().is_none());
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Errors if the module has no parameter or buffer of a given name, like PyTorch with `strict`.
#[track_caller]
pub fn functional_call<'a, M: Module + ?Sized>(
    module: &M,
    parameters_and_buffers: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    input: &Tensor,
) -> Result<Tensor> {
    let _scope = scope::on_behalf_of(Location::caller());
    let known = cells_of(module);
    let (mut cells, mut unexpected) = (Vec::new(), Vec::new());
    for (name, tensor) in parameters_and_buffers {
        match known.iter().find(|(known, _)| known == name) {
            Some((_, cell)) => cells.push((cell.clone(), tensor.clone())),
            None => unexpected.push(format!("'{name}'")),
        }
    }
    if !unexpected.is_empty() {
        return Err(ModuleError::Unexpected { module: module.name(), names: unexpected.join(", ") }.into());
    }
    let _cells = stand_ins::enter(cells);
    module.forward(input)
}

/// Returns the cell of every parameter and buffer, by name.
pub(crate) fn cells_of<M: Module + ?Sized>(module: &M) -> Vec<(String, Cell)> {
    let parameters = module.named_parameters().into_iter().map(|(name, parameter)| (name, parameter.cell()));
    let buffers = module.named_buffers().into_iter().map(|(name, buffer)| (name, buffer.cell()));
    parameters.chain(buffers).collect()
}
