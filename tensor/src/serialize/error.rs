//! What can go wrong with checkpoints.

use crate::error::Refusal;

/// An error of a checkpoint: of what it is made of, or of the file it is in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // A variant's message says what it is, and names its fields.
pub enum SerializeError {
    #[error("expected {expected}, found {found}")]
    Kind { expected: &'static str, found: &'static str },
    /// `key` as Python's `repr` writes it.
    #[error("{key}")]
    Key { key: String },
    #[error("'{key}': {error}")]
    Field { key: &'static str, error: String },
    #[error("expected a count, found {number}")]
    Negative { number: i64 },
}

impl Refusal for SerializeError {
    fn kind(&self) -> &'static str {
        match self {
            SerializeError::Kind { .. } | SerializeError::Field { .. } => "TypeError",
            SerializeError::Key { .. } => "KeyError",
            SerializeError::Negative { .. } => "ValueError",
        }
    }
}
