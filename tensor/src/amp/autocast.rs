//! Autocast: regions in which operations choose the dtype they run in.
//!
//! Each operation's declaration says how its operands are cast ([`CastPolicy`]). The operations it is made of run in the
//! dtypes chosen for it.

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
    /// The type of devices: only operations on its tensors are cast.
    pub device_type: DeviceType,
    /// The dtype to cast to. By default that of the enclosing region; outside of any region, f16 on CUDA devices
    /// and bf16 on the CPU. On the CPU it must be one of these two; any other disables the region.
    pub dtype: Option<DType>,
    /// Whether autocasting is on. A disabled region casts nothing, even inside an enabled one.
    pub enabled: bool,
    /// Whether a weight is cast only once for the whole region. By default as in the enclosing region.
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

/// Weights and what they were cast to, by the weights' identities. Who leaves the outermost region forgets them.
type Weights = Mutex<HashMap<usize, (Tensor, Tensor)>>;

fn no_weights() -> AnyValue {
    Some(Arc::new(Weights::default()))
}

/// The regions of this thread, for another one, which casts weights itself.
pub(crate) fn anew(autocast: Autocast) -> Autocast {
    Autocast { weights: no_weights(), ..autocast }
}

/// The regions of an earlier time. Weights that were cast in the regions of now stay cast.
pub(crate) fn again(then: Autocast, now: Autocast) -> Autocast {
    if now.depth > 0 { Autocast { weights: now.weights, ..then } } else { anew(then) }
}

/// Suspends autocast until the guard is dropped.
fn suspend() -> Restore<Suspended> {
    Suspended(true).enter()
}

/// Runs operations inside `scope` in 16 bits where that is accurate enough, and in f32 where it is not
/// (`torch.autocast`).
///
/// | operations | run in |
/// | --- | --- |
/// | `conv2d`, `linear`, `matmul`, `mm`, `bmm` | `dtype` |
/// | the losses; on CUDA devices also `exp`, `log`, `pow`, `softmax`, `log_softmax`, `layer_norm`, `sum`, `norm`, … | f32 |
/// | all others | the dtypes of their operands |
///
/// Operands are cast as needed; parameters stay f32, and so do their gradients. A weight is cast once, and the cast
/// is used until the outermost region ends, so changes to a weight inside the region have no effect there. In-place
/// operations, integers and doubles are never cast. Call `backward` outside; inside it does the same, in the dtypes
/// of the forward pass. (Inside a region PyTorch also casts the products of a backward pass whose forward pass ran
/// in f32.) The state belongs to the thread.
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
    let AutocastOptions { device_type, dtype, enabled, cache_enabled } = options.into();
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
    let _left = state.enter();
    scope()
}

/// Whether casting is possible; otherwise warns why it is not.
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

/// Whether operations on devices of a type are cast on this thread (`torch.is_autocast_enabled`).
pub fn is_autocast_enabled(device_type: DeviceType) -> bool {
    Autocast::current().casting(device_type).enabled
}

/// The dtype that operations are cast to (`torch.get_autocast_dtype`).
pub fn get_autocast_dtype(device_type: DeviceType) -> DType {
    Autocast::current().casting(device_type).dtype
}

/// Runs `scope`, a part of an operation or its backward, without autocast.
pub(crate) fn without_autocast<R>(scope: impl FnOnce() -> R) -> R {
    let _suspended = is_active().then(suspend);
    scope()
}

#[inline]
fn is_active() -> bool {
    TensorContext::read(|context| context.autocast.is_active())
}

/// The operands of an operation as autocast casts them. Autocast is suspended until this is dropped.
pub(crate) struct Operands(Option<Box<(SmallVec<[Tensor; 4]>, Restore<Suspended>)>>);

impl Operands {
    /// Everything that depends on the operation is in here, so that the code compiled for each operation stays small.
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

    /// Returns the given operands, or their casts.
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
    // A number of the host may join tensors of a GPU, and is not the one that decides.
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

/// The dtype that can represent the numbers of all these dtypes.
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

/// Whether a tensor is used repeatedly and does not change: a parameter.
fn is_weight(tensor: &Tensor) -> bool {
    tensor.dtype() == DType::F32
        && tensor.requires_grad()
        && tensor.is_leaf()
        && !tensor.is_view()
        && !is_inference_mode_enabled()
}

/// Returns the first cast of a weight in this region, whatever its dtype.
#[track_caller]
fn cached(weight: &Tensor, to: DType, state: &Autocast) -> Result<Tensor> {
    let weights = state.weights.as_ref().and_then(|weights| weights.downcast_ref::<Weights>());
    let known =
        weights.and_then(|weights| lock(weights).get(&weight.identity()).map(|(_, cast)| cast.clone()));
    if let Some(cast) = known {
        return Ok(cast);
    }
    // Recorded, even if this first use is not, since a later use may need its gradient.
    let cast = enable_grad(|| weight.to(to))?;
    // The weight is kept along with it, so that no other tensor gets its identity.
    let kept = (weight.clone(), cast.clone());
    weights.map(|weights| lock(weights).insert(weight.identity(), kept));
    Ok(cast)
}
