//! The host memory of tensors, with a cache of freed buffers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytemuck::allocation::try_zeroed_vec;

use crate::base::error::GpuError;
use crate::base::lock::lock;

/// One cache line. Buffers consist of whole lines, so they are aligned for any vector type.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// The host memory of a machine.
///
/// Each fresh page of 4 KiB costs a page fault at the first touch. For a result of 64 MB, the faults take longer than
/// the additions. For a result of a few elements, the system's allocator takes as long as all the rest, because the
/// memory is aligned. So freed buffers are kept by size and reused.
#[derive(Default)]
pub struct HostMemory {
    free: Mutex<FreeBuffers>,
    allocated: AtomicUsize,
    peak: AtomicUsize,
}

#[derive(Default)]
struct FreeBuffers {
    /// Buffers of a few lines, by their number.
    small: [Vec<Vec<Line>>; SMALL],
    large: HashMap<usize, Vec<Vec<Line>>>,
    bytes: usize,
}

impl FreeBuffers {
    fn of(&mut self, lines: usize) -> &mut Vec<Vec<Line>> {
        match self.small.get_mut(lines) {
            Some(buffers) => buffers,
            None => self.large.entry(lines).or_default(),
        }
    }
}

const SMALL: usize = 32;

/// The maximum number of cached bytes. Above it, the cache is emptied, because the program may have changed its sizes.
const MOST_CACHED: usize = 512 << 20;

impl HostMemory {
    pub fn allocated(&self) -> usize {
        self.allocated.load(Ordering::Relaxed)
    }

    /// The most bytes held by tensors since the last [`reset_peak`](Self::reset_peak).
    pub fn max_allocated(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    pub fn reset_peak(&self) {
        self.peak.store(self.allocated(), Ordering::Relaxed);
    }

    /// Bytes of cached buffers, besides [`allocated`](Self::allocated).
    pub fn cached(&self) -> usize {
        lock(&self.free).bytes
    }

    pub fn empty_cache(&self) {
        *lock(&self.free) = FreeBuffers::default();
    }

    fn take(&self, asked: usize) -> Result<Vec<Line>, GpuError> {
        let lines = asked.div_ceil(size_of::<Line>());
        let bytes = lines * size_of::<Line>();
        let buffer = match self.take_cached(lines) {
            Some(buffer) => buffer,
            // The system zeroes a page at its first touch, so unused memory costs nothing.
            None => try_zeroed_vec(lines).map_err(|()| GpuError::OutOfHostMemory { bytes: asked })?,
        };
        let allocated = self.allocated.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(allocated, Ordering::Relaxed);
        Ok(buffer)
    }

    fn take_cached(&self, lines: usize) -> Option<Vec<Line>> {
        let mut free = lock(&self.free);
        let buffer = free.of(lines).pop()?;
        free.bytes -= lines * size_of::<Line>();
        Some(buffer)
    }

    fn put(&self, buffer: Vec<Line>) {
        let bytes = buffer.len() * size_of::<Line>();
        self.allocated.fetch_sub(bytes, Ordering::Relaxed);
        if bytes == 0 || bytes > MOST_CACHED {
            return;
        }
        let mut free = lock(&self.free);
        if free.bytes + bytes > MOST_CACHED {
            *free = FreeBuffers::default();
        }
        free.bytes += bytes;
        free.of(buffer.len()).push(buffer);
    }
}

/// The host memory of one storage. Returns to its [`HostMemory`] on drop.
pub struct HostBuffer {
    lines: Vec<Line>,
    bytes: usize,
    memory: Arc<HostMemory>,
}

impl HostBuffer {
    pub fn allocate(memory: Arc<HostMemory>, bytes: usize) -> Result<HostBuffer, GpuError> {
        let lines = memory.take(bytes)?;
        Ok(HostBuffer { lines, bytes, memory })
    }

    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.bytes]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.bytes]
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        self.memory.put(std::mem::take(&mut self.lines));
    }
}
