//! A driver of nothing but addresses.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::cuda::allocator::{Allocator, ERROR_MEMORY_ALLOCATION, Segments};
use crate::cuda::driver::{DevicePtr, DriverError, DriverResult};

const BASE: u64 = 0x7000_0000_0000;

pub(super) struct FakeDriver {
    capacity: u64,
    /// Whether memory given back is found again, at the lowest address; else addresses only grow.
    reuse: bool,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    segments: BTreeMap<u64, u64>,
    end: u64,
    mallocs: usize,
    frees: usize,
    failing_mallocs: BTreeMap<usize, DriverError>,
    failing_frees: BTreeMap<usize, DriverError>,
}

impl Default for FakeDriver {
    fn default() -> FakeDriver {
        FakeDriver::with_capacity(u64::MAX)
    }
}

impl FakeDriver {
    pub(super) fn with_capacity(capacity: u64) -> FakeDriver {
        FakeDriver { capacity, reuse: true, state: RefCell::default() }
    }

    pub(super) fn with_growing_addresses(capacity: u64) -> FakeDriver {
        FakeDriver { reuse: false, ..FakeDriver::with_capacity(capacity) }
    }

    /// Makes a call fail, counted from 0 from the very first.
    pub(super) fn fail_malloc(&self, call: usize, error: DriverError) {
        self.state.borrow_mut().failing_mallocs.insert(call, error);
    }

    pub(super) fn fail_free(&self, call: usize, error: DriverError) {
        self.state.borrow_mut().failing_frees.insert(call, error);
    }

    /// How many calls there were of malloc and free.
    pub(super) fn calls(&self) -> (usize, usize) {
        (self.state.borrow().mallocs, self.state.borrow().frees)
    }

    pub(super) fn in_use(&self) -> u64 {
        self.state.borrow().segments.values().sum()
    }

    /// Checks that the allocator has exactly the segments that this driver gave it, cut into blocks without
    /// gaps, and that its figures are those of its blocks.
    pub(super) fn check(&self, allocator: &Allocator) {
        let segments: Vec<_> = allocator.snapshot().collect();
        let ours: Vec<(u64, u64)> =
            self.state.borrow().segments.iter().map(|(&at, &size)| (at, size)).collect();
        let theirs: Vec<(u64, u64)> =
            segments.iter().map(|segment| (segment.pointer.0, segment.size)).collect();
        assert_eq!(ours, theirs);
        let (mut allocated, mut split) = (0, 0);
        for segment in &segments {
            let mut at = segment.pointer.0;
            let mut before_is_free = false;
            for block in &segment.blocks {
                assert_eq!(block.pointer.0, at);
                assert!(block.size > 0 && (block.allocated || !before_is_free), "free blocks are merged");
                at += block.size;
                before_is_free = !block.allocated;
                match block.allocated {
                    true => allocated += block.size,
                    false if segment.blocks.len() > 1 => split += block.size,
                    false => {}
                }
            }
        }
        let stats = allocator.stats();
        assert_eq!(stats.allocated_bytes.all.current, allocated);
        assert_eq!(stats.active_bytes.all.current, allocated);
        assert_eq!(stats.inactive_split_bytes.all.current, split);
        assert_eq!(stats.reserved_bytes.all.current, self.in_use());
        assert_eq!(stats.segment.all.current, segments.len() as u64);
        assert_eq!(stats.num_device_alloc - stats.num_device_free, segments.len() as u64);
    }
}

impl Segments for FakeDriver {
    fn malloc(&self, bytes: usize) -> DriverResult<DevicePtr> {
        let in_use = self.in_use();
        let state = &mut *self.state.borrow_mut();
        let call = state.mallocs;
        state.mallocs += 1;
        if let Some(error) = state.failing_mallocs.remove(&call) {
            return Err(error);
        }
        let bytes = bytes as u64;
        assert!(bytes > 0 && bytes.is_multiple_of(2 << 20), "a segment of {bytes} bytes");
        if self.capacity - in_use < bytes {
            return Err(out_of_memory());
        }
        let mut address = BASE;
        if self.reuse {
            for (&start, &size) in &state.segments {
                if address + bytes <= start {
                    break;
                }
                address = start + size;
            }
        } else {
            address += state.end;
            state.end += bytes;
        }
        state.segments.insert(address, bytes);
        Ok(DevicePtr(address))
    }

    fn free(&self, pointer: DevicePtr) -> DriverResult<()> {
        let state = &mut *self.state.borrow_mut();
        let call = state.frees;
        state.frees += 1;
        if let Some(error) = state.failing_frees.remove(&call) {
            return Err(error);
        }
        state.segments.remove(&pointer.0).expect("a segment that was given");
        Ok(())
    }
}

pub(super) fn out_of_memory() -> DriverError {
    DriverError {
        code: ERROR_MEMORY_ALLOCATION,
        name: "cudaErrorMemoryAllocation",
        message: "out of memory",
        detail: None,
    }
}

pub(super) fn launch_failure() -> DriverError {
    DriverError {
        code: 719,
        name: "cudaErrorLaunchFailure",
        message: "unspecified launch failure",
        detail: None,
    }
}
