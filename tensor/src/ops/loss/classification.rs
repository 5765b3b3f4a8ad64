//! Losses of class scores against the correct class.

use smallvec::SmallVec;

use super::error::LossError;
use super::{Reduction, kernels, soft, target};
use crate::autograd::{Context, Function, Saved};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::plain::{contiguous, reshaped};
use crate::ops::{self, CastPolicy, Operation, operations};
use crate::options::{AndOptions, Keywords};
use crate::shape::signed;
use crate::tensor::Tensor;

operations! {
    static NLL_LOSS: Operation = of_classes("nll_loss", true);
    static NLL_LOSS_OF_ROWS: Operation = of_classes("nll_loss", false).node("NllLossBackward0");
    static NLL_LOSS_2D: Operation = of_classes("nll_loss", false).node("NllLoss2DBackward0");
    static NLL_LOSS_BACKWARD: Operation = Operation::new("nll_loss_backward");
    static CROSS_ENTROPY: Operation = of_classes("cross_entropy", true);
    static CROSS_ENTROPY_OF_ROWS: Operation = of_classes("cross_entropy", false).node("NllLossBackward0");
    static CROSS_ENTROPY_2D: Operation = of_classes("cross_entropy", false).node("NllLoss2DBackward0");
    static CROSS_ENTROPY_BACKWARD: Operation = Operation::new("cross_entropy_backward");
}

const fn of_classes(name: &'static str, is_composite: bool) -> Operation {
    let operation = Operation::new(name)
        .arguments("wrapper_CUDA_nll_loss_forward", &["self", "target", "weight"])
        .autocast(CastPolicy::Fp32);
    Operation { is_composite, ..operation }
}

/// The keyword arguments of `cross_entropy` and `nll_loss`.
#[derive(Clone, Debug)]
pub struct CrossEntropyOptions {
    /// A weight for each class, of shape (classes).
    pub weight: Option<Tensor>,
    /// Samples with this target are ignored.
    pub ignore_index: i64,
    /// The reduction of the losses of all samples.
    pub reduction: Reduction,
    /// The fraction of each target's probability that spreads evenly over all classes. Not for `nll_loss`.
    pub label_smoothing: f64,
}

impl Keywords for CrossEntropyOptions {}

impl Default for CrossEntropyOptions {
    fn default() -> CrossEntropyOptions {
        let reduction = Reduction::Mean;
        CrossEntropyOptions { weight: None, ignore_index: -100, reduction, label_smoothing: 0.0 }
    }
}

impl Tensor {
    /// Computes `−log softmax(self)[target]` (`torch.nn.functional.cross_entropy`).
    ///
    /// `self` holds scores (logits) of shape (classes), (n, classes) or (n, classes, …). `target` holds class indices
    /// as i64, in the same shape without the classes, or class probabilities in the same shape:
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let scores = Tensor::new([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])?;
    /// let target = Tensor::new([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])?;
    /// let loss = scores.cross_entropy(&target)?;
    /// assert_eq!(loss.to_string(), "tensor(2.0901)");
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn cross_entropy<'a>(
        &self,
        target: impl AndOptions<&'a Tensor, CrossEntropyOptions>,
    ) -> Result<Tensor> {
        let (target, options) = target.split();
        if target.sizes() == self.sizes() {
            return soft::of_probabilities(self, target, &options);
        }
        if options.label_smoothing > 0.0 {
            return soft::smoothed(self, target, &options);
        }
        over_rows(&CROSS_ENTROPY, [self, target], &options, |scores, rows| {
            target::check_scores(scores)?;
            Ok(CrossEntropy(rows))
        })
    }

    /// Computes the negative log likelihood of the correct classes from log-probabilities
    /// (`torch.nn.functional.nll_loss`). The mean is divided by the sum of the targets' weights.
    #[track_caller]
    pub fn nll_loss<'a>(&self, target: impl AndOptions<&'a Tensor, CrossEntropyOptions>) -> Result<Tensor> {
        let (target, options) = target.split();
        over_rows(&NLL_LOSS, [self, target], &options, |_, rows| match options.label_smoothing {
            0.0 => Ok(NllLoss(rows)),
            _ => Err(LossError::SmoothingOfNllLoss.into()),
        })
    }
}

pub(super) fn classes_dim(scores: &Tensor) -> usize {
    usize::from(scores.ndim() != 1)
}

/// Reshapes scores or log-probabilities to one row per sample, and applies `loss` to them.
#[track_caller]
fn over_rows<F: Function<2>>(
    operation: &'static Operation,
    [scores, target]: [&Tensor; 2],
    options: &CrossEntropyOptions,
    loss: impl FnOnce(&Tensor, LossRows) -> Result<F>,
) -> Result<Tensor> {
    let operands: SmallVec<[&Tensor; 3]> = [scores, target].into_iter().chain(&options.weight).collect();
    ops::call(operation, &operands, |operands| {
        let options = CrossEntropyOptions { weight: operands.get(2).copied().cloned(), ..options.clone() };
        of_rows([operands[0], operands[1]], options, loss)
    })
}

#[track_caller]
fn of_rows<F: Function<2>>(
    [scores, target]: [&Tensor; 2],
    options: CrossEntropyOptions,
    loss: impl FnOnce(&Tensor, LossRows) -> Result<F>,
) -> Result<Tensor> {
    let reduction = options.reduction;
    let weight = options.weight.clone();
    let expected: Vec<usize> = match scores.ndim() {
        0 | 1 => vec![],
        _ => [&scores.sizes()[..1], &scores.sizes()[2..]].concat(),
    };
    // PyTorch has one node for samples and batches and another for images, to which it reshapes all else.
    let as_given = matches!(scores.ndim(), 1 | 2 | 4);
    let sizes = if as_given { expected.clone() } else { vec![target.numel()] };
    let function = loss(scores, LossRows { options, sizes, images: scores.ndim() > 2 })?;
    target::check(scores, target, weight.as_ref())?;
    let classes = scores.sizes()[classes_dim(scores)];
    // The classes move last; the other dimensions keep their order.
    let rows = match scores.ndim() {
        1 => scores.unsqueeze(0)?,
        2 => scores.clone(),
        ndim => {
            let dims: Vec<i64> = [0].into_iter().chain(2..ndim as i64).chain([1]).collect();
            scores.permute(&dims)?.reshape(&[target.numel() as i64, classes as i64])?
        }
    };
    let losses = ops::apply(function, [&rows, &target.reshape(&[-1])?.to(DType::I64)?])?;
    match reduction {
        Reduction::None if !as_given => losses.reshape(&signed(&expected)),
        _ => Ok(losses),
    }
}

struct LossRows {
    options: CrossEntropyOptions,
    sizes: Vec<usize>,
    images: bool,
}

impl LossRows {
    /// Reshapes unreduced losses, or their gradient, to one number per row.
    fn by_row(&self, losses: &Tensor) -> Result<Tensor> {
        match self.options.reduction {
            Reduction::None => Ok(reshaped(&contiguous(losses)?, &[losses.numel()])),
            Reduction::Mean | Reduction::Sum => Ok(losses.clone()),
        }
    }
}

struct NllLoss(LossRows);

impl Function<2> for NllLoss {
    fn operation(&self) -> &'static Operation {
        if self.0.images { &NLL_LOSS_2D } else { &NLL_LOSS_OF_ROWS }
    }

    fn forward(&self, ctx: &mut Context<2>, [log_probs, target]: [&Tensor; 2]) -> Result<Tensor> {
        if let Some(weight) = &self.0.options.weight {
            self.operation().check_devices(&[log_probs, target, weight])?;
        }
        ctx.save_for_backward([Some(target), self.0.options.weight.as_ref()]);
        let sizes: &[usize] = if self.0.options.reduction == Reduction::None { &self.0.sizes } else { &[] };
        let out = log_probs.uninit_beside(sizes, log_probs.dtype())?;
        kernels::nll_loss(log_probs, target, &self.0.options, &self.0.by_row(&out)?)?;
        Ok(out)
    }

    /// The gradient of the correct class's log-probability is minus the class weight.
    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        // The saved weights, unlike those in the options, are checked for changes since the forward pass.
        let [target, _] = saved.optional_tensors()?;
        let target = target.expect("it was saved");
        let grad_x = ops::call(&NLL_LOSS_BACKWARD, &[grad, &target], |_| {
            let grad_x = grad.new_full(saved.input_sizes(0), 0)?;
            kernels::nll_loss_backward(&self.0.by_row(grad)?, &target, &self.0.options, &grad_x)?;
            Ok(grad_x)
        })?;
        Ok([Some(grad_x), None])
    }
}

/// `log_softmax` and the negative log likelihood in one pass over the scores.
struct CrossEntropy(LossRows);

impl Function<2> for CrossEntropy {
    fn operation(&self) -> &'static Operation {
        if self.0.images { &CROSS_ENTROPY_2D } else { &CROSS_ENTROPY_OF_ROWS }
    }

    /// Saves the log-probabilities, as PyTorch does, so the scores may change in place before backward.
    fn forward(&self, ctx: &mut Context<2>, [scores, target]: [&Tensor; 2]) -> Result<Tensor> {
        let beside = |sizes: &[usize]| scores.uninit_beside(sizes, scores.dtype());
        let log_probs = beside(scores.sizes())?;
        let mut saved = [Some(&log_probs), Some(target), self.0.options.weight.as_ref(), None];
        if self.0.options.reduction == Reduction::None {
            let losses = beside(&self.0.sizes)?;
            kernels::cross_entropy(scores, target, &self.0.options, [&log_probs, &self.0.by_row(&losses)?])?;
            ctx.save_for_backward(saved);
            return Ok(losses);
        }
        let losses = beside(&scores.sizes()[..1])?;
        kernels::cross_entropy(scores, target, &self.0.options, [&log_probs, &losses])?;
        let (out, divisor) = (beside(&[])?, scores.uninit_beside(&[], DType::F64)?);
        let classes = scores.sizes()[1];
        kernels::cross_entropy_mean(&losses, target, classes, &self.0.options, [&out, &divisor])?;
        saved[3] = Some(&divisor);
        ctx.save_for_backward(saved);
        Ok(out)
    }

    /// The gradient is the probabilities, minus 1 at the correct class.
    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        // The saved weights, unlike those in the options, are checked for changes since the forward pass.
        let [log_probs, target, _, divisor] = saved.optional_tensors()?;
        let (log_probs, target) = (log_probs.expect("it was saved"), target.expect("it was saved"));
        let grad_x = ops::call(&CROSS_ENTROPY_BACKWARD, &[grad, &log_probs, &target], |_| {
            let grad_x = grad.uninit_beside(log_probs.sizes(), log_probs.dtype())?;
            let (grad, divisor) = (&self.0.by_row(grad)?, divisor.as_ref());
            kernels::cross_entropy_backward(grad, &log_probs, &target, divisor, &self.0.options, &grad_x)?;
            Ok(grad_x)
        })?;
        Ok([Some(grad_x), None])
    }
}
