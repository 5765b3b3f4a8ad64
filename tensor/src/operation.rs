//! What holds for an operation wherever it runs. It is declared once, as data:
//!
//! ```text
//! operations! {
//!     DOT: Operation::new("dot").node("DotBackward0").arguments("wrapper_CUDA__dot", &["self", "tensor"]);
//!     SUM: Operation::new("sum").node("SumBackward0").autocast_on_cuda(Cast::Fp32);
//! }
//! ```
//!
//! Two with one name are what PyTorch calls overloads: `sum` of all elements, and `sum` over some dimensions.

/// An operation: what PyTorch calls it, and what is done wherever it is called.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// PyTorch's name ("mul"), for errors and traces.
    pub name: &'static str,
    /// The name that its node in a graph prints under, as in `grad_fn=<MulBackward0>`.
    pub node: Option<&'static str>,
    /// What autocast does with its operands on the CPU, and on CUDA devices.
    #[doc(hidden)]
    pub casts: [Cast; 2],
    pub(crate) devices: Devices,
    /// It is made of others, and what the host spends on it is what it spends on them.
    pub(crate) is_composite: bool,
}

/// How an operation sees to it that its operands are on one device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Devices {
    /// The elements of all are walked together, and a number of the host may join any device.
    Together,
    /// Each is an argument with a name.
    Named(Arguments),
    /// The operations that it is made of check theirs, in their own words.
    ByParts,
}

/// What PyTorch calls the arguments of an operation that checks their devices one by one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments {
    /// `wrapper_CUDA_addmm`
    pub(crate) method: &'static str,
    /// The names of the tensors, in order.
    pub(crate) names: &'static [&'static str],
}

/// What autocast does with the operands of an operation: the list of PyTorch's that it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// They stay as they are.
    AsGiven,
    /// They are cast to the type of the region: products, which 16 bits make faster and hardly worse.
    LowerPrecision,
    /// They are cast to f32: what grows, cancels or sums up.
    Fp32,
    /// They are cast to the widest of them, be it f32.
    Promote,
}

impl Operation {
    /// One that nothing is known of but its name.
    pub const fn new(name: &'static str) -> Operation {
        let casts = [Cast::AsGiven; 2];
        Operation { name, node: None, devices: Devices::Together, is_composite: false, casts }
    }

    /// It has a gradient, and its node in a graph prints under this name. Without one it prints under the operation's.
    pub const fn node(self, name: &'static str) -> Operation {
        Operation { node: Some(name), ..self }
    }

    /// What PyTorch calls the operation and its tensors where it checks their devices one by one: `wrapper_CUDA_addmm`.
    /// Where nothing is said the elements of all are walked together, and a 0-dim tensor of the host may join.
    pub const fn arguments(self, method: &'static str, names: &'static [&'static str]) -> Operation {
        Operation { devices: Devices::Named(Arguments { method, names }), ..self }
    }

    /// It is made of other operations.
    pub(crate) const fn composite(self) -> Operation {
        Operation { devices: Devices::ByParts, is_composite: true, ..self }
    }

    /// It is made of others, but looks at the devices of its operands first.
    pub(crate) const fn composite_together(self) -> Operation {
        Operation { devices: Devices::Together, ..self.composite() }
    }

    /// What autocast does with its operands, on every device.
    pub(crate) const fn autocast(self, cast: Cast) -> Operation {
        Operation { casts: [cast; 2], ..self }
    }

    pub(crate) const fn autocast_on_cpu(self, cast: Cast) -> Operation {
        Operation { casts: [cast, self.casts[1]], ..self }
    }

    pub(crate) const fn autocast_on_cuda(self, cast: Cast) -> Operation {
        Operation { casts: [self.casts[0], cast], ..self }
    }

    /// What its node in a graph prints under.
    pub(crate) fn node_name(&self) -> &'static str {
        self.node.unwrap_or(self.name)
    }
}

/// Declares operations, and `OPERATIONS`, the list of them.
macro_rules! operations {
    ($($(#[$meta:meta])* $vis:vis $NAME:ident: $operation:expr;)+) => {
        $($(#[$meta])* $vis static $NAME: $crate::operation::Operation = $operation;)+

        pub(in crate::ops) const OPERATIONS: &[&$crate::operation::Operation] = &[$(&$NAME),+];
    };
}

pub(crate) use operations;
