//! Loads and stores with all checks: address, alignment, initialisation and races.

use super::block::{Block, Warp, dynamic_start};
use super::interpreter::{Runner, Stop};
use super::memory::WRITTEN;
use super::operations::addresses;
use super::races::Kind;
use super::registers::ALL;
use super::words::{gather, scatter};
use crate::ir::{Address, LANES, Prim, size_of, space};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Heap,
    Shared,
    Local,
    Parameters,
    None,
}

pub fn which(address: u64) -> Which {
    match address & !(space::WINDOW - 1) {
        space::HEAP => Which::Heap,
        space::SHARED => Which::Shared,
        space::LOCAL => Which::Local,
        space::PARAMETERS => Which::Parameters,
        _ => Which::None,
    }
}

/// The offset of an address in the heap, or `usize::MAX` if a `usize` is too small for it.
fn offset_in_heap(address: u64) -> usize {
    usize::try_from(address - space::HEAP).unwrap_or(usize::MAX)
}

impl Runner<'_> {
    #[inline(always)]
    pub fn load(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        mask: u32,
        pc: u32,
        ty: Prim,
        d: u32,
        at: &Address,
    ) -> Result<(), Stop> {
        let mut words = [0; LANES];
        if size_of(ty) == 4
            && let Some(is_shared) = self.words(block, warp, mask, pc, at, false, &mut words)
        {
            let space = if is_shared { &block.shared } else { &self.machine.heap.space };
            if mask == ALL {
                gather(space, &words, warp.registers.place(d));
            } else {
                let mut out = [0; LANES];
                gather(space, &words, &mut out);
                warp.registers.set(d, mask, &out);
            }
            if self.races {
                self.note_all(block, warp, mask, pc, is_shared, &words, 4, Kind::Read);
            }
            return Ok(());
        }
        self.load_each(block, warp, mask, pc, ty, d, at)
    }

    fn load_each(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        mask: u32,
        pc: u32,
        ty: Prim,
        d: u32,
        at: &Address,
    ) -> Result<(), Stop> {
        let addresses = addresses(warp, at);
        let size = size_of(ty);
        let mut out = [0u64; LANES];
        // All lanes read the same parameter.
        let first = mask.trailing_zeros() as usize % LANES;
        let address = addresses[first];
        let is_uniform = which(address) == Which::Parameters
            && addresses.iter().fold(0, |other, at| other | (at ^ address)) == 0;
        if is_uniform {
            out = [self.read_one(block, warp, pc, first, address, ty, u64::from(at.align))?; LANES];
        }
        for lane in 0..LANES {
            if is_uniform || mask >> lane & 1 == 0 {
                continue;
            }
            let address = addresses[lane];
            out[lane] = self.read_one(block, warp, pc, lane, address, ty, u64::from(at.align))?;
        }
        if size == 8 {
            warp.registers.set::<u64>(d, mask, &out);
        } else {
            let narrow = out.map(|bits| bits as u32);
            warp.registers.set::<u32>(d, mask, &narrow);
        }
        if self.races {
            self.note(block, warp, mask, pc, &addresses, size, Kind::Read);
        }
        Ok(())
    }

    #[inline(always)]
    pub fn store(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        mask: u32,
        pc: u32,
        ty: Prim,
        a: u32,
        at: &Address,
    ) -> Result<(), Stop> {
        let mut words = [0; LANES];
        if size_of(ty) == 4
            && let Some(is_shared) = self.words(block, warp, mask, pc, at, true, &mut words)
        {
            if self.races {
                self.note_all(block, warp, mask, pc, is_shared, &words, 4, Kind::Write);
            }
            let values = warp.registers.row::<u32>(a);
            let space = if is_shared { &mut block.shared } else { &mut self.machine.heap.space };
            scatter(space, mask, &words, values, self.init.then_some(WRITTEN));
            return Ok(());
        }
        self.store_each(block, warp, mask, pc, ty, a, at)
    }

    fn store_each(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        mask: u32,
        pc: u32,
        ty: Prim,
        a: u32,
        at: &Address,
    ) -> Result<(), Stop> {
        let addresses = addresses(warp, at);
        let size = size_of(ty);
        // The check comes before the store, so that the report has the old value.
        let mut values = [0u64; LANES];
        if size == 8 {
            values = warp.registers.get::<u64>(a);
        } else {
            let narrow = warp.registers.get::<u32>(a);
            for lane in 0..LANES {
                values[lane] = u64::from(narrow[lane]);
            }
        }
        if self.races {
            self.note(block, warp, mask, pc, &addresses, size, Kind::Write);
        }
        for lane in 0..LANES {
            if mask >> lane & 1 == 0 {
                continue;
            }
            self.write_one(block, warp, pc, lane, addresses[lane], ty, values[lane], u64::from(at.align))?;
        }
        Ok(())
    }

    #[inline(always)]
    pub fn read_one(
        &mut self,
        block: &mut Block,
        warp: &Warp,
        pc: u32,
        lane: usize,
        address: u64,
        ty: Prim,
        align: u64,
    ) -> Result<u64, Stop> {
        let size = size_of(ty);
        let align = align.max(size);
        if address & (align - 1) != 0 {
            return Err(self.misaligned(block, warp, pc, lane, address, size, "read", align));
        }
        let bytes: &[u8] = match which(address) {
            Which::Heap => {
                let at = offset_in_heap(address);
                let Some(states) = self.machine.heap.space.states.get(at..at.saturating_add(size as usize))
                else {
                    return Err(self.out_of_bounds(block, warp, pc, lane, address, size, "read"));
                };
                let (bits, wanted) = self.read_rule;
                if !states.iter().all(|state| state & bits == wanted) {
                    let allowed = states.iter().all(|state| state & (bits & !WRITTEN) == wanted & !WRITTEN);
                    if !allowed {
                        return Err(self.out_of_bounds(block, warp, pc, lane, address, size, "read"));
                    }
                    self.uninitialised(block, warp, pc, lane, address, size);
                }
                if self.is_host && self.machine.is_busy {
                    self.check_managed(pc, at, "reads");
                }
                &self.machine.heap.space.bytes[at..at + size as usize]
            }
            Which::Shared => {
                let at = self.shared_offset(address) as usize;
                let end = at.saturating_add(size as usize);
                let valid = end as u64 <= block.shared_size
                    && block
                        .shared
                        .states
                        .get(at..end)
                        .is_some_and(|states| states.iter().all(|state| state & 1 != 0));
                if !valid {
                    return Err(self.out_of_bounds(block, warp, pc, lane, address, size, "read"));
                }
                if self.init && !block.shared.states[at..end].iter().all(|state| state & WRITTEN != 0) {
                    self.uninitialised(block, warp, pc, lane, address, size);
                }
                &block.shared.bytes[at..end]
            }
            Which::Local => {
                let Some(at) = self.local_offset(warp, lane, address, size) else {
                    return Err(self.out_of_bounds(block, warp, pc, lane, address, size, "read"));
                };
                &block.local[at..at + size as usize]
            }
            Which::Parameters => {
                let at = (address - space::PARAMETERS) as usize;
                match self.parameters.get(at..at.saturating_add(size as usize)) {
                    Some(bytes) if at + size as usize <= self.parameters.len() - 16 => bytes,
                    _ => return Err(self.out_of_bounds(block, warp, pc, lane, address, size, "read")),
                }
            }
            Which::None => return Err(self.out_of_bounds(block, warp, pc, lane, address, size, "read")),
        };
        let mut all = [0u8; 8];
        all[..size as usize].copy_from_slice(bytes);
        Ok(super::arithmetic::narrowed(ty, u64::from_le_bytes(all)))
    }

    /// Reads a string for `%s`.
    pub fn text(
        &mut self,
        block: &mut Block,
        warp: &Warp,
        pc: u32,
        lane: usize,
        address: u64,
    ) -> Result<Option<String>, Stop> {
        if !matches!(which(address), Which::Shared | Which::Local | Which::Parameters) {
            return Ok(self.machine.heap.text(address));
        }
        let mut bytes = Vec::new();
        loop {
            let at = address + bytes.len() as u64;
            match self.read_one(block, warp, pc, lane, at, Prim::U8, 1)? {
                0 => return Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
                byte => bytes.push(byte as u8),
            }
        }
    }

    #[inline(always)]
    pub fn write_one(
        &mut self,
        block: &mut Block,
        warp: &Warp,
        pc: u32,
        lane: usize,
        address: u64,
        ty: Prim,
        bits: u64,
        align: u64,
    ) -> Result<(), Stop> {
        let size = size_of(ty) as usize;
        let align = align.max(size as u64);
        if address & (align - 1) != 0 {
            return Err(self.misaligned(block, warp, pc, lane, address, size as u64, "write", align));
        }
        let bytes = bits.to_le_bytes();
        match which(address) {
            Which::Heap => {
                let at = offset_in_heap(address);
                let (mask, wanted) = self.write_rule;
                let valid = self
                    .machine
                    .heap
                    .space
                    .states
                    .get_mut(at..at.saturating_add(size))
                    .filter(|states| states.iter().all(|state| state & mask == wanted));
                let Some(states) = valid else {
                    return Err(self.out_of_bounds(block, warp, pc, lane, address, size as u64, "write"));
                };
                for state in states {
                    *state |= WRITTEN;
                }
                if self.is_host && self.machine.is_busy {
                    self.check_managed(pc, at, "writes");
                }
                self.machine.heap.space.bytes[at..at + size].copy_from_slice(&bytes[..size]);
            }
            Which::Shared => {
                let at = self.shared_offset(address) as usize;
                let end = at.saturating_add(size);
                let valid = end as u64 <= block.shared_size
                    && block
                        .shared
                        .states
                        .get(at..end)
                        .is_some_and(|states| states.iter().all(|state| state & 1 != 0));
                if !valid {
                    return Err(self.out_of_bounds(block, warp, pc, lane, address, size as u64, "write"));
                }
                block.shared.states[at..end].fill(Block::STORED);
                block.shared.bytes[at..end].copy_from_slice(&bytes[..size]);
            }
            Which::Local => {
                let Some(at) = self.local_offset(warp, lane, address, size as u64) else {
                    return Err(self.out_of_bounds(block, warp, pc, lane, address, size as u64, "write"));
                };
                block.local[at..at + size].copy_from_slice(&bytes[..size]);
            }
            _ => return Err(self.out_of_bounds(block, warp, pc, lane, address, size as u64, "write")),
        }
        Ok(())
    }

    #[inline(always)]
    pub fn shared_offset(&self, address: u64) -> u64 {
        let offset = address - space::SHARED;
        if offset >= super::DYNAMIC_SHARED {
            offset - super::DYNAMIC_SHARED + dynamic_start(self.program)
        } else {
            offset
        }
    }

    #[inline(always)]
    pub fn local_offset(&self, warp: &Warp, lane: usize, address: u64, size: u64) -> Option<usize> {
        let at = (address - space::LOCAL) as usize;
        let valid = self.local_valid.get(at..at.checked_add(size as usize)?)?;
        if valid.contains(&0) {
            return None;
        }
        let thread = warp.number as usize * 32 + lane;
        Some(thread * self.program.local_bytes as usize + at)
    }
}
