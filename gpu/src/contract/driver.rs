//! The driver contract: what this crate asks of whatever stands behind `cuda:0`.
//!
//! It is as low as the CUDA driver's own interface: memory, copies, streams, events, launches. It knows no
//! tensors and no operations. Everything above it (the caching allocator, streams, statistics, and the
//! GPU side of every operation) is written once, for the simulated GPU and for the real one.

use std::fmt;

use crate::base::collective::{Collective, CollectiveKind, CollectiveTime};
pub use crate::base::conv::{Conv, ConvAlgorithm};
pub use crate::base::gemm::Gemm;
pub use crate::base::handles::{DevicePtr, EventId, OpId, PinnedPtr, StreamId};
use crate::base::kernel::Launch;
pub use crate::base::process::Process;
pub use crate::base::properties::DeviceProperties;
use crate::base::pytorch_build::Build;
use crate::base::reading::Gpu;
use crate::contract::others;
use crate::contract::races::RaceLog;
use crate::host::time::Clock;

/// Where the host end of a copy lies.
pub enum HostSource<'a> {
    /// Ordinary memory: read before the call returns.
    Pageable(&'a [u8]),
    /// Page-locked memory: read when the copy runs.
    Pinned(PinnedPtr),
}

/// Where the host end of a copy lies.
pub enum HostTarget<'a> {
    /// Ordinary memory: written before the call returns.
    Pageable(&'a mut [u8]),
    /// Page-locked memory: written when the copy runs.
    Pinned(PinnedPtr),
}

/// An error of the driver (`CUresult`), by its number, its name and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    pub code: u32,
    /// `cudaErrorMemoryAllocation`
    pub name: &'static str,
    /// `out of memory`
    pub message: &'static str,
    /// What more is known: the kernel and its assertion, the piece of work that can never run.
    pub detail: Option<String>,
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

/// Which unit of a device did a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// The multiprocessors.
    Compute,
    /// The copy engine to the device.
    HostToDevice,
    /// The copy engine from the device.
    DeviceToHost,
    /// The link to another device.
    Peer,
}

/// When a piece of work ran, in nanoseconds of the host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub op: OpId,
    pub stream: StreamId,
    pub engine: Engine,
    pub start: u64,
    pub end: u64,
}

/// What stands behind the CUDA devices of a machine.
///
/// Calls may fail with an error of work queued earlier: errors of kernels surface late, and stick.
#[allow(dead_code)] // Nothing above it fills memory by bytes.
pub trait Driver: Send + Sync {
    fn device_count(&self) -> usize;
    fn properties(&self, device: usize) -> DeviceProperties;
    fn memory_info(&self, device: usize) -> DriverResult<MemoryInfo>;
    /// Who holds memory of a device; nobody where that is not known.
    fn processes(&self, device: usize) -> Vec<Process>;
    /// What a monitor says of a device; nothing where NVML is to be asked, which is no part of CUDA.
    fn monitor(&self, _device: usize) -> Option<Gpu> {
        None
    }
    /// Where it sits, `00000000:01:00.0`: what NVML knows it by. (Its numbers are other ones than CUDA's.)
    fn pci_bus_id(&self, _device: usize) -> Option<String> {
        None
    }

    /// The build of PyTorch that the program is to run as; none if kernels are compiled for the card.
    fn build(&self) -> Option<Build> {
        None
    }

    /// Takes memory (`cudaMalloc`): waits for the device.
    fn malloc(&self, device: usize, bytes: usize) -> DriverResult<DevicePtr>;
    /// Gives memory back (`cudaFree`): waits for the device.
    fn free(&self, device: usize, pointer: DevicePtr) -> DriverResult<()>;
    /// Takes page-locked host memory (`cudaMallocHost`).
    fn malloc_host(&self, bytes: usize) -> DriverResult<PinnedPtr>;
    /// Gives it back; the memory lives on until the work that uses it has run.
    fn free_host(&self, pointer: PinnedPtr) -> DriverResult<()>;
    /// Reads page-locked memory as it is now, whatever copies are still under way.
    fn read_host(&self, from: PinnedPtr, into: &mut [u8]) -> DriverResult<()>;
    /// Writes page-locked memory now, whatever copies are still under way.
    fn write_host(&self, into: PinnedPtr, from: &[u8]) -> DriverResult<()>;

    fn copy_host_to_device(
        &self,
        stream: StreamId,
        to: DevicePtr,
        from: HostSource<'_>,
        bytes: usize,
    ) -> DriverResult<OpId>;
    fn copy_device_to_host(
        &self,
        stream: StreamId,
        to: HostTarget<'_>,
        from: DevicePtr,
        bytes: usize,
    ) -> DriverResult<OpId>;
    /// A copy from one device to another, or within one, on a stream of either. Through the host if they are no peers.
    fn copy_peer(
        &self,
        stream: StreamId,
        to: (usize, DevicePtr),
        from: (usize, DevicePtr),
        bytes: usize,
    ) -> DriverResult<OpId>;
    fn memset(&self, stream: StreamId, to: DevicePtr, value: u8, bytes: usize) -> DriverResult<OpId>;

    /// A new stream. A blocking one keeps order with the device's default stream, as CUDA's do unless told
    /// otherwise; PyTorch's do not.
    fn stream_create(&self, device: usize, blocking: bool) -> DriverResult<StreamId>;
    /// Whether all work queued on the stream has run.
    fn stream_query(&self, stream: StreamId) -> DriverResult<bool>;
    /// Waits until it has.
    fn stream_synchronize(&self, stream: StreamId) -> DriverResult<()>;
    /// Makes later work of the stream wait for what the event recorded last; nothing if it never did.
    fn stream_wait_event(&self, stream: StreamId, event: EventId) -> DriverResult<()>;

    fn event_create(&self, device: usize, timing: bool) -> DriverResult<EventId>;
    fn event_destroy(&self, event: EventId) -> DriverResult<()>;
    fn event_record(&self, event: EventId, stream: StreamId) -> DriverResult<()>;
    /// Whether the work before the event's last record has run; true if there never was one.
    fn event_query(&self, event: EventId) -> DriverResult<bool>;
    fn event_synchronize(&self, event: EventId) -> DriverResult<()>;
    /// Milliseconds from one event to another.
    fn event_elapsed(&self, start: EventId, end: EventId) -> DriverResult<f32>;

    /// An input may be the first output, element for element. What is written must overlap nothing else.
    fn launch(&self, stream: StreamId, launch: Launch) -> DriverResult<OpId>;
    fn gemm(&self, stream: StreamId, gemm: Gemm) -> DriverResult<OpId>;

    /// The version of cuDNN, 91900 for 9.19.0, if convolutions can be asked for.
    fn cudnn_version(&self) -> Option<usize>;
    /// The algorithms for a convolution, the one that a rule of thumb takes to be the fastest first
    /// (`cudnnGetConvolutionForwardAlgorithm_v7`).
    fn convolution_algorithms(&self, device: usize, conv: &Conv) -> DriverResult<Vec<ConvAlgorithm>>;
    /// Tries algorithms out, with memory to work in, and waits for them (`cudnnFindConvolutionForwardAlgorithmEx`):
    /// each that ran with its milliseconds. `None`: whoever asks can time [`convolution`](Self::convolution) as well.
    fn find_convolution(
        &self,
        _stream: StreamId,
        _conv: &Conv,
        _workspace: (DevicePtr, usize),
    ) -> DriverResult<Option<Vec<(ConvAlgorithm, f32)>>> {
        Ok(None)
    }
    /// Computes a convolution in memory of the algorithm's size.
    fn convolution(
        &self,
        stream: StreamId,
        conv: &Conv,
        algorithm: &ConvAlgorithm,
        workspace: DevicePtr,
    ) -> DriverResult<OpId>;

    /// The same devices as another process has them: with streams, memory and a clock of its own. Nothing, where they are not to
    /// be had so.
    fn fork(&self, _process: others::Process, _clock: Clock) -> Option<Box<dyn Driver>> {
        None
    }
    /// Takes part in a collective (`ncclAllReduce` and its like), which begins when all processes have come to it.
    fn collective(&self, _stream: StreamId, _part: Collective) -> DriverResult<OpId> {
        let message = "collectives of real GPUs are NCCL's, which this crate does not call yet";
        Err(DriverError { code: 0, name: "NCCL", message, detail: None })
    }
    /// How long a collective of so many processes takes, each of which brings so many bytes, where that is known beforehand.
    fn collective_time(
        &self,
        _kind: CollectiveKind,
        _bytes: usize,
        _processes: usize,
    ) -> Option<CollectiveTime> {
        None
    }

    /// Waits until all work of the stream has run, and leaves the program's order as it is: races that this wait
    /// hides are found all the same.
    fn finish(&self, stream: StreamId) -> DriverResult<()> {
        self.stream_synchronize(stream)
    }
    /// Waits for all work of a device.
    fn synchronize(&self, device: usize) -> DriverResult<()>;
    fn can_access_peer(&self, device: usize, peer: usize) -> DriverResult<bool>;
    fn enable_peer_access(&self, device: usize, peer: usize) -> DriverResult<()>;

    /// Called when an error has been returned to the program. An error that is not sticky is cleared by this.
    fn told(&self, _error: &DriverError) {}

    /// Turns on or off the recording of when work runs. A driver that always knows this may ignore the call.
    fn record_spans(&self, _on: bool) {}
    /// When the work that has run since the last call ran.
    fn take_spans(&self) -> Vec<Span>;

    /// Says that the caching allocator has handed out this range again. The driver cannot see that, because
    /// the range is only part of a segment. It is used for race reports only.
    fn reused(&self, _pointer: DevicePtr, _bytes: usize) {}
    /// Where it puts the data races it finds, if it looks for them.
    fn race_log(&self) -> Option<&RaceLog> {
        None
    }
}
