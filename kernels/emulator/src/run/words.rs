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
    /// How often lanes were elsewhere.
    misses: u32,
}

const FIRST_REACH: u32 = 1024;
/// Lanes that lie further apart are looked at one by one, but sometimes.
const FAR: u32 = 16 * 1024;
/// The parts of an offset are below it, so that their sum has 32 bits.
const MOST: u64 = 1 << 29;

/// Where the words of a warp are: offsets into the heap, or into the bytes of shared memory. Lanes that are not active have that of
/// one that is.
pub type Words = [u32; LANES];

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
    /// Where the words are, if an instruction may read (or write) all of them, they are aligned, and in one memory: whether that is
    /// shared memory.
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
        // Memory whose size the launch says is not reached from an address in other shared memory, and the other way round.
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

    /// Looks for a stretch with all these words.
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
        // Every second time as far as the first time, every fourth twice as far and so on: a large stretch is found soon, and
        // lanes that jump to and fro between places cost little.
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
    /// Bits that no index has, or its complement if it has a sign: it would be too large for a sum of 32 bits.
    excess: [u32; 2],
    signs: [i32; 2],
}

const ZERO: [i32; LANES] = [0; LANES];

impl Sum {
    #[inline(always)]
    fn add(&mut self, i: usize, index: &Scaled) -> Option<()> {
        let scale = index.scale.max(1);
        if u64::from(scale) >= MOST {
            return None;
        }
        self.scales[i] = scale as i32;
        // Less than MOST / scale, rounded down to a power of two.
        self.excess[i] = !0 << (MOST.trailing_zeros() - (32 - (scale - 1).leading_zeros()));
        self.signs[i] = if index.kind == IndexKind::U32 { 0 } else { -1 };
        Some(())
    }

    /// The words, and whether all lie between two offsets. `None`: they cannot be calculated so, or are not aligned.
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
        let (mut wrong, mut outside) = (0u32, 0i32);
        for lane in 0..LANES {
            let is_active = FULL || mask & BITS[lane] != 0;
            let (x, y) = if is_active { (first[lane], second[lane]) } else { (0, 0) };
            let word = if is_active { one(lane) } else { some };
            wrong |= (x ^ x >> 31 & self.signs[0]) as u32 & self.excess[0];
            wrong |= (y ^ y >> 31 & self.signs[1]) as u32 & self.excess[1];
            // Neither is negative where the word is within.
            wrong |= (word & (align | i32::MIN)) as u32;
            outside |= word.wrapping_sub(from) | last.wrapping_sub(word);
            words[lane] = word as u32;
        }
        (wrong == 0).then_some(outside >= 0)
    }
}

/// Offsets of 64 bits as such of 32, if they are small.
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

/// Lanes whose words are read at once where they lie next to each other or are one.
const PIECE: usize = 8;

/// Reads words that lie within a stretch.
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

/// Writes words that lie within a stretch; of lanes with the same word the last one's stays.
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
