//! The caching allocator: where the memory of a CUDA device comes from.
//!
//! The driver's own `cudaMalloc` and `cudaFree` are slow and, worse, wait for the device, which a program
//! that wants to keep its GPU busy cannot do at every tensor. But a training loop asks for the same sizes
//! step after step. So memory, once taken from the driver, is kept and handed out again. The rules are those
//! of PyTorch's `CUDACachingAllocator`, and so are the figures:
//!
//! * The driver gives *segments*. A segment is cut into *blocks*, which know their neighbours; a block is
//!   allocated or free.
//! * A request is rounded up to a multiple of 512 bytes. Up to 1 MiB it is served by the *small pool*, whose
//!   segments have 2 MiB; beyond that by the *large pool*, whose segments have 20 MiB for requests below
//!   10 MiB, and from there on as much as the request, rounded up to 2 MiB. Kept apart, small tensors cannot
//!   sit in the middle of the memory that a large one needs.
//! * A free block belongs to the stream its segment was taken for, and serves only that stream. This is why
//!   it is free at once, though work that uses it may still be queued: the work of whoever gets it next is
//!   queued behind. A block that other streams use as well has to wait for them: `streams.rs`.
//! * A request gets the smallest free block of its pool and stream that is large enough; of equals, the one
//!   with the lowest address. Without any, a segment is taken from the driver.
//! * What the request does not need of a block is split off and stays free, if it is worth it: from 512 bytes
//!   on in the small pool, above 1 MiB in the large one. Otherwise the request is charged the whole block.
//! * A block that is freed merges with its neighbours if they are free. When all of a segment is free again,
//!   it is one block again.
//! * When `cudaMalloc` finds no memory, all segments that are one free block go back to the driver, and it is
//!   tried once more. A segment in which anything lives must stay. Much free memory in such segments, and
//!   none in one piece, is what is called *fragmentation*.
//! * A program may set itself a limit, a fraction of the memory: a segment beyond it counts as one that
//!   `cudaMalloc` has no memory for.
//!
//! Follow [`Allocator::malloc`] and [`Allocator::free`]; each step is a function below them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::Location;

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

/// Sizes of blocks are multiples of this (`kMinBlockSize`).
const MIN_BLOCK_SIZE: u64 = 512;
/// The largest block of the small pool (`kSmallSize`).
const SMALL_SIZE: u64 = 1 << 20;
/// The segments of the small pool (`kSmallBuffer`).
const SMALL_BUFFER: u64 = 2 << 20;
/// The segments of the large pool for blocks below [`MIN_LARGE_ALLOC`] (`kLargeBuffer`).
const LARGE_BUFFER: u64 = 20 << 20;
/// From here on a block gets a segment of its own size (`kMinLargeAlloc`), ...
const MIN_LARGE_ALLOC: u64 = 10 << 20;
/// ... which is a multiple of this (`kRoundLarge`).
const ROUND_LARGE: u64 = 2 << 20;
/// Requests from here on are refused unseen, so that no sum below can overflow.
const EXABYTE: u64 = 1 << 60;

/// `cudaErrorMemoryAllocation`, the one error of `cudaMalloc` that an emptied cache may cure.
const ERROR_MEMORY_ALLOCATION: u32 = 2;

/// What a driver says that has no memory.
const NO_MEMORY: DriverError = DriverError {
    code: ERROR_MEMORY_ALLOCATION,
    name: "cudaErrorMemoryAllocation",
    message: "out of memory",
    detail: None,
};

/// What the allocator of a device asks of the driver.
pub trait DeviceDriver {
    /// Takes a segment.
    fn malloc(&self, bytes: usize) -> DriverResult<DevicePtr>;
    /// Gives it back.
    fn free(&self, pointer: DevicePtr) -> DriverResult<()>;
    /// A block that was freed, and waited for streams that might still use it, is free.
    fn completed(&self, _pointer: DevicePtr, _stream: StreamId) {}
    /// Whether this thread may use the driver. Any thread may drop a tensor.
    fn is_of_this_thread(&self) -> bool;
    /// An event for streams of a device, which may be another one.
    fn create_event(&self, device: usize) -> DriverResult<EventId>;
    fn record_event(&self, event: EventId, stream: StreamId) -> DriverResult<()>;
    /// Whether the work before it has run.
    fn query_event(&self, event: EventId) -> DriverResult<bool>;
    /// Waits until it has.
    fn synchronize_event(&self, event: EventId) -> DriverResult<()>;
}

/// Memory that somebody holds, to be handed back to [`Allocator::free`] once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// 0 for an allocation of 0 bytes.
    pub pointer: DevicePtr,
    /// None for one of 0 bytes, and for one that was not cached.
    block: Option<BlockId>,
}

impl Allocation {
    /// An allocation of 0 bytes.
    pub const NULL: Allocation = Allocation { pointer: DevicePtr(0), block: None };
}

/// Why there is no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MallocError {
    OutOfMemory(OutOfMemory),
    /// More was asked for than any device will ever have. PyTorch has a message of its own for it.
    MoreThanAnExabyte,
    /// The driver failed for another reason, which need not have to do with memory.
    Driver(DriverError),
}

impl From<DriverError> for MallocError {
    fn from(error: DriverError) -> MallocError {
        MallocError::Driver(error)
    }
}

/// The device is full, and emptying the cache did not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The segment that the driver was asked for: what PyTorch says it "tried to allocate".
    pub requested: u64,
    /// Bytes in allocated blocks.
    pub allocated: u64,
    /// Bytes in segments, after the cache was emptied.
    pub reserved: u64,
    /// Bytes that may be, if there is a limit.
    pub allowed: Option<u64>,
}

/// The two kinds of memory: so that small blocks do not break up what large ones need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    Large,
    Small,
}

impl Pool {
    /// Which pool serves blocks of a size.
    fn serving(size: u64) -> Pool {
        if size <= SMALL_SIZE { Pool::Small } else { Pool::Large }
    }
}

/// A block's position in [`Allocator::blocks`].
type BlockId = usize;

/// A piece of a segment.
#[derive(Clone, Copy)]
struct Block {
    pointer: DevicePtr,
    size: u64,
    stream: StreamId,
    pool: Pool,
    /// The blocks before and after it in its segment.
    previous: Option<BlockId>,
    next: Option<BlockId>,
    /// What it holds; nothing if it is free.
    contents: Option<Contents>,
}

/// What is known of the bytes in a block that is not free.
#[derive(Clone, Copy)]
struct Contents {
    /// Bytes asked for.
    requested: u64,
    /// The line that asked.
    place: &'static Location<'static>,
    /// How many events must complete before the block is free. 0 for one that somebody still holds.
    events: u32,
}

impl Block {
    /// Whether it is one of several in its segment.
    fn is_split(&self) -> bool {
        self.previous.is_some() || self.next.is_some()
    }
}

/// A free block as its pool sees it. The order of the fields is the order of the search.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FreeBlock {
    /// The stream's number. Its device is the allocator's, and comparing it would only take time.
    stream: u32,
    size: u64,
    pointer: DevicePtr,
    block: BlockId,
}

/// The caching allocator of one device.
#[derive(Default)]
pub struct Allocator {
    /// All blocks. A block keeps its position for as long as it is; positions in `vacant` have no block now.
    blocks: Vec<Block>,
    vacant: Vec<BlockId>,
    /// The first block of every segment, by address.
    segments: BTreeMap<DevicePtr, BlockId>,
    large_blocks: BTreeSet<FreeBlock>,
    small_blocks: BTreeSet<FreeBlock>,
    /// Which streams use which blocks, beside the blocks' own.
    uses: StreamUses,
    settings: Settings,
    /// The most bytes that may be reserved.
    allowed: Option<u64>,
    stats: DeviceStats,
    /// Nothing is cached: each request is one of the driver's.
    disabled: bool,
    /// What was not cached, and of which size.
    uncached: HashMap<DevicePtr, u64>,
}

impl Allocator {
    /// Memory for `bytes` bytes, used by work of `stream`, which is one of this device.
    pub fn malloc(
        &mut self,
        driver: &dyn DeviceDriver,
        bytes: usize,
        stream: StreamId,
        place: &'static Location<'static>,
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

    /// Takes memory back. It stays with the allocator, unless it was not cached, so this cannot fail. If other streams use the block, it
    /// is free once they have done so.
    pub fn free(&mut self, driver: &dyn DeviceDriver, allocation: Allocation) {
        let Some(block) = allocation.block else { return self.free_uncached(driver, allocation.pointer) };
        let Block { pointer, size, pool, contents, .. } = self.blocks[block];
        let held = contents.filter(|contents| contents.events == 0 && pointer == allocation.pointer);
        let Some(contents) = held else {
            // To go on would hand the same memory to two tensors.
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

    /// Whether memory that has just been taken back waits for other streams.
    pub fn waits(&self, allocation: Allocation) -> bool {
        allocation.block.is_some_and(|block| self.blocks[block].contents.is_some())
    }

    /// How many bytes the block has that somebody holds.
    pub fn size_of(&self, allocation: Allocation) -> u64 {
        match allocation.block {
            Some(block) => self.blocks[block].size,
            None => self.uncached.get(&allocation.pointer).copied().unwrap_or(0),
        }
    }

    /// One of the events that a freed block waits for has completed.
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

    /// Nothing uses the block any more.
    fn free_block(&mut self, block: BlockId) {
        let Block { size, pool, contents, .. } = self.blocks[block];
        let requested = contents.map_or(0, |contents| contents.requested);
        self.blocks[block].contents = None;
        self.return_to_pool(block);
        self.stats.active.decrease(pool, 1);
        self.stats.active_bytes.decrease(pool, size);
        self.stats.requested_bytes.decrease(pool, requested);
    }

    /// Gives all segments in which nothing lives back to the driver, once all streams are done with them. If
    /// that fails, the segments not given back are still in the cache.
    pub fn empty_cache(&mut self, driver: &dyn DeviceDriver) -> DriverResult<()> {
        self.release_cached_blocks(driver)
    }

    /// Changes the options. What there is stays as it is.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
        // What counts as oversize is another question now.
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

    /// Sets the limit for what is reserved, in bytes.
    pub fn set_allowed(&mut self, bytes: u64) {
        self.allowed = Some(bytes);
    }

    /// The limit, if there is one.
    pub fn allowed(&self) -> Option<u64> {
        self.allowed
    }

    /// The best free block for `size` bytes, if there is one, taken out of its pool.
    fn get_free_block(&mut self, pool: Pool, stream: StreamId, size: u64) -> Option<BlockId> {
        let smallest = FreeBlock { stream: stream.number, size, pointer: DevicePtr(0), block: 0 };
        let best = *self.free_blocks(pool).range(smallest..).next()?;
        // Behind the last block of a stream come those of the next one. If the options keep the best block from
        // the request, no other is looked for.
        if best.stream != stream.number || !self.settings.may_take(size, best.size) {
            return None;
        }
        self.free_blocks(pool).remove(&best);
        Some(best.block)
    }

    /// A new segment that holds a block of `size` bytes, as one block.
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
            // With a reason of the driver's own it is not the device that is full.
            Err(error) if error.code == ERROR_MEMORY_ALLOCATION && error.detail.is_none() => {
                self.stats.num_ooms += 1;
                Err(MallocError::OutOfMemory(OutOfMemory {
                    requested: segment_size,
                    allocated: self.stats.allocated_bytes.all.current,
                    reserved: self.stats.reserved_bytes.all.current,
                    allowed: self.allowed,
                }))
            }
            block => Ok(block?),
        }
    }

    /// A segment of `size` bytes as one block.
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
        // Where addresses have 32 bits, rounding can make more of a request than a driver can be asked for.
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

/// The size of the block that a request gets.
fn round_size(requested: u64) -> u64 {
    requested.next_multiple_of(MIN_BLOCK_SIZE)
}

/// The size of the segment that is taken for a block.
fn get_allocation_size(size: u64) -> u64 {
    if size <= SMALL_SIZE {
        SMALL_BUFFER
    } else if size < MIN_LARGE_ALLOC {
        LARGE_BUFFER
    } else {
        size.next_multiple_of(ROUND_LARGE)
    }
}
