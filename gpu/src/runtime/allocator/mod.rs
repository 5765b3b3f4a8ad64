//! The caching allocator, which provides the memory of a CUDA device.
//!
//! `cudaMalloc` and `cudaFree` are slow and wait for the device. A training loop requests the same sizes in each step,
//! so the allocator keeps memory and reuses it. The rules and constants are those of PyTorch's `CUDACachingAllocator`:
//!
//! * The driver provides *segments*. A segment is divided into *blocks*, linked to their neighbors.
//! * A request is rounded up to a multiple of 512 bytes. Up to 1 MiB it is served from the *small pool*, with segments
//!   of 2 MiB. Larger requests are served from the *large pool*: below 10 MiB from segments of 20 MiB, else from a
//!   segment of the request's size, rounded up to 2 MiB. So small tensors do not split up the memory for large ones.
//! * A free block serves only the stream that its segment was allocated for. It is reusable at once, even if queued
//!   work still uses it, because the work of its next owner is queued behind. If other streams use a block, it waits
//!   for them: `streams.rs`.
//! * A request gets the smallest sufficient free block of its pool and stream; of equals, the one at the lowest
//!   address. Without such a block, the driver allocates a segment.
//! * The rest of a block is split off if it is large enough: at least 512 bytes in the small pool, more than 1 MiB in
//!   the large one. Otherwise the request gets the whole block.
//! * A freed block merges with free neighbors, so an unused segment is one block.
//! * When `cudaMalloc` runs out of memory, all unused segments are returned to the driver, and the call is retried
//!   once. Segments with a block in use must stay. Much free memory in these, but not in one piece, is called
//!   *fragmentation*.
//! * A program may limit its memory to a fraction. A segment beyond the limit fails like a `cudaMalloc` without memory.
//!
//! Start with [`Allocator::malloc`] and [`Allocator::free`].

use crate::base::place::Place;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use self::settings::Settings;
use self::snapshot::{BlockInfo, BlockState};
use self::streams::StreamUses;
use crate::contract::driver::{DevicePtr, DriverError, DriverResult, EventId, StreamId};
use crate::runtime::stats::DeviceStats;

mod blocks;
mod release;
pub mod settings;
pub mod snapshot;
mod streams;
#[cfg(test)]
mod tests;
mod uncached;

/// Block sizes are multiples of this (`kMinBlockSize`).
const MIN_BLOCK_SIZE: u64 = 512;
/// The largest block of the small pool (`kSmallSize`).
const SMALL_SIZE: u64 = 1 << 20;
/// The size of segments of the small pool (`kSmallBuffer`).
const SMALL_BUFFER: u64 = 2 << 20;
/// The size of segments of the large pool for blocks below [`MIN_LARGE_ALLOC`] (`kLargeBuffer`).
const LARGE_BUFFER: u64 = 20 << 20;
/// From this size on, a segment has the size of its block (`kMinLargeAlloc`), ...
const MIN_LARGE_ALLOC: u64 = 10 << 20;
/// ... rounded up to a multiple of this (`kRoundLarge`).
const ROUND_LARGE: u64 = 2 << 20;
/// Requests from this size on are rejected, so that no sum can overflow.
const EXABYTE: u64 = 1 << 60;

/// `cudaErrorMemoryAllocation`, the only error of `cudaMalloc` that emptying the cache may resolve.
const ERROR_MEMORY_ALLOCATION: u32 = 2;

const NO_MEMORY: DriverError = DriverError {
    code: ERROR_MEMORY_ALLOCATION,
    name: "cudaErrorMemoryAllocation",
    message: "out of memory",
    detail: None,
};

pub trait DeviceDriver {
    fn malloc(&self, bytes: usize) -> DriverResult<DevicePtr>;
    fn free(&self, pointer: DevicePtr) -> DriverResult<()>;
    /// Called when a freed block that waited for other streams becomes reusable.
    fn completed(&self, _pointer: DevicePtr, _stream: StreamId) {}
    /// Whether this thread may use the driver. Any thread may drop a tensor.
    fn is_of_this_thread(&self) -> bool;
    fn create_event(&self, device: usize) -> DriverResult<EventId>;
    fn record_event(&self, event: EventId, stream: StreamId) -> DriverResult<()>;
    fn query_event(&self, event: EventId) -> DriverResult<bool>;
    fn synchronize_event(&self, event: EventId) -> DriverResult<()>;
}

/// Allocated memory, to be passed to [`Allocator::free`] once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// 0 for an allocation of 0 bytes.
    pub pointer: DevicePtr,
    /// `None` for an allocation of 0 bytes, and for uncached memory.
    block: Option<BlockId>,
}

impl Allocation {
    pub const NULL: Allocation = Allocation { pointer: DevicePtr(0), block: None };
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MallocError {
    OutOfMemory(AllocationFailure),
    /// The request is larger than any device. PyTorch has a separate message for it.
    MoreThanAnExabyte,
    /// Another error of the driver, which may be unrelated to memory.
    Driver(DriverError),
}

impl From<DriverError> for MallocError {
    fn from(error: DriverError) -> MallocError {
        MallocError::Driver(error)
    }
}

/// The device is full, even with an empty cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationFailure {
    /// The size of the requested segment, which PyTorch "tried to allocate".
    pub requested: u64,
    pub allocated: u64,
    /// Bytes in segments, after the cache was emptied.
    pub reserved: u64,
    pub allowed: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    Large,
    Small,
}

impl Pool {
    fn serving(size: u64) -> Pool {
        if size <= SMALL_SIZE { Pool::Small } else { Pool::Large }
    }
}

type BlockId = usize;

#[derive(Clone, Copy)]
struct Block {
    pointer: DevicePtr,
    size: u64,
    stream: StreamId,
    pool: Pool,
    previous: Option<BlockId>,
    next: Option<BlockId>,
    contents: Option<Contents>,
}

#[derive(Clone, Copy)]
struct Contents {
    requested: u64,
    place: Place,
    /// The number of events that the freed block waits for. 0 while it is allocated.
    events: u32,
}

impl Block {
    fn is_split(&self) -> bool {
        self.previous.is_some() || self.next.is_some()
    }
}

/// A free block's entry in its pool. The order of the fields is the search order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FreeBlock {
    /// The stream's number. The device is the allocator's.
    stream: u32,
    size: u64,
    pointer: DevicePtr,
    block: BlockId,
}

#[derive(Default)]
pub struct Allocator {
    /// A block keeps its index for its lifetime. The indices in `vacant` are unused.
    blocks: Vec<Block>,
    vacant: Vec<BlockId>,
    /// The first block of every segment, by address.
    segments: BTreeMap<DevicePtr, BlockId>,
    large_blocks: BTreeSet<FreeBlock>,
    small_blocks: BTreeSet<FreeBlock>,
    uses: StreamUses,
    settings: Settings,
    allowed: Option<u64>,
    stats: DeviceStats,
    disabled: bool,
    uncached: HashMap<DevicePtr, u64>,
}

impl Allocator {
    /// Allocates `bytes` bytes for work of `stream`, a stream of this device.
    pub fn malloc(
        &mut self,
        driver: &dyn DeviceDriver,
        bytes: usize,
        stream: StreamId,
        place: Place,
    ) -> Result<Allocation, MallocError> {
        if bytes == 0 {
            return Ok(Allocation::NULL);
        }
        let requested = bytes as u64;
        if requested >= EXABYTE {
            return Err(MallocError::MoreThanAnExabyte);
        }
        if self.disabled {
            return self.malloc_uncached(driver, bytes);
        }
        self.process_events(driver)?;
        let size = round_size(requested);
        let pool = Pool::serving(size);
        let block = match self.get_free_block(pool, stream, size) {
            Some(block) => block,
            None => self.get_segment(driver, pool, stream, size)?,
        };
        self.cut_to_size(block, size);

        let Block { pointer, size, .. } = self.blocks[block];
        self.blocks[block].contents = Some(Contents { requested, place, events: 0 });
        self.stats.allocation.increase(pool, 1);
        self.stats.allocated_bytes.increase(pool, size);
        self.stats.active.increase(pool, 1);
        self.stats.active_bytes.increase(pool, size);
        self.stats.requested_bytes.increase(pool, requested);
        if self.settings.is_oversize(size) {
            self.stats.oversize_allocations.increase(1);
        }
        Ok(Allocation { pointer, block: Some(block) })
    }

    /// Returns memory to the cache, which cannot fail. A block that other streams use becomes reusable after them.
    pub fn free(&mut self, driver: &dyn DeviceDriver, allocation: Allocation) {
        let Some(block) = allocation.block else { return self.free_uncached(driver, allocation.pointer) };
        let Block { pointer, size, pool, contents, .. } = self.blocks[block];
        let held = contents.filter(|contents| contents.events == 0 && pointer == allocation.pointer);
        let Some(contents) = held else {
            // Otherwise two tensors would get the same memory.
            panic!("{:?} is freed, but is not allocated", allocation.pointer);
        };
        self.stats.allocation.decrease(pool, 1);
        self.stats.allocated_bytes.decrease(pool, size);
        if self.settings.is_oversize(size) {
            self.stats.oversize_allocations.decrease(1);
        }
        match self.insert_events(driver, block) {
            0 => self.free_block(block),
            events => self.blocks[block].contents = Some(Contents { events, ..contents }),
        }
    }

    pub fn waits(&self, allocation: Allocation) -> bool {
        allocation.block.is_some_and(|block| self.blocks[block].contents.is_some())
    }

    pub fn size_of(&self, allocation: Allocation) -> u64 {
        match allocation.block {
            Some(block) => self.blocks[block].size,
            None => self.uncached.get(&allocation.pointer).copied().unwrap_or(0),
        }
    }

    /// Called when an event that a freed block waits for has completed.
    fn event_completed(&mut self, driver: &dyn DeviceDriver, block: BlockId) {
        match &mut self.blocks[block].contents {
            Some(Contents { events, .. }) if *events > 1 => *events -= 1,
            _ => {
                let Block { pointer, stream, .. } = self.blocks[block];
                self.free_block(block);
                driver.completed(pointer, stream);
            }
        }
    }

    fn free_block(&mut self, block: BlockId) {
        let Block { size, pool, contents, .. } = self.blocks[block];
        let requested = contents.map_or(0, |contents| contents.requested);
        self.blocks[block].contents = None;
        self.return_to_pool(block);
        self.stats.active.decrease(pool, 1);
        self.stats.active_bytes.decrease(pool, size);
        self.stats.requested_bytes.decrease(pool, requested);
    }

    /// Waits for all streams, and returns the unused segments to the driver. An error leaves the rest in the cache.
    pub fn empty_cache(&mut self, driver: &dyn DeviceDriver) -> DriverResult<()> {
        self.release_cached_blocks(driver)
    }

    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
        // The definition of oversize has changed.
        let (mut allocations, mut segments) = (0, 0);
        for segment in self.snapshot() {
            let oversize = |block: &&BlockInfo| {
                block.state == BlockState::ActiveAllocated && settings.is_oversize(block.size)
            };
            allocations += segment.blocks.iter().filter(oversize).count() as u64;
            segments += u64::from(settings.is_oversize(segment.size));
        }
        self.stats.oversize_allocations.restart_at(allocations);
        self.stats.oversize_segments.restart_at(segments);
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn set_allowed(&mut self, bytes: u64) {
        self.allowed = Some(bytes);
    }

    pub fn allowed(&self) -> Option<u64> {
        self.allowed
    }

    fn get_free_block(&mut self, pool: Pool, stream: StreamId, size: u64) -> Option<BlockId> {
        let smallest = FreeBlock { stream: stream.number, size, pointer: DevicePtr(0), block: 0 };
        let best = *self.free_blocks(pool).range(smallest..).next()?;
        // The next stream's blocks follow. If the options forbid the best block, no other is tried.
        if best.stream != stream.number || !self.settings.may_take(size, best.size) {
            return None;
        }
        self.free_blocks(pool).remove(&best);
        Some(best.block)
    }

    /// Allocates a segment for a block of `size` bytes. Empties the cache if necessary.
    fn get_segment(
        &mut self,
        driver: &dyn DeviceDriver,
        pool: Pool,
        stream: StreamId,
        size: u64,
    ) -> Result<BlockId, MallocError> {
        let segment_size = get_allocation_size(size);
        let mut block = self.alloc_block(driver, pool, stream, segment_size);
        if is_out_of_memory(&block) && self.release_available_cached_blocks(driver, pool, stream, size)? {
            block = self.alloc_block(driver, pool, stream, segment_size);
        }
        if is_out_of_memory(&block) {
            self.release_cached_blocks(driver)?;
            self.stats.num_alloc_retries += 1;
            block = self.alloc_block(driver, pool, stream, segment_size);
        }
        match block {
            // An error with a detail has another reason than a full device.
            Err(error) if error.code == ERROR_MEMORY_ALLOCATION && error.detail.is_none() => {
                self.stats.num_ooms += 1;
                Err(MallocError::OutOfMemory(AllocationFailure {
                    requested: segment_size,
                    allocated: self.stats.allocated_bytes.all.current,
                    reserved: self.stats.reserved_bytes.all.current,
                    allowed: self.allowed,
                }))
            }
            block => Ok(block?),
        }
    }

    fn alloc_block(
        &mut self,
        driver: &dyn DeviceDriver,
        pool: Pool,
        stream: StreamId,
        size: u64,
    ) -> DriverResult<BlockId> {
        let reserved = self.stats.reserved_bytes.all.current;
        if self.allowed.is_some_and(|allowed| reserved + size > allowed) {
            return Err(NO_MEMORY);
        }
        // With 32-bit addresses, the rounded size may be too large for the driver.
        let bytes = usize::try_from(size).map_err(|_| NO_MEMORY)?;
        let pointer = driver.malloc(bytes)?;
        self.stats.num_device_alloc += 1;
        self.stats.segment.increase(pool, 1);
        self.stats.reserved_bytes.increase(pool, size);
        if self.settings.is_oversize(size) {
            self.stats.oversize_segments.increase(1);
        }
        let block =
            self.insert(Block { pointer, size, stream, pool, previous: None, next: None, contents: None });
        self.segments.insert(pointer, block);
        Ok(block)
    }

    pub fn stats(&self) -> &DeviceStats {
        &self.stats
    }

    pub fn reset_peak_memory_stats(&mut self) {
        self.stats.reset_peak();
    }

    pub fn reset_accumulated_memory_stats(&mut self) {
        self.stats.reset_accumulated();
    }
}

fn is_out_of_memory<T>(result: &DriverResult<T>) -> bool {
    result.as_ref().is_err_and(|error| error.code == ERROR_MEMORY_ALLOCATION)
}

fn round_size(requested: u64) -> u64 {
    requested.next_multiple_of(MIN_BLOCK_SIZE)
}

fn get_allocation_size(size: u64) -> u64 {
    if size <= SMALL_SIZE {
        SMALL_BUFFER
    } else if size < MIN_LARGE_ALLOC {
        LARGE_BUFFER
    } else {
        size.next_multiple_of(ROUND_LARGE)
    }
}
