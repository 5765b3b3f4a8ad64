//! A kernel's use of the hardware, counted as Nsight Compute counts it. A counting run makes no checks but those of
//! memory.

use super::block::Warp;
use super::interpreter::Runner;
use super::launch::Shape;
use super::operations::addresses;
use crate::ir::{Address, Bin, LANES, Op, Program, Scaled, size_of, space};

/// Accesses of warps to global memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pub requests: u64,
    /// The number of different 32-byte sectors that the lanes of each request touch.
    pub sectors: u64,
}

/// Accesses of warps to shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wavefronts {
    pub requests: u64,
    /// The number of passes over the banks: a bank delivers one word per pass.
    pub wavefronts: u64,
    /// Extra wavefronts, because a bank had to deliver more than one word.
    pub conflicts: u64,
}

/// The counters of a kernel, over all its launches.
#[derive(Clone, Debug)]
pub struct Counters {
    pub kernel: u32,
    pub launches: u64,
    /// The shape of the last launch.
    pub shape: Shape,
    pub loads: Requests,
    pub stores: Requests,
    pub atomics: Requests,
    pub shared_loads: Wavefronts,
    pub shared_stores: Wavefronts,
    pub divergent_branches: u64,
    /// Bytes of the sectors that were read or written, each counted once per launch.
    pub footprint: u64,
    /// For each instruction, the number of warps and threads that start a run there, minus those that stop before it.
    warps: Vec<i64>,
    threads: Vec<i64>,
    /// The width of the hardware's access at each instruction, in bytes; 0 if it is part of an earlier vector access.
    widths: Vec<u8>,
    read: Vec<u64>,
    written: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Load,
    Store,
    Atomic,
}

pub const SECTOR: u64 = 32;
const BANKS: u64 = 32;

impl Counters {
    pub fn new(kernel: u32, program: &Program, shape: Shape) -> Counters {
        let steps = program.ops.len() + 1;
        Counters {
            kernel,
            launches: 0,
            shape,
            loads: Requests::default(),
            stores: Requests::default(),
            atomics: Requests::default(),
            shared_loads: Wavefronts::default(),
            shared_stores: Wavefronts::default(),
            divergent_branches: 0,
            footprint: 0,
            warps: vec![0; steps],
            threads: vec![0; steps],
            widths: widths(program),
            read: Vec::new(),
            written: Vec::new(),
        }
    }

    pub fn begin(&mut self, shape: Shape) {
        self.launches += 1;
        self.shape = shape;
    }

    pub fn end(&mut self) {
        let sectors =
            self.read.iter().chain(&self.written).map(|word| u64::from(word.count_ones())).sum::<u64>();
        self.footprint += sectors * SECTOR;
        self.read.clear();
        self.written.clear();
    }

    /// Counts one execution of the instructions `from..to` by a warp with these lanes.
    #[inline]
    pub fn executed(&mut self, from: u32, to: u32, mask: u32) {
        let threads = i64::from(mask.count_ones());
        self.warps[from as usize] += 1;
        self.warps[to as usize] -= 1;
        self.threads[from as usize] += threads;
        self.threads[to as usize] -= threads;
    }

    /// The numbers of warps and threads that executed each instruction.
    pub fn each(&self) -> impl Iterator<Item = (u64, u64)> {
        let sums = self.warps.iter().zip(&self.threads).scan((0, 0), |sum, (warps, threads)| {
            *sum = (sum.0 + warps, sum.1 + threads);
            Some((sum.0 as u64, sum.1 as u64))
        });
        sums.take(self.warps.len() - 1)
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

    /// Float and double operations of all threads; a fused multiply-add counts as two.
    pub fn flops(&self, program: &Program) -> u64 {
        program.ops.iter().zip(self.each()).map(|(op, (_, threads))| flops(op) * threads).sum()
    }

    pub fn global_sectors(&self) -> u64 {
        self.loads.sectors + self.stores.sectors + self.atomics.sectors
    }

    fn access(&mut self, addresses: &[u64; LANES], mask: u32, width: u64, kind: Kind) {
        let active = || (0..LANES).filter(|lane| mask >> lane & 1 != 0).map(|lane| (lane, addresses[lane]));
        let window = |address: u64| address & !(space::WINDOW - 1);
        let mut sectors: Vec<u64> = active()
            .filter(|(_, address)| window(*address) == space::HEAP)
            .flat_map(|(_, address)| {
                let offset = address - space::HEAP;
                offset / SECTOR..=(offset + width - 1) / SECTOR
            })
            .collect();
        sectors.sort_unstable();
        sectors.dedup();
        if !sectors.is_empty() {
            let of = match kind {
                Kind::Load => &mut self.loads,
                Kind::Store => &mut self.stores,
                Kind::Atomic => &mut self.atomics,
            };
            of.requests += 1;
            of.sectors += sectors.len() as u64;
            for (set, touched) in
                [(&mut self.read, kind != Kind::Store), (&mut self.written, kind != Kind::Load)]
            {
                for sector in sectors.iter().filter(|_| touched) {
                    let word = (sector / 64) as usize;
                    if set.len() <= word {
                        set.resize(word + 1, 0);
                    }
                    set[word] |= 1 << (sector % 64);
                }
            }
        }
        let shared: Vec<(usize, u64)> = active()
            .filter(|(_, address)| window(*address) == space::SHARED)
            .map(|(lane, address)| (lane, address - space::SHARED))
            .collect();
        if !shared.is_empty() && kind != Kind::Atomic {
            let (wavefronts, ideal) = wavefronts(&shared, width);
            let of = if kind == Kind::Load { &mut self.shared_loads } else { &mut self.shared_stores };
            of.requests += 1;
            of.wavefronts += wavefronts;
            of.conflicts += wavefronts - ideal;
        }
    }
}

/// The number of wavefronts of an access, and the minimum: wide accesses go by halves or quarters of a warp.
fn wavefronts(lanes: &[(usize, u64)], width: u64) -> (u64, u64) {
    let at_once = (LANES as u64 * 4 / width.max(4)).max(1) as usize;
    let (mut all, mut ideal) = (0, 0);
    for part in 0..LANES.div_ceil(at_once) {
        let mut words: Vec<u64> = lanes
            .iter()
            .filter(|(lane, _)| lane / at_once == part)
            .flat_map(|(_, offset)| offset / 4..=(offset + width - 1) / 4)
            .collect();
        words.sort_unstable();
        words.dedup();
        let mut of_bank = [0; BANKS as usize];
        for word in &words {
            of_bank[(word % BANKS) as usize] += 1;
        }
        all += of_bank.iter().copied().max().unwrap_or(0);
        ideal += u64::from(!words.is_empty());
    }
    (all, ideal)
}

/// The hardware accesses vectors of 8 or 16 bytes at once; here they are separate instructions.
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
    /// Counts the access of an instruction, if this run counts.
    #[inline(always)]
    pub fn count_access(&mut self, warp: &Warp, mask: u32, pc: u32, at: &Address, kind: Kind) {
        if let Some(counters) = &mut self.counters {
            let width = counters.widths[pc as usize];
            if width > 0 {
                counters.access(&addresses(warp, at), mask, width.into(), kind);
            }
        }
    }
}
