//! Finding hidden synchronizations (`torch.cuda.set_sync_debug_mode`).

use super::of_machine;
pub use super::runtime::SyncDebugMode;
use crate::error::Result;
use crate::lock::lock;

/// Sets the reaction to waits of the host for a GPU of this machine (`torch.cuda.set_sync_debug_mode`).
///
/// A GPU is fast as long as the host runs ahead of it. Many operations hide a wait: `item`, copies to the host, copies
/// to a GPU without `non_blocking`, printing. They are reported with their line, and a printed tensor with the line
/// that created it. As in PyTorch, [`Stream::synchronize`](super::Stream::synchronize) is reported, but
/// [`synchronize`](super::synchronize), [`Event::synchronize`](super::Event::synchronize) and allocations from the
/// driver are not.
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
/// Returns an error on a machine without a GPU.
pub fn set_sync_debug_mode(mode: SyncDebugMode) -> Result<()> {
    *lock(of_machine()?.sync_debug()) = mode;
    Ok(())
}

/// The reaction to waits (`torch.cuda.get_sync_debug_mode`). Returns an error on a machine without a GPU.
pub fn get_sync_debug_mode() -> Result<SyncDebugMode> {
    Ok(*lock(of_machine()?.sync_debug()))
}
