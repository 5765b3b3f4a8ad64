//! Elementwise operations: each element of the result is computed from the same element of the inputs.
//!
//! - [`unary`]: `exp`, `relu`, …    - [`pow`]
//! - [`binary`]: `add`, `mul`, …, and Rust's [`operators`]
//! - [`compare`]: `eq`, `lt`, …      - [`select`]: `where_cond`, `masked_fill`, `clamp`
//! - [`activation`]: `softplus`, …   - [`convert`]: between dtypes

pub(in crate::ops) mod activation;
pub(in crate::ops) mod binary;
pub(in crate::ops) mod by_number;
pub(in crate::ops) mod compare;
pub(in crate::ops) mod convert;
pub(crate) mod error;
pub(in crate::ops) mod fused;
pub(in crate::ops) mod operators;
pub(in crate::ops) mod pow;
pub(in crate::ops) mod select;
pub(in crate::ops) mod unary;

pub use activation::Approximate;
pub(crate) use binary::{add_into, div_scalar, mul_out};
pub(crate) use convert::{Convert, cast};
use error::ElementwiseError;
pub use select::Bound;

use smallvec::SmallVec;

use crate::dtype::{DType, Scalar, result_type};
use crate::error::{DTypeError, Result};
use crate::ops::deciding_operand;
use crate::ops::plain::number;
use crate::shape::{Dims, Layout, broadcast};
use crate::tensor::Tensor;

/// The second operand of an operation: a tensor or a number.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// A tensor, broadcast with the first operand.
    Tensor(&'a Tensor),
    /// A number.
    Scalar(Scalar),
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(tensor: &'a Tensor) -> Operand<'a> {
        Operand::Tensor(tensor)
    }
}

impl<S: Into<Scalar>> From<S> for Operand<'_> {
    fn from(scalar: S) -> Self {
        Operand::Scalar(scalar.into())
    }
}

impl Operand<'_> {
    fn result_type(self, with: &Tensor) -> DType {
        let tensor = |tensor: &Tensor| (tensor.dtype(), tensor.ndim());
        match self {
            Operand::Tensor(other) => result_type(&[tensor(with), tensor(other)], &[]),
            Operand::Scalar(scalar) => result_type(&[tensor(with)], &[scalar]),
        }
    }

    /// Converts this operand to a tensor of the given dtype. A number becomes a 0-dim tensor.
    fn to_tensor(self, dtype: DType) -> Result<Tensor> {
        match self {
            Operand::Tensor(tensor) => tensor.to(dtype),
            Operand::Scalar(scalar) => number(scalar, dtype),
        }
    }

    fn sizes(&self) -> &[usize] {
        match self {
            Operand::Tensor(tensor) => tensor.sizes(),
            Operand::Scalar(_) => &[],
        }
    }
}

impl Tensor {
    /// A tensor for the result of an elementwise operation on these operands, in their order of memory.
    #[track_caller]
    pub(in crate::ops) fn uninit_result(operands: &[&Tensor], dtype: DType) -> Result<Tensor> {
        let lead = deciding_operand(operands);
        let is_plain = |operand: &&Tensor| operand.sizes() == lead.sizes() && operand.is_contiguous();
        if operands.iter().all(is_plain) {
            return lead.uninit_beside(lead.sizes(), dtype);
        }
        let layouts: SmallVec<[&Layout; 4]> = operands.iter().map(|operand| operand.layout()).collect();
        lead.uninit_with(Layout::of_result(&broadcast_all(operands)?, &layouts)?, dtype)
    }
}

/// Like [`Tensor::uninit_result`], for operands that are converted to the dtype of the result. On the host, PyTorch converts them
/// first, and a copy has neither gaps nor repeated elements.
#[track_caller]
fn promoted_result(operands: [&Tensor; 2], dtype: DType) -> Result<Tensor> {
    let is_kept =
        |operand: &&Tensor| operand.dtype() == dtype || operand.is_contiguous() || operand.is_cuda();
    if operands.iter().all(is_kept) {
        return Tensor::uninit_result(&operands, dtype);
    }
    let [a, b] = operands.map(|operand| match is_kept(&operand) {
        true => Ok(*operand.layout()),
        false => operand.layout().like(),
    });
    operands[0].uninit_with(Layout::of_result(&broadcast_all(&operands)?, &[&a?, &b?])?, dtype)
}

fn broadcast_all(operands: &[&Tensor]) -> Result<Dims> {
    let mut sizes = Dims::from(operands[0].sizes());
    for operand in &operands[1..] {
        if operand.sizes() != &*sizes {
            sizes = broadcast(&sizes, operand.sizes())?;
        }
    }
    Ok(sizes)
}

pub(in crate::ops) fn check_in_place(target: &Tensor, other: Operand<'_>, result: DType) -> Result<()> {
    let shape = broadcast(target.sizes(), other.sizes())?;
    if *shape != *target.sizes() {
        let output = target.sizes().to_vec();
        return Err(ElementwiseError::InPlaceBroadcast { output, broadcast: shape.to_vec() }.into());
    }
    if !result.can_cast(target.dtype()) {
        return Err(DTypeError::InPlaceCast { result, output: target.dtype() }.into());
    }
    Ok(())
}
