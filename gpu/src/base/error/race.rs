//! GPU0003, a data race: two unordered uses of the same memory, at least one of them a write.

use crate::base::place::Place;
use std::fmt::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Race {
    /// The GPU that owns the memory. For page-locked memory, the GPU of the earlier work.
    pub device: usize,
    pub pinned: bool,
    /// The operation that was queued first, and the one that races with it.
    pub operations: [RacingOperation; 2],
    /// The size of the common range, from its first byte to its last.
    pub bytes: u64,
    /// Whether the memory was freed after the first use, and belongs to another tensor at the second.
    pub reused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RacingOperation {
    /// The operation's name in the program, else the kernel's name.
    pub operation: &'static str,
    pub place: Option<Place>,
    pub worker: RacingWorker,
    pub access: RacingAccess,
    /// The size of the used range, from its first byte to its last.
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RacingWorker {
    Host,
    /// Number 0 is the default stream.
    Stream {
        device: usize,
        number: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RacingAccess {
    Read,
    Write,
    Free,
}

/// The kind of a race, in the terms of compute-sanitizer's racecheck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RaceKind {
    /// RAW: the value may not have been written yet.
    ReadAfterWrite,
    /// WAR: the overwritten value may still be needed.
    WriteAfterRead,
    /// WAW: either value may remain.
    WriteAfterWrite,
    /// Memory that may be in use is freed.
    FreeInUse,
}

impl Race {
    pub fn kind(&self) -> RaceKind {
        match self.operations.map(|operation| operation.access) {
            [_, RacingAccess::Free] => RaceKind::FreeInUse,
            [RacingAccess::Read, _] => RaceKind::WriteAfterRead,
            [_, RacingAccess::Read] => RaceKind::ReadAfterWrite,
            _ => RaceKind::WriteAfterWrite,
        }
    }

    /// The full report: both operations, their lines, and the fix.
    pub fn report(&self) -> String {
        let [_, second] = &self.operations;
        let mut report = format!("error[GPU0003]: {self}\n");
        if let Some(place) = second.place {
            let _ = writeln!(report, "  --> {place}: {}", second.operation);
        }
        let width = self.operations.iter().map(|racing| racing.operation.len()).max().unwrap_or(0);
        for RacingOperation { operation, place, worker, access, bytes } in &self.operations {
            let does = access.does();
            let _ =
                writeln!(report, "   = {operation:width$}  {does} {} on {worker}", plural(*bytes, "byte"));
            if let Some(place) = place {
                let _ = writeln!(report, "     {:width$}  called at {place}", "");
            }
        }
        let shared = plural(self.bytes, "byte");
        let _ = writeln!(report, "   = the two share {shared}, and nothing says which comes first");
        let _ = write!(report, "   = fix: {}", self.fix());
        report
    }

    fn fix(&self) -> String {
        let [RacingOperation { operation, worker: first, .. }, second] = &self.operations;
        match second.worker {
            RacingWorker::Host => format!(
                "synchronize before the host {} it: `stream.synchronize()?` of {first}, or \
                 `event.synchronize()?` of an event recorded there after `{operation}`",
                second.access.does()
            ),
            worker if self.reused => format!(
                "call `tensor.record_stream(&s)?` with {first} as `s` before the first tensor is dropped: its \
                 memory was freed while {first} used it, and {worker} got it for another tensor"
            ),
            worker => format!(
                "make {worker} wait before this line: `s.wait_stream(&t)?` with {first} as `t`, or \
                 `s.wait_event(&event)?` for an event recorded there after `{operation}`"
            ),
        }
    }
}

/// The first sentence of the report.
impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = &self.operations;
        write!(f, "Data race on cuda:{}: ", self.device)?;
        match second.worker {
            RacingWorker::Host => write!(f, "the host")?,
            worker => write!(f, "`{}` on {worker}", second.operation)?,
        }
        let memory = if self.pinned { "pinned memory" } else { "memory" };
        let doing = if first.access == RacingAccess::Read { "reading" } else { "writing" };
        let does = second.access.does();
        write!(f, " {does} {memory} that `{}` on {} may still be {doing}", first.operation, first.worker)
    }
}

impl fmt::Display for RacingWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RacingWorker::Host => f.write_str("the host"),
            RacingWorker::Stream { device: 0, number } => write!(f, "stream {number}"),
            RacingWorker::Stream { device, number } => write!(f, "stream {number} of cuda:{device}"),
        }
    }
}

impl RacingAccess {
    fn does(self) -> &'static str {
        match self {
            RacingAccess::Read => "reads",
            RacingAccess::Write => "writes",
            RacingAccess::Free => "frees",
        }
    }
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
