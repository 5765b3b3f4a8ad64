use super::memory::{ALLOCATED, Space, WRITTEN};
use super::registers::Registers;
use super::stacks::Stack;
use crate::ir::Program;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    Barrier,
    /// At a warp-synchronous operation with this mask.
    Lanes(u32),
}

/// Lanes at the same instruction.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub pc: u32,
    pub mask: u32,
    pub state: State,
    /// The number of times that the group yielded after many backward jumps.
    pub gave_way: u32,
}

pub struct Warp {
    pub number: u32,
    pub registers: Registers,
    pub groups: Vec<Group>,
    /// Lanes that have not exited.
    pub live: u32,
    /// The number of warp-synchronous operations of each lane since the barrier.
    pub turns: [u16; 32],
    /// The number of fences of each lane.
    pub steps: [u16; 32],
    /// The calls of each lane. Empty until a recursive function is called.
    pub stacks: Vec<Stack>,
}

pub struct Block {
    pub index: [u32; 3],
    pub number: u32,
    pub warps: Vec<Warp>,
    pub shared: Space,
    pub shared_size: u64,
    pub cells: super::cells::Cells,
    /// Accesses to shared memory that are not noted yet.
    pub waiting: super::noted::Waiting,
    /// Local memory of all threads, one after another.
    pub local: Vec<u8>,
    pub interval: u32,
}

/// The offset of dynamic shared memory in the block's shared memory.
pub fn dynamic_start(program: &Program) -> u64 {
    program.shared_bytes.next_multiple_of(16) + 32
}

impl Block {
    pub fn new(
        program: &Program,
        index: [u32; 3],
        number: u32,
        threads: u32,
        dynamic: u64,
        interval: u32,
        with_cells: bool,
    ) -> Block {
        let mut shared = Space::default();
        let start = dynamic_start(program);
        let size = if program.shared.is_empty() && dynamic == 0 { 0 } else { start + dynamic };
        shared.resize(size as usize + 64);
        for slot in &program.shared {
            shared.mark(slot.offset, slot.size, ALLOCATED);
        }
        if dynamic > 0 {
            shared.mark(start, dynamic, ALLOCATED);
        }
        let mut cells = super::cells::Cells::default();
        if with_cells {
            cells.grow(size as usize);
        }
        let warps = (0..threads.div_ceil(32))
            .map(|number| {
                let lanes = (threads - number * 32).min(32);
                let live = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
                let mut registers = Registers::new(program.rows);
                for (row, bits, wide) in &program.constants {
                    match wide {
                        true => registers.fill64(*row, *bits),
                        false => registers.fill32(*row, *bits as u32),
                    }
                }
                let groups = vec![Group { pc: 0, mask: live, state: State::Ready, gave_way: 0 }];
                Warp { number, registers, groups, live, turns: [0; 32], steps: [0; 32], stacks: Vec::new() }
            })
            .collect();
        let local =
            vec![
                0xcd;
                if program.local.is_empty() { 0 } else { program.local_bytes as usize * threads as usize }
            ];
        Block {
            index,
            number,
            warps,
            shared,
            shared_size: size,
            cells,
            waiting: super::noted::Waiting::default(),
            local,
            interval,
        }
    }

    pub fn is_done(&self) -> bool {
        self.warps.iter().all(|warp| warp.live == 0)
    }

    /// A byte written by one thread counts as written for all threads.
    pub const STORED: u8 = ALLOCATED | WRITTEN;
}
