//! The contents of a trace's picture, row by row, before drawing.

use todevice_gpu::base::sort;
use todevice_gpu::contract::driver::Engine;
use todevice_gpu::contract::events::{Call, CopyKind, EventKind, Range, Trace, TracedWork};
use todevice_gpu::host::scope::Place;

use super::lanes::ENGINES;
use crate::words;

/// The sort of activity that a bar stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A named range of the host's time.
    Range,
    Copy,
    /// A collective, from the time one of the ranks arrived.
    Collective,
    Kernel,
    Gemm,
    /// The host waits for a device.
    Wait,
    /// The host allocates memory from the driver, or frees it.
    Memory,
}

/// A bar: an activity with times in nanoseconds from the start of the trace.
#[derive(Clone, Debug)]
pub struct Bar {
    pub sort: Sort,
    pub name: String,
    pub start: u64,
    pub end: u64,
    /// The numbers of its pieces, counted over the recording's calls, work and ranges, in this order: its own, and
    /// those of the neighbours that are drawn with it.
    pub pieces: Vec<usize>,
    /// Further details: bytes, the operation and its line, the stream.
    pub more: String,
}

/// The sorts of work, with their names.
pub const SORTS: [(Sort, &str); 6] = [
    (Sort::Copy, "copy"),
    (Sort::Collective, "collective"),
    (Sort::Kernel, "kernel"),
    (Sort::Gemm, "matrix product (gemm)"),
    (Sort::Wait, "the host waits"),
    (Sort::Memory, "memory of the driver"),
];

/// A row of bars in order of time.
#[derive(Clone, Debug)]
pub struct Row {
    pub label: String,
    /// A shorter label for use where there is little room.
    pub short: String,
    /// Whether it shows the host, rather than a device.
    pub on_host: bool,
    /// Whether it shows a device's computation, so that gaps mean the device is idle.
    pub computes: bool,
    /// The row's position among the rows of any recording: the host's calls have 0.
    pub rank: usize,
    pub bars: Vec<Bar>,
}

impl Sort {
    /// Its letter in a picture's data.
    pub fn letter(self) -> char {
        match self {
            Sort::Range => 'r',
            Sort::Copy => 'c',
            Sort::Collective => 'o',
            Sort::Kernel => 'k',
            Sort::Gemm => 'g',
            Sort::Wait => 'w',
            Sort::Memory => 'm',
        }
    }
}

impl Row {
    /// The device of its engine, or `None` for the host.
    pub fn device(&self) -> Option<usize> {
        Some(self.rank.checked_sub(1)? / ENGINES.len())
    }
}

/// The rows of a trace: named ranges, with a row for each depth, and the host's calls, for each rank if there are
/// several; then the engines that worked, for each device.
pub fn rows(trace: &Trace) -> Vec<Row> {
    let mut rows = Vec::new();
    let from_ranges = trace.calls.len() + trace.work.len();
    for program in programs(trace) {
        let host = program.map_or("host".to_owned(), |rank| format!("rank {rank}"));
        let all = || trace.ranges.iter().enumerate().map(|(index, range)| (from_ranges + index, range));
        let ranges = || all().filter(move |(_, range)| range.rank == program);
        let depths = ranges().map(|(_, range)| range.depth + 1).max().unwrap_or(0);
        for depth in 0..depths {
            let ranges = ranges().filter(|(_, range)| range.depth == depth);
            let (label, short) = match depth {
                0 => (format!("{host}, what the program named"), format!("{host}, named")),
                _ => ("  part of it".to_owned(), "  part of it".to_owned()),
            };
            rows.push(row(&label, &short, true, ranges.map(|(piece, range)| range_bar(trace, piece, range))));
        }
        let calls = trace.calls.iter().enumerate().filter(|(_, call)| call.rank == program);
        let label = format!("{host}, calls");
        rows.push(row(&label, &label, true, calls.filter_map(|(index, call)| call_bar(trace, index, call))));
    }
    for device in 0..trace.devices.len() {
        for (index, engine) in ENGINES.into_iter().enumerate() {
            let all = trace.work.iter().enumerate();
            let worked =
                all.filter(|(_, work)| work.span.stream.device == device && work.span.engine == engine);
            let bars = worked.map(|(index, TracedWork { span, call })| {
                let (sort, name) = (sort_of(&call.kind), call.kind.name());
                bar(trace, trace.calls.len() + index, sort, name, (span.start, span.end), more_of(call))
            });
            let [label, short] = labels_of(engine).map(|label| format!("cuda:{device}, {label}"));
            let (computes, rank) = (engine == Engine::Compute, 1 + ENGINES.len() * device + index);
            rows.push(Row { computes, rank, ..row(&label, &short, false, bars) });
        }
    }
    rows.retain(|row| !row.bars.is_empty());
    rows
}

/// The programs that ran on the host: the main one, and those of ranks.
pub(super) fn programs(trace: &Trace) -> Vec<Option<usize>> {
    let calls = trace.calls.iter().map(|call| call.rank);
    let mut programs: Vec<_> = calls.chain(trace.ranges.iter().map(|range| range.rank)).collect();
    sort::by(&mut programs, Ord::cmp);
    programs.dedup();
    programs
}

/// A row of bars in order of start time; bars that start together are ordered by end time.
fn row(label: &str, short: &str, on_host: bool, bars: impl Iterator<Item = Bar>) -> Row {
    let mut bars: Vec<Bar> = bars.collect();
    sort::by_key(&mut bars, |bar| (bar.start, bar.end));
    Row { label: label.to_string(), short: short.to_string(), on_host, computes: false, rank: 0, bars }
}

fn bar(trace: &Trace, piece: usize, sort: Sort, name: String, (start, end): (u64, u64), more: String) -> Bar {
    // A call on another thread may have begun before the recording did.
    let [start, end] = [start, end].map(|time| time.saturating_sub(trace.began));
    Bar { sort, name, start, end, pieces: vec![piece], more }
}

fn range_bar(trace: &Trace, piece: usize, range: &Range) -> Bar {
    bar(trace, piece, Sort::Range, range.name.clone(), (range.begin, range.end), line_of(range.place))
}

/// `training.rs:96`
pub fn line_of(place: Place) -> String {
    let file = place.file().rsplit(['/', '\\']).next().unwrap_or_default();
    format!("{file}:{}", place.line())
}

/// Formats `8 KiB, linear, training.rs:96, stream 3`, as far as known; the default stream is omitted.
fn more_of(call: &Call) -> String {
    let bytes = call.kind.bytes().map(words::bytes);
    let stream = (call.stream.number != 0).then(|| format!("stream {}", call.stream.number));
    let known = [bytes, call.operation.map(str::to_owned), call.place.map(line_of), stream];
    known.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The bar of a host call, if it takes time. A block's time is that of the segment allocated for it.
fn call_bar(trace: &Trace, index: usize, call: &Call) -> Option<Bar> {
    let sort = match call.kind {
        EventKind::Allocate { .. } | EventKind::Free { .. } | EventKind::FreeCompleted { .. } => return None,
        // Marks, which take the host no noticeable time.
        EventKind::EventRecord { .. } | EventKind::StreamWaitEvent { .. } => return None,
        // It returns when the bytes have arrived, so the host mostly waits.
        EventKind::Copy { kind: CopyKind::DeviceToHost, .. } => Sort::Wait,
        _ => sort_of(&call.kind),
    };
    let times = (call.begin, call.end);
    (call.end > call.begin)
        .then(|| bar(trace, index, sort, call.kind.call().to_string(), times, more_of(call)))
}

fn sort_of(kind: &EventKind) -> Sort {
    match kind {
        EventKind::Launch { .. } | EventKind::CompiledLaunch { .. } => Sort::Kernel,
        EventKind::Gemm { .. } | EventKind::Convolution { .. } => Sort::Gemm,
        EventKind::Copy { .. } => Sort::Copy,
        EventKind::Collective { .. } => Sort::Collective,
        EventKind::Synchronize
        | EventKind::StreamSynchronize
        | EventKind::EventSynchronize { .. }
        | EventKind::EventRecord { .. }
        | EventKind::StreamWaitEvent { .. } => Sort::Wait,
        EventKind::Allocate { .. }
        | EventKind::Free { .. }
        | EventKind::FreeCompleted { .. }
        | EventKind::DriverMalloc { .. }
        | EventKind::DriverFree { .. }
        | EventKind::MallocHost { .. } => Sort::Memory,
    }
}

/// An engine's row label, and its short form.
pub fn labels_of(engine: Engine) -> [&'static str; 2] {
    match engine {
        Engine::HostToDevice => ["copies to the device", "copies in"],
        Engine::Compute => ["compute", "compute"],
        Engine::DeviceToHost => ["copies to the host", "copies out"],
        Engine::Peer => ["copies to another device", "to a peer"],
    }
}

/// The possible distances between an axis's ticks: 1, 2, 5, 10, 20 and so on.
pub fn steps() -> impl Iterator<Item = u64> {
    let decades = (0..).map(|power| 10u64.saturating_pow(power));
    decades.flat_map(|decade| [1, 2, 5].map(|times: u64| times.saturating_mul(decade)))
}
