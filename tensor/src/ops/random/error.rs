use crate::dtype::DType;
use crate::error::Refusal;

/// An error of random numbers.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum RandomError {
    #[error("random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")]
    EmptyRange { low: i64, high: i64 },
    #[error("uniform_ expects to return a [from, to) range, but found from={from} > to={to}")]
    UniformRange { from: f64, to: f64 },
    #[error("{name} is out of bounds for {}", .dtype.cpp_name())]
    UniformBound { name: &'static str, dtype: DType },
    #[error(
        "uniform_ expects to-from <= std::numeric_limits<{}>::max(), but found to={to} and from={from} which result in to-from to exceed the limit",
        .dtype.scalar_type()
    )]
    UniformWidth { from: f64, to: f64, dtype: DType },
    #[error("normal expects std >= 0.0, but found std {std}")]
    NegativeStd { std: f64 },
    #[error("dropout probability has to be between 0 and 1, but got {p}")]
    DropoutProbability { p: f64 },
    /// Also for a tensor on a GPU.
    #[error("RNG state must be a torch.ByteTensor")]
    StateType,
    #[error("{0}")]
    State(String),
}

todevice_gpu::debug_is_message!(RandomError);

impl Refusal for RandomError {
    fn kind(&self) -> &'static str {
        match self {
            RandomError::StateType => "TypeError",
            // The error of `torch.nn.functional.dropout`.
            RandomError::DropoutProbability { .. } => "ValueError",
            _ => "RuntimeError",
        }
    }
}
