//! `torch.optim`: optimizers, and schedules for their learning rate.

mod adam;
pub(crate) mod error;
mod groups;
pub mod lr_scheduler;
mod sgd;

pub use adam::{Adam, AdamOptions, AdamState, AdamW, AdamWOptions};
use error::OptimError;
use groups::{GroupOptions, Groups};
pub use groups::{LearningRates, ParamGroup};
pub use sgd::{SGD, SGDOptions, SGDState};

use crate::ambient::Ambient;
use crate::autograd::no_grad;
use crate::error::Result;
use crate::nn::Parameter;

/// What all optimizers have in common (`torch.optim.Optimizer`).
pub trait Optimizer {
    /// Updates every parameter that has a gradient.
    #[track_caller]
    fn step(&mut self) -> Result<()>;

    /// The parameters of all groups.
    fn parameters(&self) -> Vec<Parameter>;

    /// Forgets the gradients of all parameters. They are gone, not zero, as PyTorch's default has it.
    fn zero_grad(&self);

    /// The learning rate of every parameter group, shared with schedulers.
    fn learning_rates(&self) -> &LearningRates;
}

/// Refuses a hyperparameter outside `range`, in PyTorch's words.
fn check(name: &'static str, value: f64, valid: bool) -> Result<()> {
    if valid { Ok(()) } else { Err(OptimError::InvalidHyperparameter { name, value }.into()) }
}

/// Runs `update` on every parameter that has a gradient, with the options of its group, the group's
/// learning rate, and its own state. Updates are never recorded.
fn for_each_with_grad<O, S>(
    groups: &mut Groups<O, S>,
    mut update: impl FnMut(&Parameter, &crate::Tensor, &O, f64, &mut S) -> Result<()>,
) -> Result<()> {
    groups.learning_rates.count_step();
    Ambient::spend(|host| &host.step);
    no_grad(|| {
        for (i, group) in groups.groups.iter_mut().enumerate() {
            let lr = groups.learning_rates.get(i);
            for (parameter, state) in group.params.iter().zip(&mut group.state) {
                if let Some(grad) = parameter.grad() {
                    update(parameter, &grad, &group.options, lr, state)?;
                }
            }
        }
        Ok(())
    })
}
