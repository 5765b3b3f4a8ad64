//! Accesses of a warp, noted for races.
//!
//! As long as nobody has written to a block's shared memory since the barrier, reads of it cannot race. They are remembered and
//! noted when the first write comes; if none comes before the next barrier, they never are.

use super::access::{Which, which};
use super::block::{Block, Warp};
use super::hazards::Hazard;
use super::interpreter::Runner;
use super::races::{Access, Kind};
use crate::ir::{LANES, space};

/// A read of shared memory that is not noted yet.
pub struct Read {
    pc: u32,
    size: u64,
    lanes: Lanes,
    at: [u32; LANES],
}

/// Who makes an access.
#[derive(Clone, Copy)]
struct Lanes {
    warp: u32,
    mask: u32,
    turns: [u16; LANES],
    steps: [u16; LANES],
}

/// More reads than that are noted at once.
const MOST_READS: usize = 1024;

impl Runner<'_> {
    /// Looks for races at the addresses of an access.
    pub fn note(
        &mut self,
        block: &mut Block,
        warp: &Warp,
        mask: u32,
        pc: u32,
        addresses: &[u64; LANES],
        size: u64,
        kind: Kind,
    ) {
        for memory in [Which::Heap, Which::Shared] {
            let is_shared = memory == Which::Shared;
            let (mut here, mut at) = (0, [0; LANES]);
            for lane in 0..LANES {
                if mask >> lane & 1 != 0 && which(addresses[lane]) == memory {
                    here |= 1 << lane;
                    let offset = match is_shared {
                        true => self.shared_offset(addresses[lane]),
                        false => addresses[lane] - space::HEAP,
                    };
                    at[lane] = offset as u32;
                }
            }
            if here != 0 {
                self.note_all(block, warp, here, pc, is_shared, &at, size, kind);
            }
        }
    }

    /// The same for offsets within one memory.
    #[inline(always)]
    pub fn note_all(
        &mut self,
        block: &mut Block,
        warp: &Warp,
        mask: u32,
        pc: u32,
        is_shared: bool,
        at: &[u32; LANES],
        size: u64,
        kind: Kind,
    ) {
        let lanes = Lanes { warp: warp.number, mask, turns: warp.turns, steps: warp.steps };
        if !is_shared {
            return self.note_now::<false>(block, Some(warp), &lanes, pc, at, size, kind);
        }
        if block.reads_wait && kind == Kind::Read && block.reads.len() < MOST_READS {
            block.reads.push(Read { pc, size, lanes, at: *at });
            return;
        }
        if block.reads_wait {
            block.reads_wait = false;
            for read in std::mem::take(&mut block.reads) {
                self.note_now::<true>(block, None, &read.lanes, read.pc, &read.at, read.size, Kind::Read);
            }
        }
        self.note_now::<true>(block, Some(warp), &lanes, pc, at, size, kind);
    }

    fn note_now<const SHARED: bool>(
        &mut self,
        block: &mut Block,
        warp: Option<&Warp>,
        lanes: &Lanes,
        pc: u32,
        at: &[u32; LANES],
        size: u64,
        kind: Kind,
    ) {
        let mut me =
            Access { block: block.number, interval: block.interval, pc, bytes: 15, ..Access::default() };
        let mut found = Vec::new();
        let cells = if SHARED { &mut block.cells } else { &mut self.machine.cells };
        for lane in 0..LANES {
            if lanes.mask >> lane & 1 == 0 {
                continue;
            }
            me.thread = (lanes.warp * 32) as u16 + lane as u16;
            me.turn = lanes.turns[lane];
            me.step = lanes.steps[lane];
            if size < 4 {
                me.bytes = ((1 << size) - 1) << (at[lane] & 3);
            }
            for word in 0..size.div_ceil(4) {
                let Some(cell) = cells.at(at[lane] as usize / 4 + word as usize) else { continue };
                if let Some((other, other_kind)) = self.machine.order.note(cell, &me, kind) {
                    found.push(Hazard {
                        me,
                        kind,
                        other,
                        other_kind,
                        is_shared: SHARED,
                        at: at[lane] + 4 * word as u32,
                    });
                }
            }
        }
        for hazard in found {
            self.report_hazard(block, warp, lanes.mask, at, &hazard);
        }
    }
}

impl Block {
    /// A barrier: what was before it is before all that follows.
    pub fn forget_reads(&mut self) {
        self.reads.clear();
        self.reads_wait = true;
    }
}
