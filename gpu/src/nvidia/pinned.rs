//! The allocated page-locked memory. Safe code can make up a `PinnedPtr`, so the block of a range is looked up before
//! the host or a copy engine accesses it.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, RwLock};

use super::errors::invalid_value;
use crate::base::lock::{lock, read, write};
use crate::contract::driver::{DriverResult, PinnedPtr};

#[derive(Default)]
pub(super) struct PinnedBlocks(RwLock<BTreeMap<u64, Arc<HostBlock>>>);

struct HostBlock {
    bytes: usize,
    /// False after the free. A call that uses the block holds this lock, so the memory outlives the call, and no two
    /// threads access it at once. Calls that use other blocks do not wait.
    is_live: Mutex<bool>,
}

impl PinnedBlocks {
    pub(super) fn insert(&self, address: PinnedPtr, bytes: usize) {
        write(&self.0).insert(address.0, Arc::new(HostBlock { bytes, is_live: Mutex::new(true) }));
    }

    /// Removes the block at `address`, once no call uses it.
    pub(super) fn remove(&self, address: PinnedPtr) -> DriverResult<()> {
        let block = write(&self.0).remove(&address.0).ok_or_else(invalid_value)?;
        *lock(&block.is_live) = false;
        Ok(())
    }

    /// Calls `access` with a pointer to `bytes` bytes of one block, alive and exclusive until it returns.
    pub(super) fn access<R>(
        &self,
        pointer: PinnedPtr,
        bytes: usize,
        access: impl FnOnce(*mut c_void) -> DriverResult<R>,
    ) -> DriverResult<R> {
        let raw = pointer.0 as *mut c_void;
        if bytes == 0 {
            return access(raw);
        }
        let blocks = read(&self.0);
        let (start, block) = blocks.range(..=pointer.0).next_back().ok_or_else(invalid_value)?;
        let (offset, block) = ((pointer.0 - start) as usize, block.clone());
        drop(blocks);
        let is_live = lock(&block.is_live);
        let is_inside = block.bytes.checked_sub(offset).is_some_and(|rest| bytes <= rest);
        if *is_live && is_inside { access(raw) } else { Err(invalid_value()) }
    }
}
