//! Finding the waits that a program does not know of (`torch.cuda.set_sync_debug_mode`).

use super::of_machine;
pub use super::runtime::SyncDebugMode;
use crate::error::Result;
use crate::lock::lock;

/// Says what is to happen when an operation makes the host wait for a GPU of this machine
/// (`torch.cuda.set_sync_debug_mode`).
///
/// A GPU is fast as long as the host is ahead of it. Many operations make the host wait without saying so: `item`,
/// copies to the host, copies to a GPU without `non_blocking`, printing. They are named, with their line; of a tensor
/// that is printed, with the line that made it. As in
/// PyTorch [`Stream::synchronize`](super::Stream::synchronize) is among them, while [`synchronize`](super::synchronize)
/// and [`Event::synchronize`](super::Event::synchronize) are not, nor is memory that has to be taken from the driver.
///
/// ```
/// use todevice::cuda::{self, SyncDebugMode};
/// use todevice::{Device, Machine, Tensor};
///
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     let loss = Tensor::ones((&[3], Device::cuda(0)))?.sum()?;
///     cuda::set_sync_debug_mode(SyncDebugMode::Error)?;
///     let error = loss.item().unwrap_err().to_string();
///     assert!(error.starts_with("called a synchronizing CUDA operation\nnote: item"));
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Errors on a machine without a GPU.
pub fn set_sync_debug_mode(mode: SyncDebugMode) -> Result<()> {
    *lock(of_machine()?.sync_debug()) = mode;
    Ok(())
}

/// What happens when an operation makes the host wait (`torch.cuda.get_sync_debug_mode`). Errors on a machine
/// without a GPU.
pub fn get_sync_debug_mode() -> Result<SyncDebugMode> {
    Ok(*lock(of_machine()?.sync_debug()))
}
