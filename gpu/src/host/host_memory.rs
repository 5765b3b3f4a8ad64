//! Host memory: the buffers of tensors, and freed buffers kept for reuse.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytemuck::allocation::try_zeroed_vec;

use crate::base::error::GpuError;
use crate::base::lock::lock;

/// One cache line. Buffers consist of whole lines, so every buffer is aligned for any vector type.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// The host memory of a machine: allocated bytes, and freed buffers kept for reuse.
///
/// The first touch of fresh memory costs a page fault every 4 KiB (a 64 MB result costs more in faults than in
/// additions), so freed buffers are kept by size and reused.
#[derive(Default)]
pub struct HostMemory {
    free: Mutex<FreeBuffers>,
    allocated: AtomicUsize,
    peak: AtomicUsize,
}

#[derive(Default)]
struct FreeBuffers {
    by_lines: HashMap<usize, Vec<Vec<Line>>>,
    bytes: usize,
}

/// Smaller buffers are left to the system allocator, which is as fast for them.
const SMALLEST_CACHED: usize = 4 * 1024;

/// The maximum number of bytes kept for reuse. When a buffer would exceed it, the whole cache is given back first: a
/// program whose sizes have changed should not keep the old ones.
const MOST_CACHED: usize = 512 << 20;

impl HostMemory {
    /// Bytes held by tensors now.
    pub fn allocated(&self) -> usize {
        self.allocated.load(Ordering::Relaxed)
    }

    /// The most bytes held by tensors since the start or the last [`reset_peak`](Self::reset_peak).
    pub fn max_allocated(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// Resets the peak to the current value.
    pub fn reset_peak(&self) {
        self.peak.store(self.allocated(), Ordering::Relaxed);
    }

    /// Bytes of freed buffers kept for reuse, besides [`allocated`](Self::allocated).
    pub fn cached(&self) -> usize {
        lock(&self.free).bytes
    }

    /// Gives the freed buffers back to the system.
    pub fn empty_cache(&self) {
        *lock(&self.free) = FreeBuffers::default();
    }

    /// A buffer for `asked` bytes, in whole lines.
    fn take(&self, asked: usize) -> Result<Vec<Line>, GpuError> {
        let lines = asked.div_ceil(size_of::<Line>());
        let bytes = lines * size_of::<Line>();
        let reused = (bytes >= SMALLEST_CACHED).then(|| self.take_cached(lines)).flatten();
        let buffer = match reused {
            Some(buffer) => buffer,
            // The system provides zeroed pages on first touch: memory that is never used costs nothing.
            None => try_zeroed_vec(lines).map_err(|()| GpuError::OutOfHostMemory { bytes: asked })?,
        };
        let allocated = self.allocated.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(allocated, Ordering::Relaxed);
        Ok(buffer)
    }

    fn take_cached(&self, lines: usize) -> Option<Vec<Line>> {
        let mut free = lock(&self.free);
        let buffer = free.by_lines.get_mut(&lines)?.pop()?;
        free.bytes -= lines * size_of::<Line>();
        Some(buffer)
    }

    fn put(&self, buffer: Vec<Line>) {
        let bytes = buffer.len() * size_of::<Line>();
        self.allocated.fetch_sub(bytes, Ordering::Relaxed);
        if !(SMALLEST_CACHED..=MOST_CACHED).contains(&bytes) {
            return;
        }
        let mut free = lock(&self.free);
        if free.bytes + bytes > MOST_CACHED {
            *free = FreeBuffers::default();
        }
        free.bytes += bytes;
        free.by_lines.entry(buffer.len()).or_default().push(buffer);
    }
}

/// Host memory of one storage; returns to its [`HostMemory`] when dropped.
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
