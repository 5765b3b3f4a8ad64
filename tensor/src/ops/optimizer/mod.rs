//! One step of an optimizer on one parameter, in one pass over its memory.
//!
//! The arithmetic is PyTorch's to the bit: where its vectorised kernels fuse a multiply and an add, so do
//! these, and options given as doubles are rounded to the tensor's type once.

mod kernels;

pub(in crate::ops) use kernels::ROWS;

use smallvec::SmallVec;

use crate::autograd::error::AutogradError;
use crate::dtype::{DType, Memory, with_dtype};
use crate::error::dtype::DTypeError;
use crate::error::{Error, Result};
use crate::ops::access::access;
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

/// Updates a parameter and, with momentum, its buffer, which in the first step becomes the gradient.
pub(crate) fn sgd(
    parameter: &Tensor,
    grad: &Tensor,
    momentum_buffer: Option<&Tensor>,
    is_first: bool,
    step: SgdStep,
) -> Result<()> {
    let operands: SmallVec<[&Tensor; 3]> = [parameter, grad].into_iter().chain(momentum_buffer).collect();
    ops::call(&SGD, &operands, |_| {
        let grad = readable(grad, parameter)?;
        match momentum_buffer {
            None => kernels::sgd_plain(parameter, &grad, step)?,
            // The gradient itself, decayed but not dampened.
            Some(buffer) if is_first => kernels::sgd_first(parameter, &grad, buffer, step)?,
            Some(buffer) => kernels::sgd_momentum(parameter, &grad, buffer, step)?,
        }
        for written in [parameter].into_iter().chain(momentum_buffer) {
            written.storage().bump_version();
        }
        Ok(())
    })
}

/// No steps yet: a number of the host wherever the parameter is, and an f32, as PyTorch keeps it.
pub(crate) fn no_steps() -> Result<Tensor> {
    let step = Tensor::uninit(&[], DType::F32)?;
    count_step(&step, 0.0)?;
    Ok(step)
}

/// Counts the step that is number `taken`, in whatever type somebody gave the count. On a device that takes a kernel.
pub(crate) fn count_step(step: &Tensor, taken: f64) -> Result<()> {
    if step.is_cuda() {
        return step.add_(1).map(drop);
    }
    access([], [step], |[], [out]| {
        with_dtype!(step.dtype(), T => out.elements::<T>()[0] = T::narrow(taken as <T as Memory>::Math));
    })?;
    step.storage().bump_version();
    Ok(())
}

/// A truth is no count: 1 cannot be added to it.
pub(crate) fn check_counts(step: &Tensor) -> Result<()> {
    match step.dtype() {
        DType::Bool => Err(DTypeError::InPlaceCast { result: DType::I64, output: DType::Bool }.into()),
        _ => Ok(()),
    }
}

/// A kernel walks the parameter together with the gradient and what the optimizer keeps, here by PyTorch's names. So they
/// must be of one type and size.
pub(crate) fn check_alike<'a>(
    parameter: &Tensor,
    others: impl IntoIterator<Item = (&'static str, &'a Tensor)>,
) -> Result<()> {
    for (name, other) in others {
        // A number too: it is written to, not only read.
        if other.device() != parameter.device() {
            return Err(elsewhere(parameter, name, other));
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

/// GPU0001, which names what is not where the parameter is.
fn elsewhere(parameter: &Tensor, name: &'static str, other: &Tensor) -> Error {
    let mut error = mismatch("step", None, &[parameter, other], [0, 1]);
    if let Error::DeviceMismatch(mismatch) = &mut error {
        let [parameter, other] = &mut mismatch.operands;
        parameter.name = "parameter".to_owned();
        other.name = name.to_owned();
        mismatch.fix = Some(match name {
            "grad" => {
                "the model was moved after its forward pass, so forget the gradients, `zero_grad()`, and call forward anew"
            }
            _ => {
                "what an optimizer keeps follows its parameter, `optim::optimizer_to(&mut optimizer, device)?`"
            }
        });
    }
    error
}

/// The gradient as the kernel wants it: contiguous, and in memory of its own.
fn readable(grad: &Tensor, parameter: &Tensor) -> Result<Tensor> {
    if grad.shares_storage(parameter) { plain::copy_of(grad) } else { dense(&grad.detach()) }
}
