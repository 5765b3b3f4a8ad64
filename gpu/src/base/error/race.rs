//! GPU0003, a data race: two pieces of work use the same memory, at least one of them changes it, and nothing
//! says which comes first.

use std::fmt::{self, Write};
use std::panic::Location;

/// Two uses of the same memory that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Race {
    /// The GPU whose memory it is; of page-locked memory, the GPU that does the earlier work.
    pub device: usize,
    /// Whether it is page-locked memory of the host.
    pub pinned: bool,
    /// What was queued first, and what was found to race with it.
    pub operations: [RacingOperation; 2],
    /// Bytes that both use, from the first to the last.
    pub bytes: u64,
    /// Whether the memory was freed after the first and belongs to another tensor at the second.
    pub reused: bool,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RacingOperation {
    /// What the program calls it; a kernel's name where it is no operation.
    pub operation: &'static str,
    /// The line of the program that asked for it, where that is known.
    pub place: Option<&'static Location<'static>>,
    /// Who does it.
    pub worker: RacingWorker,
    /// What it does to the memory.
    pub access: RacingAccess,
    /// Bytes it uses in one piece, from the first to the last.
    pub bytes: u64,
}

/// Who does work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RacingWorker {
    /// The program itself.
    Host,
    /// A stream. Number 0 is the default stream.
    Stream {
        /// The GPU that it is a stream of.
        device: usize,
        /// Its number.
        number: u32,
    },
}

/// What is done to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RacingAccess {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is given back.
    Free,
}

/// What kind of race it is, in the words of compute-sanitizer's racecheck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RaceKind {
    /// RAW: what is read may not be there yet.
    ReadAfterWrite,
    /// WAR: what is overwritten may still be needed.
    WriteAfterRead,
    /// WAW: either may be the one that stays.
    WriteAfterWrite,
    /// Memory is given back that may still be needed.
    FreeInUse,
}

impl Race {
    /// What kind of race it is.
    pub fn kind(&self) -> RaceKind {
        match self.operations.map(|operation| operation.access) {
            [_, RacingAccess::Free] => RaceKind::FreeInUse,
            [RacingAccess::Read, _] => RaceKind::WriteAfterRead,
            [_, RacingAccess::Read] => RaceKind::ReadAfterWrite,
            _ => RaceKind::WriteAfterWrite,
        }
    }

    /// The whole story: both operations, their lines, and the fix.
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

/// The sentence alone.
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
