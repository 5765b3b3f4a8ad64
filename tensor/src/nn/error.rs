use crate::dtype::DType;
use crate::error::Refusal;

/// An error of a module.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum ModuleError {
    #[error("{0}")]
    Conv(&'static str),
    #[error("nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")]
    NotFloating { dtype: DType },
    #[error("expected {expected} input (got {got}D input)")]
    ExpectedDims { expected: &'static str, got: usize },
    #[error("Error(s) in loading state_dict for {module}:\n\t{}", .problems.join("\n\t"))]
    StateDict { module: String, problems: Vec<String> },
    #[error("Error(s) in reparametrizing for {module}:\n\tUnexpected key(s): {names}.")]
    Unexpected { module: &'static str, names: String },
    #[error("{loss}.forward() missing 1 required positional argument: 'target'")]
    NoTarget { loss: &'static str },
    #[error("Expected state_dict to be dict-like, got <class '{class}'>.")]
    NotADict { class: &'static str },
    #[error(
        "While copying the parameter named \"{name}\", expected torch.Tensor or Tensor-like object from checkpoint but received <class '{class}'>"
    )]
    NotATensor { name: String, class: &'static str },
    #[error("a state_dict has tensors by name: at {key} it has a value of type {kind}")]
    NotAState { key: String, kind: &'static str },
    #[error(
        "The total norm of order {norm_type:?} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
    )]
    NonFiniteNorm { norm_type: f64 },
    #[error("{} norm on an empty tensor because the operation does not have an identity", computed(*.p))]
    NormOfNothing { p: f64 },
}

todevice_gpu::debug_is_message!(ModuleError);

fn computed(p: f64) -> String {
    match p {
        f64::INFINITY => "_foreach_norm cannot compute the infinity".to_owned(),
        p => format!("linalg.vector_norm cannot compute the {p}"),
    }
}

impl Refusal for ModuleError {
    fn kind(&self) -> &'static str {
        match self {
            ModuleError::NotADict { .. } | ModuleError::NotFloating { .. } | ModuleError::NoTarget { .. } => {
                "TypeError"
            }
            _ => "RuntimeError",
        }
    }
}
