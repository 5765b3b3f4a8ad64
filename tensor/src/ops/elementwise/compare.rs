//! Comparisons. Their result is a bool tensor and has no gradient.

use super::{Operand, kernels, output};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops;
use crate::tensor::Tensor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[track_caller]
fn compare(op: Compare, name: &'static str, a: &Tensor, b: Operand<'_>) -> Result<Tensor> {
    let dtype = b.result_type(a);
    let b = b.to_tensor(dtype)?;
    ops::call(name, &[a, &b], |_| {
        let out = output(a, &b, DType::Bool)?;
        kernels::compare(op, &a.to(dtype)?, &b, &out)?;
        Ok(out)
    })
}

macro_rules! compare {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                    compare(Compare::$op, stringify!($name), self, other.into())
                }
            )*
        }
    };
}

compare! {
    /// `self == other`, element by element.
    eq => Eq;
    /// `self != other`. NaN differs from everything, itself included.
    ne => Ne;
    /// `self < other`.
    lt => Lt;
    /// `self <= other`.
    le => Le;
    /// `self > other`.
    gt => Gt;
    /// `self >= other`.
    ge => Ge;
}

impl Tensor {
    /// Whether each element is zero or false.
    #[track_caller]
    pub fn logical_not(&self) -> Result<Tensor> {
        self.eq(0)
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
