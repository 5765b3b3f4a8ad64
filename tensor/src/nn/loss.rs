//! Losses as objects that keep their options, and what they have in common.

use crate::error::Result;
use crate::ops::loss::{CrossEntropyOptions, Reduction};
use crate::tensor::Tensor;

/// A loss: says how far the output of a module is from the target. It is to losses what [`Module`](super::Module) is to layers,
/// so one training loop can take any of them.
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
/// /// A loss of your own.
/// struct Largest;
///
/// impl Loss for Largest {
///     fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
///         (input - target)?.abs()?.max()
///     }
/// }
///
/// let model = nn::Linear::new(3, 1)?;
/// let (x, y) = (Tensor::randn(&[8, 3])?, Tensor::zeros(&[8, 1])?);
/// let losses: [&dyn Loss; 3] = [&nn::MSELoss::default(), &nn::L1Loss::default(), &Largest];
/// for criterion in losses {
///     assert!(step(&model, criterion, &x, &y)? > 0.0);
/// }
/// # Ok::<(), todevice::Error>(())
/// ```
pub trait Loss: Send + Sync {
    /// The loss of `input`, the output of a module, against `target`; recorded by autograd.
    #[track_caller]
    fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor>;
}

/// A pointer to a loss is a loss.
impl<L: Loss + ?Sized> Loss for Box<L> {
    #[track_caller]
    fn forward(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        (**self).forward(input, target)
    }
}

/// The mean squared error (`torch.nn.MSELoss`), of an input and a target of the same shape.
#[derive(Clone, Copy, Debug, Default)]
pub struct MSELoss {
    /// What is done with the losses of the single elements.
    pub reduction: Reduction,
}

/// The mean absolute error (`torch.nn.L1Loss`), of an input and a target of the same shape.
#[derive(Clone, Copy, Debug, Default)]
pub struct L1Loss {
    /// What is done with the losses of the single elements.
    pub reduction: Reduction,
}

/// Cross entropy between scores, (n, classes), and class indices, (n), or class probabilities, (n, classes)
/// (`torch.nn.CrossEntropyLoss`).
#[derive(Clone, Debug, Default)]
pub struct CrossEntropyLoss {
    /// Class weights, the index to ignore, the reduction, label smoothing.
    pub options: CrossEntropyOptions,
}

/// The negative log likelihood (`torch.nn.NLLLoss`) of log-probabilities, (n, classes), for class indices, (n).
#[derive(Clone, Debug, Default)]
pub struct NLLLoss {
    /// Class weights, the index to ignore, the reduction.
    pub options: CrossEntropyOptions,
}

// The method is there without the trait as well, for programs that do not use the prelude.
macro_rules! losses {
    ($($Loss:ident: |$loss:ident, $input:ident, $target:ident| $computed:expr;)*) => {$(
        impl $Loss {
            /// The loss of `input`, the output of a module, against `target`.
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
        }
    )*};
}
losses! {
    MSELoss: |loss, input, target| input.mse_loss(target, loss.reduction);
    L1Loss: |loss, input, target| input.l1_loss(target, loss.reduction);
    CrossEntropyLoss: |loss, input, target| input.cross_entropy(target, &loss.options);
    NLLLoss: |loss, input, target| input.nll_loss(target, &loss.options);
}
