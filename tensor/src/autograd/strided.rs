//! The gradient of a view as a strided part of its base (`AsStridedBackward0`).

use crate::dtype::Scalar;
use crate::error::Result;
use crate::ops::plain::{fill, write};
use crate::shape::Layout;
use crate::tensor::Tensor;

impl Tensor {
    /// This gradient of a view as a gradient of its base. Elements of the view that share memory give their sum.
    pub(super) fn spread_over(&self, base: &Layout, view: &Layout) -> Result<Tensor> {
        let sum = self.uninit_with(base.at_start(), self.dtype())?;
        fill(&sum, Scalar::Int(0))?;
        let part = sum.with_layout(view.within(base));
        match part.layout().overlaps_itself() {
            true => add_to(&part, self)?,
            false => write(&part, self)?,
        }
        Ok(sum.as_new())
    }
}

/// Adds a gradient to a part. Elements that share memory get the sum.
fn add_to(part: &Tensor, grad: &Tensor) -> Result<()> {
    if !part.layout().overlaps_itself() {
        return part.add_(grad).map(drop);
    }
    let repeated = (0..part.ndim()).find(|dim| part.strides()[*dim] == 0 && part.sizes()[*dim] > 1);
    if let Some(dim) = repeated {
        let dim = dim as i64;
        return add_to(&part.narrow(dim, 0, 1)?, &grad.sum_dims(&[dim], true)?);
    }
    // Windows that overlap: one after the other.
    let dim = (0..part.ndim()).filter(|dim| part.sizes()[*dim] > 1).min_by_key(|dim| part.sizes()[*dim]);
    let dim = dim.expect("a tensor that overlaps itself has several elements") as i64;
    (0..part.size(dim)? as i64).try_for_each(|i| add_to(&part.select(dim, i)?, &grad.select(dim, i)?))
}
