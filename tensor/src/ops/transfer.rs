//! `to`, and the copies between devices for `to` and `copy_`.
//!
//! `x.to(device)` returns `x` itself, another handle of the same tensor, if neither device nor dtype changes and no
//! copy is requested. Otherwise it is an operation with a gradient, `ToDevice`. It allocates the result on the device,
//! then calls `upload`, `download` or `copy_peer` of the machine's `Cuda`, which queues the copy.
//!
//! Not here: conversion to another dtype (`to_dtype` in `elementwise/convert.rs`), the stream, and the call of the
//! driver. Next in the spine: `runtime/copy.rs` of `todevice-gpu`.

use crate::autograd::{Context, Function, Saved};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::host_context::HostContext;
use crate::ops::access::access;
use crate::ops::plain::{contiguous, copy_of, write};
use crate::ops::{self, Operation, operations};
use crate::shape::MemoryFormat;
use crate::shape::signed;
use crate::tensor::Tensor;

operations! {
    static TO_DEVICE: Operation = Operation::new("_to_copy").node("ToCopyBackward0");
}

/// The destination of [`Tensor::to`]: a device, a dtype, a memory format, or several of them. A default changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToOptions {
    /// The device to copy to.
    pub device: Option<Device>,
    /// The dtype to convert to.
    pub dtype: Option<DType>,
    /// Whether to copy even if nothing changes.
    pub copy: bool,
    /// The order of the result in memory. The default keeps the strides.
    pub memory_format: MemoryFormat,
    /// Whether to skip the wait for copies that the GPU makes alone: from pinned memory ([`Tensor::pin_memory`]) to the
    /// GPU, and from the GPU to the host, where the result is in pinned memory. Before the next synchronization, do not
    /// write to the source or read the result.
    pub non_blocking: bool,
}

impl Tensor {
    /// This tensor on another device, in another dtype, or both (`Tensor.to`).
    ///
    /// The host waits for a copy from or to it, unless [`ToOptions::non_blocking`] is set. It never waits for a copy
    /// between GPUs.
    ///
    /// If nothing changes, returns this tensor itself, not a copy:
    ///
    /// ```
    /// # use todevice::{DType, Device, Tensor};
    /// let x = Tensor::new([1.5, -2.5])?;
    /// assert!(x.to(Device::Cpu)?.is_same(&x));
    /// assert_eq!(x.to(DType::I64)?.to_vec::<i64>()?, [1, -2]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    // ANCHOR: to
    pub fn to(&self, options: impl Into<ToOptions>) -> Result<Tensor> {
        let options = options.into();
        let device = options.device.unwrap_or(self.device());
        let dtype = options.dtype.unwrap_or(self.dtype());
        if device == self.device() {
            return match dtype == self.dtype() {
                true if options.copy || !self.suits(options.memory_format) => {
                    self.copy_in_format(options.memory_format)
                }
                true => Ok(self.clone()),
                false => self.to_dtype(dtype, options.memory_format),
            };
        }
        device.check_usable()?;
        self.device().check_route(device)?;
        let converted = match dtype == self.dtype() {
            true if self.suits(options.memory_format) => self,
            true => &self.contiguous_in(options.memory_format)?,
            false => &self.to_dtype(dtype, options.memory_format)?,
        };
        let copy = ToDevice { from: self.device(), to: device, non_blocking: options.non_blocking };
        Ok(ops::apply(copy, [converted])?.moved_from(self))
    }
    // ANCHOR_END: to

    /// Whether a copy in a memory format is unnecessary. As in PyTorch, gaps do not matter.
    fn suits(&self, format: MemoryFormat) -> bool {
        format == MemoryFormat::Preserve || self.layout().suggested_format() == format
    }

    /// This tensor on the CPU, or the tensor itself if it is already there.
    #[track_caller]
    pub fn cpu(&self) -> Result<Tensor> {
        self.to(Device::Cpu)
    }

    /// This tensor on the current CUDA device (`Tensor.cuda`).
    #[track_caller]
    pub fn cuda(&self) -> Result<Tensor> {
        self.to(Device::cuda(HostContext::current_device()))
    }
}

impl From<Device> for ToOptions {
    fn from(device: Device) -> ToOptions {
        ToOptions { device: Some(device), ..Default::default() }
    }
}

impl From<DType> for ToOptions {
    fn from(dtype: DType) -> ToOptions {
        ToOptions { dtype: Some(dtype), ..Default::default() }
    }
}

impl From<MemoryFormat> for ToOptions {
    fn from(memory_format: MemoryFormat) -> ToOptions {
        ToOptions { memory_format, ..Default::default() }
    }
}

impl From<(Device, DType)> for ToOptions {
    fn from((device, dtype): (Device, DType)) -> ToOptions {
        ToOptions { device: Some(device), dtype: Some(dtype), ..Default::default() }
    }
}

/// The operation of `to` with another device.
struct ToDevice {
    from: Device,
    to: Device,
    non_blocking: bool,
}

impl Function<1> for ToDevice {
    fn operation(&self) -> &'static Operation {
        &TO_DEVICE
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        copy_to(x, self.to, self.non_blocking)
    }

    /// The gradient is copied back the same way, in a blocking copy.
    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.to(self.from)?)])
    }
}

/// The tensor on the host, or the tensor itself if it is already there. Autograd does not record it.
pub(crate) fn to_host(x: &Tensor) -> Result<Tensor> {
    if x.is_cuda() { copy_to(x, Device::Cpu, false) } else { Ok(x.clone()) }
}

/// A copy on another device with the same strides. A tensor with gaps is first copied to one without gaps on its own
/// device, so that one copy suffices.
fn copy_to(x: &Tensor, device: Device, non_blocking: bool) -> Result<Tensor> {
    let x = if x.layout().is_dense() { x } else { &copy_of(x)? };
    let out = match x.storage().device() {
        // A non-blocking copy ends after this function returns, so its target must be pinned.
        Some(source) if non_blocking && !device.is_cuda() => {
            Tensor::uninit_pinned(source.cuda(), x.layout().at_start(), x.dtype())?
        }
        _ => Tensor::uninit_on(device, x.layout().at_start(), x.dtype())?,
    };
    transfer(x, &out, non_blocking)?;
    Ok(out)
}

/// Overwrites `target` with the elements of `source`, which is on another device and is broadcast to the target's
/// sizes.
///
/// Copy engines copy raw bytes. They write directly to a target without gaps if the source has its strides, and to a
/// contiguous target. Any other target gets the bytes through a temporary buffer on its own device. Dtypes are converted
/// before the copy, as in PyTorch, except in a blocking copy to the host.
pub(crate) fn copy_over(target: &Tensor, source: &Tensor, non_blocking: bool) -> Result<()> {
    source.device().check_route(target.device())?;
    let dtype = if target.is_cuda() || non_blocking { target.dtype() } else { source.dtype() };
    let source = source.to(dtype)?.expand(&signed(target.sizes()))?;
    let is_alike = target.layout().is_dense() && target.layout().has_strides_of(source.layout());
    if is_alike && target.dtype() == dtype {
        return transfer(&source, target, non_blocking);
    }
    let source = contiguous(&source)?;
    if target.is_contiguous() && target.dtype() == dtype {
        return transfer(&source, target, non_blocking);
    }
    let beside = target.uninit_beside(target.sizes(), dtype)?;
    transfer(&source, &beside, non_blocking)?;
    write(target, &beside.to(target.dtype())?)
}

/// Copies the elements of a tensor to one of the same dtype, sizes and strides on another device. Neither has gaps.
// ANCHOR: transfer
fn transfer(x: &Tensor, out: &Tensor, non_blocking: bool) -> Result<()> {
    let bytes = x.numel() * x.dtype().size();
    if bytes == 0 {
        return Ok(());
    }
    let [from, to] = [x, out].map(|tensor| tensor.storage_offset() * tensor.dtype().size());
    match (x.storage().device(), out.storage().device()) {
        (None, Some(target)) => match x.storage().pinned_by(target.cuda()) {
            Some(pinned) => {
                target.cuda().upload_pinned((target, to), (&pinned, from), bytes, non_blocking)?
            }
            None => access([x], [], |[input], []| {
                target.cuda().upload((target, to), input.dense_bytes(x.dtype()), non_blocking)
            })??,
        },
        (Some(source), None) => match out.storage().pinned_by(source.cuda()) {
            Some(pinned) => {
                source.cuda().download_pinned((&pinned, to), (source, from), bytes, non_blocking)?
            }
            None => access([], [out], |[], [to]| {
                source.cuda().download(to.dense_bytes(out.dtype()), (source, from))
            })??,
        },
        (Some(source), Some(target)) => source.cuda().copy_peer((target, to), (source, from), bytes)?,
        (None, None) => unreachable!("both tensors are on the host"),
    }
    Ok(())
}
// ANCHOR_END: transfer
