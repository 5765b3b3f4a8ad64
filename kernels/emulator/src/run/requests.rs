//! Counts a warp's accesses to memory: the sectors of global memory, and the passes over the banks of shared memory.

use super::block::Warp;
use super::counters::{BANKS, Counters, Kind, SECTOR, SECTORS_OF_LINE};
use super::interpreter::Runner;
use super::memory::MOST_MEMORY;
use super::operations::addresses;
use crate::ir::{Address, LANES, Prim, space};

impl Counters {
    pub(super) fn access(&mut self, addresses: &[u64; LANES], mask: u32, pc: u32, kind: Kind, leads: bool) {
        let width = u64::from(self.sites[pc as usize].width);
        let first = addresses[mask.trailing_zeros() as usize % LANES];
        self.sites[pc as usize].window = window(first);
        let active = || (0..LANES).filter(|lane| mask >> lane & 1 != 0).map(|lane| (lane, addresses[lane]));
        // An access has 16 bytes at most, so a lane touches two sectors at most.
        let (mut all, mut count) = ([0; 2 * LANES], 0);
        // Requests are counted before they are checked. A request outside all memory ends the launch.
        let is_memory = |address: u64| address.wrapping_sub(space::HEAP) < MOST_MEMORY;
        for (_, address) in active().filter(|(_, address)| is_memory(*address)) {
            let offset = address - space::HEAP;
            for sector in offset / SECTOR..=(offset + width - 1) / SECTOR {
                if count == 0 || all[count - 1] != sector {
                    all[count] = sector;
                    count += 1;
                }
            }
            if kind == Kind::Atomic {
                *self.updates.entry(offset).or_default() += 1;
            }
        }
        if count > 0 {
            all[..count].sort_unstable();
            self.global(&all[..count], pc, kind, leads);
        }
        let (mut shared, mut lanes) = ([(0, 0); LANES], 0);
        for (lane, address) in active().filter(|(_, address)| window(*address) == space::SHARED) {
            shared[lanes] = (lane, address - space::SHARED);
            lanes += 1;
        }
        if lanes > 0 {
            let shared = &shared[..lanes];
            let (wavefronts, ideal) = match kind {
                Kind::Atomic => (updates(shared), 1),
                _ => wavefronts(shared, width),
            };
            let of = match kind {
                Kind::Load => &mut self.shared_loads,
                Kind::Store => &mut self.shared_stores,
                Kind::Atomic => &mut self.shared_atomics,
            };
            of.requests += 1;
            of.wavefronts += wavefronts;
            of.conflicts += wavefronts - ideal;
        }
    }

    /// Counts a request of global memory. `sectors` is sorted.
    pub(super) fn global(&mut self, sectors: &[u64], pc: u32, kind: Kind, leads: bool) {
        let of = match kind {
            Kind::Load => &mut self.loads,
            Kind::Store => &mut self.stores,
            Kind::Atomic => &mut self.atomics,
        };
        of.requests += 1;
        let (mut last, mut line, mut misses) = (u64::MAX, u64::MAX, false);
        for sector in sectors.iter().copied() {
            if sector == last {
                continue;
            }
            last = sector;
            of.sectors += 1;
            if sector / SECTORS_OF_LINE != line {
                line = sector / SECTORS_OF_LINE;
                self.lines += 1;
            }
            if kind != Kind::Store {
                self.read.insert(sector);
            }
            if kind != Kind::Load {
                self.written.insert(sector);
            }
            if kind == Kind::Load && self.of_block.insert(sector) {
                self.fetched += 1;
                misses = true;
            }
        }
        self.sites[pc as usize].misses += u64::from(misses && leads);
    }
}

pub(super) fn window(address: u64) -> u64 {
    address & !(space::WINDOW - 1)
}

/// The number of passes of an atomic operation: a bank makes one update per pass.
pub(super) fn updates(lanes: &[(usize, u64)]) -> u64 {
    let mut of_bank = [0; BANKS as usize];
    for (_, offset) in lanes {
        of_bank[(offset / 4 % BANKS) as usize] += 1;
    }
    of_bank.into_iter().max().unwrap_or(0)
}

/// The number of wavefronts of an access, and the minimum. Wide accesses go by halves or quarters of a warp.
pub(super) fn wavefronts(lanes: &[(usize, u64)], width: u64) -> (u64, u64) {
    let at_once = (LANES as u64 * 4 / width.max(4)).max(1) as usize;
    let (mut all, mut ideal) = (0, 0);
    for part in 0..LANES.div_ceil(at_once) {
        // A lane touches two words, or five if a wide access begins within a word.
        let (mut words, mut count) = ([0; 2 * LANES], 0);
        for (_, offset) in lanes.iter().filter(|(lane, _)| lane / at_once == part) {
            for word in offset / 4..=(offset + width - 1) / 4 {
                words[count] = word;
                count += 1;
            }
        }
        let words = &mut words[..count];
        words.sort_unstable();
        let mut of_bank = [0; BANKS as usize];
        let mut last = u64::MAX;
        for word in words.iter().filter(|word| std::mem::replace(&mut last, **word) != **word) {
            of_bank[(word % BANKS) as usize] += 1;
        }
        all += of_bank.iter().copied().max().unwrap_or(0);
        ideal += u64::from(!words.is_empty());
    }
    (all, ideal)
}

impl Runner<'_> {
    #[inline(always)]
    pub fn count_access(&mut self, warp: &Warp, mask: u32, pc: u32, at: &Address, kind: Kind) {
        if let Some(counters) = &mut self.counters {
            let site = &mut counters.sites[pc as usize];
            let first =
                window(warp.registers.bits(Prim::U64, at.base, mask.trailing_zeros() as usize % LANES));
            if first == space::LOCAL {
                site.window = first; // no counter is about a thread's own memory
            } else if site.width > 0 {
                counters.access(&addresses(warp, at), mask, pc, kind, warp.number == 0);
            }
        }
    }
}
