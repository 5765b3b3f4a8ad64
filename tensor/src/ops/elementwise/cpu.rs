//! The elementwise kernels on the host.

use super::binary::Binary;
use super::blocks::{Cost, map1, map2, map3};
use super::compare::Compare;
use super::unary::Unary;
use crate::dtype::{DType, with_dtype, with_float};
use crate::error::{Error, Result};
use crate::ops::simd::kernel;
use crate::tensor::Tensor;

/// Arithmetic as tensors do it: integers wrap around, floats follow IEEE 754, a NaN operand of
/// `max` or `min` stays NaN.
pub(crate) trait Number: Copy {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn negative(self) -> Self;
    fn absolute(self) -> Self;
    /// Not `signum`: floats have one of their own, which is 1 at 0.
    fn sign(self) -> Self;
    fn rectified(self) -> Self;
}

macro_rules! integers {
    ($($T:ty),*) => {$(
        impl Number for $T {
            #[inline(always)]
            fn plus(self, other: $T) -> $T { self.wrapping_add(other) }
            #[inline(always)]
            fn minus(self, other: $T) -> $T { self.wrapping_sub(other) }
            #[inline(always)]
            fn times(self, other: $T) -> $T { self.wrapping_mul(other) }
            #[inline(always)]
            fn larger(self, other: $T) -> $T { self.max(other) }
            #[inline(always)]
            fn smaller(self, other: $T) -> $T { self.min(other) }
            #[inline(always)]
            fn negative(self) -> $T { self.wrapping_neg() }
            #[inline(always)]
            #[allow(unused_comparisons)] // u8 is one of them.
            fn absolute(self) -> $T { if self < 0 { self.wrapping_neg() } else { self } }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn sign(self) -> $T { (self > 0) as $T - (self < 0) as $T }
            #[inline(always)]
            fn rectified(self) -> $T { self.max(0) }
        }
    )*};
}
integers!(i64, i32, u8);

macro_rules! floats {
    ($($T:ty),*) => {$(
        impl Number for $T {
            #[inline(always)]
            fn plus(self, other: $T) -> $T { self + other }
            #[inline(always)]
            fn minus(self, other: $T) -> $T { self - other }
            #[inline(always)]
            fn times(self, other: $T) -> $T { self * other }
            #[inline(always)]
            fn larger(self, other: $T) -> $T { if self > other || self.is_nan() { self } else { other } }
            #[inline(always)]
            fn smaller(self, other: $T) -> $T { if self < other || self.is_nan() { self } else { other } }
            #[inline(always)]
            fn negative(self) -> $T { -self }
            #[inline(always)]
            fn absolute(self) -> $T { self.abs() }
            #[inline(always)]
            fn sign(self) -> $T { (self > 0.0) as u8 as $T - (self < 0.0) as u8 as $T }
            #[inline(always)]
            fn rectified(self) -> $T { if self < 0.0 { 0.0 } else { self } }
        }
    )*};
}
floats!(f32, f64);

/// What only floats can: division, and the transcendental functions of [`math`].
pub(crate) trait Float: Number {
    fn zero() -> Self;
    fn lowest() -> Self;
    fn over(self, other: Self) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tanh(self) -> Self;
    fn sigmoid(self) -> Self;
    fn pow(self, exponent: Self) -> Self;
}

macro_rules! float {
    ($T:ty, $math:path) => {
        impl Float for $T {
            #[inline(always)]
            fn zero() -> $T {
                0.0
            }
            #[inline(always)]
            fn lowest() -> $T {
                <$T>::NEG_INFINITY
            }
            #[inline(always)]
            fn over(self, other: $T) -> $T {
                self / other
            }
            #[inline(always)]
            fn exp(self) -> $T {
                use $math as math;
                math::exp(self)
            }
            #[inline(always)]
            fn ln(self) -> $T {
                use $math as math;
                math::ln(self)
            }
            #[inline(always)]
            fn sin(self) -> $T {
                use $math as math;
                math::sin(self)
            }
            #[inline(always)]
            fn cos(self) -> $T {
                use $math as math;
                math::cos(self)
            }
            #[inline(always)]
            fn tanh(self) -> $T {
                use $math as math;
                math::tanh(self)
            }
            #[inline(always)]
            fn sigmoid(self) -> $T {
                use $math as math;
                math::sigmoid(self)
            }
            #[inline(always)]
            fn pow(self, exponent: $T) -> $T {
                use $math as math;
                math::powf(self, exponent)
            }
        }
    };
}
float!(f32, super::math);
float!(f64, super::math::double);

pub(super) fn unary(op: Unary, x: &Tensor, out: &Tensor) -> Result<()> {
    use Cost::{Cheap, Costly};
    match op {
        Unary::Neg => {
            with_dtype!(x.dtype(), T => map1([x], out, Cheap, kernel!(|x: T| -> T { x.negative() })))
        }
        Unary::Abs => {
            with_dtype!(x.dtype(), T => map1([x], out, Cheap, kernel!(|x: T| -> T { x.absolute() })))
        }
        Unary::Sign => {
            with_dtype!(x.dtype(), T => map1([x], out, Cheap, kernel!(|x: T| -> T { x.sign() })))
        }
        Unary::Square => {
            with_dtype!(x.dtype(), T => map1([x], out, Cheap, kernel!(|x: T| -> T { x.times(x) })))
        }
        Unary::Relu => {
            with_dtype!(x.dtype(), T => map1([x], out, Cheap, kernel!(|x: T| -> T { x.rectified() })))
        }
        // Whole numbers are their own rounding.
        Unary::Floor | Unary::Ceil | Unary::Round if !x.dtype().is_floating_point() => {
            with_dtype!(x.dtype(), T => map1([x], out, Cheap, kernel!(|x: T| -> T { x })))
        }
        _ => with_float!(x.dtype(), T => match op {
            Unary::Floor => map1([x], out, Cheap, kernel!(|x: T| -> T { x.floor() })),
            Unary::Ceil => map1([x], out, Cheap, kernel!(|x: T| -> T { x.ceil() })),
            Unary::Round => map1([x], out, Cheap, kernel!(|x: T| -> T { x.round_ties_even() })),
            Unary::Sqrt => map1([x], out, Costly, kernel!(|x: T| -> T { x.sqrt() })),
            Unary::Rsqrt => map1([x], out, Costly, kernel!(|x: T| -> T { 1.0 / x.sqrt() })),
            Unary::Reciprocal => map1([x], out, Costly, kernel!(|x: T| -> T { 1.0 / x })),
            Unary::Exp => map1([x], out, Costly, kernel!(|x: T| -> T { Float::exp(x) })),
            Unary::Log => map1([x], out, Costly, kernel!(|x: T| -> T { Float::ln(x) })),
            Unary::Sin => map1([x], out, Costly, kernel!(|x: T| -> T { Float::sin(x) })),
            Unary::Cos => map1([x], out, Costly, kernel!(|x: T| -> T { Float::cos(x) })),
            Unary::Tanh => map1([x], out, Costly, kernel!(|x: T| -> T { Float::tanh(x) })),
            Unary::Sigmoid => map1([x], out, Costly, kernel!(|x: T| -> T { Float::sigmoid(x) })),
            Unary::Neg | Unary::Abs | Unary::Sign | Unary::Square | Unary::Relu => unreachable!("done above"),
        }, else Err(Error::NotImplemented { operation: "unary", dtype: x.dtype() })),
    }
}

pub(super) fn binary(op: Binary, a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    use Cost::{Cheap, Costly};
    let op = match (op, out.dtype()) {
        // Truth values are 0 and 1, and stay so: their sum is "or", their product is "and".
        (Binary::Add, DType::Bool) => Binary::Maximum,
        (Binary::Mul, DType::Bool) => Binary::Minimum,
        (op, _) => op,
    };
    if op == Binary::Div {
        return with_float!(out.dtype(),
            T => map2([a, b], out, Costly, kernel!(|a: T, b: T| -> T { a / b })),
            else Err(Error::NotImplemented { operation: "div", dtype: out.dtype() }));
    }
    with_dtype!(out.dtype(), T => match op {
        Binary::Add => map2([a, b], out, Cheap, kernel!(|a: T, b: T| -> T { a.plus(b) })),
        Binary::Sub => map2([a, b], out, Cheap, kernel!(|a: T, b: T| -> T { a.minus(b) })),
        Binary::Mul => map2([a, b], out, Cheap, kernel!(|a: T, b: T| -> T { a.times(b) })),
        Binary::Maximum => map2([a, b], out, Cheap, kernel!(|a: T, b: T| -> T { a.larger(b) })),
        Binary::Minimum => map2([a, b], out, Cheap, kernel!(|a: T, b: T| -> T { a.smaller(b) })),
        Binary::Div => unreachable!("done above"),
    })
}

/// `a` and `b` have one type; the result is bool.
pub(super) fn compare(op: Compare, a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    with_dtype!(a.dtype(), T => match op {
        Compare::Eq => map2([a, b], out, Cost::Cheap, kernel!(|a: T, b: T| -> u8 { (a == b) as u8 })),
        Compare::Ne => map2([a, b], out, Cost::Cheap, kernel!(|a: T, b: T| -> u8 { (a != b) as u8 })),
        Compare::Lt => map2([a, b], out, Cost::Cheap, kernel!(|a: T, b: T| -> u8 { (a < b) as u8 })),
        Compare::Le => map2([a, b], out, Cost::Cheap, kernel!(|a: T, b: T| -> u8 { (a <= b) as u8 })),
        Compare::Gt => map2([a, b], out, Cost::Cheap, kernel!(|a: T, b: T| -> u8 { (a > b) as u8 })),
        Compare::Ge => map2([a, b], out, Cost::Cheap, kernel!(|a: T, b: T| -> u8 { (a >= b) as u8 })),
    })
}

pub(super) fn where_cond(condition: &Tensor, a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    with_dtype!(out.dtype(), T => {
        let kernel = kernel!(|c: u8, a: T, b: T| -> T { if c != 0 { a } else { b } });
        map3([condition, a, b], out, Cost::Cheap, kernel)
    })
}

/// Comparisons written so that a NaN element stays NaN.
pub(super) fn clamp(x: &Tensor, low: &Tensor, high: &Tensor, out: &Tensor) -> Result<()> {
    with_float!(out.dtype(), T => {
        let kernel = kernel!(|x: T, low: T, high: T| -> T {{
            let x = if x < low { low } else { x };
            if x > high { high } else { x }
        }});
        map3([x, low, high], out, Cost::Cheap, kernel)
    }, else Err(Error::NotImplemented { operation: "clamp", dtype: out.dtype() }))
}

pub(super) fn pow(x: &Tensor, exponent: &Tensor, out: &Tensor) -> Result<()> {
    with_float!(out.dtype(),
        T => map2([x, exponent], out, Cost::Costly, kernel!(|x: T, n: T| -> T { Float::pow(x, n) })),
        else Err(Error::NotImplemented { operation: "pow", dtype: out.dtype() }))
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
    with_float!(out.dtype(), T => match gradient {
        Gradient::Relu => {
            // A NaN result passes its gradient on, so that the trouble stays visible.
            map2([grad, y], out, Cost::Cheap, kernel!(|g: T, y: T| -> T { if y <= 0.0 { 0.0 } else { g } }))
        }
        Gradient::Tanh => {
            map2([grad, y], out, Cost::Cheap, kernel!(|g: T, y: T| -> T { g * (1.0 - y * y) }))
        }
        Gradient::Sigmoid => {
            map2([grad, y], out, Cost::Cheap, kernel!(|g: T, y: T| -> T { g * ((1.0 - y) * y) }))
        }
    }, else Err(Error::NotImplemented { operation: gradient.name(), dtype: out.dtype() }))
}
