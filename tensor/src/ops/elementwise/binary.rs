//! Arithmetic on two tensors, with broadcasting and type promotion.

use super::by_number::{ByNumber, DIV_NUMBER, MUL_NUMBER};
use super::error::ElementwiseError;
use super::{Operand, check_in_place, promoted_result};
use crate::autograd::{Context, Function, Saved};
use crate::cpu::number::Number;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::launch::launch;
use crate::ops::row::{Row, row, table};
use crate::ops::{self, Operation};
use crate::tensor::Tensor;

pub(super) struct Binary {
    pub(super) operation: Operation,
    kernel: Row,
    /// The kernel for bools, which stay 0 and 1: their sum is "or", their product "and".
    bool_kernel: Option<&'static Row>,
    /// The kernel for a half type and a number that is not rounded to it.
    pub(super) by_number: Option<&'static Row>,
    check_bools: Option<fn(usize) -> Result<()>>,
    makes_floats: bool,
    save: fn(&mut Context<2>, [&Tensor; 2]),
    gradients: Gradients,
}

type Gradients = fn(&Saved<2>, &Tensor) -> Result<[Option<Tensor>; 2]>;

impl Binary {
    pub(super) fn result_type(&self, a: &Tensor, b: Operand<'_>) -> Result<DType> {
        if let Some(check) = self.check_bools {
            let b = match b {
                Operand::Tensor(tensor) => tensor.dtype(),
                Operand::Scalar(scalar) => scalar.dtype(),
            };
            check([a.dtype(), b].iter().filter(|dtype| **dtype == DType::Bool).count())?;
        }
        match b.result_type(a) {
            dtype if self.makes_floats && !dtype.is_floating_point() => Ok(DType::F32),
            dtype => Ok(dtype),
        }
    }

    /// Computes `a` and `b` in the dtype of `out`. As in PyTorch on the host, a product or quotient of half types and a
    /// single number does not round the number. (On a GPU, PyTorch does not round a number of the host, even in sums.)
    fn compute(&self, out: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
        let dtype = out.dtype();
        let a = &a.to(dtype)?;
        match self.by_number {
            Some(kernel) if dtype.is_half() && b.numel() == 1 && b.dtype() != dtype => {
                launch(kernel.of(dtype)?, [a, &b.to(DType::F64)?], [out], &[], &[])
            }
            _ => launch(self.kernel(dtype).of(dtype)?, [a, &b.to(dtype)?], [out], &[], &[]),
        }
    }

    fn kernel(&self, dtype: DType) -> &Row {
        self.bool_kernel.filter(|_| dtype == DType::Bool).unwrap_or(&self.kernel)
    }
}

impl Function<2> for &'static Binary {
    fn operation(&self) -> &'static Operation {
        &self.operation
    }

    fn forward(&self, ctx: &mut Context<2>, [a, b]: [&Tensor; 2]) -> Result<Tensor> {
        (self.save)(ctx, [a, b]);
        let dtype = self.result_type(a, Operand::Tensor(b))?;
        let out = promoted_result([a, b], dtype)?;
        self.compute(&out, a, b)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        (self.gradients)(saved, grad)
    }
}

/// The gradients of a maximum or minimum. Equal operands get half each. If one is NaN, both get the whole gradient.
fn of_the_chosen(
    saved: &Saved<2>,
    grad: &Tensor,
    loses: fn([&Tensor; 2]) -> Result<[Tensor; 2]>,
) -> Result<[Option<Tensor>; 2]> {
    let [a, b] = saved.tensors()?;
    let shared = a.eq(&b)?.where_cond(&grad.mul(0.5)?, grad)?;
    let [a_loses, b_loses] = loses([&a, &b])?;
    Ok([
        saved.needs_input_grad(0).then(|| a_loses.where_cond(0, &shared)).transpose()?,
        saved.needs_input_grad(1).then(|| b_loses.where_cond(0, &shared)).transpose()?,
    ])
}

#[track_caller]
pub(super) fn binary(op: &'static Binary, a: &Tensor, b: Operand<'_>) -> Result<Tensor> {
    if let Some(by_number) = ByNumber::of(op, a, b) {
        return ops::apply(by_number, [a]);
    }
    match b {
        Operand::Tensor(b) => ops::apply(op, [a, b]),
        Operand::Scalar(_) => {
            let dtype = op.result_type(a, b)?;
            ops::apply(op, [a, &b.to_tensor(dtype)?])
        }
    }
}

/// Writes `x · number` to `out`, with x's sizes and dtype (`torch.mul(x, number, out=out)`).
#[track_caller]
pub(crate) fn mul_out(out: &Tensor, x: &Tensor, number: f64) -> Result<()> {
    let number = Operand::Scalar(Scalar::Float(number));
    ops::update(&MUL.operation, out, ops::NewValues::Instead { source: Some(x) }, || {
        match ByNumber::of(&MUL, x, number) {
            Some(by_number) => by_number.compute(out, x),
            None => MUL.compute(out, x, &number.to_tensor(out.dtype())?),
        }
    })?;
    Ok(())
}

/// Writes `a + b` to a new tensor, without a new version.
pub(crate) fn add_into(out: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    ADD.compute(out, a, b)
}

/// `x / number` as PyTorch calls it internally, with a node of another name.
#[track_caller]
pub(crate) fn div_scalar(x: &Tensor, number: i64) -> Result<Tensor> {
    static DIV_SCALAR: Binary =
        Binary { operation: DIV.operation.node("DivBackward1"), kernel: Row { ..DIV.kernel }, ..DIV };
    binary(&DIV_SCALAR, x, number.into())
}

#[track_caller]
fn binary_(op: &'static Binary, target: &Tensor, other: Operand<'_>) -> Result<Tensor> {
    if let Some(by_number) = ByNumber::of(op, target, other) {
        let in_place = move || by_number.compute(target, target);
        let values = ops::NewValues::FromOld { others: &[], anew: &|old| ops::apply(by_number, [old]) };
        return ops::update(&op.operation, target, values, in_place);
    }
    let result = op.result_type(target, other).map_err(|error| ops::refused(&op.operation, target, error))?;
    // Checked later: PyTorch first checks whether the target may be written to.
    let check = || check_in_place(target, other, result);
    let other = match other {
        Operand::Tensor(tensor) => tensor.clone(),
        Operand::Scalar(_) => other.to_tensor(result)?,
    };
    // In `x.mul_(&x)`, the other operand is the old x, too.
    let anew = |old: &Tensor| {
        check()?;
        ops::apply(op, [old, if other.is_same(target) { old } else { &other }])
    };
    ops::update(&op.operation, target, ops::NewValues::FromOld { others: &[&other], anew: &anew }, || {
        check()?;
        if result == target.dtype() {
            return op.compute(target, target, &other);
        }
        let wide = target.uninit_like(result)?;
        op.compute(&wide, target, &other)?;
        ops::plain::write(target, &wide.to(target.dtype())?)
    })
}

/// Declares operations with their methods, and lists them in `ROWS` and `OPERATIONS`.
///
/// `fn add, add_ => static ADD: Binary = …;` declares the static and
///
/// ```text
/// impl Tensor {
///     pub fn add(&self, other: impl Into<Operand>) -> Result<Tensor> { binary(&ADD, self, other.into()) }
///     pub fn add_(&self, other: impl Into<Operand>) -> Result<Tensor> { binary_(&ADD, self, other.into()) }
/// }
/// ```
macro_rules! binary {
    ($($(#[$doc:meta])* fn $name:ident, $in_place:ident => static $NAME:ident: Binary = $op:expr;)*) => {
        table! { $(pub(super) static $NAME: Binary = $op;)* }

        impl Tensor {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                    binary(&$NAME, self, other.into())
                }

                #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") in place.")]
                #[track_caller]
                pub fn $in_place<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                    binary_(&$NAME, self, other.into())
                }
            )*
        }
    };
}

binary! {
    /// Computes `self + other`.
    fn add, add_ => static ADD: Binary = Binary {
        operation: Operation::new("add").node("AddBackward0"),
        kernel: row! { name: "add", types: numbers, cost: Cheap, element: |a: T, b: T| -> T { a.plus(b) } },
        bool_kernel: Some(&MAXIMUM.kernel),
        by_number: None,
        check_bools: None,
        makes_floats: false,
        save: |_, _| {},
        gradients: |saved, grad| {
            Ok([0, 1].map(|input| saved.needs_input_grad(input).then(|| grad.clone())))
        },
    };
    /// Computes `self - other`.
    fn sub, sub_ => static SUB: Binary = Binary {
        operation: Operation::new("sub").node("SubBackward0"),
        kernel: row! { name: "sub", types: numbers, cost: Cheap, element: |a: T, b: T| -> T { a.minus(b) } },
        bool_kernel: None,
        by_number: None,
        check_bools: Some(|bools| match bools {
            0 => Ok(()),
            1 => Err(ElementwiseError::SubtractBool.into()),
            _ => Err(ElementwiseError::SubtractTwoBools.into()),
        }),
        makes_floats: false,
        save: |_, _| {},
        gradients: |saved, grad| {
            Ok([
                saved.needs_input_grad(0).then(|| grad.clone()),
                saved.needs_input_grad(1).then(|| grad.neg()).transpose()?,
            ])
        },
    };
    /// Computes `self * other`.
    fn mul, mul_ => static MUL: Binary = Binary {
        operation: Operation::new("mul").node("MulBackward0"),
        kernel: row! { name: "mul", types: numbers, cost: Cheap, element: |a: T, b: T| -> T { a.times(b) } },
        bool_kernel: Some(&MINIMUM.kernel),
        by_number: Some(&MUL_NUMBER),
        check_bools: None,
        makes_floats: false,
        save: |ctx, [a, b]| {
            let [needs_a, needs_b] = [0, 1].map(|input| ctx.needs_input_grad(input));
            ctx.save_for_backward([needs_b.then_some(a), needs_a.then_some(b)]);
        },
        gradients: |saved, grad| {
            let [a, b] = saved.optional_tensors()?;
            Ok([b.map(|b| grad.mul(&b)).transpose()?, a.map(|a| grad.mul(&a)).transpose()?])
        },
    };
    /// Computes `self / other`. Integers give floats.
    fn div, div_ => static DIV: Binary = Binary {
        operation: Operation::new("div").node("DivBackward0"),
        kernel: row! { name: "div", types: floats, cost: Costly, element: |a: T, b: T| -> T { a / b } },
        bool_kernel: None,
        by_number: Some(&DIV_NUMBER),
        check_bools: None,
        makes_floats: true,
        save: |ctx, [a, b]| {
            let needs_b = ctx.needs_input_grad(1);
            ctx.save_for_backward([needs_b.then_some(a), Some(b)]);
        },
        gradients: |saved, grad| {
            let [a, b] = saved.optional_tensors()?;
            let b = b.expect("the divisor is always saved");
            Ok([
                saved.needs_input_grad(0).then(|| grad.div(&b)).transpose()?,
                // d(a/b)/db = −(a/b)/b
                a.map(|a| grad.neg()?.mul(&a.div(&b)?.div(&b)?)).transpose()?,
            ])
        },
    };
    /// Returns the larger of two elements, NaN if either is NaN.
    fn maximum, maximum_ => static MAXIMUM: Binary = Binary {
        operation: Operation::new("maximum").node("MaximumBackward0"),
        kernel: row! { name: "maximum", types: numbers, cost: Cheap, element: |a: T, b: T| -> T { a.larger(b) } },
        bool_kernel: None,
        by_number: None,
        check_bools: None,
        makes_floats: false,
        save: |ctx, operands| ctx.save_for_backward(operands),
        gradients: |saved, grad| of_the_chosen(saved, grad, |[a, b]| Ok([a.lt(b)?, a.gt(b)?])),
    };
    /// Returns the smaller of two elements, NaN if either is NaN.
    fn minimum, minimum_ => static MINIMUM: Binary = Binary {
        operation: Operation::new("minimum").node("MinimumBackward0"),
        kernel: row! { name: "minimum", types: numbers, cost: Cheap, element: |a: T, b: T| -> T { a.smaller(b) } },
        bool_kernel: None,
        by_number: None,
        check_bools: None,
        makes_floats: false,
        save: |ctx, operands| ctx.save_for_backward(operands),
        gradients: |saved, grad| of_the_chosen(saved, grad, |[a, b]| Ok([a.gt(b)?, a.lt(b)?])),
    };
}
