//! The operations, a family a folder: `mod.rs` says what an operation checks, computes and how its
//! gradient flows; `kernels.rs` declares the kernels that it is made of, for the host and for devices: see `row.rs`. In
//! CUDA C++ they are in the file of the family's name in `kernels/`.
//!
//! An operation has three doors: [`call`], [`apply`] if it has a gradient, and [`update`] if it writes to a tensor. Behind
//! each is [`enter`]. A function of the user's own has a fourth, [`Function::apply`], which enters as well, but on purpose
//! without autocast: as in PyTorch, it gets its inputs in the types that they have, and autocast is for the operations that
//! its forward pass calls.

pub(crate) mod access;
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

use smallvec::SmallVec;

use crate::amp::Operands;
use crate::autograd::error::AutogradError;
use crate::autograd::{Function, is_inference_mode_enabled, is_recording, record, record_list};
use crate::enter::enter;
pub(crate) use crate::enter::{lead, mismatch, same_device};
use crate::error::{Error, Result};
pub(crate) use crate::operation::{Arguments, Cast, Operation, operations};
use crate::tensor::Tensor;

/// An operation: `compute` gets its operands as autocast leaves them, and whatever it is made of runs in the types that it
/// gets.
#[track_caller]
pub(crate) fn call<R>(
    operation: &'static Operation,
    operands: &[&Tensor],
    compute: impl FnOnce(&[&Tensor]) -> Result<R>,
) -> Result<R> {
    let _scope = enter(operation, operands)?;
    let cast = Operands::cast(operation, operands)?;
    compute(&cast.of(operands))
}

/// A differentiable operation.
#[track_caller]
pub(crate) fn apply<F: Function<N>, const N: usize>(function: F, operands: [&Tensor; N]) -> Result<Tensor> {
    call(function.operation(), &operands, |operands| {
        record(function, operands.try_into().expect("they are as many as before"))
    })
}

/// Where the values come from that an operation writes to a tensor.
pub(crate) enum NewValues<'v> {
    /// From the old ones and from others. `anew` computes them from a copy of the old ones, for autograd: the graph never
    /// holds a tensor that was overwritten.
    FromOld { others: &'v [&'v Tensor], anew: &'v dyn Fn(&Tensor) -> Result<Tensor> },
    /// Not from the old ones, whose gradient is therefore 0, but from `source`, on whatever device that is, or from nowhere.
    Instead { source: Option<&'v Tensor> },
    /// All are one number, so that it does no harm to write one place twice.
    Constant,
    /// They are written one after another: where several share a place, the last one stays. Autograd does not follow that.
    InTurn { source: &'v Tensor },
}

impl NewValues<'_> {
    pub(crate) const FRESH: Self = NewValues::Instead { source: None };

    /// Refuses to write where that would overwrite a new value, or a value that is still to be read.
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

/// An operation that writes to `target`, as `in_place` does it.
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

/// The same, compiled once. It calls `in_place` once at most.
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
    // A number of the host may be read by any device, but not written.
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

/// The error of an operation in place. If the target must not be written to, PyTorch says that before anything else.
#[track_caller]
pub(crate) fn refused(operation: &'static Operation, target: &Tensor, error: impl Into<Error>) -> Error {
    let of_target = enter(operation, &[target]).and_then(|_scope| records_write(target, &[]));
    of_target.err().unwrap_or_else(|| error.into())
}

/// Whether autograd records a write to `target` that depends on `inputs`; an error if it must not be written to.
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
