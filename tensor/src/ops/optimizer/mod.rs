//! One step of an optimizer on one parameter, in one pass over its memory.
//!
//! The arithmetic is PyTorch's to the bit: where its vectorised kernels fuse a multiply and an add, so do
//! these, and options given as doubles are rounded to the tensor's type once.

mod kernels;

pub(in crate::ops) use kernels::ROWS;

use smallvec::SmallVec;

use crate::autograd::error::AutogradError;
use crate::error::Result;
use crate::error::dtype::DTypeError;
use crate::ops::plain;
use crate::ops::plain::dense;
use crate::ops::{self, Operation, mismatch, operations};
use crate::tensor::Tensor;

operations! {
    ADAM: Operation::new("_fused_adam_");
    SGD: Operation::new("_fused_sgd_");
}

/// What one step of Adam is, its options folded into the factors that the formula needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamStep {
    pub(crate) beta1: f64,
    pub(crate) beta2: f64,
    pub(crate) eps: f64,
    /// Added to the gradient as `weight_decay · p` (Adam).
    pub(crate) weight_decay: f64,
    /// What the parameter is multiplied by first: `1 − lr · weight_decay` in AdamW, 1 in Adam.
    pub(crate) shrink: f64,
    /// `lr / (1 − β₁ᵗ)`
    pub(crate) step_size: f64,
    /// `√(1 − β₂ᵗ)`
    pub(crate) bias_correction2_sqrt: f64,
}

/// Updates a parameter and its two moments.
pub(crate) fn adam(
    parameter: &Tensor,
    grad: &Tensor,
    exp_avg: &Tensor,
    exp_avg_sq: &Tensor,
    step: AdamStep,
) -> Result<()> {
    ops::call(&ADAM, &[parameter, grad, exp_avg, exp_avg_sq], |_| {
        check_alike(parameter, [grad, exp_avg, exp_avg_sq])?;
        kernels::adam(parameter, &readable(grad, parameter)?, exp_avg, exp_avg_sq, step)?;
        for written in [parameter, exp_avg, exp_avg_sq] {
            written.storage().bump_version();
        }
        Ok(())
    })
}

/// What one step of SGD is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SgdStep {
    pub(crate) lr: f64,
    pub(crate) momentum: f64,
    pub(crate) dampening: f64,
    pub(crate) weight_decay: f64,
    pub(crate) nesterov: bool,
    pub(crate) maximize: bool,
}

/// Updates a parameter and, with momentum, its buffer; returns the buffer when it was made just now.
pub(crate) fn sgd(
    parameter: &Tensor,
    grad: &Tensor,
    momentum_buffer: Option<&Tensor>,
    step: SgdStep,
) -> Result<Option<Tensor>> {
    let operands: SmallVec<[&Tensor; 3]> = [parameter, grad].into_iter().chain(momentum_buffer).collect();
    ops::call(&SGD, &operands, |_| {
        check_alike(parameter, [grad].into_iter().chain(momentum_buffer))?;
        let grad = readable(grad, parameter)?;
        let made = match momentum_buffer {
            None if step.momentum != 0.0 => {
                // The first step's buffer is the gradient itself, decayed but not dampened.
                let buffer = plain::copy_of(&grad)?;
                kernels::sgd_first(parameter, &grad, &buffer, step)?;
                Some(buffer)
            }
            Some(buffer) => {
                kernels::sgd_momentum(parameter, &grad, buffer, step)?;
                buffer.storage().bump_version();
                None
            }
            None => {
                kernels::sgd_plain(parameter, &grad, step)?;
                None
            }
        };
        parameter.storage().bump_version();
        Ok(made)
    })
}

/// A kernel walks parameter, gradient and state together, so they must be of one type and size.
fn check_alike<'a>(parameter: &Tensor, others: impl IntoIterator<Item = &'a Tensor>) -> Result<()> {
    for other in others {
        // A number too: it is written to, not only read.
        if other.device() != parameter.device() {
            return Err(mismatch("step", None, &[parameter, other], [0, 1]));
        }
        if other.dtype() != parameter.dtype() {
            return Err(DTypeError::Expected { expected: parameter.dtype(), got: other.dtype() }.into());
        }
        if other.sizes() != parameter.sizes() {
            let (grad, tensor) = (other.sizes().to_vec(), parameter.sizes().to_vec());
            return Err(AutogradError::AssignGradient { grad, tensor }.into());
        }
    }
    Ok(())
}

/// The gradient as the kernel wants it: contiguous, and in memory of its own.
fn readable(grad: &Tensor, parameter: &Tensor) -> Result<Tensor> {
    if grad.shares_storage(parameter) { plain::copy_of(grad) } else { dense(&grad.detach()) }
}
