use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};

use crate::dtype::Element;

/// Arithmetic with the rules of tensors: integers wrap around, and a NaN operand of `max` or `min` wins.
pub(crate) trait Number: Copy {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn negative(self) -> Self;
    fn absolute(self) -> Self;
    /// Unlike the `signum` of floats, this is 0 at 0.
    fn sign(self) -> Self;
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
            #[allow(unused_comparisons)] // Always false for u8.
            fn absolute(self) -> $T { if self < 0 { self.wrapping_neg() } else { self } }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn sign(self) -> $T { (self > 0) as $T - (self < 0) as $T }
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
        }
    )*};
}
floats!(f32, f64);

/// The operations of `relu`. They work on the bits of half types, without a conversion.
pub(crate) trait Rectified {
    /// The number, or 0 if it is negative. A NaN stays.
    fn rectified(self) -> Self;
    /// `self`, or 0 where `result` is 0 or negative.
    fn where_rectified(self, result: Self) -> Self;
}

macro_rules! rectified {
    ($($T:ty),*) => {$(
        impl Rectified for $T {
            #[inline(always)]
            #[allow(unused_comparisons)] // Always false for u8.
            fn rectified(self) -> $T { if self < <$T>::zeroed() { <$T>::zeroed() } else { self } }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn where_rectified(self, result: $T) -> $T { if result <= <$T>::zeroed() { <$T>::zeroed() } else { self } }
        }
    )*};
}
rectified!(f32, f64, i64, i32, u8);

macro_rules! rectified_halves {
    ($($T:ty),*) => {$(
        impl Rectified for $T {
            #[inline(always)]
            fn rectified(self) -> $T {
                // The bits from just below -0 to minus infinity. NaNs are beyond.
                let is_below = self.to_bits().wrapping_sub(0x8001) < <$T>::INFINITY.to_bits();
                if is_below { <$T>::ZERO } else { self }
            }
            #[inline(always)]
            fn where_rectified(self, result: $T) -> $T {
                let bits = result.to_bits();
                let is_below = bits.wrapping_sub(0x8000) <= <$T>::INFINITY.to_bits();
                if is_below | (bits == 0) { <$T>::ZERO } else { self }
            }
        }
    )*};
}
rectified_halves!(f16, bf16);

/// Operations of floats only: division, and the functions of [`math`](super::math). Also allows ordinary operators.
pub(crate) trait Float:
    Number
    + Element
    + Pod
    + PartialOrd
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
{
    fn zero() -> Self;
    fn lowest() -> Self;
    fn count(elements: usize) -> Self;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn root(self) -> Self;
    /// Computes `self · factor + addend`, rounded once.
    fn fused(self, factor: Self, addend: Self) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sin_all(angles: &[Self], out: &mut [Self]);
    fn cos_all(angles: &[Self], out: &mut [Self]);
    fn cos(self) -> Self;
    fn tanh(self) -> Self;
    fn sigmoid(self) -> Self;
    fn pow(self, exponent: Self) -> Self;
    fn normal_cdf(self) -> Self;
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
            fn count(elements: usize) -> $T {
                elements as $T
            }
            #[inline(always)]
            fn from_f64(value: f64) -> $T {
                value as $T
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn root(self) -> $T {
                self.sqrt()
            }
            #[inline(always)]
            fn fused(self, factor: $T, addend: $T) -> $T {
                use $math as math;
                math::mul_add(self, factor, addend)
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
            fn cos(self) -> $T {
                use $math as math;
                math::cos(self)
            }
            fn sin_all(angles: &[$T], out: &mut [$T]) {
                use $math as math;
                math::sin_all(angles, out);
            }
            fn cos_all(angles: &[$T], out: &mut [$T]) {
                use $math as math;
                math::cos_all(angles, out);
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
            #[inline(always)]
            fn normal_cdf(self) -> $T {
                use $math as math;
                math::normal_cdf(self)
            }
        }
    };
}
float!(f32, super::math);
float!(f64, super::math::double);
