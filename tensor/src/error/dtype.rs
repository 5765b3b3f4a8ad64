use crate::dtype::DType;
use crate::error::{Error, Refusal};

/// An error of a dtype.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum DTypeError {
    #[error("\"{operation}\" not implemented for '{}'", .dtype.scalar_type())]
    NotImplemented { operation: &'static str, dtype: DType },
    #[error("expected scalar type {} but found {}", .expected.scalar_type(), .got.scalar_type())]
    Expected { expected: DType, got: DType },
    #[error("result type {} can't be cast to the desired output type {}", .result.scalar_type(), .output.scalar_type())]
    InPlaceCast { result: DType, output: DType },
    #[error("this tensor holds {} values, which cannot be read as {}: convert it first, with .to(DType::{:?})", .held.scalar_type(), .asked.scalar_type(), .asked)]
    Read { held: DType, asked: DType },
}

todevice_gpu::debug_is_message!(DTypeError);

impl Refusal for DTypeError {}

pub(crate) fn not_implemented(operation: &'static str, dtype: DType) -> Error {
    DTypeError::NotImplemented { operation, dtype }.into()
}
