//! The choke point: every operation enters through [`enter`], whichever function of `ops/mod.rs` it is called by.
//! Checks and bookkeeping that apply to all operations are done here and nowhere else. Calls that only create or
//! read a tensor enter through [`enter_uncharged`], the first half of [`enter`].

use std::panic::Location;

use crate::device::Device;
use crate::error::tensor::TensorError;
use crate::error::{DeviceMismatch, Error, GpuError, MismatchedTensor, Result};
use crate::host_context::HostContext;
use crate::moves;
use crate::operation::{ArgumentNames, Devices, Operation};
use crate::scope::{self, Leave};
use crate::tensor::Tensor;

/// The choke point: does what every operation needs, whatever it computes. The operation lasts as long as the
/// guard.
#[track_caller]
pub(crate) fn enter(operation: &'static Operation, inputs: &[&Tensor]) -> Result<Leave> {
    let leave = enter_uncharged(operation.name)?;
    if !operation.is_composite {
        HostContext::spend(|host| &host.dispatch);
    }
    operation.check_devices(inputs)?;
    Ok(leave)
}

/// The part of [`enter`] for calls that only create or read a tensor (`empty`, `tensor`, `tolist`, `item`). They
/// count toward the machine's operation limit, so that a loop of such calls also ends. Unlike [`enter`], it charges
/// no dispatch: the modelled host time of these calls is that of the values they copy. Charging a dispatch as well
/// would change all times that labs and exercises show.
#[track_caller]
#[inline(never)] // Inlined, it would be duplicated in `to_vec` for each type.
pub(crate) fn enter_uncharged(name: &'static str) -> Result<Leave> {
    let leave = scope::operation(name, Location::caller());
    match HostContext::count_operation() {
        true => Ok(leave),
        false => Err(TensorError::NoMoreOperations { operation: name }.into()),
    }
}

impl Operation {
    #[track_caller]
    pub(crate) fn check_devices(&self, inputs: &[&Tensor]) -> Result<()> {
        match self.devices {
            Devices::Together => same_device(self.name, None, inputs),
            Devices::Named(arguments) => same_device(self.name, Some(arguments), inputs),
            Devices::ByParts => Ok(()),
        }
    }
}

/// The golden rule: all tensors of an operation must be on one device.
///
/// Where PyTorch iterates over the elements of all tensors together, a number (a 0-dim tensor) on the host may join
/// any device. Everywhere else each argument is checked by name.
#[track_caller]
pub(crate) fn same_device(
    name: &'static str,
    arguments: Option<ArgumentNames>,
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

/// Whether a tensor may join tensors on any device: a 0-dim tensor on the host is as good as a number.
fn is_host_number(tensor: &Tensor) -> bool {
    tensor.ndim() == 0 && !tensor.is_cuda()
}

#[cold]
pub(crate) fn mismatch(
    name: &'static str,
    arguments: Option<ArgumentNames>,
    inputs: &[&Tensor],
    pair: [usize; 2],
) -> Error {
    let [a, b] = pair.map(|i| inputs[i].device());
    // Two machines may each have a device of the same name: "cuda:0 and cuda:0" would explain nothing.
    if let (Device::Cuda { machine, .. }, Device::Cuda { machine: other, .. }) = (a, b)
        && machine != other
    {
        let here = other == HostContext::current_id();
        return GpuError::OtherMachine { device: if here { a } else { b } }.into();
    }
    let called = |i: usize| match arguments {
        Some(ArgumentNames { names, .. }) => names[i.min(names.len() - 1)].to_string(),
        None => ["self", "other"].get(i).map_or(format!("argument {i}"), |name| name.to_string()),
    };
    let sentence = match arguments {
        Some(ArgumentNames { method, .. }) => format!(
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
    let operands = pair.map(|i| operand(called(i), inputs[i]));
    let behind = if b.is_cuda() && !a.is_cuda() { pair[0] } else { pair[1] };
    let unlisted = moves::unlisted(inputs[behind], if behind == pair[0] { b } else { a });
    Error::DeviceMismatch(Box::new(DeviceMismatch {
        sentence,
        operation: name,
        place: scope::here(),
        operands,
        fix: None,
        unlisted,
    }))
}

/// The operand that decides where the operation runs: the first on a GPU, else the first.
pub(crate) fn deciding_operand<'a>(inputs: &[&'a Tensor]) -> &'a Tensor {
    inputs.iter().find(|input| input.is_cuda()).unwrap_or(&inputs[0])
}

/// Describes a tensor that took part, for the report.
fn operand(name: String, tensor: &Tensor) -> MismatchedTensor {
    MismatchedTensor {
        name,
        sizes: tensor.sizes().to_vec(),
        device: tensor.device(),
        made: tensor.place(),
        moved: tensor.moved(),
        learned: tensor.is_leaf() && tensor.requires_grad(),
    }
}
