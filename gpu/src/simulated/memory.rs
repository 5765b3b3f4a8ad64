//! The address space of a device, or of page-locked memory.
//!
//! Work refers to memory by address. A block may be freed, reused and overwritten while it is used by queued work,
//! which then sees the current contents, as on hardware. Every access is checked against the existing blocks. A block
//! takes no memory of the computer until it is touched, and a shared range none until it is written (`shared.rs`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::errors;
use super::shared::{Shared, SharedRanges};
use crate::contract::driver::DriverResult;

/// The alignment of buffers, enough for any vector type.
const ALIGNMENT: usize = 64;

/// The largest alignment of an element.
const ELEMENT_ALIGNMENT: usize = 8;

/// The minimum bytes of a shared range. Copying fewer is cheap.
const WORTH_SHARING: usize = 64 << 10;

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

/// The computer's memory for one block, zeroed by the system, so that untouched pages take no memory. `u128` is the
/// widest type for which this works.
pub(super) struct BackingBuffer {
    words: Vec<u128>,
    start: usize,
    bytes: usize,
}

impl BackingBuffer {
    pub(super) fn zeroed(bytes: usize) -> DriverResult<BackingBuffer> {
        let words = bytes.div_ceil(size_of::<u128>()) + ALIGNMENT / size_of::<u128>();
        let words: Vec<u128> =
            bytemuck::allocation::try_zeroed_vec(words).map_err(|()| errors::out_of_host_memory(bytes))?;
        let start = words.as_ptr().cast::<u8>().align_offset(ALIGNMENT);
        Ok(BackingBuffer { words, start, bytes })
    }

    /// Resizes the buffer, and keeps its contents. `None` if it is too small.
    pub(super) fn resized(self, bytes: usize) -> Option<BackingBuffer> {
        (bytes <= self.capacity()).then_some(BackingBuffer { bytes, ..self })
    }

    pub(super) fn capacity(&self) -> usize {
        size_of_val(&self.words[..]) - ALIGNMENT
    }

    #[allow(unsafe_code)]
    fn pointer(&mut self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.bytes);
        // SAFETY: `start + offset` is within the words, which `zeroed` made large enough for both.
        unsafe { self.words.as_mut_ptr().cast::<u8>().add(self.start + offset) }
    }
}

/// The computer's memory for the simulated memory of a machine. A GPU's profile may have more than the computer has. A
/// system that overcommits would kill the program when it touches the memory, or swap endlessly.
#[derive(Default)]
pub(super) struct Room {
    /// The bytes available at the first touch of a block. The inner `None` if unknown.
    limit: OnceLock<Option<u64>>,
    taken: AtomicU64,
}

impl Room {
    /// Whether a block fits. Counts earlier blocks, because the system's figure does not include unwritten memory.
    fn has(&self, bytes: usize) -> bool {
        let available = available_memory();
        let limit = self.limit.get_or_init(|| available);
        let fits = |bytes: u64, room: &Option<u64>| room.is_none_or(|room| bytes <= room / 10 * 9);
        let taken = self.taken.load(Ordering::Relaxed).saturating_add(bytes as u64);
        fits(bytes as u64, &available) && fits(taken, limit)
    }

    fn give(&self, bytes: usize) -> DriverResult<BackingBuffer> {
        if !self.has(bytes) {
            return Err(errors::out_of_host_memory(bytes));
        }
        let buffer = BackingBuffer::zeroed(bytes)?;
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(buffer)
    }

    fn take_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

/// Bytes that can be allocated without swapping, if the system reports them.
fn available_memory() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

struct Segment {
    address: u64,
    bytes: usize,
    /// Allocated at the first touch.
    buffer: Option<BackingBuffer>,
    /// Whether a touch allocated it, so that it counts as taken.
    is_given: bool,
}

impl Segment {
    fn touch(&mut self, room: &Room) -> DriverResult<&mut BackingBuffer> {
        match &mut self.buffer {
            Some(buffer) => Ok(buffer),
            none => {
                let buffer = none.insert(room.give(self.bytes)?);
                self.is_given = true;
                Ok(buffer)
            }
        }
    }
}

pub(super) struct AddressSpace {
    base: u64,
    granularity: u64,
    /// Sorted by address.
    segments: Vec<Segment>,
    /// The index of the segment found last, because most accesses are to the same segment.
    last: usize,
    taken: u64,
    room: Arc<Room>,
    shared: SharedRanges,
}

impl AddressSpace {
    /// Creates an address space at `base`. Blocks begin at multiples of `granularity`.
    pub(super) fn new(base: u64, granularity: u64, room: Arc<Room>) -> AddressSpace {
        let shared = SharedRanges::default();
        AddressSpace { base, granularity, segments: Vec::new(), last: 0, taken: 0, room, shared }
    }

    /// The memory that a block of `bytes` bytes takes up.
    pub(super) fn size_of(&self, bytes: usize) -> u64 {
        (bytes.max(1) as u64).next_multiple_of(self.granularity)
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn can_back(&self, bytes: usize) -> bool {
        self.room.has(bytes)
    }

    /// Adds a block in the first sufficient gap. Returns its address.
    pub(super) fn insert(&mut self, bytes: usize) -> u64 {
        self.insert_with(bytes, None)
    }

    pub(super) fn insert_with(&mut self, bytes: usize, buffer: Option<BackingBuffer>) -> u64 {
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
        self.segments.insert(index, Segment { address, bytes, buffer, is_given: false });
        self.taken += size;
        address
    }

    pub(super) fn size_at(&self, address: u64) -> Option<usize> {
        let index = self.segments.binary_search_by_key(&address, |segment| segment.address).ok()?;
        Some(self.segments[index].bytes)
    }

    pub(super) fn remove(&mut self, address: u64) -> bool {
        self.take(address).is_some()
    }

    /// Removes the block at `address`. Returns its memory, if it was touched.
    pub(super) fn take(&mut self, address: u64) -> Option<Option<BackingBuffer>> {
        let index = self.segments.binary_search_by_key(&address, |segment| segment.address).ok()?;
        let segment = self.segments.remove(index);
        self.shared.discard(address, segment.bytes);
        self.taken -= self.size_of(segment.bytes);
        if segment.is_given {
            self.room.take_back(segment.bytes);
        }
        Some(segment.buffer)
    }

    /// Whether the range is within one block.
    pub(super) fn holds(&mut self, address: u64, bytes: usize) -> bool {
        bytes == 0 || self.find(address, bytes).is_some()
    }

    pub(super) fn read(&mut self, address: u64, into: &mut [u8]) -> DriverResult<()> {
        into.copy_from_slice(self.bytes(address, into.len())?);
        Ok(())
    }

    pub(super) fn write(&mut self, address: u64, from: &[u8]) -> DriverResult<()> {
        self.discard(address, from.len());
        self.bytes_mut(address, from.len())?.copy_from_slice(from);
        Ok(())
    }

    pub(super) fn share(&mut self, address: u64, shared: Shared) -> DriverResult<()> {
        let bytes = shared.bytes();
        let lies_alike =
            bytes.as_ptr().addr() % ELEMENT_ALIGNMENT == (address % ELEMENT_ALIGNMENT as u64) as usize;
        if bytes.len() < WORTH_SHARING || !lies_alike {
            return self.write(address, bytes);
        }
        self.find(address, bytes.len()).ok_or_else(errors::illegal_address)?;
        self.shared.insert(address, shared);
        Ok(())
    }

    /// The contents of a range, if they are shared.
    pub(super) fn shared(&self, address: u64, bytes: usize) -> Option<Shared> {
        let (shared, offset) = self.shared.around(address, bytes)?;
        Some(shared.part(offset..offset + bytes))
    }

    /// Drops the shared contents of a range that will be overwritten completely.
    pub(super) fn discard(&mut self, address: u64, bytes: usize) {
        self.shared.discard(address, bytes);
    }

    /// Gives a range separate bytes, unless it is only read and within a shared range.
    fn settle(&mut self, Access { address, bytes, write }: Access) -> DriverResult<()> {
        if !write && self.shared.around(address, bytes).is_some() {
            return Ok(());
        }
        while let Some((start, shared)) = self.shared.take_last(address, bytes) {
            self.write(start, shared.bytes())?;
        }
        Ok(())
    }

    #[allow(unsafe_code)]
    pub(super) fn bytes(&mut self, address: u64, bytes: usize) -> DriverResult<&[u8]> {
        self.settle(Access { address, bytes, write: false })?;
        let pointer = self.pointer_to_read(address, bytes)?;
        // SAFETY: `pointer_to_read` found `bytes` initialized bytes, which `self` owns. The slice borrows `self`.
        Ok(unsafe { std::slice::from_raw_parts(pointer, bytes) })
    }

    #[allow(unsafe_code)]
    pub(super) fn bytes_mut(&mut self, address: u64, bytes: usize) -> DriverResult<&mut [u8]> {
        self.settle(Access { address, bytes, write: true })?;
        let pointer = self.pointer(address, bytes)?;
        // SAFETY: as in `bytes`, in a separate block. `self` is borrowed mutably, so nothing else refers to the bytes.
        Ok(unsafe { std::slice::from_raw_parts_mut(pointer, bytes) })
    }

    /// Copies a range to another one, which may overlap it.
    #[allow(unsafe_code)]
    pub(super) fn copy_within(&mut self, from: u64, to: u64, bytes: usize) -> DriverResult<()> {
        if let Some(shared) = self.shared(from, bytes) {
            return self.share(to, shared);
        }
        for address in [from, to] {
            self.settle(Access { address, bytes, write: true })?;
        }
        let (from, to) = (self.pointer(from, bytes)?, self.pointer(to, bytes)?);
        // SAFETY: both pointers lead to `bytes` initialized bytes that `self` owns. `self` is borrowed mutably, so no
        // reference to them is alive. `copy` allows the ranges to overlap.
        unsafe { std::ptr::copy(from, to, bytes) };
        Ok(())
    }

    /// Borrows the memory of several ranges at once, in the given order. A written range must not overlap another.
    #[allow(unsafe_code)]
    pub(super) fn borrow<'m>(&'m mut self, accesses: &[Access]) -> DriverResult<SmallVec<[Bytes<'m>; 6]>> {
        for (index, written) in accesses.iter().enumerate().filter(|(_, access)| access.write) {
            let clashes = |(other, access): (usize, &Access)| other != index && written.overlaps(access);
            if accesses.iter().enumerate().any(clashes) {
                return Err(errors::illegal_address());
            }
        }
        // All ranges first, because settling one may end the sharing of another.
        accesses.iter().try_for_each(|access| self.settle(*access))?;
        let mut borrowed = SmallVec::new();
        for Access { address, bytes, write } in accesses.iter().copied() {
            let pointer = match write {
                true => self.pointer(address, bytes)?,
                false => self.pointer_to_read(address, bytes)?.cast_mut(),
            };
            // SAFETY: `self` owns `bytes` initialized bytes there, and settles no range from here on. It is borrowed
            // mutably for 'm. The ranges that become `&mut` are in blocks and overlap no other range (checked above).
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

    /// A pointer to `bytes` bytes, shared or in a block. It is valid until any memory changes.
    fn pointer_to_read(&mut self, address: u64, bytes: usize) -> DriverResult<*const u8> {
        match self.shared.around(address, bytes) {
            Some((shared, offset)) => Ok(shared.bytes()[offset..].as_ptr()),
            None => Ok(self.pointer(address, bytes)?.cast_const()),
        }
    }

    /// A pointer to `bytes` bytes of a block. It is valid until the block is removed.
    fn pointer(&mut self, address: u64, bytes: usize) -> DriverResult<*mut u8> {
        if bytes == 0 {
            return Ok(std::ptr::without_provenance_mut(ALIGNMENT));
        }
        let index = self.find(address, bytes).ok_or_else(errors::illegal_address)?;
        let segment = &mut self.segments[index];
        let offset = (address - segment.address) as usize;
        Ok(segment.touch(&self.room)?.pointer(offset))
    }

    /// Allocates the memory of a block that queued work will touch. If the computer has none, the queuing call reports
    /// it, and the device survives. An address outside every block is reported by the work.
    pub(super) fn back(&mut self, address: u64) -> DriverResult<()> {
        match self.find(address, 1) {
            Some(index) => self.segments[index].touch(&self.room).map(drop),
            None => Ok(()),
        }
    }

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
    use crate::each_case::each_case;

    fn space() -> AddressSpace {
        AddressSpace::new(1 << 40, 1 << 21, Arc::default())
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
        each_case(
            [(block, 1001), (block + 1000, 1), (block - 1, 1), (0, 4), (u64::MAX, 8)],
            |(address, bytes)| {
                assert_eq!(space.bytes(address, bytes), Err(errors::illegal_address()), "{address} {bytes}");
            },
        );
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
        assert!(error.detail.unwrap().contains("this computer cannot provide"));
    }

    #[test]
    fn all_blocks_together_take_no_more_than_the_computer_has() {
        let room = Arc::new(Room { limit: OnceLock::from(Some(1000)), taken: AtomicU64::new(0) });
        let mut spaces = [0, 1].map(|_| AddressSpace::new(1 << 40, 1 << 21, room.clone()));
        let blocks = [400, 400, 200].map(|bytes| spaces[0].insert(bytes));
        assert_eq!(spaces[0].back(blocks[0]), Ok(()));
        assert_eq!(spaces[0].back(blocks[0]), Ok(()), "it counts once");
        let other = spaces[1].insert(400);
        assert_eq!(spaces[1].back(other), Ok(()));
        assert_eq!(spaces[0].back(blocks[2]), Err(errors::out_of_host_memory(200)));
        assert_eq!(spaces[0].bytes(blocks[2], 1), Err(errors::out_of_host_memory(200)));
        // An untouched block releases nothing.
        assert!(spaces[0].remove(blocks[1]));
        assert_eq!(spaces[0].back(blocks[2]), Err(errors::out_of_host_memory(200)));
        assert!(spaces[1].remove(other));
        assert_eq!(spaces[0].back(blocks[2]), Ok(()));
        assert_eq!(spaces[0].back(0), Ok(()), "no block is there");
        assert!(spaces[0].can_back(300) && !spaces[0].can_back(301));
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

    /// Shared bytes are read in place until one of the ranges is written.
    #[test]
    fn what_is_shared_is_read_in_place_until_it_is_written() {
        let mut spaces = [space(), space()];
        let [block, other] = spaces.each_mut().map(|space| space.insert(WORTH_SHARING));
        let shared = || Shared::new(Arc::new(vec![7; WORTH_SHARING]), 0..WORTH_SHARING);
        let whole = shared();
        for space in &mut spaces {
            space.share(block, whole.clone()).unwrap();
        }
        let [first, second] = &mut spaces;
        let place = |space: &mut AddressSpace| space.bytes(block, 8).unwrap().as_ptr();
        assert_eq!(place(first), whole.bytes().as_ptr());
        assert_eq!(place(second), whole.bytes().as_ptr());
        first.bytes_mut(block + 3, 1).unwrap()[0] = 1;
        assert_eq!(first.bytes(block, 5).unwrap(), [7, 7, 7, 1, 7]);
        assert_eq!(second.bytes(other, 5).unwrap(), [7; 5]);
        // A shared range must be in a block, and is removed with it.
        assert_eq!(first.share(block + 8, shared()), Err(errors::illegal_address()));
        second.remove(block);
        assert_eq!(second.bytes(block, 1), Err(errors::illegal_address()));
        second.insert(WORTH_SHARING);
        assert_eq!(second.bytes(block, 5).unwrap(), [0; 5]);
        // Elements must be aligned as in the block.
        let askew = Shared::new(Arc::new(vec![7; WORTH_SHARING + 8]), 1..WORTH_SHARING + 1);
        second.share(block, askew).unwrap();
        assert!(second.shared(block, 8).is_none());
        assert_eq!(second.bytes(block, 5).unwrap(), [7; 5]);
    }

    /// After any operations, shared ranges hold the same bytes as copies.
    #[test]
    fn shared_ranges_hold_what_copies_would() {
        const BLOCK: usize = 4 * WORTH_SHARING;
        let mut seed = 1_u64;
        let mut below = |limit: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % limit
        };
        let mut spaces = [space(), space()];
        let mut models = [vec![0; BLOCK], vec![0; BLOCK]];
        let block = spaces.each_mut().map(|space| space.insert(BLOCK))[0];
        let mut were_shared = 0;
        for turn in 0..3000 {
            let which = below(2);
            let (space, model) = (&mut spaces[which], &mut models[which]);
            let bytes = [8, WORTH_SHARING, WORTH_SHARING + 512, 2 * WORTH_SHARING][below(4)];
            let [start, from] = [(); 2].map(|()| 8 * below((BLOCK - bytes) / 8 + 1));
            let at = |start: usize| block + start as u64;
            match below(6) {
                0 | 1 => {
                    let whole = Arc::new((0..bytes + 64).map(|i| (i + turn) as u8).collect::<Vec<u8>>());
                    models[0][start..][..bytes].copy_from_slice(&whole[64..]);
                    models[1][from..][..bytes].copy_from_slice(&whole[64..]);
                    for (space, start) in spaces.iter_mut().zip([start, from]) {
                        space.share(at(start), Shared::new(whole.clone(), 64..64 + bytes)).unwrap();
                    }
                }
                2 => {
                    model.copy_within(from..from + bytes, start);
                    space.copy_within(at(from), at(start), bytes).unwrap();
                }
                3 => {
                    model[start..][..bytes].fill(turn as u8);
                    space.discard(at(start), bytes);
                    space.bytes_mut(at(start), bytes).unwrap().fill(turn as u8);
                }
                4 => {
                    model[start] = turn as u8;
                    space.bytes_mut(at(start), bytes).unwrap()[0] = turn as u8;
                }
                _ => {
                    let access = |start, write| Access { address: at(start), bytes, write };
                    let accesses = [access(from, false), access(start, true)];
                    if let Ok(mut borrowed) = space.borrow(&accesses) {
                        let [Bytes::Read(read), Bytes::Write(written)] = &mut borrowed[..] else { panic!() };
                        assert_eq!(**read, model[from..][..bytes]);
                        written.copy_from_slice(read);
                        model.copy_within(from..from + bytes, start);
                    }
                }
            }
            let (space, model) = (&mut spaces[which], &models[which]);
            were_shared += usize::from(space.shared(at(from), 8).is_some());
            assert_eq!(space.bytes(at(from), bytes).unwrap(), &model[from..][..bytes], "{turn}");
        }
        for (space, model) in spaces.iter_mut().zip(&models) {
            assert_eq!(space.bytes(block, BLOCK).unwrap(), model);
        }
        assert!(were_shared > 500, "{were_shared}");
    }
}
