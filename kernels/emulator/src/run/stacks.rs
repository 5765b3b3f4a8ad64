//! The calls of recursive functions that have not returned, for each lane.

use super::block::{Block, Group, Warp};
use super::interpreter::{Runner, Stop};
use super::launch::fatal;
use crate::ir::{LANES, Op, Prim, Program, Row};

/// The maximum stack size of a device thread, and of the host, in bytes.
const MOST_OF_THREAD: usize = 64 * 1024;
pub const MOST_OF_HOST: usize = 64 << 20;

#[derive(Clone, Default)]
pub struct Stack {
    calls: Vec<u32>,
    saved: Vec<u64>,
    bytes: u64,
}

impl Stack {
    /// Enters the function of a call at `pc`. Returns the address of its local variables, or `None` if the stack is
    /// full.
    #[inline(always)]
    pub fn enter(
        &mut self,
        program: &Program,
        pc: u32,
        most: usize,
        bits: impl Fn(Prim, Row) -> u64,
    ) -> Option<u64> {
        let Op::Call { first, count, bytes, .. } = program.ops[pc as usize] else { return None };
        let (base, most_bytes) = program.stack;
        let at = base + self.bytes;
        self.bytes += u64::from(bytes);
        if 8 * (self.saved.len() + self.calls.len()) > most || self.bytes > most_bytes {
            return None;
        }
        let rows = &program.saved[first as usize..(first + count) as usize];
        self.saved.extend(rows.iter().map(|(row, is_wide)| bits(type_of(*is_wide), *row)));
        self.calls.push(pc);
        Some(at)
    }

    /// Leaves a function: restores the rows, and returns the next instruction.
    #[inline(always)]
    pub fn leave(&mut self, program: &Program, mut restore: impl FnMut(Prim, Row, u64)) -> Option<u32> {
        let pc = self.calls.pop()?;
        let Op::Call { first, count, bytes, .. } = program.ops[pc as usize] else { return None };
        let rows = &program.saved[first as usize..(first + count) as usize];
        let start = self.saved.len() - rows.len();
        for ((row, is_wide), bits) in rows.iter().zip(self.saved.drain(start..)) {
            restore(type_of(*is_wide), *row, bits);
        }
        self.bytes -= u64::from(bytes);
        Some(pc + 1)
    }

    pub fn depth(&self) -> usize {
        self.calls.len()
    }
}

impl Runner<'_> {
    pub fn enter(&mut self, block: &Block, warp: &mut Warp, mask: u32, pc: u32) -> Result<(), Stop> {
        let program = self.program;
        let Op::Call { frame, .. } = program.ops[pc as usize] else { return Ok(()) };
        if warp.stacks.is_empty() {
            warp.stacks.resize(LANES, Stack::default());
        }
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            let registers = &warp.registers;
            let bits = |ty, row| registers.bits(ty, row, lane);
            let Some(at) = warp.stacks[lane].enter(program, pc, MOST_OF_THREAD, bits) else {
                let site = self.site_of("at", pc, block, warp, lane);
                let notes = vec![depth(&warp.stacks[lane])];
                let title = "Stack overflow".to_owned();
                self.machine.findings.add(fatal("memcheck", title, &self.program.name, vec![site], notes));
                return Err(Stop::LaunchFailure);
            };
            warp.registers.place::<u64>(frame)[lane] = at;
        }
        Ok(())
    }

    /// Returns with all lanes of a group. Those that return to the same place form a group.
    pub fn leave(&self, warp: &mut Warp, group: Group) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for lane in (0..LANES).filter(|lane| group.mask >> lane & 1 != 0) {
            let registers = &mut warp.registers;
            let restore = |ty, row, bits| registers.set_bits(ty, row, lane, bits);
            let back = warp.stacks[lane].leave(self.program, restore);
            let Some(pc) = back else { continue };
            match groups.iter_mut().find(|known| known.pc == pc) {
                Some(known) => known.mask |= 1 << lane,
                None => groups.push(Group { pc, mask: 1 << lane, ..group }),
            }
        }
        groups
    }
}

fn type_of(is_wide: bool) -> Prim {
    if is_wide { Prim::U64 } else { Prim::U32 }
}

pub fn depth(stack: &Stack) -> String {
    format!("{} calls have not returned", super::amounts::thousands(stack.depth() as u64))
}
