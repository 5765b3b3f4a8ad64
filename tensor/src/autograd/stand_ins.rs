//! Stand-ins: temporary per-thread substitutes for the tensors of a module's parameters and buffers.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError, RwLock};

use crate::tensor::Tensor;

/// The cell in which a parameter or buffer keeps its tensor.
pub(crate) type Cell = Arc<RwLock<Tensor>>;

/// If a cell has several stand-ins, the last one counts, so scopes can be nested.
pub(crate) type StandIns = Vec<(Cell, Tensor)>;

thread_local! {
    static CURRENT: RefCell<StandIns> = const { RefCell::new(Vec::new()) };
}

/// The current stand-in for a cell's tensor, if any.
fn stand_in(cell: &Cell) -> Option<Tensor> {
    let find = |current: &RefCell<StandIns>| {
        let current = current.borrow();
        current.iter().rev().find(|(other, _)| Arc::ptr_eq(other, cell)).map(|(_, tensor)| tensor.clone())
    };
    CURRENT.try_with(find).ok().flatten() // A thread that is ending has no stand-ins.
}

/// The tensor of a cell, or its stand-in.
pub(crate) fn tensor_in(cell: &Cell) -> Tensor {
    stand_in(cell).unwrap_or_else(|| lasting(cell))
}

/// The tensor of the cell itself.
pub(crate) fn lasting(cell: &Cell) -> Tensor {
    cell.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Replaces the current stand-in for a cell's tensor. Returns false if there is none.
pub(crate) fn replace(cell: &Cell, tensor: &Tensor) -> bool {
    let old = CURRENT.with_borrow_mut(|current| {
        let (_, slot) = current.iter_mut().rev().find(|(other, _)| Arc::ptr_eq(other, cell))?;
        Some(std::mem::replace(slot, tensor.clone()))
    });
    old.is_some()
}

/// Copies all stand-ins of this thread, for later.
pub(crate) fn snapshot() -> StandIns {
    CURRENT.with_borrow(Clone::clone)
}

/// Adds stand-ins for the cells' tensors until the guard is dropped.
pub(crate) fn enter(cells: impl IntoIterator<Item = (Cell, Tensor)>) -> Leave {
    CURRENT.with_borrow_mut(|current| {
        let before = current.len();
        current.extend(cells);
        Leave(before)
    })
}

/// Restores the previous stand-ins on drop, even when unwinding from a panic.
pub(crate) struct Leave(usize);

impl Drop for Leave {
    fn drop(&mut self) {
        // Dropped after the borrow ends: dropping a tensor can run arbitrary code.
        drop(CURRENT.with_borrow_mut(|current| current.split_off(self.0.min(current.len()))));
    }
}
