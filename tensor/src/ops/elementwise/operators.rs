//! `+ - * /` and unary `-`, on tensors and numbers, and on results, so that `(&a + &b)? * &c` needs
//! only the `?` that Rust needs.
//!
//! Rust does not allow a crate to define an operator between two foreign types, so two results, or a
//! result and a number, have none: unwrap one with `?` first.

use std::borrow::Borrow;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::Operand;
use super::binary::Binary;
use crate::dtype::Scalar;
use crate::error::Result;
use crate::ops;
use crate::tensor::Tensor;

macro_rules! operator {
    ($Trait:ident, $operator:ident, $method:ident) => {
        operator!(@tensors $Trait, $operator, $method; &Tensor, &Tensor);
        operator!(@tensors $Trait, $operator, $method; &Tensor, Tensor);
        operator!(@tensors $Trait, $operator, $method; Tensor, &Tensor);
        operator!(@tensors $Trait, $operator, $method; Tensor, Tensor);
        operator!(@results $Trait, $operator; &Tensor);
        operator!(@results $Trait, $operator; Tensor);
        operator!(@numbers $Trait, $operator, $method; f64 i64);
    };
    (@tensors $Trait:ident, $operator:ident, $method:ident; $Left:ty, $Right:ty) => {
        impl $Trait<$Right> for $Left {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, other: $Right) -> Result<Tensor> {
                Tensor::$method(self.borrow(), Borrow::<Tensor>::borrow(&other))
            }
        }
    };
    (@results $Trait:ident, $operator:ident; $T:ty) => {
        impl $Trait<$T> for Result<Tensor> {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, other: $T) -> Result<Tensor> {
                $Trait::$operator(&self?, other)
            }
        }

        impl $Trait<Result<Tensor>> for $T {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, other: Result<Tensor>) -> Result<Tensor> {
                $Trait::$operator(self, &other?)
            }
        }
    };
    (@numbers $Trait:ident, $operator:ident, $method:ident; $($number:ty)*) => {$(
        impl $Trait<$number> for &Tensor {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, number: $number) -> Result<Tensor> {
                Tensor::$method(self, number)
            }
        }

        impl $Trait<$number> for Tensor {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, number: $number) -> Result<Tensor> {
                Tensor::$method(&self, number)
            }
        }

        impl $Trait<&Tensor> for $number {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, tensor: &Tensor) -> Result<Tensor> {
                Tensor::$method(&beside(Binary::$Trait, self.into(), tensor)?, tensor)
            }
        }

        impl $Trait<Tensor> for $number {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, tensor: Tensor) -> Result<Tensor> {
                Tensor::$method(&beside(Binary::$Trait, self.into(), &tensor)?, &tensor)
            }
        }
    )*};
}

operator!(Add, add, add);
operator!(Sub, sub, sub);
operator!(Mul, mul, mul);
operator!(Div, div, div);

/// A number as a 0-dim tensor of the type it has beside this tensor in this operation.
#[track_caller]
fn beside(operation: Binary, number: Scalar, tensor: &Tensor) -> Result<Tensor> {
    ops::shape::number(number, operation.result_type(tensor, Operand::Scalar(number))?)
}

impl Neg for &Tensor {
    type Output = Result<Tensor>;

    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}

impl Neg for Tensor {
    type Output = Result<Tensor>;

    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(&self)
    }
}
