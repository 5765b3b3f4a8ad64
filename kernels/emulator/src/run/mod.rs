//! The interpreter, the memory, and the checks.

pub mod access;
pub mod arithmetic;
pub mod atomics;
pub mod block;
pub mod cells;
pub mod checks;
pub mod clocks;
pub mod counters;
pub mod ended;
pub mod hazards;
pub mod interpreter;
pub mod launch;
pub mod math;
pub mod memory;
pub mod noted;
pub mod occupancy;
pub mod on_host;
pub mod operations;
pub mod printf;
pub mod races;
pub mod recorder;
pub mod recording;
pub mod registers;
pub mod stacks;
pub mod steps;
pub mod warp_operations;
pub mod words;

/// The start of dynamic shared memory in the window of shared memory.
pub const DYNAMIC_SHARED: u64 = 0x4_0000;
