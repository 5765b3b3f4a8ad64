//! The tensors of a module, in cells shared by module and optimizer.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::autograd::stand_ins::{self, Cell, lasting, tensor_in};
use crate::error::Result;
use crate::mismatch::Owner;
use crate::ops::transfer::ToOptions;
use crate::print;
use crate::shape::MemoryFormat;
use crate::tensor::Tensor;

/// A learned tensor (`torch.nn.Parameter`): a leaf that requires grad.
///
/// Clones are the same parameter. `model.to(device)` replaces the tensor in the shared cell, so optimizers keep
/// working.
#[derive(Clone)]
pub struct Parameter(Cell);

impl Parameter {
    /// Makes `tensor` a parameter: a new leaf that requires grad.
    #[track_caller]
    pub fn new(tensor: &Tensor) -> Result<Parameter> {
        Parameter::owned(tensor, Owner::new("parameter", None, "own_parameters"))
    }

    #[track_caller]
    pub(super) fn of(layer: &'static str, name: &'static str, tensor: &Tensor) -> Result<Parameter> {
        Parameter::owned(tensor, Owner::new(name, Some(layer), "children"))
    }

    #[track_caller]
    fn owned(tensor: &Tensor, owner: Owner) -> Result<Parameter> {
        let leaf = tensor.detach().requiring_grad()?;
        Ok(Parameter(Arc::new(RwLock::new(leaf.owned_by(owner)))))
    }

    /// A parameter whose tensor is this leaf itself.
    pub(crate) fn of_leaf(leaf: Tensor) -> Parameter {
        Parameter(Arc::new(RwLock::new(leaf)))
    }

    /// Returns the current tensor.
    pub fn tensor(&self) -> Tensor {
        tensor_in(&self.0)
    }

    pub(super) fn cell(&self) -> Cell {
        self.0.clone()
    }

    /// Returns the accumulated gradient.
    pub fn grad(&self) -> Option<Tensor> {
        self.tensor().grad()
    }

    /// Replaces the gradient, or clears it with `None`.
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        self.tensor().set_grad(grad)
    }

    /// Clears the gradient (`p.grad = None`).
    pub fn zero_grad(&self) {
        // This always succeeds for a leaf, frozen or not. A stand-in for the tensor may not be a leaf.
        let _ = self.set_grad(None);
    }

    /// Returns the number of elements.
    pub fn numel(&self) -> usize {
        self.tensor().numel()
    }

    /// Returns whether the parameter is learned, not frozen.
    pub fn requires_grad(&self) -> bool {
        self.tensor().requires_grad()
    }

    /// Unfreezes or freezes the parameter.
    pub fn requires_grad_(&self, requires_grad: bool) -> Result<()> {
        self.tensor().requires_grad_(requires_grad).map(drop)
    }

    /// Returns whether the parameter is on a GPU.
    pub fn is_cuda(&self) -> bool {
        self.tensor().is_cuda()
    }

    /// Returns whether both are the same parameter.
    pub fn is_same(&self, other: &Parameter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Moves or converts the tensor and its gradient. Returns `None` if nothing changes.
    pub(super) fn converted(&self, options: ToOptions) -> Result<Option<Replacement>> {
        let old = lasting(&self.0);
        let Some(new) = converted(&old, options)? else { return Ok(None) };
        let grad = old.grad().map(|grad| grad.to(options)).transpose()?;
        Ok(Some(Replacement { cell: self.0.clone(), old, new, grad }))
    }
}

/// Moves the tensor, converts its dtype if it is floating-point, and reorders it in memory if it has four dimensions.
/// Returns `None` if nothing changes.
fn converted(old: &Tensor, options: ToOptions) -> Result<Option<Tensor>> {
    let dtype = options.dtype.filter(|_| old.dtype().is_floating_point());
    let memory_format = if old.ndim() == 4 { options.memory_format } else { MemoryFormat::Preserve };
    let options = ToOptions { dtype, memory_format, ..options };
    let new = old.detached_from(old.place()).to(options)?; // keeps the line that created it
    Ok(Some(new).filter(|new| !new.shares_storage(old)))
}

pub(super) struct Replacement {
    cell: Cell,
    old: Tensor,
    new: Tensor,
    grad: Option<Tensor>,
}

impl Replacement {
    pub(super) fn is_elsewhere(&self) -> bool {
        self.new.device() != self.old.device()
    }

    /// Takes over the history, so gradients of both tensors accumulate in the same place.
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

/// A tensor in a module's state that is not learned (as with `register_buffer`).
#[derive(Clone, Debug)]
pub struct Buffer(Cell);

impl Buffer {
    /// Makes `tensor` a buffer.
    pub fn new(tensor: &Tensor) -> Buffer {
        Buffer::owned(tensor, Owner::new("buffer", None, "own_buffers"))
    }

    pub(super) fn of(layer: &'static str, name: &'static str, tensor: &Tensor) -> Buffer {
        Buffer::owned(tensor, Owner::new(name, Some(layer), "children"))
    }

    fn owned(tensor: &Tensor, owner: Owner) -> Buffer {
        Buffer(Arc::new(RwLock::new(tensor.detached_from(tensor.place()).owned_by(owner))))
    }

    /// Returns the current tensor.
    pub fn tensor(&self) -> Tensor {
        tensor_in(&self.0)
    }

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

    /// Moves or converts the tensor. Returns `None` if nothing changes.
    pub(super) fn converted(&self, options: ToOptions) -> Result<Option<Replacement>> {
        let old = lasting(&self.0);
        let new = converted(&old, options)?;
        Ok(new.map(|new| Replacement { cell: self.0.clone(), old, new, grad: None }))
    }
}
