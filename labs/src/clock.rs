//! What labs need to take times.

use todevice::prelude::*;

/// Returns when the device has done all it was asked for.
pub fn wait_for(device: Device) -> Result<()> {
    match device {
        Device::Cpu => Ok(()),
        Device::Cuda { index, .. } => cuda::device(index, || cuda::synchronize())?,
    }
}
