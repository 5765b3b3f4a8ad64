//! Blocking launches (`CUDA_LAUNCH_BLOCKING=1`), to find the line that causes an error.

use super::of_machine;
use crate::error::Result;

/// Sets whether a launch on a GPU of this machine returns only after its work has finished. PyTorch has only the
/// environment variable `CUDA_LAUNCH_BLOCKING=1`, which [`GpuSpec::machine`](crate::GpuSpec::machine) reads too.
///
/// A GPU error, such as a bad index, is then returned by the call that caused it. Kernels, matrix products and copies
/// wait, even with `non_blocking`. The host does not run ahead of the GPU, so use this only for debugging. It adds no
/// order between streams: [data races](crate::RaceCheck) are found as usual.
///
/// ```
/// use todevice::{Device, Machine, Tensor, cuda};
///
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     let table = Tensor::ones((&[10, 4], Device::cuda(0)))?;
///     let ids = Tensor::new([12])?.cuda()?;
///     cuda::set_launch_blocking(true)?;
///     let error = table.index_select(0, &ids).unwrap_err().to_string();
///     assert!(error.starts_with("CUDA error: device-side assert triggered (index_select_f32: index out of range"));
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Returns an error on a machine without a GPU.
pub fn set_launch_blocking(blocking: bool) -> Result<()> {
    of_machine()?.set_launch_blocking(blocking);
    Ok(())
}

/// Whether launches are blocking. Returns an error on a machine without a GPU.
pub fn launch_blocking() -> Result<bool> {
    Ok(of_machine()?.launch_blocking())
}
