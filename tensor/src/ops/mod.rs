//! The entry points of operations. Each family has a folder: `mod.rs` holds an operation's checks, computation and
//! gradient, and `kernels.rs` declares the kernels for the host and for devices (see `row.rs`), unless they are in the
//! operation's file. Their CUDA C++ is in `kernels/`, in the file named after the family.
//!
//! An operation begins in one of three functions: [`call`], [`apply`] if it has a gradient, and [`update`] if it
//! writes to a tensor. Each of them calls [`enter`]. A user's own function goes through a fourth, [`Function::apply`],
//! which also enters but deliberately skips autocast: as in PyTorch, it receives its inputs in their own dtypes, and
//! autocast applies to the operations that its forward pass calls.
//!
//! Not here: the operations themselves; `x.matmul(&w)` is in `matmul/`. Next in the spine: `operation.rs`.

pub(crate) mod access;
pub(crate) mod compiled;
pub(crate) mod conv;
pub(crate) mod elementwise;
pub(crate) mod index;
pub(crate) mod launch;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod optimizer;
mod overlap;
pub(crate) mod pair;
mod pin;
pub(crate) mod plain;
pub(crate) mod pool;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod registry;
pub(crate) mod row;
pub(crate) mod scaler;
pub(crate) mod shape;
pub(crate) mod softmax;
pub(crate) mod transfer;
pub(crate) mod values;
mod written_view;

use smallvec::SmallVec;

use crate::amp::Operands;
use crate::autograd::error::AutogradError;
use crate::autograd::{Function, is_inference_mode_enabled, is_recording, record, record_list};
use crate::error::{Error, Result};
pub(crate) use crate::mismatch::mismatch;
use crate::operation::enter;
pub(crate) use crate::operation::{
    ArgumentNames, CastPolicy, Operation, deciding_operand, operations, same_device,
};
use crate::tensor::Tensor;

pub(crate) enum NewValues<'v> {
    /// Computed from the old values and from `others`. For autograd, `anew` computes them from a copy of the old
    /// values, because the graph never holds an overwritten tensor.
    FromOld { others: &'v [&'v Tensor], anew: &'v dyn Fn(&Tensor) -> Result<Tensor> },
    /// Independent of the old values, whose gradient is 0. They come from `source`, on any device, or from no tensor.
    Instead { source: Option<&'v Tensor> },
    /// One number for every element, so elements may share memory.
    Constant,
    /// Written in order, so the last of several elements that share memory wins. For autograd, `anew` computes them as in
    /// `FromOld`, from elements apart.
    InTurn { source: &'v Tensor, anew: &'v dyn Fn(&Tensor) -> Result<Tensor> },
}

impl NewValues<'_> {
    pub(crate) const FRESH: Self = NewValues::Instead { source: None };
}

/// Runs an operation. `compute` gets the operands after autocast, and everything inside it runs in those dtypes.
#[track_caller]
// ANCHOR: call
pub(crate) fn call<R>(
    operation: &'static Operation,
    operands: &[&Tensor],
    compute: impl FnOnce(&[&Tensor]) -> Result<R>,
) -> Result<R> {
    let _scope = enter(operation, operands)?;
    let cast = Operands::cast(operation, operands)?;
    compute(&cast.of(operands))
}
// ANCHOR_END: call

/// Runs a differentiable operation.
#[track_caller]
pub(crate) fn apply<F: Function<N>, const N: usize>(function: F, operands: [&Tensor; N]) -> Result<Tensor> {
    call(function.operation(), &operands, |operands| {
        record(function, operands.try_into().expect("autocast keeps their number"))
    })
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

/// Returns the error of a failed in-place operation. As in PyTorch, a target that must not be written to comes first.
#[track_caller]
pub(crate) fn refused(operation: &'static Operation, target: &Tensor, error: impl Into<Error>) -> Error {
    let of_target = enter(operation, &[target]).and_then(|_scope| records_write(target, &[]));
    of_target.err().unwrap_or_else(|| error.into())
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
        NewValues::InTurn { source, .. } => (&[][..], std::slice::from_ref(source)),
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
        NewValues::FromOld { anew, .. } | NewValues::InTurn { anew, .. } if is_recorded => {
            let old = plain::copy_of(target)?;
            old.set_history(target.history());
            let new = anew(&old)?;
            match values {
                NewValues::InTurn { .. } => in_place()?,
                _ => plain::write(target, &new.detach().to(target.dtype())?)?,
            }
            match target.is_view() {
                true => target.record_slice(Some(&new))?,
                false => target.set_history(new.history()),
            }
        }
        NewValues::Instead { .. } | NewValues::Constant if is_recorded && target.is_view() => {
            in_place()?;
            target.record_slice(sources.first().copied())?;
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
        _ => in_place()?,
    }
    target.storage().bump_version();
    Ok(target.clone())
}

/// Whether autograd records a write to `target` that depends on `inputs`. Returns an error if `target` must not be
/// written to.
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
    target.check_recorded_write()?;
    let is_leaf = |tensor: &Tensor| tensor.history().leaf().is_some();
    match target.base() {
        Some(base) if is_leaf(base) => Err(AutogradError::LeafViewInPlace.into()),
        _ if is_leaf(target) => Err(AutogradError::LeafInPlace.into()),
        _ => [target].iter().chain(inputs).try_for_each(|input| input.check_history()).map(|()| true),
    }
}
