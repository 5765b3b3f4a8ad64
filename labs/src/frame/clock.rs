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

/// Returns the first value if time is modelled, and the second if a real clock measures it.
pub fn modelled_or_measured<T>(modelled: T, measured: T) -> T {
    if time_is_modelled() { modelled } else { measured }
}

#[inline(never)] // Each page loads its lab's code, which includes the function above.
fn time_is_modelled() -> bool {
    Machine::current().time_is_modelled()
}

/// Whether each launch waits for its work, as with `CUDA_LAUNCH_BLOCKING=1` on a GPU.
pub fn launches_wait(device: Device) -> Result<bool> {
    Ok(device.is_cuda() && cuda::launch_blocking()?)
}

/// Whether the host runs ahead: on a GPU without launch blocking.
pub fn host_runs_ahead(device: Device) -> Result<bool> {
    Ok(device.is_cuda() && !cuda::launch_blocking()?)
}
