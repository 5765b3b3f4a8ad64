//! `torch.optim`: optimizers, and schedules for their learning rate.

mod adam;
pub(crate) mod error;
mod groups;
pub mod lr_scheduler;
mod optimizer_to;
mod sgd;
mod state_dict;

pub use adam::{Adam, AdamOptions, AdamState, AdamW, AdamWOptions};
use error::OptimError;
use groups::{GroupOptions, Groups};
pub use groups::{LearningRates, ParamGroup};
pub use optimizer_to::optimizer_to;
pub use sgd::{SGD, SGDOptions, SGDState};

use crate::error::Result;
use crate::nn::Parameter;
use crate::serialize::Dict;
use crate::tensor::Tensor;

/// What all optimizers have in common (`torch.optim.Optimizer`).
pub trait Optimizer {
    /// Updates every parameter that has a gradient.
    ///
    /// Running out of memory leaves all of them as they were. An error that comes later, which is rare, says how many were
    /// updated before it ([`Error::HalfDone`](crate::Error::HalfDone)).
    #[track_caller]
    fn step(&mut self) -> Result<()>;

    /// The parameters of all groups.
    fn parameters(&self) -> Vec<Parameter>;

    /// Forgets the gradients of all parameters. They are gone, not zero, as PyTorch's default has it.
    fn zero_grad(&self);

    /// The learning rate of every parameter group, shared with schedulers.
    fn learning_rates(&self) -> &LearningRates;

    /// What it takes to go on in another run (`Optimizer.state_dict`), in PyTorch's layout: `state`, which has what is kept of
    /// each parameter by the parameter's number, and `param_groups`, which has the options, and in `params` the numbers.
    ///
    /// The tensors are those that the optimizer uses, not copies: they change with the next step. Names of parameters there
    /// are none, so a state fits any optimizer with as many parameters in the same order.
    ///
    /// ```
    /// use todevice::prelude::*;
    ///
    /// let train = |model: &nn::Linear, optimizer: &mut optim::Adam| -> Result<()> {
    ///     optimizer.zero_grad();
    ///     model.forward(&Tensor::ones(&[1, 3])?)?.sum()?.backward()?;
    ///     optimizer.step()
    /// };
    /// let model = nn::Linear::new(3, 2)?;
    /// let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions { lr: 0.1, ..Default::default() })?;
    /// train(&model, &mut optimizer)?;
    /// let checkpoint = optimizer.state_dict();
    /// let of_weight = checkpoint.at("state")?.as_dict()?.at(0)?.as_dict()?;
    /// assert_eq!(of_weight.at("step")?.as_tensor()?.item()?, 1.0);
    ///
    /// let mut resumed = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    /// resumed.load_state_dict(&checkpoint)?;
    /// assert_eq!(resumed.learning_rates().all(), [0.1]); // The options too are those of the checkpoint.
    /// # Ok::<(), todevice::Error>(())
    /// ```
    fn state_dict(&self) -> Dict;

    /// Goes on from a [`state_dict`](Self::state_dict), options included (`Optimizer.load_state_dict`).
    ///
    /// What is kept of a parameter goes to the parameter's device *as it is now*, and into its type; so move the model first.
    /// `step` stays where it was. A tensor that need not be moved is the checkpoint's own, not a copy, as in PyTorch.
    ///
    /// Errors, with the optimizer as it was, on another number of groups or parameters, on other sizes (PyTorch loads those,
    /// and fails in `step`), and on options that are missing or that this optimizer does not have.
    #[track_caller]
    fn load_state_dict(&mut self, state: &Dict) -> Result<()>;

    /// Replaces every tensor that is kept of a parameter by what `change` makes of it: all, or none if one fails. That is the
    /// loop over `optimizer.state.values()` of many a Python program; see [`optimizer_to`].
    #[track_caller]
    fn map_state(&mut self, change: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<()>;
}

/// What every optimizer that has `groups` does in the same way.
macro_rules! optimizer_by_groups {
    () => {
        #[track_caller]
        fn step(&mut self) -> Result<()> {
            let _scope = scope::on_behalf_of(Location::caller());
            self.groups.step()
        }

        fn parameters(&self) -> Vec<Parameter> {
            self.groups.parameters().cloned().collect()
        }

        fn zero_grad(&self) {
            self.groups.zero_grad();
        }

        fn learning_rates(&self) -> &LearningRates {
            &self.groups.learning_rates
        }

        fn state_dict(&self) -> Dict {
            self.groups.state_dict()
        }

        #[track_caller]
        fn load_state_dict(&mut self, state: &Dict) -> Result<()> {
            let _scope = scope::on_behalf_of(Location::caller());
            self.groups.load_state_dict(state)
        }

        #[track_caller]
        fn map_state(&mut self, change: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<()> {
            let _scope = scope::on_behalf_of(Location::caller());
            self.groups.map_state(change)
        }
    };
}
use optimizer_by_groups;

/// Refuses a hyperparameter outside `range`, in PyTorch's words.
fn check(name: &'static str, value: f64, valid: bool) -> Result<()> {
    if valid { Ok(()) } else { Err(OptimError::InvalidHyperparameter { name, value }.into()) }
}
