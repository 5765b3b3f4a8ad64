//! What labs need to take times.

use todevice::prelude::*;

/// Waits for all work of a device. A trace shows the caller's line, which a closure for `cuda::device` would not have.
#[track_caller]
pub fn wait_for(device: Device) -> Result<()> {
    let Device::Cuda { index, .. } = device else { return Ok(()) };
    let current = cuda::current_device()?;
    cuda::set_device(index)?;
    let waited = cuda::synchronize();
    cuda::set_device(current)?;
    waited
}
