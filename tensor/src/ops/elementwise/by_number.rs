//! Products and quotients of half types with an unrounded f64. For sums and differences, PyTorch rounds it.

use super::Operand;
use super::binary::{Binary, binary};
use crate::autograd::{Context, Function, Saved};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::Operation;
use crate::ops::launch::launch;
use crate::ops::row::{Row, row, rows};
use crate::tensor::Tensor;

rows! {
    pub(super) static MUL_NUMBER: Row = row! {
        name: "mul_number", types: halves, cost: Cheap,
        element: |x: T, n: f64| -> T { x * n as f32 },
    };
    pub(super) static DIV_NUMBER: Row = row! {
        name: "div_number", types: halves, cost: Costly,
        element: |x: T, n: f64| -> T { x / n as f32 },
    };
}

#[derive(Clone, Copy)]
pub(super) struct ByNumber {
    op: &'static Binary,
    kernel: &'static Row,
    number: f64,
}

impl ByNumber {
    pub(super) fn of(op: &'static Binary, a: &Tensor, b: Operand<'_>) -> Option<ByNumber> {
        match b {
            Operand::Scalar(b) if a.dtype().is_half() => {
                op.by_number.map(|kernel| ByNumber { op, kernel, number: b.to_f64() })
            }
            _ => None,
        }
    }

    pub(super) fn compute(&self, out: &Tensor, x: &Tensor) -> Result<()> {
        launch(self.kernel.of(x.dtype())?, [x, &self.number()?], [out], &[], &[])
    }

    fn number(&self) -> Result<Tensor> {
        Tensor::full(&[], (self.number, DType::F64))
    }
}

impl Function<1> for ByNumber {
    fn operation(&self) -> &'static Operation {
        &self.op.operation
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([None::<&Tensor>]); // PyTorch saves the number as a tensor.
        let out = Tensor::uninit_result(&[x, &self.number()?], x.dtype())?;
        self.compute(&out, x)?;
        Ok(out)
    }

    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(binary(self.op, grad, Operand::Scalar(Scalar::Float(self.number)))?)])
    }
}
