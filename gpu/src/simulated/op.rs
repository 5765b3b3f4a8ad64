//! Pieces of work, and the queues they wait in.

use std::collections::VecDeque;

use super::compiled::Compiled;
use super::convolution::Convolution;
use crate::base::collective::Collective;
use crate::base::gemm::Gemm;
use crate::base::kernel::Launch;
use crate::contract::driver::{DevicePtr, EventId, OpId, StreamId};

/// A piece of work in a stream. It names memory by address and holds no borrows: the contents that it finds there are
/// those at the time when it runs.
pub(super) struct Op {
    pub(super) id: OpId,
    /// The earliest time at which it can begin: the host needs time to tell the device.
    pub(super) earliest: u64,
    pub(super) duration: u64,
    /// The engine that runs it; `None` for markers in the stream, which take no time.
    pub(super) engine: Option<usize>,
    pub(super) task: Task,
}

/// What a piece of work does.
#[allow(clippy::large_enum_variant)] // Most are kernels, and a box would cost an allocation each.
pub(super) enum Task {
    Kernel(Launch),
    Compiled(Box<Compiled>),
    Gemm(Gemm),
    Convolution(Convolution),
    Copy(CopyTask),
    Collective(Box<Collective>),
    Memset {
        to: DevicePtr,
        value: u8,
        bytes: usize,
    },
    Record(EventId),
    /// Waits for a piece of work in another stream: what an event had recorded when the wait was queued.
    Wait {
        stream: usize,
        op: OpId,
        /// The time of the call: if the work had run by then, there was nothing to wait for.
        asked: u64,
    },
}

/// A copy from one place to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyTask {
    pub(super) from: End,
    pub(super) to: End,
    pub(super) bytes: usize,
}

/// Memory that engines can access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Device { device: usize, address: u64 },
    Pinned(u64),
}

/// The number of slices of a copy, each of which moves at its own time.
const SLICES: usize = 8;

/// The number of bytes that a copy engine moves at once: a copy never tears within them.
const SECTOR: usize = 32;

impl Task {
    pub(super) fn slices(&self) -> usize {
        if matches!(self, Task::Copy(_)) { SLICES } else { 1 }
    }

    /// Collectives run side by side: if one kept the others off the link until all its processes arrived, those
    /// processes might never arrive.
    pub(super) fn shares_its_engine(&self) -> bool {
        matches!(self, Task::Collective(_))
    }
}

impl CopyTask {
    /// The slice of that number: its start and its length in bytes.
    pub(super) fn slice(&self, number: usize) -> (usize, usize) {
        let border = |number: usize| match number {
            SLICES => self.bytes,
            _ => (self.bytes / SLICES * number + self.bytes % SLICES * number / SLICES) / SECTOR * SECTOR,
        };
        (border(number), border(number + 1) - border(number))
    }

    pub(super) fn places(&self) -> [End; 2] {
        [self.from, self.to]
    }

    pub(super) fn touches(&self, device: usize) -> bool {
        self.places().iter().any(|place| matches!(place, End::Device { device: on, .. } if *on == device))
    }
}

impl End {
    pub(super) fn offset(self, bytes: usize) -> End {
        match self {
            End::Device { device, address } => End::Device { device, address: address + bytes as u64 },
            End::Pinned(address) => End::Pinned(address + bytes as u64),
        }
    }
}

/// A queue of work, done in order.
pub(super) struct Queue {
    pub(super) id: StreamId,
    /// Whether it keeps order with the default stream.
    pub(super) blocking: bool,
    pub(super) queue: VecDeque<Op>,
    pub(super) head: Head,
    /// The end of its last work that has run.
    pub(super) ended: u64,
}

/// The progress of the first piece of work of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// It waits for work in other streams, or there is no work.
    Waiting,
    /// An engine may take it, from that time on.
    Ready(u64),
    /// It has reached a collective at that time, and other processes may not have.
    Arrived(u64),
    /// `slices` parts are done, and the next will be at `next`.
    Running { start: u64, slices: usize, next: u64 },
}

impl Queue {
    pub(super) fn new(id: StreamId, blocking: bool) -> Queue {
        let queue = VecDeque::new();
        Queue { id, blocking, queue, head: Head::Waiting, ended: 0 }
    }

    /// Whether its work up to and including that piece has run.
    pub(super) fn has_run(&self, op: OpId) -> bool {
        self.queue.front().is_none_or(|front| front.id > op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::each_case::each_case;

    #[test]
    fn slices_of_a_copy_are_whole_sectors_and_cover_it() {
        each_case([0, 1, 31, 32, 100, 4096, 4097, 1_000_003], |bytes| {
            let copy = CopyTask { from: End::Pinned(0), to: End::Pinned(0), bytes };
            let mut end = 0;
            for number in 0..SLICES {
                let (start, length) = copy.slice(number);
                assert_eq!(start, end);
                assert!(start.is_multiple_of(SECTOR) || length == 0);
                end = start + length;
            }
            assert_eq!(end, bytes);
        });
    }
}
