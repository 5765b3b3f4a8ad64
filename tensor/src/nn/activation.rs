use super::module::{Module, display_as_module};
use crate::error::Result;
use crate::ops::elementwise::Approximate;
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
    /// Computes `max(x, 0)` (`torch.nn.ReLU`).
    ReLU,
    relu
);
activation!(
    /// Computes `tanh(x)` (`torch.nn.Tanh`).
    Tanh,
    tanh
);
activation!(
    /// Computes `1 / (1 + e⁻ˣ)` (`torch.nn.Sigmoid`).
    Sigmoid,
    sigmoid
);

/// Computes `x · Φ(x)`, with the cumulative normal distribution Φ (`torch.nn.GELU`).
#[derive(Clone, Copy, Debug, Default)]
pub struct GELU {
    /// The way to compute Φ.
    pub approximate: Approximate,
}

impl Module for GELU {
    fn name(&self) -> &'static str {
        "GELU"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.gelu(self.approximate)
    }

    fn extra_repr(&self) -> String {
        let approximate = match self.approximate {
            Approximate::None => "none",
            Approximate::Tanh => "tanh",
        };
        format!("approximate='{approximate}'")
    }
}

display_as_module!(GELU);
