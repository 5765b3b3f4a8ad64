//! Sets of sectors of memory.

use super::counters::SECTOR;
use super::memory::Allocation;

#[derive(Clone, Debug, Default)]
pub(super) struct Sectors {
    words: Vec<u64>,
    /// The indices of nonzero words.
    touched: Vec<u32>,
}

impl Sectors {
    /// Returns whether the sector is new.
    pub(super) fn insert(&mut self, sector: u64) -> bool {
        let at = (sector / 64) as usize;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        let (word, bit) = (&mut self.words[at], 1 << (sector % 64));
        if *word == 0 {
            self.touched.push(at as u32);
        }
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(super) fn count(&self) -> u64 {
        self.touched.iter().map(|at| u64::from(self.words[*at as usize].count_ones())).sum()
    }

    pub(super) fn clear(&mut self) {
        for at in self.touched.drain(..) {
            self.words[at as usize] = 0;
        }
    }

    /// Whether the set has a sector of the allocation. Allocations share no sector.
    pub(super) fn reach(&self, known: &Allocation) -> bool {
        let mut sectors = known.offset / SECTOR..=(known.offset + known.size.max(1) - 1) / SECTOR;
        sectors.any(|sector| {
            self.words.get((sector / 64) as usize).is_some_and(|word| word >> (sector % 64) & 1 != 0)
        })
    }
}
