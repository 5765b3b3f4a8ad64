//! Softmax and its logarithm. Both subtract the largest score first, so no exponential overflows.

use crate::autograd::{Context, Function, Saved};
use crate::error::{Result, not_implemented};
use crate::ops::plain::row_major;
use crate::ops::row::Row;
use crate::ops::{self, CastPolicy, Operation};
use crate::tensor::Tensor;

mod kernels;

pub(in crate::ops) use kernels::ROWS;
pub(super) use kernels::log_softmax_of_row;

impl Tensor {
    /// Computes `eˣ / Σ eˣ` along a dimension: positive numbers whose sum is 1.
    #[track_caller]
    pub fn softmax(&self, dim: i64) -> Result<Tensor> {
        softmax(self, dim, &SOFTMAX)
    }

    /// Computes `x − log Σ eˣ` along a dimension, accurate even where the [`softmax`](Self::softmax) underflows to 0.
    #[track_caller]
    pub fn log_softmax(&self, dim: i64) -> Result<Tensor> {
        softmax(self, dim, &LOG_SOFTMAX)
    }
}

struct Softmax {
    operation: Operation,
    kernel: &'static Row,
    backward: Operation,
    backward_kernel: &'static Row,
    /// PyTorch's names in errors about dtypes: along the last dimension, and along another.
    refused_as: [&'static str; 2],
}

static SOFTMAX: Softmax = Softmax {
    operation: Operation::new("softmax").node("SoftmaxBackward0").autocast_on_cuda(CastPolicy::Fp32),
    kernel: &kernels::SOFTMAX,
    backward: Operation::new("_softmax_backward_data"),
    backward_kernel: &kernels::SOFTMAX_BACKWARD,
    refused_as: ["softmax_lastdim_kernel_impl", "softmax_kernel_impl"],
};

static LOG_SOFTMAX: Softmax = Softmax {
    operation: Operation::new("log_softmax").node("LogSoftmaxBackward0").autocast_on_cuda(CastPolicy::Fp32),
    kernel: &kernels::LOG_SOFTMAX,
    backward: Operation::new("_log_softmax_backward_data"),
    backward_kernel: &kernels::LOG_SOFTMAX_BACKWARD,
    refused_as: ["log_softmax_lastdim_kernel_impl", "log_softmax_kernel_impl"],
};

pub(in crate::ops) const OPERATIONS: &[&Operation] =
    &[&SOFTMAX.operation, &SOFTMAX.backward, &LOG_SOFTMAX.operation, &LOG_SOFTMAX.backward];

#[track_caller]
fn softmax(x: &Tensor, dim: i64, which: &'static Softmax) -> Result<Tensor> {
    let dim = x.layout().dim(dim)?;
    which.check_float(x, dim)?;
    ops::apply(SoftmaxAlong { which, dim }, [x])
}

impl Softmax {
    fn check_float(&self, x: &Tensor, dim: usize) -> Result<()> {
        let [last, other] = self.refused_as;
        match x.dtype().is_floating_point() {
            true => Ok(()),
            false => Err(not_implemented(if dim + 1 >= x.ndim() { last } else { other }, x.dtype())),
        }
    }
}

/// Checks the dtype of scores, for operations that include log softmax.
pub(super) fn check_scores(x: &Tensor, dim: usize) -> Result<()> {
    LOG_SOFTMAX.check_float(x, dim)
}

struct SoftmaxAlong {
    which: &'static Softmax,
    dim: usize,
}

impl SoftmaxAlong {
    /// Runs a kernel on contiguous rows. Moves `dim` to the end and back.
    fn along_rows<const N: usize>(
        &self,
        inputs: [&Tensor; N],
        kernel: impl FnOnce([&Tensor; N], &Tensor) -> Result<()>,
    ) -> Result<Tensor> {
        let (dim, last) = (self.dim as i64, inputs[0].ndim().max(1) as i64 - 1);
        if inputs[0].ndim() == 0 || dim == last {
            let out = inputs[0].uninit_beside(inputs[0].sizes(), inputs[0].dtype())?;
            kernel(inputs, &out)?;
            return Ok(out);
        }
        let moved: Vec<Tensor> =
            inputs.iter().map(|input| input.transpose(dim, last)).collect::<Result<_>>()?;
        let out = moved[0].uninit_beside(moved[0].sizes(), moved[0].dtype())?;
        kernel(std::array::from_fn(|i| &moved[i]), &out)?;
        row_major(&out.transpose(dim, last)?)
    }
}

impl Function<1> for SoftmaxAlong {
    fn operation(&self) -> &'static Operation {
        &self.which.operation
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_output();
        self.along_rows([x], |[x], out| kernels::run(self.which.kernel, [x], out))
    }

    /// The gradient is `y · (g − Σ g·y)` for softmax, and `g − eʸ · Σ g` for log softmax.
    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [y] = saved.tensors()?;
        let grad_x = ops::call(&self.which.backward, &[grad, &y], |_| {
            self.along_rows([grad, &y], |[grad, y], out| {
                kernels::run(self.which.backward_kernel, [grad, y], out)
            })
        })?;
        Ok([Some(grad_x)])
    }
}
