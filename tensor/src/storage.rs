//! The storage of tensors. Host operations access it in one place, `ops/access.rs`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::error::Result;
use crate::gpu::pinned::PinnedMemory;
use crate::gpu::runtime::DeviceMemory;
use crate::host_context::HostContext;
use crate::host_memory::HostBuffer;

/// The memory that a tensor shares with its views, and its version.
pub(crate) struct Storage {
    pub(crate) memory: StorageMemory,
    /// The requested size; the allocation may be larger.
    bytes: usize,
    /// The number of in-place writes. Autograd records it with a saved tensor and compares it in backward.
    version: AtomicU64,
}

pub(crate) enum StorageMemory {
    Host(RwLock<HostBuffer>),
    /// Pinned memory, owned by the driver. GPU copies may access it at the same time as the host.
    Pinned(RwLock<PinnedMemory>),
    Device(DeviceMemory),
}

impl Storage {
    /// Allocates uninitialized host memory.
    pub(crate) fn allocate(bytes: usize) -> Result<Arc<Storage>> {
        Ok(Storage::in_host(HostBuffer::allocate(HostContext::memory(), bytes)?))
    }

    pub(crate) fn in_host(buffer: HostBuffer) -> Arc<Storage> {
        let bytes = buffer.bytes().len();
        Storage::of(StorageMemory::Host(RwLock::new(buffer)), bytes)
    }

    pub(crate) fn in_pinned(memory: PinnedMemory, bytes: usize) -> Arc<Storage> {
        Storage::of(StorageMemory::Pinned(RwLock::new(memory)), bytes)
    }

    pub(crate) fn on_device(memory: DeviceMemory, bytes: usize) -> Arc<Storage> {
        Storage::of(StorageMemory::Device(memory), bytes)
    }

    fn of(memory: StorageMemory, bytes: usize) -> Arc<Storage> {
        Arc::new(Storage { memory, bytes, version: AtomicU64::new(0) })
    }

    /// The size in bytes (`Tensor.untyped_storage().nbytes()`).
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn device(&self) -> Option<&DeviceMemory> {
        match &self.memory {
            StorageMemory::Host(_) | StorageMemory::Pinned(_) => None,
            StorageMemory::Device(memory) => Some(memory),
        }
    }

    pub(crate) fn pinned(&self) -> Option<RwLockReadGuard<'_, PinnedMemory>> {
        match &self.memory {
            StorageMemory::Pinned(memory) => Some(memory.read().unwrap_or_else(PoisonError::into_inner)),
            StorageMemory::Host(_) | StorageMemory::Device(_) => None,
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    pub(crate) fn bump_version(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn forget_writes(&self) {
        self.version.store(0, Ordering::Relaxed);
    }
}
