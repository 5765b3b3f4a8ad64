//! Launches that wait for their work (`CUDA_LAUNCH_BLOCKING=1`), for finding the line that an error comes from.

use super::of_machine;
use crate::error::Result;

/// Says whether a call that gives a GPU of this machine work returns only when that work has run. PyTorch has no
/// such function: there the environment variable `CUDA_LAUNCH_BLOCKING=1`, read when the program starts, does it, and
/// here it does so too for a machine made by [`GpuSpec::machine`](crate::GpuSpec::machine).
///
/// An error of the GPU, a bad index for example, is then returned by the call that asked for the work, and not by some
/// later one. All calls wait: kernels, products, and copies, those with `non_blocking` too. That costs what running
/// ahead of the GPU saves, so it is for debugging. It makes no order between streams that the program did not ask for:
/// [data races](crate::RaceCheck) are found as without it.
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
/// Errors on a machine without a GPU.
pub fn set_launch_blocking(blocking: bool) -> Result<()> {
    of_machine()?.set_launch_blocking(blocking);
    Ok(())
}

/// Whether launches wait for their work. Errors on a machine without a GPU.
pub fn launch_blocking() -> Result<bool> {
    Ok(of_machine()?.launch_blocking())
}
