//! Fuzz tests: mutants of real files end in an error or a run, never in a panic.

use crate::course::SOURCES;
use cuda_emulator::{Checks, Program};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }
}

const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    ";",
    "*",
    "&",
    "...",
    "template <typename T>",
    "if",
    "for (;;)",
    "->",
    "::",
    "int",
    "T",
    "0",
    "<<<1, 1>>>",
    "#define A",
    "\n#if 1\n",
    "\n#endif\n",
    "[",
    "]",
    "=",
    "struct X",
    "auto",
    "const",
    "__shared__",
    "sizeof",
    "return",
    "\"",
    "'",
    "\\",
    "/*",
    "4294967296",
    "1e999",
    "0x",
    "[=](auto... x)",
    "typename",
    "operator",
    "switch (1)",
    "case 1:",
    "constexpr",
    "decltype(",
    ",",
];

fn mutate(text: &str, others: &[String], random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        let length = random.below(30).min(bytes.len() - at);
        match random.below(5) {
            0 => drop(bytes.drain(at..at + length)),
            1 => drop(bytes.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
            2 => {
                let piece = bytes[at..at + length].to_vec();
                let to = random.below(bytes.len());
                drop(bytes.splice(to..to, piece));
            }
            3 => {
                let other = others[random.below(others.len())].as_bytes();
                let from = random.below(other.len());
                let end = (from + random.below(200)).min(other.len());
                drop(bytes.splice(at..at, other[from..end].iter().copied()));
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.below(128) as u8;
                }
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The outcomes of the mutants.
#[derive(Default)]
struct Tally {
    mutants: u64,
    compiled: u64,
    /// Mutants that ran and had findings.
    with_findings: u64,
    slowest: Duration,
}

/// The maximum time for one mutant, on a computer that is busy with other work.
const MOST_TIME: Duration = Duration::from_secs(60);

fn fuzz(count: usize, seed: u64, tally: &mut Tally) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut texts: Vec<String> = Vec::new();
    for name in SOURCES {
        texts.push(std::fs::read_to_string(folder.join(name)).unwrap());
    }
    let headers = ["tree.cuh", "common.cuh", "elementwise.cuh", "philox.cuh", "windows.cuh"];
    texts.extend(headers.iter().map(|name| std::fs::read_to_string(folder.join(name)).unwrap()));
    texts.push(include_str!("../../../labs/lab_12/examples/vector_add.cu").to_owned());
    texts.extend([
        include_str!("programs/reduction.cu").to_owned(),
        include_str!("programs/matmul.cu").to_owned(),
    ]);
    let includes = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let mut random = Random(seed);
    // Half of the mutants come from programs with a `main`, which run.
    let (programs, others): (Vec<usize>, Vec<usize>) =
        (0..texts.len()).filter(|i| texts[*i].len() < 4000).partition(|i| texts[*i].contains("int main("));
    for i in 0..count {
        let chosen = if random.below(2) == 0 { &programs } else { &others };
        let text = mutate(&texts[chosen[random.below(chosen.len())]], &texts, &mut random);
        let start = Instant::now();
        let result = std::panic::catch_unwind(|| {
            let program = Program::compile("mutant.cu", &text, &includes).ok()?;
            let run = program.run_within(Checks::ALL, 20_000);
            Some(run.is_some_and(|run| !run.findings.all.is_empty()))
        });
        let took = start.elapsed();
        assert!(took < MOST_TIME, "mutant {i} of seed {seed} takes {took:?}:\n{text}");
        match result {
            Ok(ran) => {
                tally.compiled += u64::from(ran.is_some());
                tally.with_findings += u64::from(ran == Some(true));
            }
            Err(_) => panic!("mutant {i} of seed {seed} panics:\n{text}"),
        }
        tally.mutants += 1;
        tally.slowest = tally.slowest.max(took);
    }
}

#[test]
fn mutants_of_real_files_never_panic() {
    let mut tally = Tally::default();
    fuzz(2000, 42, &mut tally);
    // Some mutants are still valid programs.
    assert!(tally.compiled > 20 && tally.with_findings > 0, "{} {}", tally.compiled, tally.with_findings);
}

/// Run with `cargo test -p cuda-emulator -- --ignored --nocapture million`.
#[test]
#[ignore = "takes an hour of a processor"]
fn a_million_mutants_never_panic() {
    let (start, next) = (Instant::now(), AtomicU64::new(1));
    let sum = Mutex::new(Tally::default());
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > 200 {
                        return;
                    }
                    let mut tally = Tally::default();
                    fuzz(5_000, seed * 7919, &mut tally);
                    let mut sum = sum.lock().unwrap();
                    sum.mutants += tally.mutants;
                    sum.compiled += tally.compiled;
                    sum.with_findings += tally.with_findings;
                    sum.slowest = sum.slowest.max(tally.slowest);
                    println!(
                        "{} mutants in {:.0} s: {} compiled, {} with findings; the slowest took {:.1?}",
                        sum.mutants,
                        start.elapsed().as_secs_f64(),
                        sum.compiled,
                        sum.with_findings,
                        sum.slowest
                    );
                }
            });
        }
    });
}
