//! Notes the accesses of a warp, to detect races.
//!
//! Most need not be noted: accesses to shared memory wait while no two of them since the barrier can have met. An
//! access that may meet another makes all of them noted, in order. Otherwise the next barrier drops them. Reads of the
//! heap wait likewise, see [`super::cells`]. Nothing waits if threads synchronise by fences.

use super::access::{Which, which};
use super::block::{Block, Warp};
use super::cells::{PAGE, Run};
use super::hazards::Hazard;
use super::interpreter::Runner;
use super::races::{Access, Kind};
use super::registers::ALL;
use super::words::BITS;
use crate::ir::{LANES, space};

#[derive(Default)]
pub struct Waiting {
    all: Vec<Noted>,
    has_reads: bool,
    /// Written ranges, each by lanes with distinct words.
    written: Vec<(u32, u32)>,
    /// Some accesses may have met, so everything is noted at once.
    is_over: bool,
}

struct Noted {
    pc: u32,
    size: u64,
    kind: Kind,
    lanes: Lanes,
    at: [u32; LANES],
}

#[derive(Clone, Copy)]
struct Lanes {
    warp: u32,
    mask: u32,
    turns: [u16; LANES],
    steps: [u16; LANES],
}

const MOST_WAITING: usize = 1024;
const MOST_WRITTEN: usize = 64;
/// Accesses with more runs of lanes do not wait.
const MOST_RUNS: usize = 8;

impl Runner<'_> {
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
                    here |= BITS[lane];
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

    /// As [`Runner::note`], for offsets within one memory.
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
        let mut lanes = Lanes { warp: warp.number, mask, turns: warp.turns, steps: warp.steps };
        let may_wait = self.machine.order.clocks.is_none() && !self.machine.notes_at_once;
        if !is_shared {
            if may_wait && kind == Kind::Read && mask == ALL && size == 4 {
                lanes.mask = self.wait_in_runs(block, &lanes, pc, at);
            }
            if lanes.mask != 0 {
                self.note_now::<false>(block, Some(warp), &lanes, pc, at, size, kind);
            }
            return;
        }
        if may_wait && block.waiting.may_take(at, mask, size, kind) {
            block.waiting.all.push(Noted { pc, size, kind, lanes, at: *at });
            return;
        }
        if !block.waiting.is_over {
            block.waiting.is_over = true;
            for noted in std::mem::take(&mut block.waiting.all) {
                self.note_now::<true>(block, None, &noted.lanes, noted.pc, &noted.at, noted.size, noted.kind);
            }
        }
        self.note_now::<true>(block, Some(warp), &lanes, pc, at, size, kind);
    }

    /// Lets lanes that read words of the heap wait. Returns the lanes that cannot.
    #[inline(always)]
    fn wait_in_runs(&mut self, block: &Block, lanes: &Lanes, pc: u32, at: &[u32; LANES]) -> u32 {
        let (mut rising, mut same) = (0u32, 0u32);
        for lane in 0..LANES - 1 {
            rising |= if at[lane + 1] == at[lane] + 4 { BITS[lane] } else { 0 };
            same |= if at[lane + 1] == at[lane] { BITS[lane] } else { 0 };
        }
        let turn = lanes.turns[0];
        let runs = LANES as u32 - (rising | same).count_ones();
        if runs as usize > MOST_RUNS || lanes.turns.iter().fold(false, |any, other| any | (*other != turn)) {
            return lanes.mask;
        }
        let (mut lane, mut rest) = (0, 0);
        while lane < LANES {
            let (rising, same) = ((rising >> lane).trailing_ones(), (same >> lane).trailing_ones());
            let word = at[lane] as usize / 4;
            let is_one_word = same > rising;
            let count = match is_one_word {
                true => same as usize + 1,
                false => (rising as usize + 1).min(PAGE - word % PAGE),
            };
            let first = Access {
                block: block.number,
                interval: block.interval,
                thread: (lanes.warp * 32) as u16 + lane as u16,
                turn,
                pc,
                bytes: 15,
                ..Access::default()
            };
            let run = Run { first, word: (word % PAGE) as u8, lanes: count as u8, is_one_word };
            if !self.machine.cells.wait(&self.machine.order, word / PAGE, run) {
                rest |= (u32::MAX >> (32 - count)) << lane;
            }
            lane += count;
        }
        rest
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
            if lanes.mask & BITS[lane] == 0 {
                continue;
            }
            me.thread = (lanes.warp * 32) as u16 + lane as u16;
            me.turn = lanes.turns[lane];
            me.step = lanes.steps[lane];
            if size < 4 {
                me.bytes = ((1 << size) - 1) << (at[lane] & 3);
            }
            for word in 0..size.div_ceil(4) {
                let at = at[lane] + 4 * word as u32;
                if let Some((other, other_kind)) = cells.note(&self.machine.order, at as usize / 4, &me, kind)
                {
                    found.push(Hazard { me, kind, other, other_kind, is_shared: SHARED, at });
                }
            }
        }
        for hazard in found {
            self.report_hazard(block, warp, lanes.mask, at, &hazard);
        }
    }
}

impl Waiting {
    /// Drops everything at a barrier: it orders all earlier accesses before all later ones.
    pub fn forget(&mut self) {
        self.all.clear();
        self.written.clear();
        (self.has_reads, self.is_over) = (false, false);
    }

    /// Whether an access can wait, because it cannot meet a waiting one.
    #[inline(always)]
    fn may_take(&mut self, at: &[u32; LANES], mask: u32, size: u64, kind: Kind) -> bool {
        if self.is_over || self.all.len() == MOST_WAITING {
            return false;
        }
        match kind {
            Kind::Read if self.written.is_empty() => {}
            Kind::Read => {
                let (from, to) = bounds(at, mask, size);
                if !self.is_apart(from, to) {
                    return false;
                }
            }
            Kind::Write => {
                let (from, to) = bounds(at, mask, size);
                if self.has_reads || !self.is_apart(from, to) || !is_rising(at, mask, size) {
                    return false;
                }
                let is_full = self.written.len() == MOST_WRITTEN;
                match self.written.last_mut() {
                    Some(last) if last.1 == from => last.1 = to,
                    _ if is_full => return false,
                    _ => self.written.push((from, to)),
                }
            }
            _ => return false,
        }
        self.has_reads |= kind == Kind::Read;
        true
    }

    #[inline(always)]
    fn is_apart(&self, from: u32, to: u32) -> bool {
        self.written.iter().all(|written| to <= written.0 || written.1 <= from)
    }
}

/// From the first byte to the end of the last.
#[inline(always)]
fn bounds(at: &[u32; LANES], mask: u32, size: u64) -> (u32, u32) {
    let (mut from, mut to) = (u32::MAX, 0);
    for lane in 0..LANES {
        if mask == ALL || mask & BITS[lane] != 0 {
            (from, to) = (from.min(at[lane]), to.max(at[lane]));
        }
    }
    // Races are detected by word.
    (from & !3, (to + size as u32).next_multiple_of(4))
}

/// Whether each lane's address is past the previous one's, so that no two lanes share a word.
#[inline(always)]
fn is_rising(at: &[u32; LANES], mask: u32, size: u64) -> bool {
    let size = size.max(4) as u32;
    if mask == ALL {
        return (0..LANES - 1).fold(true, |all, lane| all & (at[lane + 1] >= at[lane] + size));
    }
    let mut end = 0;
    (0..LANES).filter(|lane| mask & BITS[*lane] != 0).all(|lane| {
        let is_behind = at[lane] >= end;
        end = at[lane] + size;
        is_behind
    })
}
