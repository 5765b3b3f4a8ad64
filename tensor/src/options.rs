//! Keyword arguments: options that most calls leave out.

use crate::dtype::Scalar;
use crate::tensor::Tensor;
use half::{bf16, f16};

/// The last argument of a function, alone or paired with options: `A`, or `(A, O)`.
///
/// The options of a new tensor can also be a dtype, a device, or a tensor that provides both.
///
/// ```
/// use todevice::prelude::*;
///
/// let x = Tensor::zeros(&[2, 3])?;
/// let halves = Tensor::zeros((&[2, 3], DType::F16))?;
/// let like_halves = Tensor::ones((&[4], &halves))?;
///
/// let layer = nn::Linear::new(3, 4)?;
/// let without_bias = nn::Linear::new(3, (4, nn::LinearOptions { bias: false, ..Default::default() }))?;
/// # Ok::<(), todevice::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither `{A}` nor a pair of it and `{O}`",
    note = "leave the options out, or write them in a pair with the last argument: `(argument, Options {{ .., ..Default::default() }})`"
)]
pub trait AndOptions<A, O> {
    /// Returns the argument and the options, or the default options.
    #[doc(hidden)]
    fn split(self) -> (A, O);
}

/// The options of a function.
#[doc(hidden)]
pub trait Keywords: Default {}

impl<A, O: Keywords, S: AndOptions<A, O>> AndOptions<A, O> for (S, O) {
    fn split(self) -> (A, O) {
        (self.0.split().0, self.1)
    }
}

macro_rules! impl_and_options {
    ($($T:ty),*) => {$(
        impl<O: Default> $crate::options::AndOptions<$T, O> for $T {
            fn split(self) -> ($T, O) {
                (self, O::default())
            }
        }
    )*};
}
pub(crate) use impl_and_options;

impl_and_options!(usize);

impl<'a, O: Default> AndOptions<&'a str, O> for &'a str {
    fn split(self) -> (&'a str, O) {
        (self, O::default())
    }
}

impl<'a, O: Default> AndOptions<&'a [usize], O> for &'a [usize] {
    fn split(self) -> (&'a [usize], O) {
        (self, O::default())
    }
}

impl<'a, O: Default, const N: usize> AndOptions<&'a [usize], O> for &'a [usize; N] {
    fn split(self) -> (&'a [usize], O) {
        (self, O::default())
    }
}

impl<'a, O: Default> AndOptions<&'a [usize], O> for &'a Vec<usize> {
    fn split(self) -> (&'a [usize], O) {
        (self, O::default())
    }
}

impl<'a, O: Default> AndOptions<&'a [usize], O> for &'a &'a [usize] {
    fn split(self) -> (&'a [usize], O) {
        (self, O::default())
    }
}

impl<'a, O: Default> AndOptions<&'a Tensor, O> for &'a Tensor {
    fn split(self) -> (&'a Tensor, O) {
        (self, O::default())
    }
}

impl<'a, O: Default> AndOptions<&'a Tensor, O> for &'a &'a Tensor {
    fn split(self) -> (&'a Tensor, O) {
        (self, O::default())
    }
}

impl<'a, O: Default> AndOptions<Option<&'a Tensor>, O> for Option<&'a Tensor> {
    fn split(self) -> (Option<&'a Tensor>, O) {
        (self, O::default())
    }
}

/// For a number that fills a tensor, or bounds or steps a range.
macro_rules! impl_and_options_for_numbers {
    ($($Number:ty),*) => {$(
        impl<O: Default> AndOptions<Scalar, O> for $Number {
            fn split(self) -> (Scalar, O) {
                (self.into(), O::default())
            }
        }
    )*};
}
impl_and_options_for_numbers!(Scalar, bool, u8, i32, i64, f16, bf16, f32, f64);

/// Pairs an argument with anything that converts into the options of a new tensor.
macro_rules! impl_and_options_for_pairs {
    ($([$($generic:tt)*] $Argument:ty, $Options:ty;)*) => {$(
        impl<$($generic)* S, P: Into<$Options>> $crate::options::AndOptions<$Argument, $Options> for (S, P)
        where
            S: $crate::options::AndOptions<$Argument, $Options>,
        {
            fn split(self) -> ($Argument, $Options) {
                (self.0.split().0, self.1.into())
            }
        }
    )*};
}
pub(crate) use impl_and_options_for_pairs;
