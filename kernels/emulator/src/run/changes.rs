//! The values that a recorded step changes: of variables, and of cells of shared memory.

use super::access::{Which, which};
use super::block::{Block, Warp};
use super::interpreter::Runner;
use super::recorder::{Recorder, lanes};
use super::recording::{Cells, Change, Content};
use crate::ir::debug::{Part, Place};
use crate::ir::{IndexKind, LANES, Prim, Scaled, size_of, space};

impl Recorder {
    pub(super) fn changed_variables(&mut self, runner: &Runner, block: &Block, warp: &Warp) -> Vec<Change> {
        let mut changes = Vec::new();
        for (number, variable) in runner.program.debug.variables.iter().enumerate() {
            let visible = lanes(warp.live).filter(|lane| self.lanes[*lane].sees(variable));
            let visible = visible.fold(0u32, |all, lane| all | 1 << lane);
            for (at, part) in variable.parts.iter().enumerate() {
                let (shown, written) = (&mut self.shown[number][at], self.written[number][at]);
                let mut new = [Content::Nothing; LANES];
                for lane in lanes(visible) {
                    if variable.ends.is_some_and(|ends| self.lanes[lane].next > ends) {
                        new[lane] = shown[lane];
                        continue;
                    }
                    new[lane] = match runner.part(block, warp, lane, part) {
                        Some(_) if variable.is_bare && written >> lane & 1 == 0 => Content::Unwritten,
                        Some(bits) => Content::Bits(bits),
                        None => Content::Unwritten,
                    };
                }
                let changed = (0..LANES).filter(|lane| new[*lane] != shown[*lane]);
                let changed = changed.fold(0u32, |all, lane| all | 1 << lane);
                if changed != 0 {
                    *shown = new;
                    let contents = lanes(changed).map(|lane| new[lane]).collect();
                    let (variable, part) = (number as u32, at as u32);
                    changes.push(Change { variable, part, lanes: changed, contents });
                }
            }
        }
        changes
    }

    /// The shared cells that differ from those shown.
    pub(super) fn changed_cells(&mut self, runner: &Runner, block: &Block) -> Vec<Cells> {
        let mut changes: Vec<Cells> = Vec::new();
        if self.shared == block.shared {
            return changes;
        }
        self.shared.clone_from(&block.shared);
        for (number, variable) in runner.program.debug.shared.iter().enumerate() {
            let start = runner.shared_offset(variable.address);
            for (at, shown) in self.cells[number].iter_mut().enumerate() {
                let (element, field) = (at / variable.fields.len(), at % variable.fields.len());
                let (offset, _, kind) = &variable.fields[field];
                let from = start + element as u64 * variable.element_size + offset;
                let new = shared_content(block, from as usize, kind.prim());
                if new == *shown {
                    continue;
                }
                *shown = new;
                match changes.last_mut() {
                    Some(last)
                        if last.variable == number as u32
                            && last.first as usize + last.contents.len() == at =>
                    {
                        last.contents.push(new);
                    }
                    _ => {
                        changes.push(Cells { variable: number as u32, first: at as u32, contents: vec![new] })
                    }
                }
            }
        }
        self.values += changes.iter().map(|change| change.contents.len()).sum::<usize>();
        changes
    }
}

impl Runner<'_> {
    /// The bits of a part of a variable in one lane.
    pub(super) fn part(&self, block: &Block, warp: &Warp, lane: usize, part: &Part) -> Option<u64> {
        let prim = part.kind.prim();
        let address = match part.place {
            Place::Constant(bits) => return Some(bits),
            Place::Row(row) => return Some(warp.registers.bits(prim, row, lane)),
            Place::Fixed(address) => address,
            Place::Memory { base, first, second, offset } => {
                let base = base.map_or(0, |row| warp.registers.bits(Prim::U64, row, lane));
                base.wrapping_add(index(warp, lane, first))
                    .wrapping_add(index(warp, lane, second))
                    .wrapping_add(offset)
            }
        };
        self.peek(block, warp, lane, address, prim)
    }

    /// Reads memory without findings; `None` if it is not allocated.
    pub(super) fn peek(
        &self,
        block: &Block,
        warp: &Warp,
        lane: usize,
        address: u64,
        ty: Prim,
    ) -> Option<u64> {
        let size = size_of(ty);
        let bytes = match which(address) {
            Which::Heap => &self.machine.heap.space.bytes[self.machine.heap.range(address, size)?],
            Which::Shared => {
                let at = self.shared_offset(address) as usize;
                block.shared.bytes.get(at..at + size as usize)?
            }
            Which::Local => {
                let at = self.local_offset(warp, lane, address, size)?;
                block.local.get(at..at + size as usize)?
            }
            Which::Parameters => {
                let at = (address - space::PARAMETERS) as usize;
                self.parameters.get(at..at + size as usize)?
            }
            Which::None => return None,
        };
        let mut all = [0u8; 8];
        all[..size as usize].copy_from_slice(bytes);
        Some(super::arithmetic::narrowed(ty, u64::from_le_bytes(all)))
    }
}

pub(super) fn index(warp: &Warp, lane: usize, index: Scaled) -> u64 {
    let number = match index.kind {
        IndexKind::None => 0,
        IndexKind::I32 => warp.registers.bits(Prim::I32, index.row, lane) as u32 as i32 as i64 as u64,
        IndexKind::U32 => warp.registers.bits(Prim::U32, index.row, lane),
        IndexKind::I64 => warp.registers.bits(Prim::I64, index.row, lane),
    };
    number.wrapping_mul(u64::from(index.scale))
}

pub(super) fn shared_content(block: &Block, from: usize, ty: Prim) -> Content {
    let size = size_of(ty) as usize;
    let (Some(bytes), Some(states)) =
        (block.shared.bytes.get(from..from + size), block.shared.states.get(from..from + size))
    else {
        return Content::Nothing;
    };
    if !states.iter().all(|state| state & super::memory::WRITTEN != 0) {
        return Content::Nothing;
    }
    let mut all = [0u8; 8];
    all[..size].copy_from_slice(bytes);
    Content::Bits(super::arithmetic::narrowed(ty, u64::from_le_bytes(all)))
}
