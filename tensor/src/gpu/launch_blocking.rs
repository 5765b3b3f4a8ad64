//! Blocking launches (`CUDA_LAUNCH_BLOCKING=1`), for finding the line that causes an error.

use super::of_machine;
use crate::error::Result;

/// Sets whether a call that launches work on a GPU of this machine returns only when that work has finished.
/// PyTorch has no such function, only the environment variable `CUDA_LAUNCH_BLOCKING=1`, read when the program
/// starts. It works here too, for machines created by [`GpuSpec::machine`](crate::GpuSpec::machine).
///
/// GPU errors, such as a bad index, are then returned by the call that caused them instead of a later one. All
/// calls wait: kernels, matrix products and copies, including those with `non_blocking`. This loses the benefit of
/// running ahead of the GPU, so use it for debugging. It adds no ordering between streams that the program did not
/// ask for: [data races](crate::RaceCheck) are found as usual.
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
