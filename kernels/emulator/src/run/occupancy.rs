//! The number of warps that a multiprocessor can hold at once, as in CUDA's occupancy calculator.

use super::launch::Shape;
use crate::ir::Program;

/// The figures of a GPU that a kernel's report needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// For example `Tesla T4`.
    pub name: String,
    pub multiprocessors: u64,
    /// The maximum that a multiprocessor holds at once.
    pub warps: u64,
    pub blocks: u64,
    /// Shared memory of a multiprocessor, and the system's part of it for each block, in bytes.
    pub shared: u64,
    pub shared_of_system: u64,
    /// Shared memory is allocated in multiples of this.
    pub shared_unit: u64,
    /// Peak values: float operations per second, and memory bytes per second.
    pub flops: f64,
    pub bytes: f64,
}

/// Registers of a multiprocessor, in every generation since 2014.
const REGISTERS: u64 = 65_536;
/// Registers are allocated to warps in multiples of this, and warps in fours.
const REGISTER_UNIT: u64 = 256;
const WARP_UNIT: u64 = 4;

/// The number of blocks that a multiprocessor holds, by each of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    pub warps_of_block: u64,
    most_warps: u64,
    pub by_warps: u64,
    pub by_blocks: u64,
    pub by_shared: u64,
    /// `None` if no compiler for the card has reported the register count.
    pub by_registers: Option<u64>,
}

impl Occupancy {
    pub fn new(card: &Card, program: &Program, shape: &Shape, registers: Option<u32>) -> Occupancy {
        let threads = shape.block.iter().map(|n| u64::from(*n)).product::<u64>();
        let warps_of_block = threads.div_ceil(32).max(1);
        let shared = program.shared_bytes + shape.dynamic_shared;
        let shared = (shared + card.shared_of_system).next_multiple_of(card.shared_unit.max(1));
        let by_registers = registers.map(|registers| {
            let of_warp = (u64::from(registers.max(1)) * 32).next_multiple_of(REGISTER_UNIT);
            REGISTERS / of_warp / WARP_UNIT * WARP_UNIT / warps_of_block
        });
        Occupancy {
            warps_of_block,
            most_warps: card.warps,
            by_warps: card.warps / warps_of_block,
            by_blocks: card.blocks,
            by_shared: card.shared.checked_div(shared).unwrap_or(card.blocks),
            by_registers,
        }
    }

    pub fn blocks(&self) -> u64 {
        let known = [Some(self.by_warps), Some(self.by_blocks), Some(self.by_shared), self.by_registers];
        known.into_iter().flatten().min().unwrap_or(0)
    }

    /// Theoretical occupancy: resident warps divided by the maximum.
    pub fn theoretical(&self) -> f64 {
        (self.blocks() * self.warps_of_block) as f64 / self.most_warps as f64
    }
}
