use std::panic::Location;

use super::error::OptimError;
use super::groups::LearningRates;
use super::state_dict::{check_choice, choice, option};
use super::{GroupOptions, Optimizer, ParamGroup, ParamGroups, check, impl_optimizer_by_groups};
use crate::error::Result;
use crate::host_context::HostContext;
use crate::nn::Parameter;
use crate::ops::optimizer::{SgdStep, check_alike, sgd};
use crate::ops::plain::copy_of;
use crate::scope;
use crate::serialize::{Dict, Value, number};
use crate::tensor::Tensor;

/// The keyword arguments of `torch.optim.SGD`.
#[derive(Clone, Copy, Debug)]
pub struct SGDOptions {
    /// The learning rate.
    pub lr: f64,
    /// The factor of the previous direction, or 0 for none.
    pub momentum: f64,
    /// The fraction by which a new gradient is reduced in the momentum.
    pub dampening: f64,
    /// Added to the gradient as `weight_decay · p`.
    pub weight_decay: f64,
    /// Whether to use Nesterov's momentum, which looks one step ahead.
    pub nesterov: bool,
    /// Whether to maximize instead of minimize.
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

impl GroupOptions<1> for SGDOptions {
    const OPTIMIZER: &'static str = "SGD";
    const STATE: [&'static str; 1] = ["momentum_buffer"];

    fn lr(&self) -> f64 {
        self.lr
    }

    fn check(&self) -> Result<()> {
        // PyTorch accepts NaN here, but not in Adam.
        let is_negative = |value: f64| value < 0.0;
        check("learning rate", self.lr, !is_negative(self.lr))?;
        check("momentum value", self.momentum, !is_negative(self.momentum))?;
        check("weight_decay value", self.weight_decay, !is_negative(self.weight_decay))?;
        if self.nesterov && (self.momentum <= 0.0 || self.dampening != 0.0) {
            return Err(OptimError::Nesterov.into());
        }
        Ok(())
    }

    fn to_dict(&self) -> Dict {
        Dict::from_iter([
            ("momentum", Value::from(self.momentum)),
            ("dampening", self.dampening.into()),
            ("weight_decay", self.weight_decay.into()),
            ("nesterov", self.nesterov.into()),
            ("maximize", self.maximize.into()),
            ("foreach", Value::None),
            ("differentiable", false.into()),
            ("fused", Value::None),
        ])
    }

    fn from_dict(lr: f64, saved: &Dict) -> Result<SGDOptions> {
        check_choice::<SGDOptions, 1>(saved, "differentiable")?;
        let hyper = |name| option::<SGDOptions, 1, f64>(saved, name, number);
        let options = SGDOptions {
            lr,
            momentum: hyper("momentum")?,
            dampening: hyper("dampening")?,
            weight_decay: hyper("weight_decay")?,
            nesterov: choice(saved, "nesterov")?,
            maximize: choice(saved, "maximize")?,
        };
        options.check().map(|()| options)
    }

    fn prepare(
        &self,
        parameter: &Tensor,
        grad: &Tensor,
        state: Option<&[Tensor; 1]>,
    ) -> Result<Option<[Tensor; 1]>> {
        check_alike(parameter, [("grad", grad)])?;
        let buffer = match state {
            _ if self.momentum == 0.0 => return Ok(None),
            None => copy_of(&grad.detach())?,
            // The buffer follows the dtype of a converted parameter, but not its device. It must be moved explicitly.
            Some([buffer]) => buffer.to(parameter.dtype())?,
        };
        check_alike(parameter, [("momentum_buffer", &buffer)])?;
        Ok(Some([buffer]))
    }

    fn update(
        &self,
        lr: f64,
        parameter: &Tensor,
        grad: &Tensor,
        state: Option<&[Tensor; 1]>,
        is_first: bool,
    ) -> Result<()> {
        HostContext::spend(|host| &host.sgd_parameter);
        let SGDOptions { momentum, dampening, weight_decay, nesterov, maximize, .. } = *self;
        let step = SgdStep { lr, momentum, dampening, weight_decay, nesterov, maximize };
        sgd(parameter, grad, state.map(|[buffer]| buffer), is_first, step)
    }
}

/// Computes `p ← p − lr · g`, with optional momentum, Nesterov momentum and weight decay (`torch.optim.SGD`).
///
/// The momentum has the parameter's dtype, as in PyTorch, so that of half types is rounded at each step. Keep
/// parameters in f32, and use [`autocast`](crate::amp::autocast) for products in half types.
#[derive(Debug)]
pub struct SGD {
    groups: ParamGroups<SGDOptions, 1>,
}

/// A step of SGD on one parameter (`torch.optim.sgd.sgd`). With momentum, `buffer` is a copy of the gradient in the first
/// step.
#[doc(hidden)]
#[track_caller]
pub fn sgd_step(
    parameter: &Tensor,
    grad: &Tensor,
    buffer: Option<&Tensor>,
    is_first: bool,
    options: SGDOptions,
) -> Result<()> {
    let _scope = scope::on_behalf_of(Location::caller());
    check_alike(parameter, [("grad", grad)])?;
    check_alike(parameter, buffer.map(|buffer| ("momentum_buffer", buffer)))?;
    HostContext::spend(|host| &host.sgd_parameter);
    let SGDOptions { lr, momentum, dampening, weight_decay, nesterov, maximize } = options;
    sgd(
        parameter,
        grad,
        buffer,
        is_first,
        SgdStep { lr, momentum, dampening, weight_decay, nesterov, maximize },
    )
}

/// The state of a parameter in SGD (`optimizer.state[p]`).
#[derive(Clone, Debug)]
pub struct SGDState {
    /// The momentum, with the sizes, dtype and device of the parameter.
    pub momentum_buffer: Tensor,
}

impl SGD {
    /// Creates an optimizer with one group of parameters. Errors if it is empty, or an option is out of range.
    pub fn new(params: Vec<Parameter>, options: SGDOptions) -> Result<SGD> {
        SGD::with_groups(vec![ParamGroup { params, options }])
    }

    /// Creates an optimizer with several groups, each with its options.
    pub fn with_groups(groups: Vec<ParamGroup<SGDOptions>>) -> Result<SGD> {
        Ok(SGD { groups: ParamGroups::new(groups)? })
    }

    /// Returns the state of a parameter (`optimizer.state[p]`), sharing its tensor. `None` without momentum, before the
    /// first step with a gradient, and for a parameter outside this optimizer.
    pub fn state(&self, parameter: &Parameter) -> Option<SGDState> {
        let [momentum_buffer] = self.groups.state(parameter)?.clone();
        Some(SGDState { momentum_buffer })
    }
}

impl Optimizer for SGD {
    impl_optimizer_by_groups!();
}
