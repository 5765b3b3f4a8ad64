use super::module::{Module, display_as_module};
use crate::error::Result;
use crate::tensor::Tensor;

/// Merges the dimensions `start_dim` to `end_dim` (`torch.nn.Flatten`), by default all but the batch.
#[derive(Clone, Copy, Debug)]
pub struct Flatten {
    /// The first dimension to merge.
    pub start_dim: i64,
    /// The last dimension to merge.
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
