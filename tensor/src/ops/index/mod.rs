//! Choosing elements by index tensors.

mod cpu;

use crate::autograd::{Context, Function, Saved};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops;
use crate::ops::shape::copy_of;
use crate::tensor::Tensor;

impl Tensor {
    /// The entries of a dimension that a 1-D index tensor names, in its order (`torch.index_select`).
    #[track_caller]
    pub fn index_select(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        if index.ndim() > 1 {
            return Err(Error::IndexNotAVector);
        }
        let index = index_dtype("index_select", index)?;
        let dim = self.checked_dim(dim)?;
        ops::apply(IndexSelect { dim }, [self, &index])
    }

    /// `out[i][j] = self[index[i][j]][j]` along dimension 0, and likewise along others (`torch.gather`).
    #[track_caller]
    pub fn gather(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        let index = index_dtype("gather", index)?;
        let dim = self.checked_dim(dim)?;
        check_gather(self, dim, &index)?;
        ops::apply(Gather { dim }, [self, &index])
    }

    /// A copy of this tensor with `source` added at the entries of a dimension that `index` names, as often
    /// as it names them (`torch.index_add`).
    #[track_caller]
    pub fn index_add(&self, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let index = index_dtype("index_add", index)?;
        let dim = self.checked_dim(dim)?;
        let mut expected = self.sizes().to_vec();
        expected[dim] = index.numel();
        if source.sizes() != expected {
            return Err(Error::GradientShape { grad: source.sizes().to_vec(), output: expected });
        }
        ops::apply(IndexAdd { dim }, [self, &index, source])
    }

    /// A copy of this tensor with `source` added where [`gather`](Self::gather) with the same index would
    /// have read (`torch.scatter_add`).
    #[track_caller]
    pub fn scatter_add(&self, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let index = index_dtype("scatter_add", index)?;
        let dim = self.checked_dim(dim)?;
        check_gather(self, dim, &index)?;
        if source.sizes() != index.sizes() {
            return Err(Error::GradientShape {
                grad: source.sizes().to_vec(),
                output: index.sizes().to_vec(),
            });
        }
        ops::apply(ScatterAdd { dim }, [self, &index, source])
    }
}

/// An index as i64, which is what the kernels read.
fn index_dtype(operation: &'static str, index: &Tensor) -> Result<Tensor> {
    match index.dtype() {
        DType::I64 | DType::I32 => index.to(DType::I64),
        _ => Err(Error::IndexDType { operation }),
    }
}

fn check_gather(x: &Tensor, dim: usize, index: &Tensor) -> Result<()> {
    if x.ndim() != index.ndim() {
        return Err(Error::GatherDims);
    }
    match (0..x.ndim()).find(|other| *other != dim && index.sizes()[*other] > x.sizes()[*other]) {
        None => Ok(()),
        Some(other) => Err(Error::GatherSizes {
            dim: other,
            index: index.sizes().to_vec(),
            input: x.sizes().to_vec(),
            gather_dim: dim,
        }),
    }
}

struct IndexSelect {
    dim: usize,
}

impl Function<2> for IndexSelect {
    fn name(&self) -> &'static str {
        "index_select"
    }

    fn backward_name(&self) -> &'static str {
        "IndexSelectBackward0"
    }

    fn forward(&self, ctx: &mut Context<2>, [x, index]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([index]);
        let mut sizes = x.sizes().to_vec();
        sizes[self.dim] = index.numel();
        let out = Tensor::uninit(&sizes, x.dtype())?;
        cpu::index_select(x, self.dim, index, &out)?;
        Ok(out)
    }

    /// An entry chosen several times gets the sum of its gradients.
    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [index] = saved.tensors()?;
        let zeros = Tensor::full(saved.input_sizes(0), 0, grad.dtype())?;
        Ok([Some(zeros.index_add(self.dim as i64, &index, grad)?), None])
    }
}

struct IndexAdd {
    dim: usize,
}

impl Function<3> for IndexAdd {
    fn name(&self) -> &'static str {
        "index_add"
    }

    fn backward_name(&self) -> &'static str {
        "IndexAddBackward0"
    }

    fn forward(&self, ctx: &mut Context<3>, [x, index, source]: [&Tensor; 3]) -> Result<Tensor> {
        if ctx.needs_input_grad(2) {
            ctx.save_for_backward([index]);
        }
        if x.dtype() == DType::Bool {
            // The sum of truths is "or"; counted wide, so that no sum wraps around to nothing.
            let [x, source] = [x.to(DType::I64)?, source.to(DType::I64)?];
            return x.index_add(self.dim as i64, index, &source)?.to(DType::Bool);
        }
        let out = copy_of(x)?;
        cpu::index_add(&out, self.dim, index, &source.to(x.dtype())?)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<3>, grad: &Tensor) -> Result<[Option<Tensor>; 3]> {
        let mut grad_source = None;
        if saved.needs_input_grad(2) {
            let [index] = saved.tensors()?;
            grad_source = Some(grad.index_select(self.dim as i64, &index)?);
        }
        Ok([Some(grad.clone()), None, grad_source])
    }
}

struct Gather {
    dim: usize,
}

impl Function<2> for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn backward_name(&self) -> &'static str {
        "GatherBackward0"
    }

    fn forward(&self, ctx: &mut Context<2>, [x, index]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([index]);
        let out = Tensor::uninit(index.sizes(), x.dtype())?;
        cpu::gather(x, self.dim, index, &out)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [index] = saved.tensors()?;
        let zeros = Tensor::full(saved.input_sizes(0), 0, grad.dtype())?;
        Ok([Some(zeros.scatter_add(self.dim as i64, &index, grad)?), None])
    }
}

struct ScatterAdd {
    dim: usize,
}

impl Function<3> for ScatterAdd {
    fn name(&self) -> &'static str {
        "scatter_add"
    }

    fn backward_name(&self) -> &'static str {
        "ScatterAddBackward0"
    }

    fn forward(&self, ctx: &mut Context<3>, [x, index, source]: [&Tensor; 3]) -> Result<Tensor> {
        if ctx.needs_input_grad(2) {
            ctx.save_for_backward([index]);
        }
        if x.dtype() == DType::Bool {
            let [x, source] = [x.to(DType::I64)?, source.to(DType::I64)?];
            return x.scatter_add(self.dim as i64, index, &source)?.to(DType::Bool);
        }
        let out = copy_of(x)?;
        cpu::scatter_add(&out, self.dim, index, &source.to(x.dtype())?)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<3>, grad: &Tensor) -> Result<[Option<Tensor>; 3]> {
        let mut grad_source = None;
        if saved.needs_input_grad(2) {
            let [index] = saved.tensors()?;
            grad_source = Some(grad.gather(self.dim as i64, &index)?);
        }
        Ok([Some(grad.clone()), None, grad_source])
    }
}
