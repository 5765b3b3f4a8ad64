//! Where operations begin. There is one folder per family: its `mod.rs` holds an operation's checks, its computation
//! and its gradient; its `kernels.rs` declares the kernels for the host and for devices (see `row.rs`), unless they
//! stand beside the operation. Their CUDA C++ is in `kernels/`, in the file named after the family.
//!
//! An operation begins in one of three functions: [`call`], [`apply`] if it has a gradient, and [`update`] if it
//! writes to a tensor. Each of them calls [`enter`]. A user's own function goes through a fourth, [`Function::apply`],
//! which also enters but deliberately skips autocast: as in PyTorch, it receives its inputs in their own dtypes, and
//! autocast applies to the operations that its forward pass calls.
//!
//! Not here: the operations themselves; `x.matmul(&w)` is in `matmul/`, and the writes are in `update.rs`. Next in the
//! spine: `enter.rs`.

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
mod update;
pub(crate) mod values;

use crate::amp::Operands;
use crate::autograd::{Function, record};
use crate::enter::enter;
pub(crate) use crate::enter::{deciding_operand, same_device};
use crate::error::Result;
pub(crate) use crate::mismatch::mismatch;
pub(crate) use crate::operation::{ArgumentNames, CastPolicy, Operation, operations};
use crate::tensor::Tensor;
pub(crate) use update::{NewValues, refused, update};

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
