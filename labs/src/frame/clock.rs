//! What labs need to take times.

use todevice::Machine;
use todevice::prelude::*;

/// Waits for all work of a device. A trace shows the caller's line, which a closure for `cuda::device` would not have.
#[track_caller]
#[inline(never)]
pub fn wait_for(device: Device) -> Result<()> {
    let Device::Cuda { index, .. } = device else { return Ok(()) };
    let current = cuda::current_device()?;
    cuda::set_device(index)?;
    let waited = cuda::synchronize();
    cuda::set_device(current)?;
    waited
}

/// The first of two where times are modelled, and the second where a real clock gives them.
pub fn modelled_or_measured<T>(modelled: T, measured: T) -> T {
    if time_is_modelled() { modelled } else { measured }
}

#[inline(never)] // A page loads the code of its lab, and the function above is part of it.
fn time_is_modelled() -> bool {
    Machine::current().time_is_modelled()
}

/// Whether each launch waits until its work is done, as `CUDA_LAUNCH_BLOCKING=1` asks of a GPU.
pub fn launches_wait(device: Device) -> Result<bool> {
    Ok(device.is_cuda() && cuda::launch_blocking()?)
}

/// Whether a call returns before its work is done, so that the host runs ahead: on a GPU whose launches do not wait.
pub fn host_runs_ahead(device: Device) -> Result<bool> {
    Ok(device.is_cuda() && !cuda::launch_blocking()?)
}
