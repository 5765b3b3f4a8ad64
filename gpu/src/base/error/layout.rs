//! Errors of shapes.

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
    #[error(
        "a tensor has at most {} dimensions, but this one would have {ndim}",
        crate::base::shape::MAX_DIMS
    )]
    TooManyDims { ndim: usize },
    #[error("numel: integer multiplication overflow")]
    TooManyElements,
    #[error("Storage size calculation overflowed with sizes={sizes:?}")]
    TooLarge { sizes: Vec<usize> },
    #[error("Stride calculation overflowed")]
    StridesTooLarge,
    #[error("Trying to create tensor with negative dimension {}: {sizes:?}", .sizes[*.index])]
    NegativeSize { sizes: Vec<i64>, index: usize },
}

crate::debug_is_message!(LayoutError);
