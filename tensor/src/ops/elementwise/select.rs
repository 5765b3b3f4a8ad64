//! Choosing between values: by a condition, or by bounds.

use super::kernels;
use crate::autograd::{Context, Function, Saved};
use crate::dtype::{DType, result_type};
use crate::error::{Error, Result};
use crate::ops::{self, lead};
use crate::shape::broadcast;
use crate::tensor::Tensor;

impl Tensor {
    /// Elements of `on_true` where this bool tensor is true, of `on_false` elsewhere (`torch.where`,
    /// whose name is a keyword of Rust).
    #[track_caller]
    pub fn where_cond(&self, on_true: &Tensor, on_false: &Tensor) -> Result<Tensor> {
        if self.dtype() != DType::Bool {
            return Err(Error::WhereCondition { got: self.dtype() });
        }
        ops::apply(Where, [self, on_true, on_false])
    }

    /// Each element, but no less than `min` and no more than `max`. Either may be `None`.
    ///
    /// The gradient passes where the element was within the bounds.
    #[track_caller]
    pub fn clamp(&self, min: impl Into<Option<f64>>, max: impl Into<Option<f64>>) -> Result<Tensor> {
        ops::apply(Clamp::new(self, min.into(), max.into())?, [self])
    }

    /// [`clamp`](Self::clamp) in place.
    #[track_caller]
    pub fn clamp_(&self, min: impl Into<Option<f64>>, max: impl Into<Option<f64>>) -> Result<Tensor> {
        let clamp = Clamp::new(self, min.into(), max.into())?;
        let in_place = || clamp.run(self, self);
        ops::update("clamp", self, &[], |old| ops::apply(clamp, [old]), in_place)
    }
}

struct Where;

impl Function<3> for Where {
    fn name(&self) -> &'static str {
        "where"
    }

    fn backward_name(&self) -> &'static str {
        "WhereBackward0"
    }

    fn forward(&self, ctx: &mut Context<3>, [condition, a, b]: [&Tensor; 3]) -> Result<Tensor> {
        ctx.save_for_backward([condition]);
        let dtype = result_type(&[(a.dtype(), a.ndim()), (b.dtype(), b.ndim())], &[]);
        let sizes = broadcast(&broadcast(condition.sizes(), a.sizes())?, b.sizes())?;
        let out = lead(&[condition, a, b]).uninit_beside(&sizes, dtype)?;
        kernels::where_cond(condition, &a.to(dtype)?, &b.to(dtype)?, &out)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<3>, grad: &Tensor) -> Result<[Option<Tensor>; 3]> {
        let [condition] = saved.tensors()?;
        let zero = Tensor::full(&[], 0.0, grad.dtype())?;
        let grad_a = saved.needs_input_grad(1).then(|| condition.where_cond(grad, &zero)).transpose()?;
        let grad_b = saved.needs_input_grad(2).then(|| condition.where_cond(&zero, grad)).transpose()?;
        Ok([None, grad_a, grad_b])
    }
}

#[derive(Clone, Copy)]
struct Clamp {
    min: Option<f64>,
    max: Option<f64>,
}

impl Clamp {
    fn new(x: &Tensor, min: Option<f64>, max: Option<f64>) -> Result<Clamp> {
        if min.is_none() && max.is_none() {
            return Err(Error::custom("torch.clamp: At least one of 'min' or 'max' must not be None"));
        }
        if !x.dtype().is_floating_point() {
            return Err(Error::NotImplemented { operation: "clamp", dtype: x.dtype() });
        }
        Ok(Clamp { min, max })
    }

    /// When the bounds cross, `max` wins, as in PyTorch.
    fn run(&self, x: &Tensor, out: &Tensor) -> Result<()> {
        let low = Tensor::full(&[], self.min.unwrap_or(f64::NEG_INFINITY), x.dtype())?;
        let high = Tensor::full(&[], self.max.unwrap_or(f64::INFINITY), x.dtype())?;
        kernels::clamp(x, &low, &high, out)
    }
}

impl Function<1> for Clamp {
    fn name(&self) -> &'static str {
        "clamp"
    }

    fn backward_name(&self) -> &'static str {
        "ClampBackward1"
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        let out = x.uninit_beside(x.sizes(), x.dtype())?;
        self.run(x, &out)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        let mut inside = grad.clone();
        let zero = Tensor::full(&[], 0.0, grad.dtype())?;
        if let Some(min) = self.min {
            inside = x.ge(min)?.where_cond(&inside, &zero)?;
        }
        if let Some(max) = self.max {
            inside = x.le(max)?.where_cond(&inside, &zero)?;
        }
        Ok([Some(inside)])
    }
}
