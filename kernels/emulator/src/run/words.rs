//! Fast path for a warp's accesses to 32-bit words, all lanes at once. An instruction keeps the last stretch of memory
//! that it was allowed to access. While all lanes stay in it, no byte state is checked. All other accesses take the
//! slow path, lane by lane, which also writes the reports.

use super::block::{Block, Warp};
use super::interpreter::Runner;
use super::memory::Space;
use super::registers::ALL;
use crate::ir::{Address, IndexKind, LANES, Scaled, space};

/// A range of bytes with the state that an instruction needs. The end is exclusive.
#[derive(Clone, Copy, Default)]
pub struct Stretch {
    from: u32,
    to: u32,
    misses: u32,
}

const FIRST_REACH: u32 = 1024;
/// Lanes further apart are mostly checked one by one.
const FAR: u32 = 16 * 1024;
const MOST: u64 = Scaled::MOST as u64;

/// The words that a warp accesses, as offsets into the heap or into shared memory. Inactive lanes have the offset of an
/// active one.
pub type Words = [u32; LANES];

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
    /// Computes the words of an access, if the instruction may access all of them, they are aligned, and they are in
    /// one memory. Returns whether that is shared memory.
    #[inline(always)]
    pub fn words(
        &mut self,
        block: &Block,
        warp: &Warp,
        mask: u32,
        pc: u32,
        at: &Address,
        write: bool,
        words: &mut Words,
    ) -> Option<bool> {
        let bases = warp.registers.row::<u64>(at.base);
        let base = bases[mask.trailing_zeros() as usize & 31];
        let window = base & !(space::WINDOW - 1);
        let is_shared = window == space::SHARED;
        if !is_shared && window != space::HEAP {
            return None;
        }
        let is_dynamic = is_shared && base - window >= super::DYNAMIC_SHARED;
        let mut sum = Sum { start: i64::from(at.offset), ..Sum::default() };
        if is_dynamic {
            sum.start += i64::from(self.dynamic_start) - super::DYNAMIC_SHARED as i64;
        }
        // Constants are the same in all lanes.
        let mut narrow = [[0; LANES]; 3];
        let [narrow_base, narrow_first, narrow_second] = &mut narrow;
        let mut lanes = [&ZERO; 3];
        if at.base >= self.first_constant {
            sum.start += (base - window) as i64;
        } else {
            lanes[0] = narrowed(bases, window, mask, narrow_base)?;
        }
        for (i, (index, narrow)) in
            [(&at.first, narrow_first), (&at.second, narrow_second)].into_iter().enumerate()
        {
            lanes[i + 1] = match index.kind {
                IndexKind::None => continue,
                IndexKind::I64 => narrowed(warp.registers.row::<u64>(index.row), 0, mask, narrow)?,
                _ => warp.registers.row::<i32>(index.row),
            };
            sum.add(i, index)?;
        }
        if sum.start.unsigned_abs() >= MOST {
            return None;
        }
        let stretches = if is_shared { &self.shared_stretches } else { &self.heap_stretches };
        let Stretch { from, to, .. } = stretches[pc as usize];
        // Dynamic shared memory is not reachable from an address in other shared memory, nor the reverse.
        let is_same = !is_shared || is_dynamic == (from >= self.dynamic_start);
        let within = if is_same { (from as i32, to as i32 - 4) } else { (0, -4) };
        let align = i32::from(at.align.max(4)) - 1;
        let is_right = match mask {
            ALL => sum.words::<true>(mask, lanes, within, align, words),
            _ => sum.words::<false>(mask, lanes, within, align, words),
        };
        match is_right {
            Some(true) => Some(is_shared),
            Some(false) => {
                self.find_stretch(block, pc, words, is_shared, is_dynamic, write).then_some(is_shared)
            }
            None => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn find_stretch(
        &mut self,
        block: &Block,
        pc: u32,
        words: &Words,
        is_shared: bool,
        is_dynamic: bool,
        write: bool,
    ) -> bool {
        let least = words.iter().copied().min().unwrap_or(0);
        let most = u64::from(words.iter().copied().max().unwrap_or(0)) + 4;
        let (space, (bits, wanted)) = match is_shared {
            true => (&block.shared, self.shared_rule(write)),
            false => (&self.machine.heap.space, if write { self.write_rule } else { self.read_rule }),
        };
        let Some(end) = u32::try_from(most).ok().filter(|end| *end as usize + 16 <= space.states.len())
        else {
            return false;
        };
        let is_right =
            |states: &[u8]| states.iter().fold(0, |wrong, state| wrong | (state & bits) ^ wanted) == 0;
        let stretches = if is_shared { &mut self.shared_stretches } else { &mut self.heap_stretches };
        let known = &mut stretches[pc as usize];
        // The reach is the initial one every second time, twice as large every fourth time, and so on. So a large
        // stretch is found soon, and lanes that jump between distant places cost little.
        known.misses = known.misses.saturating_add(1);
        let reach = FIRST_REACH.saturating_mul(1 << known.misses.trailing_zeros());
        if end - least > reach.max(FAR) {
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
        if is_shared && is_dynamic != (from >= self.dynamic_start) {
            return false;
        }
        (known.from, known.to) = (from, to);
        true
    }

    pub fn shared_rule(&self, write: bool) -> (u8, u8) {
        use super::memory::{ALLOCATED, WRITTEN};
        let rule = if self.init && !write { ALLOCATED | WRITTEN } else { ALLOCATED };
        (rule, rule)
    }
}

/// start + base + first · scale + second · scale
#[derive(Default)]
struct Sum {
    start: i64,
    scales: [i32; 2],
    /// The range of each index in which a 32-bit sum cannot overflow: `index + least` has none of the bits `excess`.
    least: [i32; 2],
    excess: [u32; 2],
}

const ZERO: [i32; LANES] = [0; LANES];

impl Sum {
    #[inline(always)]
    fn add(&mut self, i: usize, index: &Scaled) -> Option<()> {
        let bits = u32::from(index.bits?);
        self.scales[i] = index.scale as i32;
        let is_signed = index.kind != IndexKind::U32;
        self.least[i] = i32::from(is_signed) << bits;
        self.excess[i] = !0 << (bits + u32::from(is_signed));
        Some(())
    }

    /// Returns the words, and whether all of them are between two offsets; `None` if they are misaligned or may
    /// overflow.
    #[inline(always)]
    fn words<const FULL: bool>(
        &self,
        mask: u32,
        [base, first, second]: [&[i32; LANES]; 3],
        (from, last): (i32, i32),
        align: i32,
        words: &mut [u32; LANES],
    ) -> Option<bool> {
        let start = self.start as i32;
        let one = |lane: usize| {
            let word = start.wrapping_add(base[lane]);
            let word = word.wrapping_add(first[lane].wrapping_mul(self.scales[0]));
            word.wrapping_add(second[lane].wrapping_mul(self.scales[1]))
        };
        let some = if FULL { 0 } else { one(mask.trailing_zeros() as usize & 31) };
        // Whether a bit is wrong in any lane is decided at the end.
        let (mut all, mut outside) = ([0; 3], 0i32);
        for lane in 0..LANES {
            let is_active = FULL || mask & BITS[lane] != 0;
            let (x, y) = if is_active { (first[lane], second[lane]) } else { (0, 0) };
            let word = if is_active { one(lane) } else { some };
            all[0] |= x.wrapping_add(self.least[0]);
            all[1] |= y.wrapping_add(self.least[1]);
            all[2] |= word;
            // If the word is in range, neither difference is negative.
            outside |= word.wrapping_sub(from) | last.wrapping_sub(word);
            words[lane] = word as u32;
        }
        let excess = [self.excess[0], self.excess[1], (align | i32::MIN) as u32];
        let wrong = (0..3).fold(0, |wrong, i| wrong | all[i] as u32 & excess[i]);
        (wrong == 0).then_some(outside >= 0)
    }
}

/// Narrows 64-bit offsets to 32 bits, if they are small.
#[inline(always)]
fn narrowed<'a>(
    values: &[u64; LANES],
    from: u64,
    mask: u32,
    narrow: &'a mut [i32; LANES],
) -> Option<&'a [i32; LANES]> {
    let mut all = 0;
    for lane in 0..LANES {
        let is_active = mask == ALL || mask & BITS[lane] != 0;
        let value = if is_active { values[lane].wrapping_sub(from) as i64 } else { 0 };
        all |= value ^ value >> 63;
        narrow[lane] = value as i32;
    }
    ((all as u64) < MOST).then_some(narrow)
}

/// The number of lanes whose words are read at once if they are consecutive or equal.
const PIECE: usize = 8;

#[inline(always)]
pub fn gather(space: &Space, words: &Words, out: &mut [u32; LANES]) {
    let bytes = space.bytes.as_ptr();
    // SAFETY: all words are within a stretch of this space, and spaces never get smaller.
    let read = |at: u32| u32::from_le(unsafe { bytes.add(at as usize).cast::<u32>().read_unaligned() });
    debug_assert!(words.iter().all(|at| *at as usize + 4 <= space.bytes.len()));
    for (words, out) in words.as_chunks::<PIECE>().0.iter().zip(out.as_chunks_mut::<PIECE>().0) {
        let first = words[0];
        let (mut steps, mut differences) = (0, 0);
        for lane in 0..PIECE {
            differences |= words[lane] ^ first;
            steps |= words[lane] ^ first.wrapping_add(4 * lane as u32);
        }
        if steps == 0 {
            // SAFETY: likewise.
            *out = unsafe { bytes.add(first as usize).cast::<[u32; PIECE]>().read_unaligned() };
            out.iter_mut().for_each(|word| *word = u32::from_le(*word));
        } else if differences == 0 {
            *out = [read(first); PIECE];
        } else {
            for lane in 0..PIECE {
                out[lane] = read(words[lane]);
            }
        }
    }
}

/// Writes words within a stretch. If several lanes have the same word, the last one wins.
#[inline(always)]
pub fn scatter(space: &mut Space, mask: u32, words: &Words, values: &[u32; LANES], state: Option<u8>) {
    let all = state.map(|state| u32::from_ne_bytes([state; 4]));
    for lane in 0..LANES {
        if mask != ALL && mask & BITS[lane] == 0 {
            continue;
        }
        let at = words[lane] as usize;
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
