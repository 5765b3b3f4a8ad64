//! What can go wrong with optimizers and schedules.

use crate::error::Refusal;

/// An error of an optimizer or a schedule.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // A variant's message says what it is, and names its fields.
pub enum OptimError {
    #[error("optimizer got an empty parameter list")]
    NoParameters,
    #[error("some parameters appear in more than one parameter group")]
    RepeatedParameter,
    #[error("Invalid {name}: {value:?}")]
    InvalidHyperparameter { name: &'static str, value: f64 },
    #[error("Nesterov momentum requires a momentum and zero dampening")]
    Nesterov,
    #[error("{option} should be a positive integer value, but got {option}={value}")]
    NotPositive { option: &'static str, value: usize },
}

impl Refusal for OptimError {
    fn kind(&self) -> &'static str {
        match self {
            OptimError::NotPositive { .. } => "ValueError",
            _ => "RuntimeError",
        }
    }
}
