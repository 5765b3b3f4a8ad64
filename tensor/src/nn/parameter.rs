//! The tensors that a module owns: shared cells, so that module, optimizer and gradient hold the same tensor.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::autograd::stand_ins::{self, Cell, lasting, tensor_in};
use crate::error::Result;
use crate::mismatch::Owner;
use crate::ops::transfer::ToOptions;
use crate::print;
use crate::tensor::Tensor;

/// A learned tensor (`torch.nn.Parameter`): a leaf that requires grad.
///
/// Clones are the same parameter. Moving the module replaces the tensor in the cell, and everything that holds the
/// parameter sees the new one; so an optimizer made before `model.to(device)` still works.
#[derive(Clone)]
pub struct Parameter(Cell);

impl Parameter {
    /// Makes `tensor` a parameter: a new leaf that requires grad.
    #[track_caller]
    pub fn new(tensor: &Tensor) -> Result<Parameter> {
        Parameter::owned(tensor, Owner::new("parameter", None, "own_parameters"))
    }

    /// The parameter `name` of a layer.
    #[track_caller]
    pub(super) fn of(layer: &'static str, name: &'static str, tensor: &Tensor) -> Result<Parameter> {
        Parameter::owned(tensor, Owner::new(name, Some(layer), "children"))
    }

    #[track_caller]
    fn owned(tensor: &Tensor, owner: Owner) -> Result<Parameter> {
        let leaf = tensor.detach().contiguous()?.requiring_grad()?;
        Ok(Parameter(Arc::new(RwLock::new(leaf.owned_by(owner)))))
    }

    /// The current tensor, for use in a forward pass.
    pub fn tensor(&self) -> Tensor {
        tensor_in(&self.0)
    }

    /// The cell that holds the tensor.
    pub(super) fn cell(&self) -> Cell {
        self.0.clone()
    }

    /// The gradient accumulated so far.
    pub fn grad(&self) -> Option<Tensor> {
        self.tensor().grad()
    }

    /// Replaces the gradient, or clears it if `None`.
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        self.tensor().set_grad(grad)
    }

    /// Clears the gradient (`p.grad = None`).
    pub fn zero_grad(&self) {
        // Clearing the gradient of a leaf, frozen or not, always succeeds. A temporary stand-in for the tensor may not
        // be a leaf.
        let _ = self.set_grad(None);
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.tensor().numel()
    }

    /// Whether the parameter is learned; false if frozen.
    pub fn requires_grad(&self) -> bool {
        self.tensor().requires_grad()
    }

    /// Unfreezes or freezes the parameter.
    pub fn requires_grad_(&self, requires_grad: bool) -> Result<()> {
        self.tensor().requires_grad_(requires_grad).map(drop)
    }

    /// Whether the parameter is currently on a GPU.
    pub fn is_cuda(&self) -> bool {
        self.tensor().is_cuda()
    }

    /// Whether both are the same parameter.
    pub fn is_same(&self, other: &Parameter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The tensor and its gradient, moved or converted; `None` if that changes nothing.
    pub(super) fn converted(&self, options: ToOptions) -> Result<Option<Replacement>> {
        let old = lasting(&self.0);
        let Some(new) = converted(&old, options)? else { return Ok(None) };
        let grad = old.grad().map(|grad| grad.to(options)).transpose()?;
        Ok(Some(Replacement { cell: self.0.clone(), old, new, grad }))
    }
}

/// A tensor in another dtype, if it is floating-point, or on another device; `None` if that changes nothing.
fn converted(old: &Tensor, options: ToOptions) -> Result<Option<Tensor>> {
    let dtype = options.dtype.filter(|_| old.dtype().is_floating_point());
    let new = old.detached_from(old.place()).to(ToOptions { dtype, ..options })?; // keeps the line that made it
    Ok(Some(new).filter(|new| !new.shares_storage(old)))
}

/// A tensor that is about to replace one of a module's tensors.
pub(super) struct Replacement {
    cell: Cell,
    old: Tensor,
    new: Tensor,
    grad: Option<Tensor>,
}

impl Replacement {
    /// Whether the new tensor is on another device than the old one.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.new.device() != self.old.device()
    }

    /// The gradient goes on accumulating in the same place, whichever of the two tensors a graph was built from.
    pub(super) fn take_place(self) -> Result<()> {
        let Replacement { cell, old, new, grad } = self;
        new.set_history(old.history());
        new.set_grad(grad)?;
        *cell.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", print::PARAMETER, self.tensor())
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A tensor that is part of a module's state but is not learned (as with `register_buffer`).
#[derive(Clone, Debug)]
pub struct Buffer(Cell);

impl Buffer {
    /// Makes `tensor` a buffer.
    pub fn new(tensor: &Tensor) -> Buffer {
        Buffer::owned(tensor, Owner::new("buffer", None, "own_buffers"))
    }

    /// The buffer `name` of a layer.
    pub(super) fn of(layer: &'static str, name: &'static str, tensor: &Tensor) -> Buffer {
        Buffer::owned(tensor, Owner::new(name, Some(layer), "children"))
    }

    fn owned(tensor: &Tensor, owner: Owner) -> Buffer {
        Buffer(Arc::new(RwLock::new(tensor.detached_from(tensor.place()).owned_by(owner))))
    }

    /// The current tensor.
    pub fn tensor(&self) -> Tensor {
        tensor_in(&self.0)
    }

    /// The cell that holds the tensor.
    pub(super) fn cell(&self) -> Cell {
        self.0.clone()
    }

    /// Replaces the tensor.
    pub fn set(&self, tensor: &Tensor) {
        let tensor = tensor.detached_from(tensor.place());
        if !stand_ins::replace(&self.0, &tensor) {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = tensor;
        }
    }

    /// The tensor, moved or converted; `None` if that changes nothing.
    pub(super) fn converted(&self, options: ToOptions) -> Result<Option<Replacement>> {
        let old = lasting(&self.0);
        let new = converted(&old, options)?;
        Ok(new.map(|new| Replacement { cell: self.0.clone(), old, new, grad: None }))
    }
}
