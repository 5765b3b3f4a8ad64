//! The number of warps that a multiprocessor can hold at once: CUDA's occupancy calculator for the emulated device, a
//! Tesla T4 (compute capability 7.5).

use super::launch::Shape;
use crate::ir::Program;

pub const MULTIPROCESSORS: u64 = 40;
pub const MOST_WARPS: u64 = 32;
const MOST_BLOCKS: u64 = 16;
const REGISTERS: u64 = 65_536;
const SHARED: u64 = 64 * 1024;
/// Allocation units: registers are allocated to warps, shared memory to blocks, and warps in fours.
const REGISTER_UNIT: u64 = 256;
const SHARED_UNIT: u64 = 256;
const WARP_UNIT: u64 = 4;

/// The number of blocks that a multiprocessor holds, by each of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    pub warps_of_block: u64,
    pub by_warps: u64,
    pub by_blocks: u64,
    pub by_shared: u64,
    /// `None` if the register count is unknown, because no compiler for the card has reported it.
    pub by_registers: Option<u64>,
}

impl Occupancy {
    pub fn new(program: &Program, shape: &Shape, registers: Option<u32>) -> Occupancy {
        let threads = shape.block.iter().map(|n| u64::from(*n)).product::<u64>();
        let warps_of_block = threads.div_ceil(32).max(1);
        let shared = (program.shared_bytes + shape.dynamic_shared).next_multiple_of(SHARED_UNIT);
        let by_registers = registers.map(|registers| {
            let of_warp = (u64::from(registers.max(1)) * 32).next_multiple_of(REGISTER_UNIT);
            REGISTERS / of_warp / WARP_UNIT * WARP_UNIT / warps_of_block
        });
        Occupancy {
            warps_of_block,
            by_warps: MOST_WARPS / warps_of_block,
            by_blocks: MOST_BLOCKS,
            by_shared: SHARED.checked_div(shared).unwrap_or(MOST_BLOCKS),
            by_registers,
        }
    }

    pub fn blocks(&self) -> u64 {
        let known = [Some(self.by_warps), Some(self.by_blocks), Some(self.by_shared), self.by_registers];
        known.into_iter().flatten().min().unwrap_or(0)
    }

    /// Theoretical occupancy: resident warps divided by the maximum.
    pub fn theoretical(&self) -> f64 {
        (self.blocks() * self.warps_of_block) as f64 / MOST_WARPS as f64
    }
}
