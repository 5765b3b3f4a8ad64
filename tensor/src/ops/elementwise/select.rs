//! Selection between values, by a condition or by bounds.

use std::panic::Location;

use super::error::ElementwiseError;
use super::{Operand, broadcast_all, check_in_place};
use crate::autograd::{Context, Function, Saved};
use crate::dtype::{DType, Scalar, result_type};
use crate::error::{DeviceMismatch, Error, Result};
use crate::host_context::HostContext;
use crate::ops::launch::launch;
use crate::ops::plain::{fill, number};
use crate::ops::row::{Row, row, rows};
use crate::ops::shape::check_fits;
use crate::ops::{self, Operation, operations};
use crate::scope;
use crate::shape::{broadcast, signed};
use crate::tensor::Tensor;

impl Tensor {
    /// Takes elements of `on_true` where this bool tensor is true, and of `on_false` elsewhere (`torch.where`; `where`
    /// is a Rust keyword).
    ///
    /// Both are tensors or numbers, and all three broadcast. A number takes the dtype of a tensor, unless its category
    /// is higher: with an integer tensor, 0.5 makes the result f32. Two numbers give i64, or f32 if one is not an
    /// integer.
    ///
    /// Errors if this tensor is not a bool tensor (u8 only causes a warning, as in PyTorch), if the sizes do not
    /// broadcast, or if a number exceeds the dtype of the result. In half types it becomes infinite.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let x = Tensor::new([-1.5, 2.0])?;
    /// assert_eq!(x.gt(0)?.where_cond(&x, 0)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// assert_eq!(x.gt(0)?.where_cond(1, -1)?.to_vec::<i64>()?, [-1, 1]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn where_cond<'a>(
        &self,
        on_true: impl Into<Operand<'a>>,
        on_false: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        where_cond(self, on_true.into(), on_false.into())
    }

    /// Returns a copy with `value` where the bool tensor `mask` is true (`Tensor.masked_fill`).
    ///
    /// `value` is a number or a 0-dim tensor: in an integer tensor, 2.5 becomes 2. The tensor and the mask broadcast.
    ///
    /// Errors if the mask is not bool, the sizes do not broadcast, or the dtype cannot hold the value. For this check,
    /// the host waits for a value on a device, as in PyTorch.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let scores = Tensor::new([0.5, 1.5, 2.5])?;
    /// let later = Tensor::new([false, false, true])?;
    /// assert_eq!(scores.masked_fill(&later, f32::NEG_INFINITY)?.softmax(0)?.to_vec::<f32>()?[2], 0.0);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn masked_fill<'a>(&self, mask: &Tensor, value: impl Into<Operand<'a>>) -> Result<Tensor> {
        masked_fill(self, mask, value.into())
    }

    /// Like [`masked_fill`](Self::masked_fill), in place. Only the mask broadcasts.
    #[track_caller]
    pub fn masked_fill_<'a>(&self, mask: &Tensor, value: impl Into<Operand<'a>>) -> Result<Tensor> {
        masked_fill_(self, mask, value.into())
    }

    /// Clamps each element to at least `min` and at most `max`. Either may be `None`. Gradients pass within the bounds.
    /// If both bounds are given and one is NaN, the result is NaN.
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// let x = Tensor::new([-3, 5])?;
    /// assert_eq!(x.clamp(0, None)?.to_vec::<i64>()?, [0, 5]);
    /// assert_eq!(x.clamp(-0.5, 2.5)?.to_vec::<f32>()?, [-0.5, 2.5]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn clamp(&self, min: impl Bound, max: impl Bound) -> Result<Tensor> {
        ops::apply(Clamp::new(self, min.number(), max.number())?, [self])
    }

    /// Like [`clamp`](Self::clamp), in place.
    #[track_caller]
    pub fn clamp_(&self, min: impl Bound, max: impl Bound) -> Result<Tensor> {
        let clamp = Clamp::new(self, min.number(), max.number())
            .map_err(|error| ops::refused(&CLAMP_SCALAR, self, error))?;
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

/// A bound of [`Tensor::clamp`]: a number, or `None`.
pub trait Bound {
    #[doc(hidden)]
    fn number(self) -> Option<Scalar>;
}

impl Bound for Option<Scalar> {
    fn number(self) -> Option<Scalar> {
        self
    }
}

macro_rules! impl_bound {
    ($($T:ty),*) => {$(
        impl Bound for $T {
            fn number(self) -> Option<Scalar> {
                Some(self.into())
            }
        }
    )*};
}
impl_bound!(Scalar, u8, i32, i64, f32, f64);

operations! {
    static WHERE_COND: Operation = Operation::new("where").node("WhereBackward0");
    static MASKED_FILL_NUMBER: Operation = Operation::new("masked_fill").node("MaskedFillBackward0");
    static MASKED_FILL_TENSOR: Operation = Operation::new("masked_fill").node("MaskedFillBackward1");
    static CLAMP_SCALAR: Operation = Operation::new("clamp").node("ClampBackward1");
}

rows! {
    static WHERE: Row = row! {
        name: "where", types: each, cost: Cheap,
        element: |c: u8, a: T, b: T| -> T { if c != 0 { a } else { b } },
    };
    // A NaN element fails both comparisons and stays NaN.
    static CLAMP: Row = row! {
        name: "clamp", types: numbers, cost: Cheap,
        element: |x: T, low: T, high: T| -> T {
            let x = if x < low { low } else { x };
            if x > high { high } else { x }
        },
    };
}

// Not generic, so they are compiled once.

#[track_caller]
fn where_cond(condition: &Tensor, on_true: Operand<'_>, on_false: Operand<'_>) -> Result<Tensor> {
    let dtype = match (on_true, on_false) {
        (Operand::Tensor(tensor), other) | (other, Operand::Tensor(tensor)) => other.result_type(tensor),
        (Operand::Scalar(a), Operand::Scalar(b)) => result_type(&[], &[a, b]),
    };
    // A tensor keeps its dtype here, because the operation converts it.
    let tensor = |operand: Operand<'_>| match operand {
        Operand::Tensor(tensor) => Ok(tensor.clone()),
        Operand::Scalar(value) => {
            // PyTorch accepts too large numbers for half types.
            if !dtype.is_half() {
                check_fits(value, dtype)?;
            }
            number(value, dtype)
        }
    };
    let (on_true, on_false) = (tensor(on_true)?, tensor(on_false)?);
    let condition = match condition.dtype() {
        DType::Bool => condition,
        DType::U8 => {
            HostContext::warn_once("byte conditions", || {
                "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future \
                 version of PyTorch. Use a boolean condition instead."
                    .to_owned()
            });
            &condition.to(DType::Bool)?
        }
        got => return Err(ElementwiseError::WhereCondition { got }.into()),
    };
    ops::apply(Where { operation: &WHERE_COND, is_contiguous: false }, [condition, &on_true, &on_false])
}

#[track_caller]
fn masked_fill(x: &Tensor, mask: &Tensor, value: Operand<'_>) -> Result<Tensor> {
    broadcast(mask.sizes(), x.sizes())?; // PyTorch checks this first.
    check_mask_device(x, mask)?;
    check_mask(mask, value)?;
    let fill = Where { operation: masked_fill_operation(value), is_contiguous: true };
    ops::apply(fill, [mask, &filling(value, x.dtype())?, x])
}

#[track_caller]
fn masked_fill_(x: &Tensor, mask: &Tensor, value: Operand<'_>) -> Result<Tensor> {
    let operation = masked_fill_operation(value);
    check_mask_device(x, mask)?;
    // Copied before the writes, in case the value is part of the target.
    let own;
    let value = match value {
        Operand::Tensor(number) if number.shares_storage(x) => {
            own = number.copy()?;
            Operand::Tensor(&own)
        }
        other => other,
    };
    // Checked later: PyTorch first checks whether the target may be written to.
    let checked = || {
        check_mask(mask, value)?;
        check_in_place(x, Operand::Tensor(mask), x.dtype())?;
        filling(value, x.dtype())
    };
    if ops::overlap::is_expanded(x) {
        return masked_fill_expanded(x, mask, value);
    }
    let anew = |old: &Tensor| ops::apply(Where { operation, is_contiguous: true }, [mask, &checked()?, old]);
    let others: &[&Tensor] = match &value {
        Operand::Tensor(value) => &[mask, value],
        Operand::Scalar(_) => &[mask],
    };
    ops::update(operation, x, ops::NewValues::FromOld { others, anew: &anew }, || {
        launch(WHERE.of(x.dtype())?, [mask, &checked()?, x], [x], &[], &[])
    })
}

/// Fills elements that share memory if any of them is masked. PyTorch does the same, with a warning.
#[track_caller]
fn masked_fill_expanded(x: &Tensor, mask: &Tensor, value: Operand<'_>) -> Result<Tensor> {
    HostContext::warn_once("masked_fill_ of expanded tensors", || {
        "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. \
         This also applies to advanced indexing e.g. tensor[mask] = scalar"
            .to_owned()
    });
    check_mask(mask, value)?;
    check_in_place(x, Operand::Tensor(mask), x.dtype())?;
    let (mut places, mut mask) = (x.clone(), mask.expand(&signed(x.sizes()))?.to(DType::U8)?);
    for (dim, stride) in x.layout().strides().iter().enumerate() {
        if *stride == 0 {
            (places, mask) = (places.narrow(dim as i64, 0, 1)?, mask.amax(&[dim as i64], true)?);
        }
    }
    masked_fill_(&places, &mask.to(DType::Bool)?, value)?;
    Ok(x.clone())
}

fn masked_fill_operation(value: Operand<'_>) -> &'static Operation {
    match value {
        Operand::Scalar(_) => &MASKED_FILL_NUMBER,
        Operand::Tensor(_) => &MASKED_FILL_TENSOR,
    }
}

/// PyTorch has a special message for a mask on another device.
#[track_caller]
fn check_mask_device(x: &Tensor, mask: &Tensor) -> Result<()> {
    let _scope = scope::operation("masked_fill", Location::caller());
    match ops::same_device("masked_fill", None, &[x, mask]) {
        Err(Error::DeviceMismatch(mismatch)) => {
            let sentence = format!(
                "expected self and mask to be on the same device, but got mask on {} and self on {}",
                mask.device(),
                x.device()
            );
            Err(Error::DeviceMismatch(Box::new(DeviceMismatch { sentence, ..*mismatch })))
        }
        others => others,
    }
}

fn check_mask(mask: &Tensor, value: Operand<'_>) -> Result<()> {
    if !value.sizes().is_empty() {
        return Err(ElementwiseError::MaskedFillValue { got: value.sizes().len() }.into());
    }
    if mask.dtype() != DType::Bool {
        return Err(ElementwiseError::MaskDType { got: mask.dtype() }.into());
    }
    Ok(())
}

fn filling(value: Operand<'_>, dtype: DType) -> Result<Tensor> {
    let number = match value {
        Operand::Scalar(value) => value,
        Operand::Tensor(value) => value.scalar()?,
    };
    check_fits(number, dtype)?;
    value.to_tensor(dtype)
}

struct Where {
    operation: &'static Operation,
    /// Whether the result is contiguous (`masked_fill`) or in the order of the operands (`where`).
    is_contiguous: bool,
}

impl Function<3> for Where {
    fn operation(&self) -> &'static Operation {
        self.operation
    }

    fn forward(&self, ctx: &mut Context<3>, [condition, a, b]: [&Tensor; 3]) -> Result<Tensor> {
        ctx.save_for_backward([condition]);
        let dtype = result_type(&[(a.dtype(), a.ndim()), (b.dtype(), b.ndim())], &[]);
        let operands = [condition, a, b];
        let out = match self.is_contiguous {
            true => b.uninit_beside(&broadcast_all(&operands)?, dtype)?,
            false => Tensor::uninit_result(&operands, dtype)?,
        };
        launch(WHERE.of(dtype)?, [condition, &a.to(dtype)?, &b.to(dtype)?], [&out], &[], &[])?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<3>, grad: &Tensor) -> Result<[Option<Tensor>; 3]> {
        let [condition] = saved.tensors()?;
        let grad_a = saved.needs_input_grad(1).then(|| condition.where_cond(grad, 0)).transpose()?;
        let grad_b = || match self.is_contiguous {
            true => masked_fill(grad, &condition, 0.into()),
            false => condition.where_cond(0, grad),
        };
        let grad_b = saved.needs_input_grad(2).then(grad_b).transpose()?;
        Ok([None, grad_a, grad_b])
    }
}

#[derive(Clone, Copy)]
struct Clamp {
    min: Option<Scalar>,
    max: Option<Scalar>,
    /// The promoted dtype of the elements and the bounds.
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

    /// If the bounds cross, `max` wins, as in PyTorch. If both are given, a NaN makes the whole result NaN.
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
        let out = Tensor::uninit_result(&[x], self.dtype)?;
        self.run(x, &out)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        let mut inside = grad.clone();
        if let Some(min) = self.min {
            inside = x.ge(min)?.where_cond(&inside, 0)?;
        }
        if let Some(max) = self.max {
            inside = x.le(max)?.where_cond(&inside, 0)?;
        }
        Ok([Some(inside)])
    }
}
