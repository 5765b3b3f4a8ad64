//! Softmax and its logarithm: scores along a dimension made into probabilities.
//!
//! Both subtract the largest score first, so that no exponential overflows.

use crate::autograd::{Context, Function, Saved};
use crate::error::Result;
use crate::error::dtype::not_implemented;
use crate::ops;
use crate::tensor::Tensor;

mod kernels;

pub(in crate::ops) use kernels::ROWS;
pub(super) use kernels::log_softmax_row;

impl Tensor {
    /// `eˣ / Σ eˣ` along a dimension: positive, with sum 1.
    #[track_caller]
    pub fn softmax(&self, dim: i64) -> Result<Tensor> {
        softmax(self, dim, Which::Softmax)
    }

    /// `x − log Σ eˣ` along a dimension: the logarithm of [`softmax`](Self::softmax), exact where that
    /// is too small to be told from 0.
    #[track_caller]
    pub fn log_softmax(&self, dim: i64) -> Result<Tensor> {
        softmax(self, dim, Which::LogSoftmax)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Softmax,
    LogSoftmax,
}

#[track_caller]
fn softmax(x: &Tensor, dim: i64, which: Which) -> Result<Tensor> {
    let dim = x.layout().dim(dim)?;
    which.check_float(x, dim)?;
    ops::apply(SoftmaxAlong { which, dim }, [x])
}

impl Which {
    fn check_float(self, x: &Tensor, dim: usize) -> Result<()> {
        let operation = match (self, dim + 1 >= x.ndim()) {
            _ if x.dtype().is_floating_point() => return Ok(()),
            (Which::Softmax, true) => "softmax_lastdim_kernel_impl",
            (Which::Softmax, false) => "softmax_kernel_impl",
            (Which::LogSoftmax, true) => "log_softmax_lastdim_kernel_impl",
            (Which::LogSoftmax, false) => "log_softmax_kernel_impl",
        };
        Err(not_implemented(operation, x.dtype()))
    }
}

/// Whether scores are of a type that a logarithm can be made of, for who makes it along with something else.
pub(super) fn check_scores(x: &Tensor, dim: usize) -> Result<()> {
    Which::LogSoftmax.check_float(x, dim)
}

struct SoftmaxAlong {
    which: Which,
    dim: usize,
}

impl SoftmaxAlong {
    /// Runs a kernel on rows that lie along memory: `dim` is moved to the end and back.
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
        ops::plain::dense(&out.transpose(dim, last)?)
    }
}

impl Function<1> for SoftmaxAlong {
    fn name(&self) -> &'static str {
        match self.which {
            Which::Softmax => "softmax",
            Which::LogSoftmax => "log_softmax",
        }
    }

    fn backward_name(&self) -> &'static str {
        match self.which {
            Which::Softmax => "SoftmaxBackward0",
            Which::LogSoftmax => "LogSoftmaxBackward0",
        }
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_output();
        self.along_rows([x], |[x], out| match self.which {
            Which::Softmax => kernels::run(&kernels::SOFTMAX, [x], out),
            Which::LogSoftmax => kernels::run(&kernels::LOG_SOFTMAX, [x], out),
        })
    }

    /// softmax: `y · (g − Σ g·y)`; log_softmax: `g − eʸ · Σ g`.
    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [y] = saved.tensors()?;
        let name = match self.which {
            Which::Softmax => "_softmax_backward_data",
            Which::LogSoftmax => "_log_softmax_backward_data",
        };
        let grad_x = ops::call(name, &[grad, &y], |_| {
            self.along_rows([grad, &y], |[grad, y], out| match self.which {
                Which::Softmax => kernels::run(&kernels::SOFTMAX_BACKWARD, [grad, y], out),
                Which::LogSoftmax => kernels::run(&kernels::LOG_SOFTMAX_BACKWARD, [grad, y], out),
            })
        })?;
        Ok([Some(grad_x)])
    }
}
