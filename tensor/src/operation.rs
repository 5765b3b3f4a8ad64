//! The properties an operation has on every device, declared once, as data:
//!
//! ```text
//! operations! {
//!     DOT: Operation::new("dot").node("DotBackward0").arguments("wrapper_CUDA__dot", &["self", "tensor"]);
//!     SUM: Operation::new("sum").node("SumBackward0").autocast_on_cuda(CastPolicy::Fp32);
//! }
//! ```
//!
//! Operations with the same name are PyTorch's overloads: `sum` over all elements, and `sum` over some dimensions.

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

/// The check that an operation's operands are on one device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Devices {
    /// All operands in one element-wise iteration: a 0-dim tensor on the host may join any device.
    Together,
    /// Each argument by name, as in PyTorch.
    Named(ArgumentNames),
    /// By the operations inside, with their own messages.
    ByParts,
}

/// PyTorch's argument names for a check by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgumentNames {
    /// `wrapper_CUDA_addmm`
    pub(crate) method: &'static str,
    pub(crate) names: &'static [&'static str],
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
}

/// Declares operations and `OPERATIONS`, the list of them.
macro_rules! operations {
    ($($(#[$meta:meta])* $vis:vis $NAME:ident: $operation:expr;)+) => {
        $($(#[$meta])* $vis static $NAME: $crate::operation::Operation = $operation;)+

        pub(in crate::ops) const OPERATIONS: &[&$crate::operation::Operation] = &[$(&$NAME),+];
    };
}

pub(crate) use operations;
