use crate::error::Refusal;

/// An error of a [`GradScaler`](super::GradScaler).
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum ScalerError {
    #[error("The growth factor must be > 1.0.")]
    GrowthFactor,
    #[error("The backoff factor must be < 1.0.")]
    BackoffFactor,
    #[error(
        "Attempted {function} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
    )]
    ScaleIsNone { function: &'static str },
    #[error("unscale_() has already been called on this optimizer since the last update().")]
    UnscaleTwice,
    #[error("unscale_() is being called after step().")]
    UnscaleAfterStep,
    #[error("Attempting to unscale FP16 gradients.")]
    UnscaleF16,
    #[error("step() has already been called since the last update().")]
    StepTwice,
    #[error("No inf checks were recorded for this optimizer.")]
    NoInfChecksForOptimizer,
    #[error("No inf checks were recorded prior to update.")]
    NoInfChecksForUpdate,
    #[error(
        "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
    )]
    EmptyState,
    #[error("the state of a GradScaler has {value} for '{key}', which is no count")]
    State { key: &'static str, value: i64 },
}

todevice_gpu::debug_is_message!(ScalerError);

impl Refusal for ScalerError {}
