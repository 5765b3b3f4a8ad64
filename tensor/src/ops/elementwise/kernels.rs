//! The elementwise kernels: which one computes what, and for which types.

use super::binary::Binary;
use super::compare::Compare;
use super::convert::cast;
use super::unary::Unary;
use crate::cpu::blocks::elementwise;
use crate::cpu::half::InHalves;
use crate::cpu::number::{Float, Number};
use crate::dtype::{DType, with_dtype, with_float, with_math};
use crate::error::Result;
use crate::error::dtype::not_implemented;
use crate::kernel::{FLOATS, KernelDef, NUMBERS};
use crate::ops::launch::launch;
use crate::ops::plain::copy_kernel;
use crate::tensor::Tensor;

pub(super) fn unary(op: Unary, x: &Tensor, out: &Tensor) -> Result<()> {
    launch(unary_kernel(op, x.dtype())?, [x], [out], &[], &[])
}

fn unary_kernel(op: Unary, dtype: DType) -> Result<&'static KernelDef> {
    let kernel = match op {
        Unary::Neg => with_math!(dtype, T => elementwise!("neg"<T>, Cheap, |x: T| -> T { x.negative() })),
        Unary::Abs => with_math!(dtype, T => elementwise!("abs"<T>, Cheap, |x: T| -> T { x.absolute() })),
        Unary::Sign => with_math!(dtype, T => elementwise!("sign"<T>, Cheap, |x: T| -> T { x.sign() })),
        Unary::Square => {
            with_math!(dtype, T => elementwise!("square"<T>, Cheap, |x: T| -> T { x.times(x) }))
        }
        Unary::Relu => with_math!(dtype, T => elementwise!("relu"<T>, Cheap, |x: T| -> T { x.rectified() })),
        // Whole numbers are their own rounding.
        Unary::Floor | Unary::Ceil | Unary::Round if !dtype.is_floating_point() => copy_kernel(dtype)?,
        _ => with_float!(dtype, T => match op {
            Unary::Floor => elementwise!("floor"<T>, Cheap, |x: T| -> T { x.floor() }),
            Unary::Ceil => elementwise!("ceil"<T>, Cheap, |x: T| -> T { x.ceil() }),
            Unary::Round => elementwise!("round"<T>, Cheap, |x: T| -> T { x.round_ties_even() }),
            Unary::Sqrt => elementwise!("sqrt"<T>, Costly, |x: T| -> T { x.sqrt() }),
            Unary::Rsqrt => elementwise!("rsqrt"<T>, Costly, |x: T| -> T { 1.0 / x.sqrt() }),
            Unary::Reciprocal => elementwise!("reciprocal"<T>, Costly, |x: T| -> T { 1.0 / x }),
            Unary::Exp => elementwise!("exp"<T>, Costly, |x: T| -> T { Float::exp(x) }),
            Unary::Log => elementwise!("log"<T>, Costly, |x: T| -> T { Float::ln(x) }),
            Unary::Sin => elementwise!("sin"<T>, Costly, |x: T| -> T { Float::sin(x) }),
            Unary::Cos => elementwise!("cos"<T>, Costly, |x: T| -> T { Float::cos(x) }),
            Unary::Tanh => elementwise!("tanh"<T>, Costly, |x: T| -> T { Float::tanh(x) }),
            Unary::Sigmoid => elementwise!("sigmoid"<T>, Costly, |x: T| -> T { Float::sigmoid(x) }),
            Unary::Neg | Unary::Abs | Unary::Sign | Unary::Square | Unary::Relu => unreachable!("done above"),
        }, else return Err(not_implemented("unary", dtype))),
    };
    Ok(kernel.storing(dtype))
}

/// Every kernel of this file.
pub(crate) fn every_kernel() -> Vec<&'static KernelDef> {
    use {Binary::*, Compare::*, Unary::*};
    let mut kernels: Vec<&KernelDef> = Vec::new();
    for dtype in NUMBERS {
        kernels.extend([Neg, Abs, Sign, Square, Relu].into_iter().flat_map(|op| unary_kernel(op, dtype)));
        kernels.extend([Add, Sub, Mul, Maximum, Minimum].into_iter().flat_map(|op| binary_kernel(op, dtype)));
        kernels.extend([Eq, Ne, Lt, Le, Gt, Ge].into_iter().flat_map(|op| compare_kernel(op, dtype)));
        let choices = [where_kernel(dtype), clamp_kernel(dtype)];
        kernels.extend([copy_kernel(dtype), cast(dtype, DType::Bool)].into_iter().chain(choices).flatten());
        // A truth counts as 0 or 1, so it is converted to u8 too.
        let from_truth = dtype == DType::U8;
        let others = NUMBERS.into_iter().filter(|to| *to != dtype || from_truth);
        kernels.extend(others.flat_map(|to| cast(dtype, to)));
    }
    for dtype in FLOATS {
        let roundings = [Floor, Ceil, Round, Sqrt, Rsqrt, Reciprocal];
        let functions = [Exp, Log, Sin, Cos, Tanh, Sigmoid];
        kernels.extend(roundings.into_iter().chain(functions).flat_map(|op| unary_kernel(op, dtype)));
        kernels.extend([binary_kernel(Div, dtype), pow_kernel(dtype)].into_iter().flatten());
        if dtype.is_half() {
            kernels.extend([Mul, Div].into_iter().flat_map(|op| by_number_kernel(op, dtype)));
        }
        let gradients = [Gradient::Relu, Gradient::Tanh, Gradient::Sigmoid];
        kernels.extend(gradients.into_iter().flat_map(|gradient| gradient_kernel(gradient, dtype)));
    }
    kernels.extend(super::gelu::every_kernel());
    kernels
}

pub(super) fn binary(op: Binary, a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    launch(binary_kernel(op, out.dtype())?, [a, b], [out], &[], &[])
}

fn binary_kernel(op: Binary, dtype: DType) -> Result<&'static KernelDef> {
    let op = match (op, dtype) {
        // Truth values are 0 and 1, and stay so: their sum is "or", their product is "and".
        (Binary::Add, DType::Bool) => Binary::Maximum,
        (Binary::Mul, DType::Bool) => Binary::Minimum,
        (op, _) => op,
    };
    if op == Binary::Div {
        return with_float!(dtype,
            T => Ok(elementwise!("div"<T>, Costly, |a: T, b: T| -> T { a / b }).storing(dtype)),
            else Err(not_implemented("div", dtype)));
    }
    let kernel = with_math!(dtype, T => match op {
        Binary::Add => elementwise!("add"<T>, Cheap, |a: T, b: T| -> T { a.plus(b) }),
        Binary::Sub => elementwise!("sub"<T>, Cheap, |a: T, b: T| -> T { a.minus(b) }),
        Binary::Mul => elementwise!("mul"<T>, Cheap, |a: T, b: T| -> T { a.times(b) }),
        Binary::Maximum => elementwise!("maximum"<T>, Cheap, |a: T, b: T| -> T { a.larger(b) }),
        Binary::Minimum => elementwise!("minimum"<T>, Cheap, |a: T, b: T| -> T { a.smaller(b) }),
        Binary::Div => unreachable!("done above"),
    });
    Ok(kernel.storing(dtype))
}

/// A tensor of halves by a number, an f64 that is not rounded to a half first: so much more PyTorch does for products
/// and quotients, and only for these.
pub(super) fn by_number(op: Binary, x: &Tensor, number: &Tensor, out: &Tensor) -> Result<()> {
    launch(by_number_kernel(op, x.dtype())?, [x, number], [out], &[], &[])
}

fn by_number_kernel(op: Binary, dtype: DType) -> Result<&'static KernelDef> {
    let kernel = match op {
        Binary::Mul => elementwise!("mul_number"<f32>, Cheap, |x: f32, n: f64| -> f32 { x * n as f32 }),
        Binary::Div => elementwise!("div_number"<f32>, Costly, |x: f32, n: f64| -> f32 { x / n as f32 }),
        _ => return Err(not_implemented("by_number", dtype)),
    };
    Ok(kernel.storing(dtype))
}

/// `a` and `b` have one type; the result is bool.
pub(super) fn compare(op: Compare, a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    launch(compare_kernel(op, a.dtype())?, [a, b], [out], &[], &[])
}

fn compare_kernel(op: Compare, dtype: DType) -> Result<&'static KernelDef> {
    let kernel = with_math!(dtype, T => match op {
        Compare::Eq => elementwise!("eq"<T>, Cheap, |a: T, b: T| -> u8 { (a == b) as u8 }),
        Compare::Ne => elementwise!("ne"<T>, Cheap, |a: T, b: T| -> u8 { (a != b) as u8 }),
        Compare::Lt => elementwise!("lt"<T>, Cheap, |a: T, b: T| -> u8 { (a < b) as u8 }),
        Compare::Le => elementwise!("le"<T>, Cheap, |a: T, b: T| -> u8 { (a <= b) as u8 }),
        Compare::Gt => elementwise!("gt"<T>, Cheap, |a: T, b: T| -> u8 { (a > b) as u8 }),
        Compare::Ge => elementwise!("ge"<T>, Cheap, |a: T, b: T| -> u8 { (a >= b) as u8 }),
    });
    Ok(kernel.storing(dtype))
}

pub(super) fn where_cond(condition: &Tensor, a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    launch(where_kernel(out.dtype())?, [condition, a, b], [out], &[], &[])
}

fn where_kernel(dtype: DType) -> Result<&'static KernelDef> {
    Ok(with_dtype!(dtype,
        T => elementwise!("where"<T>, Cheap, |c: u8, a: T, b: T| -> T { if c != 0 { a } else { b } })))
}

pub(super) fn clamp(x: &Tensor, low: &Tensor, high: &Tensor, out: &Tensor) -> Result<()> {
    launch(clamp_kernel(out.dtype())?, [x, low, high], [out], &[], &[])
}

/// Comparisons written so that a NaN element stays NaN.
fn clamp_kernel(dtype: DType) -> Result<&'static KernelDef> {
    Ok(with_math!(dtype, T => elementwise!("clamp"<T>, Cheap, |x: T, low: T, high: T| -> T {{
        let x = if x < low { low } else { x };
        if x > high { high } else { x }
    }}))
    .storing(dtype))
}

pub(super) fn pow(x: &Tensor, exponent: &Tensor, out: &Tensor) -> Result<()> {
    launch(pow_kernel(out.dtype())?, [x, exponent], [out], &[], &[])
}

fn pow_kernel(dtype: DType) -> Result<&'static KernelDef> {
    with_float!(dtype,
        T => Ok(elementwise!("pow"<T>, Costly, |x: T, n: T| -> T { Float::pow(x, n) }).storing(dtype)),
        else Err(not_implemented("pow", dtype)))
}

/// The gradients of activations, from the gradient in the result and the result itself.
#[derive(Clone, Copy)]
pub(super) enum Gradient {
    Relu,
    Tanh,
    Sigmoid,
}

impl Gradient {
    pub(super) fn name(self) -> &'static str {
        match self {
            Gradient::Relu => "threshold_backward",
            Gradient::Tanh => "tanh_backward",
            Gradient::Sigmoid => "sigmoid_backward",
        }
    }
}

pub(super) fn gradient(gradient: Gradient, grad: &Tensor, y: &Tensor, out: &Tensor) -> Result<()> {
    launch(gradient_kernel(gradient, out.dtype())?, [grad, y], [out], &[], &[])
}

fn gradient_kernel(gradient: Gradient, dtype: DType) -> Result<&'static KernelDef> {
    with_float!(dtype, T => Ok(match gradient {
        // A NaN result passes its gradient on, so that the trouble stays visible.
        Gradient::Relu => elementwise!("relu_backward"<T>, Cheap,
            |g: T, y: T| -> T { if y <= 0.0 { 0.0 } else { g } }),
        Gradient::Tanh => elementwise!("tanh_backward"<T>, Cheap,
            |g: T, y: T| -> T { g * (1.0 - y * y) }),
        Gradient::Sigmoid => elementwise!("sigmoid_backward"<T>, Cheap,
            |g: T, y: T| -> T { g * ((1.0 - y) * y) }),
    }
    .storing(dtype)), else Err(not_implemented(gradient.name(), dtype)))
}
