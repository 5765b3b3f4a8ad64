//! Page-locked host memory. The simulation owns it, because queued copies may use a block that its owner has freed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::errors;
use super::memory::{AddressSpace, BackingBuffer};
use crate::contract::driver::DriverResult;

/// The base address of page-locked memory, apart from every device's addresses.
pub(super) const BASE: u64 = 0x7fa0_0000_0000;
const PAGE: u64 = 4096;

const MOST_SPARE: usize = 64 << 20;

pub(super) struct PinnedSpace {
    space: AddressSpace,
    blocks: BTreeMap<u64, PinnedBlock>,
    /// A buffer for the next pageable copy, because fresh memory costs more than the copy.
    spare: Option<BackingBuffer>,
    has_contents: bool,
}

struct PinnedBlock {
    bytes: usize,
    /// Queued copies from or to it.
    uses: u32,
    given_back: bool,
    staging: bool,
}

impl PinnedSpace {
    pub(super) fn new(has_contents: bool) -> PinnedSpace {
        PinnedSpace {
            space: AddressSpace::new(BASE, PAGE, Arc::default()),
            blocks: BTreeMap::new(),
            spare: None,
            has_contents,
        }
    }

    /// Allocates a block immediately, so the call fails if the computer has no memory.
    pub(super) fn take(&mut self, bytes: usize) -> DriverResult<u64> {
        let buffer = if self.has_contents { Some(BackingBuffer::zeroed(bytes)?) } else { None };
        Ok(self.insert(bytes, buffer, false))
    }

    /// Allocates a staging block for the driver, with unspecified contents.
    pub(super) fn take_staging(&mut self, bytes: usize) -> DriverResult<u64> {
        let buffer = match self.spare.take().and_then(|buffer| buffer.resized(bytes)) {
            None if self.has_contents => Some(BackingBuffer::zeroed(bytes)?),
            spare => spare,
        };
        Ok(self.insert(bytes, buffer, true))
    }

    fn insert(&mut self, bytes: usize, buffer: Option<BackingBuffer>, staging: bool) -> u64 {
        let address = self.space.insert_with(bytes, buffer);
        self.blocks.insert(address, PinnedBlock { bytes, uses: 0, given_back: false, staging });
        address
    }

    pub(super) fn give_back(&mut self, address: u64) -> DriverResult<()> {
        match self.blocks.get_mut(&address) {
            Some(block) if !block.given_back => block.given_back = true,
            _ => return Err(errors::invalid_value()),
        }
        self.remove_if_unused(address);
        Ok(())
    }

    /// Called when a copy from or to the block is queued.
    pub(super) fn hold(&mut self, address: u64) {
        if let Some((_, block)) = self.block_of(address) {
            block.uses += 1;
        }
    }

    pub(super) fn release(&mut self, address: u64) {
        if let Some((start, block)) = self.block_of(address) {
            block.uses -= 1;
            self.remove_if_unused(start);
        }
    }

    /// Whether the range is in a block with an owner.
    pub(super) fn is_owned(&mut self, address: u64, bytes: usize) -> bool {
        self.block_of(address).is_some_and(|(start, block)| {
            let offset = address - start;
            !block.given_back && (offset as usize) <= block.bytes && bytes <= block.bytes - offset as usize
        })
    }

    pub(super) fn size_at(&self, address: u64) -> Option<usize> {
        self.blocks.get(&address).filter(|block| !block.given_back).map(|block| block.bytes)
    }

    pub(super) fn is_staging(&self, address: u64) -> bool {
        self.blocks.range(..=address).next_back().is_some_and(|(_, block)| block.staging)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn space(&mut self) -> &mut AddressSpace {
        &mut self.space
    }

    fn block_of(&mut self, address: u64) -> Option<(u64, &mut PinnedBlock)> {
        self.blocks.range_mut(..=address).next_back().map(|(start, block)| (*start, block))
    }

    fn remove_if_unused(&mut self, address: u64) {
        let Some(block) = self.blocks.get(&address).filter(|block| block.given_back && block.uses == 0)
        else {
            return;
        };
        let staging = block.staging;
        self.blocks.remove(&address);
        let buffer = self.space.take(address).flatten();
        if staging {
            let larger = buffer.into_iter().chain(self.spare.take()).max_by_key(BackingBuffer::capacity);
            self.spare = larger.filter(|buffer| buffer.capacity() <= MOST_SPARE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staging_buffers_are_used_again_and_an_owners_are_fresh() {
        let mut pinned = PinnedSpace::new(true);
        let first = pinned.take_staging(1000).unwrap();
        pinned.space().write(first, &[7; 1000]).unwrap();
        pinned.give_back(first).unwrap();
        let smaller = pinned.take_staging(100).unwrap();
        assert_eq!(pinned.space().bytes(smaller, 100).unwrap(), [7; 100], "it is the same memory");
        assert_eq!(pinned.space().bytes(smaller, 101), Err(errors::illegal_address()));
        pinned.give_back(smaller).unwrap();
        let larger = pinned.take_staging(2000).unwrap();
        assert_eq!(pinned.space().bytes(larger, 2000).unwrap(), [0; 2000]);
        pinned.give_back(larger).unwrap();
        let owned = pinned.take(500).unwrap();
        assert_eq!(pinned.space().bytes(owned, 500).unwrap(), [0; 500]);
    }

    #[test]
    fn a_block_lives_as_long_as_its_owner_or_its_last_use() {
        let mut pinned = PinnedSpace::new(true);
        let (a, b) = (pinned.take(10_000).unwrap(), pinned.take(10).unwrap());
        pinned.hold(a + 5_000);
        pinned.hold(a);
        pinned.give_back(a).unwrap();
        pinned.release(a);
        assert_eq!((pinned.count(), pinned.is_owned(a, 1)), (2, false));
        pinned.release(a + 5_000);
        assert_eq!((pinned.count(), pinned.is_owned(b, 10), pinned.is_owned(b, 11)), (1, true, false));
    }
}
