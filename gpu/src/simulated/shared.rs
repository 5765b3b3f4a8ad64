//! Ranges of memory that share bytes until they are written.
//!
//! After a collective, each rank has the result in its memory. On hardware, each device writes it. Here one computer
//! would write it for all devices, so the ranges and their copies share one set of bytes. A range gets separate bytes
//! when a part of it is written. If all of it is overwritten, it needs none of the old ones.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The contents of a range: a part of shared bytes.
#[derive(Clone)]
pub(super) struct Shared {
    whole: Arc<Vec<u8>>,
    part: Range<usize>,
}

impl Shared {
    pub(super) fn new(whole: Arc<Vec<u8>>, part: Range<usize>) -> Shared {
        Shared { whole, part }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.whole[self.part.clone()]
    }

    /// A part of it. `part` counts from its start.
    pub(super) fn part(&self, part: Range<usize>) -> Shared {
        let start = self.part.start;
        Shared { whole: self.whole.clone(), part: start + part.start..start + part.end }
    }

    fn end(&self, address: u64) -> u64 {
        address + self.part.len() as u64
    }
}

/// The shared ranges of an address space, by start address. They are not empty, and do not overlap.
#[derive(Default)]
pub(super) struct SharedRanges(BTreeMap<u64, Shared>);

impl SharedRanges {
    pub(super) fn insert(&mut self, address: u64, shared: Shared) {
        self.discard(address, shared.part.len());
        if !shared.part.is_empty() {
            self.0.insert(address, shared);
        }
    }

    /// The shared range that contains a range, and the offset in it.
    pub(super) fn around(&self, address: u64, bytes: usize) -> Option<(&Shared, usize)> {
        let (start, shared) = self.0.range(..=address).next_back()?;
        let offset = usize::try_from(address - start).ok()?;
        (bytes > 0 && offset.saturating_add(bytes) <= shared.part.len()).then_some((shared, offset))
    }

    /// Removes the last shared range that overlaps a range. Returns all of it, with its address.
    pub(super) fn take_last(&mut self, address: u64, bytes: usize) -> Option<(u64, Shared)> {
        let (start, shared) = self.0.range(..address.saturating_add(bytes as u64)).next_back()?;
        let start = (bytes > 0 && address < shared.end(*start)).then_some(*start)?;
        Some((start, self.0.remove(&start)?))
    }

    /// Ends the sharing of a range.
    pub(super) fn discard(&mut self, address: u64, bytes: usize) {
        let end = address.saturating_add(bytes as u64);
        while let Some((start, shared)) = self.take_last(address, bytes) {
            if end < shared.end(start) {
                self.0.insert(end, shared.part((end - start) as usize..shared.part.len()));
            }
            if start < address {
                self.0.insert(start, shared.part(0..(address - start) as usize));
            }
        }
    }
}
