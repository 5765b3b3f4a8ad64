//! MT19937, the Mersenne Twister of Makoto Matsumoto and Takuji Nishimura (1998).
//!
//! The state is 624 words. A *refill* replaces them all, and each word is *tempered* when it is drawn. Whole refills
//! are fast, so the functions below prefer slices of words to single ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread, ThreadId};

/// Words in the state (`MERSENNE_STATE_N` in PyTorch).
pub(super) const N: usize = 624;
/// A new word depends on the word at this distance (`MERSENNE_STATE_M`).
const M: usize = 397;

/// The CPU random number engine (`at::mt19937`, with the cached normal of `at::CPUGeneratorImpl`).
/// [`Generator`](super::Generator) shares it between owners.
#[derive(Clone, Debug)]
pub struct Mt19937 {
    pub(super) seed: u64,
    pub(super) words: [u32; N],
    pub(super) next: usize,
    /// Words left before a refill, at most `N - next`.
    pub(super) ready: usize,
    /// The second value of the last pair of normal numbers.
    pub next_normal: Option<f64>,
    pub(super) chosen: Option<SeedCall>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SeedCall {
    /// Later calls have higher numbers.
    pub(super) number: u64,
    thread: ThreadId,
}

impl SeedCall {
    pub(super) fn now() -> SeedCall {
        static CHOICES: AtomicU64 = AtomicU64::new(0);
        let number = CHOICES.fetch_add(1, Ordering::Relaxed) + 1;
        SeedCall { number, thread: Thread::id(&thread::current()) }
    }

    pub(super) fn is_of_this_thread(self) -> bool {
        self.thread == Thread::id(&thread::current())
    }
}

impl Mt19937 {
    /// Seeds an engine like `torch.manual_seed`. Only the low 32 bits reach the state, so `7` and `2^32 + 7` give the
    /// same numbers. [`Generator::initial_seed`](super::Generator::initial_seed) returns all 64.
    pub fn new(seed: u64) -> Mt19937 {
        // The initialisation of MT19937's 2002 revision. Multiplier: Knuth, TAOCP vol. 2, third edition, p. 106.
        let mut words = [seed as u32; N];
        for j in 1..N {
            let previous = words[j - 1];
            words[j] = 1_812_433_253_u32.wrapping_mul(previous ^ (previous >> 30)).wrapping_add(j as u32);
        }
        // No word is ready, so the first draw starts with a refill.
        Mt19937 { seed, words, next: 0, ready: 0, next_normal: None, chosen: None }
    }

    /// One word (`CPUGeneratorImpl::random`).
    #[inline]
    pub fn random(&mut self) -> u32 {
        temper(self.take(1)[0])
    }

    /// Two words (`CPUGeneratorImpl::random64`). The first one is the high half.
    #[inline]
    pub fn random64(&mut self) -> u64 {
        let high = u64::from(self.random());
        let low = u64::from(self.random());
        high << 32 | low
    }

    /// Returns the ready words *before* tempering: at least one, and at most `at_most`.
    #[inline]
    fn take(&mut self, at_most: usize) -> &[u32] {
        if self.ready == 0 {
            refill(&mut self.words);
            self.next = 0;
            self.ready = N;
        }
        let first = self.next;
        let count = self.ready.min(at_most);
        self.next += count;
        self.ready -= count;
        &self.words[first..first + count]
    }

    /// Fills `out` with one word per element, converted by `value`.
    // Inlined, so that a caller compiled for wide vectors gets a wide loop.
    #[inline(always)]
    pub fn fill_from_words<T>(&mut self, out: &mut [T], value: impl Fn(u32) -> T) {
        let mut rest = out;
        while !rest.is_empty() {
            let words = self.take(rest.len());
            let (now, later) = rest.split_at_mut(words.len());
            for (slot, &word) in now.iter_mut().zip(words) {
                *slot = value(temper(word));
            }
            rest = later;
        }
    }
}

/// The output transform: it stirs the 32 bits invertibly, to hide the linear recurrence.
#[inline(always)]
fn temper(mut y: u32) -> u32 {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    y ^ (y >> 18)
}

/// Replaces the whole state: word k becomes `words[k + M] ^ twist(words[k], words[k + 1])`, with indices modulo N.
///
/// The loops end where an index wraps, so that they have constant offsets and the compiler vectorizes them.
fn refill(words: &mut [u32; N]) {
    for k in 0..N - M {
        words[k] = words[k + M] ^ twist(words[k], words[k + 1]);
    }
    for k in N - M..N - 1 {
        words[k] = words[k + M - N] ^ twist(words[k], words[k + 1]);
    }
    words[N - 1] = words[M - 1] ^ twist(words[N - 1], words[0]);
}

/// One step of the recurrence. The product with a 32x32 bit matrix is one shift and one conditional exclusive-or.
#[inline(always)]
fn twist(u: u32, v: u32) -> u32 {
    let joined = (u & 0x8000_0000) | (v & 0x7fff_ffff);
    let matrix = if v & 1 == 1 { 0x9908_b0df } else { 0 };
    (joined >> 1) ^ matrix
}
