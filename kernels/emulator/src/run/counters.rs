//! Counts a kernel's use of the hardware as Nsight Compute does. A counting run checks only memory accesses.

use super::block::Warp;
use super::interpreter::Runner;
use super::launch::Shape;
use super::memory::{Allocation, MOST_MEMORY};
use super::operations::addresses;
use crate::ir::{Address, Bin, LANES, Op, Prim, Program, Scaled, size_of, space};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pub requests: u64,
    /// The number of distinct 32-byte sectors that each request touches, summed.
    pub sectors: u64,
}

/// Shared memory accesses of warps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wavefronts {
    pub requests: u64,
    /// Passes over the banks. A bank delivers one word per pass.
    pub wavefronts: u64,
    /// Extra wavefronts, because a bank had to deliver more than one word.
    pub conflicts: u64,
}

#[derive(Clone, Debug)]
pub struct Counters {
    pub kernel: u32,
    pub launches: u64,
    /// Blocks of all launches, and blocks that ran: fewer if only a sample is counted.
    pub blocks: u64,
    pub counted_blocks: u64,
    /// Of the last launch.
    pub shape: Shape,
    pub loads: Requests,
    pub stores: Requests,
    pub atomics: Requests,
    pub shared_loads: Wavefronts,
    pub shared_stores: Wavefronts,
    pub divergent_branches: u64,
    /// Atomic operations on shared memory. A bank makes one update per pass.
    pub shared_atomics: Wavefronts,
    /// Bytes of the sectors that were read or written, each counted once per launch.
    pub footprint: u64,
    /// An upper bound of the footprint over all launches: bytes of the allocations that were read, plus bytes of those
    /// that were written.
    pub reach: u64,
    /// The number of 128-byte lines that requests of global memory touch. L1 looks up one at a time.
    pub lines: u64,
    /// Sectors of global loads, each counted once per block, as if L1 kept all that a block has read.
    pub fetched: u64,
    /// Updates of the most updated address of global memory. They go one after another.
    pub hottest: u64,
    /// For each instruction, the number of warps and threads that start a run there, minus those that stop before it.
    warps: Vec<i64>,
    threads: Vec<i64>,
    /// As `warps`, for the first warp of each block.
    leaders: Vec<i64>,
    sites: Vec<Site>,
    read: Sectors,
    written: Sectors,
    of_block: Sectors,
    updates: HashMap<u64, u64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Site {
    /// The width of the hardware's access in bytes; 0 for no access, or for a part of an earlier vector access.
    pub width: u8,
    /// The window of the address space; 0 if there was no access.
    pub window: u64,
    /// Requests by the first warp of a block that touched a sector new to the block.
    pub misses: u64,
}

#[derive(Clone, Debug, Default)]
struct Sectors {
    words: Vec<u64>,
    /// The indices of nonzero words.
    touched: Vec<u32>,
}

impl Sectors {
    /// Returns whether the sector is new.
    fn insert(&mut self, sector: u64) -> bool {
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

    fn count(&self) -> u64 {
        self.touched.iter().map(|at| u64::from(self.words[*at as usize].count_ones())).sum()
    }

    fn clear(&mut self) {
        for at in self.touched.drain(..) {
            self.words[at as usize] = 0;
        }
    }

    /// Whether the set has a sector of the allocation. Allocations share no sector.
    fn reach(&self, known: &Allocation) -> bool {
        let mut sectors = known.offset / SECTOR..=(known.offset + known.size.max(1) - 1) / SECTOR;
        sectors.any(|sector| {
            self.words.get((sector / 64) as usize).is_some_and(|word| word >> (sector % 64) & 1 != 0)
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Load,
    Store,
    Atomic,
}

pub const SECTOR: u64 = 32;
const BANKS: u64 = 32;
/// Sectors of a line of L1.
const SECTORS_OF_LINE: u64 = 4;

impl Counters {
    pub fn new(kernel: u32, program: &Program, shape: Shape) -> Counters {
        let steps = program.ops.len() + 1;
        Counters {
            kernel,
            launches: 0,
            blocks: 0,
            counted_blocks: 0,
            shape,
            loads: Requests::default(),
            stores: Requests::default(),
            atomics: Requests::default(),
            shared_loads: Wavefronts::default(),
            shared_stores: Wavefronts::default(),
            shared_atomics: Wavefronts::default(),
            divergent_branches: 0,
            footprint: 0,
            reach: 0,
            lines: 0,
            fetched: 0,
            hottest: 0,
            warps: vec![0; steps],
            threads: vec![0; steps],
            leaders: vec![0; steps],
            sites: widths(program).into_iter().map(|width| Site { width, ..Site::default() }).collect(),
            read: Sectors::default(),
            written: Sectors::default(),
            of_block: Sectors::default(),
            updates: HashMap::new(),
        }
    }

    /// Begins a launch that runs `counted` blocks.
    pub fn begin(&mut self, shape: Shape, counted: u64) {
        self.launches += 1;
        self.blocks += shape.blocks();
        self.counted_blocks += counted;
        self.shape = shape;
    }

    /// Adds the counts of another launch of the kernel.
    pub fn add(&mut self, other: &Counters) {
        self.launches += other.launches;
        self.blocks += other.blocks;
        self.counted_blocks += other.counted_blocks;
        self.shape = other.shape;
        for (sum, of) in [
            (&mut self.loads, other.loads),
            (&mut self.stores, other.stores),
            (&mut self.atomics, other.atomics),
        ] {
            sum.requests += of.requests;
            sum.sectors += of.sectors;
        }
        for (sum, of) in [
            (&mut self.shared_loads, other.shared_loads),
            (&mut self.shared_stores, other.shared_stores),
            (&mut self.shared_atomics, other.shared_atomics),
        ] {
            sum.requests += of.requests;
            sum.wavefronts += of.wavefronts;
            sum.conflicts += of.conflicts;
        }
        for (sum, of) in [
            (&mut self.divergent_branches, other.divergent_branches),
            (&mut self.footprint, other.footprint),
            (&mut self.reach, other.reach),
            (&mut self.lines, other.lines),
            (&mut self.fetched, other.fetched),
            (&mut self.hottest, other.hottest),
        ] {
            *sum += of;
        }
        for (sums, of) in [
            (&mut self.warps, &other.warps),
            (&mut self.threads, &other.threads),
            (&mut self.leaders, &other.leaders),
        ] {
            sums.iter_mut().zip(of).for_each(|(sum, of)| *sum += of);
        }
        for (site, of) in self.sites.iter_mut().zip(&other.sites) {
            site.window = if of.window == 0 { site.window } else { of.window };
            site.misses += of.misses;
        }
    }

    pub fn begin_block(&mut self) {
        self.of_block.clear();
    }

    pub fn end(&mut self, allocations: &[Allocation]) {
        self.footprint += (self.read.count() + self.written.count()) * SECTOR;
        for set in [&self.read, &self.written] {
            self.reach +=
                allocations.iter().filter(|known| set.reach(known)).map(|known| known.size).sum::<u64>();
        }
        self.hottest += self.updates.drain().map(|(_, count)| count).max().unwrap_or(0);
        self.read.clear();
        self.written.clear();
        self.of_block.clear();
    }

    /// Counts one execution of the instructions `from..to` by a warp. `leads` marks the first warp of its block.
    #[inline]
    pub fn executed(&mut self, from: u32, to: u32, mask: u32, leads: bool) {
        let threads = i64::from(mask.count_ones());
        self.warps[from as usize] += 1;
        self.warps[to as usize] -= 1;
        self.threads[from as usize] += threads;
        self.threads[to as usize] -= threads;
        self.leaders[from as usize] += i64::from(leads);
        self.leaders[to as usize] -= i64::from(leads);
    }

    /// The numbers of warps and threads that executed each instruction.
    pub fn each(&self) -> impl Iterator<Item = (u64, u64)> {
        let sums = self.warps.iter().zip(&self.threads).scan((0, 0), |sum, (warps, threads)| {
            *sum = (sum.0 + warps, sum.1 + threads);
            Some((sum.0 as u64, sum.1 as u64))
        });
        sums.take(self.warps.len() - 1)
    }

    /// The number of times that the first warp of a block executed each instruction, over all blocks.
    pub fn leaders(&self) -> impl Iterator<Item = u64> {
        let sums = self.leaders.iter().scan(0, |sum, leaders| {
            *sum += leaders;
            Some(*sum as u64)
        });
        sums.take(self.leaders.len() - 1)
    }

    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    pub fn instructions(&self) -> u64 {
        self.each().map(|(warps, _)| warps).sum()
    }

    pub fn thread_instructions(&self) -> u64 {
        self.each().map(|(_, threads)| threads).sum()
    }

    pub fn barriers(&self, program: &Program) -> u64 {
        let is_barrier = |op: &Op| matches!(op, Op::Barrier { .. });
        program
            .ops
            .iter()
            .zip(self.each())
            .filter(|(op, _)| is_barrier(op))
            .map(|(_, (warps, _))| warps)
            .sum()
    }

    /// Float and double operations of all threads. A fused multiply-add counts as two.
    pub fn flops(&self, program: &Program) -> u64 {
        program.ops.iter().zip(self.each()).map(|(op, (_, threads))| flops(op) * threads).sum()
    }

    pub fn global_sectors(&self) -> u64 {
        self.loads.sectors + self.stores.sectors + self.atomics.sectors
    }

    fn access(&mut self, addresses: &[u64; LANES], mask: u32, pc: u32, kind: Kind, leads: bool) {
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
    fn global(&mut self, sectors: &[u64], pc: u32, kind: Kind, leads: bool) {
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

fn window(address: u64) -> u64 {
    address & !(space::WINDOW - 1)
}

/// The number of passes of an atomic operation: a bank makes one update per pass.
fn updates(lanes: &[(usize, u64)]) -> u64 {
    let mut of_bank = [0; BANKS as usize];
    for (_, offset) in lanes {
        of_bank[(offset / 4 % BANKS) as usize] += 1;
    }
    of_bank.into_iter().max().unwrap_or(0)
}

/// The number of wavefronts of an access, and the minimum. Wide accesses go by halves or quarters of a warp.
fn wavefronts(lanes: &[(usize, u64)], width: u64) -> (u64, u64) {
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

/// Groups the separate instructions of a vector access: the hardware accesses 8 or 16 bytes at once.
fn widths(program: &Program) -> Vec<u8> {
    let mut widths = vec![0; program.ops.len()];
    let mut vector: Option<(bool, u32, Scaled, Scaled, i32, i32)> = None;
    for (pc, op) in program.ops.iter().enumerate() {
        let (is_load, ty, at) = match op {
            Op::Load { ty, at, .. } => (true, *ty, at),
            Op::Store { ty, at, .. } => (false, *ty, at),
            Op::Atomic { ty, .. } => {
                widths[pc] = size_of(*ty) as u8;
                vector = None;
                continue;
            }
            _ => {
                vector = None;
                continue;
            }
        };
        let is_part = vector.is_some_and(|(load, base, first, second, from, to)| {
            load == is_load
                && (base, first, second) == (at.base, at.first, at.second)
                && from < at.offset
                && at.offset < to
        });
        if !is_part {
            let width = u64::from(at.align).min(16).max(size_of(ty));
            widths[pc] = width as u8;
            vector = Some((
                is_load,
                at.base,
                at.first,
                at.second,
                at.offset,
                at.offset.saturating_add(width as i32),
            ));
        }
    }
    widths
}

fn flops(op: &Op) -> u64 {
    use Bin::*;
    match op {
        Op::Binary { op: AddF32 | SubF32 | MulF32 | DivF32 | AddF64 | SubF64 | MulF64 | DivF64, .. } => 1,
        Op::Math { function, .. } => match super::math::FUNCTIONS[*function as usize].name {
            "fma" | "fmaf" | "__fmaf_rn" | "__fma_rn" => 2,
            _ => 0,
        },
        _ => 0,
    }
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
