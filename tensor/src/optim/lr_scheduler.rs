//! `torch.optim.lr_scheduler`: learning rates that change with the epoch.

use super::Optimizer;
use super::error::OptimError;
use super::groups::LearningRates;
use crate::error::{Error, Result};
use crate::host_context::HostContext;
use crate::serialize::{Dict, Value, count, number, optional};

/// Multiplies the learning rates by `gamma` every `step_size` epochs (`StepLR`).
///
/// ```
/// # use todevice::{Tensor, nn, nn::Module, optim::{self, Optimizer}};
/// # let model = nn::Linear::new(2, 1)?;
/// # let mut optimizer = optim::SGD::new(model.parameters(), optim::SGDOptions { lr: 0.1, ..Default::default() })?;
/// let mut scheduler = optim::lr_scheduler::StepLR::new(&optimizer, 2, 0.1)?;
/// for epoch in 0..3 {
///     optimizer.step()?;
///     scheduler.step();
/// }
/// assert_eq!(scheduler.get_last_lr(), [0.010000000000000002]);
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Debug)]
pub struct StepLR {
    schedule: Schedule,
    step_size: u64,
    gamma: f64,
}

impl StepLR {
    /// Schedules every group of `optimizer`.
    pub fn new(optimizer: &(impl Optimizer + ?Sized), step_size: u64, gamma: f64) -> Result<StepLR> {
        if step_size == 0 {
            return Err(OptimError::NotPositive { option: "step_size", value: 0 }.into());
        }
        Ok(StepLR { schedule: Schedule::new(optimizer.learning_rates()), step_size, gamma })
    }

    /// Ends an epoch. Call it after the optimizer's step.
    pub fn step(&mut self) {
        let StepLR { step_size, gamma, .. } = *self;
        // Multiplied in each epoch, as in PyTorch: 0.1 · 0.1 is 0.010000000000000002.
        self.schedule.step(|epoch, lr, _| if epoch.is_multiple_of(step_size) { lr * gamma } else { lr });
    }

    /// Returns the learning rates set by the last step.
    pub fn get_last_lr(&self) -> Vec<f64> {
        self.schedule.last_lr.clone()
    }

    /// Returns the state for another run, under PyTorch's keys.
    pub fn state_dict(&self) -> Dict {
        self.schedule.state_dict([("step_size", int(self.step_size)), ("gamma", self.gamma.into())])
    }

    /// Continues from a [`state_dict`](Self::state_dict). Errors change nothing. Missing entries (older states have no
    /// `_last_lr`) keep their values. As in PyTorch, the learning rates belong to the optimizer's state, so they are
    /// not set.
    ///
    /// ```
    /// # use todevice::{nn, nn::Module, optim::{self, lr_scheduler::StepLR, Optimizer}};
    /// # let model = nn::Linear::new(2, 1)?;
    /// # let sgd = optim::SGDOptions { lr: 0.1, ..Default::default() };
    /// # let (mut optimizer, mut other) = (optim::SGD::new(model.parameters(), sgd)?, optim::SGD::new(model.parameters(), sgd)?);
    /// let mut scheduler = StepLR::new(&optimizer, 2, 0.1)?;
    /// for _ in 0..3 {
    ///     optimizer.step()?;
    ///     scheduler.step();
    /// }
    ///
    /// let mut resumed = StepLR::new(&other, 2, 0.1)?;
    /// resumed.load_state_dict(&scheduler.state_dict())?;
    /// assert_eq!(other.learning_rates().all(), [0.1]);
    /// other.load_state_dict(&optimizer.state_dict())?;
    /// assert_eq!(other.learning_rates().all(), [0.010000000000000002]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn load_state_dict(&mut self, state: &Dict) -> Result<()> {
        let step_size = optional(state, "step_size", count)?.unwrap_or(self.step_size);
        if step_size == 0 {
            return Err(OptimError::NotPositive { option: "step_size", value: 0 }.into());
        }
        let gamma = optional(state, "gamma", number)?.unwrap_or(self.gamma);
        self.schedule.load_state_dict(state)?;
        (self.step_size, self.gamma) = (step_size, gamma);
        Ok(())
    }
}

/// Anneals the learning rates along half a cosine to `eta_min`, in `t_max` epochs (`CosineAnnealingLR`).
#[derive(Debug)]
pub struct CosineAnnealingLR {
    schedule: Schedule,
    t_max: u64,
    eta_min: f64,
}

impl CosineAnnealingLR {
    /// Schedules every group of `optimizer`.
    pub fn new(optimizer: &(impl Optimizer + ?Sized), t_max: u64, eta_min: f64) -> Result<CosineAnnealingLR> {
        if t_max == 0 {
            return Err(OptimError::NotPositive { option: "T_max", value: 0 }.into());
        }
        Ok(CosineAnnealingLR { schedule: Schedule::new(optimizer.learning_rates()), t_max, eta_min })
    }

    /// Ends an epoch. Call it after the optimizer's step.
    pub fn step(&mut self) {
        let CosineAnnealingLR { t_max, eta_min, .. } = *self;
        let cos = |epoch: u64| (std::f64::consts::PI * epoch as f64 / t_max as f64).cos();
        // Recursive, as in PyTorch: the closed form would differ in the last digits. The divisor is 0 one epoch after
        // each minimum, so the first step up is explicit.
        self.schedule.step(|k, lr, base| match k > t_max && (k - 1 - t_max).is_multiple_of(2 * t_max) {
            true => lr + (base - eta_min) * (1.0 - (std::f64::consts::PI / t_max as f64).cos()) / 2.0,
            false => (1.0 + cos(k)) / (1.0 + cos(k - 1)) * (lr - eta_min) + eta_min,
        });
    }

    /// Returns the learning rates set by the last step.
    pub fn get_last_lr(&self) -> Vec<f64> {
        self.schedule.last_lr.clone()
    }

    /// Returns the state for another run, under PyTorch's keys.
    pub fn state_dict(&self) -> Dict {
        self.schedule.state_dict([("T_max", int(self.t_max)), ("eta_min", self.eta_min.into())])
    }

    /// Continues from a [`state_dict`](Self::state_dict), like [`StepLR::load_state_dict`].
    pub fn load_state_dict(&mut self, state: &Dict) -> Result<()> {
        let t_max = optional(state, "T_max", count)?.unwrap_or(self.t_max);
        if t_max == 0 {
            return Err(OptimError::NotPositive { option: "T_max", value: 0 }.into());
        }
        let eta_min = optional(state, "eta_min", number)?.unwrap_or(self.eta_min);
        self.schedule.load_state_dict(state)?;
        (self.t_max, self.eta_min) = (t_max, eta_min);
        Ok(())
    }
}

/// The common part of all schedules (`LRScheduler`).
#[derive(Debug)]
struct Schedule {
    rates: LearningRates,
    base_lrs: Vec<f64>,
    last_epoch: u64,
    last_lr: Vec<f64>,
}

impl Schedule {
    fn new(rates: &LearningRates) -> Schedule {
        Schedule { base_lrs: rates.initial(), last_lr: rates.all(), rates: rates.clone(), last_epoch: 0 }
    }

    /// Ends an epoch. `next` maps the number of the new epoch, the current rate and the initial rate to the new rate.
    fn step(&mut self, next: impl Fn(u64, f64, f64) -> f64) {
        warn_if_first(&self.rates, self.last_epoch);
        self.last_epoch += 1;
        let lrs = self.rates.all().into_iter().zip(&self.base_lrs);
        self.last_lr = lrs.map(|(lr, base)| next(self.last_epoch, lr, *base)).collect();
        self.rates.set_all(&self.last_lr).expect("an optimizer keeps as many groups as it was made with");
    }

    /// `_step_count` includes the step of PyTorch's constructor. The two flags are only true during a step.
    fn state_dict(&self, options: [(&str, Value); 2]) -> Dict {
        let mut state = Dict::from_iter(options);
        state.insert("base_lrs", self.base_lrs.clone());
        state.insert("last_epoch", int(self.last_epoch));
        state.insert("_step_count", int(self.last_epoch + 1));
        state.insert("_is_initial", false);
        state.insert("_get_lr_called_within_step", false);
        state.insert("_last_lr", self.last_lr.clone());
        state
    }

    fn load_state_dict(&mut self, state: &Dict) -> Result<()> {
        let numbers = |lrs: &Value| lrs.as_list()?.iter().map(number).collect::<Result<Vec<f64>>>();
        let lrs = |key| match optional(state, key, numbers)? {
            Some(lrs) if lrs.len() != self.base_lrs.len() => Err(Error::from(OptimError::GroupCount)),
            lrs => Ok(lrs),
        };
        let (base_lrs, last_lr) = (lrs("base_lrs")?, lrs("_last_lr")?);
        let last_epoch = optional(state, "last_epoch", count)?;
        self.base_lrs = base_lrs.unwrap_or_else(|| self.base_lrs.clone());
        self.last_lr = last_lr.unwrap_or_else(|| self.last_lr.clone());
        self.last_epoch = last_epoch.unwrap_or(self.last_epoch);
        Ok(())
    }
}

fn int(count: u64) -> Value {
    Value::Int(count as i64) // No count reaches 2⁶³.
}

fn warn_if_first(rates: &LearningRates, last_epoch: u64) {
    if last_epoch == 0 && rates.steps() == 0 {
        HostContext::warn_once("scheduler order", || {
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you \
             should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure \
             to do this will result in PyTorch skipping the first value of the learning rate schedule. See more \
             details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
                .to_string()
        });
    }
}
