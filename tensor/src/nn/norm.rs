use std::sync::atomic::{AtomicBool, Ordering};

use super::error::ModuleError;
use super::module::{Module, display_as_module};
use super::parameter::{Buffer, Parameter};
use crate::autograd::no_grad;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::norm::{BatchNormArguments, LayerNormArguments};
use crate::options::{AndOptions, Keywords};
use crate::python::python_float;
use crate::tensor::Tensor;

/// The keyword arguments of `torch.nn.BatchNorm1d` and `torch.nn.BatchNorm2d`.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormOptions {
    /// Added to the variance to keep it above 0.
    pub eps: f64,
    /// The weight of a batch in the update of the running mean and variance. `None` averages over all batches.
    pub momentum: Option<f64>,
    /// Whether each channel has a weight and a bias.
    pub affine: bool,
    /// Whether to track the running mean and variance, which evaluation uses.
    pub track_running_stats: bool,
    /// The device of all parameters and buffers.
    pub device: Device,
    /// The dtype of all parameters and buffers.
    pub dtype: DType,
}

impl Keywords for BatchNormOptions {}

impl Default for BatchNormOptions {
    fn default() -> BatchNormOptions {
        BatchNormOptions {
            eps: 1e-5,
            momentum: Some(0.1),
            affine: true,
            track_running_stats: true,
            device: Device::Cpu,
            dtype: DType::F32,
        }
    }
}

struct BatchNormBase {
    num_features: usize,
    options: BatchNormOptions,
    affine: Option<[Parameter; 2]>,
    running: Option<Running>,
    training: AtomicBool,
}

struct Running {
    mean: Buffer,
    var: Buffer,
    batches: Buffer,
}

impl BatchNormBase {
    #[track_caller]
    fn new(layer: &'static str, num_features: usize, options: BatchNormOptions) -> Result<BatchNormBase> {
        // Not in a closure, which would lose the caller's location.
        let made = (options.device, options.dtype);
        let zeros = Tensor::full(&[num_features], (0, made))?;
        let ones = Tensor::full(&[num_features], (1, made))?;
        let affine = match options.affine {
            true => Some([Parameter::of(layer, "weight", &ones)?, Parameter::of(layer, "bias", &zeros)?]),
            false => None,
        };
        let running = match options.track_running_stats {
            true => Some(Running {
                mean: Buffer::of(layer, "running_mean", &zeros.copy()?),
                var: Buffer::of(layer, "running_var", &ones.copy()?),
                batches: Buffer::of(
                    layer,
                    "num_batches_tracked",
                    &Tensor::full(&[], (0, (options.device, DType::I64)))?,
                ),
            }),
            false => None,
        };
        Ok(BatchNormBase { num_features, options, affine, running, training: AtomicBool::new(true) })
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let training = self.training.load(Ordering::Relaxed);
        let mut momentum = self.options.momentum.unwrap_or(0.0);
        if let Some(running) = &self.running
            && training
        {
            let batches = no_grad(|| running.batches.tensor().add_(1))?;
            if self.options.momentum.is_none() {
                momentum = 1.0 / batches.item()?;
            }
        }
        let affine = |i: usize| self.affine.as_ref().map(|affine| affine[i].tensor());
        let running =
            |pick: fn(&Running) -> &Buffer| self.running.as_ref().map(|running| pick(running).tensor());
        input.batch_norm(BatchNormArguments {
            running_mean: running(|running| &running.mean),
            running_var: running(|running| &running.var),
            weight: affine(0),
            bias: affine(1),
            // Without running statistics, only the batch's are available.
            training: training || self.running.is_none(),
            momentum,
            eps: self.options.eps,
        })
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let affine = self.affine.iter().flatten().cloned();
        ["weight", "bias"].into_iter().zip(affine).collect()
    }

    fn buffers(&self) -> Vec<(&'static str, Buffer)> {
        let buffers = self.running.iter().flat_map(|running| [&running.mean, &running.var, &running.batches]);
        ["running_mean", "running_var", "num_batches_tracked"].into_iter().zip(buffers.cloned()).collect()
    }

    fn extra_repr(&self) -> String {
        let BatchNormOptions { eps, momentum, affine, track_running_stats, .. } = self.options;
        let truth = |truth| if truth { "True" } else { "False" };
        let momentum = momentum.map_or("None".to_string(), python_float);
        format!(
            "{}, eps={}, momentum={momentum}, affine={}, track_running_stats={}",
            self.num_features,
            python_float(eps),
            truth(affine),
            truth(track_running_stats),
        )
    }
}

macro_rules! batch_norm {
    ($(#[$doc:meta])* $Layer:ident, $dims:pat, $expected:literal) => {
        $(#[$doc])*
        pub struct $Layer(BatchNormBase);

        impl $Layer {
            /// Creates a layer with weight and running variance 1, bias and running mean 0. Errors if the device does
            /// not exist.
            #[track_caller]
            pub fn new(num_features: impl AndOptions<usize, BatchNormOptions>) -> Result<$Layer> {
                let (num_features, options) = num_features.split();
                BatchNormBase::new(stringify!($Layer), num_features, options).map($Layer)
            }
        }

        impl Module for $Layer {
            fn name(&self) -> &'static str {
                stringify!($Layer)
            }

            #[track_caller]
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                if !matches!(input.ndim(), $dims) {
                    return Err(ModuleError::ExpectedDims { expected: $expected, got: input.ndim() }.into());
                }
                self.0.forward(input)
            }

            fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
                self.0.parameters()
            }

            fn own_buffers(&self) -> Vec<(&'static str, Buffer)> {
                self.0.buffers()
            }

            fn state_version(&self) -> i64 {
                2
            }

            /// Version 2 added `num_batches_tracked`.
            fn optional_in_state(&self, version: Option<i64>) -> &'static [&'static str] {
                if version.is_none_or(|version| version < 2) { &["num_batches_tracked"] } else { &[] }
            }

            fn set_training(&self, training: bool) {
                self.0.training.store(training, Ordering::Relaxed);
            }

            fn extra_repr(&self) -> String {
                self.0.extra_repr()
            }
        }

        display_as_module!($Layer);
    };
}

batch_norm!(
    /// Normalises each feature of a batch, (n, features) or (n, features, length) (`torch.nn.BatchNorm1d`).
    BatchNorm1d,
    2 | 3,
    "2D or 3D"
);
batch_norm!(
    /// Normalises each channel of a batch of images, (n, channels, height, width) (`torch.nn.BatchNorm2d`).
    BatchNorm2d,
    4,
    "4D"
);

/// The keyword arguments of `torch.nn.LayerNorm`.
#[derive(Clone, Copy, Debug)]
pub struct LayerNormOptions {
    /// Added to the variance to keep it above 0.
    pub eps: f64,
    /// Whether each element has a weight.
    pub elementwise_affine: bool,
    /// Whether each element has a bias, too.
    pub bias: bool,
    /// The device of weight and bias.
    pub device: Device,
    /// The dtype of weight and bias.
    pub dtype: DType,
}

impl Keywords for LayerNormOptions {}

impl Default for LayerNormOptions {
    fn default() -> LayerNormOptions {
        LayerNormOptions {
            eps: 1e-5,
            elementwise_affine: true,
            bias: true,
            device: Device::Cpu,
            dtype: DType::F32,
        }
    }
}

/// Normalises the last dimensions of each sample together (`torch.nn.LayerNorm`).
pub struct LayerNorm {
    normalized_shape: Vec<usize>,
    /// The weight, of the normalised shape.
    pub weight: Option<Parameter>,
    /// The bias, of the normalised shape.
    pub bias: Option<Parameter>,
    options: LayerNormOptions,
}

impl LayerNorm {
    /// Creates a layer with weight 1 and bias 0: `LayerNorm::new(&[features])`. Errors if the device does not exist.
    #[track_caller]
    pub fn new<'a>(normalized_shape: impl AndOptions<&'a [usize], LayerNormOptions>) -> Result<LayerNorm> {
        let (normalized_shape, options) = normalized_shape.split();
        let mut layer =
            LayerNorm { normalized_shape: normalized_shape.to_vec(), weight: None, bias: None, options };
        // Not in a closure, which would lose the caller's location.
        let made = (options.device, options.dtype);
        if options.elementwise_affine {
            layer.weight =
                Some(Parameter::of("LayerNorm", "weight", &Tensor::full(normalized_shape, (1, made))?)?);
            if options.bias {
                layer.bias =
                    Some(Parameter::of("LayerNorm", "bias", &Tensor::full(normalized_shape, (0, made))?)?);
            }
        }
        Ok(layer)
    }
}

impl Module for LayerNorm {
    fn name(&self) -> &'static str {
        "LayerNorm"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let [weight, bias] = [&self.weight, &self.bias].map(|own| own.as_ref().map(Parameter::tensor));
        let arguments = LayerNormArguments { weight, bias, eps: self.options.eps };
        input.layer_norm((&self.normalized_shape, arguments))
    }

    fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
        let own = [("weight", &self.weight), ("bias", &self.bias)];
        own.into_iter().filter_map(|(name, parameter)| Some((name, parameter.clone()?))).collect()
    }

    fn extra_repr(&self) -> String {
        let sizes: Vec<String> = self.normalized_shape.iter().map(usize::to_string).collect();
        let comma = if sizes.len() == 1 { "," } else { "" };
        let affine = if self.options.elementwise_affine { "True" } else { "False" };
        let eps = python_float(self.options.eps);
        format!("({}{comma}), eps={eps}, elementwise_affine={affine}", sizes.join(", "))
    }
}

display_as_module!(LayerNorm);
