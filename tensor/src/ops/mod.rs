//! The operations, a family a folder: `mod.rs` says what an operation checks, computes and how its
//! gradient flows; `cpu.rs` computes it on the host.
//!
//! Every operation enters through [`enter`]. Whatever must happen for all of them hangs there, and
//! nowhere else.

pub(crate) mod cast;
pub(crate) mod elementwise;
pub(crate) mod index;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod optimizer;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod shape;
pub(crate) mod simd;
pub(crate) mod softmax;

use std::panic::Location;

use crate::autograd::{Function, History, is_inference_mode_enabled, is_recording, record};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The choke point: what is true of every operation, whatever it computes.
pub(crate) fn enter<'a>(_name: &'static str, inputs: impl IntoIterator<Item = &'a Tensor>) -> Result<()> {
    same_device(inputs.into_iter().map(Tensor::device))
}

/// The golden rule: all tensors of one operation live on one device.
fn same_device(devices: impl IntoIterator<Item = Device>) -> Result<()> {
    let mut devices = devices.into_iter();
    let Some(first) = devices.next() else { return Ok(()) };
    match devices.find(|device| *device != first) {
        Some(other) => Err(Error::DeviceMismatch { a: first, b: other }),
        None => Ok(()),
    }
}

/// A differentiable operation.
#[track_caller]
pub(crate) fn apply<F: Function<N>, const N: usize>(function: F, inputs: [&Tensor; N]) -> Result<Tensor> {
    enter(function.name(), inputs)?;
    record(function, inputs)
}

/// An operation that has no gradient: comparisons, indices, new values.
#[track_caller]
pub(crate) fn call<const N: usize>(
    name: &'static str,
    inputs: [&Tensor; N],
    compute: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    enter(name, inputs)?;
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
    enter(name, inputs.iter().copied().chain([target]))?;
    if target.is_inference() && !is_inference_mode_enabled() {
        return Err(Error::InferenceInPlace);
    }
    if target.layout().overlaps_itself() {
        return Err(Error::WriteOverlap);
    }
    let is_leaf = |tensor: &Tensor| matches!(tensor.history(), History::Leaf(_));
    let recording = is_recording()
        && (target.requires_grad()
            || target.base().is_some_and(Tensor::requires_grad)
            || inputs.iter().any(|input| input.requires_grad()));
    if recording {
        if is_leaf(target) {
            return Err(Error::LeafInPlace);
        }
        if let Some(base) = target.base() {
            return Err(if is_leaf(base) { Error::LeafViewInPlace } else { Error::RecordedViewInPlace });
        }
        let old = shape::copy_of(target)?;
        old.set_history(target.history());
        let new = out_of_place(&old)?.to(target.dtype())?;
        shape::write(target, &new)?;
        target.set_history(new.history());
    } else {
        in_place()?;
    }
    target.storage().bump_version();
    Ok(target.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_devices_in_one_operation_are_named_in_pytorchs_sentence() {
        assert!(same_device([]).is_ok());
        assert!(same_device([Device::Cpu, Device::Cpu]).is_ok());
        let error = same_device([Device::cuda(0), Device::cuda(0), Device::Cpu]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
        );
    }
}
