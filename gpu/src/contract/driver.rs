//! The driver contract: the interface to the devices `cuda:0`, `cuda:1` and so on.
//!
//! It is as low-level as the CUDA driver's own interface: memory, copies, streams, events, launches. It has no tensors
//! or operations. Everything above it (the caching allocator, streams, statistics, and the GPU side of every operation)
//! is written once, for the simulated GPU and for the real one.
//!
//! Not here: cuBLAS, cuDNN, NCCL and NVRTC, which `libraries.rs` adds to a driver, and the two drivers, `simulated/`
//! and `nvidia/`. Next in the spine: `simulated/schedule.rs`.

use std::fmt;

pub use crate::base::device::{DevicePtr, EventId, OpId, PinnedPtr, StreamId};
use crate::base::kernel::Launch;

/// The properties of a device (`torch.cuda.get_device_properties`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProperties {
    /// `Tesla T4`, or `Tesla T4 (simulated)`.
    pub name: String,
    /// Compute capability: 7 of 7.5.
    pub major: u32,
    /// Compute capability: 5 of 7.5.
    pub minor: u32,
    /// Bytes of memory.
    pub total_memory: u64,
    /// Streaming multiprocessors.
    pub multi_processor_count: u32,
    /// Threads that execute in lockstep.
    pub warp_size: u32,
    /// Maximum threads per block.
    pub max_threads_per_block: u32,
    /// Maximum threads resident on a multiprocessor.
    pub max_threads_per_multi_processor: u32,
    /// Size of the L2 cache in bytes.
    pub l2_cache_size: u64,
    /// The highest clock in kHz.
    pub clock_rate: u32,
}

/// The host source of a copy.
pub enum HostSource<'a> {
    /// Ordinary memory: read before the call returns.
    Pageable(&'a [u8]),
    /// Page-locked memory: read when the copy runs.
    Pinned(PinnedPtr),
}

/// The host destination of a copy.
pub enum HostTarget<'a> {
    /// Ordinary memory: written before the call returns.
    Pageable(&'a mut [u8]),
    /// Page-locked memory: written when the copy runs.
    Pinned(PinnedPtr),
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// `Memcpy HtoD`
    HostToDevice,
    /// `Memcpy DtoH`
    DeviceToHost,
    /// `Memcpy PtoP`
    Peer,
}

/// An error of the driver (`CUresult`), with its number, name and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    pub code: u32,
    /// `cudaErrorMemoryAllocation`
    pub name: &'static str,
    /// `out of memory`
    pub message: &'static str,
    /// Further details: the kernel and its assertion, or the piece of work that can never run.
    pub detail: Option<String>,
}

impl DriverError {
    /// An error in compiling a kernel. CUDA has no code for it.
    pub fn of_compiler(message: &'static str, detail: Option<String>) -> DriverError {
        DriverError { code: 0, name: "compile_kernel", message, detail }
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)
    }
}

pub type DriverResult<T> = std::result::Result<T, DriverError>;

/// The memory of a device in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    pub free: u64,
    pub total: u64,
}

/// The unit of a device that did a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// The multiprocessors.
    Compute,
    /// The copy engine for host-to-device copies.
    HostToDevice,
    /// The copy engine for device-to-host copies.
    DeviceToHost,
    /// The link to another device.
    Peer,
}

/// The interval during which a piece of work ran, in nanoseconds of the host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub op: OpId,
    pub stream: StreamId,
    pub engine: Engine,
    pub start: u64,
    pub end: u64,
}

/// The driver of a machine's CUDA devices.
///
/// A call may fail with an error from work queued earlier: kernel errors surface late, and are sticky.
#[allow(dead_code)] // `memset` has no caller in the program.
pub trait Driver: Send + Sync {
    fn device_count(&self) -> usize;
    fn properties(&self, device: usize) -> DeviceProperties;
    fn memory_info(&self, device: usize) -> DriverResult<MemoryInfo>;
    /// Allocates memory (`cudaMalloc`), which waits for the device.
    fn malloc(&self, device: usize, bytes: usize) -> DriverResult<DevicePtr>;
    /// Frees memory (`cudaFree`), which waits for the device.
    fn free(&self, device: usize, pointer: DevicePtr) -> DriverResult<()>;
    /// Allocates page-locked host memory (`cudaMallocHost`).
    fn malloc_host(&self, bytes: usize) -> DriverResult<PinnedPtr>;
    /// Frees page-locked memory, which stays alive until the work that uses it has run.
    fn free_host(&self, pointer: PinnedPtr) -> DriverResult<()>;
    /// Reads page-locked memory as it is now, even if copies are still pending.
    fn read_host(&self, from: PinnedPtr, into: &mut [u8]) -> DriverResult<()>;
    /// Writes page-locked memory now, even if copies are still pending.
    fn write_host(&self, into: PinnedPtr, from: &[u8]) -> DriverResult<()>;

    // ANCHOR: copy
    fn copy_host_to_device(
        &self,
        stream: StreamId,
        to: DevicePtr,
        from: HostSource<'_>,
        bytes: usize,
    ) -> DriverResult<OpId>;
    // ANCHOR_END: copy
    fn copy_device_to_host(
        &self,
        stream: StreamId,
        to: HostTarget<'_>,
        from: DevicePtr,
        bytes: usize,
    ) -> DriverResult<OpId>;
    /// Copies from one device to another, or within one, on a stream of either. If they are not peers, the copy goes
    /// through the host.
    fn copy_peer(
        &self,
        stream: StreamId,
        to: (usize, DevicePtr),
        from: (usize, DevicePtr),
        bytes: usize,
    ) -> DriverResult<OpId>;
    fn memset(&self, stream: StreamId, to: DevicePtr, value: u8, bytes: usize) -> DriverResult<OpId>;

    /// Creates a stream. A blocking stream synchronizes with the device's default stream, as CUDA's do by default.
    /// PyTorch's do not.
    fn stream_create(&self, device: usize, blocking: bool) -> DriverResult<StreamId>;
    /// Whether all work queued on the stream has run.
    fn stream_query(&self, stream: StreamId) -> DriverResult<bool>;
    /// Waits until all work queued on the stream has run.
    fn stream_synchronize(&self, stream: StreamId) -> DriverResult<()>;
    /// Makes later work of the stream wait for the event's last record; does nothing if it was never recorded.
    fn stream_wait_event(&self, stream: StreamId, event: EventId) -> DriverResult<()>;

    fn event_create(&self, device: usize, timing: bool) -> DriverResult<EventId>;
    fn event_destroy(&self, event: EventId) -> DriverResult<()>;
    fn event_record(&self, event: EventId, stream: StreamId) -> DriverResult<()>;
    /// Whether the work before the event's last record has run; true if it was never recorded.
    fn event_query(&self, event: EventId) -> DriverResult<bool>;
    fn event_synchronize(&self, event: EventId) -> DriverResult<()>;
    /// Milliseconds from one event to another.
    fn event_elapsed(&self, start: EventId, end: EventId) -> DriverResult<f32>;

    /// Queues a kernel. An input may be the first output, in the same layout. Apart from that, outputs must not
    /// overlap other operands.
    fn launch(&self, stream: StreamId, launch: Launch) -> DriverResult<OpId>;
    /// Waits until all work of the stream has run, without ordering it for the race check: races that this wait hides
    /// are still found.
    fn synchronize_untracked(&self, stream: StreamId) -> DriverResult<()> {
        self.stream_synchronize(stream)
    }
    /// Waits for all work of a device.
    fn synchronize(&self, device: usize) -> DriverResult<()>;
    fn can_access_peer(&self, device: usize, peer: usize) -> DriverResult<bool>;
    fn enable_peer_access(&self, device: usize, peer: usize) -> DriverResult<()>;

    /// Called when an error has been returned to the program. This clears an error that is not sticky.
    fn error_returned(&self, _error: &DriverError) {}

    /// Turns the recording of execution times on or off. A driver that always records them may ignore the call.
    fn record_spans(&self, _on: bool) {}
    /// Takes the spans of the work that has run since the last call.
    fn take_spans(&self) -> Vec<Span>;

    /// Tells the driver that the caching allocator has reused this range. The driver cannot see that, because the range
    /// is only part of a segment. Used for race reports only.
    fn range_reused(&self, _pointer: DevicePtr, _bytes: usize) {}
}
