use crate::device::DeviceType;
use crate::dtype::DType;
use crate::error::{Refusal, tensor_type};

/// An error of a view, or of joining or splitting tensors.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum ShapeError {
    #[error("expand({}{{{from:?}}}, size={to:?}): the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})", tensor_type(*.tensor), .to.len(), .from.len())]
    ExpandDims { tensor: (DeviceType, DType), from: Vec<usize>, to: Vec<i64> },
    #[error(
        "The expanded size of the tensor ({size}) isn't allowed in a leading, non-existing dimension {dim}"
    )]
    ExpandLeading { size: i64, dim: usize },
    #[error("t() expects a tensor with <= 2 dimensions, but self is {ndim}D")]
    TransposeDims { ndim: usize },
    #[error(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
    )]
    ViewStrides,
    #[error(
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {given}"
    )]
    PermuteDims { ndim: usize, given: usize },
    #[error("permute(): duplicate dims are not allowed.")]
    PermuteRepeatedDim,
    #[error("{operation}() cannot be applied to a 0-dim tensor.")]
    ViewOfNumber { operation: &'static str },
    #[error("select(): index {index} out of range for tensor of size {sizes:?} at dimension {dim}")]
    SelectOutOfRange { index: i64, sizes: Vec<usize>, dim: usize },
    #[error("start out of range (expected to be in range of [{}, {size}], but got {start})", -(*.size as i64))]
    NarrowStart { start: usize, size: usize },
    #[error("start ({start}) + length ({length}) exceeds dimension size ({size}).")]
    NarrowOutOfBounds { start: usize, length: usize, size: usize },
    #[error("slice step must be positive")]
    SliceStep,
    #[error("maximum size for tensor at dimension {dim} is {size} but size is {window}")]
    UnfoldTooLarge { dim: usize, size: usize, window: usize },
    #[error("{operation} expects at least a 1-dimensional tensor")]
    PartsOfNumber { operation: &'static str },
    #[error("split_size can only be 0 if dimension size is 0, but got dimension size of {size}")]
    SplitSize { size: usize },
    #[error("chunk expects `chunks` to be greater than 0, got: 0")]
    NoChunks,
    #[error("torch.cat(): expected a non-empty list of Tensors")]
    EmptyCat,
    #[error("{operation} expects a non-empty TensorList")]
    EmptyList { operation: &'static str },
    #[error("zero-dimensional tensor (at position {position}) cannot be concatenated")]
    ZeroDimCat { position: usize },
    #[error("Tensors must have same number of dimensions: got {expected} and {got}")]
    CatDims { expected: usize, got: usize },
    #[error(
        "Sizes of tensors must match except in dimension {dim}. Expected size {expected} but got size {got} for tensor number {index} in the list."
    )]
    CatSizes { dim: usize, expected: usize, got: usize, index: usize },
    #[error(
        "stack expects each tensor to be equal size, but got {expected:?} at entry 0 and {got:?} at entry {index}"
    )]
    StackSizes { expected: Vec<usize>, got: Vec<usize>, index: usize },
}

todevice_gpu::debug_is_message!(ShapeError);

impl Refusal for ShapeError {
    fn kind(&self) -> &'static str {
        match self {
            ShapeError::SelectOutOfRange { .. } | ShapeError::NarrowStart { .. } => "IndexError",
            ShapeError::EmptyCat => "ValueError",
            _ => "RuntimeError",
        }
    }
}
