//! The tasks of a stream.

use super::compiled::Compiled;
use super::convolution::Convolution;
use crate::base::collective::Collective;
use crate::base::gemm::Gemm;
use crate::base::kernel::Launch;
use crate::contract::driver::{DevicePtr, EventId, OpId};

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

    /// The work in another stream that it waits for.
    pub(super) fn waits_for(&self) -> Option<(usize, OpId)> {
        match self {
            Task::Wait { stream, op, .. } => Some((*stream, *op)),
            _ => None,
        }
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
