//! Accesses of a warp to words of 32 bits, all lanes at once. An instruction remembers the last stretch of memory that it
//! was allowed to access, and as long as all lanes stay in it, no state of a byte is looked at. Whatever is not
//! as simple as that takes the long way, lane after lane, which also writes the reports.

use super::block::{Block, Warp};
use super::interpreter::Runner;
use super::memory::Space;
use super::registers::ALL;
use crate::ir::{Address, IndexKind, LANES, Scaled, space};

/// Bytes that all have the state which an instruction needs: from the first to behind the last.
#[derive(Clone, Copy, Default)]
pub struct Stretch {
    from: u32,
    to: u32,
    /// How far to look when lanes leave it. It grows as long as they go on to bytes next to it.
    reach: u32,
}

const FIRST_REACH: u32 = 4096;
/// Offsets are below it, so that sums of three have 32 bits.
const MOST: u64 = 1 << 29;

/// Where the words of a warp are: offsets into the heap, or into the bytes of shared memory. Lanes that are not active have that of
/// one that is.
pub struct Words {
    pub is_shared: bool,
    is_dynamic: bool,
    pub at: [u32; LANES],
}

/// A bit for each lane.
pub const BITS: [u32; LANES] = {
    let mut bits = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

impl Runner<'_> {
    /// Where the words are, if all are in one memory.
    #[inline(always)]
    pub fn words(&self, warp: &Warp, mask: u32, at: &Address) -> Option<Words> {
        let bases = warp.registers.row::<u64>(at.base);
        let some = mask.trailing_zeros() as usize & 31;
        let window = bases[some] & !(space::WINDOW - 1);
        if window != space::SHARED && window != space::HEAP || u64::from(at.offset.unsigned_abs()) >= MOST {
            return None;
        }
        let is_shared = window == space::SHARED;
        let is_dynamic = is_shared && bases[some] - window >= super::DYNAMIC_SHARED;
        let dynamic = self.dynamic_start as i32 - super::DYNAMIC_SHARED as i32;
        let offset = at.offset + if is_dynamic { dynamic } else { 0 };
        let mut words = [(bases[some] - window) as i32 + offset; LANES];
        let mut bits = bases[some] - window;
        // Constants are the same in all lanes.
        if at.base < self.first_constant {
            for lane in 0..LANES {
                let is_active = mask == ALL || mask & BITS[lane] != 0;
                let start = if is_active { bases[lane].wrapping_sub(window) } else { 0 };
                bits |= start;
                words[lane] = (start as i32).wrapping_add(offset);
            }
        }
        if bits >= MOST {
            return None;
        }
        for index in [&at.first, &at.second] {
            if index.kind != IndexKind::None && !add(warp, mask, index, &mut words) {
                return None;
            }
        }
        let mut at = words.map(|word| word as u32);
        if mask != ALL {
            for lane in 0..LANES {
                at[lane] = if mask & BITS[lane] != 0 { at[lane] } else { at[some] };
            }
        }
        Some(Words { is_shared, is_dynamic, at })
    }

    /// Whether an instruction may read (or write) these words, and they are aligned.
    #[inline(always)]
    pub fn may_access(&mut self, block: &Block, pc: u32, words: &Words, align: u8, write: bool) -> bool {
        let stretches = if words.is_shared { &self.shared_stretches } else { &self.heap_stretches };
        let Stretch { from, to, .. } = stretches[pc as usize];
        // Memory whose size the launch says is not reached from an address in other shared memory, and the other way round.
        let is_same = !words.is_shared || words.is_dynamic == (from >= self.dynamic_start);
        if to != 0 && is_same && is_within(words, from, to, align) {
            return true;
        }
        self.find_stretch(block, pc, words, align, write)
    }

    /// Looks for a stretch with all these words.
    #[cold]
    #[inline(never)]
    fn find_stretch(&mut self, block: &Block, pc: u32, words: &Words, align: u8, write: bool) -> bool {
        let least = words.at.iter().copied().min().unwrap_or(0);
        let most = u64::from(words.at.iter().copied().max().unwrap_or(0)) + 4;
        let (space, (bits, wanted)) = match words.is_shared {
            true => (&block.shared, self.shared_rule(write)),
            false => (&self.machine.heap.space, if write { self.write_rule } else { self.read_rule }),
        };
        let Some(end) = u32::try_from(most).ok().filter(|end| *end as usize + 16 <= space.states.len())
        else {
            return false;
        };
        let is_right =
            |states: &[u8]| states.iter().fold(0, |wrong, state| wrong | (state & bits) ^ wanted) == 0;
        let stretches = if words.is_shared { &mut self.shared_stretches } else { &mut self.heap_stretches };
        let known = &mut stretches[pc as usize];
        let is_next_to = known.to != 0 && least <= known.to && end >= known.from;
        let reach = if is_next_to { known.reach.saturating_mul(4) } else { FIRST_REACH };
        if end - least > reach {
            // Words that lie far apart: further tries may look that far.
            known.reach = reach;
            (known.from, known.to) = (least, least);
            return false;
        }
        if !is_right(&space.states[least as usize..end as usize]) {
            return false;
        }
        let (mut from, mut to) = (least, end);
        let (lowest, highest) = (least.saturating_sub(reach), end.saturating_add(reach));
        let highest = highest.min(space.states.len() as u32 - 16);
        const STEP: u32 = 64;
        while from >= lowest + STEP && is_right(&space.states[(from - STEP) as usize..from as usize]) {
            from -= STEP;
        }
        while from > lowest && is_right(&space.states[from as usize - 1..from as usize]) {
            from -= 1;
        }
        while to + STEP <= highest && is_right(&space.states[to as usize..(to + STEP) as usize]) {
            to += STEP;
        }
        while to < highest && is_right(&space.states[to as usize..to as usize + 1]) {
            to += 1;
        }
        if words.is_shared && words.is_dynamic != (from >= self.dynamic_start) {
            return false;
        }
        *known = Stretch { from, to, reach };
        is_within(words, from, to, align)
    }

    pub fn shared_rule(&self, write: bool) -> (u8, u8) {
        use super::memory::{ALLOCATED, WRITTEN};
        let rule = if self.init && !write { ALLOCATED | WRITTEN } else { ALLOCATED };
        (rule, rule)
    }
}

/// Adds an index to the offsets, if none of it is so large that 32 bits do not do.
#[inline(always)]
fn add(warp: &Warp, mask: u32, index: &Scaled, words: &mut [i32; LANES]) -> bool {
    let scale = index.scale as i32;
    if u64::from(index.scale) >= MOST {
        return false;
    }
    // All bits of all magnitudes: at least as large as the largest.
    let mut bits = 0u64;
    macro_rules! add {
        ($ty:ty, $unsigned:ty, $magnitude:expr) => {{
            let row = warp.registers.row::<$ty>(index.row);
            let mut all: $unsigned = 0;
            for lane in 0..LANES {
                let value = if mask == ALL || mask & BITS[lane] != 0 { row[lane] } else { 0 };
                all |= $magnitude(value);
                words[lane] = words[lane].wrapping_add((value as i32).wrapping_mul(scale));
            }
            bits |= u64::from(all);
        }};
    }
    match index.kind {
        IndexKind::I32 => add!(i32, u32, |x: i32| (x ^ x >> 31) as u32),
        IndexKind::U32 => add!(u32, u32, |x: u32| x),
        IndexKind::I64 => add!(i64, u64, |x: i64| (x ^ x >> 63) as u64),
        IndexKind::None => {}
    }
    bits < MOST && (bits + 1) * u64::from(index.scale) < MOST
}

#[inline(always)]
fn is_within(words: &Words, from: u32, to: u32, align: u8) -> bool {
    let (from, last) = (from as i32, to.wrapping_sub(4) as i32);
    let (mut bits, mut outside) = (0, 0);
    for lane in 0..LANES {
        let word = words.at[lane] as i32;
        bits |= word;
        outside |= word.wrapping_sub(from) | last.wrapping_sub(word);
    }
    // Both differences of a word that is outside are right if it is not negative.
    bits >= 0 && outside >= 0 && bits & (i32::from(align.max(4)) - 1) == 0
}

/// Reads words that lie within a stretch.
#[inline(always)]
pub fn gather(space: &Space, words: &Words) -> [u32; LANES] {
    let bytes = space.bytes.as_ptr();
    let mut out = [0; LANES];
    for lane in 0..LANES {
        debug_assert!(words.at[lane] as usize + 4 <= space.bytes.len());
        // SAFETY: all words are within a stretch of this space, and spaces never get smaller.
        out[lane] =
            u32::from_le(unsafe { bytes.add(words.at[lane] as usize).cast::<u32>().read_unaligned() });
    }
    out
}

/// Writes words that lie within a stretch; of lanes with the same word the last one's stays.
#[inline(always)]
pub fn scatter(space: &mut Space, mask: u32, words: &Words, values: &[u32; LANES], state: Option<u8>) {
    let all = state.map(|state| u32::from_ne_bytes([state; 4]));
    for lane in 0..LANES {
        if mask != ALL && mask & BITS[lane] == 0 {
            continue;
        }
        let at = words.at[lane] as usize;
        debug_assert!(at + 4 <= space.bytes.len().min(space.states.len()));
        // SAFETY: as in `gather`; a space has as many states as bytes.
        unsafe {
            space.bytes.as_mut_ptr().add(at).cast::<u32>().write_unaligned(values[lane].to_le());
            if let Some(all) = all {
                let states = space.states.as_mut_ptr().add(at).cast::<u32>();
                states.write_unaligned(states.read_unaligned() | all);
            }
        }
    }
}
