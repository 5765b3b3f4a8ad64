//! The record of requests to the GPUs, made at the driver's boundary. `Machine::profile` records a part of a program,
//! `record_function` names ranges of it, and the `drawing` crate draws a timeline.

use std::collections::HashMap;
use std::ops::Sub;
use std::time::Duration;

use crate::base::collective::CollectiveKind;
use crate::base::conv::ConvPass;
use crate::base::dtype::DType;
use crate::base::kernel::KernelDef;
use crate::base::sort;
pub use crate::contract::driver::CopyKind;
use crate::contract::driver::{Engine, EventId, OpId, Span, StreamId};
use crate::host::host_context::HostContext;
use crate::host::scope::{self, Place};

/// Counts of the work on the GPUs of a machine (`Machine::counters`).
///
/// The difference of two readings counts the work between them. Readings in the wrong order give zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Kernels launched, matrix products included.
    pub launches: u64,
    pub copies_to_device: u64,
    pub bytes_to_device: u64,
    /// Copies from device to host. Each waits for the device, unless it is `non_blocking`.
    pub copies_to_host: u64,
    pub bytes_to_host: u64,
    pub copies_between_devices: u64,
    pub bytes_between_devices: u64,
    /// Collectives, counted once for each rank.
    pub collectives: u64,
    /// Waits of the host for a device (`torch.cuda.synchronize`), a stream or an event.
    pub synchronizations: u64,
    pub allocations: u64,
    /// Segments that the allocator took from the driver (`cudaMalloc`).
    pub driver_mallocs: u64,
    /// Segments that it gave back (`cudaFree`).
    pub driver_frees: u64,
}

impl Sub for Counters {
    type Output = Counters;

    fn sub(self, earlier: Counters) -> Counters {
        Counters {
            launches: self.launches.saturating_sub(earlier.launches),
            copies_to_device: self.copies_to_device.saturating_sub(earlier.copies_to_device),
            bytes_to_device: self.bytes_to_device.saturating_sub(earlier.bytes_to_device),
            copies_to_host: self.copies_to_host.saturating_sub(earlier.copies_to_host),
            bytes_to_host: self.bytes_to_host.saturating_sub(earlier.bytes_to_host),
            copies_between_devices: self
                .copies_between_devices
                .saturating_sub(earlier.copies_between_devices),
            bytes_between_devices: self.bytes_between_devices.saturating_sub(earlier.bytes_between_devices),
            collectives: self.collectives.saturating_sub(earlier.collectives),
            synchronizations: self.synchronizations.saturating_sub(earlier.synchronizations),
            allocations: self.allocations.saturating_sub(earlier.allocations),
            driver_mallocs: self.driver_mallocs.saturating_sub(earlier.driver_mallocs),
            driver_frees: self.driver_frees.saturating_sub(earlier.driver_frees),
        }
    }
}

/// The target of a stream's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    Event(EventId),
    /// All earlier work of another stream.
    Stream(StreamId),
}

#[derive(Clone, Copy, Debug)]
pub enum EventKind {
    Launch {
        kernel: &'static KernelDef,
    },
    CompiledLaunch {
        name: &'static str,
    },
    Gemm {
        dtype: DType,
    },
    Convolution {
        dtype: DType,
        pass: ConvPass,
        /// cuDNN's number.
        algorithm: u32,
        /// In bytes.
        workspace: usize,
    },
    Copy {
        kind: CopyKind,
        bytes: u64,
    },
    /// One rank's part. `bytes` is the size of its input.
    Collective {
        kind: CollectiveKind,
        bytes: u64,
    },
    Synchronize,
    StreamSynchronize,
    EventSynchronize {
        event: EventId,
    },
    EventRecord {
        event: EventId,
    },
    StreamWaitEvent {
        on: Awaited,
    },
    /// A block handed out by the caching allocator. `block` is its size, `bytes` the requested size.
    Allocate {
        address: u64,
        bytes: u64,
        block: u64,
    },
    /// A block is freed. It `waits` if other streams may still use it.
    Free {
        address: u64,
        waits: bool,
    },
    /// A freed block becomes reusable, because no other stream uses it any more.
    FreeCompleted {
        address: u64,
    },
    DriverMalloc {
        address: u64,
        bytes: u64,
    },
    DriverFree {
        address: u64,
    },
    MallocHost {
        bytes: u64,
    },
}

impl EventKind {
    pub fn name(&self) -> String {
        match self {
            EventKind::Launch { kernel } => kernel.symbol(),
            EventKind::CompiledLaunch { name } => name.to_string(),
            EventKind::Gemm { .. } => "gemm".to_string(),
            EventKind::Convolution { pass, algorithm, .. } => {
                format!("{} {}", pass.name(), pass.algorithm(*algorithm))
            }
            EventKind::Copy { kind: CopyKind::HostToDevice, .. } => "Memcpy HtoD".to_string(),
            EventKind::Copy { kind: CopyKind::DeviceToHost, .. } => "Memcpy DtoH".to_string(),
            EventKind::Copy { kind: CopyKind::Peer, .. } => "Memcpy PtoP".to_string(),
            EventKind::Collective { kind, .. } => kind.label().to_string(),
            other => other.call().to_string(),
        }
    }

    pub fn bytes(&self) -> Option<u64> {
        match self {
            EventKind::Copy { bytes, .. }
            | EventKind::Collective { bytes, .. }
            | EventKind::Allocate { bytes, .. }
            | EventKind::DriverMalloc { bytes, .. }
            | EventKind::MallocHost { bytes } => Some(*bytes),
            _ => None,
        }
    }

    /// The CUDA function that the host calls.
    pub fn call(&self) -> &'static str {
        match self {
            EventKind::Launch { .. } | EventKind::CompiledLaunch { .. } => "cudaLaunchKernel",
            EventKind::Gemm { .. } => "cublasGemmEx",
            EventKind::Convolution { pass: ConvPass::Forward, .. } => "cudnnConvolutionForward",
            EventKind::Convolution { pass: ConvPass::BackwardData, .. } => "cudnnConvolutionBackwardData",
            EventKind::Convolution { pass: ConvPass::BackwardFilter, .. } => "cudnnConvolutionBackwardFilter",
            EventKind::Copy { .. } => "cudaMemcpyAsync",
            EventKind::Collective { kind, .. } => match kind {
                CollectiveKind::AllReduce(_) | CollectiveKind::Barrier => "ncclAllReduce",
                CollectiveKind::Broadcast { .. } => "ncclBroadcast",
                CollectiveKind::AllGather => "ncclAllGather",
                CollectiveKind::ReduceScatter(_) => "ncclReduceScatter",
                CollectiveKind::PointToPoint => "ncclSend/ncclRecv",
            },
            EventKind::Synchronize => "cudaDeviceSynchronize",
            EventKind::StreamSynchronize => "cudaStreamSynchronize",
            EventKind::EventSynchronize { .. } => "cudaEventSynchronize",
            EventKind::EventRecord { .. } => "cudaEventRecord",
            EventKind::StreamWaitEvent { .. } => "cudaStreamWaitEvent",
            EventKind::Allocate { .. } => "allocate",
            EventKind::Free { .. } => "free",
            EventKind::FreeCompleted { .. } => "free, completed",
            EventKind::DriverMalloc { .. } => "cudaMalloc",
            EventKind::DriverFree { .. } => "cudaFree",
            EventKind::MallocHost { .. } => "cudaMallocHost",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub kind: EventKind,
    pub stream: StreamId,
    pub op: Option<OpId>,
    /// The operation of the user's program, and its line. A dropped tensor frees its memory without a line.
    pub operation: Option<&'static str>,
    pub place: Option<Place>,
    /// The rank that made the call, if there are several.
    pub rank: Option<usize>,
    /// In nanoseconds of the host's clock.
    pub begin: u64,
    pub end: u64,
}

/// A named range of the host's time (`record_function`).
#[derive(Clone, Debug)]
pub struct Range {
    pub name: String,
    pub place: Place,
    pub begin: u64,
    pub end: u64,
    pub depth: usize,
    pub rank: Option<usize>,
}

struct Log {
    number: u64,
    began: u64,
    calls: Vec<Call>,
    spans: Vec<Span>,
    ranges: Vec<Range>,
}

/// Counts all requests, and adds them to the log of every running recording.
#[derive(Default)]
pub struct Recorder {
    pub counters: Counters,
    logs: Vec<Log>,
    recordings: u64,
    ranks: u64,
    /// Calls since spans were last fetched.
    unfetched: usize,
}

/// The number of the recording of `Machine::start_trace`. All others are numbered from 1.
pub const TRACE: u64 = 0;

/// Spans are fetched after this many calls, because a driver keeps only its latest spans.
const FETCH_SPANS: usize = 1 << 16;

impl Recorder {
    pub fn start_trace(&mut self, began: u64) {
        self.stop(TRACE);
        self.open(TRACE, began);
    }

    pub fn start(&mut self, began: u64) -> u64 {
        self.recordings += 1;
        self.open(self.recordings, began);
        self.recordings
    }

    fn open(&mut self, number: u64, began: u64) {
        self.logs.push(Log { number, began, calls: Vec::new(), spans: Vec::new(), ranges: Vec::new() });
    }

    pub fn stop(&mut self, number: u64) {
        self.logs.retain(|log| log.number != number);
    }

    /// Reserves 2^40 operation numbers for another rank, and returns the first.
    pub fn numbers_of_a_rank(&mut self) -> OpId {
        self.ranks += 1;
        self.ranks << 40
    }

    pub fn is_recording(&self) -> bool {
        !self.logs.is_empty()
    }

    /// Whether a recording has seen work of this rank for a device.
    pub fn saw(&self, device: usize, rank: Option<usize>) -> bool {
        let mut calls = self.logs.iter().flat_map(|log| &log.calls);
        calls.any(|call| call.stream.device == device && call.op.is_some() && call.rank == rank)
    }

    pub fn wants_spans(&self) -> bool {
        self.unfetched >= FETCH_SPANS
    }

    pub fn keep(&mut self, spans: Vec<Span>) {
        self.unfetched = 0;
        for log in &mut self.logs {
            log.spans.extend(&spans);
        }
    }

    /// Adds a range to the recordings that were running when it began.
    pub fn note_range(&mut self, range: &Range) {
        for log in self.logs.iter_mut().filter(|log| log.began <= range.begin) {
            log.ranges.push(range.clone());
        }
    }

    pub fn note(&mut self, begin: u64, end: u64, stream: StreamId, kind: EventKind, op: Option<OpId>) {
        let counters = &mut self.counters;
        match kind {
            EventKind::Launch { .. }
            | EventKind::CompiledLaunch { .. }
            | EventKind::Gemm { .. }
            | EventKind::Convolution { .. } => counters.launches += 1,
            EventKind::Copy { kind: CopyKind::HostToDevice, bytes } => {
                counters.copies_to_device += 1;
                counters.bytes_to_device += bytes;
            }
            EventKind::Copy { kind: CopyKind::DeviceToHost, bytes } => {
                counters.copies_to_host += 1;
                counters.bytes_to_host += bytes;
            }
            EventKind::Copy { kind: CopyKind::Peer, bytes } => {
                counters.copies_between_devices += 1;
                counters.bytes_between_devices += bytes;
            }
            EventKind::Collective { .. } => counters.collectives += 1,
            EventKind::Synchronize | EventKind::StreamSynchronize | EventKind::EventSynchronize { .. } => {
                counters.synchronizations += 1;
            }
            EventKind::EventRecord { .. }
            | EventKind::StreamWaitEvent { .. }
            | EventKind::Free { .. }
            | EventKind::FreeCompleted { .. }
            | EventKind::MallocHost { .. } => {}
            EventKind::Allocate { .. } => counters.allocations += 1,
            EventKind::DriverMalloc { .. } => counters.driver_mallocs += 1,
            EventKind::DriverFree { .. } => counters.driver_frees += 1,
        }
        if self.is_recording() {
            self.unfetched += 1;
            let (operation, place) = (scope::current_operation(), scope::current_place());
            let call = Call { kind, stream, op, operation, place, rank: HostContext::rank(), begin, end };
            self.logs.iter_mut().for_each(|log| log.calls.push(call));
        }
    }

    /// The contents of a recording; empty if it is not running.
    pub fn trace(&self, number: u64, machine: String, devices: Vec<String>, modelled: bool) -> Trace {
        let Some(log) = self.logs.iter().find(|log| log.number == number) else {
            return Trace { machine, devices, modelled, ..Trace::default() };
        };
        let queued: HashMap<OpId, Call> =
            log.calls.iter().filter_map(|call| Some((call.op?, *call))).collect();
        // Spans of work that was queued before the recording have no call here, and are dropped.
        let call_of = |span: &Span| queued.get(&span.op).copied();
        let mut work: Vec<TracedWork> = log
            .spans
            .iter()
            .filter_map(|span| Some(TracedWork { span: *span, call: call_of(span)? }))
            .collect();
        sort::by_key(&mut work, |work| (work.span.start, work.span.op));
        let (calls, ranges) = (log.calls.clone(), log.ranges.clone());
        Trace { machine, devices, modelled, began: log.began, calls, work, ranges }
    }
}

#[derive(Clone, Debug)]
pub struct TracedWork {
    pub span: Span,
    pub call: Call,
}

/// The record of a run, on the host and on the devices (`Machine::profile`, `Machine::trace`).
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub machine: String,
    pub devices: Vec<String>,
    /// Whether its times come from a virtual clock.
    pub modelled: bool,
    /// When the recording began, in nanoseconds of the host's clock.
    pub began: u64,
    pub calls: Vec<Call>,
    /// Ordered by time.
    pub work: Vec<TracedWork>,
    /// In the order in which they ended.
    pub ranges: Vec<Range>,
}

impl Trace {
    /// Returns the time that device `index` spent on kernels, matrix products and convolutions, without copies.
    ///
    /// ```
    /// # use todevice::{Device, Machine, Tensor};
    /// let machine: Machine = "sim:t4".parse()?;
    /// let (_, trace) = machine.enter(|| machine.profile(|| Tensor::ones((&[3], Device::cuda(0)))));
    /// assert!(trace.compute_time(0) > std::time::Duration::ZERO);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn compute_time(&self, index: usize) -> Duration {
        let spans = self.work.iter().map(|work| work.span);
        let computed = spans.filter(|span| span.stream.device == index && span.engine == Engine::Compute);
        Duration::from_nanos(computed.map(|span| span.end - span.start).sum())
    }

    /// Returns the kernels, matrix products and convolutions of device `index`, in order.
    ///
    /// ```
    /// # use todevice::{Device, Machine, Tensor};
    /// let machine: Machine = "sim:t4".parse()?;
    /// let (_, trace) = machine.enter(|| machine.profile(|| Tensor::ones((&[3], Device::cuda(0)))));
    /// let kernels = trace.kernels(0);
    /// assert_eq!(kernels[0].name, "fill_f32");
    /// assert_eq!(kernels[0].time, Some(trace.compute_time(0)));
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn kernels(&self, index: usize) -> Vec<Kernel> {
        let times: HashMap<OpId, u64> =
            self.work.iter().map(|work| (work.span.op, work.span.end - work.span.start)).collect();
        let calls = self.calls.iter().filter(|call| call.stream.device == index);
        let kernels = calls.filter_map(|call| {
            let (types, workspace) = match call.kind {
                EventKind::Launch { kernel } => (kernel.types.to_vec(), 0),
                EventKind::CompiledLaunch { .. } => (Vec::new(), 0),
                EventKind::Gemm { dtype } => (vec![dtype], 0),
                EventKind::Convolution { dtype, workspace, .. } => (vec![dtype], workspace as u64),
                _ => return None,
            };
            let time = call.op.and_then(|op| times.get(&op)).copied().map(Duration::from_nanos);
            let operation = call.operation.unwrap_or_default();
            Some(Kernel { name: call.kind.name(), operation, types, time, workspace })
        });
        kernels.collect()
    }
}

/// A kernel, a matrix product or a convolution ([`Trace::kernels`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name in the timeline. A convolution's name ends with cuDNN's algorithm: `conv_forward WINOGRAD_NONFUSED`.
    pub name: String,
    /// The operation that launched it: `linear`, or `AddmmBackward0` in the backward pass.
    pub operation: &'static str,
    /// Its dtypes: one, or two for a conversion (from and to). Empty for a kernel that the program compiled.
    pub types: Vec<DType>,
    /// Its duration on the device, if it has run.
    pub time: Option<Duration>,
    /// Bytes of workspace. Only convolutions need one.
    pub workspace: u64,
}
