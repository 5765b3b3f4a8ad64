//! The layout of a tensor: sizes, strides and an offset into its storage. A view has another [`Layout`].

use smallvec::{SmallVec, smallvec};

use crate::base::sort;

/// The maximum number of dimensions. It is fixed because a kernel's arguments carry sizes and strides by value.
pub const MAX_DIMS: usize = 8;

/// A number for each dimension.
pub type Dims = SmallVec<[usize; MAX_DIMS]>;

/// Sizes and strides in elements, and the offset of the first element in the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    ndim: usize,
    sizes: [usize; MAX_DIMS],
    strides: [usize; MAX_DIMS],
    pub offset: usize,
}

/// How the dimensions of a new tensor are ordered in memory (`torch.memory_format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryFormat {
    /// Row-major: the last dimension is the fastest (`torch.contiguous_format`).
    Contiguous,
    /// Images of sizes N×C×H×W, stored as N×H×W×C: all channels of a pixel lie side by side (`torch.channels_last`).
    ChannelsLast,
    /// The strides of the source, without its gaps (`torch.preserve_format`).
    #[default]
    Preserve,
}

pub type Result<T, E = LayoutError> = std::result::Result<T, E>;

#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The message of a variant describes it and its fields.
pub enum LayoutError {
    #[error(
        "The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"
    )]
    Broadcast { a: usize, b: usize, dim: usize },
    #[error("The expanded size of the tensor ({}) must match the existing size ({}) at non-singleton dimension {dim}.  Target sizes: {to:?}.  Tensor sizes: {from:?}", .to[*.dim], .from[.dim + .from.len() - .to.len()])]
    Expand { from: Vec<usize>, to: Vec<i64>, dim: usize },
    #[error("shape '{sizes:?}' is invalid for input of size {numel}")]
    InvalidShape { sizes: Vec<i64>, numel: usize },
    #[error("invalid shape dimension {} at index {index} of shape {sizes:?}", .sizes[*.index])]
    InvalidShapeDimension { sizes: Vec<i64>, index: usize },
    #[error("only one dimension can be inferred")]
    TwoInferredSizes,
    #[error(
        "cannot reshape tensor of 0 elements into shape {sizes:?} because the unspecified dimension size -1 can be any value and is ambiguous"
    )]
    AmbiguousReshape { sizes: Vec<i64> },
    #[error("Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})")]
    DimOutOfRange { dim: i64, low: i64, high: i64 },
    #[error("a tensor has at most {} dimensions, but this one would have {ndim}", MAX_DIMS)]
    TooManyDims { ndim: usize },
    #[error("numel: integer multiplication overflow")]
    TooManyElements,
    #[error("Storage size calculation overflowed with sizes={sizes:?}")]
    TooLarge { sizes: Vec<usize> },
    #[error("Stride calculation overflowed")]
    StridesTooLarge,
    #[error("required rank 4 tensor to use channels_last format")]
    ChannelsLastDims,
    #[error("Trying to create tensor with negative dimension {}: {sizes:?}", .sizes[*.index])]
    NegativeSize { sizes: Vec<i64>, index: usize },
}

crate::debug_is_message!(LayoutError);

impl Layout {
    pub fn contiguous(sizes: &[usize]) -> Result<Layout> {
        let mut layout = Layout::from_parts(sizes, &[], 0)?;
        layout.bytes(1)?;
        let mut stride = 1usize;
        for dim in (0..layout.ndim).rev() {
            layout.strides[dim] = stride;
            if dim > 0 {
                // As in PyTorch, zero sizes count as 1 for the strides.
                let next = stride.checked_mul(sizes[dim].max(1)).filter(|next| *next <= isize::MAX as usize);
                stride = next.ok_or(LayoutError::StridesTooLarge)?;
            }
        }
        Ok(layout)
    }

    /// Like [`contiguous`](Self::contiguous), with the error of operations that count elements before they allocate.
    pub fn counted(sizes: &[usize]) -> Result<Layout> {
        Layout::contiguous(sizes).map_err(|error| match error {
            LayoutError::TooLarge { .. } => LayoutError::TooManyElements,
            error => error,
        })
    }

    pub fn bytes(&self, of_each: usize) -> Result<usize> {
        let numel = self.sizes().iter().try_fold(1usize, |numel, size| numel.checked_mul(*size));
        let bytes = numel.and_then(|numel| numel.checked_mul(of_each));
        bytes.filter(|bytes| *bytes <= isize::MAX as usize).ok_or_else(|| too_large(self.sizes()))
    }

    /// A layout with one stride per size, and the first element at `offset`. An empty tensor gets a contiguous layout.
    pub fn strided(sizes: &[usize], strides: &[usize], offset: usize) -> Result<Layout> {
        if sizes.contains(&0) {
            return Layout::contiguous(sizes);
        }
        let too_large = || LayoutError::TooLarge { sizes: sizes.to_vec() };
        let layout = Layout::from_parts(sizes, strides, offset)?;
        layout.check_countable()?;
        let far = isize::MAX as usize / 8;
        let reach = sizes.iter().zip(strides).try_fold(offset, |reach, (size, stride)| {
            reach.checked_add(size.checked_mul(*stride)?).filter(|reach| *reach <= far)
        });
        reach.map(|_| layout).ok_or_else(too_large)
    }

    pub(super) fn from_parts(sizes: &[usize], strides: &[usize], offset: usize) -> Result<Layout> {
        if sizes.len() > MAX_DIMS {
            return Err(LayoutError::TooManyDims { ndim: sizes.len() });
        }
        let mut layout = Layout { ndim: sizes.len(), sizes: [1; MAX_DIMS], strides: [0; MAX_DIMS], offset };
        layout.sizes[..sizes.len()].copy_from_slice(sizes);
        layout.strides[..strides.len()].copy_from_slice(strides);
        Ok(layout)
    }

    #[inline]
    pub fn sizes(&self) -> &[usize] {
        &self.sizes[..self.ndim]
    }

    #[inline]
    pub fn strides(&self) -> &[usize] {
        &self.strides[..self.ndim]
    }

    #[inline]
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    #[inline]
    pub fn numel(&self) -> usize {
        // The product of the other sizes may overflow.
        if self.sizes().contains(&0) { 0 } else { self.sizes().iter().product() }
    }

    /// This layout of a view in memory that begins with the first element of `base`.
    pub fn within(&self, base: &Layout) -> Layout {
        Layout { offset: self.offset - base.offset, ..*self }
    }

    /// The elements from the first to the last in memory. 0 if it is empty.
    #[inline]
    pub fn reach(&self) -> usize {
        if self.numel() == 0 {
            return 0;
        }
        1 + self.sizes().iter().zip(self.strides()).map(|(size, stride)| (size - 1) * stride).sum::<usize>()
    }

    #[inline]
    pub fn distinct(&self) -> usize {
        self.sizes()
            .iter()
            .zip(self.strides())
            .filter(|(_, stride)| **stride != 0)
            .map(|(size, _)| size)
            .product()
    }

    /// The layout of the distinct elements, and the layout of this tensor over a packed copy of them.
    pub fn packed(&self) -> (Layout, Layout) {
        let (mut distinct, mut packed, mut stride) = (*self, self.at_start(), 1);
        for dim in (0..self.ndim).rev() {
            if self.strides[dim] == 0 {
                distinct.sizes[dim] = 1;
            } else {
                packed.strides[dim] = stride;
                stride *= self.sizes[dim];
            }
        }
        (distinct, packed)
    }

    #[inline]
    pub fn at_start(&self) -> Layout {
        Layout { offset: 0, ..*self }
    }

    /// The same elements in the same order with the fewest dimensions: their number, sizes and strides. Drops
    /// dimensions of size 1, and merges contiguous dimensions. A contiguous tensor keeps one dimension, or none.
    pub fn merged_dims(&self) -> (usize, [usize; MAX_DIMS], [usize; MAX_DIMS]) {
        let (mut ndim, mut sizes, mut strides) = (0usize, [1; MAX_DIMS], [0; MAX_DIMS]);
        for (size, stride) in self.sizes().iter().zip(self.strides()).filter(|(size, _)| **size != 1) {
            let last = ndim.wrapping_sub(1);
            if ndim > 0 && strides[last] == stride * size {
                sizes[last] *= size;
                strides[last] = *stride;
            } else {
                (sizes[ndim], strides[ndim]) = (*size, *stride);
                ndim += 1;
            }
        }
        (ndim, sizes, strides)
    }

    /// Whether an index leads to the same element in both layouts, apart from their offsets.
    pub fn has_strides_of(&self, other: &Layout) -> bool {
        let dims = self.sizes().iter().zip(self.strides().iter().zip(other.strides()));
        self.sizes() == other.sizes() && dims.filter(|(size, _)| **size != 1).all(|(_, (a, b))| a == b)
    }

    /// Whether the elements in logical order are contiguous in memory.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let (mut is_contiguous, mut expected) = (true, 1);
        for (size, stride) in self.sizes().iter().zip(self.strides()).rev().filter(|(size, _)| **size != 1) {
            if *size == 0 {
                return true;
            }
            is_contiguous &= *stride == expected;
            expected = expected.wrapping_mul(*size); // A view that repeats memory may have too many elements.
        }
        is_contiguous
    }

    /// Whether two indices can address the same element, as in an expanded or unfolded view.
    ///
    /// Sorted by stride, each dimension must step over the reach of the smaller ones. Like PyTorch's test, this may
    /// report an overlap in exotic layouts that have none, but misses none.
    pub fn overlaps_itself(&self) -> bool {
        if self.numel() == 0 || self.is_contiguous() {
            return false;
        }
        let mut dims: Vec<(usize, usize)> = self
            .strides()
            .iter()
            .copied()
            .zip(self.sizes().iter().copied())
            .filter(|(_, size)| *size > 1)
            .collect();
        sort::few(&mut dims, |dim| *dim);
        let mut reach = 0;
        for (stride, size) in dims {
            if stride <= reach {
                return true;
            }
            reach += stride * (size - 1);
        }
        false
    }

    pub fn dim(&self, dim: i64) -> Result<usize> {
        normalize_dim(dim, self.ndim)
    }

    /// Returns an error if the number of elements overflows, which is possible for a view that repeats memory.
    fn check_countable(&self) -> Result<()> {
        let numel = self.sizes().iter().try_fold(1usize, |numel, size| numel.checked_mul(*size));
        match numel {
            _ if self.sizes().contains(&0) => Ok(()),
            Some(numel) if numel <= isize::MAX as usize => Ok(()),
            _ => Err(LayoutError::TooLarge { sizes: self.sizes().to_vec() }),
        }
    }

    pub fn expand(&self, sizes: &[usize]) -> Result<Layout> {
        let mut out = Layout::from_parts(sizes, &[], self.offset)?;
        let numel = sizes.iter().try_fold(1usize, |numel, size| numel.checked_mul(*size));
        if numel.is_none_or(|numel| numel > isize::MAX as usize) {
            return Err(LayoutError::TooManyElements);
        }
        let invalid = || LayoutError::InvalidShape { sizes: signed(sizes), numel: self.numel() };
        let new_dims = sizes.len().checked_sub(self.ndim).ok_or_else(invalid)?;
        for dim in (0..self.ndim).rev() {
            if self.sizes[dim] == sizes[new_dims + dim] {
                out.strides[new_dims + dim] = self.strides[dim];
            } else if self.sizes[dim] != 1 {
                let (from, to) = (self.sizes().to_vec(), signed(sizes));
                return Err(LayoutError::Expand { from, to, dim: new_dims + dim });
            }
        }
        // A new dimension of size 1 repeats nothing, so its stride steps over the next dimension. A number has none.
        let steps = if self.ndim == 0 { 0 } else { new_dims.min(sizes.len().saturating_sub(1)) };
        for dim in (0..steps).rev().filter(|dim| sizes[*dim] == 1) {
            out.strides[dim] = sizes[dim + 1] * out.strides[dim + 1];
        }
        out.check_countable()?;
        Ok(out)
    }

    pub fn permute(&self, dims: &[usize]) -> Layout {
        let mut out = *self;
        for (to, from) in dims.iter().enumerate() {
            out.sizes[to] = self.sizes[*from];
            out.strides[to] = self.strides[*from];
        }
        out
    }

    pub fn transpose(&self, a: usize, b: usize) -> Layout {
        let mut out = *self;
        out.sizes.swap(a, b);
        out.strides.swap(a, b);
        out
    }

    /// Every `step`-th element of `dim` from `start` on, `length` of them.
    pub fn slice(&self, dim: usize, start: usize, length: usize, step: usize) -> Layout {
        let mut out = *self;
        out.sizes[dim] = length;
        out.strides[dim] = out.strides[dim].wrapping_mul(step); // It overflows only if `length` is at most 1.
        // An empty view keeps its offset, because there may be no memory past the end.
        if out.numel() > 0 {
            out.offset += start * self.strides[dim];
        }
        out
    }

    pub fn remove_dim(&self, dim: usize) -> Layout {
        let mut out = *self;
        out.sizes.copy_within(dim + 1.., dim);
        out.strides.copy_within(dim + 1.., dim);
        out.ndim -= 1;
        (out.sizes[out.ndim], out.strides[out.ndim]) = (1, 0);
        out
    }

    pub fn insert_dim(&self, dim: usize, size: usize, stride: usize) -> Result<Layout> {
        if self.ndim == MAX_DIMS {
            return Err(LayoutError::TooManyDims { ndim: self.ndim + 1 });
        }
        let mut out = *self;
        out.sizes.copy_within(dim..self.ndim, dim + 1);
        out.strides.copy_within(dim..self.ndim, dim + 1);
        (out.sizes[dim], out.strides[dim]) = (size, stride);
        out.ndim += 1;
        out.check_countable()?;
        Ok(out)
    }

    /// The same elements with other sizes, if strides can express them (`Tensor::view`).
    pub fn view(&self, sizes: &[usize]) -> Result<Option<Layout>> {
        let mut out = Layout::counted(sizes)?;
        if self.numel() == 0 && self.sizes() == sizes {
            return Ok(Some(*self)); // PyTorch keeps the strides of an empty tensor.
        }
        out.offset = self.offset;
        if self.is_contiguous() {
            return Ok(Some(out));
        }
        // From the back: a new dimension must not span two runs of contiguous old dimensions.
        let (mut run_numel, mut run_stride) = (1, self.strides().last().copied().unwrap_or(1));
        let (mut taken, mut new_dim) = (1, sizes.len());
        for dim in (0..self.ndim).rev() {
            run_numel *= self.sizes[dim];
            let run_ends =
                dim == 0 || (self.sizes[dim - 1] != 1 && self.strides[dim - 1] != run_numel * run_stride);
            if !run_ends {
                continue;
            }
            while new_dim > 0 && (taken < run_numel || sizes[new_dim - 1] == 1) {
                new_dim -= 1;
                out.strides[new_dim] = taken * run_stride;
                taken *= sizes[new_dim];
            }
            if taken != run_numel {
                return Ok(None);
            }
            if dim > 0 {
                (run_numel, taken, run_stride) = (1, 1, self.strides[dim - 1]);
            }
        }
        Ok((new_dim == 0).then_some(out))
    }
}

/// Resolves a user's dimension. Negative ones count from the end, and a 0-dim tensor accepts 0 and −1.
pub fn normalize_dim(dim: i64, ndim: usize) -> Result<usize> {
    let range = ndim.max(1) as i64;
    if dim < -range || dim >= range {
        return Err(LayoutError::DimOutOfRange { dim, low: -range, high: range - 1 });
    }
    Ok(if dim < 0 { (dim + range) as usize } else { dim as usize })
}

/// The common shape of operands (`torch.broadcast_shapes`): aligned at the last dimension, a size of 1 is expanded.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Dims> {
    let ndim = a.len().max(b.len());
    let size =
        |sizes: &[usize], dim: usize| (dim + sizes.len()).checked_sub(ndim).map_or(1, |dim| sizes[dim]);
    let mut sizes = smallvec![0; ndim];
    // PyTorch reports the last mismatched dimension.
    for dim in (0..ndim).rev() {
        sizes[dim] = match (size(a, dim), size(b, dim)) {
            (a, b) if a == b || b == 1 => a,
            (1, b) => b,
            (a, b) => return Err(LayoutError::Broadcast { a, b, dim }),
        };
    }
    Ok(sizes)
}

/// The error for sizes whose byte count overflows. To PyTorch a size above `isize::MAX` is negative.
#[cold]
#[inline(never)]
fn too_large(sizes: &[usize]) -> LayoutError {
    let sizes = sizes.to_vec();
    match sizes.iter().position(|size| *size > isize::MAX as usize) {
        Some(index) => LayoutError::NegativeSize { sizes: signed(&sizes), index },
        None => LayoutError::TooLarge { sizes },
    }
}

/// Sizes as users pass them, where −1 is allowed.
pub fn signed(sizes: &[usize]) -> Vec<i64> {
    sizes.iter().map(|size| *size as i64).collect()
}

/// Resolves the `-1` of a reshape.
pub fn infer_sizes(sizes: &[i64], numel: usize) -> Result<Vec<usize>> {
    let invalid = || LayoutError::InvalidShape { sizes: sizes.to_vec(), numel };
    if let Some(index) = sizes.iter().position(|size| *size < -1) {
        return Err(LayoutError::InvalidShapeDimension { sizes: sizes.to_vec(), index });
    }
    let unknown = sizes.iter().filter(|size| **size == -1).count();
    if unknown > 1 {
        return Err(LayoutError::TwoInferredSizes);
    }
    let known = sizes
        .iter()
        .filter(|size| **size != -1)
        .fold(1usize, |product, size| product.wrapping_mul(*size as usize)); // As PyTorch.
    let fits = known == numel || (unknown == 1 && known as isize > 0 && numel.is_multiple_of(known));
    if !fits {
        return Err(invalid());
    }
    if unknown == 1 && known == 0 {
        return Err(LayoutError::AmbiguousReshape { sizes: sizes.to_vec() });
    }
    Ok(sizes.iter().map(|size| if *size == -1 { numel / known } else { *size as usize }).collect())
}
