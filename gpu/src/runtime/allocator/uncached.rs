//! Allocation without the cache (`torch.cuda.caching_allocator_enable(False)`): each request is a `cudaMalloc` of its
//! exact size, and each dropped tensor a `cudaFree`, which waits for the device.
//!
//! This is slow, but useful for debugging. In a segment, a kernel that reads past its input reads other valid memory.
//! Without the cache, `compute-sanitizer` detects it. As in PyTorch, the statistics do not count this memory.

use super::{Allocation, AllocationFailure, Allocator, DeviceDriver, MallocError, is_out_of_memory};
use crate::contract::driver::DevicePtr;

impl Allocator {
    /// Enables or disables caching for new requests. Existing allocations return to their origin.
    pub fn enable(&mut self, value: bool) {
        self.disabled = !value;
    }

    pub(super) fn malloc_uncached(
        &mut self,
        driver: &dyn DeviceDriver,
        bytes: usize,
    ) -> Result<Allocation, MallocError> {
        let requested = bytes as u64;
        let pointer = driver.malloc(bytes);
        if is_out_of_memory(&pointer) {
            return Err(MallocError::OutOfMemory(AllocationFailure {
                requested,
                allocated: self.stats.allocated_bytes.all.current,
                reserved: self.stats.reserved_bytes.all.current,
                allowed: None,
            }));
        }
        let pointer = pointer?;
        self.uncached.insert(pointer, requested);
        Ok(Allocation { pointer, block: None })
    }

    /// Dropping a tensor cannot return an error of the driver. The next call returns it.
    pub(super) fn free_uncached(&mut self, driver: &dyn DeviceDriver, pointer: DevicePtr) {
        match self.uncached.remove(&pointer) {
            Some(_) => _ = driver.free(pointer),
            None if pointer == Allocation::NULL.pointer => {}
            None => panic!("{pointer:?} is freed, but is not allocated"),
        }
    }
}
