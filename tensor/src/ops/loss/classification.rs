//! Losses between scores for classes and the right class.

use std::panic::Location;

use super::{Reduction, kernels};
use crate::autograd::{Context, Function, Saved};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{self, scope};
use crate::shape::signed;
use crate::tensor::Tensor;

/// The keyword arguments of `cross_entropy` and `nll_loss`.
#[derive(Clone, Debug)]
pub struct CrossEntropyOptions {
    /// A weight for each class, of shape (classes).
    pub weight: Option<Tensor>,
    /// Samples with this target count for nothing.
    pub ignore_index: i64,
    /// What is done with the losses of the single samples.
    pub reduction: Reduction,
}

impl Default for CrossEntropyOptions {
    fn default() -> CrossEntropyOptions {
        CrossEntropyOptions { weight: None, ignore_index: -100, reduction: Reduction::Mean }
    }
}

impl Tensor {
    /// How surprised a classifier is by the right classes: `−log softmax(self)[target]`
    /// (`torch.nn.functional.cross_entropy`).
    ///
    /// `self` holds scores (logits), not probabilities: (classes), (n, classes) or (n, classes, …);
    /// `target` holds class indices as i64, in the same shape without the classes.
    #[track_caller]
    pub fn cross_entropy(&self, target: &Tensor, options: &CrossEntropyOptions) -> Result<Tensor> {
        let _scope = scope::operation("cross_entropy", Location::caller());
        // Before the scores become probabilities, which the user has never seen.
        let operands: Vec<&Tensor> = [self, target].into_iter().chain(&options.weight).collect();
        ops::same_device("cross_entropy", Some(ARGUMENTS), &operands)?;
        let classes_dim = if self.ndim() == 1 { 0 } else { 1 };
        self.log_softmax(classes_dim)?.nll_loss(target, options)
    }

    /// The negative log likelihood of the right classes, from log-probabilities
    /// (`torch.nn.functional.nll_loss`).
    ///
    /// The mean is weighted: divided by the sum of the weights of the targets.
    #[track_caller]
    pub fn nll_loss(&self, target: &Tensor, options: &CrossEntropyOptions) -> Result<Tensor> {
        let _scope = scope::operation("nll_loss", Location::caller());
        if self.ndim() == 0 {
            return Err(Error::LossInput);
        }
        if target.dtype() != DType::I64 {
            return Err(Error::ExpectedDType { expected: DType::I64, got: target.dtype() });
        }
        if let Some(weight) = &options.weight {
            ops::same_device("nll_loss", Some(ARGUMENTS), &[self, target, weight])?;
        }
        let classes = self.sizes()[if self.ndim() == 1 { 0 } else { 1 }];
        if let Some(weight) = &options.weight {
            if weight.sizes() != [classes] {
                return Err(Error::LossWeight { classes, weight: weight.sizes().to_vec() });
            }
            if weight.dtype() != self.dtype() {
                return Err(Error::ExpectedDType { expected: self.dtype(), got: weight.dtype() });
            }
        }
        let expected: Vec<usize> = match self.ndim() {
            1 => vec![],
            _ => [&self.sizes()[..1], &self.sizes()[2..]].concat(),
        };
        if self.ndim() > 1 && target.ndim() > 0 && target.sizes()[0] != expected[0] {
            return Err(Error::LossBatch { input: expected[0], target: target.sizes()[0] });
        }
        if target.sizes() != expected {
            return Err(Error::LossTargetSize { expected, got: target.sizes().to_vec() });
        }
        // One sample per row, whatever the shape was: the classes move last, all else keeps its order.
        let rows = match self.ndim() {
            1 => self.unsqueeze(0)?,
            2 => self.clone(),
            ndim => {
                let dims: Vec<i64> = [0].into_iter().chain(2..ndim as i64).chain([1]).collect();
                self.permute(&dims)?.reshape(&[target.numel() as i64, classes as i64])?
            }
        };
        let losses = ops::apply(NllLoss { options: options.clone() }, [&rows, &target.reshape(&[-1])?])?;
        match options.reduction {
            Reduction::None => losses.reshape(&signed(&expected)),
            _ => Ok(losses),
        }
    }
}

const ARGUMENTS: ops::Arguments =
    ops::Arguments { method: "wrapper_CUDA_nll_loss_forward", names: &["self", "target", "weight"] };

struct NllLoss {
    options: CrossEntropyOptions,
}

impl Function<2> for NllLoss {
    fn name(&self) -> &'static str {
        "nll_loss"
    }

    fn backward_name(&self) -> &'static str {
        "NllLossBackward0"
    }

    fn arguments(&self) -> Option<ops::Arguments> {
        Some(ARGUMENTS)
    }

    fn forward(&self, ctx: &mut Context<2>, [log_probs, target]: [&Tensor; 2]) -> Result<Tensor> {
        if let Some(weight) = &self.options.weight {
            ops::same_device(self.name(), self.arguments(), &[log_probs, target, weight])?;
        }
        ctx.save_for_backward([Some(target), self.options.weight.as_ref()]);
        let rows = log_probs.sizes()[0];
        let sizes: &[usize] = if self.options.reduction == Reduction::None { &[rows] } else { &[] };
        let out = log_probs.uninit_beside(sizes, log_probs.dtype())?;
        kernels::nll_loss(log_probs, target, &self.options, &out)?;
        Ok(out)
    }

    /// Only the log-probability of the right class counts: its gradient is minus the class's weight.
    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        // The weights are at hand, but must be those of the forward pass.
        let [target, _] = saved.optional_tensors()?;
        let target = target.expect("it was saved");
        let grad_x = ops::call("nll_loss_backward", [grad, &target], || {
            let grad_x = grad.filled_like(saved.input_sizes(0), 0)?;
            kernels::nll_loss_backward(grad, &target, &self.options, &grad_x)?;
            Ok(grad_x)
        })?;
        Ok([Some(grad_x), None])
    }
}
