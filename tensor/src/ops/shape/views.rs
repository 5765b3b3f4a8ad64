//! Views: the same memory with another layout.

use super::error::ShapeError;
use crate::autograd::{Context, Function, Saved};
use crate::error::{Error, LayoutError, Result};
use crate::ops::index::error::IndexError;
use crate::ops::plain::write;
use crate::ops::{self, Operation, operations};
use crate::shape::{Layout, infer_sizes, signed};
use crate::tensor::Tensor;

operations! {
    static VIEW: Operation = Operation::new("view").node("ViewBackward0");
    pub(crate) static UNSAFE_VIEW: Operation = Operation::new("view").node("UnsafeViewBackward0");
    static RESHAPE_ALIAS: Operation = Operation::new("view").node("ReshapeAliasBackward0");
    static UNSQUEEZE: Operation = Operation::new("unsqueeze").node("UnsqueezeBackward0");
    static SQUEEZE: Operation = Operation::new("squeeze").node("SqueezeBackward1");
    static EXPAND: Operation = Operation::new("expand").node("ExpandBackward0");
    static PERMUTE: Operation = Operation::new("permute").node("PermuteBackward0");
    static TRANSPOSE: Operation = Operation::new("transpose").node("TransposeBackward0");
    static T: Operation = Operation::new("transpose").node("TBackward0");
    static SELECT: Operation = Operation::new("select").node("SelectBackward0");
    static SELECT_BACKWARD: Operation = Operation::new("select_backward");
    static SLICE: Operation = Operation::new("slice").node("SliceBackward0");
    pub(super) static SPLIT: Operation = Operation::new("slice").node("SplitBackward0");
    pub(super) static SPLIT_WITH_SIZES: Operation = Operation::new("slice").node("SplitWithSizesBackward0");
    static SLICE_BACKWARD: Operation = Operation::new("slice_backward");
    static UNBIND: Operation = Operation::new("unbind").node("UnbindBackward0");
    static UNFOLD: Operation = Operation::new("unfold").node("UnfoldBackward0");
}

impl Tensor {
    /// Returns a view with other sizes. One size may be −1, to be inferred.
    ///
    /// Errors if strides cannot express the result. [`reshape`](Self::reshape) copies in that case.
    #[track_caller]
    pub fn view(&self, sizes: &[i64]) -> Result<Tensor> {
        let sizes = infer_sizes(sizes, self.numel())?;
        let layout = self.layout().view(&sizes)?.ok_or(ShapeError::ViewStrides)?;
        ops::apply(View { layout, operation: &VIEW }, [self])
    }

    /// Returns the elements in other sizes, as a view if possible, else as a copy.
    #[track_caller]
    pub fn reshape(&self, sizes: &[i64]) -> Result<Tensor> {
        let inferred = infer_sizes(sizes, self.numel())?;
        match self.layout().view(&inferred)? {
            Some(layout) => {
                let operation = if self.is_contiguous() { &VIEW } else { &RESHAPE_ALIAS };
                ops::apply(View { layout, operation }, [self])
            }
            None => viewed(&self.contiguous()?, &inferred, &UNSAFE_VIEW),
        }
    }

    /// Merges dimensions `start` to `end`, both included, into one.
    #[track_caller]
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        let (start, end) = (self.layout().dim(start)?, self.layout().dim(end)?);
        if self.ndim() == 0 {
            return self.reshape(&[1]);
        }
        if start > end {
            return Err(Error::custom("flatten() has invalid args: start_dim cannot come after end_dim"));
        }
        if start == end {
            return Ok(self.clone());
        }
        let sizes = self.sizes();
        let joined: usize = sizes[start..=end].iter().product();
        let sizes = [&sizes[..start], &[joined], &sizes[end + 1..]].concat();
        self.reshape(&signed(&sizes))
    }

    /// Adds a dimension of size 1.
    #[track_caller]
    pub fn unsqueeze(&self, dim: i64) -> Result<Tensor> {
        let dim = crate::shape::normalize_dim(dim, self.ndim() + 1)?;
        // Its stride spans the next dimension.
        let stride = if dim < self.ndim() { self.sizes()[dim] * self.strides()[dim] } else { 1 };
        let layout = self.layout().insert_dim(dim, 1, stride)?;
        ops::apply(View { layout, operation: &UNSQUEEZE }, [self])
    }

    /// Removes a dimension if its size is 1.
    #[track_caller]
    pub fn squeeze(&self, dim: i64) -> Result<Tensor> {
        let dim = self.layout().dim(dim)?;
        let layout = match self.sizes().get(dim) {
            Some(1) => self.layout().remove_dim(dim),
            _ => *self.layout(),
        };
        ops::apply(View { layout, operation: &SQUEEZE }, [self])
    }

    /// Repeats dimensions of size 1 without a copy. A size of −1 keeps a dimension.
    #[track_caller]
    pub fn expand(&self, sizes: &[i64]) -> Result<Tensor> {
        let Some(new) = sizes.len().checked_sub(self.ndim()) else {
            let tensor = (self.device().device_type(), self.dtype());
            let (from, to) = (self.sizes().to_vec(), sizes.to_vec());
            return Err(ShapeError::ExpandDims { tensor, from, to }.into());
        };
        let mut resolved = sizes.to_vec();
        // From the last dimension, because PyTorch's error names the last that does not fit.
        for (dim, size) in resolved.iter_mut().enumerate().rev() {
            match (*size, dim.checked_sub(new).map(|dim| self.sizes()[dim] as i64)) {
                (-1, Some(own)) => *size = own,
                (-1, None) if self.ndim() > 0 => {
                    return Err(ShapeError::ExpandLeading { size: -1, dim }.into());
                }
                (size, Some(own)) if own != 1 && own != size => {
                    return Err(
                        LayoutError::Expand { from: self.sizes().to_vec(), to: sizes.to_vec(), dim }.into()
                    );
                }
                _ => {}
            }
        }
        // PyTorch treats a negative size as one beyond all bounds.
        let resolved: Result<Vec<usize>, _> = resolved.into_iter().map(usize::try_from).collect();
        let layout = self.layout().expand(&resolved.map_err(|_| LayoutError::TooManyElements)?)?;
        ops::apply(Expand { layout }, [self])
    }

    /// Reorders the dimensions.
    #[track_caller]
    pub fn permute(&self, dims: &[i64]) -> Result<Tensor> {
        if dims.len() != self.ndim() {
            return Err(ShapeError::PermuteDims { ndim: self.ndim(), given: dims.len() }.into());
        }
        let dims: Vec<usize> = dims.iter().map(|dim| self.checked_dim(*dim)).collect::<Result<_>>()?;
        if dims.iter().enumerate().any(|(i, dim)| dims[..i].contains(dim)) {
            return Err(ShapeError::PermuteRepeatedDim.into());
        }
        ops::apply(Permute { dims }, [self])
    }

    /// Swaps two dimensions.
    #[track_caller]
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        let (a, b) = (self.layout().dim(a)?, self.layout().dim(b)?);
        ops::apply(Transpose { a, b, operation: &TRANSPOSE }, [self])
    }

    /// Transposes a matrix (`Tensor.t`). For a vector or a number, returns an unchanged view.
    #[track_caller]
    pub fn t(&self) -> Result<Tensor> {
        match self.ndim() {
            ndim @ 0..=2 => {
                let b = usize::from(ndim == 2);
                ops::apply(Transpose { a: 0, b, operation: &T }, [self])
            }
            ndim => Err(ShapeError::TransposeDims { ndim }.into()),
        }
    }

    /// Selects an entry of a dimension, which is removed: `x.select(0, 2)` is `x[2]`.
    #[track_caller]
    pub fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        let dim = self.dim_of_view(dim, "select")?;
        match from_start(index, self.sizes()[dim]) {
            Some(index) => ops::apply(Select { dim, index, operation: &SELECT }, [self]),
            None => Err(ShapeError::SelectOutOfRange { index, sizes: self.sizes().to_vec(), dim }.into()),
        }
    }

    /// Selects `x[index]` along the first dimension.
    #[track_caller]
    pub fn get(&self, index: i64) -> Result<Tensor> {
        // As in Python, index 0 of a 0-dim tensor has another message than all other indices out of bounds.
        let size = match self.sizes().first() {
            None if index == 0 => return Err(IndexError::GetOfNumber.into()),
            size => size.copied().unwrap_or(0),
        };
        match from_start(index, size) {
            Some(index) => ops::apply(Select { dim: 0, index, operation: &SELECT }, [self]),
            None => Err(IndexError::OutOfBounds { index, dim: 0, size }.into()),
        }
    }

    /// Splits a dimension into views of its entries, without the dimension (`torch.unbind`): the rows of a matrix.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let rows = Tensor::new([[1, 2], [3, 4]])?.unbind(0)?;
    /// assert_eq!(rows[1].to_vec::<i64>()?, [3, 4]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn unbind(&self, dim: i64) -> Result<Vec<Tensor>> {
        let dim = self.dim_of_view(dim, "unbind")?;
        let entry = |index| ops::apply(Select { dim, index, operation: &UNBIND }, [self]);
        (0..self.sizes()[dim]).map(|index| Ok(entry(index)?.among_several(index))).collect()
    }

    /// Selects `length` entries of a dimension from `start`.
    #[track_caller]
    pub fn narrow(&self, dim: i64, start: usize, length: usize) -> Result<Tensor> {
        let dim = self.dim_of_view(dim, "narrow")?;
        let size = self.sizes()[dim];
        if start > size {
            return Err(ShapeError::NarrowStart { start, size }.into());
        }
        if start.checked_add(length).is_none_or(|end| end > size) {
            return Err(ShapeError::NarrowOutOfBounds { start, length, size }.into());
        }
        ops::apply(Slice { dim, start, length, step: 1, operation: &SLICE }, [self])
    }

    /// Like `narrow`, for a part of a split or chunk, as `operation`.
    #[track_caller]
    pub(super) fn part(
        &self,
        dim: usize,
        start: usize,
        length: usize,
        operation: &'static Operation,
    ) -> Result<Tensor> {
        ops::apply(Slice { dim, start, length, step: 1, operation }, [self])
    }

    /// Selects Python's `x[start:end:step]` along a dimension. Bounds beyond the size are clamped.
    #[track_caller]
    pub fn slice(&self, dim: i64, start: i64, end: i64, step: usize) -> Result<Tensor> {
        let dim = self.dim_of_view(dim, "slice")?;
        if step == 0 {
            return Err(ShapeError::SliceStep.into());
        }
        let size = self.sizes()[dim] as i64;
        let bound = |at: i64| if at < 0 { at.saturating_add(size) } else { at }.clamp(0, size) as usize;
        let (start, end) = (bound(start), bound(end));
        let length = end.saturating_sub(start).div_ceil(step);
        ops::apply(Slice { dim, start, length, step, operation: &SLICE }, [self])
    }

    /// Returns all windows of `size` entries of a dimension, `step` apart, in a new last dimension.
    #[track_caller]
    pub fn unfold(&self, dim: i64, size: usize, step: usize) -> Result<Tensor> {
        let dim = self.layout().dim(dim)?;
        let of = self.sizes().get(dim).copied().unwrap_or(1); // A 0-dim tensor counts as one entry.
        if size > of {
            return Err(ShapeError::UnfoldTooLarge { dim, size: of, window: size }.into());
        }
        if step == 0 {
            return Err(Error::custom("step is 0 but must be > 0"));
        }
        ops::apply(Unfold { dim, size, step }, [self])
    }

    fn dim_of_view(&self, dim: i64, operation: &'static str) -> Result<usize> {
        match self.ndim() {
            0 => Err(ShapeError::ViewOfNumber { operation }.into()),
            _ => Ok(self.layout().dim(dim)?),
        }
    }
}

/// Gives a product its final sizes. In PyTorch, this is no view, and its node depends on the kind of product.
#[track_caller]
pub(crate) fn viewed(x: &Tensor, sizes: &[usize], operation: &'static Operation) -> Result<Tensor> {
    let layout = x.layout().view(sizes)?.ok_or(ShapeError::ViewStrides)?;
    Ok(ops::apply(View { layout, operation }, [x])?.without_base())
}

/// Converts an index that may count from the end.
fn from_start(index: i64, size: usize) -> Option<usize> {
    let from_start = if index < 0 { index + size as i64 } else { index };
    usize::try_from(from_start).ok().filter(|index| *index < size)
}

/// A view that keeps the order of the elements. Its gradient gets the input's sizes.
struct View {
    layout: Layout,
    operation: &'static Operation,
}

impl Function<1> for View {
    fn operation(&self) -> &'static Operation {
        self.operation
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        Ok(x.with_layout(self.layout))
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.reshape(&signed(saved.input_sizes(0)))?)])
    }
}

struct Expand {
    layout: Layout,
}

impl Function<1> for Expand {
    fn operation(&self) -> &'static Operation {
        &EXPAND
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        Ok(x.with_layout(self.layout))
    }

    /// The engine sums a gradient down to the shape of its input.
    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.clone())])
    }
}

struct Permute {
    dims: Vec<usize>,
}

impl Function<1> for Permute {
    fn operation(&self) -> &'static Operation {
        &PERMUTE
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        Ok(x.with_layout(x.layout().permute(&self.dims)))
    }

    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let mut inverse = vec![0; self.dims.len()];
        for (to, from) in self.dims.iter().enumerate() {
            inverse[*from] = to as i64;
        }
        Ok([Some(grad.permute(&inverse)?)])
    }
}

struct Transpose {
    a: usize,
    b: usize,
    operation: &'static Operation,
}

impl Function<1> for Transpose {
    fn operation(&self) -> &'static Operation {
        self.operation
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        Ok(x.with_layout(x.layout().transpose(self.a, self.b)))
    }

    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.transpose(self.a as i64, self.b as i64)?)])
    }
}

fn zeros_but(sizes: &[usize], grad: &Tensor, view: impl FnOnce(&Tensor) -> Tensor) -> Result<Tensor> {
    let whole = grad.new_full(sizes, 0)?;
    write(&view(&whole), grad)?;
    Ok(whole)
}

struct Select {
    dim: usize,
    index: usize,
    operation: &'static Operation,
}

impl Select {
    fn view(&self, x: &Tensor) -> Tensor {
        x.with_layout(x.layout().slice(self.dim, self.index, 1, 1).remove_dim(self.dim))
    }
}

impl Function<1> for Select {
    fn operation(&self) -> &'static Operation {
        self.operation
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        Ok(self.view(x))
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let grad_x = ops::call(&SELECT_BACKWARD, &[grad], |_| {
            zeros_but(saved.input_sizes(0), grad, |x| self.view(x))
        })?;
        Ok([Some(grad_x)])
    }
}

struct Slice {
    dim: usize,
    start: usize,
    length: usize,
    step: usize,
    operation: &'static Operation,
}

impl Slice {
    fn view(&self, x: &Tensor) -> Tensor {
        x.with_layout(x.layout().slice(self.dim, self.start, self.length, self.step))
    }
}

impl Function<1> for Slice {
    fn operation(&self) -> &'static Operation {
        self.operation
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        Ok(self.view(x))
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let grad_x =
            ops::call(&SLICE_BACKWARD, &[grad], |_| zeros_but(saved.input_sizes(0), grad, |x| self.view(x)))?;
        Ok([Some(grad_x)])
    }
}

struct Unfold {
    dim: usize,
    size: usize,
    step: usize,
}

impl Function<1> for Unfold {
    fn operation(&self) -> &'static Operation {
        &UNFOLD
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        if x.ndim() == 0 {
            return Ok(x.with_layout(x.layout().insert_dim(0, self.size, 1)?));
        }
        let windows = (x.sizes()[self.dim] - self.size) / self.step + 1;
        let stride = x.strides()[self.dim];
        let starts = x.layout().slice(self.dim, 0, windows, self.step);
        Ok(x.with_layout(starts.insert_dim(x.ndim(), self.size, stride)?))
    }

    /// An element in several windows gets the sum of their gradients.
    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        if saved.input_sizes(0).is_empty() {
            return Ok([Some(grad.sum()?)]);
        }
        let grad_x = grad.new_full(saved.input_sizes(0), 0)?;
        for window in 0..grad.sizes()[self.dim] {
            let from = grad.select(self.dim as i64, window as i64)?;
            let to = grad_x.narrow(self.dim as i64, window * self.step, self.size)?;
            // The window's entries are the last dimension of `from`, and dimension `dim` of `to`.
            let mut dims: Vec<i64> = (0..from.ndim() as i64 - 1).collect();
            dims.insert(self.dim, -1);
            to.add_(&from.permute(&dims)?)?;
        }
        Ok([Some(grad_x.as_new())])
    }
}
