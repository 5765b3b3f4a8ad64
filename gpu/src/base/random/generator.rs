//! `torch.Generator` for the CPU: one engine, shared by all clones.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};

use super::mt19937::{Mt19937, N, SeedCall};
use crate::base::error::GpuError;
use crate::base::lock::lock;

/// The seed of a fresh `torch.Generator()` (`c10::default_rng_seed_val`).
const DEFAULT_SEED: u64 = 67_280_421_310_721;

/// A source of random numbers (`torch.Generator(device="cpu")`).
///
/// Clones are handles to the *same* engine, like two Python names for one generator. Threads may share it: a lock keeps
/// each fill of a tensor in one piece.
#[derive(Clone)]
pub struct Generator {
    engine: Arc<Mutex<Mt19937>>,
}

impl Generator {
    /// Creates a generator with PyTorch's default seed, 67280421310721 (`torch.Generator()`).
    pub fn new() -> Generator {
        Generator { engine: Arc::new(Mutex::new(Mt19937::new(DEFAULT_SEED))) }
    }

    /// Restarts the stream at `seed` (`Generator.manual_seed`), and returns the same generator.
    ///
    /// PyTorch stores the two's complement of a negative seed: pass `-1_i64 as u64`.
    pub fn manual_seed(&self, seed: u64) -> Generator {
        *self.lock() = Mt19937 { chosen: Some(SeedCall::now()), ..Mt19937::new(seed) };
        self.clone()
    }

    /// Reseeds with a random number, and returns it (`Generator.seed`).
    ///
    /// The number comes from the operating system's random source, through the standard library's hash maps. On
    /// `wasm32-unknown-unknown` it comes from memory addresses, which may repeat from one page load to the next. There,
    /// pass a seed such as the time to [`manual_seed`](Self::manual_seed).
    pub fn seed(&self) -> u64 {
        let seed = RandomState::new().hash_one("torch.Generator.seed");
        self.manual_seed(seed);
        seed
    }

    /// The 64-bit seed of the stream (`Generator.initial_seed`).
    pub fn initial_seed(&self) -> u64 {
        self.lock().seed
    }

    /// The complete state in PyTorch's layout (`Generator.get_state`), which `torch.Generator.set_state` accepts.
    pub fn get_state(&self) -> Vec<u8> {
        let engine = self.lock();
        let mut state = vec![0; STATE_BYTES];
        put(&mut state, SEED, engine.seed.to_le_bytes());
        put(&mut state, LEFT, (engine.ready as i32 + 1).to_le_bytes());
        put(&mut state, SEEDED, 1_i32.to_le_bytes());
        put(&mut state, NEXT, (engine.next as u64).to_le_bytes());
        for (k, &word) in engine.words.iter().enumerate() {
            put(&mut state, WORDS + 8 * k, u64::from(word).to_le_bytes());
        }
        if let Some(normal) = engine.next_normal {
            put(&mut state, NORMAL, normal.to_le_bytes());
            put(&mut state, NORMAL_IS_VALID, 1_i32.to_le_bytes());
        }
        state
    }

    /// Continues from a state of [`get_state`](Self::get_state) or of PyTorch (`Generator.set_state`).
    pub fn set_state(&self, state: &[u8]) -> Result<(), GpuError> {
        if state.len() != STATE_BYTES {
            return Err(GpuError::GeneratorState(format!(
                "Expected a CPUGeneratorImplState of size {STATE_BYTES} \
                 but found the input RNG state size to be {}",
                state.len()
            )));
        }
        let invalid = |why: String| Err(GpuError::GeneratorState(format!("Invalid mt19937 state: {why}")));

        let left = i32::from_le_bytes(get(state, LEFT));
        let seeded = i32::from_le_bytes(get(state, SEEDED));
        let next = u64::from_le_bytes(get(state, NEXT));
        if seeded != 1 {
            return invalid(format!("it was never seeded (seeded is {seeded})"));
        }
        if left < 1 || left > N as i32 || next > N as u64 {
            return invalid(format!("left {left} and next {next} must be in 1..={N} and 0..={N}"));
        }
        let (ready, next) = (left as usize - 1, next as usize);
        if ready > N - next {
            return invalid(format!("{ready} words cannot follow word {next} of {N}"));
        }

        let mut words = [0; N];
        for (k, slot) in words.iter_mut().enumerate() {
            let wide = u64::from_le_bytes(get(state, WORDS + 8 * k));
            match u32::try_from(wide) {
                Ok(word) => *slot = word,
                Err(_) => return invalid(format!("word {k} is {wide}, more than 32 bits")),
            }
        }

        let normal_is_valid = i32::from_le_bytes(get(state, NORMAL_IS_VALID)) != 0;
        let next_normal = normal_is_valid.then(|| f64::from_le_bytes(get(state, NORMAL)));
        let seed = u64::from_le_bytes(get(state, SEED));
        *self.lock() = Mt19937 { seed, words, next, ready, next_normal, chosen: Some(SeedCall::now()) };
        Ok(())
    }

    /// Continues from the state of `other`, if this thread chose that state after this generator's state was chosen.
    pub fn follow(&self, other: &Generator) {
        if Arc::ptr_eq(&self.engine, &other.engine) {
            return;
        }
        let theirs = other.lock();
        let Some(chosen) = theirs.chosen.filter(|chosen| chosen.is_of_this_thread()) else { return };
        let engine = Mt19937::clone(&theirs);
        drop(theirs); // Two threads that hold one lock each and want the other would wait forever.
        let mut own = self.lock();
        if own.chosen.is_none_or(|own| own.number < chosen.number) {
            *own = engine;
        }
    }

    /// Locks the engine. An operation locks once, so that other threads' draws do not come between its draws.
    pub fn lock(&self) -> MutexGuard<'_, Mt19937> {
        lock(&self.engine)
    }
}

impl Default for Generator {
    fn default() -> Generator {
        Generator::new()
    }
}

impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generator").field("initial_seed", &self.initial_seed()).finish_non_exhaustive()
    }
}

// The C structure `CPUGeneratorImplState`, by offset. It has the layout of Torch's old C generator, with 64 bits for
// each 32-bit word. The other bytes are padding, two fields of the old normal draw, and a cached f32 normal. They are
// written as zero and not read, because no CPU draw of PyTorch uses them.
const STATE_BYTES: usize = 5056;
const SEED: usize = 0;
const LEFT: usize = 8;
const SEEDED: usize = 12;
const NEXT: usize = 16;
const WORDS: usize = 24;
const NORMAL: usize = 5024;
const NORMAL_IS_VALID: usize = 5040;

fn put<const LEN: usize>(state: &mut [u8], at: usize, bytes: [u8; LEN]) {
    state[at..at + LEN].copy_from_slice(&bytes);
}

fn get<const LEN: usize>(state: &[u8], at: usize) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes.copy_from_slice(&state[at..at + LEN]);
    bytes
}
