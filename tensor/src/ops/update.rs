//! Operations that write to a tensor, and their records in autograd.

use smallvec::SmallVec;

use super::{Operation, mismatch, overlap, plain};
use crate::autograd::error::AutogradError;
use crate::autograd::{is_inference_mode_enabled, is_recording, record_list};
use crate::enter::enter;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

pub(crate) enum NewValues<'v> {
    /// Computed from the old values and from `others`. For autograd, `anew` computes them from a copy of the old
    /// values, because the graph never holds an overwritten tensor.
    FromOld { others: &'v [&'v Tensor], anew: &'v dyn Fn(&Tensor) -> Result<Tensor> },
    /// Independent of the old values, whose gradient is 0. They come from `source`, on any device, or from no tensor.
    Instead { source: Option<&'v Tensor> },
    /// One number for every element, so elements may share memory.
    Constant,
    /// Written in order, so the last of several elements that share memory wins. Autograd does not track this.
    InTurn { source: &'v Tensor },
}

impl NewValues<'_> {
    pub(crate) const FRESH: Self = NewValues::Instead { source: None };

    /// Refuses a write that would overwrite a new value, or a value still to be read.
    fn check_overlap(&self, target: &Tensor) -> Result<()> {
        match self {
            NewValues::Constant | NewValues::InTurn { .. } => Ok(()),
            NewValues::Instead { source: Some(source) } if overlap::is_itself(target, source) => Ok(()),
            NewValues::Instead { source } => {
                overlap::check_target(target)?;
                source.map_or(Ok(()), |source| overlap::check_source(target, source))
            }
            NewValues::FromOld { others, .. } => {
                overlap::check_target(target)?;
                others.iter().try_for_each(|other| overlap::check_source(target, other))
            }
        }
    }
}

/// Runs an operation that writes to `target` through `in_place`.
#[track_caller]
pub(crate) fn update(
    operation: &'static Operation,
    target: &Tensor,
    values: NewValues,
    in_place: impl FnOnce() -> Result<()>,
) -> Result<Tensor> {
    let mut in_place = Some(in_place);
    update_by(operation, target, values, &mut || in_place.take().map_or(Ok(()), |in_place| in_place()))
}

/// The non-generic part of [`update`]. Calls `in_place` at most once.
#[track_caller]
fn update_by(
    operation: &'static Operation,
    target: &Tensor,
    values: NewValues,
    in_place: &mut dyn FnMut() -> Result<()>,
) -> Result<Tensor> {
    let (together, sources) = match &values {
        NewValues::FromOld { others, .. } => (*others, *others),
        NewValues::Instead { source } => (&[][..], source.as_slice()),
        NewValues::Constant => (&[][..], &[][..]),
        NewValues::InTurn { source } => (&[][..], std::slice::from_ref(source)),
    };
    let operands: SmallVec<[&Tensor; 4]> = [target].into_iter().chain(together.iter().copied()).collect();
    let _scope = enter(operation, &operands)?;
    // Any device may read a 0-dim tensor on the host, but not write to it.
    let is_elsewhere = |operand: &&Tensor| operand.device() != target.device() && operand.is_cuda();
    if let Some(i) = operands.iter().position(is_elsewhere) {
        return Err(mismatch(operation.name, None, &operands, [0, i]));
    }
    let is_recorded = records_write(target, sources)?;
    values.check_overlap(target)?;
    match values {
        NewValues::FromOld { anew, .. } if is_recorded => {
            let old = plain::copy_of(target)?;
            old.set_history(target.history());
            let new = anew(&old)?;
            plain::write(target, &new.detach().to(target.dtype())?)?;
            target.set_history(new.history());
        }
        NewValues::Instead { .. } | NewValues::Constant if is_recorded => {
            in_place()?;
            let source = sources.first().copied();
            let old = Some(target).filter(|target| target.requires_grad());
            let inputs: SmallVec<[&Tensor; 2]> = old.into_iter().chain(source).collect();
            let (has_old, source) = (old.is_some(), source.map(Tensor::device));
            record_list(operation, &inputs, target.clone(), move |grad| {
                let zeros = has_old.then(|| grad.zeros_like());
                zeros.into_iter().chain(source.map(|device| grad.to(device))).collect()
            })?;
        }
        NewValues::InTurn { .. } if is_recorded => return Err(AutogradError::RecordedViewInPlace.into()),
        _ => in_place()?,
    }
    target.storage().bump_version();
    Ok(target.clone())
}

/// Returns the error of a failed in-place operation. As in PyTorch, a target that must not be written to comes first.
#[track_caller]
pub(crate) fn refused(operation: &'static Operation, target: &Tensor, error: impl Into<Error>) -> Error {
    let of_target = enter(operation, &[target]).and_then(|_scope| records_write(target, &[]));
    of_target.err().unwrap_or_else(|| error.into())
}

/// Whether autograd records a write to `target` that depends on `inputs`. Errors if `target` must not be written to.
fn records_write(target: &Tensor, inputs: &[&Tensor]) -> Result<bool> {
    if target.is_inference() && !is_inference_mode_enabled() {
        return Err(AutogradError::InferenceInPlace.into());
    }
    let flows = target.requires_grad()
        || target.base().is_some_and(Tensor::requires_grad)
        || inputs.iter().any(|input| input.requires_grad());
    if !flows || !is_recording() || !target.dtype().is_floating_point() {
        return Ok(false);
    }
    let is_leaf = |tensor: &Tensor| tensor.history().leaf().is_some();
    match target.base() {
        _ if is_leaf(target) => Err(AutogradError::LeafInPlace.into()),
        Some(base) if is_leaf(base) => Err(AutogradError::LeafViewInPlace.into()),
        Some(_) => Err(AutogradError::RecordedViewInPlace.into()),
        None => inputs.iter().try_for_each(|input| input.check_history()).map(|()| true),
    }
}
