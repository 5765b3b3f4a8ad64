//! Arithmetic on two tensors, broadcast to a common shape and promoted to a common type.

use super::error::ElementwiseError;
use super::{Operand, check_in_place, output};
use crate::autograd::{Context, Function, Saved};
use crate::cpu::number::Number;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops;
use crate::ops::launch::launch;
use crate::ops::row::{Row, row, rows};
use crate::tensor::Tensor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Maximum,
    Minimum,
}

impl Binary {
    /// The type of the result.
    pub(super) fn result_type(self, a: &Tensor, b: Operand<'_>) -> Result<DType> {
        if self == Binary::Sub {
            let b = match b {
                Operand::Tensor(tensor) => tensor.dtype(),
                Operand::Scalar(scalar) => scalar.dtype(),
            };
            match [a.dtype(), b].iter().filter(|dtype| **dtype == DType::Bool).count() {
                0 => {}
                1 => return Err(ElementwiseError::SubtractBool.into()),
                _ => return Err(ElementwiseError::SubtractTwoBools.into()),
            }
        }
        match (self, b.result_type(a)) {
            // Division is true division: 1 / 2 is 0.5.
            (Binary::Div, dtype) if !dtype.is_floating_point() => Ok(DType::F32),
            (_, dtype) => Ok(dtype),
        }
    }

    /// Computes `a` and `b` in the type of `out`. But the one number of another type that halves are multiplied by or
    /// divided by is not rounded to a half first: what PyTorch does on the host. (On a GPU it does so if the number is
    /// on the host, and then for sums and differences too.)
    fn compute(self, out: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
        let dtype = out.dtype();
        let a = &a.to(dtype)?;
        if by_numbers(self, dtype) && b.numel() == 1 && b.dtype() != dtype {
            return by_number(self, a, &b.to(DType::F64)?, out);
        }
        launch(self.kernel(dtype).of(dtype)?, [a, &b.to(dtype)?], [out], &[], &[])
    }

    fn kernel(self, dtype: DType) -> &'static Row {
        match (self, dtype) {
            // Truth values are 0 and 1, and stay so: their sum is "or", their product is "and".
            (Binary::Add, DType::Bool) | (Binary::Maximum, _) => &MAXIMUM,
            (Binary::Mul, DType::Bool) | (Binary::Minimum, _) => &MINIMUM,
            (Binary::Add, _) => &ADD,
            (Binary::Sub, _) => &SUB,
            (Binary::Mul, _) => &MUL,
            (Binary::Div, _) => &DIV,
        }
    }
}

rows! {
    ADD: row!("add", numbers, Cheap, |a: T, b: T| -> T { a.plus(b) });
    SUB: row!("sub", numbers, Cheap, |a: T, b: T| -> T { a.minus(b) });
    MUL: row!("mul", numbers, Cheap, |a: T, b: T| -> T { a.times(b) });
    DIV: row!("div", floats, Costly, |a: T, b: T| -> T { a / b });
    MAXIMUM: row!("maximum", numbers, Cheap, |a: T, b: T| -> T { a.larger(b) });
    MINIMUM: row!("minimum", numbers, Cheap, |a: T, b: T| -> T { a.smaller(b) });
    MUL_NUMBER: row!("mul_number", halves, Cheap, |x: T, n: f64| -> T { x * n as f32 });
    DIV_NUMBER: row!("div_number", halves, Costly, |x: T, n: f64| -> T { x / n as f32 });
}

/// A tensor of halves by a number, an f64 that is not rounded to a half first: so much more PyTorch does for products
/// and quotients, and only for these.
fn by_number(op: Binary, x: &Tensor, number: &Tensor, out: &Tensor) -> Result<()> {
    let kernel = if op == Binary::Mul { &MUL_NUMBER } else { &DIV_NUMBER };
    launch(kernel.of(x.dtype())?, [x, number], [out], &[], &[])
}

/// Whether `op` takes a number as it is beside elements of this type.
fn by_numbers(op: Binary, dtype: DType) -> bool {
    dtype.is_half() && matches!(op, Binary::Mul | Binary::Div)
}

impl Function<2> for Binary {
    fn name(&self) -> &'static str {
        match self {
            Binary::Add => "add",
            Binary::Sub => "sub",
            Binary::Mul => "mul",
            Binary::Div => "div",
            Binary::Maximum => "maximum",
            Binary::Minimum => "minimum",
        }
    }

    fn backward_name(&self) -> &'static str {
        match self {
            Binary::Add => "AddBackward0",
            Binary::Sub => "SubBackward0",
            Binary::Mul => "MulBackward0",
            Binary::Div => "DivBackward0",
            Binary::Maximum => "MaximumBackward0",
            Binary::Minimum => "MinimumBackward0",
        }
    }

    fn forward(&self, ctx: &mut Context<2>, [a, b]: [&Tensor; 2]) -> Result<Tensor> {
        let (needs_a, needs_b) = (ctx.needs_input_grad(0), ctx.needs_input_grad(1));
        match self {
            Binary::Add | Binary::Sub => {}
            Binary::Mul => ctx.save_for_backward([needs_b.then_some(a), needs_a.then_some(b)]),
            Binary::Div => ctx.save_for_backward([needs_b.then_some(a), Some(b)]),
            Binary::Maximum | Binary::Minimum => ctx.save_for_backward([a, b]),
        }
        let dtype = self.result_type(a, Operand::Tensor(b))?;
        let out = output(a, b, dtype)?;
        self.compute(&out, a, b)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let (needs_a, needs_b) = (saved.needs_input_grad(0), saved.needs_input_grad(1));
        if matches!(self, Binary::Add | Binary::Sub) {
            let grad_b = match self {
                Binary::Sub if needs_b => Some(grad.neg()?),
                _ => needs_b.then(|| grad.clone()),
            };
            return Ok([needs_a.then(|| grad.clone()), grad_b]);
        }
        let [a, b] = saved.optional_tensors()?;
        let mut grads = [None, None];
        match self {
            Binary::Mul => {
                grads[0] = b.map(|b| grad.mul(&b)).transpose()?;
                grads[1] = a.map(|a| grad.mul(&a)).transpose()?;
            }
            Binary::Div => {
                let b = b.expect("the divisor is always saved");
                grads[0] = needs_a.then(|| grad.div(&b)).transpose()?;
                // d(a/b)/db = −(a/b)/b
                grads[1] = a.map(|a| grad.neg()?.mul(&a.div(&b)?.div(&b)?)).transpose()?;
            }
            _ => {
                let (a, b) = (a.expect("both are saved"), b.expect("both are saved"));
                // Where both are equal each takes half; where one is NaN, both take all.
                let zero = Tensor::full(&[], 0.0, grad.dtype())?;
                let shared = a.eq(&b)?.where_cond(&grad.mul(0.5)?, grad)?;
                let (a_loses, b_loses) = match self {
                    Binary::Maximum => (a.lt(&b)?, a.gt(&b)?),
                    _ => (a.gt(&b)?, a.lt(&b)?),
                };
                grads[0] = needs_a.then(|| a_loses.where_cond(&zero, &shared)).transpose()?;
                grads[1] = needs_b.then(|| b_loses.where_cond(&zero, &shared)).transpose()?;
            }
        }
        Ok(grads)
    }
}

/// A product or a quotient of halves and a number.
#[derive(Clone, Copy)]
struct ByNumber {
    op: Binary,
    number: f64,
}

impl ByNumber {
    fn of(op: Binary, a: &Tensor, b: Operand<'_>) -> Option<ByNumber> {
        match b {
            Operand::Scalar(b) if by_numbers(op, a.dtype()) => Some(ByNumber { op, number: b.to_f64() }),
            _ => None,
        }
    }

    fn compute(&self, out: &Tensor, x: &Tensor) -> Result<()> {
        by_number(self.op, x, &Tensor::full(&[], self.number, DType::F64)?, out)
    }
}

impl Function<1> for ByNumber {
    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn backward_name(&self) -> &'static str {
        self.op.backward_name()
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([None::<&Tensor>]); // PyTorch keeps the number as a tensor.
        let out = x.uninit_beside(x.sizes(), x.dtype())?;
        self.compute(&out, x)?;
        Ok(out)
    }

    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(binary(self.op, grad, Operand::Scalar(Scalar::Float(self.number)))?)])
    }
}

/// Runs `op` on a tensor and an operand of any kind.
#[track_caller]
fn binary(op: Binary, a: &Tensor, b: Operand<'_>) -> Result<Tensor> {
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

#[track_caller]
fn binary_(op: Binary, target: &Tensor, other: Operand<'_>) -> Result<Tensor> {
    if let Some(by_number) = ByNumber::of(op, target, other) {
        let in_place = move || by_number.compute(target, target);
        let values = ops::NewValues::FromOld { others: &[], anew: &|old| ops::apply(by_number, [old]) };
        return ops::update(op.name(), target, values, in_place);
    }
    let result = op.result_type(target, other)?;
    // Not before it is known that the target may be written to: that is what PyTorch looks at first.
    let check = || check_in_place(target, other, result);
    let other = match other {
        Operand::Tensor(tensor) => tensor.clone(),
        Operand::Scalar(_) => other.to_tensor(result)?,
    };
    // In `x.mul_(&x)` the other operand is the old x too.
    let anew = |old: &Tensor| {
        check()?;
        ops::apply(op, [old, if other.is_same(target) { old } else { &other }])
    };
    ops::update(op.name(), target, ops::NewValues::FromOld { others: &[&other], anew: &anew }, || {
        check()?;
        if result == target.dtype() {
            return op.compute(target, target, &other);
        }
        let wide = target.uninit_beside(target.sizes(), result)?;
        op.compute(&wide, target, &other)?;
        ops::plain::write(target, &wide.to(target.dtype())?)
    })
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident, $in_place:ident => $op:ident;)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                    binary(Binary::$op, self, other.into())
                }

                #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") in place.")]
                #[track_caller]
                pub fn $in_place<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                    binary_(Binary::$op, self, other.into())
                }
            )*
        }
    };
}

binary! {
    /// `self + other`.
    add, add_ => Add;
    /// `self - other`.
    sub, sub_ => Sub;
    /// `self * other`.
    mul, mul_ => Mul;
    /// `self / other`; of integers too it is a float.
    div, div_ => Div;
    /// The larger of both; NaN if either is.
    maximum, maximum_ => Maximum;
    /// The smaller of both; NaN if either is.
    minimum, minimum_ => Minimum;
}
