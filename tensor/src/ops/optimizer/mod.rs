//! Optimizer steps on one parameter, in a single pass over memory. They match PyTorch bit for bit: they fuse exactly
//! where its vectorised kernels do, and round f64 options once to the tensor's dtype.

mod kernels;

pub(in crate::ops) use kernels::ROWS;

use smallvec::SmallVec;

use crate::autograd::error::AutogradError;
use crate::dtype::{DType, Memory, with_dtype};
use crate::error::{DTypeError, Error, Result};
use crate::ops::access::access;
use crate::ops::{self, Operation, mismatch, operations};
use crate::tensor::Tensor;

operations! {
    static ADAM: Operation = Operation::new("_fused_adam_");
    static SGD: Operation = Operation::new("_fused_sgd_");
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamStep {
    pub(crate) beta1: f64,
    pub(crate) beta2: f64,
    pub(crate) eps: f64,
    /// Added to the gradient as `weight_decay · p` (Adam only).
    pub(crate) weight_decay: f64,
    /// Multiplies the parameter first: `1 − lr · weight_decay` in AdamW, 1 in Adam.
    pub(crate) shrink: f64,
    /// `lr / (1 − β₁ᵗ)`
    pub(crate) step_size: f64,
    /// `√(1 − β₂ᵗ)`
    pub(crate) bias_correction2_sqrt: f64,
}

pub(crate) fn adam(
    parameter: &Tensor,
    grad: &Tensor,
    exp_avg: &Tensor,
    exp_avg_sq: &Tensor,
    step: AdamStep,
) -> Result<()> {
    ops::call(&ADAM, &[parameter, grad, exp_avg, exp_avg_sq], |_| {
        kernels::adam(parameter, grad, exp_avg, exp_avg_sq, step)?;
        for written in [parameter, exp_avg, exp_avg_sq] {
            written.storage().bump_version();
        }
        Ok(())
    })
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SgdStep {
    pub(crate) lr: f64,
    pub(crate) momentum: f64,
    pub(crate) dampening: f64,
    pub(crate) weight_decay: f64,
    pub(crate) nesterov: bool,
    pub(crate) maximize: bool,
}

pub(crate) fn sgd(
    parameter: &Tensor,
    grad: &Tensor,
    momentum_buffer: Option<&Tensor>,
    is_first: bool,
    step: SgdStep,
) -> Result<()> {
    let operands: SmallVec<[&Tensor; 3]> = [parameter, grad].into_iter().chain(momentum_buffer).collect();
    ops::call(&SGD, &operands, |_| {
        match momentum_buffer {
            None => kernels::sgd_plain(parameter, grad, step)?,
            // The first step sets the buffer to the decayed gradient, without dampening.
            Some(buffer) if is_first => kernels::sgd_first(parameter, grad, buffer, step)?,
            Some(buffer) => kernels::sgd_momentum(parameter, grad, buffer, step)?,
        }
        for written in [parameter].into_iter().chain(momentum_buffer) {
            written.storage().bump_version();
        }
        Ok(())
    })
}

/// Returns a step count of 0: an f32 on the host wherever the parameter is, as in PyTorch.
pub(crate) fn no_steps() -> Result<Tensor> {
    let step = Tensor::uninit(&[], DType::F32)?;
    count_step(&step, 0.0)?;
    Ok(step)
}

/// Sets the step count to `taken`, in its dtype. On a device, adds 1 with a kernel.
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

/// Refuses a bool step count, because 1 cannot be added to it.
pub(crate) fn check_counts(step: &Tensor) -> Result<()> {
    match step.dtype() {
        DType::Bool => Err(DTypeError::InPlaceCast { result: DType::I64, output: DType::Bool }.into()),
        _ => Ok(()),
    }
}

/// Checks that gradient and state match the parameter, because a kernel walks through all of them together.
pub(crate) fn check_alike<'a>(
    parameter: &Tensor,
    others: impl IntoIterator<Item = (&'static str, &'a Tensor)>,
) -> Result<()> {
    for (name, other) in others {
        // A 0-dim tensor must be on the parameter's device, too, because it is written to.
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

/// GPU0001, naming the tensor on another device than the parameter.
fn elsewhere(parameter: &Tensor, name: &'static str, other: &Tensor) -> Error {
    let mut error = mismatch("step", None, &[parameter, other], [0, 1]);
    if let Error::DeviceMismatch(mismatch) = &mut error {
        let [parameter, other] = &mut mismatch.operands;
        parameter.name = "parameter".to_owned();
        other.name = name.to_owned();
        mismatch.fix = Some(match name {
            "grad" => {
                "the model was moved after its forward pass: clear the gradients with `zero_grad()`, and call forward again"
            }
            _ => {
                "move the optimizer's state to its parameters with `optim::optimizer_to(&mut optimizer, device)?`"
            }
        });
    }
    error
}
