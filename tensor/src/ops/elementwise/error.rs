use crate::dtype::DType;
use crate::error::Refusal;

/// An error of an elementwise operation.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum ElementwiseError {
    #[error("output with shape {output:?} doesn't match the broadcast shape {broadcast:?}")]
    InPlaceBroadcast { output: Vec<usize>, broadcast: Vec<usize> },
    #[error(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
    )]
    SubtractTwoBools,
    #[error(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    )]
    SubtractBool,
    #[error("where expected condition to be a boolean tensor, but got a tensor with dtype {}", .got.scalar_type())]
    WhereCondition { got: DType },
    #[error("masked_fill_ only supports boolean masks, but got mask with dtype {}", .got.cpp_name())]
    MaskDType { got: DType },
    #[error(
        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {got} dimension(s)."
    )]
    MaskedFillValue { got: usize },
    #[error("{name} must be greater than or equal to zero, but got {}", if .got.is_nan() { "nan".to_owned() } else { .got.to_string() })]
    Tolerance { name: &'static str, got: f64 },
}

todevice_gpu::debug_is_message!(ElementwiseError);

impl Refusal for ElementwiseError {}
