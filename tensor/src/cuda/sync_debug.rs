//! Finding the waits that a program does not know of (`torch.cuda.set_sync_debug_mode`).

use std::str::FromStr;

use super::of_machine;
use super::runtime::{Cuda, lock};
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::ops::scope;

/// What happens when an operation makes the host wait for a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncDebugMode {
    /// It waits.
    #[default]
    Default,
    /// It waits, and the machine warns, once for each line of the program.
    Warn,
    /// It is an error, and nothing is done.
    Error,
}

/// `default`, `warn` or `error`, as PyTorch names them.
impl FromStr for SyncDebugMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<SyncDebugMode> {
        match text {
            "default" => Ok(SyncDebugMode::Default),
            "warn" => Ok(SyncDebugMode::Warn),
            "error" => Ok(SyncDebugMode::Error),
            _ => Err(Error::SyncDebugMode),
        }
    }
}

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
/// let machine: Machine = "sim:t4".parse().unwrap();
/// machine.enter(|| {
///     let loss = Tensor::ones_with(&[3], Device::cuda(0))?.sum()?;
///     cuda::set_sync_debug_mode(SyncDebugMode::Error)?;
///     let error = loss.item().unwrap_err().to_string();
///     assert!(error.starts_with("called a synchronizing CUDA operation\nnote: item"));
///     Ok::<(), todevice::Error>(())
/// }).unwrap();
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

impl Cuda {
    /// Called before the host waits.
    pub(super) fn check_sync(&self) -> Result<()> {
        let mode = *lock(self.sync_debug());
        if mode == SyncDebugMode::Default {
            return Ok(());
        }
        let (operation, place) = (scope::current_operation(), scope::current_place());
        let printed = scope::printed_tensor();
        let error = Error::Synchronizing { operation, place, printed };
        if mode == SyncDebugMode::Error {
            return Err(error);
        }
        Machine::warn_once_at("sync_debug", place.or(printed), || error.to_string());
        Ok(())
    }
}
