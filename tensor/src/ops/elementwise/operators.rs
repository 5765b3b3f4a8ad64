//! The operators `+ - * /` and unary `-`, on tensors, numbers and results, so `(&a + &b)? * &c` needs a single `?`.
//! Rust allows no operator between two foreign types, so two results, or a result and a number, need a `?` first.

use std::borrow::Borrow;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::Operand;
use super::binary::SUB;
use crate::autograd::{Context, Function, Saved};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::ops::{self, Operation, operations};
use crate::tensor::Tensor;

macro_rules! operator {
    ($Trait:ident, $operator:ident, $method:ident, $number_first:ident) => {
        operator!(@tensors $Trait, $operator, $method; &Tensor, &Tensor);
        operator!(@tensors $Trait, $operator, $method; &Tensor, Tensor);
        operator!(@tensors $Trait, $operator, $method; Tensor, &Tensor);
        operator!(@tensors $Trait, $operator, $method; Tensor, Tensor);
        operator!(@results $Trait, $operator; &Tensor);
        operator!(@results $Trait, $operator; Tensor);
        operator!(@numbers $Trait, $operator, $method, $number_first; f64 i64);
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
    (@numbers $Trait:ident, $operator:ident, $method:ident, $number_first:ident; $($number:ty)*) => {$(
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
                $number_first(self.into(), tensor)
            }
        }

        impl $Trait<Tensor> for $number {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $operator(self, tensor: Tensor) -> Result<Tensor> {
                $number_first(self.into(), &tensor)
            }
        }
    )*};
}

operator!(Add, add, add, number_and);
operator!(Sub, sub, sub, number_less);
operator!(Mul, mul, mul, number_times);
operator!(Div, div, div, number_over);

// `number ∘ tensor`, as in Python: `2 * x` is `x * 2`, and `2 / x` is `x.reciprocal() * 2`.

#[track_caller]
fn number_and(number: Scalar, x: &Tensor) -> Result<Tensor> {
    x.add(number)
}

#[track_caller]
fn number_times(number: Scalar, x: &Tensor) -> Result<Tensor> {
    x.mul(number)
}

#[track_caller]
fn number_over(number: Scalar, x: &Tensor) -> Result<Tensor> {
    Tensor::mul(&x.reciprocal()?, number)
}

#[track_caller]
fn number_less(number: Scalar, x: &Tensor) -> Result<Tensor> {
    let dtype = SUB.result_type(x, Operand::Scalar(number))?;
    ops::apply(NumberLess { number: ops::plain::number(number, dtype)? }, [x])
}

operations! {
    RSUB: Operation::new("rsub").node("RsubBackward1");
}

/// A number minus a tensor, a separate operation in PyTorch.
struct NumberLess {
    number: Tensor,
}

impl Function<1> for NumberLess {
    fn operation(&self) -> &'static Operation {
        &RSUB
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        Tensor::sub(&self.number, x)
    }

    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.neg()?)])
    }
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
