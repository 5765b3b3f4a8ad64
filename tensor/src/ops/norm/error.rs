use crate::error::Refusal;
use crate::python::python_float;

/// An error of normalisation.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum NormError {
    #[error("Expected more than 1 value per channel when training, got input size torch.Size({sizes:?})")]
    BatchNormBatch { sizes: Vec<usize> },
    #[error("{name} should contain {channels} elements not {got}")]
    BatchNormChannels { name: &'static str, channels: usize, got: usize },
    #[error("running_mean must be defined in evaluation mode")]
    BatchNormEvaluation,
    #[error("running_mean and running_var must either both be None or neither be None")]
    BatchNormRunning,
    #[error("batch_norm eps must be positive, but got {}", python_float(*eps))]
    BatchNormEps { eps: f64 },
    #[error("batch_norm needs an input of at least 2 dimensions: batch and channels")]
    BatchNormDims,
    #[error(
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []"
    )]
    LayerNormNoShape,
    #[error(
        "Given normalized_shape={normalized_shape:?}, expected input with shape [*, {}], but got input of size{input:?}",
        .normalized_shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
    )]
    LayerNormShape { normalized_shape: Vec<usize>, input: Vec<usize> },
    #[error(
        "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {got:?} and normalized_shape = {normalized_shape:?}"
    )]
    LayerNormParameter { name: &'static str, got: Vec<usize>, normalized_shape: Vec<usize> },
    #[error("mixed dtype (CPU): all inputs must share same datatype.")]
    MixedTypes,
    #[error("mixed dtype (CPU): expect parameter to have scalar type of Float")]
    MixedParameterType,
}

todevice_gpu::debug_is_message!(NormError);

impl Refusal for NormError {
    fn kind(&self) -> &'static str {
        match self {
            NormError::BatchNormBatch { .. } => "ValueError",
            _ => "RuntimeError",
        }
    }
}
