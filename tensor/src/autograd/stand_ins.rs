//! Tensors that stand for those of a module's cells, on one thread and for a while.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError, RwLock};

use crate::tensor::Tensor;

/// What a parameter or a buffer keeps its tensor in.
pub(crate) type Cell = Arc<RwLock<Tensor>>;

/// The later one of a cell counts, so that scopes may be nested.
pub(crate) type StandIns = Vec<(Cell, Tensor)>;

thread_local! {
    static CURRENT: RefCell<StandIns> = const { RefCell::new(Vec::new()) };
}

/// What stands for the tensor of a cell now, if anything does.
fn stand_in(cell: &Cell) -> Option<Tensor> {
    let find = |current: &RefCell<StandIns>| {
        let current = current.borrow();
        current.iter().rev().find(|(other, _)| Arc::ptr_eq(other, cell)).map(|(_, tensor)| tensor.clone())
    };
    CURRENT.try_with(find).ok().flatten() // On a thread that ends nothing stands for another.
}

/// The tensor of a cell, or what stands for it.
pub(crate) fn tensor_in(cell: &Cell) -> Tensor {
    stand_in(cell).unwrap_or_else(|| lasting(cell))
}

/// The tensor of a cell itself.
pub(crate) fn lasting(cell: &Cell) -> Tensor {
    cell.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Puts another tensor in the place of the one that stands for a cell's. False if none does.
pub(crate) fn replace(cell: &Cell, tensor: &Tensor) -> bool {
    let old = CURRENT.with_borrow_mut(|current| {
        let (_, slot) = current.iter_mut().rev().find(|(other, _)| Arc::ptr_eq(other, cell))?;
        Some(std::mem::replace(slot, tensor.clone()))
    });
    old.is_some()
}

/// All of this thread, for later.
pub(crate) fn snapshot() -> StandIns {
    CURRENT.with_borrow(Clone::clone)
}

/// Lets tensors stand for those of the cells, beside those that do, until the guard is dropped.
pub(crate) fn enter(cells: impl IntoIterator<Item = (Cell, Tensor)>) -> Leave {
    CURRENT.with_borrow_mut(|current| {
        let before = current.len();
        current.extend(cells);
        Leave(before)
    })
}

/// Brings the tensors of before back, also when a panic passes through.
pub(crate) struct Leave(usize);

impl Drop for Leave {
    fn drop(&mut self) {
        // They are dropped after the borrow: a tensor may hold anything.
        drop(CURRENT.with_borrow_mut(|current| current.split_off(self.0.min(current.len()))));
    }
}
