//! Models the time of a kernel on a card from the emulator's counters. It is an estimate, not a measurement. The goal
//! is a time within a factor of two, and the right order of two versions of a kernel.
//!
//! A multiprocessor holds as many blocks at once as its registers, its shared memory and its warp slots allow. Each
//! block takes the time of its longest chain of dependent instructions, its *path*, and some cycles of each unit:
//! issue, arithmetic, loads and stores, barriers, the L2 cache, memory. The blocks queue for the busiest unit. With few
//! blocks at once, the path bounds the time: by Little's law, work in flight is throughput times latency. With many,
//! the busiest unit does: that is the roofline. [`cycle`] computes the values in between.
//!
//! If the grid has more blocks than the card holds, they run in waves, and the last wave may be small. Every kernel
//! also takes the time of an empty one.

use cuda_emulator::ir::{Op, Program};
use cuda_emulator::run::counters::{Counters, SECTOR};
use cuda_emulator::run::occupancy::Occupancy;
use todevice_figures::profile::Profile;

use crate::card::{card, generation};
use crate::instructions::{Estimates, Unit};

/// Warp instructions issued per cycle by a multiprocessor's four schedulers. Source: NVIDIA's whitepapers of all
/// generations since Maxwell.
const ISSUED: f64 = 4.0;
const LANES: f64 = 32.0;
/// Results of the special-function unit per cycle, and threads that pass a barrier per cycle. Source: CUDA C++
/// Programming Guide, arithmetic and synchronization instructions, compute capability 7.0 and later.
const SPECIAL_LANES: f64 = 16.0;
const BARRIER_LANES: f64 = 16.0;
/// Bytes of a pass over the banks of shared memory, or of a line of L1.
const PASS: f64 = 128.0;
/// The minimum number of passes of a global memory request: its addresses have 64 bits, twice those of shared memory. A
/// guess: without it, a product of matrices would be as fast from L1 as from shared memory, which no card shows.
const ADDRESSES: u64 = 2;
/// Bytes that L2 delivers to a multiprocessor per cycle. A guess: a third of the 64 of its port, since all share L2.
const L2_BYTES: f64 = 20.0;
/// Latencies in cycles: of L2 (236 on a Turing card, sjfeng1999/gpu-arch-microbenchmark) and of memory (a guess).
const L2_LATENCY: f64 = 236.0;
const MEMORY_LATENCY: f64 = 500.0;

/// The modelled launches of a kernel. Counts are for the whole grid, even if only some blocks were counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Modelled {
    /// The total of all launches.
    pub microseconds: f64,
    /// The unit that bounds the time, or `latency`.
    pub bound: &'static str,
    /// Warp instructions that the hardware is expected to execute.
    pub instructions: f64,
    /// Memory traffic in bytes: each sector once per launch, as if L2 kept all.
    pub bytes: f64,
}

/// Models the launches in `counters`. `registers` is the number of registers of a thread, if known. Returns `None` if
/// no block fits on a multiprocessor.
pub fn time(
    profile: &Profile,
    counters: &Counters,
    program: &Program,
    registers: Option<u32>,
) -> Option<Modelled> {
    let card = card(profile);
    let occupancy = Occupancy::new(&card, program, &counters.shape, registers);
    let (counted, launches) = (counters.counted_blocks as f64, counters.launches as f64);
    if counted == 0.0 || occupancy.blocks() == 0 {
        return None;
    }
    let scale = counters.blocks as f64 / counted;
    let bytes = (counters.footprint as f64 * scale).min(counters.reach as f64);

    let fetched = (counters.fetched + counters.stores.sectors + counters.atomics.sectors) as f64;
    let from_memory = (bytes / (fetched * scale * SECTOR as f64).max(1.0)).min(1.0);
    let far = L2_LATENCY + from_memory * (MEMORY_LATENCY - L2_LATENCY);
    let estimates = Estimates::new(program, counters, far);
    let leaders: Vec<u64> = counters.leaders().collect();
    let path = estimates.path(program, &leaders, counters.counted_blocks);

    // Warps between barriers are independent. With barriers, the warps of a block reach each unit together.
    let barriers = counters.barriers(program) as f64;
    let (grain, warps) = match barriers > 0.0 {
        true => (counted, occupancy.warps_of_block),
        false => (counted * occupancy.warps_of_block as f64, 1),
    };
    let blocks = (counters.blocks as f64 / launches).ceil() as u64;
    // The cycles of a wave of `blocks` blocks, and its bound.
    let wave = |blocks: u64| {
        let active = blocks.min(card.multiprocessors).max(1);
        let customers = blocks.div_ceil(active) * occupancy.warps_of_block / warps;
        let demands = demands(profile, counters, program, &estimates, bytes / scale, active as f64);
        let demands = demands.map(|(unit, cycles)| (unit, cycles / grain));
        // While one warp of a block is at the busiest unit, the others pass the other units.
        let (unit, longest) =
            demands.into_iter().fold(("latency", 0.0), |a, b| if b.1 > a.1 { b } else { a });
        let others = demands.iter().map(|(_, cycles)| cycles).sum::<f64>() - longest;
        let alone = path + others / warps as f64;
        let bound = if longest * customers as f64 > longest + alone { unit } else { "latency" };
        (cycle(longest, alone, customers), bound)
    };
    let at_once = occupancy.blocks() * card.multiprocessors;
    let (full, bound) = wave(at_once.min(blocks));
    let last =
        if blocks.is_multiple_of(at_once) || blocks < at_once { 0.0 } else { wave(blocks % at_once).0 };
    let cycles = (blocks / at_once).max(1) as f64 * full + last;
    let clock = profile.clock.value; // MHz: cycles per microsecond
    let weighted = counters.each().zip(&estimates.of).map(|((warps, _), of)| warps as f64 * of.instructions);
    Some(Modelled {
        microseconds: launches * (profile.smallest_kernel.value + cycles / clock),
        bound,
        instructions: scale * weighted.sum::<f64>(),
        bytes,
    })
}

/// The total cycles of each unit of a multiprocessor for the counted blocks.
fn demands(
    profile: &Profile,
    counters: &Counters,
    program: &Program,
    estimates: &Estimates,
    bytes: f64,
    active: f64,
) -> [(&'static str, f64); 9] {
    let generation = generation(profile);
    let sum = |wanted: Option<Unit>| {
        let all = counters.each().zip(&estimates.of);
        let of = all.filter(|(_, of)| wanted.is_none_or(|unit| of.unit == unit));
        of.map(|((warps, _), of)| warps as f64 * of.instructions).sum::<f64>()
    };
    // The peak counts a fused product and sum as two operations.
    let lanes = |peak: f64| peak / (2.0 * profile.multiprocessors.value * profile.clock.value * 1e-3);
    let float_lanes = lanes(profile.fp32.value) * profile.gemm_factor.value;
    let double_lanes = lanes(profile.fp64.value) * profile.gemm_factor.value;
    let shuffles: u64 = program
        .ops
        .iter()
        .zip(counters.each())
        .filter(|(op, _)| matches!(op, Op::Shuffle { .. } | Op::Vote { .. }))
        .map(|(_, (warps, _))| warps)
        .sum();
    let requests = counters.loads.requests + counters.stores.requests + counters.atomics.requests;
    let passes = counters.lines.max(ADDRESSES * requests)
        + counters.shared_loads.wavefronts
        + counters.shared_stores.wavefronts
        + counters.shared_atomics.wavefronts;
    let pass = PASS / (4.0 * generation.memory_lanes);
    let sectors = counters.fetched + counters.stores.sectors + counters.atomics.sectors;
    let cycles_per_microsecond = profile.clock.value;
    let memory = profile.dram.value * 1e3 * profile.dram_factor.value / cycles_per_microsecond; // bytes per cycle
    [
        ("instruction issue", sum(None) / ISSUED),
        ("integer arithmetic", sum(Some(Unit::Integer)) * LANES / generation.integer_lanes),
        ("float arithmetic", sum(Some(Unit::Float)) * LANES / float_lanes),
        ("double arithmetic", sum(Some(Unit::Double)) * LANES / double_lanes),
        ("special functions", sum(Some(Unit::Special)) * LANES / SPECIAL_LANES),
        ("loads and stores", passes as f64 * pass + shuffles as f64),
        ("barriers", counters.barriers(program) as f64 * LANES / BARRIER_LANES),
        // All multiprocessors share L2, so each gets its part. Updates of one address go one after another.
        ("L2 cache", (sectors * SECTOR) as f64 / L2_BYTES + counters.hottest as f64 * active),
        ("memory", bytes * active / memory),
    ]
}

/// The cycles in which `customers` blocks (or warps) each pass the busiest unit once, for `service` cycles, if all
/// start together and spend `alone` cycles elsewhere. The exact mean-value analysis of a closed queueing network
/// (Reiser and Lavenberg, 1980): an arriving customer sees the queue of a network with one customer less.
fn cycle(service: f64, alone: f64, customers: u64) -> f64 {
    let (mut queue, mut total) = (0.0, 0.0);
    for count in 1..=customers {
        let wait = service * (1.0 + queue);
        total = alone + wait;
        queue = count as f64 * wait / total;
    }
    total
}
