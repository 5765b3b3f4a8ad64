//! Reports of races.
//!
//! They follow compute-sanitizer. Two writes of the same value have level INFO, which its reports omit. Accesses within
//! one warp without a `__syncwarp` between them are warnings; all others are errors. Hazards are counted in bytes.

use super::block::{Block, Warp};
use super::checks::{Finding, Severity, Site};
use super::interpreter::Runner;
use super::launch::thread;
use super::races::{Access, Kind};
use crate::ir::{LANES, Op, Prim, size_of, space};

/// Two unordered accesses to a word, of which `me` is the later one.
pub struct Hazard {
    pub me: Access,
    pub kind: Kind,
    pub other: Access,
    pub other_kind: Kind,
    pub is_shared: bool,
    /// The word, as an offset into the heap or into shared memory.
    pub at: u32,
}

impl Runner<'_> {
    /// Reports a hazard. A read that is noted late has no warp. The value of a write is not in memory yet.
    #[cold]
    pub fn report_hazard(
        &mut self,
        block: &Block,
        warp: Option<&Warp>,
        mask: u32,
        at: &[u32; LANES],
        hazard: &Hazard,
    ) {
        let Hazard { me, other, kind, other_kind, .. } = hazard;
        let memory = if hazard.is_shared { "__shared__" } else { "__global__" };
        let class = match (other_kind, kind) {
            (Kind::Read, _) => "WAR",
            (_, Kind::Read) => "RAW",
            _ => "WAW",
        };
        let is_same_warp = other.interval == me.interval && other.thread / 32 == me.thread / 32;
        let values = warp.and_then(|warp| self.values(block, warp, mask, at, hazard));
        let is_identical = class == "WAW" && values.is_some_and(|(_, current, incoming)| current == incoming);
        let (severity, remark) = match (is_identical, is_same_warp && class != "WAW") {
            (true, _) => (Severity::Info, "Identical data being written"),
            (_, true) => (Severity::Warning, "Warp Level Programming"),
            _ => (Severity::Error, ""),
        };
        let start = if hazard.is_shared { 0 } else { space::HEAP };
        let mut notes = vec![format!("{class} hazard at {memory} {:#x}", start + u64::from(hazard.at))];
        if !remark.is_empty() {
            notes[0].push_str(&format!(" ({remark})"));
        }
        if let Some((ty, current, incoming)) = values {
            let (current, incoming) = (shown(ty, current), shown(ty, incoming));
            notes.push(format!("Current Value : {current}, Incoming Value : {incoming}"));
        }
        let is_here = other.interval >= self.machine.order.start;
        if !is_here {
            notes.push("the other access belongs to an unordered launch in another stream".to_owned());
        }
        let [x, y, _] = self.shape.grid.map(u64::from);
        let number = u64::from(other.block);
        let index = [number % x, number / x % y, number / (x * y)].map(|index| index as u32);
        let site = |access: &Access, kind, index, span| Site {
            text: format!("{} access at", name(kind)),
            span,
            thread: Some(thread(&self.shape, index, u32::from(access.thread))),
        };
        let span = |access: &Access| self.program.spans[access.pc as usize];
        // A pair of positions is one report in either order. A write comes before a read; otherwise, program order
        // decides.
        let order = |kind: Kind, access: &Access| (kind == Kind::Read, access.pc);
        let is_turned = is_here && order(*kind, me) < order(*other_kind, other);
        let mut both = [
            (*other_kind, site(other, *other_kind, index, is_here.then(|| span(other)))),
            (*kind, site(me, *kind, block.index, Some(span(me)))),
        ];
        if is_turned {
            both.swap(0, 1);
        }
        let [(first, one), (second, two)] = both;
        self.machine.findings.add(Finding {
            check: "racecheck",
            severity,
            title: format!(
                "Race reported between {} access and {} access in {memory} memory",
                name(first),
                name(second)
            ),
            function: self.program.name.clone(),
            sites: vec![one, two],
            notes,
            count: u64::from((me.bytes & other.bytes).count_ones()),
            is_fatal: false,
        });
    }

    /// Returns the old value, and the value that a store is about to write.
    fn values(
        &self,
        block: &Block,
        warp: &Warp,
        mask: u32,
        at: &[u32; LANES],
        hazard: &Hazard,
    ) -> Option<(Prim, u64, u64)> {
        let Hazard { me, other, .. } = hazard;
        let Op::Store { ty, a, .. } = self.program.ops[me.pc as usize] else { return None };
        let (lane, other_lane) = (me.thread as usize % 32, other.thread as usize % 32);
        let value = |lane| super::arithmetic::narrowed(ty, warp.registers.bits(ty, a, lane));
        let is_same_instruction = other.pc == me.pc
            && other.interval == me.interval
            && other.thread / 32 == me.thread / 32
            && other.turn == me.turn
            && mask >> other_lane & 1 != 0
            && at[other_lane] == at[lane];
        if is_same_instruction {
            return Some((ty, value(other_lane), value(lane)));
        }
        let memory = if hazard.is_shared { &block.shared.bytes } else { &self.machine.heap.space.bytes };
        let from = at[lane] as usize;
        let mut bits = [0u8; 8];
        let size = size_of(ty) as usize;
        bits[..size].copy_from_slice(memory.get(from..from + size)?);
        let current = super::arithmetic::narrowed(ty, u64::from_le_bytes(bits));
        Some((ty, current, value(lane)))
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "Read",
        Kind::Write => "Write",
        Kind::Atomic | Kind::BlockAtomic => "Atomic",
    }
}

fn shown(ty: Prim, bits: u64) -> String {
    match ty {
        Prim::F32 => format!("{:?}", f32::from_bits(bits as u32)),
        Prim::F64 => format!("{:?}", f64::from_bits(bits)),
        Prim::U64 => bits.to_string(),
        Prim::I64 => (bits as i64).to_string(),
        Prim::Bool | Prim::U8 | Prim::U16 | Prim::U32 => (bits as u32).to_string(),
        _ => (bits as u32 as i32).to_string(),
    }
}
