//! The single entry point: every operation calls [`enter`], whichever function of `ops/mod.rs` it begins in.
//! Checks and bookkeeping that apply to all operations are done here and nowhere else. Calls that only create or
//! read a tensor enter through [`enter_uncharged`], the first half of [`enter`].
//!
//! Not here: the text of the golden rule's error, in `mismatch.rs`. Next in the spine: `ops/elementwise/unary.rs`.

use std::panic::Location;

use crate::error::Result;
use crate::error::tensor::TensorError;
use crate::host_context::HostContext;
use crate::mismatch::mismatch;
use crate::operation::{ArgumentNames, Devices, Operation};
use crate::scope::{self, Leave};
use crate::tensor::Tensor;

/// The single entry point: does what every operation needs, whatever it computes. The operation lasts as long as the
/// guard.
#[track_caller]
// ANCHOR: enter
pub(crate) fn enter(operation: &'static Operation, inputs: &[&Tensor]) -> Result<Leave> {
    let leave = enter_uncharged(operation.name)?;
    if !operation.is_composite {
        HostContext::spend(|host| &host.dispatch);
    }
    operation.check_devices(inputs)?;
    Ok(leave)
}
// ANCHOR_END: enter

/// The part of [`enter`] for calls that only create or read a tensor (`empty`, `tensor`, `tolist`, `item`). They count
/// toward the machine's operation limit, so that a loop of such calls also ends. Unlike [`enter`], it charges no
/// dispatch (PyTorch's time to find and call a kernel): the modelled host time of these calls covers only the copying
/// of values. Charging a dispatch as well would change all times that labs and exercises show.
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
            // Each of the operations it consists of makes its own check.
            Devices::ByParts => Ok(()),
        }
    }
}

/// The golden rule: all tensors of an operation must be on one device.
///
/// In an operation that PyTorch runs through `TensorIterator`, a number (a 0-dim tensor) on the host may join any
/// device. Everywhere else each argument is checked by name.
#[track_caller]
// ANCHOR: golden_rule
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
// ANCHOR_END: golden_rule

/// Whether a tensor may join tensors on any device: a 0-dim tensor on the host counts as a plain number.
fn is_host_number(tensor: &Tensor) -> bool {
    tensor.ndim() == 0 && !tensor.is_cuda()
}

/// The operand that decides where the operation runs: the first on a GPU, else the first.
pub(crate) fn deciding_operand<'a>(inputs: &[&'a Tensor]) -> &'a Tensor {
    inputs.iter().find(|input| input.is_cuda()).unwrap_or(&inputs[0])
}
