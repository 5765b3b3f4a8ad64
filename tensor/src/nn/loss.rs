//! Losses as objects that keep their options.

use crate::error::Result;
use crate::ops::loss::{CrossEntropyOptions, Reduction};
use crate::tensor::Tensor;

/// The mean squared error (`torch.nn.MSELoss`).
#[derive(Clone, Copy, Debug, Default)]
pub struct MSELoss {
    /// What is done with the losses of the single elements.
    pub reduction: Reduction,
}

impl MSELoss {
    /// `input` and `target` of the same shape.
    #[track_caller]
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        input.mse_loss(target, self.reduction)
    }
}

/// The mean absolute error (`torch.nn.L1Loss`).
#[derive(Clone, Copy, Debug, Default)]
pub struct L1Loss {
    /// What is done with the losses of the single elements.
    pub reduction: Reduction,
}

impl L1Loss {
    /// `input` and `target` of the same shape.
    #[track_caller]
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        input.l1_loss(target, self.reduction)
    }
}

/// Cross entropy between scores and class indices or class probabilities (`torch.nn.CrossEntropyLoss`).
#[derive(Clone, Debug, Default)]
pub struct CrossEntropyLoss {
    /// Class weights, the index to ignore, the reduction, label smoothing.
    pub options: CrossEntropyOptions,
}

impl CrossEntropyLoss {
    /// `input` holds scores, (n, classes); `target` class indices, (n), or class probabilities, (n, classes).
    #[track_caller]
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        input.cross_entropy(target, &self.options)
    }
}

/// The negative log likelihood (`torch.nn.NLLLoss`).
#[derive(Clone, Debug, Default)]
pub struct NLLLoss {
    /// Class weights, the index to ignore, the reduction.
    pub options: CrossEntropyOptions,
}

impl NLLLoss {
    /// `input` holds log-probabilities, (n, classes); `target` class indices, (n).
    #[track_caller]
    pub fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        input.nll_loss(target, &self.options)
    }
}
