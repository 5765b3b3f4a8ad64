//! Cells whose tensor is another one for a while (`torch.func.functional_call`).

use std::cell::RefCell;
use std::panic::Location;
use std::sync::{Arc, PoisonError, RwLock};

use super::error::ModuleError;
use super::module::Module;
use crate::error::Result;
use crate::scope;
use crate::tensor::Tensor;

/// What a parameter or a buffer keeps its tensor in.
pub(super) type Cell = Arc<RwLock<Tensor>>;

thread_local! {
    /// The later entry counts, so that scopes may be nested.
    static OVERRIDDEN: RefCell<Vec<(Cell, Tensor)>> = const { RefCell::new(Vec::new()) };
}

/// What stands for the tensor of a cell on this thread now, if anything does.
fn stand_in(cell: &Cell) -> Option<Tensor> {
    let find = |cells: &RefCell<Vec<(Cell, Tensor)>>| {
        let cells = cells.borrow();
        cells.iter().rev().find(|(other, _)| Arc::ptr_eq(other, cell)).map(|(_, tensor)| tensor.clone())
    };
    OVERRIDDEN.try_with(find).ok().flatten() // A thread that ends overrides nothing.
}

/// The tensor of a cell, or what stands for it.
pub(super) fn tensor_in(cell: &Cell) -> Tensor {
    stand_in(cell).unwrap_or_else(|| lasting(cell))
}

/// The tensor of a cell itself.
pub(super) fn lasting(cell: &Cell) -> Tensor {
    cell.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Puts another tensor in the place of the one that stands for a cell's. False if none does.
pub(super) fn replace_stand_in(cell: &Cell, tensor: &Tensor) -> bool {
    let old = OVERRIDDEN.with_borrow_mut(|cells| {
        let (_, slot) = cells.iter_mut().rev().find(|(other, _)| Arc::ptr_eq(other, cell))?;
        Some(std::mem::replace(slot, tensor.clone()))
    });
    old.is_some()
}

/// Lets these tensors stand for those of the cells until the guard is dropped.
pub(super) fn override_cells(cells: impl IntoIterator<Item = (Cell, Tensor)>) -> Overridden {
    OVERRIDDEN.with_borrow_mut(|overridden| {
        let before = overridden.len();
        overridden.extend(cells);
        Overridden(before)
    })
}

/// Brings the tensors of before back, also when a panic passes through.
pub(super) struct Overridden(usize);

impl Drop for Overridden {
    fn drop(&mut self) {
        // Dropped after the borrow: a tensor may hold anything.
        drop(OVERRIDDEN.with_borrow_mut(|cells| cells.split_off(self.0.min(cells.len()))));
    }
}

/// Runs `module` with other tensors in the place of its parameters and buffers, by name
/// (`torch.func.functional_call`).
///
/// The module itself stays as it is, and those that are not named are its own. Gradients flow into the tensors
/// given. What the module writes to a buffer in place, it writes to the tensor given. A name that two modules
/// share a parameter by is the first one.
///
/// ```
/// use todevice::{Tensor, func::functional_call, nn, nn::Module};
///
/// let layer = nn::Linear::new(2, 1)?;
/// let weight = Tensor::new([[1.0f32, 2.0]])?.requires_grad_(true)?;
/// let x = Tensor::new([[3.0f32, 4.0]])?;
/// let y = functional_call(&layer, [("weight", &weight), ("bias", &Tensor::zeros(&[1])?)], &x)?;
/// assert_eq!(y.item()?, 11.0);
/// y.sum()?.backward()?;
/// assert!(weight.grad().is_some() && layer.weight.grad().is_none());
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Errors if the module has no parameter and no buffer of a name, and with what its forward pass errors with.
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
            None => unexpected.push(format!("\"{name}\"")),
        }
    }
    if !unexpected.is_empty() {
        return Err(ModuleError::Unexpected { module: module.name(), names: unexpected.join(", ") }.into());
    }
    let _cells = override_cells(cells);
    module.forward(input)
}

/// Every parameter and buffer of a module, by name.
pub(super) fn cells_of<M: Module + ?Sized>(module: &M) -> Vec<(String, Cell)> {
    let parameters = module.named_parameters().into_iter().map(|(name, parameter)| (name, parameter.cell()));
    let buffers = module.named_buffers().into_iter().map(|(name, buffer)| (name, buffer.cell()));
    parameters.chain(buffers).collect()
}
