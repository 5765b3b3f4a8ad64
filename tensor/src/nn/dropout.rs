use std::sync::atomic::{AtomicBool, Ordering};

use super::module::{Module, display_as_module};
use crate::error::Result;
use crate::ops::random::error::RandomError;
use crate::tensor::Tensor;

/// Zeros each element with probability `p` in training, and scales the others by `1 / (1 − p)` (`torch.nn.Dropout`).
pub struct Dropout {
    p: f64,
    training: AtomicBool,
}

impl Dropout {
    /// Creates a layer. Errors unless `p` is between 0 and 1.
    pub fn new(p: f64) -> Result<Dropout> {
        if !(0.0..=1.0).contains(&p) {
            return Err(RandomError::DropoutProbability { p }.into());
        }
        Ok(Dropout { p, training: AtomicBool::new(true) })
    }
}

impl Module for Dropout {
    fn name(&self) -> &'static str {
        "Dropout"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.dropout(self.p, self.training.load(Ordering::Relaxed))
    }

    fn set_training(&self, training: bool) {
        self.training.store(training, Ordering::Relaxed);
    }

    fn extra_repr(&self) -> String {
        format!("p={:?}, inplace=False", self.p)
    }
}

display_as_module!(Dropout);
