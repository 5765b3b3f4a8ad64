//! Activation functions as layers.

use super::module::{Module, display_as_module};
use crate::error::Result;
use crate::tensor::Tensor;

macro_rules! activation {
    ($(#[$doc:meta])* $Layer:ident, $method:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $Layer;

        impl Module for $Layer {
            fn name(&self) -> &'static str {
                stringify!($Layer)
            }

            #[track_caller]
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$method()
            }
        }

        display_as_module!($Layer);
    };
}

activation!(
    /// `max(x, 0)` (`torch.nn.ReLU`).
    ReLU,
    relu
);
activation!(
    /// `torch.nn.Tanh`.
    Tanh,
    tanh
);
activation!(
    /// `1 / (1 + e⁻ˣ)` (`torch.nn.Sigmoid`).
    Sigmoid,
    sigmoid
);
