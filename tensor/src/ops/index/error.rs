use crate::device::{Device, DeviceType};
use crate::dtype::DType;
use crate::error::{Refusal, tensor_type};

/// An error of an index, or of an index tensor.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum IndexError {
    #[error("index {index} is out of bounds for dimension {dim} with size {size}")]
    OutOfBounds { index: i64, dim: usize, size: usize },
    /// An element of the index of `gather` or `scatter`.
    #[error("index {index} is out of bounds for dimension {dim} with size {size}")]
    ElementOutOfBounds { index: i64, dim: usize, size: usize },
    #[error("index out of range in self")]
    OutOfRange { index: i64, size: usize },
    #[error("INDICES element is out of DATA bounds, id={index} axis_dim={size}")]
    OutOfData { index: i64, size: usize },
    #[error("index is out of bounds for dimension with size 0")]
    OfNothing,
    #[error("index_select(): self indexing axis dim should be positive")]
    SelectOfNothing,
    #[error("too many indices for tensor of dimension {dims}")]
    TooMany { dims: usize },
    #[error(
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
    )]
    GetOfNumber,
    #[error("indices should be either on cpu or on the same device as the indexed tensor ({device})")]
    Device { device: Device },
    #[error("tensors used as indices must be long, int, byte or bool tensors")]
    DType,
    #[error(
        "The shape of the mask {mask:?} at index {at} does not match the shape of the indexed tensor {indexed:?} at index {at}"
    )]
    MaskShape { mask: Vec<usize>, at: usize, indexed: Vec<usize> },
    #[error("masked_select: expected BoolTensor for mask")]
    SelectMask,
    #[error(
        "shape mismatch: value tensor of shape {values:?} cannot be broadcast to indexing result of shape {result:?}"
    )]
    PutShape { values: Vec<usize>, result: Vec<usize> },
    #[error(
        "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
        .target.scalar_type(), .source_type.scalar_type()
    )]
    PutTypes { target: DType, source_type: DType },
    #[error("index_select(): Expected dtype int32 or int64 for index")]
    SelectDType,
    #[error("{operation}(): Expected dtype int32/int64 for index")]
    GatherDType { operation: &'static str },
    #[error("index_add_(): Expected dtype int32/int64 for index but got: {}", .got.scalar_type())]
    AddDType { got: DType },
    #[error("index_select(): Index is supposed to be a vector")]
    NotAVector,
    #[error("index_add_(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {sizes:?}", .sizes.len(), .dtype.scalar_type())]
    AddNotAVector { dtype: DType, sizes: Vec<usize> },
    #[error(
        "index_add_(): self ({}) and source ({}) must have the same scalar type", .target.scalar_type(), .source_type.scalar_type()
    )]
    AddTypes { target: DType, source_type: DType },
    #[error(
        "index_add_(): Number of indices ({indices}) should be equal to source.size(dim): ({source_size}), for dim: {dim}"
    )]
    AddCount { indices: usize, source_size: usize, dim: usize },
    #[error(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {target:?} source.shape = {source_sizes:?}"
    )]
    AddShape { target: Vec<usize>, source_sizes: Vec<usize> },
    #[error("Index tensor must have the same number of dimensions as {other} tensor")]
    GatherDims { other: &'static str },
    #[error(
        "Size does not match at dimension {dim} expected index {index:?} to be no larger than self {input:?} apart from dimension {gather_dim}"
    )]
    GatherSizes { dim: usize, index: Vec<usize>, input: Vec<usize>, gather_dim: usize },
    #[error(
        "Expected index {index:?} to be no larger than self {target:?} apart from dimension {dim} and to be no larger size than src {source_sizes:?}"
    )]
    ScatterSizes { index: Vec<usize>, target: Vec<usize>, dim: usize, source_sizes: Vec<usize> },
    #[error(
        "Expected tensor to have {device} Device, but got tensor with {got} Device (while checking arguments for torch.take_along_dim():)"
    )]
    TakeDevice { device: Device, got: Device },
    #[error(
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {input} dimensions for input, and {indices} dimensions for indices"
    )]
    TakeDims { input: usize, indices: usize },
    #[error("torch.take_along_dim(): dtype of indices should be Long but got {}", .got.scalar_type())]
    TakeDType { got: DType },
    #[error("'weight' must be 2-D")]
    EmbeddingWeight,
    #[error(
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got {} instead (while checking arguments for embedding)", tensor_type(*.got)
    )]
    EmbeddingDType { got: (DeviceType, DType) },
    #[error("Padding_idx must be within num_embeddings")]
    Padding,
    #[error("scatter(): Expected self.dtype to be equal to src.dtype")]
    ScatterTypes,
}

todevice_gpu::debug_is_message!(IndexError);

impl Refusal for IndexError {
    fn kind(&self) -> &'static str {
        match self {
            IndexError::OutOfBounds { .. }
            | IndexError::OutOfRange { .. }
            | IndexError::OfNothing
            | IndexError::TooMany { .. }
            | IndexError::MaskShape { .. }
            | IndexError::DType
            | IndexError::GetOfNumber => "IndexError",
            IndexError::Padding => "AssertionError",
            _ => "RuntimeError",
        }
    }
}
