//! Comparisons. Their result is a bool tensor and has no gradient.

use super::in_one::{InOne, table};
use super::{Operand, output};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops;
use crate::ops::launch::launch;
use crate::ops::row::row;
use crate::tensor::Tensor;

#[track_caller]
fn compare(comparison: &'static InOne, a: &Tensor, b: Operand<'_>) -> Result<Tensor> {
    let dtype = b.result_type(a);
    let b = b.to_tensor(dtype)?;
    ops::call(&comparison.operation, &[a, &b], |_| {
        let out = output(a, &b, DType::Bool)?;
        launch(comparison.kernel.of(dtype)?, [&a.to(dtype)?, &b], [&out], &[], &[])?;
        Ok(out)
    })
}

macro_rules! compare {
    ($($(#[$doc:meta])* $name:ident: $NAME:ident = $kernel:expr;)*) => {
        table! { $($NAME: InOne = InOne::new($kernel);)* }

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
    /// `self == other`, element by element.
    eq: EQ = row!("eq", numbers, Cheap, |a: T, b: T| -> u8 { (a == b) as u8 });
    /// `self != other`. NaN differs from everything, itself included.
    ne: NE = row!("ne", numbers, Cheap, |a: T, b: T| -> u8 { (a != b) as u8 });
    /// `self < other`.
    lt: LT = row!("lt", numbers, Cheap, |a: T, b: T| -> u8 { (a < b) as u8 });
    /// `self <= other`.
    le: LE = row!("le", numbers, Cheap, |a: T, b: T| -> u8 { (a <= b) as u8 });
    /// `self > other`.
    gt: GT = row!("gt", numbers, Cheap, |a: T, b: T| -> u8 { (a > b) as u8 });
    /// `self >= other`.
    ge: GE = row!("ge", numbers, Cheap, |a: T, b: T| -> u8 { (a >= b) as u8 });
}

impl Tensor {
    /// Whether each element is zero or false.
    #[track_caller]
    pub fn logical_not(&self) -> Result<Tensor> {
        self.eq(0)
    }

    /// Whether each element is not a number.
    #[track_caller]
    pub fn isnan(&self) -> Result<Tensor> {
        self.ne(self)
    }

    /// Whether both have the same shape and the same values (`torch.equal`).
    #[track_caller]
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        Ok(self.sizes() == other.sizes() && self.eq(other)?.all()?.is_nonzero()?)
    }

    /// Whether both, broadcast to one shape, differ nowhere by more than `atol + rtol·|other|`
    /// (`torch.allclose`; its defaults are 1e-5 and 1e-8).
    #[track_caller]
    pub fn allclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Result<bool> {
        if self.dtype() != other.dtype() {
            let [a, b] = [self, other].map(|tensor| tensor.dtype().scalar_type());
            return Err(Error::custom(format!("{a} did not match {b}")));
        }
        let difference = self.sub(other)?.abs()?;
        let close =
            difference.le(&other.abs()?.mul(rtol)?.add(atol)?)?.mul(&difference.lt(f64::INFINITY)?)?;
        // Equal infinities differ by NaN; others are close to nothing.
        close.maximum(&self.eq(other)?)?.all()?.is_nonzero()
    }
}
