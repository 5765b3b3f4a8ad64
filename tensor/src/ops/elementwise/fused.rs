//! Single-kernel operations as gradients.

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::Result;
use crate::ops;
use crate::ops::launch::launch_on;
use crate::ops::plain::number;
use crate::ops::row::{FusedOp, Row};
use crate::ops::shape::check_fits;
use crate::tensor::Tensor;

impl FusedOp {
    pub(super) fn gradient(&'static self, grad: &Tensor, x_or_y: &Tensor, numbers: &[f64]) -> Result<Tensor> {
        ops::call(&self.operation, &[grad, x_or_y], |_| run(&self.kernel, &[grad, x_or_y], numbers))
    }
}

pub(super) fn run(kernel: &Row, tensors: &[&Tensor], numbers: &[f64]) -> Result<Tensor> {
    let x = tensors[tensors.len() - 1];
    let kernel = kernel.of(x.dtype())?;
    let out = x.uninit_beside(x.sizes(), x.dtype())?;
    let numbers: SmallVec<[Tensor; 2]> =
        numbers.iter().map(|value| beside(x, *value)).collect::<Result<_>>()?;
    let mut reads: SmallVec<[&Tensor; 4]> = SmallVec::from_slice(tensors);
    reads.extend(&numbers);
    launch_on(kernel, &reads, &[&out], &[], &[])?;
    Ok(out)
}

/// Returns a number in the dtype of the computation: f32 for half types.
fn beside(x: &Tensor, value: f64) -> Result<Tensor> {
    let dtype = if x.dtype().is_half() { DType::F32 } else { x.dtype() };
    check_fits(value.into(), dtype)?;
    number(value.into(), dtype)
}
