//! The checks of a classification loss's target and weight, in PyTorch's order and words. PyTorch has one function for
//! samples and one for images, to which it reshapes all else.

use super::classification::classes_dim;
use super::error::LossError;
use crate::autograd::error::AutogradError;
use crate::autograd::is_grad_enabled;
use crate::dtype::DType;
use crate::error::Result;
use crate::error::dtype::{DTypeError, not_implemented};
use crate::error::tensor::TensorError;
use crate::ops::softmax;
use crate::tensor::Tensor;

pub(super) fn check_scores(scores: &Tensor) -> Result<()> {
    let dim = scores.layout().dim(classes_dim(scores) as i64)?;
    softmax::check_scores(scores, dim)
}

pub(super) fn check(scores: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    let ndim = scores.ndim();
    if ndim == 0 {
        return Err(LossError::Input.into());
    }
    let (expected, got) = (sizes(scores), target.sizes().to_vec());
    let batch = got.first().copied().unwrap_or(0);
    if ndim > 1 && expected[0] != batch {
        return Err(LossError::Batch { input: expected[0], target: batch }.into());
    }
    if !matches!(ndim, 1 | 2 | 4) && got != expected {
        return Err(LossError::TargetSize { expected, got }.into());
    }
    let function = if ndim <= 2 { "nll_loss_forward" } else { "nll_loss2d_forward" };
    if is_grad_enabled() && weight.is_some_and(Tensor::requires_grad) {
        return Err(AutogradError::NotDifferentiable { function, argument: "weight" }.into());
    }
    match ndim {
        1 | 2 if got.len() > 1 => return Err(LossError::MultiTarget.into()),
        2 if got.is_empty() => return Err(TensorError::NoDimensions { dim: 0 }.into()), // An empty batch passed the checks so far.
        1 if got.len() == 1 && batch != 1 => return Err(LossError::OneTarget { size: batch }.into()),
        4 if got.len() != 3 => return Err(LossError::SpatialTargets { ndim: got.len() }.into()),
        _ => {}
    }
    let classes = scores.sizes()[classes_dim(scores)];
    match weight {
        Some(weight) if ndim <= 2 && weight.sizes() != [classes] => {
            return Err(LossError::Weight { classes, weight: weight.sizes().to_vec() }.into());
        }
        Some(weight) if weight.numel() != classes => return Err(LossError::SpatialWeight.into()),
        _ => {}
    }
    if ndim == 4 && got != expected {
        return Err(LossError::SpatialSizes { input: scores.sizes().to_vec(), target: got }.into());
    }
    check_types(scores, target, weight)
}

fn check_types(scores: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    let (ndim, dtype) = (scores.ndim(), scores.dtype());
    if !dtype.is_floating_point() {
        let operation = if ndim <= 2 { "nll_loss_out_frame" } else { "nll_loss2d_forward_out_frame" };
        return Err(not_implemented(operation, dtype));
    }
    match (weight.map(Tensor::dtype), target.dtype()) {
        (Some(got), _) if got != dtype => Err(DTypeError::Expected { expected: dtype, got }.into()),
        (_, DType::I64) => Ok(()),
        (_, DType::U8) if ndim <= 2 => Ok(()),
        (_, got) => Err(DTypeError::Expected { expected: DType::I64, got }.into()),
    }
}

fn sizes(scores: &Tensor) -> Vec<usize> {
    match scores.sizes() {
        [batch, _, others @ ..] => [&[*batch], others].concat(),
        _ => vec![],
    }
}
