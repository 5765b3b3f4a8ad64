//! The operations, a family a folder: `mod.rs` says what an operation checks, computes and how its
//! gradient flows; `kernels.rs` has the kernels it is made of, for the host and for devices (see [`kernel`]).
//!
//! Every operation enters through [`enter`]. Whatever must happen for all of them hangs there, and
//! nowhere else.

pub(crate) mod cast;
pub(crate) mod conv;
pub(crate) mod elementwise;
pub(crate) mod half;
pub(crate) mod index;
pub(crate) mod kernel;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod optimizer;
pub(crate) mod pair;
pub(crate) mod parallel;
pub(crate) mod parts;
pub(crate) mod pool;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod scaler;
pub(crate) mod scope;
pub(crate) mod shape;
pub(crate) mod simd;
pub(crate) mod softmax;
pub(crate) mod transfer;

use std::panic::Location;

use smallvec::SmallVec;

use self::kernel::KernelDef;
use crate::amp::cast_operands;
use crate::autograd::{Function, History, is_inference_mode_enabled, is_recording, record, record_list};
use crate::cuda::simulated::host::HostProfile;
use crate::device::Device;
use crate::error::{DeviceMismatch, Error, Operand, Result};
use crate::machine::Machine;
use crate::tensor::Tensor;
use scope::Leave;

/// Every kernel that a device can be asked to launch.
pub(crate) fn every_kernel() -> Vec<&'static KernelDef> {
    let families = [
        conv::every_kernel,
        elementwise::every_kernel,
        index::every_kernel,
        loss::every_kernel,
        matmul::every_kernel,
        norm::every_kernel,
        optimizer::every_kernel,
        pool::every_kernel,
        random::every_kernel,
        reduce::every_kernel,
        scaler::every_kernel,
        shape::every_kernel,
        softmax::every_kernel,
    ];
    families.into_iter().flat_map(|family| family()).collect()
}

/// What PyTorch calls the arguments of an operation, if it checks their devices one by one.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    /// `wrapper_CUDA_addmm`
    pub method: &'static str,
    /// The names of the tensors, in order.
    pub names: &'static [&'static str],
}

/// The choke point: what is true of every operation, whatever it computes. It lasts as long as the guard.
#[track_caller]
pub(crate) fn enter(name: &'static str, arguments: Option<Arguments>, inputs: &[&Tensor]) -> Result<Leave> {
    let leave = scope::operation(name, Location::caller());
    Machine::charge(HostProfile::dispatch_time);
    same_device(name, arguments, inputs)?;
    Ok(leave)
}

/// The golden rule: all tensors of one operation live on one device.
///
/// Where PyTorch walks the elements of all tensors together, a number (a 0-dim tensor) of the host may join any
/// device. Everywhere else each argument is checked by name.
#[track_caller]
pub(crate) fn same_device(
    name: &'static str,
    arguments: Option<Arguments>,
    inputs: &[&Tensor],
) -> Result<()> {
    let joins = |input: &&&Tensor| arguments.is_none() && is_host_number(input);
    let Some(first) = inputs.iter().position(|input| !joins(&input)) else { return Ok(()) };
    let device = inputs[first].device();
    let stranger = |input: &&Tensor| input.device() != device && !joins(&input);
    match inputs.iter().position(stranger) {
        Some(other) => Err(mismatch(name, arguments, inputs, [first, other])),
        None => Ok(()),
    }
}

/// Whether a tensor may join those of any device: it is as good as a number.
fn is_host_number(tensor: &Tensor) -> bool {
    tensor.ndim() == 0 && !tensor.is_cuda()
}

#[cold]
fn mismatch(name: &'static str, arguments: Option<Arguments>, inputs: &[&Tensor], pair: [usize; 2]) -> Error {
    let [a, b] = pair.map(|i| inputs[i].device());
    // Two machines may well have a device of one name: "cuda:0 and cuda:0" would explain nothing.
    if let (Device::Cuda { machine, .. }, Device::Cuda { machine: other, .. }) = (a, b)
        && machine != other
    {
        let here = other == Machine::current().id();
        return Error::OtherMachine { device: if here { a } else { b } };
    }
    let called = |i: usize| match arguments {
        Some(Arguments { names, .. }) => names[i.min(names.len() - 1)].to_string(),
        None => ["self", "other"].get(i).map_or(format!("argument {i}"), |name| name.to_string()),
    };
    let sentence = match arguments {
        Some(Arguments { method, .. }) => format!(
            "Expected all tensors to be on the same device, but got {} is on {b}, different from other tensors on \
             {a} (when checking argument in method {method})",
            called(pair[1])
        ),
        None => {
            // PyTorch names the GPU first.
            let (a, b) = if a.is_cuda() { (a, b) } else { (b, a) };
            format!(
                "Expected all tensors to be on the same device, but found at least two devices, {a} and {b}!"
            )
        }
    };
    let operands = pair.map(|i| Operand::new(called(i), inputs[i]));
    Error::DeviceMismatch(Box::new(DeviceMismatch {
        sentence,
        operation: name,
        place: scope::here(),
        operands,
    }))
}

/// Of operands that are on one device, but for numbers of the host, one that says which device that is.
pub(crate) fn lead<'a>(inputs: &[&'a Tensor]) -> &'a Tensor {
    inputs.iter().find(|input| input.is_cuda()).unwrap_or(&inputs[0])
}

/// A differentiable operation, on operands as autocast leaves them. Its parts run in the types that they get.
#[track_caller]
pub(crate) fn apply<F: Function<N>, const N: usize>(function: F, inputs: [&Tensor; N]) -> Result<Tensor> {
    let _scope = enter(function.name(), function.arguments(), &inputs)?;
    cast_operands(function.name(), &inputs, |inputs| {
        record(function, inputs.try_into().expect("they are as many as before"))
    })
}

/// A differentiable operation of the user's own: autocast sees the operations that it is made of.
#[track_caller]
pub(crate) fn apply_custom<F: Function<N>, const N: usize>(
    function: F,
    inputs: [&Tensor; N],
) -> Result<Tensor> {
    let _scope = enter(function.name(), function.arguments(), &inputs)?;
    record(function, inputs)
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
        let old = shape::copy_of(target)?;
        old.set_history(target.history());
        let new = out_of_place(&old)?;
        shape::write(target, &new.detach().to(target.dtype())?)?;
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
