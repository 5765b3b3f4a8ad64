use crate::dtype::DType;
use crate::error::Refusal;

/// An error of a loss.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum LossError {
    #[error("Expected 1 or more dimensions (got 0)")]
    Input,
    #[error("Expected input batch_size ({input}) to match target batch_size ({target}).")]
    Batch { input: usize, target: usize },
    #[error("Expected target size {expected:?}, got {got:?}")]
    TargetSize { expected: Vec<usize>, got: Vec<usize> },
    #[error("0D or 1D target tensor expected, multi-target not supported")]
    MultiTarget,
    #[error("For 1D input, 1D target must have size 1, but got target size: {size}")]
    OneTarget { size: usize },
    #[error("Expected floating point type for target with class probabilities, got {}", .got.scalar_type())]
    Probabilities { got: DType },
    #[error("ignore_index is not supported for floating point target")]
    IgnoredProbabilities,
    #[error(
        "cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {weight:?}"
    )]
    ProbabilitiesWeight { classes: usize, weight: Vec<usize> },
    #[error("label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")]
    Smoothing { smoothing: f64 },
    #[error("nll_loss() got an unexpected keyword argument 'label_smoothing'")]
    SmoothingOfNllLoss,
    #[error("Target {target} is out of bounds.")]
    TargetOutOfBounds { target: i64 },
    #[error(
        "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {weight:?}"
    )]
    Weight { classes: usize, weight: Vec<usize> },
    #[error("only batches of spatial targets supported (3D tensors) but got targets of dimension: {ndim}")]
    SpatialTargets { ndim: usize },
    // PyTorch's text lacks this bracket, too.
    #[error("size mismatch (got input: {input:?} , target: {target:?}")]
    SpatialSizes { input: Vec<usize>, target: Vec<usize> },
    #[error("weight tensor should be defined either for all or no classes")]
    SpatialWeight,
    #[error("Found dtype {} but expected {}", .found.scalar_type(), .expected.scalar_type())]
    DTypes { found: DType, expected: DType },
}

todevice_gpu::debug_is_message!(LossError);

impl Refusal for LossError {
    fn kind(&self) -> &'static str {
        match self {
            LossError::Input | LossError::Batch { .. } | LossError::OneTarget { .. } => "ValueError",
            LossError::SmoothingOfNllLoss => "TypeError",
            LossError::TargetOutOfBounds { .. } => "IndexError",
            _ => "RuntimeError",
        }
    }
}
