use super::Reduction;
use super::error::LossError;
use crate::autograd::{Context, Function, Saved};
use crate::dtype::{DType, result_type};
use crate::error::Result;
use crate::error::dtype::not_implemented;
use crate::host_context::HostContext;
use crate::ops::{self, CastPolicy, Operation, operations};
use crate::shape::broadcast;
use crate::tensor::Tensor;

operations! {
    MSE_LOSS: Operation::new("mse_loss").node("MseLossBackward0").autocast(CastPolicy::Fp32);
    L1_LOSS: Operation::new("l1_loss").composite_together().autocast(CastPolicy::Fp32);
}

impl Tensor {
    /// Computes the mean of `(self − target)²`, or another reduction (`torch.nn.functional.mse_loss`).
    #[track_caller]
    pub fn mse_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        warn_of_sizes(self, target);
        ops::apply(MseLoss { reduction }, [self, target])
    }

    /// Computes the mean of `|self − target|`, or another reduction (`torch.nn.functional.l1_loss`).
    #[track_caller]
    pub fn l1_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        warn_of_sizes(self, target);
        ops::call(&L1_LOSS, &[self, target], |operands| reduction.of(operands[0].sub(operands[1])?.abs()?))
    }
}

/// Warns about unequal sizes. Shapes (n, 1) and (n) give n × n differences, so the loss falls but means nothing.
fn warn_of_sizes(input: &Tensor, target: &Tensor) {
    if input.sizes() != target.sizes() {
        HostContext::warn_once("loss sizes", || {
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

/// Computes `input − target`. Bools count as numbers here, although subtraction refuses them.
fn difference(input: &Tensor, target: &Tensor) -> Result<Tensor> {
    match (input.dtype(), target.dtype()) {
        (DType::Bool, dtype) => input.to(dtype)?.sub(target),
        (dtype, DType::Bool) => input.sub(&target.to(dtype)?),
        _ => input.sub(target),
    }
}

struct MseLoss {
    reduction: Reduction,
}

impl Function<2> for MseLoss {
    fn operation(&self) -> &'static Operation {
        &MSE_LOSS
    }

    fn forward(&self, ctx: &mut Context<2>, [input, target]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([input, target]);
        let operands = [input, target].map(|tensor| (tensor.dtype(), tensor.ndim()));
        let dtype = result_type(&operands, &[]);
        if !dtype.is_floating_point() {
            broadcast(input.sizes(), target.sizes())?;
            return Err(not_implemented("mse_cpu", dtype));
        }
        self.reduction.of(difference(input, target)?.square_()?.as_new())
    }

    /// `d(a − b)² = 2(a − b)`, with the opposite sign for the target.
    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [input, target] = saved.tensors()?;
        // PyTorch refuses unequal dtypes here, and only in this loss.
        if target.dtype() != input.dtype() {
            let (found, expected) =
                if saved.needs_input_grad(0) { (&target, &input) } else { (&input, &target) };
            return Err(LossError::DTypes { found: found.dtype(), expected: expected.dtype() }.into());
        }
        let difference = difference(&input, &target)?;
        let scale = self.reduction.scale(difference.numel());
        let slope = difference.mul_(2.0 * scale)?;
        let grad_input = slope.mul_(&grad.to(slope.dtype())?)?.as_new();
        let grad_target = saved.needs_input_grad(1).then(|| grad_input.neg()).transpose()?;
        Ok([saved.needs_input_grad(0).then_some(grad_input), grad_target])
    }
}
