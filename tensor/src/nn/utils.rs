//! `torch.nn.utils`: clipping gradients.

use std::panic::Location;

use super::error::ModuleError;
use super::parameter::Parameter;
use crate::autograd::no_grad;
use crate::error::Result;
use crate::scope;
use crate::tensor::Tensor;

/// The keyword arguments of [`clip_grad_norm_`].
#[derive(Clone, Copy, Debug)]
pub struct ClipGradNormOptions {
    /// The norm: 2 for the Euclidean one, infinity for the largest absolute value, minus infinity for the smallest.
    pub norm_type: f64,
    /// Whether an infinite or NaN norm is an error.
    pub error_if_nonfinite: bool,
}

impl Default for ClipGradNormOptions {
    fn default() -> ClipGradNormOptions {
        ClipGradNormOptions { norm_type: 2.0, error_if_nonfinite: false }
    }
}

/// Scales all gradients so that their total norm, as of one vector, is at most `max_norm`
/// (`torch.nn.utils.clip_grad_norm_`). Returns the norm before clipping.
#[track_caller]
pub fn clip_grad_norm_(
    parameters: &[Parameter],
    max_norm: f64,
    options: ClipGradNormOptions,
) -> Result<Tensor> {
    let _scope = scope::operation("clip_grad_norm_", Location::caller());
    no_grad(|| {
        let grads: Vec<Tensor> = parameters.iter().filter_map(Parameter::grad).collect();
        if grads.is_empty() {
            return Tensor::zeros(&[]);
        }
        // A model may span several devices. The device of the first gradient computes the total.
        let device = grads[0].device();
        let norms: Vec<Tensor> =
            grads.iter().map(|grad| norm(grad, options.norm_type)?.to(device)).collect::<Result<_>>()?;
        let total = norm(&Tensor::stack(&norms, 0)?, options.norm_type)?;
        if options.error_if_nonfinite && !total.item()?.is_finite() {
            return Err(ModuleError::NonFiniteNorm { norm_type: options.norm_type }.into());
        }
        // Multiplies by 1, too, so that the host need not wait for the norm.
        let factor = (max_norm / total.add(1e-6)?)?.clamp(None, 1.0)?;
        for grad in &grads {
            grad.mul_(&factor.to(grad.device())?)?;
        }
        Ok(total)
    })
}

/// Computes the p-norm of all elements (`torch.linalg.vector_norm`). 0 counts the nonzero ones, −∞ takes the smallest.
fn norm(x: &Tensor, p: f64) -> Result<Tensor> {
    match p {
        p if x.numel() == 0 && (p < 0.0 || p.is_infinite()) => Err(ModuleError::NormOfNothing { p }.into()),
        2.0 => x.norm(),
        0.0 => x.ne(0.0)?.to(x.dtype())?.sum(),
        f64::INFINITY => x.abs()?.max(),
        f64::NEG_INFINITY => x.abs()?.min(),
        p => x.abs()?.pow(p)?.sum()?.pow(1.0 / p),
    }
}
