//! Stochastic gradient descent.

use std::panic::Location;

use super::error::OptimError;
use super::groups::LearningRates;
use super::{GroupOptions, Groups, Optimizer, ParamGroup, check, for_each_with_grad};
use crate::ambient::Ambient;
use crate::error::Result;
use crate::nn::Parameter;
use crate::ops::optimizer::{SgdStep, sgd};
use crate::scope;
use crate::tensor::Tensor;

/// The keyword arguments of `torch.optim.SGD`.
#[derive(Clone, Copy, Debug)]
pub struct SGDOptions {
    /// The learning rate.
    pub lr: f64,
    /// How much of the last direction is kept; 0 for none.
    pub momentum: f64,
    /// How much less of a new gradient enters the momentum.
    pub dampening: f64,
    /// Added to the gradient as `weight_decay · p`.
    pub weight_decay: f64,
    /// Nesterov's form of momentum, which looks one step ahead.
    pub nesterov: bool,
    /// Goes up the gradient instead of down.
    pub maximize: bool,
}

impl Default for SGDOptions {
    fn default() -> SGDOptions {
        SGDOptions {
            lr: 1e-3,
            momentum: 0.0,
            dampening: 0.0,
            weight_decay: 0.0,
            nesterov: false,
            maximize: false,
        }
    }
}

impl GroupOptions for SGDOptions {
    fn lr(&self) -> f64 {
        self.lr
    }

    fn check(&self) -> Result<()> {
        check("learning rate", self.lr, self.lr >= 0.0)?;
        check("momentum value", self.momentum, self.momentum >= 0.0)?;
        check("weight_decay value", self.weight_decay, self.weight_decay >= 0.0)?;
        if self.nesterov && (self.momentum <= 0.0 || self.dampening != 0.0) {
            return Err(OptimError::Nesterov.into());
        }
        Ok(())
    }
}

/// `p ← p − lr · g`, with momentum, Nesterov's form of it, and weight decay (`torch.optim.SGD`).
///
/// The momentum has the type of its parameter, as in PyTorch: that of halves is kept in halves, and rounded at each
/// step, though the step itself is calculated in f32. Keep parameters in f32 and see
/// [`autocast`](crate::amp::autocast) for products of halves.
#[derive(Debug)]
pub struct SGD {
    groups: Groups<SGDOptions, MomentumBuffer>,
}

#[derive(Debug, Default)]
struct MomentumBuffer(Option<Tensor>);

/// What SGD keeps of a parameter (`optimizer.state[p]`).
#[derive(Clone, Debug)]
pub struct SGDState {
    /// The direction of the steps so far: sizes, type and device of the parameter.
    pub momentum_buffer: Tensor,
}

impl SGD {
    /// One group of parameters. Errors on options out of range, and if there is no parameter.
    pub fn new(params: Vec<Parameter>, options: SGDOptions) -> Result<SGD> {
        SGD::with_groups(vec![ParamGroup { params, options }])
    }

    /// Several groups, each with its own options.
    pub fn with_groups(groups: Vec<ParamGroup<SGDOptions>>) -> Result<SGD> {
        Ok(SGD { groups: Groups::new(groups)? })
    }

    /// What is kept of a parameter (`optimizer.state[p]`): the tensor itself, not a copy. None without momentum,
    /// before the first step with a gradient, and of a parameter that is not this optimizer's.
    pub fn state(&self, parameter: &Parameter) -> Option<SGDState> {
        let MomentumBuffer(buffer) = self.groups.state(parameter)?;
        buffer.clone().map(|momentum_buffer| SGDState { momentum_buffer })
    }
}

impl Optimizer for SGD {
    #[track_caller]
    fn step(&mut self) -> Result<()> {
        let _scope = scope::on_behalf_of(Location::caller());
        for_each_with_grad(&mut self.groups, |parameter, grad, options, lr, buffer| {
            let SGDOptions { momentum, dampening, weight_decay, nesterov, maximize, .. } = *options;
            let step = SgdStep { lr, momentum, dampening, weight_decay, nesterov, maximize };
            let parameter = parameter.tensor();
            Ambient::spend(|host| &host.sgd_parameter);
            // The buffer follows a parameter that was converted since. To another device it must be moved.
            if let Some(old) = &buffer.0 {
                buffer.0 = Some(old.to(parameter.dtype())?);
            }
            if let Some(made) = sgd(&parameter, grad, buffer.0.as_ref(), step)? {
                buffer.0 = Some(made);
            }
            Ok(())
        })
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
}
