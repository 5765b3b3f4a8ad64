//! Stand-ins: temporary per-thread substitutes for a module's parameters and buffers.

use std::iter;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::lock::lock;
use crate::tensor::Tensor;
use crate::thread::{OfThread, Part, Restore, StandIns, TensorContext};

pub(crate) type Cell = Arc<RwLock<Tensor>>;

/// The stand-ins of one scope, and the enclosing scope.
struct StandInScope {
    cells: Mutex<Vec<(Cell, Tensor)>>,
    around: Option<Arc<StandInScope>>,
}

fn innermost(stand_ins: &StandIns) -> Option<Arc<StandInScope>> {
    stand_ins.0.clone()?.downcast().ok()
}

fn current() -> Option<Arc<StandInScope>> {
    TensorContext::read(|context| innermost(&context.stand_ins))
}

fn scopes(innermost: &Option<Arc<StandInScope>>) -> impl Iterator<Item = &Arc<StandInScope>> {
    iter::successors(innermost.as_ref(), |scope| scope.around.as_ref())
}

/// Returns the stand-in for a cell, or the cell's tensor. The innermost scope wins; within a scope, the last entry.
pub(crate) fn tensor_in(cell: &Cell) -> Tensor {
    let of_scope = |scope: &Arc<StandInScope>| {
        let cells = lock(&scope.cells);
        cells.iter().rev().find(|(other, _)| Arc::ptr_eq(other, cell)).map(|(_, tensor)| tensor.clone())
    };
    scopes(&current()).find_map(of_scope).unwrap_or_else(|| lasting(cell))
}

/// Returns the cell's tensor, without stand-ins.
pub(crate) fn lasting(cell: &Cell) -> Tensor {
    cell.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Replaces the current stand-in of a cell. Returns false if it has none.
pub(crate) fn replace(cell: &Cell, tensor: &Tensor) -> bool {
    let in_scope = |scope: &Arc<StandInScope>| {
        let mut cells = lock(&scope.cells);
        let (_, slot) = cells.iter_mut().rev().find(|(other, _)| Arc::ptr_eq(other, cell))?;
        Some(std::mem::replace(slot, tensor.clone()))
    };
    scopes(&current()).find_map(in_scope).is_some()
}

/// Copies the stand-ins, so that later replacements do not affect the copy.
pub(crate) fn copy(stand_ins: &StandIns) -> StandIns {
    let Some(innermost) = innermost(stand_ins) else { return StandIns(None) };
    let of_scope = |scope: &Arc<StandInScope>| lock(&scope.cells).clone();
    let mut cells: Vec<Vec<(Cell, Tensor)>> = scopes(&Some(innermost)).map(of_scope).collect();
    cells.reverse();
    StandIns(Some(Arc::new(StandInScope { cells: Mutex::new(cells.concat()), around: None })))
}

/// Adds stand-ins to those in effect, until the guard is dropped.
pub(crate) fn enter(cells: impl IntoIterator<Item = (Cell, Tensor)>) -> Restore<StandIns> {
    let cells = Mutex::new(cells.into_iter().collect());
    StandIns(Some(Arc::new(StandInScope { cells, around: current() }))).enter()
}
