//! Which faults a student's program has, and which numbers.
//!
//! Draws are made in the order of the seeds, each from a stream of random numbers of its own. One that is too much like an earlier
//! one is thrown away, and the next of the stream is tried. So any two programs differ in at least [`DIFFERENT`] faults, and a
//! whole program of another student is right in at most as many functions that matter.

use std::sync::LazyLock;

use super::faults::{FAULTS, Fault};
use super::kinds::Category;
use super::numbers::{CHOICES, Numbers, PLACES};
use super::program_text;

/// How many seeds there are: 0 to 999.
pub const SEEDS: u64 = 1000;

/// How many faults a program has.
pub const PLANTED: usize = 12;

/// In how many faults any two programs differ at least.
pub const DIFFERENT: usize = 6;

/// A student's program.
pub struct Draw {
    pub seed: u64,
    /// In the order of the functions that they are in.
    pub faults: Vec<&'static Fault>,
    pub numbers: Numbers,
}

/// The places of the faults in their list, and of each number in its.
#[derive(Clone)]
struct Drawn {
    faults: Vec<usize>,
    numbers: Vec<usize>,
    /// The same in bits, since each draw is compared with all before it: a bit for each fault, four for each number, and the
    /// lowest of the four for each number of a function that has a fault.
    marks: [u64; 3],
    packed: u128,
    concerned: u128,
}

static DRAWS: LazyLock<Vec<Drawn>> = LazyLock::new(|| {
    let mut draws: Vec<Drawn> = Vec::new();
    for seed in 0..SEEDS {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x746f_2864_6576_6963);
        let next = loop {
            let Some(drawn) = drawn(&mut random) else { continue };
            if draws.iter().all(|other| are_apart(&drawn, other)) {
                break drawn;
            }
        };
        draws.push(next);
    }
    draws
});

impl Draw {
    /// The program of a seed below [`SEEDS`].
    pub fn of(seed: u64) -> Draw {
        let drawn = &DRAWS[(seed % SEEDS) as usize];
        let faults = drawn.faults.iter().map(|&fault| &FAULTS[fault]).collect();
        Draw { seed, faults, numbers: Numbers::chosen(&drawn.numbers) }
    }

    /// The file that the student begins with.
    pub fn file(&self) -> String {
        self.numbers.written(&program_text::with(self.seed, self.faults.iter().copied()))
    }

    /// The same with all faults fixed.
    pub fn mended(&self) -> String {
        self.numbers.written(&program_text::with(self.seed, []))
    }

    /// The fault in a function.
    pub fn fault(&self, place: &str) -> Option<&'static Fault> {
        self.faults.iter().copied().find(|fault| fault.place == place)
    }
}

/// The numbers of a seed.
pub fn numbers(seed: u64) -> Numbers {
    Draw::of(seed).numbers
}

/// Twelve faults of different kinds in different functions, so many of each category. Nothing if no more were found that fit.
fn drawn(random: &mut Random) -> Option<Drawn> {
    let mut faults: Vec<usize> = Vec::new();
    for (category, count) in Category::ALL.iter().rev() {
        for _ in 0..*count {
            let fits = |&at: &usize| {
                let fault = &FAULTS[at];
                fault.kind().category == *category
                    && faults
                        .iter()
                        .all(|&other| FAULTS[other].kind != fault.kind && FAULTS[other].place != fault.place)
            };
            let fitting: Vec<usize> = (0..FAULTS.len()).filter(fits).collect();
            if fitting.is_empty() {
                return None;
            }
            faults.push(fitting[random.below(fitting.len())]);
        }
    }
    faults.sort_unstable();
    let numbers: Vec<usize> = CHOICES.iter().map(|&count| random.below(count)).collect();
    let mut marks = [0; 3];
    faults.iter().for_each(|fault| marks[fault / 64] |= 1 << (fault % 64));
    let packed = numbers.iter().fold(0, |packed, &number| packed << 4 | number as u128);
    let has_fault = |place: &str| faults.iter().any(|&fault| FAULTS[fault].place == place);
    let concerned = PLACES.iter().fold(0, |bits, place| bits << 4 | u128::from(has_fault(place)));
    Some(Drawn { faults, numbers, marks, packed, concerned })
}

/// Whether two programs differ in enough faults, and in the numbers of enough functions that have one: else the whole file of
/// one student would be right for the other.
fn are_apart(one: &Drawn, other: &Drawn) -> bool {
    let most = (PLANTED - DIFFERENT) as u32;
    let common: u32 = one.marks.iter().zip(other.marks).map(|(a, b)| (a & b).count_ones()).sum();
    let differs = one.packed ^ other.packed;
    let differs = differs | differs >> 1 | differs >> 2 | differs >> 3;
    let alike = |of: &Drawn| (of.concerned & !differs).count_ones();
    common <= most && alike(one) <= most && alike(other) <= most
}

/// SplitMix64: the same numbers everywhere.
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }
}
