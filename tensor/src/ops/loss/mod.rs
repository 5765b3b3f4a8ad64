//! Losses: the distance of a prediction from its target, as one number to minimise.
//!
//! - [`regression`]: `mse_loss`, `l1_loss`   - [`classification`]: `cross_entropy`, `nll_loss`, and their [`target`]
//! - [`soft`]: `cross_entropy` with class probabilities and with label smoothing

pub(in crate::ops) mod classification;
pub(crate) mod error;
mod kernels;
pub(in crate::ops) mod regression;
pub(in crate::ops) mod soft;
mod target;

pub use classification::CrossEntropyOptions;
pub(in crate::ops) use kernels::ROWS;

use crate::error::Result;
use crate::tensor::Tensor;

/// The reduction of the elements' losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reduction {
    /// The mean, so that the step size does not depend on the batch size.
    #[default]
    Mean,
    /// The sum.
    Sum,
    /// The individual losses.
    None,
}

impl Reduction {
    #[track_caller]
    fn of(self, losses: Tensor) -> Result<Tensor> {
        match self {
            Reduction::Mean => losses.mean(),
            Reduction::Sum => losses.sum(),
            Reduction::None => Ok(losses),
        }
    }

    /// The factor of each element's gradient.
    fn scale(self, count: usize) -> f64 {
        match self {
            Reduction::Mean => 1.0 / count as f64,
            Reduction::Sum | Reduction::None => 1.0,
        }
    }
}
