//! Choosing between values: by a condition, or by bounds.

use super::error::ElementwiseError;
use crate::autograd::{Context, Function, Saved};
use crate::dtype::{DType, Scalar, result_type};
use crate::error::{Error, Result};
use crate::ops::launch::launch;
use crate::ops::plain::{fill, number};
use crate::ops::row::{row, rows};
use crate::ops::shape::check_fits;
use crate::ops::{self, Operation, lead, operations};
use crate::shape::broadcast;
use crate::tensor::Tensor;

impl Tensor {
    /// Elements of `on_true` where this bool tensor is true, of `on_false` elsewhere (`torch.where`,
    /// whose name is a keyword of Rust).
    #[track_caller]
    pub fn where_cond(&self, on_true: &Tensor, on_false: &Tensor) -> Result<Tensor> {
        if self.dtype() != DType::Bool {
            return Err(ElementwiseError::WhereCondition { got: self.dtype() }.into());
        }
        ops::apply(Where, [self, on_true, on_false])
    }

    /// Each element, but no less than `min` and no more than `max`. Either may be `None`.
    ///
    /// The gradient passes where the element was within the bounds. If there are two and one is NaN, the result is NaN.
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// let x = Tensor::new([-3i64, 5])?;
    /// assert_eq!(x.clamp(0, None)?.to_vec::<i64>()?, [0, 5]);
    /// assert_eq!(x.clamp(-0.5, 2.5)?.to_vec::<f32>()?, [-0.5, 2.5]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn clamp(&self, min: impl Bound, max: impl Bound) -> Result<Tensor> {
        ops::apply(Clamp::new(self, min.number(), max.number())?, [self])
    }

    /// [`clamp`](Self::clamp) in place.
    #[track_caller]
    pub fn clamp_(&self, min: impl Bound, max: impl Bound) -> Result<Tensor> {
        let clamp = Clamp::new(self, min.number(), max.number())?;
        if !clamp.dtype.can_cast(self.dtype()) {
            return Err(Error::custom(format!(
                "result type {} can't be cast to the desired output type {}",
                clamp.dtype.scalar_type(),
                self.dtype().cpp_name()
            )));
        }
        let in_place = || clamp.run(self, self);
        let values = ops::NewValues::FromOld { others: &[], anew: &|old| ops::apply(clamp, [old]) };
        ops::update(&CLAMP_SCALAR, self, values, in_place)
    }
}

/// A bound of [`Tensor::clamp`]: a number, or `None` where there is none.
pub trait Bound {
    #[doc(hidden)]
    fn number(self) -> Option<Scalar>;
}

impl Bound for Option<Scalar> {
    fn number(self) -> Option<Scalar> {
        self
    }
}

macro_rules! bounds {
    ($($T:ty),*) => {$(
        impl Bound for $T {
            fn number(self) -> Option<Scalar> {
                Some(self.into())
            }
        }
    )*};
}
bounds!(Scalar, u8, i32, i64, f32, f64);

operations! {
    WHERE_COND: Operation::new("where").node("WhereBackward0");
    CLAMP_SCALAR: Operation::new("clamp").node("ClampBackward1");
}

rows! {
    WHERE: row!("where", each, Cheap, |c: u8, a: T, b: T| -> T { if c != 0 { a } else { b } });
    // Comparisons written so that a NaN element stays NaN.
    CLAMP: row!("clamp", numbers, Cheap, |x: T, low: T, high: T| -> T {{
        let x = if x < low { low } else { x };
        if x > high { high } else { x }
    }});
}

struct Where;

impl Function<3> for Where {
    fn operation(&self) -> &'static Operation {
        &WHERE_COND
    }

    fn forward(&self, ctx: &mut Context<3>, [condition, a, b]: [&Tensor; 3]) -> Result<Tensor> {
        ctx.save_for_backward([condition]);
        let dtype = result_type(&[(a.dtype(), a.ndim()), (b.dtype(), b.ndim())], &[]);
        let sizes = broadcast(&broadcast(condition.sizes(), a.sizes())?, b.sizes())?;
        let out = lead(&[condition, a, b]).uninit_beside(&sizes, dtype)?;
        launch(WHERE.of(dtype)?, [condition, &a.to(dtype)?, &b.to(dtype)?], [&out], &[], &[])?;
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
    min: Option<Scalar>,
    max: Option<Scalar>,
    /// Of the result: that of the elements with the bounds.
    dtype: DType,
}

impl Clamp {
    fn new(x: &Tensor, min: Option<Scalar>, max: Option<Scalar>) -> Result<Clamp> {
        let bounds: Vec<Scalar> = min.into_iter().chain(max).collect();
        if bounds.is_empty() {
            return Err(Error::custom("torch.clamp: At least one of 'min' or 'max' must not be None"));
        }
        let dtype = result_type(&[(x.dtype(), x.ndim())], &bounds);
        bounds.iter().try_for_each(|bound| check_fits(*bound, dtype))?;
        Ok(Clamp { min, max, dtype })
    }

    /// When the bounds cross, `max` wins, as in PyTorch. When one of two is NaN, so is all of the result; one alone that is NaN
    /// bounds nothing.
    fn run(&self, x: &Tensor, out: &Tensor) -> Result<()> {
        if let (Some(min), Some(max)) = (self.min, self.max)
            && (min.to_f64().is_nan() || max.to_f64().is_nan())
        {
            return fill(out, Scalar::Float(f64::NAN));
        }
        let (lowest, highest) = match self.dtype {
            DType::Bool => (Scalar::Bool(false), Scalar::Bool(true)),
            DType::U8 => (Scalar::Int(0), Scalar::Int(u8::MAX.into())),
            DType::I32 => (Scalar::Int(i32::MIN.into()), Scalar::Int(i32::MAX.into())),
            DType::I64 => (Scalar::Int(i64::MIN), Scalar::Int(i64::MAX)),
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
                (Scalar::Float(f64::NEG_INFINITY), Scalar::Float(f64::INFINITY))
            }
        };
        let [low, high] =
            [self.min.unwrap_or(lowest), self.max.unwrap_or(highest)].map(|bound| number(bound, self.dtype));
        launch(CLAMP.of(self.dtype)?, [&x.to(self.dtype)?, &low?, &high?], [out], &[], &[])
    }
}

impl Function<1> for Clamp {
    fn operation(&self) -> &'static Operation {
        &CLAMP_SCALAR
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        let out = x.uninit_beside(x.sizes(), self.dtype)?;
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
