//! `torch.optim`: optimizers, and schedules of learning rates.

mod adam;
pub(crate) mod error;
mod groups;
pub mod lr_scheduler;
mod optimizer_to;
mod sgd;
mod state_dict;

pub use adam::{Adam, AdamOptions, AdamState, AdamW, AdamWOptions, adam_step};
use error::OptimError;
use groups::{GroupOptions, ParamGroups};
pub use groups::{LearningRates, ParamGroup};
pub use optimizer_to::optimizer_to;
pub use sgd::{SGD, SGDOptions, SGDState, sgd_step};

use crate::error::Result;
use crate::nn::Parameter;
use crate::serialize::Dict;
use crate::tensor::Tensor;

/// An optimizer (`torch.optim.Optimizer`).
pub trait Optimizer {
    /// Updates every parameter that has a gradient.
    ///
    /// Running out of memory changes nothing. A later error, which is rare, contains the number of updated parameters
    /// ([`Error::HalfDone`](crate::Error::HalfDone)).
    #[track_caller]
    fn step(&mut self) -> Result<()>;

    /// Returns the parameters of all groups.
    fn parameters(&self) -> Vec<Parameter>;

    /// Clears the gradients of all parameters, like PyTorch's default `set_to_none=True`.
    fn zero_grad(&self);

    /// Returns the learning rates of the groups, shared with schedulers.
    fn learning_rates(&self) -> &LearningRates;

    /// Returns the state for another run in PyTorch's layout (`Optimizer.state_dict`): `state` has each parameter's
    /// state by number, and `param_groups` the options, with the numbers in `params`.
    ///
    /// The tensors are shared with the optimizer, so they change with the next step. A state has no parameter names, so
    /// it fits any optimizer with as many parameters in the same order.
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

    /// Continues from a [`state_dict`](Self::state_dict), options included (`Optimizer.load_state_dict`).
    ///
    /// The state of a parameter moves to the parameter's *current* device and dtype, so move the model first. `step` is
    /// not moved. A tensor that need not move is shared with the checkpoint, as in PyTorch.
    ///
    /// Errors, without a change, if the number of groups or parameters differs, if sizes differ (PyTorch fails later,
    /// in `step`), or if options are missing or unknown.
    #[track_caller]
    fn load_state_dict(&mut self, state: &Dict) -> Result<()>;

    /// Replaces every tensor in the state by the result of `change`: all of them, or none if one fails. Many Python
    /// programs loop over `optimizer.state.values()` instead. See [`optimizer_to`].
    #[track_caller]
    fn map_state(&mut self, change: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<()>;
}

/// The methods that all optimizers with `groups` share.
macro_rules! impl_optimizer_by_groups {
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
use impl_optimizer_by_groups;

fn check(name: &'static str, value: f64, valid: bool) -> Result<()> {
    if valid { Ok(()) } else { Err(OptimError::InvalidHyperparameter { name, value }.into()) }
}
