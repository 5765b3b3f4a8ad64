//! Layers that only change the shape.

use super::module::{Module, display_as_module};
use crate::error::Result;
use crate::tensor::Tensor;

/// Makes the dimensions from `start_dim` to `end_dim` one (`torch.nn.Flatten`); by default all but the
/// batch.
#[derive(Clone, Copy, Debug)]
pub struct Flatten {
    /// The first dimension to join.
    pub start_dim: i64,
    /// The last dimension to join.
    pub end_dim: i64,
}

impl Default for Flatten {
    fn default() -> Flatten {
        Flatten { start_dim: 1, end_dim: -1 }
    }
}

impl Module for Flatten {
    fn name(&self) -> &'static str {
        "Flatten"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.flatten(self.start_dim, self.end_dim)
    }

    fn extra_repr(&self) -> String {
        format!("start_dim={}, end_dim={}", self.start_dim, self.end_dim)
    }
}

display_as_module!(Flatten);
