//! The properties an operation has on every device, declared once, as data; and [`enter`], the single entry point.
//!
//! ```text
//! operations! {
//!     static DOT: Operation =
//!         Operation::new("dot").node("DotBackward0").arguments("wrapper_CUDA__dot", &["self", "tensor"]);
//!     static SUM: Operation = Operation::new("sum").node("SumBackward0").autocast_on_cuda(CastPolicy::Fp32);
//! }
//! ```
//!
//! Operations with the same name are PyTorch's overloads: `sum` over all elements, and `sum` over some dimensions.
//!
//! Every operation calls [`enter`], whichever function of `ops/mod.rs` it begins in. Checks and bookkeeping that apply
//! to all operations are done here and nowhere else: among them the golden rule, [`same_device`]. Calls that only
//! create or read a tensor enter through [`enter_uncharged`], the first half of [`enter`].
//!
//! Not here: the text of the golden rule's error, in `mismatch.rs`. Next in the spine: `ops/elementwise/unary.rs`.

use std::panic::Location;

use crate::error::{Result, TensorError};
use crate::host_context::HostContext;
use crate::mismatch::mismatch;
use crate::scope::{self, Leave};
use crate::tensor::Tensor;

/// An operation: its PyTorch names, and the rules for checking and casting its operands.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// PyTorch's name ("mul"), for errors and traces.
    pub name: &'static str,
    /// The name of its node, as printed in `grad_fn=<MulBackward0>`.
    pub node: Option<&'static str>,
    /// The cast policies on the CPU and on CUDA devices.
    #[doc(hidden)]
    pub casts: [CastPolicy; 2],
    pub(crate) devices: Devices,
    /// Whether it consists of other operations. Its host time is then the sum of theirs.
    pub(crate) is_composite: bool,
}

/// An operation's cast list in PyTorch's autocast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastPolicy {
    /// Operands keep their dtypes.
    AsGiven,
    /// Operands are cast to the region's dtype: for matrix products, which 16 bits make faster at little loss.
    LowerPrecision,
    /// Operands are cast to f32: for operations that grow, cancel or accumulate values.
    Fp32,
    /// Operands are cast to their widest dtype.
    Promote,
}

/// The check that an operation's operands are on one device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Devices {
    /// All operands in one element-wise iteration: a 0-dim tensor on the host may join any device.
    Together,
    /// Each argument by name, as in PyTorch.
    Named(ArgumentNames),
    /// Left to the operations inside, with their own messages.
    ByParts,
}

/// PyTorch's argument names for a check by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgumentNames {
    /// `wrapper_CUDA_addmm`
    pub(crate) method: &'static str,
    pub(crate) names: &'static [&'static str],
}

impl Operation {
    /// Creates an operation with a name and defaults.
    pub const fn new(name: &'static str) -> Operation {
        let casts = [CastPolicy::AsGiven; 2];
        Operation { name, node: None, devices: Devices::Together, is_composite: false, casts }
    }

    /// Sets the name of the node of a differentiable operation. Default: the operation's name.
    pub const fn node(self, name: &'static str) -> Operation {
        Operation { node: Some(name), ..self }
    }

    /// Sets PyTorch's names for the method (`wrapper_CUDA_addmm`) and its tensors: their devices are checked by name.
    /// Default: all operands in one iteration, which a 0-dim tensor on the host may join.
    pub const fn arguments(self, method: &'static str, names: &'static [&'static str]) -> Operation {
        Operation { devices: Devices::Named(ArgumentNames { method, names }), ..self }
    }

    /// Marks it as made of other operations, which check their own operands.
    pub(crate) const fn composite(self) -> Operation {
        Operation { devices: Devices::ByParts, is_composite: true, ..self }
    }

    /// Like `composite`, but checks the operands' devices first.
    pub(crate) const fn composite_together(self) -> Operation {
        Operation { devices: Devices::Together, ..self.composite() }
    }

    pub(crate) const fn autocast(self, cast: CastPolicy) -> Operation {
        Operation { casts: [cast; 2], ..self }
    }

    pub(crate) const fn autocast_on_cpu(self, cast: CastPolicy) -> Operation {
        Operation { casts: [cast, self.casts[1]], ..self }
    }

    pub(crate) const fn autocast_on_cuda(self, cast: CastPolicy) -> Operation {
        Operation { casts: [self.casts[0], cast], ..self }
    }

    pub(crate) fn node_name(&self) -> &'static str {
        self.node.unwrap_or(self.name)
    }

    #[track_caller]
    pub(crate) fn check_devices(&self, inputs: &[&Tensor]) -> Result<()> {
        match self.devices {
            Devices::Together => same_device(self.name, None, inputs),
            Devices::Named(arguments) => same_device(self.name, Some(arguments), inputs),
            // The operations inside make their own checks.
            Devices::ByParts => Ok(()),
        }
    }
}

/// The single entry point: performs the steps that all operations share. The operation lasts as long as the guard.
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

/// The operand that decides where the operation runs: the first on a GPU, else the first.
pub(crate) fn deciding_operand<'a>(inputs: &[&'a Tensor]) -> &'a Tensor {
    inputs.iter().find(|input| input.is_cuda()).unwrap_or(&inputs[0])
}

/// Whether a tensor may join tensors on any device: a 0-dim tensor on the host counts as a plain number.
fn is_host_number(tensor: &Tensor) -> bool {
    tensor.ndim() == 0 && !tensor.is_cuda()
}

/// Declares statics, and lists them as the module's `OPERATIONS` for the registry.
macro_rules! operations {
    ($($(#[$meta:meta])* $vis:vis static $NAME:ident: $Operation:ty = $operation:expr;)+) => {
        $($(#[$meta])* $vis static $NAME: $Operation = $operation;)+

        pub(in crate::ops) const OPERATIONS: &[&$crate::operation::Operation] = &[$(&$NAME),+];
    };
}

pub(crate) use operations;
