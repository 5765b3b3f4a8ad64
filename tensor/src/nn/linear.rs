use super::module::{Module, display_as_module};
use super::parameter::Parameter;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::options::{AndOptions, Keywords};
use crate::tensor::Tensor;
use crate::tensor_options::TensorOptions;

/// A layer that computes `y = x·Wᵀ + b` (`torch.nn.Linear`). Input (…, in_features), output (…, out_features).
pub struct Linear {
    /// Shape (out_features, in_features).
    pub weight: Parameter,
    /// Shape (out_features).
    pub bias: Option<Parameter>,
    in_features: usize,
    out_features: usize,
}

/// The keyword arguments of `torch.nn.Linear`.
#[derive(Clone, Copy, Debug)]
pub struct LinearOptions {
    /// Whether the layer has a bias.
    pub bias: bool,
    /// The device of weight and bias, where their random values are drawn.
    pub device: Device,
    /// The dtype of weight and bias.
    pub dtype: DType,
}

impl Keywords for LinearOptions {}

impl Default for LinearOptions {
    fn default() -> LinearOptions {
        LinearOptions { bias: true, device: Device::Cpu, dtype: DType::F32 }
    }
}

impl Linear {
    /// Creates a layer with weight and bias uniform in ±1/√in_features, PyTorch's Kaiming initialisation with a = √5.
    /// The default generator draws the weight first. Errors if the device does not exist.
    ///
    /// ```
    /// use todevice::{Device, Machine, nn};
    ///
    /// let machine: Machine = "sim:t4".parse()?;
    /// machine.enter(|| {
    ///     let options = nn::LinearOptions { device: Device::cuda(0), ..Default::default() };
    ///     let layer = nn::Linear::new(1024, (1024, options))?; // Nothing is copied from the host.
    ///     assert!(layer.weight.is_cuda());
    ///     Ok::<(), todevice::Error>(())
    /// })?;
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn new(in_features: usize, out_features: impl AndOptions<usize, LinearOptions>) -> Result<Linear> {
        let (out_features, options) = out_features.split();
        Linear::made(in_features, out_features, options)
    }

    #[track_caller]
    fn made(in_features: usize, out_features: usize, options: LinearOptions) -> Result<Linear> {
        let made = TensorOptions::from((options.device, options.dtype));
        let weight = Tensor::empty((&[out_features, in_features], made))?;
        let fan_in = in_features as f64;
        if fan_in > 0.0 {
            // √3 · gain / √fan_in with gain = √(2 / (1 + 5)): the bound below, but rounded as in PyTorch.
            let bound = 3f64.sqrt() * ((2.0f64 / 6.0).sqrt() / fan_in.sqrt());
            weight.uniform_(-bound, bound, None)?;
        }
        let bias = match options.bias {
            true => {
                let bias = Tensor::full(&[out_features], (0, made))?;
                if fan_in > 0.0 {
                    let bound = 1.0 / fan_in.sqrt();
                    bias.uniform_(-bound, bound, None)?;
                }
                Some(Parameter::of("Linear", "bias", &bias)?)
            }
            false => None,
        };
        Ok(Linear { weight: Parameter::of("Linear", "weight", &weight)?, bias, in_features, out_features })
    }
}

impl Module for Linear {
    fn name(&self) -> &'static str {
        "Linear"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_ref().map(Parameter::tensor);
        input.linear(&self.weight.tensor(), bias.as_ref())
    }

    fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
        let bias = self.bias.iter().map(|bias| ("bias", bias.clone()));
        [("weight", self.weight.clone())].into_iter().chain(bias).collect()
    }

    fn extra_repr(&self) -> String {
        let bias = if self.bias.is_some() { "True" } else { "False" };
        format!("in_features={}, out_features={}, bias={bias}", self.in_features, self.out_features)
    }
}

display_as_module!(Linear);
