use crate::error::Refusal;

/// An error of an optimizer or a schedule.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
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
    #[error(
        "lr must have the same length as optimizer.param_groups. lr has {given} values, param_groups has {groups}."
    )]
    LearningRates { given: usize, groups: usize },
    #[error("loaded state dict has a different number of parameter groups")]
    GroupCount,
    #[error("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")]
    GroupSizes,
    #[error("loaded state dict has no '{name}' in a parameter group: it is not the state of {optimizer}")]
    NoOption { optimizer: &'static str, name: &'static str },
    #[error("loaded state dict has {name}=True, which {optimizer} does not have here")]
    Choice { optimizer: &'static str, name: &'static str },
    #[error(
        "size mismatch for {name} of parameter {id}: copying a state with shape torch.Size({found:?}), the shape of the parameter is torch.Size({expected:?})"
    )]
    StateSizes { name: &'static str, id: String, found: Vec<usize>, expected: Vec<usize> },
    #[error("expected a pair of numbers, found {len}")]
    Pair { len: usize },
    #[error("'step' is one number, and not of shape torch.Size({sizes:?})")]
    Step { sizes: Vec<usize> },
}

todevice_gpu::debug_is_message!(OptimError);

impl Refusal for OptimError {
    fn kind(&self) -> &'static str {
        match self {
            OptimError::NotPositive { .. }
            | OptimError::LearningRates { .. }
            | OptimError::GroupCount
            | OptimError::GroupSizes => "ValueError",
            OptimError::NoOption { .. } => "KeyError",
            _ => "RuntimeError",
        }
    }
}
