//! Selecting elements by index tensors.

pub(in crate::ops) mod along;
pub(crate) mod embedding;
pub(crate) mod error;
mod kernels;
pub(in crate::ops) mod mask;

use error::IndexError;
pub(in crate::ops) use kernels::ROWS;
pub(crate) use kernels::gather;

use std::panic::Location;

use crate::amp::is_autocast_enabled;
use crate::autograd::{Context, Function, Saved};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::plain::copy_in;
use crate::ops::{self, CastPolicy, Operation, operations};
use crate::scope;
use crate::shape::{Layout, signed};
use crate::tensor::Tensor;

operations! {
    static INDEX: Operation = Operation::new("index")
        .node("IndexBackward0")
        .arguments("wrapper_CUDA__index", &["self", "indices"]);
    static INDEX_SELECT: Operation = Operation::new("index_select")
        .node("IndexSelectBackward0")
        .arguments("wrapper_CUDA__index_select", &["self", "index"]);
    static INDEX_ADD: Operation = Operation::new("index_add")
        .node("IndexAddBackward0")
        .arguments("wrapper_CUDA_index_add", &["self", "index", "source"]);
    static GATHER: Operation = Operation::new("gather")
        .node("GatherBackward0")
        .arguments("wrapper_CUDA_gather", &["self", "index"]);
    static SCATTER_ADD: Operation = Operation::new("scatter_add")
        .node("ScatterAddBackward0")
        .arguments("wrapper_CUDA_scatter_add", &["self", "index", "src"])
        .autocast_on_cuda(CastPolicy::Promote);
}

impl Tensor {
    /// Selects the entries of a dimension listed in a 1-D index tensor (`torch.index_select`).
    #[track_caller]
    pub fn index_select(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        let dim = self.layout().dim(dim)?;
        if index.ndim() > 1 {
            return Err(IndexError::NotAVector.into());
        }
        if self.ndim() == 0 && index.numel() != 1 {
            let count = index.numel();
            return Err(Error::custom(format!(
                "index_select(): Index to scalar can have only 1 value, got {count} value(s)"
            )));
        }
        check_index(index, || IndexError::SelectDType)?;
        if self.ndim() > 1 && self.sizes()[dim] == 0 && index.numel() > 0 {
            return Err(IndexError::SelectOfNothing.into());
        }
        ops::apply(IndexSelect { dim }, [self, &index.to(DType::I64)?])
    }

    /// Selects entries of dimension 0 by an index tensor of any shape (`x[index]`). Negative indices count from the
    /// end. A 0-dim index returns a view, like [`select`](Self::select). A bool tensor is a mask over dimensions.
    ///
    /// As in PyTorch, the index may be on the host. Only [`index_put_`](Self::index_put_) accepts that as well.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let x = Tensor::new([10, 20, 30])?;
    /// let index = Tensor::new([[0, -1], [1, 1]])?;
    /// assert_eq!(x.index(&index)?.to_vec::<i64>()?, [10, 30, 20, 20]);
    /// assert_eq!(x.index(&x.gt(15)?)?.to_vec::<i64>()?, [20, 30]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn index(&self, index: &Tensor) -> Result<Tensor> {
        let _scope = scope::operation(INDEX.name, Location::caller());
        if mask::is_mask(index) {
            let (rows, places) = mask::rows(self, index)?;
            return index_of(&rows, &places);
        }
        let size = *self.sizes().first().ok_or(IndexError::TooMany { dims: 0 })?;
        check_index(index, || IndexError::DType)?;
        check_index_device(self, index)?;
        if index.ndim() == 0 {
            return self.get(index.scalar()?.to_i64());
        }
        if size == 0 && index.numel() > 0 {
            return Err(IndexError::OfNothing.into());
        }
        let mut index = index.detach().to((self.device(), DType::I64))?;
        if self.numel() == 0 {
            // PyTorch does not check indices if there is nothing to read.
            index = index.zeros_like()?;
        }
        index_of(self, &index.lt(0)?.where_cond(&index.add(size as i64)?, &index)?)
    }

    /// Computes `out[i][j] = self[index[i][j]][j]` along dimension 0, and likewise along others (`torch.gather`).
    #[track_caller]
    pub fn gather(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        let dim = self.layout().dim(dim)?;
        if index.numel() > 0 {
            check_index(index, || IndexError::GatherDType { operation: "gather" })?;
            check_gather(self, dim, index)?;
        }
        ops::apply(Gather { dim }, [self, &index.to(DType::I64)?])
    }

    /// Adds `source` to a copy's entries of a dimension listed in `index`. Repeated indices add up (`torch.index_add`).
    #[track_caller]
    pub fn index_add(&self, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let dim = self.layout().dim(dim)?;
        if index.ndim() > 1 {
            let sizes = index.sizes().to_vec();
            return Err(IndexError::AddNotAVector { dtype: index.dtype(), sizes }.into());
        }
        check_index(index, || IndexError::AddDType { got: index.dtype() })?;
        check_index_add(self, dim, index.numel(), source)?;
        let is_i64 = index.dtype() == DType::I64;
        ops::apply(IndexAdd { dim }, [self, &index.to(DType::I64)?, source]).map_err(|error| {
            match error.refusal() {
                // PyTorch's fast path, along the first and the last of several dimensions, has another message.
                Some(&IndexError::OutOfRange { index: got, size })
                    if self.ndim() > 1 && (dim == 0 || dim == self.ndim() - 1) && is_i64 =>
                {
                    IndexError::OutOfBounds { index: got, dim, size }.into()
                }
                _ => error,
            }
        })
    }

    /// Returns a copy with `source` added where [`gather`](Self::gather) with this index reads (`torch.scatter_add`).
    #[track_caller]
    pub fn scatter_add(&self, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let dim = self.layout().dim(dim)?;
        if index.numel() > 0 {
            check_index(index, || IndexError::GatherDType { operation: "scatter" })?;
            let differ = self.dtype() != source.dtype() && !is_autocast_enabled(self.device().device_type());
            check_scatter(self, dim, index, source)
                .map_err(|error| if differ { IndexError::ScatterTypes.into() } else { error })?;
        }
        // Of a source larger than the index, only the part of the index's size is added.
        let mut part = source.clone();
        for (dim, size) in index.sizes().iter().enumerate().take(part.ndim()) {
            if part.sizes()[dim] > *size {
                part = part.narrow(dim as i64, 0, *size)?;
            }
        }
        ops::apply(ScatterAdd { dim }, [self, &index.to(DType::I64)?, &part])
    }
}

/// The kernels read i64, so i32 is converted.
fn check_index(index: &Tensor, error: impl FnOnce() -> IndexError) -> Result<()> {
    if matches!(index.dtype(), DType::I64 | DType::I32) { Ok(()) } else { Err(error().into()) }
}

#[track_caller]
fn index_of(x: &Tensor, indices: &Tensor) -> Result<Tensor> {
    ops::apply(Index, [x, indices]).map_err(|error| match error.refusal() {
        Some(&(IndexError::OutOfRange { index, size } | IndexError::OutOfData { index, size })) => {
            let index = if index < 0 { index - size as i64 } else { index }; // As the caller wrote it.
            IndexError::OutOfBounds { index, dim: 0, size }.into()
        }
        _ => error,
    })
}

/// Refuses indices on another GPU. Those on the host are copied.
fn check_index_device(x: &Tensor, index: &Tensor) -> Result<()> {
    match index.is_cuda() && index.device() != x.device() {
        true => Err(IndexError::Device { device: x.device() }.into()),
        false => Ok(()),
    }
}

fn from_start_of(index: i64, size: usize) -> Result<i64> {
    let from_start = if index < 0 { index + size as i64 } else { index };
    match (0..size as i64).contains(&from_start) {
        true => Ok(from_start),
        false => Err(IndexError::OutOfBounds { index, dim: 0, size }.into()),
    }
}

/// The number of dimensions. A 0-dim tensor counts as a vector.
fn dims(x: &Tensor) -> usize {
    x.ndim().max(1)
}

fn check_index_add(x: &Tensor, dim: usize, indices: usize, source: &Tensor) -> Result<()> {
    if x.dtype() != source.dtype() {
        return Err(IndexError::AddTypes { target: x.dtype(), source_type: source.dtype() }.into());
    }
    if dim > 0 && dim >= source.ndim() {
        return Err(Error::custom(format!(
            "index_add_(): Indexing dim {dim} is out of bounds of the source tensor with dim {}",
            source.ndim()
        )));
    }
    let source_size = source.sizes().get(dim).copied().unwrap_or(1);
    if indices != source_size {
        source.size(dim as i64)?; // For PyTorch's error.
        return Err(IndexError::AddCount { indices, source_size, dim }.into());
    }
    let mut expected = x.sizes().to_vec();
    if let (Some(size), true) = (expected.get_mut(dim), source.ndim() > 0) {
        *size = source_size;
    }
    if source.sizes() != expected {
        let (target, source_sizes) = (x.sizes().to_vec(), source.sizes().to_vec());
        return Err(IndexError::AddShape { target, source_sizes }.into());
    }
    Ok(())
}

fn check_scatter(x: &Tensor, dim: usize, index: &Tensor, source: &Tensor) -> Result<()> {
    if dims(x) != dims(index) {
        return Err(IndexError::GatherDims { other: "self" }.into());
    }
    let mut fits = (0..index.ndim()).all(|other| other == dim || index.sizes()[other] <= x.sizes()[other]);
    for other in 0..index.ndim() {
        // PyTorch reads the source's sizes until one is too small, and errors for a missing dimension.
        fits = fits && (source.ndim() == 0 || index.sizes()[other] <= source.size(other as i64)?);
    }
    if dims(source) != dims(index) {
        return Err(IndexError::GatherDims { other: "src" }.into());
    }
    match fits {
        true => Ok(()),
        false => Err(IndexError::ScatterSizes {
            index: index.sizes().to_vec(),
            target: x.sizes().to_vec(),
            dim,
            source_sizes: source.sizes().to_vec(),
        }
        .into()),
    }
}

fn check_gather(x: &Tensor, dim: usize, index: &Tensor) -> Result<()> {
    if dims(x) != dims(index) {
        return Err(IndexError::GatherDims { other: "input" }.into());
    }
    match (0..x.ndim()).find(|other| *other != dim && index.sizes()[*other] > x.sizes()[*other]) {
        None => Ok(()),
        Some(other) => Err(IndexError::GatherSizes {
            dim: other,
            index: index.sizes().to_vec(),
            input: x.sizes().to_vec(),
            gather_dim: dim,
        }
        .into()),
    }
}

struct Index;

impl Function<2> for Index {
    fn operation(&self) -> &'static Operation {
        &INDEX
    }

    fn forward(&self, ctx: &mut Context<2>, [x, index]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([index]);
        let sizes = [index.sizes(), &x.sizes()[1..]].concat();
        let selected = x.index_select(0, &index.reshape(&[-1])?)?.reshape(&signed(&sizes))?;
        // PyTorch computes it as an elementwise operation, so the result keeps the order of x.
        match Layout::of_indexed(x.layout(), index.layout())? {
            layout if layout.strides() == selected.strides() => Ok(selected),
            layout => copy_in(layout, &selected),
        }
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [index] = saved.tensors()?;
        let zeros = grad.new_full(saved.input_sizes(0), 0)?;
        let rows = [&[index.numel()], &saved.input_sizes(0)[1..]].concat();
        Ok([Some(zeros.index_add(0, &index.reshape(&[-1])?, &grad.reshape(&signed(&rows))?)?), None])
    }
}

struct IndexSelect {
    dim: usize,
}

impl Function<2> for IndexSelect {
    fn operation(&self) -> &'static Operation {
        &INDEX_SELECT
    }

    fn forward(&self, ctx: &mut Context<2>, [x, index]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([index]);
        let mut sizes = x.sizes().to_vec();
        if let Some(size) = sizes.get_mut(self.dim) {
            *size = index.numel();
        }
        let out = x.uninit_beside(&sizes, x.dtype())?;
        kernels::index_select(x, self.dim, index, &out)?;
        Ok(out)
    }

    /// An entry selected several times gets the sum of its gradients.
    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [index] = saved.tensors()?;
        let zeros = grad.new_full(saved.input_sizes(0), 0)?;
        Ok([Some(zeros.index_add(self.dim as i64, &index, grad)?), None])
    }
}

struct IndexAdd {
    dim: usize,
}

impl Function<3> for IndexAdd {
    fn operation(&self) -> &'static Operation {
        &INDEX_ADD
    }

    fn forward(&self, ctx: &mut Context<3>, [x, index, source]: [&Tensor; 3]) -> Result<Tensor> {
        if ctx.needs_input_grad(2) {
            ctx.save_for_backward([index]);
        }
        if x.dtype() == DType::Bool {
            // The sum of bools is "or". It is counted in i64, so it cannot wrap around to 0.
            let [x, source] = [x.to(DType::I64)?, source.to(DType::I64)?];
            return x.index_add(self.dim as i64, index, &source)?.to(DType::Bool);
        }
        let out = copy_in(Layout::contiguous(x.sizes())?, x)?;
        kernels::index_add(&out, self.dim, index, source)?;
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
    fn operation(&self) -> &'static Operation {
        &GATHER
    }

    fn forward(&self, ctx: &mut Context<2>, [x, index]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([index]);
        let out = x.uninit_beside(index.sizes(), x.dtype())?;
        kernels::gather(x, self.dim, index, &out)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [index] = saved.tensors()?;
        let zeros = grad.new_full(saved.input_sizes(0), 0)?;
        Ok([Some(zeros.scatter_add(self.dim as i64, &index, grad)?), None])
    }
}

struct ScatterAdd {
    dim: usize,
}

impl Function<3> for ScatterAdd {
    fn operation(&self) -> &'static Operation {
        &SCATTER_ADD
    }

    fn forward(&self, ctx: &mut Context<3>, [x, index, source]: [&Tensor; 3]) -> Result<Tensor> {
        if x.dtype() != source.dtype() {
            return Err(IndexError::ScatterTypes.into()); // Autocast may have made the dtypes equal before.
        }
        if ctx.needs_input_grad(2) {
            ctx.save_for_backward([index]);
        }
        if x.dtype() == DType::Bool {
            let [x, source] = [x.to(DType::I64)?, source.to(DType::I64)?];
            return x.scatter_add(self.dim as i64, index, &source)?.to(DType::Bool);
        }
        let out = copy_in(Layout::contiguous(x.sizes())?, x)?;
        kernels::scatter_add(&out, self.dim, index, source)?;
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
