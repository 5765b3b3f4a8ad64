//! Autocast: regions that choose the dtype of each operation by its [`CastPolicy`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use crate::autograd::{enable_grad, is_inference_mode_enabled};
use crate::device::{Device, DeviceType};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu;
use crate::host_context::HostContext;
use crate::lock::lock;
use crate::operation::{CastPolicy, Operation};
use crate::tensor::Tensor;
use crate::thread::{AnyValue, Autocast, Casting, OfThread, Part, Restore, Suspended, TensorContext};

/// The arguments of [`autocast`]. A device or device type alone uses the defaults for the others.
#[derive(Clone, Copy, Debug)]
pub struct AutocastOptions {
    /// The device type: only operations on its tensors are cast.
    pub device_type: DeviceType,
    /// The dtype to cast to. Default: the enclosing region's dtype; outside any region, f16 on CUDA devices and bf16 on
    /// the CPU. The CPU accepts only these two: any other disables the region.
    pub dtype: Option<DType>,
    /// Whether to cast. A disabled region casts nothing, even inside an enabled one.
    pub enabled: bool,
    /// Whether to cast a weight only once per region. Default: as in the enclosing region.
    pub cache_enabled: Option<bool>,
}

impl From<DeviceType> for AutocastOptions {
    fn from(device_type: DeviceType) -> AutocastOptions {
        AutocastOptions { device_type, dtype: None, enabled: true, cache_enabled: None }
    }
}

impl From<Device> for AutocastOptions {
    fn from(device: Device) -> AutocastOptions {
        device.device_type().into()
    }
}

impl Autocast {
    fn current() -> Autocast {
        TensorContext::read(|context| context.autocast.clone())
    }

    fn casting(&self, device_type: DeviceType) -> Casting {
        match device_type {
            DeviceType::Cpu => self.cpu,
            DeviceType::Cuda => self.cuda,
        }
    }

    fn is_active(&self) -> bool {
        (self.cpu.enabled || self.cuda.enabled) && !self.suspended.0
    }
}

/// Weights and their casts, by the identity of the weight. Cleared at the end of the outermost region.
type Weights = Mutex<HashMap<usize, (Tensor, Tensor)>>;

fn no_weights() -> AnyValue {
    Some(Arc::new(Weights::default()))
}

/// Returns the regions for another thread, which keeps its own cache of weights.
pub(crate) fn anew(autocast: Autocast) -> Autocast {
    Autocast { weights: no_weights(), ..autocast }
}

/// Restores earlier regions, but keeps the current cache of weights.
pub(crate) fn again(then: Autocast, now: Autocast) -> Autocast {
    if now.depth > 0 { Autocast { weights: now.weights, ..then } } else { anew(then) }
}

fn suspend() -> Restore<Suspended> {
    Suspended(true).enter()
}

/// Runs the operations in `scope` in 16 bits where that is accurate enough, else in f32 (`torch.autocast`).
///
/// | operations | run in |
/// | --- | --- |
/// | `conv2d`, `linear`, `matmul`, `mm`, `bmm` | `dtype` |
/// | the losses; on CUDA devices also `exp`, `log`, `pow`, `softmax`, `log_softmax`, `layer_norm`, `sum`, `norm`, … | f32 |
/// | all others | the dtypes of their operands |
///
/// Operands are cast as needed. Parameters and their gradients stay f32. The cast of a weight is cached until the
/// outermost region ends, so later changes to the weight have no effect inside the region. In-place operations,
/// integers and f64 tensors are never cast. Call `backward` outside the region. Inside, it gives the same result, in
/// the dtypes of the forward pass. (PyTorch, inside a region, also casts the matrix products of a backward pass whose
/// forward pass ran in f32.) The state is per thread.
///
/// ```
/// use todevice::amp::{self, AutocastOptions};
/// use todevice::{DType, DeviceType, Tensor};
///
/// let a = Tensor::ones(&[2, 2])?;
/// let (product, inside) = amp::autocast(DeviceType::Cpu, || -> todevice::Result<_> {
///     let off = AutocastOptions { enabled: false, ..DeviceType::Cpu.into() };
///     Ok((a.matmul(&a)?, amp::autocast(off, || a.matmul(&a))?))
/// })?;
/// assert_eq!((product.dtype(), inside.dtype()), (DType::BF16, DType::F32));
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn autocast<R>(options: impl Into<AutocastOptions>, scope: impl FnOnce() -> R) -> R {
    let _left = begin_autocast(options.into());
    scope()
}

/// Begins a region, which ends with the guard.
pub(crate) fn begin_autocast(
    AutocastOptions { device_type, dtype, enabled, cache_enabled }: AutocastOptions,
) -> Restore<Autocast> {
    let mut state = Autocast::current();
    let dtype = dtype.unwrap_or(state.casting(device_type).dtype);
    let casting = Casting { enabled: enabled && is_possible(device_type, dtype), dtype };
    match device_type {
        DeviceType::Cpu => state.cpu = casting,
        DeviceType::Cuda => state.cuda = casting,
    }
    state.cache_enabled = cache_enabled.unwrap_or(state.cache_enabled);
    if state.depth == 0 {
        state.weights = no_weights();
    }
    state.depth += 1;
    state.enter()
}

fn is_possible(device_type: DeviceType, dtype: DType) -> bool {
    if device_type == DeviceType::Cuda && !gpu::is_available() {
        HostContext::warn_once("autocast without CUDA", || {
            "CUDA is not available or torch_xla is imported. Disabling autocast.".to_owned()
        });
        return false;
    }
    // PyTorch does not check the dtype for CUDA devices.
    let is_possible = device_type == DeviceType::Cuda || dtype.is_half();
    if !is_possible {
        HostContext::warn_once("autocast dtype", || {
            "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only supports \
             dtypes of torch.bfloat16, torch.float16 currently."
                .to_owned()
        });
    }
    is_possible
}

/// Returns whether operations on this device type are cast on this thread (`torch.is_autocast_enabled`).
pub fn is_autocast_enabled(device_type: DeviceType) -> bool {
    Autocast::current().casting(device_type).enabled
}

/// Returns the dtype that operations are cast to (`torch.get_autocast_dtype`).
pub fn get_autocast_dtype(device_type: DeviceType) -> DType {
    Autocast::current().casting(device_type).dtype
}

pub(crate) fn without_autocast<R>(scope: impl FnOnce() -> R) -> R {
    let _suspended = is_active().then(suspend);
    scope()
}

#[inline]
fn is_active() -> bool {
    TensorContext::read(|context| context.autocast.is_active())
}

/// The operands of an operation after autocast. Autocast is suspended until the drop.
pub(crate) struct Operands(Option<Box<(SmallVec<[Tensor; 4]>, Restore<Suspended>)>>);

impl Operands {
    /// Only this check is inlined into each operation, which keeps its code small.
    #[inline]
    #[track_caller]
    pub(crate) fn cast(operation: &'static Operation, operands: &[&Tensor]) -> Result<Operands> {
        if is_active() { Operands::suspended(operation, operands) } else { Ok(Operands(None)) }
    }

    #[track_caller]
    fn suspended(operation: &'static Operation, operands: &[&Tensor]) -> Result<Operands> {
        let (state, restore) = (Autocast::current(), suspend());
        Ok(Operands(Some(Box::new((cast(operation, operands, &state)?, restore)))))
    }

    #[inline]
    pub(crate) fn of<'a>(&'a self, given: &'a [&'a Tensor]) -> Cow<'a, [&'a Tensor]> {
        match &self.0 {
            None => Cow::Borrowed(given),
            Some(cast) => Cow::Owned(cast.0.iter().collect()),
        }
    }
}

#[track_caller]
fn cast(
    operation: &'static Operation,
    operands: &[&Tensor],
    state: &Autocast,
) -> Result<SmallVec<[Tensor; 4]>> {
    // GPU operands decide: a number on the host may join them.
    let devices = [DeviceType::Cuda, DeviceType::Cpu];
    let casts = |device_type: &DeviceType| {
        let is_there = operands.iter().any(|operand| operand.device().device_type() == *device_type);
        is_there && state.casting(*device_type).enabled
    };
    let device_type = devices.into_iter().find(casts);
    let unchanged = || Ok(operands.iter().map(|operand| (*operand).clone()).collect());
    let Some(device_type) = device_type else { return unchanged() };
    let lower = state.casting(device_type).dtype;
    let eligible = |operand: &&&Tensor| {
        let dtype = operand.dtype();
        operand.device().device_type() == device_type && dtype.is_floating_point() && dtype != DType::F64
    };
    let [on_cpu, on_cuda] = operation.casts;
    let to = match if device_type == DeviceType::Cuda { on_cuda } else { on_cpu } {
        CastPolicy::AsGiven => return unchanged(),
        CastPolicy::LowerPrecision => lower,
        CastPolicy::Fp32 => DType::F32,
        CastPolicy::Promote => {
            widest(lower, operands.iter().filter(eligible).map(|operand| operand.dtype()))?
        }
    };
    let cast = |operand: &&Tensor| match eligible(&operand) && operand.dtype() != to {
        true if is_weight(operand) && to == lower && state.cache_enabled => cached(operand, to, state),
        true => operand.to(to),
        false => Ok((*operand).clone()),
    };
    operands.iter().map(cast).collect()
}

fn widest(lower: DType, types: impl Iterator<Item = DType>) -> Result<DType> {
    let mut widest = lower;
    for dtype in types {
        widest = match dtype {
            DType::F32 => DType::F32,
            dtype if dtype == widest || widest == DType::F32 => widest,
            _ => return Err(Error::custom("Unexpected floating ScalarType in at::autocast::prioritize")),
        };
    }
    Ok(widest)
}

fn is_weight(tensor: &Tensor) -> bool {
    tensor.dtype() == DType::F32
        && tensor.requires_grad()
        && tensor.is_leaf()
        && !tensor.is_view()
        && !is_inference_mode_enabled()
}

/// Returns the cached cast, even if a later region asks for another dtype.
#[track_caller]
fn cached(weight: &Tensor, to: DType, state: &Autocast) -> Result<Tensor> {
    let weights = state.weights.as_ref().and_then(|weights| weights.downcast_ref::<Weights>());
    let known =
        weights.and_then(|weights| lock(weights).get(&weight.identity()).map(|(_, cast)| cast.clone()));
    if let Some(cast) = known {
        return Ok(cast);
    }
    // Recorded even under `no_grad`: a later use may need the gradient.
    let cast = enable_grad(|| weight.to(to))?;
    // Holds the weight too, so that no other tensor can get its identity.
    let kept = (weight.clone(), cast.clone());
    weights.map(|weights| lock(weights).insert(weight.identity(), kept));
    Ok(cast)
}
