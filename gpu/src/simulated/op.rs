//! Pieces of work and their queues.

use std::collections::VecDeque;

use super::compiled::Compiled;
use super::convolution::Convolution;
use crate::base::collective::Collective;
use crate::base::gemm::Gemm;
use crate::base::kernel::Launch;
use crate::contract::driver::{DevicePtr, EventId, OpId, StreamId};

/// A piece of work in a stream. It refers to memory by address, and sees the contents at the time when it runs.
pub(super) struct Op {
    pub(super) id: OpId,
    /// The earliest start: a launch takes time to reach the device.
    pub(super) earliest: u64,
    pub(super) duration: u64,
    /// `None` for markers in the stream, which take no time.
    pub(super) engine: Option<usize>,
    pub(super) task: Task,
}

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
    /// Waits for a piece of work in another stream, which an event had recorded at the call.
    Wait {
        stream: usize,
        op: OpId,
        /// The time of the call. Work that had run by then needs no wait.
        asked: u64,
    },
}

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

/// The number of slices of a copy, which move at different times.
const SLICES: usize = 8;

/// The bytes that a copy engine moves at once. A copy never tears within them.
const SECTOR: usize = 32;

impl Task {
    pub(super) fn slices(&self) -> usize {
        if matches!(self, Task::Copy(_)) { SLICES } else { 1 }
    }

    /// Collectives run side by side. Otherwise one could block the link that its missing processes need.
    pub(super) fn shares_its_engine(&self) -> bool {
        matches!(self, Task::Collective(_))
    }
}

impl CopyTask {
    /// Start and length of a slice, in bytes.
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

pub(super) struct Queue {
    pub(super) id: StreamId,
    /// Whether it is ordered with the default stream.
    pub(super) blocking: bool,
    pub(super) queue: VecDeque<Op>,
    pub(super) head: Head,
    pub(super) ended: u64,
}

/// The progress of a queue's first piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// It waits for other streams, or there is no work.
    Waiting,
    /// An engine may take it from this time on.
    Ready(u64),
    /// It has reached a collective at this time, and other processes may not have.
    Arrived(u64),
    /// `slices` slices are done. The next is due at `next`.
    Running { start: u64, slices: usize, next: u64 },
}

impl Queue {
    pub(super) fn new(id: StreamId, blocking: bool) -> Queue {
        let queue = VecDeque::new();
        Queue { id, blocking, queue, head: Head::Waiting, ended: 0 }
    }

    /// Whether its work up to and including `op` has run.
    pub(super) fn has_run(&self, op: OpId) -> bool {
        self.queue.front().is_none_or(|front| front.id > op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_copy_are_whole_sectors_and_cover_it() {
        for bytes in [0, 1, 31, 32, 100, 4096, 4097, 1_000_003] {
            let copy = CopyTask { from: End::Pinned(0), to: End::Pinned(0), bytes };
            let mut end = 0;
            for number in 0..SLICES {
                let (start, length) = copy.slice(number);
                assert_eq!(start, end);
                assert!(start.is_multiple_of(SECTOR) || length == 0);
                end = start + length;
            }
            assert_eq!(end, bytes);
        }
    }
}
