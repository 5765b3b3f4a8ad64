//! Page-locked ("pinned") host memory, which copy engines access directly.
//!
//! A copy of pageable memory goes through a staging buffer of the driver, and the host waits. With pinned memory the
//! host continues at once. Until the copy runs, the host may read stale values, and the copy may include the host's
//! later writes, so the caller of a `non_blocking` copy must wait before it uses the memory.
//!
//! Driver allocations are slow, so they are cached by the rules of PyTorch's `CachingHostAllocator`: sizes are powers
//! of two, and a block serves only requests of its size, after its pending copies.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use crate::base::error::GpuError;
use crate::base::lock::lock;
use crate::contract::driver::{
    CopyKind, DriverResult, EventId, HostSource, HostTarget, OpId, PinnedPtr, StreamId,
};
use crate::contract::events::EventKind;
use crate::contract::libraries::Libraries;
use crate::runtime::copy::MemoryAt;
use crate::runtime::{Cuda, DeviceMemory, Result};

/// A block of pinned memory. An empty one has no address.
#[derive(Clone, Copy, Debug)]
struct CachedBlock {
    pointer: PinnedPtr,
    size: usize,
}

type StreamSet = SmallVec<[StreamId; 1]>;

/// The blocks that no tensor holds.
#[derive(Default)]
pub struct PinnedCache {
    free: BTreeMap<usize, Vec<CachedBlock>>,
    /// Dropped blocks with the streams that used them. No event is recorded yet.
    dropped: Vec<(CachedBlock, StreamSet)>,
    /// Dropped blocks with their pending events, in the order of their recording.
    waiting: VecDeque<(CachedBlock, Vec<EventId>)>,
}

impl PinnedCache {
    fn take(&mut self, cuda: &Cuda, size: usize) -> DriverResult<CachedBlock> {
        self.record_dropped(cuda);
        self.poll(cuda)?;
        if let Some(block) = self.free.get_mut(&size).and_then(Vec::pop) {
            return Ok(block);
        }
        let begin = cuda.now();
        let pointer = cuda.driver().malloc_host(size)?;
        cuda.note_since(begin, StreamId::default_of(0), EventKind::MallocHost { bytes: size as u64 }, None);
        Ok(CachedBlock { pointer, size })
    }

    fn put(&mut self, block: CachedBlock) {
        self.free.entry(block.size).or_default().push(block);
    }

    fn record_dropped(&mut self, cuda: &Cuda) {
        for (block, streams) in mem::take(&mut self.dropped) {
            match record(cuda, &streams) {
                Ok(events) => self.waiting.push_back((block, events)),
                // Without an event, the end of the use is unknown. The driver keeps the block for its copies.
                Err(_) => _ = cuda.driver().free_host(block.pointer),
            }
        }
    }

    /// Returns unused blocks to the cache, oldest first, up to the first one that a copy still uses.
    fn poll(&mut self, cuda: &Cuda) -> DriverResult<()> {
        while let Some((block, events)) = self.waiting.front_mut() {
            while let Some(event) = events.last() {
                if !cuda.driver().event_query(*event)? {
                    return Ok(());
                }
                cuda.event_destroy(*event);
                events.pop();
            }
            let block = *block;
            self.waiting.pop_front();
            self.put(block);
        }
        Ok(())
    }
}

/// Records an event on each stream, or on none if one fails.
fn record(cuda: &Cuda, streams: &[StreamId]) -> DriverResult<Vec<EventId>> {
    let mut events = Vec::new();
    let mut record = |stream: &StreamId| {
        let event = cuda.driver().event_create(stream.device, false)?;
        events.push(event);
        cuda.driver().event_record(event, *stream)
    };
    let recorded = streams.iter().try_for_each(&mut record);
    if recorded.is_err() {
        events.iter().for_each(|event| cuda.event_destroy(*event));
    }
    recorded.map(|()| events)
}

pub struct PinnedMemory {
    cuda: Arc<Cuda>,
    block: CachedBlock,
    /// The streams whose copies from or to it have not been waited for.
    used_by: Mutex<Uses>,
}

#[derive(Default)]
struct Uses {
    count: u64,
    latest: SmallVec<[(StreamId, Ticket); 1]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl PinnedMemory {
    /// Allocates memory with unspecified contents. An allocation from the driver waits for all devices.
    pub fn allocate(cuda: &Arc<Cuda>, bytes: usize) -> Result<PinnedMemory> {
        cuda.check_thread()?;
        let block = match bytes {
            0 => CachedBlock { pointer: PinnedPtr(0), size: 0 },
            _ => {
                let size = bytes.checked_next_power_of_two().ok_or(GpuError::OutOfHostMemory { bytes })?;
                lock(cuda.pinned()).take(cuda, size).map_err(|error| cuda.error(error))?
            }
        };
        Ok(PinnedMemory { cuda: cuda.clone(), block, used_by: Mutex::default() })
    }

    pub fn cuda(&self) -> &Arc<Cuda> {
        &self.cuda
    }

    pub(crate) fn pointer(&self, offset: usize) -> PinnedPtr {
        PinnedPtr(self.block.pointer.0 + offset as u64)
    }

    /// Reads the current bytes from an offset on, even if copies are pending.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<()> {
        if into.is_empty() {
            return Ok(());
        }
        self.cuda.driver().read_host(self.pointer(offset), into).map_err(|error| self.cuda.error(error))
    }

    /// Writes bytes now, even if copies are pending.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<()> {
        if from.is_empty() {
            return Ok(());
        }
        self.cuda.driver().write_host(self.pointer(offset), from).map_err(|error| self.cuda.error(error))
    }

    /// Called before a copy is queued on a stream. The ticket identifies this use.
    pub(crate) fn used_by(&self, stream: StreamId) -> Ticket {
        let mut uses = lock(&self.used_by);
        uses.count += 1;
        let ticket = Ticket(uses.count);
        match uses.latest.iter_mut().find(|(user, _)| *user == stream) {
            Some((_, latest)) => *latest = ticket,
            None => uses.latest.push((stream, ticket)),
        }
        ticket
    }

    /// Called after all copies of a stream up to this use have run. Another thread may have queued a later one.
    pub(crate) fn no_longer_used_by(&self, stream: StreamId, ticket: Ticket) {
        lock(&self.used_by).latest.retain(|(user, latest)| *user != stream || *latest != ticket);
    }
}

/// Copies from and to pinned memory.
impl Cuda {
    /// Copies pinned memory to a device. With `non_blocking` this returns at once, and the memory is read when the copy
    /// runs.
    pub fn upload_pinned(
        &self,
        (to, target_offset): MemoryAt<DeviceMemory>,
        (from, offset): MemoryAt<PinnedMemory>,
        bytes: usize,
        non_blocking: bool,
    ) -> Result<()> {
        let stream = to.current_stream();
        self.submit_pinned(stream, from, (CopyKind::HostToDevice, bytes), non_blocking, |driver| {
            let source = HostSource::Pinned(from.pointer(offset));
            driver.copy_host_to_device(stream, to.pointer(target_offset), source, bytes)
        })
    }

    /// Copies device memory to pinned memory. With `non_blocking` this returns at once, and the memory is written when
    /// the copy runs.
    pub fn download_pinned(
        &self,
        (to, target_offset): MemoryAt<PinnedMemory>,
        (from, offset): MemoryAt<DeviceMemory>,
        bytes: usize,
        non_blocking: bool,
    ) -> Result<()> {
        let stream = from.current_stream();
        self.submit_pinned(stream, to, (CopyKind::DeviceToHost, bytes), non_blocking, |driver| {
            let target = HostTarget::Pinned(to.pointer(target_offset));
            driver.copy_device_to_host(stream, target, from.pointer(offset), bytes)
        })
    }

    fn submit_pinned(
        &self,
        stream: StreamId,
        pinned: &PinnedMemory,
        copy: (CopyKind, usize),
        non_blocking: bool,
        call: impl FnOnce(&dyn Libraries) -> DriverResult<OpId>,
    ) -> Result<()> {
        self.check_thread()?;
        if !non_blocking {
            self.check_sync()?;
        }
        // This comes first: whatever fails afterwards, the memory is not reused before the stream has reached this
        // point.
        let ticket = pinned.used_by(stream);
        self.submit_copy(stream, copy, |driver| {
            let op = call(driver)?;
            if !non_blocking {
                driver.stream_synchronize(stream)?;
                pinned.no_longer_used_by(stream, ticket);
            }
            Ok(op)
        })
    }
}

/// Returns the block to the cache. This cannot fail, and does not wait for the device.
impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if self.block.size == 0 {
            return;
        }
        let mut cache = lock(self.cuda.pinned());
        let uses = mem::take(&mut *lock(&self.used_by));
        let streams: StreamSet = uses.latest.iter().map(|(stream, _)| *stream).collect();
        if streams.is_empty() {
            return cache.put(self.block);
        }
        cache.dropped.push((self.block, streams));
        // Any thread may drop a tensor. If it is not the GPU's thread, the events are recorded at the next allocation.
        if self.cuda.check_thread().is_ok() {
            cache.record_dropped(&self.cuda);
        }
    }
}
