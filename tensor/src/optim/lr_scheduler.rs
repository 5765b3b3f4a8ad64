//! `torch.optim.lr_scheduler`: learning rates that change from epoch to epoch.

use super::Optimizer;
use super::error::OptimError;
use super::groups::LearningRates;
use crate::ambient::Ambient;
use crate::error::Result;

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
    rates: LearningRates,
    step_size: u64,
    gamma: f64,
    last_epoch: u64,
}

impl StepLR {
    /// Schedules every group of `optimizer`.
    pub fn new(optimizer: &impl Optimizer, step_size: u64, gamma: f64) -> Result<StepLR> {
        if step_size == 0 {
            return Err(OptimError::NotPositive { option: "step_size", value: 0 }.into());
        }
        Ok(StepLR { rates: optimizer.learning_rates().clone(), step_size, gamma, last_epoch: 0 })
    }

    /// Ends an epoch. Call it after the optimizer's step.
    pub fn step(&mut self) {
        warn_if_first(&self.rates, self.last_epoch);
        self.last_epoch += 1;
        if self.last_epoch.is_multiple_of(self.step_size) {
            // Multiplied anew each time, as PyTorch does: 0.1 · 0.1 is 0.010000000000000002.
            let rates: Vec<f64> = self.rates.all().iter().map(|lr| lr * self.gamma).collect();
            self.rates.set_all(&rates);
        }
    }

    /// The learning rates in use now.
    pub fn get_last_lr(&self) -> Vec<f64> {
        self.rates.all()
    }
}

/// Half a cosine from the initial learning rates down to `eta_min` in `t_max` epochs
/// (`CosineAnnealingLR`).
#[derive(Debug)]
pub struct CosineAnnealingLR {
    rates: LearningRates,
    base: Vec<f64>,
    t_max: u64,
    eta_min: f64,
    last_epoch: u64,
}

impl CosineAnnealingLR {
    /// Schedules every group of `optimizer`.
    pub fn new(optimizer: &impl Optimizer, t_max: u64, eta_min: f64) -> Result<CosineAnnealingLR> {
        if t_max == 0 {
            return Err(OptimError::NotPositive { option: "T_max", value: 0 }.into());
        }
        let rates = optimizer.learning_rates().clone();
        Ok(CosineAnnealingLR { base: rates.all(), rates, t_max, eta_min, last_epoch: 0 })
    }

    /// Ends an epoch. Call it after the optimizer's step.
    pub fn step(&mut self) {
        warn_if_first(&self.rates, self.last_epoch);
        self.last_epoch += 1;
        let (k, t_max, eta_min) = (self.last_epoch as f64, self.t_max as f64, self.eta_min);
        let angle = std::f64::consts::PI / t_max;
        // A recursion, as in PyTorch: the last digits of the closed form would be others. Its divisor is 0
        // one epoch after each minimum, where the way up is started by hand.
        let restarts =
            self.last_epoch > self.t_max && (self.last_epoch - 1 - self.t_max).is_multiple_of(2 * self.t_max);
        let next = |(lr, base): (&f64, &f64)| match restarts {
            true => lr + (base - eta_min) * (1.0 - angle.cos()) / 2.0,
            false => {
                (1.0 + (std::f64::consts::PI * k / t_max).cos())
                    / (1.0 + (std::f64::consts::PI * (k - 1.0) / t_max).cos())
                    * (lr - eta_min)
                    + eta_min
            }
        };
        let rates: Vec<f64> = self.rates.all().iter().zip(&self.base).map(next).collect();
        self.rates.set_all(&rates);
    }

    /// The learning rates in use now.
    pub fn get_last_lr(&self) -> Vec<f64> {
        self.rates.all()
    }
}

fn warn_if_first(rates: &LearningRates, last_epoch: u64) {
    if last_epoch == 0 && rates.steps() == 0 {
        Ambient::warn_once("scheduler order", || {
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you \
             should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure \
             to do this will result in PyTorch skipping the first value of the learning rate schedule. See more \
             details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
                .to_string()
        });
    }
}
