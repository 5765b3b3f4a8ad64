//! Refuses writes whose result depends on the order of the writes (PyTorch's `MemoryOverlap.cpp`).

use crate::error::{Result, TensorError};
use crate::ops::NewValues;
use crate::tensor::Tensor;

impl NewValues<'_> {
    /// Refuses a write that would overwrite a new value, or a value still to be read.
    pub(super) fn check_overlap(&self, target: &Tensor) -> Result<()> {
        match self {
            NewValues::Constant | NewValues::InTurn { .. } => Ok(()),
            NewValues::Instead { source: Some(source) } if is_itself(target, source) => Ok(()),
            NewValues::Instead { source } => {
                check_target(target)?;
                source.map_or(Ok(()), |source| check_source(target, source))
            }
            NewValues::FromOld { others, .. } => {
                check_target(target)?;
                others.iter().try_for_each(|other| check_source(target, other))
            }
        }
    }
}

/// Refuses a target whose elements share memory.
pub(super) fn check_target(target: &Tensor) -> Result<()> {
    match target.layout().overlaps_itself() {
        true => Err(TensorError::WriteOverlap.into()),
        false => Ok(()),
    }
}

/// Refuses a source that partly overlaps the target. Like PyTorch, checks only tensors without gaps. Other sources may
/// pass, and are read before the target is written.
pub(super) fn check_source(target: &Tensor, source: &Tensor) -> Result<()> {
    let (to, from) = (target.layout(), source.layout());
    if !target.shares_storage(source) || !to.is_dense() || !from.is_dense() {
        return Ok(());
    }
    let [to_end, from_end] = [to, from].map(|layout| layout.offset + layout.numel());
    let is_apart = to_end <= from.offset || from_end <= to.offset || to.numel() == 0 || from.numel() == 0;
    let is_same = to.offset == from.offset && to_end == from_end && to.strides() == from.strides();
    if is_apart || is_same { Ok(()) } else { Err(TensorError::SourceOverlap.into()) }
}

/// Whether a tensor repeats elements along a dimension (`has_internal_overlap`, where PyTorch is certain).
pub(super) fn is_expanded(target: &Tensor) -> bool {
    target.layout().strides().contains(&0) && target.layout().overlaps_itself()
}

pub(super) fn is_itself(target: &Tensor, source: &Tensor) -> bool {
    target.shares_storage(source) && target.layout() == source.layout() && target.dtype() == source.dtype()
}
