//! Warnings and errors for implicit waits.

use std::str::FromStr;

use super::{Cuda, Result};
use crate::base::error::GpuError;
use crate::base::lock::lock;
use crate::host::host_context::HostContext;
use crate::host::scope;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncDebugMode {
    #[default]
    Default,
    /// The host waits, and the machine warns once for each line of the program.
    Warn,
    /// The operation returns an error, and has no effect.
    Error,
}

impl FromStr for SyncDebugMode {
    type Err = GpuError;

    fn from_str(text: &str) -> Result<SyncDebugMode> {
        match text {
            "default" => Ok(SyncDebugMode::Default),
            "warn" => Ok(SyncDebugMode::Warn),
            "error" => Ok(SyncDebugMode::Error),
            _ => Err(GpuError::SyncDebugMode),
        }
    }
}

impl Cuda {
    pub fn check_sync(&self) -> Result<()> {
        let mode = *lock(self.sync_debug());
        if mode == SyncDebugMode::Default {
            return Ok(());
        }
        let (operation, place) = (scope::current_operation(), scope::current_place());
        let printed = scope::printed_tensor();
        let error = GpuError::Synchronizing { operation, place, printed };
        if mode == SyncDebugMode::Error {
            return Err(error);
        }
        HostContext::warn_once_at("sync_debug", place.or(printed), || error.to_string());
        Ok(())
    }
}
