//! Counts a kernel's use of the hardware as Nsight Compute does. A counting run checks only memory accesses.

use super::launch::Shape;
use super::memory::Allocation;
use super::sectors::Sectors;
use crate::ir::{Bin, Op, Program, Scaled, size_of};
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
    pub(super) sites: Vec<Site>,
    pub(super) read: Sectors,
    pub(super) written: Sectors,
    pub(super) of_block: Sectors,
    pub(super) updates: HashMap<u64, u64>,
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

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Load,
    Store,
    Atomic,
}

pub const SECTOR: u64 = 32;
pub(super) const BANKS: u64 = 32;
/// Sectors of a line of L1.
pub(super) const SECTORS_OF_LINE: u64 = 4;

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
