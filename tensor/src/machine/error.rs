//! What can go wrong with a machine: with its description, or with the GPUs that it asks for.

use crate::error::Refusal;

/// An error of a machine that cannot be made, or of a text that describes one.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // A variant's message says what it is.
pub enum MachineError {
    /// The text describes no machine, or no seed.
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
