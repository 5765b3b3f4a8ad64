//! What the GPUs were asked to do: noted at the driver's boundary, counted, and drawn as a timeline.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::ops::Sub;

use crate::cuda::driver::{Engine, OpId, Span, StreamId};
use crate::ops::kernel::KernelDef;
use crate::ops::scope::{self, Place};

/// How often something happened on the GPUs of a machine ([`Machine::counters`](crate::Machine::counters)).
///
/// The difference of two readings is what happened between them; of readings in the wrong order, nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Kernels launched, matrix products included.
    pub launches: u64,
    /// Copies from host to device.
    pub copies_to_device: u64,
    /// Their bytes.
    pub bytes_to_device: u64,
    /// Copies from device to host. Each waits for the device.
    pub copies_to_host: u64,
    /// Their bytes.
    pub bytes_to_host: u64,
    /// Copies from device to device.
    pub copies_between_devices: u64,
    /// Their bytes.
    pub bytes_between_devices: u64,
    /// Times the host was told to wait (`torch.cuda.synchronize`).
    pub synchronizations: u64,
    /// Blocks taken from the caching allocator.
    pub allocations: u64,
    /// Segments the allocator took from the driver (`cudaMalloc`).
    pub driver_mallocs: u64,
    /// Segments it gave back (`cudaFree`).
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
            synchronizations: self.synchronizations.saturating_sub(earlier.synchronizations),
            allocations: self.allocations.saturating_sub(earlier.allocations),
            driver_mallocs: self.driver_mallocs.saturating_sub(earlier.driver_mallocs),
            driver_frees: self.driver_frees.saturating_sub(earlier.driver_frees),
        }
    }
}

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// `Memcpy HtoD`
    HostToDevice,
    /// `Memcpy DtoH`
    DeviceToHost,
    /// `Memcpy PtoP`
    Peer,
}

/// What the driver was asked to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventKind {
    Launch {
        kernel: &'static KernelDef,
    },
    Gemm,
    Copy {
        kind: CopyKind,
        bytes: u64,
    },
    Synchronize,
    /// A block of the caching allocator.
    Allocate {
        address: u64,
        bytes: u64,
    },
    Free {
        address: u64,
    },
    /// A segment of the driver.
    DriverMalloc {
        bytes: u64,
    },
    DriverFree,
}

impl EventKind {
    fn name(&self) -> String {
        match self {
            EventKind::Launch { kernel } => kernel.symbol(),
            EventKind::Gemm => "gemm".to_string(),
            EventKind::Copy { kind: CopyKind::HostToDevice, .. } => "Memcpy HtoD".to_string(),
            EventKind::Copy { kind: CopyKind::DeviceToHost, .. } => "Memcpy DtoH".to_string(),
            EventKind::Copy { kind: CopyKind::Peer, .. } => "Memcpy PtoP".to_string(),
            EventKind::Synchronize => "cudaDeviceSynchronize".to_string(),
            EventKind::Allocate { .. } => "allocate".to_string(),
            EventKind::Free { .. } => "free".to_string(),
            EventKind::DriverMalloc { .. } => "cudaMalloc".to_string(),
            EventKind::DriverFree => "cudaFree".to_string(),
        }
    }

    fn bytes(&self) -> Option<u64> {
        match self {
            EventKind::Copy { bytes, .. }
            | EventKind::Allocate { bytes, .. }
            | EventKind::DriverMalloc { bytes } => Some(*bytes),
            _ => None,
        }
    }

    /// What the host calls to have it done.
    fn call(&self) -> &'static str {
        match self {
            EventKind::Launch { .. } => "cudaLaunchKernel",
            EventKind::Gemm => "cublasGemmEx",
            EventKind::Copy { .. } => "cudaMemcpyAsync",
            EventKind::Synchronize => "cudaDeviceSynchronize",
            EventKind::Allocate { .. } => "allocate",
            EventKind::Free { .. } => "free",
            EventKind::DriverMalloc { .. } => "cudaMalloc",
            EventKind::DriverFree => "cudaFree",
        }
    }
}

/// One call of the driver, as the host saw it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    kind: EventKind,
    stream: StreamId,
    op: Option<OpId>,
    /// The operation of the user's program that it was part of, and its line. A tensor that goes out of scope
    /// frees its memory on no line.
    operation: Option<&'static str>,
    place: Option<Place>,
    /// When the call began and when it returned, in nanoseconds of the host's clock.
    begin: u64,
    end: u64,
}

/// Counts always, and keeps the events themselves while a trace runs.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) counters: Counters,
    events: Option<Vec<Event>>,
    spans: Vec<Span>,
}

/// A driver keeps its latest spans only. After so many calls they are fetched, lest some be lost.
const FETCH_SPANS: usize = 1 << 16;

impl Recorder {
    pub(crate) fn start(&mut self) {
        self.events = Some(Vec::new());
        self.spans.clear();
    }

    /// Whether it is time to fetch the spans of the driver.
    pub(crate) fn wants_spans(&self) -> bool {
        self.events.as_ref().is_some_and(|events| (events.len() + 1).is_multiple_of(FETCH_SPANS))
    }

    /// Keeps what the driver did while a trace runs.
    pub(crate) fn keep(&mut self, spans: Vec<Span>) {
        if self.events.is_some() {
            self.spans.extend(spans);
        }
    }

    pub(crate) fn note(&mut self, begin: u64, end: u64, stream: StreamId, kind: EventKind, op: Option<OpId>) {
        let counters = &mut self.counters;
        match kind {
            EventKind::Launch { .. } | EventKind::Gemm => counters.launches += 1,
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
            EventKind::Synchronize => counters.synchronizations += 1,
            EventKind::Allocate { .. } => counters.allocations += 1,
            EventKind::Free { .. } => {}
            EventKind::DriverMalloc { .. } => counters.driver_mallocs += 1,
            EventKind::DriverFree => counters.driver_frees += 1,
        }
        if let Some(events) = &mut self.events {
            let (operation, place) = (scope::current_operation(), scope::current_place());
            events.push(Event { kind, stream, op, operation, place, begin, end });
        }
    }

    pub(crate) fn trace(&self, devices: Vec<String>) -> Trace {
        let mut spans = self.spans.clone();
        spans.sort_by_key(|span| (span.start, span.op));
        Trace { devices, events: self.events.clone().unwrap_or_default(), spans }
    }
}

/// What happened while a trace ran, on the host and on the devices ([`Machine::trace`](crate::Machine::trace)).
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The names of the devices.
    devices: Vec<String>,
    /// What the host asked for, in order.
    events: Vec<Event>,
    /// When it was done, in order of time. Known for simulated devices.
    spans: Vec<Span>,
}

/// Rows of the timeline: the host is process 0, device `i` is process `i + 1`.
const HOST: usize = 0;

impl Trace {
    /// The timeline in Chrome's trace format, which `ui.perfetto.dev` opens.
    ///
    /// The host has a row of its calls; each device a row for each engine that worked, a piece of work with
    /// an arrow from the call that queued it; and a curve of the bytes allocated on it. Times are in
    /// microseconds, modelled where the devices are simulated.
    pub fn to_chrome_json(&self) -> String {
        let mut rows = vec![metadata("process_name", HOST, 0, "host")];
        for (device, name) in self.devices.iter().enumerate() {
            rows.push(metadata("process_name", device + 1, 0, &format!("cuda:{device} {name}")));
            for engine in ENGINES {
                let worked = |span: &Span| span.stream.device == device && span.engine == engine;
                if self.spans.iter().any(worked) {
                    rows.push(metadata("thread_name", device + 1, engine as usize, name_of(engine)));
                }
            }
        }
        // A call is noted when it returns, after those it made; a reader wants it before them.
        let mut calls: Vec<&Event> = self.events.iter().rev().collect();
        calls.sort_by_key(|call| (call.begin, Reverse(call.end)));
        rows.extend(calls.into_iter().map(host_row));
        let queued: HashMap<OpId, &Event> =
            self.events.iter().filter_map(|event| Some((event.op?, event))).collect();
        for span in &self.spans {
            if let Some(event) = queued.get(&span.op) {
                rows.push(device_row(span, event));
                rows.push(arrow(span, event));
            }
        }
        rows.extend(self.memory_rows());
        format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n", rows.join(",\n"))
    }

    /// The bytes allocated on each device, at each change.
    fn memory_rows(&self) -> Vec<String> {
        let mut live = HashMap::new();
        let mut allocated = vec![0u64; self.devices.len()];
        let mut rows = Vec::new();
        for event in &self.events {
            let device = event.stream.device;
            match event.kind {
                EventKind::Allocate { address, bytes } => {
                    live.insert(address, bytes);
                    allocated[device] += bytes;
                }
                EventKind::Free { address } => match live.remove(&address) {
                    Some(bytes) => allocated[device] -= bytes,
                    None => continue, // It was taken before the trace began.
                },
                _ => continue,
            }
            rows.push(format!(
                r#"{{"ph":"C","name":"allocated bytes","pid":{},"ts":{},"args":{{"bytes":{}}}}}"#,
                device + 1,
                Microseconds(event.end),
                allocated[device]
            ));
        }
        rows
    }
}

const ENGINES: [Engine; 4] = [Engine::Compute, Engine::HostToDevice, Engine::DeviceToHost, Engine::Peer];

fn name_of(engine: Engine) -> &'static str {
    match engine {
        Engine::Compute => "compute",
        Engine::HostToDevice => "copy engine, host to device",
        Engine::DeviceToHost => "copy engine, device to host",
        Engine::Peer => "peer link",
    }
}

fn metadata(what: &str, process: usize, thread: usize, name: &str) -> String {
    format!(r#"{{"ph":"M","name":"{what}","pid":{process},"tid":{thread},"args":{{"name":{}}}}}"#, Text(name))
}

fn host_row(event: &Event) -> String {
    let operation = event.operation.map(|operation| format!(r#""operation":{}"#, Text(operation)));
    let args =
        [place_of(event), operation, bytes_of(event)].into_iter().flatten().collect::<Vec<_>>().join(",");
    // What takes no time is a mark, not a bar.
    let extent = match event.end - event.begin {
        0 => r#""ph":"i","s":"t""#.to_string(),
        duration => format!(r#""ph":"X","dur":{}"#, Microseconds(duration)),
    };
    format!(
        r#"{{{extent},"cat":"host","name":{},"pid":{HOST},"tid":0,"ts":{},"args":{{{args}}}}}"#,
        Text(event.kind.call()),
        Microseconds(event.begin),
    )
}

fn device_row(span: &Span, event: &Event) -> String {
    let stream = Some(format!(r#""stream":{}"#, span.stream.number));
    let args = [stream, place_of(event), bytes_of(event)].into_iter().flatten().collect::<Vec<_>>().join(",");
    format!(
        r#"{{"ph":"X","cat":"device","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{args}}}}}"#,
        Text(&event.kind.name()),
        span.stream.device + 1,
        span.engine as usize,
        Microseconds(span.start),
        Microseconds(span.end - span.start),
    )
}

fn place_of(event: &Event) -> Option<String> {
    event.place.map(|place| format!(r#""place":{}"#, Text(&place.to_string())))
}

fn bytes_of(event: &Event) -> Option<String> {
    event.kind.bytes().map(|bytes| format!(r#""bytes":{bytes}"#))
}

/// From the call of the host to the work it queued.
fn arrow(span: &Span, event: &Event) -> String {
    format!(
        "{{\"ph\":\"s\",\"cat\":\"queued\",\"name\":\"queued\",\"id\":{op},\"pid\":{HOST},\"tid\":0,\"ts\":{begin}}},\n\
         {{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"queued\",\"name\":\"queued\",\"id\":{op},\"pid\":{pid},\"tid\":{tid},\"ts\":{start}}}",
        op = span.op,
        begin = Microseconds(event.begin),
        pid = span.stream.device + 1,
        tid = span.engine as usize,
        start = Microseconds(span.start),
    )
}

/// Nanoseconds, written as microseconds.
struct Microseconds(u64);

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A string as JSON writes it.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' | '\\' => write!(f, "\\{letter}")?,
                control if (control as u32) < 32 => write!(f, "\\u{:04x}", control as u32)?,
                letter => f.write_char(letter)?,
            }
        }
        f.write_char('"')
    }
}
