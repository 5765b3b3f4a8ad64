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
        let in_order = if self.input_first { [x_or_y, grad] } else { [grad, x_or_y] };
        ops::call(&self.operation, &[grad, x_or_y], |_| {
            let out = Tensor::uninit_result(&in_order, x_or_y.dtype())?;
            run(&self.kernel, &[grad, x_or_y], numbers, out)
        })
    }
}

/// Runs a kernel on tensors and numbers.
pub(super) fn run(kernel: &Row, tensors: &[&Tensor], numbers: &[f64], out: Tensor) -> Result<Tensor> {
    let x = tensors[tensors.len() - 1];
    let kernel = kernel.of(x.dtype())?;
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
