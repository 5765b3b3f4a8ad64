use std::panic::Location;

use super::error::ModuleError;
use super::module::{self, Module, display_as_module};
use super::parameter::Buffer;
use crate::error::Result;
use crate::ops::loss::{CrossEntropyOptions, Reduction};
use crate::ops::transfer::ToOptions;
use crate::scope;
use crate::tensor::Tensor;

/// A loss of an output and a target, for training loops with any loss.
///
/// Derive it for your own losses, like [`Module`]. The method `forward` takes the output and the target. The fields,
/// such as class weights in a [`Buffer`], move with `.to` and are saved.
///
/// ```
/// use todevice::prelude::*;
///
/// fn step(model: &dyn Module, criterion: &dyn Loss, x: &Tensor, y: &Tensor) -> Result<f64> {
///     let loss = criterion.forward(&model.forward(x)?, y)?;
///     loss.backward()?;
///     loss.item()
/// }
///
/// /// The largest error, each in its unit.
/// #[derive(Loss)]
/// struct Largest {
///     unit: nn::Buffer,
/// }
///
/// impl Largest {
///     fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
///         ((input - target)? * &self.unit.tensor())?.abs()?.max()
///     }
/// }
///
/// let model = nn::Linear::new(3, 1)?;
/// let (x, y) = (Tensor::randn(&[8, 3])?, Tensor::zeros(&[8, 1])?);
/// let own = Largest { unit: nn::Buffer::new(&Tensor::new([100.0])?) };
/// let losses: [&dyn Loss; 3] = [&nn::MSELoss::default(), &nn::L1Loss::default(), &own];
/// for criterion in losses {
///     criterion.to(Device::Cpu)?;
///     assert!(step(&model, criterion, &x, &y)? > 0.0);
/// }
/// # Ok::<(), todevice::Error>(())
/// ```
pub trait Loss: Send + Sync {
    /// Computes the loss of `input`, a module's output, against `target`, recorded by autograd.
    #[track_caller]
    fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor>;

    /// Returns the loss as a module, with its parameters, buffers and state. The module's `forward` always errors.
    fn as_module(&self) -> &dyn Module;
}

impl dyn Loss + '_ {
    /// Moves or converts the loss's parameters and buffers in place, like [`Module::to`].
    #[track_caller]
    pub fn to(&self, options: impl Into<ToOptions>) -> Result<&Self> {
        let _scope = scope::on_behalf_of(Location::caller());
        let module = self.as_module();
        module::convert(&module.parameters(), &module.named_buffers(), options.into()).map(|()| self)
    }
}

impl<L: Loss + ?Sized> Loss for Box<L> {
    #[track_caller]
    fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        (**self).forward(input, target)
    }

    fn as_module(&self) -> &dyn Module {
        (**self).as_module()
    }
}

/// The result of `forward` without a target, for `#[derive(Loss)]`.
#[doc(hidden)]
pub fn no_target(loss: &'static str) -> Result<Tensor> {
    Err(ModuleError::NoTarget { loss }.into())
}

/// The mean squared error of an input and a target of the same shape (`torch.nn.MSELoss`).
#[derive(Clone, Copy, Debug, Default)]
pub struct MSELoss {
    /// The reduction of the elements' losses.
    pub reduction: Reduction,
}

/// The mean absolute error of an input and a target of the same shape (`torch.nn.L1Loss`).
#[derive(Clone, Copy, Debug, Default)]
pub struct L1Loss {
    /// The reduction of the elements' losses.
    pub reduction: Reduction,
}

/// The cross entropy of scores, (n, classes), with class indices, (n), or class probabilities, (n, classes)
/// (`torch.nn.CrossEntropyLoss`). The class weights are a buffer, so they move with the loss.
///
/// ```
/// use todevice::prelude::*;
///
/// let weight = Some(Tensor::new([1.0, 4.0])?);
/// let loss_fn = nn::CrossEntropyLoss::new(CrossEntropyOptions { weight, ..Default::default() });
/// loss_fn.to(Device::cuda_if_available())?;
/// let loss = loss_fn.forward(&Tensor::new([[0.0, 1.0], [2.0, 0.0]])?, &Tensor::new([1, 0])?)?;
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct CrossEntropyLoss(OfClasses);

/// The negative log likelihood of log-probabilities, (n, classes), for class indices, (n) (`torch.nn.NLLLoss`). The
/// class weights are a buffer, so they move with the loss.
#[derive(Debug, Default)]
pub struct NLLLoss(OfClasses);

#[derive(Debug, Default)]
struct OfClasses {
    weight: Option<Buffer>,
    options: CrossEntropyOptions,
}

impl OfClasses {
    fn new(loss: &'static str, mut options: CrossEntropyOptions) -> OfClasses {
        let weight = options.weight.take().map(|weight| Buffer::of(loss, "weight", &weight));
        OfClasses { weight, options }
    }

    fn options(&self) -> CrossEntropyOptions {
        CrossEntropyOptions { weight: self.weight.as_ref().map(Buffer::tensor), ..self.options.clone() }
    }

    fn buffers(&self) -> Vec<(&'static str, Buffer)> {
        self.weight.iter().map(|weight| ("weight", weight.clone())).collect()
    }
}

impl CrossEntropyLoss {
    /// Creates a loss with class weights, an index to ignore, a reduction, and label smoothing.
    pub fn new(options: CrossEntropyOptions) -> CrossEntropyLoss {
        CrossEntropyLoss(OfClasses::new("CrossEntropyLoss", options))
    }
}

impl NLLLoss {
    /// Creates a loss with class weights, an index to ignore, and a reduction.
    pub fn new(options: CrossEntropyOptions) -> NLLLoss {
        NLLLoss(OfClasses::new("NLLLoss", options))
    }
}

/// Implements `Loss`, `Module` and `Display` for a loss, from its `forward` and its buffers.
///
/// As an inherent method, `forward` needs no prelude and takes precedence over `Module::forward`, which takes no
/// target.
macro_rules! impl_loss {
    ($($Loss:ident {
        forward: |$loss:ident, $input:ident, $target:ident| $computed:expr,
        buffers: |$owner:ident| $buffers:expr,
    })*) => {$(
        impl $Loss {
            /// Computes the loss of `input`, a module's output, against `target`.
            #[track_caller]
            pub fn forward(&self, $input: &Tensor, $target: &Tensor) -> Result<Tensor> {
                let $loss = self;
                $computed
            }
        }

        impl Loss for $Loss {
            #[track_caller]
            fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
                $Loss::forward(self, input, target)
            }

            fn as_module(&self) -> &dyn Module {
                self
            }
        }

        impl Module for $Loss {
            fn name(&self) -> &'static str {
                stringify!($Loss)
            }

            #[track_caller]
            fn forward(&self, _input: &Tensor) -> Result<Tensor> {
                no_target(stringify!($Loss))
            }

            fn own_buffers(&self) -> Vec<(&'static str, Buffer)> {
                let $owner = self;
                $buffers
            }
        }

        display_as_module!($Loss);
    )*};
}
impl_loss! {
    MSELoss {
        forward: |loss, input, target| input.mse_loss(target, loss.reduction),
        buffers: |_loss| Vec::new(),
    }
    L1Loss {
        forward: |loss, input, target| input.l1_loss(target, loss.reduction),
        buffers: |_loss| Vec::new(),
    }
    CrossEntropyLoss {
        forward: |loss, input, target| input.cross_entropy((target, loss.0.options())),
        buffers: |loss| loss.0.buffers(),
    }
    NLLLoss {
        forward: |loss, input, target| input.nll_loss((target, loss.0.options())),
        buffers: |loss| loss.0.buffers(),
    }
}
