//! An address space whose memory the simulation owns: that of a device, and that of page-locked buffers.
//!
//! Work names memory by address, never by reference: a block may be freed, reused and overwritten while work
//! that names it is still queued, and then the work finds what is there, as on hardware. Every access is
//! checked against the blocks there are. A block costs the computer nothing until it is touched.

use smallvec::SmallVec;

use super::errors;
use crate::cuda::driver::DriverResult;

/// Buffers begin at a multiple of this, for any vector type.
const ALIGNMENT: usize = 64;

/// A range of memory that a piece of work reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) address: u64,
    pub(super) bytes: usize,
    pub(super) write: bool,
}

impl Access {
    pub(super) fn overlaps(&self, other: &Access) -> bool {
        self.bytes > 0
            && other.bytes > 0
            && self.address < other.address + other.bytes as u64
            && other.address < self.address + self.bytes as u64
    }
}

/// The memory of an [`Access`].
pub(super) enum Bytes<'m> {
    Read(&'m [u8]),
    Write(&'m mut [u8]),
}

impl<'m> Bytes<'m> {
    pub(super) fn read(self) -> Option<&'m [u8]> {
        match self {
            Bytes::Read(bytes) => Some(bytes),
            Bytes::Write(_) => None,
        }
    }
}

/// Memory of the computer for one block. Made zeroed by the system, so that pages no one touches cost
/// nothing; of `u128`, because that is the widest alignment for which it is.
pub(super) struct Buffer {
    words: Vec<u128>,
    /// Where the aligned part begins.
    start: usize,
    bytes: usize,
}

impl Buffer {
    pub(super) fn zeroed(bytes: usize) -> DriverResult<Buffer> {
        let words = bytes.div_ceil(size_of::<u128>()) + ALIGNMENT / size_of::<u128>();
        let words: Vec<u128> =
            bytemuck::allocation::try_zeroed_vec(words).map_err(|()| errors::out_of_host_memory(bytes))?;
        let start = words.as_ptr().cast::<u8>().align_offset(ALIGNMENT);
        Ok(Buffer { words, start, bytes })
    }

    pub(super) fn copy_of(bytes: &[u8]) -> DriverResult<Buffer> {
        let mut buffer = Buffer::zeroed(bytes.len())?;
        let start = buffer.start;
        bytemuck::cast_slice_mut(&mut buffer.words)[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(buffer)
    }

    /// As many bytes of it, with what they hold; `None` if it is too small.
    pub(super) fn resized(self, bytes: usize) -> Option<Buffer> {
        (bytes <= self.capacity()).then_some(Buffer { bytes, ..self })
    }

    pub(super) fn capacity(&self) -> usize {
        size_of_val(&self.words[..]) - ALIGNMENT
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[self.start..self.start + self.bytes]
    }

    #[allow(unsafe_code)]
    fn pointer(&mut self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.bytes);
        // SAFETY: `start + offset` is within the words, which `zeroed` made large enough for both.
        unsafe { self.words.as_mut_ptr().cast::<u8>().add(self.start + offset) }
    }
}

struct Segment {
    address: u64,
    bytes: usize,
    /// Made at the first touch.
    buffer: Option<Buffer>,
}

/// Blocks of memory by their addresses.
pub(super) struct AddressSpace {
    base: u64,
    granularity: u64,
    /// In order of their addresses.
    segments: Vec<Segment>,
    /// The segment found last: most accesses are to the same as the one before.
    last: usize,
    taken: u64,
}

impl AddressSpace {
    /// Addresses from `base` on, in multiples of `granularity`.
    pub(super) fn new(base: u64, granularity: u64) -> AddressSpace {
        AddressSpace { base, granularity, segments: Vec::new(), last: 0, taken: 0 }
    }

    /// What a block of that size takes of the memory.
    pub(super) fn size_of(&self, bytes: usize) -> u64 {
        (bytes.max(1) as u64).next_multiple_of(self.granularity)
    }

    /// What all blocks take.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// A new block, in the first gap that is large enough.
    pub(super) fn insert(&mut self, bytes: usize) -> u64 {
        self.insert_with(bytes, None)
    }

    /// The same, with a buffer that there is already.
    pub(super) fn insert_with(&mut self, bytes: usize, buffer: Option<Buffer>) -> u64 {
        let size = self.size_of(bytes);
        let mut address = self.base;
        let gap = self.segments.iter().position(|segment| {
            let fits = address + size <= segment.address;
            if !fits {
                address = segment.address + (segment.bytes.max(1) as u64).next_multiple_of(self.granularity);
            }
            fits
        });
        let index = gap.unwrap_or(self.segments.len());
        self.segments.insert(index, Segment { address, bytes, buffer });
        self.taken += size;
        address
    }

    /// Removes the block that begins there; false if none does.
    pub(super) fn remove(&mut self, address: u64) -> bool {
        self.take(address).is_some()
    }

    /// The same; the memory it had if it was touched.
    pub(super) fn take(&mut self, address: u64) -> Option<Option<Buffer>> {
        let index = self.segments.binary_search_by_key(&address, |segment| segment.address).ok()?;
        let segment = self.segments.remove(index);
        self.taken -= self.size_of(segment.bytes);
        Some(segment.buffer)
    }

    /// Whether the range lies in one block.
    pub(super) fn holds(&mut self, address: u64, bytes: usize) -> bool {
        bytes == 0 || self.find(address, bytes).is_some()
    }

    pub(super) fn read(&mut self, address: u64, into: &mut [u8]) -> DriverResult<()> {
        into.copy_from_slice(self.bytes(address, into.len())?);
        Ok(())
    }

    pub(super) fn write(&mut self, address: u64, from: &[u8]) -> DriverResult<()> {
        self.bytes_mut(address, from.len())?.copy_from_slice(from);
        Ok(())
    }

    #[allow(unsafe_code)]
    pub(super) fn bytes(&mut self, address: u64, bytes: usize) -> DriverResult<&[u8]> {
        let pointer = self.pointer(address, bytes)?;
        // SAFETY: `pointer` has found `bytes` initialized bytes there, which belong to `self`, and `self` is
        // borrowed for as long as they are.
        Ok(unsafe { std::slice::from_raw_parts(pointer, bytes) })
    }

    #[allow(unsafe_code)]
    pub(super) fn bytes_mut(&mut self, address: u64, bytes: usize) -> DriverResult<&mut [u8]> {
        let pointer = self.pointer(address, bytes)?;
        // SAFETY: as in `bytes`; `self` is borrowed mutably, so nothing else refers to them.
        Ok(unsafe { std::slice::from_raw_parts_mut(pointer, bytes) })
    }

    /// Copies a range onto another, which it may overlap.
    #[allow(unsafe_code)]
    pub(super) fn copy_within(&mut self, from: u64, to: u64, bytes: usize) -> DriverResult<()> {
        let (from, to) = (self.pointer(from, bytes)?, self.pointer(to, bytes)?);
        // SAFETY: both have `bytes` initialized bytes that belong to `self`, no reference into it is alive
        // (it is borrowed mutably), and `copy` allows the ranges to overlap.
        unsafe { std::ptr::copy(from, to, bytes) };
        Ok(())
    }

    /// The memory of several ranges at once, in their order. What is written must overlap nothing else.
    #[allow(unsafe_code)]
    pub(super) fn borrow<'m>(&'m mut self, accesses: &[Access]) -> DriverResult<SmallVec<[Bytes<'m>; 6]>> {
        for (index, written) in accesses.iter().enumerate().filter(|(_, access)| access.write) {
            let clashes = |(other, access): (usize, &Access)| other != index && written.overlaps(access);
            if accesses.iter().enumerate().any(clashes) {
                return Err(errors::illegal_address());
            }
        }
        let mut borrowed = SmallVec::new();
        for Access { address, bytes, write } in accesses.iter().copied() {
            let pointer = self.pointer(address, bytes)?;
            // SAFETY: `pointer` has found `bytes` initialized bytes there, which belong to `self`; `self` is
            // borrowed mutably for 'm, and the ranges that become `&mut` overlap no other, checked above.
            borrowed.push(unsafe {
                if write {
                    Bytes::Write(std::slice::from_raw_parts_mut(pointer, bytes))
                } else {
                    Bytes::Read(std::slice::from_raw_parts(pointer, bytes))
                }
            });
        }
        Ok(borrowed)
    }

    /// A pointer to that many bytes. It stays good until its block is removed.
    fn pointer(&mut self, address: u64, bytes: usize) -> DriverResult<*mut u8> {
        if bytes == 0 {
            return Ok(std::ptr::without_provenance_mut(ALIGNMENT));
        }
        let index = self.find(address, bytes).ok_or_else(errors::illegal_address)?;
        let segment = &mut self.segments[index];
        let buffer = match &mut segment.buffer {
            Some(buffer) => buffer,
            none => none.insert(Buffer::zeroed(segment.bytes)?),
        };
        Ok(buffer.pointer((address - segment.address) as usize))
    }

    /// The segment that holds the range.
    fn find(&mut self, address: u64, bytes: usize) -> Option<usize> {
        let holds = |segment: &Segment| {
            let offset = address.checked_sub(segment.address);
            offset.is_some_and(|offset| {
                offset <= segment.bytes as u64 && bytes as u64 <= segment.bytes as u64 - offset
            })
        };
        if !self.segments.get(self.last).is_some_and(holds) {
            let after = self.segments.partition_point(|segment| segment.address <= address);
            self.last = after.checked_sub(1)?;
        }
        holds(&self.segments[self.last]).then_some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> AddressSpace {
        AddressSpace::new(1 << 40, 1 << 21)
    }

    #[test]
    fn blocks_begin_at_whole_pages_and_freed_addresses_come_back() {
        let mut space = space();
        let blocks: Vec<u64> = (0..3).map(|_| space.insert(3 << 20)).collect();
        assert_eq!(blocks, [1 << 40, (1 << 40) + (4 << 20), (1 << 40) + (8 << 20)]);
        assert_eq!(space.taken(), 12 << 20);
        assert!(space.remove(blocks[1]));
        assert!(!space.remove(blocks[1]));
        assert_eq!(space.insert(5 << 20), (1 << 40) + (12 << 20));
        assert_eq!(space.insert(1), blocks[1]);
    }

    #[test]
    fn memory_is_zero_until_written_and_aligned_for_vectors() {
        let mut space = space();
        let block = space.insert(1000);
        assert_eq!(space.bytes(block, 1000).unwrap(), [0; 1000]);
        space.write(block + 3, &[1, 2, 3]).unwrap();
        let mut read = [0; 5];
        space.read(block + 2, &mut read).unwrap();
        assert_eq!(read, [0, 1, 2, 3, 0]);
        assert!(space.bytes(block, 1000).unwrap().as_ptr().addr().is_multiple_of(ALIGNMENT));
    }

    #[test]
    fn a_range_outside_every_block_is_refused() {
        let mut space = space();
        let block = space.insert(1000);
        for (address, bytes) in [(block, 1001), (block + 1000, 1), (block - 1, 1), (0, 4), (u64::MAX, 8)] {
            assert_eq!(space.bytes(address, bytes), Err(errors::illegal_address()), "{address} {bytes}");
        }
        assert!(space.bytes(0, 0).unwrap().is_empty());
        space.remove(block);
        assert_eq!(space.bytes(block, 1), Err(errors::illegal_address()));
    }

    #[test]
    fn an_untouched_block_costs_nothing() {
        let mut space = space();
        let block = space.insert(1 << 45_u32.min(usize::BITS - 2));
        space.insert(10);
        assert!(space.holds(block, 1 << 20));
    }

    #[test]
    fn a_block_the_computer_cannot_give_is_an_error() {
        let mut space = space();
        let block = space.insert(isize::MAX as usize / 2);
        let error = space.bytes(block, 1).unwrap_err();
        assert_eq!((error.code, error.message), (2, "out of memory"));
        assert!(error.detail.unwrap().contains("this computer cannot give"));
    }

    #[test]
    fn what_is_written_is_borrowed_alone() {
        let mut space = space();
        let block = space.insert(100);
        let access = |offset, write| Access { address: block + offset, bytes: 10, write };
        assert!(
            space.borrow(&[access(0, true), access(10, true), access(20, false), access(25, false)]).is_ok()
        );
        assert!(space.borrow(&[access(0, true), access(9, false)]).is_err());
        assert!(space.borrow(&[access(0, false), access(9, true)]).is_err());
        assert!(space.borrow(&[access(0, true), access(0, true)]).is_err());
    }

    #[test]
    fn copies_within_may_overlap() {
        let mut space = space();
        let block = space.insert(8);
        space.write(block, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        space.copy_within(block, block + 2, 6).unwrap();
        assert_eq!(space.bytes(block, 8).unwrap(), [1, 2, 1, 2, 3, 4, 5, 6]);
    }
}
