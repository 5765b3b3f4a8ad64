use std::panic::Location;

use super::error::RandomError;
use super::{draw, in_memory_order, kernels};
use crate::autograd::{Context, Function, Saved};
use crate::cpu::random::fill_bernoulli;
use crate::cpu::reserve::reserve;
use crate::dtype::DType;
use crate::error::{DTypeError, Result};
use crate::ops::launch::launch;
use crate::ops::row::{Row, row, rows};
use crate::ops::{self, Operation, operations};
use crate::scope;
use crate::tensor::Tensor;

operations! {
    // PyTorch multiplies by the scaled mask.
    static DROPOUT: Operation = Operation::new("dropout").node("MulBackward0");
    static DROPOUT_BACKWARD: Operation = Operation::new("native_dropout_backward");
}

impl Tensor {
    /// Zeros each element with probability `p` and multiplies the others by `1 / (1 − p)`, so the expected sum stays
    /// the same (`torch.nn.functional.dropout`). When not training, returns the tensor. An element is kept if a uniform
    /// f64 is less than `1 − p`.
    #[track_caller]
    pub fn dropout(&self, p: f64, training: bool) -> Result<Tensor> {
        if !(0.0..=1.0).contains(&p) {
            return Err(RandomError::DropoutProbability { p }.into());
        }
        let _scope = scope::operation(DROPOUT.name, Location::caller());
        if p == 0.0 || !training || self.numel() == 0 {
            return Ok(self.clone());
        }
        if p == 1.0 {
            return self.mul(false); // Works for any dtype.
        }
        if !self.dtype().is_floating_point() {
            return Err(DTypeError::InPlaceCast { result: DType::F32, output: self.dtype() }.into());
        }
        if self.is_cuda() {
            let mask = self.uninit_like(DType::Bool)?;
            kernels::bernoulli_scalar(1.0 - p, &in_memory_order(&mask))?;
            return ops::apply(DropoutFunction { p }, [self, &mask]);
        }
        let mut keep = reserve(self.numel())?;
        keep.resize(self.numel(), false);
        draw(None, |engine| fill_bernoulli(engine, &mut keep, 1.0 - p));
        // Numbers are drawn in memory order.
        let mask = Tensor::from_slice(&keep, &[keep.len()])?.with_layout(self.layout().like()?);
        ops::apply(DropoutFunction { p }, [self, &mask])
    }
}

struct DropoutFunction {
    p: f64,
}

impl DropoutFunction {
    fn masked(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        // On a GPU, PyTorch has one kernel for both; on the CPU it multiplies by the mask.
        let out = match x.is_cuda() {
            true => x.uninit_like(x.dtype())?,
            false => Tensor::uninit_result(&[x, mask], x.dtype())?,
        };
        let kernel = MASKED_SCALE.of(x.dtype())?;
        // 1 / (1 − p) in the tensor's dtype, like PyTorch's quotient of mask and number.
        let scale = match x.dtype() {
            DType::F64 => 1.0 / (1.0 - self.p),
            _ => f64::from(1.0 / (1.0 - self.p) as f32),
        };
        launch(kernel, [x, mask, &Tensor::full(&[], (scale, x.dtype()))?], [&out], &[], &[])?;
        Ok(out)
    }
}

rows! {
    static MASKED_SCALE: Row = row! {
        name: "masked_scale", refused_as: "bernoulli_scalar_cpu_", types: floats, cost: Cheap,
        element: |x: T, keep: u8, scale: T| -> T {
            x * if keep != 0 { scale } else { 0.0 }
        },
    };
}

impl Function<2> for DropoutFunction {
    fn operation(&self) -> &'static Operation {
        &DROPOUT
    }

    fn forward(&self, ctx: &mut Context<2>, [x, mask]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([mask]);
        self.masked(x, mask)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [mask] = saved.tensors()?;
        let grad_x = ops::call(&DROPOUT_BACKWARD, &[grad, &mask], |_| self.masked(grad, &mask))?;
        Ok([Some(grad_x), None])
    }
}
