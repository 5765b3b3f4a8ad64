//! Losses between numbers.

use super::Reduction;
use crate::autograd::{Context, Function, Saved};
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::ops;
use crate::tensor::Tensor;

impl Tensor {
    /// The mean of `(self − target)²` (`torch.nn.functional.mse_loss`).
    #[track_caller]
    pub fn mse_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        warn_of_sizes(self, target);
        ops::apply(Regression { distance: Distance::Squared, reduction }, [self, target])
    }

    /// The mean of `|self − target|` (`torch.nn.functional.l1_loss`).
    #[track_caller]
    pub fn l1_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        warn_of_sizes(self, target);
        ops::apply(Regression { distance: Distance::Absolute, reduction }, [self, target])
    }
}

/// Predictions of shape (n, 1) against targets of shape (n) broadcast to n × n differences: a loss that
/// falls and means nothing.
fn warn_of_sizes(input: &Tensor, target: &Tensor) {
    if input.sizes() != target.sizes() {
        Machine::warn_once("loss sizes", || {
            format!(
                "Using a target size (torch.Size({:?})) that is different to the input size (torch.Size({:?})). \
                 This will likely lead to incorrect results due to broadcasting. Please ensure they have the \
                 same size.",
                target.sizes(),
                input.sizes()
            )
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Distance {
    Squared,
    Absolute,
}

struct Regression {
    distance: Distance,
    reduction: Reduction,
}

impl Function<2> for Regression {
    fn name(&self) -> &'static str {
        match self.distance {
            Distance::Squared => "mse_loss",
            Distance::Absolute => "l1_loss",
        }
    }

    fn backward_name(&self) -> &'static str {
        match self.distance {
            Distance::Squared => "MseLossBackward0",
            Distance::Absolute => "L1LossBackward0",
        }
    }

    fn forward(&self, ctx: &mut Context<2>, [input, target]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([input, target]);
        let difference = input.sub(target)?;
        match self.distance {
            Distance::Squared => self.reduction.of(difference.square_()?),
            Distance::Absolute => self.reduction.of(difference.abs_()?),
        }
    }

    /// `d(a − b)² = 2(a − b)`, `d|a − b| = sign(a − b)`; for the target both change sign.
    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [input, target] = saved.tensors()?;
        // PyTorch refuses this here, and for this loss only.
        if self.distance == Distance::Squared && target.dtype() != input.dtype() {
            let (found, expected) =
                if saved.needs_input_grad(0) { (&target, &input) } else { (&input, &target) };
            return Err(Error::LossDType { found: found.dtype(), expected: expected.dtype() });
        }
        let difference = input.sub(&target)?;
        let scale = self.reduction.scale(difference.numel());
        let slope = match self.distance {
            Distance::Squared => difference.mul_(2.0 * scale)?,
            Distance::Absolute => difference.sign_()?.mul_(scale)?,
        };
        let grad_input = slope.mul_(&grad.to(slope.dtype())?)?;
        let grad_target = saved.needs_input_grad(1).then(|| grad_input.neg()).transpose()?;
        Ok([saved.needs_input_grad(0).then_some(grad_input), grad_target])
    }
}
