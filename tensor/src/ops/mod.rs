//! The operations, a family a folder: `mod.rs` says what an operation checks, computes and how its
//! gradient flows; `kernels.rs` has the kernels it is made of, for the host and for devices (see `kernel.rs` of
//! `todevice-gpu`).
//!
//! Every operation enters through [`enter`].

pub(crate) mod access;
pub(crate) mod cast;
pub(crate) mod conv;
pub(crate) mod elementwise;
pub(crate) mod half;
pub(crate) mod index;
pub(crate) mod launch;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod optimizer;
pub(crate) mod pair;
pub(crate) mod parallel;
pub(crate) mod parts;
pub(crate) mod plain;
pub(crate) mod pool;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod registry;
pub(crate) mod reserve;
pub(crate) mod scaler;
pub(crate) mod shape;
pub(crate) mod simd;
pub(crate) mod softmax;
pub(crate) mod transfer;
pub(crate) mod values;

use std::panic::Location;

use smallvec::SmallVec;

use crate::amp::cast_operands;
use crate::autograd::{Function, History, is_inference_mode_enabled, is_recording, record, record_list};
pub use crate::enter::Arguments;
pub(crate) use crate::enter::{enter, lead, mismatch, same_device};
use crate::error::{Error, Result};
use crate::scope;
use crate::tensor::Tensor;

/// A differentiable operation, on operands as autocast leaves them. Its parts run in the types that they get.
#[track_caller]
pub(crate) fn apply<F: Function<N>, const N: usize>(function: F, inputs: [&Tensor; N]) -> Result<Tensor> {
    let _scope = enter(function.name(), function.arguments(), &inputs)?;
    cast_operands(function.name(), &inputs, |inputs| {
        record(function, inputs.try_into().expect("they are as many as before"))
    })
}

/// An operation made of others, which is one for autocast: they get its operands as autocast leaves them.
#[track_caller]
pub(crate) fn compose<R>(
    name: &'static str,
    inputs: &[&Tensor],
    compute: impl FnOnce(&[&Tensor]) -> Result<R>,
) -> Result<R> {
    let _scope = scope::operation(name, Location::caller());
    cast_operands(name, inputs, compute)
}

/// An operation that has no gradient: comparisons, indices, new values.
#[track_caller]
pub(crate) fn call<const N: usize>(
    name: &'static str,
    inputs: [&Tensor; N],
    compute: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    let _scope = enter(name, None, &inputs)?;
    Ok(compute()?.made_at(Location::caller()))
}

/// An operation that writes to `target`: as `in_place` computes it, or, when autograd must know, as
/// `out_of_place` computes it from a copy of the old value, so that the graph never holds a tensor
/// that was overwritten.
#[track_caller]
pub(crate) fn update(
    name: &'static str,
    target: &Tensor,
    inputs: &[&Tensor],
    out_of_place: impl FnOnce(&Tensor) -> Result<Tensor>,
    in_place: impl FnOnce() -> Result<()>,
) -> Result<Tensor> {
    let operands: SmallVec<[&Tensor; 4]> = [target].into_iter().chain(inputs.iter().copied()).collect();
    let _scope = enter(name, None, &operands)?;
    // A number of the host may be read by any device, but not written.
    if let Some(i) =
        operands.iter().position(|operand| operand.device() != target.device() && operand.is_cuda())
    {
        return Err(mismatch(name, None, &operands, [0, i]));
    }
    if records_write(target, inputs)? {
        let old = plain::copy_of(target)?;
        old.set_history(target.history());
        let new = out_of_place(&old)?;
        plain::write(target, &new.detach().to(target.dtype())?)?;
        target.set_history(new.history());
    } else {
        in_place()?;
    }
    target.storage().bump_version();
    Ok(target.clone())
}

/// An operation that writes to `target` what has nothing to do with its old values, whose gradient is therefore 0. The
/// new ones are those of `source`, on whatever device that is, or come from nowhere.
#[track_caller]
pub(crate) fn replace(
    name: &'static str,
    backward_name: &'static str,
    target: &Tensor,
    source: Option<&Tensor>,
    in_place: impl FnOnce() -> Result<()>,
) -> Result<Tensor> {
    let _scope = enter(name, None, &[target])?;
    let recording = records_write(target, source.as_slice())?;
    in_place()?;
    if recording {
        let old = Some(target).filter(|target| target.requires_grad());
        let inputs: SmallVec<[&Tensor; 2]> = old.into_iter().chain(source).collect();
        let (has_old, source) = (old.is_some(), source.map(Tensor::device));
        record_list(backward_name, &inputs, target.clone(), move |grad| {
            let zeros = has_old.then(|| grad.zeros_like());
            zeros.into_iter().chain(source.map(|device| grad.to(device))).collect()
        })?;
    }
    target.storage().bump_version();
    Ok(target.clone())
}

/// Whether autograd records a write to `target` that depends on `inputs`; an error if it must not be written to.
fn records_write(target: &Tensor, inputs: &[&Tensor]) -> Result<bool> {
    if target.is_inference() && !is_inference_mode_enabled() {
        return Err(Error::InferenceInPlace);
    }
    if target.layout().overlaps_itself() {
        return Err(Error::WriteOverlap);
    }
    let flows = target.requires_grad()
        || target.base().is_some_and(Tensor::requires_grad)
        || inputs.iter().any(|input| input.requires_grad());
    if !flows || !is_recording() || !target.dtype().is_floating_point() {
        return Ok(false);
    }
    let is_leaf = |tensor: &Tensor| matches!(tensor.history(), History::Leaf(_));
    match target.base() {
        _ if is_leaf(target) => Err(Error::LeafInPlace),
        Some(base) if is_leaf(base) => Err(Error::LeafViewInPlace),
        Some(_) => Err(Error::RecordedViewInPlace),
        None => inputs.iter().try_for_each(|input| input.check_history()).map(|()| true),
    }
}
