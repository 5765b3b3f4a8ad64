use crate::dtype::DType;
use crate::error::Refusal;

/// An error of a reduction.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum ReduceError {
    #[error("dim {dim} appears multiple times in the list of dims")]
    RepeatedDim { dim: usize },
    #[error(
        "{operation}(): Expected reduction dim to be specified for input.numel() == 0.{}", if .operation.starts_with("arg") { "" } else { " Specify the reduction dim with the 'dim' argument." }
    )]
    Empty { operation: &'static str },
    #[error("{operation}(): Expected reduction dim {dim} to have non-zero size.")]
    EmptyDim { operation: &'static str, dim: i64 },
    #[error("{operation}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {}", .got.scalar_type())]
    NeedsFloat { operation: &'static str, got: DType },
}

todevice_gpu::debug_is_message!(ReduceError);

impl Refusal for ReduceError {
    fn kind(&self) -> &'static str {
        match self {
            ReduceError::Empty { operation } if operation.starts_with("arg") => "IndexError",
            ReduceError::EmptyDim { .. } => "IndexError",
            _ => "RuntimeError",
        }
    }
}
