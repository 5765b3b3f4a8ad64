//! `GradScaler`: keeps small gradients within the range of f16.

use std::panic::Location;

use super::error::ScalerError;
use crate::autograd::no_grad;
use crate::device::DeviceType;
use crate::dtype::DType;
use crate::error::tensor::TensorError;
use crate::error::{Error, Result};
use crate::gpu;
use crate::host_context::HostContext;
use crate::ops::scaler::{unscale, update_scale};
use crate::optim::{LearningRates, Optimizer};
use crate::scope;
use crate::serialize::{Dict, Value, field, number, whole};
use crate::tensor::Tensor;
use crate::tensor_options::ToOptions;

/// The keyword arguments of `torch.amp.GradScaler`.
#[derive(Clone, Copy, Debug)]
pub struct GradScalerOptions {
    /// The device type of the training. With CUDA, a machine without a GPU disables the scaler.
    pub device: DeviceType,
    /// The initial scale.
    pub init_scale: f64,
    /// The factor of the scale after `growth_interval` steps without an overflow.
    pub growth_factor: f64,
    /// The factor of the scale after a step with an overflow.
    pub backoff_factor: f64,
    /// The number of consecutive steps without an overflow before the scale grows.
    pub growth_interval: u32,
    /// Whether to scale. A disabled scaler changes nothing.
    pub enabled: bool,
}

impl Default for GradScalerOptions {
    fn default() -> GradScalerOptions {
        GradScalerOptions {
            device: DeviceType::Cuda,
            init_scale: 65536.0,
            growth_factor: 2.0,
            backoff_factor: 0.5,
            growth_interval: 2000,
            enabled: true,
        }
    }
}

/// Keeps the gradients of a loss within the range of f16 (`torch.amp.GradScaler`).
///
/// The smallest f16 number is 6·10⁻⁸, and smaller gradients would become 0. The scaler therefore multiplies the loss,
/// and with it all gradients, by a large scale, and divides the gradients by it before the optimizer's step. If the
/// scale is too large, a gradient becomes infinite or NaN: the step is skipped and the scale is halved. After 2000
/// steps without an overflow the scale is doubled.
///
/// ```
/// use todevice::DeviceType;
/// use todevice::amp::{GradScaler, GradScalerOptions};
/// use todevice::prelude::*;
///
/// let model = nn::Linear::new(2, 1)?;
/// let mut optimizer = optim::SGD::new(model.parameters(), Default::default())?;
/// let mut scaler = GradScaler::new(GradScalerOptions { device: DeviceType::Cpu, ..Default::default() })?;
/// let loss = model.forward(&Tensor::ones(&[1, 2])?)?.sum()?;
///
/// scaler.scale(&loss)?.backward()?; // gradients, 65536 times as large
/// scaler.unscale_(&optimizer)?; // to look at them, or to clip them; else `step` does it
/// assert_eq!(model.weight.grad().unwrap().to_vec::<f32>()?, [1.0, 1.0]);
/// scaler.step(&mut optimizer)?; // unless a gradient is infinite or not a number
/// scaler.update()?; // for the next iteration
/// assert_eq!(scaler.get_scale()?, 65536.0);
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Debug)]
pub struct GradScaler {
    options: GradScalerOptions,
    /// The initial value of the tracker, from a loaded state.
    growth_tracker: u32,
    /// Created on the loss's device by the first `scale`.
    tensors: Option<Tensors>,
    optimizers: Vec<OptimizerState>,
}

/// On the device, so that the host does not wait: the scale (f32), and the steps since an overflow (i32).
#[derive(Debug)]
struct Tensors {
    scale: Tensor,
    growth_tracker: Tensor,
}

#[derive(Debug)]
struct OptimizerState {
    optimizer: LearningRates,
    stage: Stage,
    /// One flag per device with gradients: 1 if a gradient is infinite or NaN, else 0.
    found_inf: Vec<Tensor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ready,
    Unscaled,
    Stepped,
}

impl GradScaler {
    /// Returns an error if the growth factor is at most 1, or the backoff factor at least 1.
    pub fn new(options: GradScalerOptions) -> Result<GradScaler> {
        let mut options = options;
        if options.enabled && options.device == DeviceType::Cuda && !gpu::is_available() {
            HostContext::warn_once("grad scaler", || {
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.".to_owned()
            });
            options.enabled = false;
        }
        if options.enabled && options.growth_factor <= 1.0 {
            return Err(ScalerError::GrowthFactor.into());
        }
        if options.enabled && options.backoff_factor >= 1.0 {
            return Err(ScalerError::BackoffFactor.into());
        }
        Ok(GradScaler { options, growth_tracker: 0, tensors: None, optimizers: Vec::new() })
    }

    /// Multiplies a loss by the scale. Call `backward` on the result.
    #[track_caller]
    pub fn scale(&mut self, loss: &Tensor) -> Result<Tensor> {
        let _scope = scope::on_behalf_of(Location::caller());
        if !self.options.enabled {
            return Ok(loss.clone());
        }
        let tensors = match self.tensors.take() {
            Some(tensors) => tensors,
            None => {
                let device = loss.device();
                Tensors {
                    scale: Tensor::full(&[], (self.options.init_scale, (device, DType::F32)))?,
                    growth_tracker: Tensor::full(
                        &[],
                        (i64::from(self.growth_tracker), (device, DType::I32)),
                    )?,
                }
            }
        };
        let scale = self.tensors.insert(tensors).scale.to(beside(loss))?;
        loss.mul(&scale)
    }

    /// Divides an optimizer's gradients by the scale, and records whether any is infinite or NaN. Clip gradients after
    /// it, before [`step`](Self::step). Call it at most once per step. The host does not wait for the device.
    #[track_caller]
    pub fn unscale_(&mut self, optimizer: &(impl Optimizer + ?Sized)) -> Result<()> {
        let _scope = scope::on_behalf_of(Location::caller());
        if !self.options.enabled {
            return Ok(());
        }
        let tensors = checked(&self.tensors, "unscale_")?;
        let state = state_of(&mut self.optimizers, optimizer);
        match state.stage {
            Stage::Ready => {}
            Stage::Unscaled => return Err(ScalerError::UnscaleTwice.into()),
            Stage::Stepped => return Err(ScalerError::UnscaleAfterStep.into()),
        }
        // In f64, like PyTorch: the reciprocal is rounded only once.
        let inv_scale = no_grad(|| tensors.scale.to(DType::F64)?.reciprocal()?.to(DType::F32))?;
        state.found_inf = unscale_grads(optimizer, &inv_scale)?;
        state.stage = Stage::Unscaled;
        Ok(())
    }

    /// Runs the optimizer's step, after unscaling if necessary, unless a gradient is infinite or NaN. Returns whether
    /// the step was taken. The host waits for the device.
    #[track_caller]
    pub fn step(&mut self, optimizer: &mut (impl Optimizer + ?Sized)) -> Result<bool> {
        let _scope = scope::on_behalf_of(Location::caller());
        if !self.options.enabled {
            return optimizer.step().map(|()| true);
        }
        checked(&self.tensors, "step")?;
        match state_of(&mut self.optimizers, optimizer).stage {
            Stage::Ready => self.unscale_(optimizer)?,
            Stage::Unscaled => {}
            Stage::Stepped => return Err(ScalerError::StepTwice.into()),
        }
        let state = state_of(&mut self.optimizers, optimizer);
        if state.found_inf.is_empty() {
            return Err(ScalerError::NoInfChecksForOptimizer.into());
        }
        let mut found = 0.0;
        for found_inf in &state.found_inf {
            found += found_inf.item()?;
        }
        if found == 0.0 {
            optimizer.step()?;
        }
        state.stage = Stage::Stepped;
        Ok(found == 0.0)
    }

    /// Reduces the scale after an overflow, or increases it after enough steps without one, as long as it is finite.
    /// Call it once per iteration, after the steps of all optimizers. The host does not wait.
    #[track_caller]
    pub fn update(&mut self) -> Result<()> {
        let _scope = scope::on_behalf_of(Location::caller());
        if !self.options.enabled {
            return Ok(());
        }
        let Tensors { scale, growth_tracker } = checked(&self.tensors, "update")?;
        let mut combined: Option<Tensor> = None;
        for found_inf in self.optimizers.iter().flat_map(|state| &state.found_inf) {
            let found_inf = found_inf.to(beside(scale))?;
            combined = Some(match combined {
                None => found_inf,
                Some(combined) => combined.add(&found_inf)?,
            });
        }
        let found_inf = combined.ok_or(ScalerError::NoInfChecksForUpdate)?;
        let GradScalerOptions { growth_factor, backoff_factor, growth_interval, .. } = self.options;
        update_scale(scale, growth_tracker, &found_inf, [growth_factor, backoff_factor], growth_interval)?;
        self.optimizers.clear();
        Ok(())
    }

    /// Sets the scale (`update(new_scale)`).
    #[track_caller]
    pub fn update_to(&mut self, new_scale: f64) -> Result<()> {
        let _scope = scope::on_behalf_of(Location::caller());
        if !self.options.enabled {
            return Ok(());
        }
        checked(&self.tensors, "update")?.scale.fill_(new_scale)?;
        self.optimizers.clear();
        Ok(())
    }

    /// Returns the scale, or 1 if the scaler is disabled. The host waits for it.
    #[track_caller]
    pub fn get_scale(&self) -> Result<f64> {
        let _scope = scope::on_behalf_of(Location::caller());
        match &self.tensors {
            _ if !self.options.enabled => Ok(1.0),
            None => Ok(self.options.init_scale),
            Some(tensors) => tensors.scale.item(),
        }
    }

    /// Returns the growth factor.
    pub fn get_growth_factor(&self) -> f64 {
        self.options.growth_factor
    }

    /// Sets the growth factor.
    pub fn set_growth_factor(&mut self, factor: f64) {
        self.options.growth_factor = factor;
    }

    /// Returns the backoff factor.
    pub fn get_backoff_factor(&self) -> f64 {
        self.options.backoff_factor
    }

    /// Sets the backoff factor.
    pub fn set_backoff_factor(&mut self, factor: f64) {
        self.options.backoff_factor = factor;
    }

    /// Returns the growth interval in steps.
    pub fn get_growth_interval(&self) -> u32 {
        self.options.growth_interval
    }

    /// Sets the growth interval in steps.
    pub fn set_growth_interval(&mut self, interval: u32) {
        self.options.growth_interval = interval;
    }

    /// Returns whether the scaler is enabled.
    pub fn is_enabled(&self) -> bool {
        self.options.enabled
    }

    /// Returns `scale`, `growth_factor`, `backoff_factor`, `growth_interval` and `_growth_tracker`; empty if the scaler
    /// is disabled. Call it after [`update`](Self::update). The host waits for the device.
    #[track_caller]
    pub fn state_dict(&self) -> Result<Dict> {
        let _scope = scope::on_behalf_of(Location::caller());
        if !self.options.enabled {
            return Ok(Dict::new());
        }
        let growth_tracker = match &self.tensors {
            None => i64::from(self.growth_tracker),
            Some(tensors) => tensors.growth_tracker.item()? as i64,
        };
        Ok(Dict::from_iter([
            ("scale", Value::from(self.get_scale()?)),
            ("growth_factor", self.options.growth_factor.into()),
            ("backoff_factor", self.options.backoff_factor.into()),
            ("growth_interval", i64::from(self.options.growth_interval).into()),
            ("_growth_tracker", growth_tracker.into()),
        ]))
    }

    /// Restores a [`state_dict`](Self::state_dict). A disabled scaler ignores it.
    #[track_caller]
    pub fn load_state_dict(&mut self, state: &Dict) -> Result<()> {
        let _scope = scope::on_behalf_of(Location::caller());
        if !self.options.enabled {
            return Ok(());
        }
        if state.is_empty() {
            return Err(ScalerError::EmptyState.into());
        }
        let float = |key| field(state, key, number);
        let count = |key, most: u32| {
            let value = field(state, key, whole)?;
            let count = u32::try_from(value).ok().filter(|count| *count <= most);
            count.ok_or_else(|| Error::from(ScalerError::State { key, value }))
        };
        let scale = float("scale")?;
        let options = GradScalerOptions {
            init_scale: scale,
            growth_factor: float("growth_factor")?,
            backoff_factor: float("backoff_factor")?,
            growth_interval: count("growth_interval", u32::MAX)?,
            ..self.options
        };
        let growth_tracker = count("_growth_tracker", i32::MAX as u32)?;
        if let Some(tensors) = &self.tensors {
            tensors.scale.fill_(scale)?;
            tensors.growth_tracker.fill_(i64::from(growth_tracker))?;
        }
        (self.options, self.growth_tracker) = (options, growth_tracker);
        Ok(())
    }
}

fn beside(tensor: &Tensor) -> ToOptions {
    ToOptions { device: Some(tensor.device()), non_blocking: true, ..Default::default() }
}

fn checked<'a>(tensors: &'a Option<Tensors>, function: &'static str) -> Result<&'a Tensors> {
    Ok(tensors.as_ref().ok_or(ScalerError::ScaleIsNone { function })?)
}

/// Finds an optimizer's state by its learning rates, which identify the optimizer.
fn state_of<'a>(
    states: &'a mut Vec<OptimizerState>,
    optimizer: &(impl Optimizer + ?Sized),
) -> &'a mut OptimizerState {
    let rates = optimizer.learning_rates();
    let index = match states.iter().position(|state| state.optimizer.is_same(rates)) {
        Some(index) => index,
        None => {
            states.push(OptimizerState {
                optimizer: rates.clone(),
                stage: Stage::Ready,
                found_inf: Vec::new(),
            });
            states.len() - 1
        }
    };
    &mut states[index]
}

/// Unscales an optimizer's gradients. Returns one flag per device: 1 if a gradient is infinite or NaN.
fn unscale_grads(optimizer: &(impl Optimizer + ?Sized), inv_scale: &Tensor) -> Result<Vec<Tensor>> {
    let grads: Vec<Tensor> = optimizer.parameters().iter().filter_map(|parameter| parameter.grad()).collect();
    if grads.iter().any(|grad| grad.dtype() == DType::F16) {
        return Err(ScalerError::UnscaleF16.into());
    }
    if grads.iter().any(|grad| grad.layout().overlaps_itself()) {
        return Err(TensorError::WriteOverlap.into());
    }
    let mut devices: Vec<[Tensor; 2]> = Vec::new();
    for grad in &grads {
        let index = match devices.iter().position(|[inv_scale, _]| inv_scale.device() == grad.device()) {
            Some(index) => index,
            None => {
                let inv_scale = inv_scale.to(beside(grad))?;
                let found_inf = inv_scale.zeros_like()?;
                devices.push([inv_scale, found_inf]);
                devices.len() - 1
            }
        };
        let [inv_scale, found_inf] = &devices[index];
        unscale(grad, inv_scale, found_inf)?;
    }
    Ok(devices.into_iter().map(|[_, found_inf]| found_inf).collect())
}
