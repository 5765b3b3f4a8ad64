//! The cross entropy of class probabilities, or of class indices with label smoothing, composed as in PyTorch.

use smallvec::SmallVec;

use super::classification::classes_dim;
use super::error::LossError;
use super::{CrossEntropyOptions, Reduction};
use crate::error::Result;
use crate::error::tensor::TensorError;
use crate::ops::elementwise::div_scalar;
use crate::ops::{self, CastPolicy, Operation, operations};
use crate::tensor::Tensor;

operations! {
    CROSS_ENTROPY_SOFT: Operation::new("cross_entropy").composite().autocast(CastPolicy::Fp32);
}

#[track_caller]
pub(super) fn of_probabilities(
    scores: &Tensor,
    target: &Tensor,
    options: &CrossEntropyOptions,
) -> Result<Tensor> {
    call([scores, target], options, |scores, target, weight| {
        if !target.dtype().is_floating_point() {
            return Err(LossError::Probabilities { got: target.dtype() }.into());
        }
        if options.ignore_index >= 0 {
            return Err(LossError::IgnoredProbabilities.into());
        }
        let dim = classes_dim(scores);
        let Some(&classes) = scores.sizes().get(dim) else {
            return Err(TensorError::NoDimensions { dim: dim as i64 }.into());
        };
        if let Some(weight) = weight.filter(|weight| weight.sizes() != [classes]) {
            return Err(LossError::ProbabilitiesWeight { classes, weight: weight.sizes().to_vec() }.into());
        }
        let log_probs = scores.log_softmax(dim as i64)?;
        let smoothing = options.label_smoothing;
        let mut products = match smoothing > 0.0 {
            true => {
                check_smoothing(smoothing)?;
                log_probs.mul(&target.mul(1.0 - smoothing)?.add(smoothing / classes as f64)?)?
            }
            false => log_probs.mul(target)?,
        };
        if let Some(weight) = weight {
            products = products.mul(&along_classes(weight, scores)?)?;
        }
        match options.reduction {
            Reduction::None => products.sum_dims(&[dim as i64], false)?.neg(),
            Reduction::Sum => products.sum()?.neg(),
            Reduction::Mean if scores.numel() == 0 => products.sum()?.fill_(f64::NAN)?.neg(),
            Reduction::Mean => div_scalar(&products.sum()?.neg()?, (scores.numel() / classes) as i64),
        }
    })
}

#[track_caller]
pub(super) fn smoothed(scores: &Tensor, target: &Tensor, options: &CrossEntropyOptions) -> Result<Tensor> {
    call([scores, target], options, |scores, target, weight| {
        let smoothing = options.label_smoothing;
        check_smoothing(smoothing)?;
        let dim = classes_dim(scores) as i64;
        let log_probs = scores.log_softmax(dim)?;
        let without =
            CrossEntropyOptions { weight: weight.cloned(), label_smoothing: 0.0, ..options.clone() };
        let loss = log_probs.nll_loss((target, without.clone()))?;
        let classes = scores.sizes()[classes_dim(scores)];

        let of_all_classes = match weight {
            Some(weight) => log_probs.mul(&along_classes(weight, scores)?)?,
            None => log_probs,
        };
        let losses = of_all_classes.sum_dims(&[dim], false)?.neg()?;
        let is_ignored = target.eq(options.ignore_index)?;
        losses.masked_fill_(&is_ignored, 0.0)?;
        let of_all_classes = match (options.reduction, weight) {
            (Reduction::None, _) => losses,
            (Reduction::Sum, _) => losses.sum()?,
            (Reduction::Mean, None) => losses.sum()?.div(&is_ignored.logical_not()?.sum()?)?,
            (Reduction::Mean, Some(weight)) => {
                let losses = losses.sum()?;
                let counted = target.masked_select(&is_ignored.logical_not()?)?;
                losses.div(&weight.gather(0, &counted)?.sum()?)?
            }
        };
        loss.mul(1.0 - smoothing)?.add(&of_all_classes.mul(smoothing / classes as f64)?)
    })
}

#[track_caller]
fn call(
    [scores, target]: [&Tensor; 2],
    options: &CrossEntropyOptions,
    loss: impl FnOnce(&Tensor, &Tensor, Option<&Tensor>) -> Result<Tensor>,
) -> Result<Tensor> {
    let operands: SmallVec<[&Tensor; 3]> = [scores, target].into_iter().chain(&options.weight).collect();
    ops::call(&CROSS_ENTROPY_SOFT, &operands, |operands| {
        loss(operands[0], operands[1], operands.get(2).copied())
    })
}

fn along_classes(weight: &Tensor, scores: &Tensor) -> Result<Tensor> {
    let mut sizes = vec![1; scores.ndim()];
    sizes[classes_dim(scores)] = weight.sizes()[0] as i64;
    weight.view(&sizes)
}

fn check_smoothing(smoothing: f64) -> Result<()> {
    match smoothing > 1.0 {
        true => Err(LossError::Smoothing { smoothing }.into()),
        false => Ok(()),
    }
}
