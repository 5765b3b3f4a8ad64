//! Errors of a machine: in its description, or of its GPUs.

use crate::error::Refusal;

/// An error in creating or describing a machine.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants.
pub enum MachineError {
    /// The text is not a valid machine or seed.
    #[error("{0}")]
    Description(String),
    /// This computer cannot provide the machine.
    #[error("{0}")]
    Unavailable(String),
}

todevice_gpu::debug_is_message!(MachineError);

impl Refusal for MachineError {
    fn kind(&self) -> &'static str {
        match self {
            MachineError::Description(_) => "ValueError",
            MachineError::Unavailable(_) => "RuntimeError",
        }
    }
}
