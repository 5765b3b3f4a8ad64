//! The GPUs of the machine, real or simulated, behind the names of `torch.cuda`.

mod event;
#[cfg(test)]
mod faults;
pub(crate) mod launch_blocking;
pub(crate) mod memory;
pub(crate) mod stream;
mod summary;
mod sync_debug;

pub use event::{Event, EventOptions};
pub use launch_blocking::{launch_blocking, set_launch_blocking};
pub use memory::*;
pub(crate) use stream::begin_stream;
pub use stream::{Stream, current_stream, default_stream, stream};
pub use sync_debug::{SyncDebugMode, get_sync_debug_mode, set_sync_debug_mode};
pub(crate) use todevice_gpu::contract::driver;
pub use todevice_gpu::contract::driver_trouble::DriverTrouble;
#[cfg(not(target_family = "wasm"))]
pub(crate) use todevice_gpu::nvidia;
#[cfg(not(target_family = "wasm"))]
pub use todevice_gpu::nvidia::{Finding, INSTALL, Probe, probe};
pub(crate) use todevice_gpu::runtime::{self, allocator, pinned, stats};
pub(crate) use todevice_gpu::simulated;

pub use todevice_gpu::contract::driver::DeviceProperties;

use std::sync::Arc;

use crate::device::Device;
use crate::error::{GpuError, Result};
use crate::host_context::HostContext;
use crate::machine::Machine;
use crate::scope;
use crate::thread::{CurrentDevice, Part, Restore};
use runtime::Cuda;

/// Whether the machine has a usable GPU (`torch.cuda.is_available`).
pub fn is_available() -> bool {
    device_count() > 0
}

/// The number of GPUs (`torch.cuda.device_count`).
pub fn device_count() -> usize {
    Machine::current().cuda().map_or(0, |cuda| cuda.device_count())
}

/// This thread's default device for new CUDA tensors (`torch.cuda.current_device`).
pub fn current_device() -> Result<usize> {
    of_machine()?;
    Ok(current_index())
}

/// Changes this thread's current device (`torch.cuda.set_device`).
pub fn set_device(index: usize) -> Result<()> {
    check_ordinal(index)?;
    CurrentDevice(index).set();
    Ok(())
}

/// Runs `scope` with another current device (`with torch.cuda.device(index)`).
///
/// ```
/// use todevice::prelude::*;
///
/// let machine: Machine = "sim:t4x2".parse()?;
/// machine.enter(|| {
///     let x = cuda::device(1, || Tensor::ones(&[1000])?.cuda())??;
///     assert_eq!(cuda::memory_allocated(), 0);
///     assert_eq!(cuda::device(x.device().index(), cuda::memory_allocated)?, 4096);
///     cuda::device(1, || cuda::synchronize())?
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Returns an error if there is no such device.
pub fn device<R>(index: usize, scope: impl FnOnce() -> R) -> Result<R> {
    let _left = begin_device(index)?;
    Ok(scope())
}

/// Makes a device the current one until the guard is dropped.
pub(crate) fn begin_device(index: usize) -> Result<Restore<CurrentDevice>> {
    check_ordinal(index)?;
    Ok(CurrentDevice(index).enter())
}

/// The name of a device (`torch.cuda.get_device_name`).
pub fn get_device_name(index: usize) -> Result<String> {
    Ok(get_device_properties(index)?.name)
}

/// The compute capability of a device (`torch.cuda.get_device_capability`), (7, 5) for 7.5.
///
/// ```
/// use todevice::{Machine, cuda};
///
/// let machine: Machine = "sim:t4".parse()?;
/// assert_eq!(machine.enter(|| cuda::get_device_capability(0))?, (7, 5));
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn get_device_capability(index: usize) -> Result<(u32, u32)> {
    let properties = get_device_properties(index)?;
    Ok((properties.major, properties.minor))
}

/// The architectures with compiled kernels (`torch.cuda.get_arch_list`), such as `sm_75` for compute capability 7.5.
/// Empty without a GPU. A card runs code for architectures of its major version that are not newer.
///
/// This crate compiles its kernels for the existing cards. A simulated machine can emulate a build of PyTorch instead,
/// which may be too old for its card:
///
/// ```
/// use todevice::prelude::*;
///
/// let machine: Machine = "sim:rtx5090".parse()?;
/// assert_eq!(machine.enter(cuda::get_arch_list), ["sm_120"]);
///
/// let machine: Machine = "sim:rtx5090,build=cu126".parse()?;
/// machine.enter(|| {
///     assert!(cuda::is_available());
///     assert_eq!(cuda::get_arch_list().last().map(String::as_str), Some("sm_90"));
///     let x = Tensor::ones(&[3])?.to(Device::cuda(0))?; // memory and copies take no kernel
///     let error = (&x + 1.0).unwrap_err().to_string();
///     assert!(error.starts_with("CUDA error: no kernel image is available for execution on the device\n"));
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn get_arch_list() -> Vec<String> {
    let Some(cuda) = Machine::current().cuda().filter(|cuda| cuda.device_count() > 0).cloned() else {
        return Vec::new();
    };
    if let Some(build) = cuda.build() {
        return build.arch_list();
    }
    let of_cards = (0..cuda.device_count()).map(|index| {
        let DeviceProperties { major, minor, .. } = cuda.properties(index);
        format!("sm_{major}{minor}")
    });
    let mut list: Vec<String> = of_cards.collect();
    list.dedup();
    list
}

/// Whether `device` can access the memory of `peer_device` directly (`torch.cuda.can_device_access_peer`). Otherwise
/// copies go through host memory. Returns an error if there is no such GPU.
pub fn can_device_access_peer(device: usize, peer_device: usize) -> Result<bool> {
    let cuda = of_machine()?;
    if device >= cuda.device_count() {
        return Err(GpuError::InvalidDeviceId.into());
    }
    if peer_device >= cuda.device_count() {
        return Err(GpuError::InvalidPeerDeviceId.into());
    }
    Ok(cuda.can_access_peer(device, peer_device)?)
}

/// The properties of a device (`torch.cuda.get_device_properties`).
pub fn get_device_properties(index: usize) -> Result<DeviceProperties> {
    let cuda = of_machine()?;
    match index < cuda.device_count() {
        true => Ok(cuda.properties(index).clone()),
        false => Err(GpuError::InvalidDeviceId.into()),
    }
}

/// Whether the current device computes in bfloat16 (`torch.cuda.is_bf16_supported`): natively from compute capability
/// 8.0 on, else by slow emulation in f32.
pub fn is_bf16_supported(including_emulation: bool) -> Result<bool> {
    Ok(get_device_properties(current_device()?)?.major >= 8 || including_emulation)
}

/// Waits for all work of the current device (`torch.cuda.synchronize`).
#[track_caller]
pub fn synchronize() -> Result<()> {
    let _scope = scope::operation("synchronize", std::panic::Location::caller());
    Ok(of_machine()?.synchronize(current_index())?)
}

/// Deprecated form of `cuda::device(index, || cuda::synchronize())`.
#[deprecated(note = "write cuda::device(index, || cuda::synchronize())??")]
#[track_caller]
pub fn synchronize_device(index: usize) -> Result<()> {
    let _scope = scope::operation("synchronize", std::panic::Location::caller());
    Ok(check_ordinal(index)?.synchronize(index)?)
}

/// The index of the current device, which may not exist.
pub(crate) fn current_index() -> usize {
    HostContext::current_device()
}

/// Returns the GPUs of the current machine, or PyTorch's error.
pub(crate) fn of_machine() -> Result<Arc<Cuda>> {
    let cuda = Machine::current().cuda().cloned().ok_or(GpuError::NoDriver)?;
    cuda.check_thread()?;
    if cuda.device_count() == 0 {
        return Err(GpuError::NoGpus.into()); // `CUDA_VISIBLE_DEVICES` hides them.
    }
    cuda.warn_of_build();
    Ok(cuda)
}

pub(crate) fn check_ordinal(index: usize) -> Result<Arc<Cuda>> {
    let cuda = of_machine()?;
    if index < cuda.device_count() { Ok(cuda) } else { Err(GpuError::InvalidDevice.into()) }
}

pub(crate) fn of(device: Device) -> Result<Arc<Cuda>> {
    let Device::Cuda { index, machine } = device else { return Err(GpuError::NoDriver.into()) };
    if machine != Machine::current().id() {
        return Err(GpuError::OtherMachine { device }.into());
    }
    check_ordinal(index)
}
