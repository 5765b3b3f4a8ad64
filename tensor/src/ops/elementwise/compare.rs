//! Comparisons, whose bool results have no gradient.

use std::panic::Location;

use super::Operand;
use super::error::ElementwiseError;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::launch::launch;
use crate::ops::row::{FusedOp, row, table};
use crate::ops::{self, ArgumentNames};
use crate::scope;
use crate::tensor::Tensor;

#[track_caller]
fn compare(comparison: &'static FusedOp, a: &Tensor, b: Operand<'_>) -> Result<Tensor> {
    compare_like(comparison, a, b, |operands| Tensor::uninit_result(operands, DType::Bool))
}

#[track_caller]
fn compare_like(
    comparison: &'static FusedOp,
    a: &Tensor,
    b: Operand<'_>,
    result: fn(&[&Tensor]) -> Result<Tensor>,
) -> Result<Tensor> {
    let dtype = b.result_type(a);
    let b = b.to_tensor(dtype)?;
    ops::call(&comparison.operation, &[a, &b], |_| {
        let out = result(&[a, &b])?;
        launch(comparison.kernel.of(dtype)?, [&a.to(dtype)?, &b], [&out], &[], &[])?;
        Ok(out)
    })
}

/// Declares comparisons with their methods.
///
/// `fn eq => static EQ: FusedOp = …;` declares the static and
/// `impl Tensor { pub fn eq(&self, other: impl Into<Operand>) -> Result<Tensor> { compare(&EQ, self, other.into()) } }`.
macro_rules! compare {
    ($($(#[$doc:meta])* fn $name:ident => static $NAME:ident: FusedOp = $op:expr;)*) => {
        table! { $(static $NAME: FusedOp = $op;)* }

        impl Tensor {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                    compare(&$NAME, self, other.into())
                }
            )*
        }
    };
}

compare! {
    /// Compares `self == other` element by element.
    fn eq => static EQ: FusedOp = FusedOp::new(row! {
        name: "eq", types: numbers, cost: Cheap,
        element: |a: T, b: T| -> u8 { (a == b) as u8 },
    });
    /// Compares `self != other`. NaN differs from everything, even from NaN.
    fn ne => static NE: FusedOp = FusedOp::new(row! {
        name: "ne", types: numbers, cost: Cheap,
        element: |a: T, b: T| -> u8 { (a != b) as u8 },
    });
    /// Compares `self < other`.
    fn lt => static LT: FusedOp = FusedOp::new(row! {
        name: "lt", types: numbers, cost: Cheap,
        element: |a: T, b: T| -> u8 { (a < b) as u8 },
    });
    /// Compares `self <= other`.
    fn le => static LE: FusedOp = FusedOp::new(row! {
        name: "le", types: numbers, cost: Cheap,
        element: |a: T, b: T| -> u8 { (a <= b) as u8 },
    });
    /// Compares `self > other`.
    fn gt => static GT: FusedOp = FusedOp::new(row! {
        name: "gt", types: numbers, cost: Cheap,
        element: |a: T, b: T| -> u8 { (a > b) as u8 },
    });
    /// Compares `self >= other`.
    fn ge => static GE: FusedOp = FusedOp::new(row! {
        name: "ge", types: numbers, cost: Cheap,
        element: |a: T, b: T| -> u8 { (a >= b) as u8 },
    });
}

impl Tensor {
    /// Tests each element for zero or false.
    #[track_caller]
    pub fn logical_not(&self) -> Result<Tensor> {
        compare_like(&EQ, self, 0.into(), |operands| Tensor::uninit_result(&operands[..1], DType::Bool))
    }

    /// Tests each element for NaN.
    #[track_caller]
    pub fn isnan(&self) -> Result<Tensor> {
        self.ne(self)
    }

    /// Returns whether both tensors have the same shape and values (`torch.equal`).
    #[track_caller]
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        let _scope = scope::operation("equal", Location::caller());
        let arguments = ArgumentNames { method: "wrapper_CUDA__equal", names: &["self", "other"] };
        ops::same_device("equal", Some(arguments), &[self, other])?;
        Ok(self.sizes() == other.sizes() && self.eq(other)?.all()?.is_nonzero()?)
    }

    /// Tests whether elements, after broadcasting, are equal, or finite and at most `atol + rtol·|other|` apart
    /// (`torch.isclose`; its defaults are 1e-5 and 1e-8). NaN is close to nothing. Integers and bools are compared as
    /// f32, or exactly if both tolerances are 0.
    ///
    /// Errors if the dtypes differ, the shapes do not broadcast, or a tolerance is negative.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let (x, y) = (Tensor::new([1.0, 2.0, f32::INFINITY])?, Tensor::new([1.1, 2.1, f32::INFINITY])?);
    /// assert_eq!(x.isclose(&y, 0.06, 0.0)?.to_vec::<bool>()?, [false, true, true]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn isclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Result<Tensor> {
        if self.dtype() != other.dtype() {
            let [a, b] = [self, other].map(|tensor| tensor.dtype().scalar_type());
            return Err(Error::custom(format!("{a} did not match {b}")));
        }
        for (name, got) in [("rtol", rtol), ("atol", atol)] {
            if got < 0.0 || got.is_nan() {
                return Err(ElementwiseError::Tolerance { name, got }.into());
            }
        }
        let equal = self.eq(other)?;
        if rtol == 0.0 && atol == 0.0 {
            return Ok(equal);
        }
        // Not recorded, because bools have no gradient.
        let [x, other] = [in_floats(self)?, in_floats(other)?];
        let difference = x.sub(&other)?.abs()?;
        let allowed = other.mul(rtol)?.abs()?.add(atol)?;
        // Unequal infinities are not close.
        let close = difference.le(&allowed)?.mul(&difference.lt(f64::INFINITY)?)?;
        close.maximum(&equal)
    }

    /// Tests whether all elements are close, as in [`isclose`](Self::isclose) (`torch.allclose`; same defaults).
    #[track_caller]
    pub fn allclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Result<bool> {
        self.isclose(other, rtol, atol)?.all()?.is_nonzero()
    }
}

/// Returns the elements as floats, whose differences may be negative, without recording the conversion.
#[track_caller]
fn in_floats(x: &Tensor) -> Result<Tensor> {
    let dtype = if x.dtype().is_floating_point() { x.dtype() } else { DType::F32 };
    x.detached_from(x.place()).to(dtype)
}
