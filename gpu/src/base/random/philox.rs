//! Random numbers of a GPU: Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
//!
//! A Philox number is a function of a key (the seed) and a counter, so the threads of a kernel compute their numbers
//! independently. The numbers of a generator form one sequence, counted from 0, and each element of a tensor takes the
//! numbers at its position. So the result does not depend on the launch, unlike PyTorch's CUDA sequence, and is the
//! same on a simulated device and a real one.

/// The state of a generator: a seed and the next position. Each device has one.
#[derive(Clone, Copy, Debug)]
pub struct Philox {
    seed: u64,
    next: u64,
}

/// PyTorch's default seed.
const DEFAULT_SEED: u64 = 67_280_421_310_721;

impl Default for Philox {
    fn default() -> Philox {
        Philox::new(DEFAULT_SEED)
    }
}

impl Philox {
    pub fn new(seed: u64) -> Philox {
        Philox { seed, next: 0 }
    }

    /// Seed and position, in the layout of `torch.cuda.get_rng_state`.
    pub fn state(&self) -> [u8; 16] {
        let words = [self.seed.to_le_bytes(), self.next.to_le_bytes()];
        std::array::from_fn(|i| words[i / 8][i % 8])
    }

    /// `None` if the bytes are not a state.
    pub fn from_state(state: &[u8]) -> Option<Philox> {
        let (seed, next) = state.split_first_chunk()?;
        let next = next.try_into().ok()?;
        Some(Philox { seed: u64::from_le_bytes(*seed), next: u64::from_le_bytes(next) })
    }

    /// Reserves `count` numbers. Returns the seed and the first position, as arguments of a kernel.
    pub fn take(&mut self, count: u64) -> [i64; 2] {
        let first = self.next;
        self.next = first.wrapping_add(count);
        [self.seed as i64, first as i64]
    }
}

/// Fills `numbers` with the sequence of a seed, from a position on.
// Inlined, so that it is optimized at its place of use.
#[inline]
pub fn fill(seed: u64, position: u64, numbers: &mut [u32]) {
    let before = ((4 - position % 4) % 4) as usize;
    let (first, numbers) = numbers.split_at_mut(before.min(numbers.len()));
    if !first.is_empty() {
        let from = 4 - before;
        first.copy_from_slice(&block(seed, position / 4)[from..from + first.len()]);
    }
    let counter = position.wrapping_add(before as u64) / 4;
    for (i, numbers) in numbers.chunks_mut(4).enumerate() {
        numbers.copy_from_slice(&block(seed, counter.wrapping_add(i as u64))[..numbers.len()]);
    }
}

#[inline]
fn block(seed: u64, counter: u64) -> [u32; 4] {
    let mut x = [counter as u32, (counter >> 32) as u32, 0, 0];
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let (a, b) = (u64::from(x[0]) * 0xD251_1F53, u64::from(x[2]) * 0xCD9E_8D57);
        x = [(b >> 32) as u32 ^ x[1] ^ key[0], b as u32, (a >> 32) as u32 ^ x[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known-answer tests of Random123, for counters whose upper half is 0.
    #[test]
    fn the_numbers_are_those_of_the_paper() {
        assert_eq!(block(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }

    #[test]
    fn a_sequence_can_be_read_from_anywhere() {
        let mut all = [0; 16];
        fill(7, 0, &mut all);
        assert_eq!(all[4..8], block(7, 1));
        assert_ne!(all[..4], all[4..8]);
        for start in 0..16 {
            for end in start..16 {
                let mut some = vec![0; end - start];
                fill(7, start as u64, &mut some);
                assert_eq!(some, all[start..end]);
            }
        }
        let (mut last, mut first) = ([0; 2], [0]);
        fill(7, u64::MAX, &mut last);
        fill(7, 0, &mut first);
        assert_eq!(last[1], first[0], "the sequence begins again");
        let mut generator = Philox::new(7);
        assert_eq!(generator.take(5), [7, 0]);
        assert_eq!(generator.take(1), [7, 5]);
        let mut resumed = Philox::from_state(&generator.state()).unwrap();
        assert_eq!(resumed.take(1), [7, 6]);
        assert!(Philox::from_state(&[0; 15]).is_none() && Philox::from_state(&[0; 17]).is_none());
    }
}
