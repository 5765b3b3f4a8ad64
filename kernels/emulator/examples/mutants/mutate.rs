//! Mutants of real files, each of which is compiled and, if it still has a `main`, run.

use cuda_emulator::run::recording::Wanted;
use cuda_emulator::{Checks, Program};
use std::path::{Path, PathBuf};

/// Warp instructions of each launch, and a tenth of those of `main`.
const BUDGET: u64 = 20_000;
/// Larger files take too long for their number of mutants.
const MOST_BYTES: usize = 8000;

/// The macros of lab 12's puzzles, which their judge sets: those of kernels, and of host halves.
const OF_KERNEL: &str = "#define BLOCK 32\n#define BINS 64\n";
const OF_HOST: &str = "#include <cmath>\n#include <cstdio>\n#include <cstring>\n#include <vector>\n#define N 64\n\
                       #define M 16\n#define K 16\n#define ROWS 16\n#define COLUMNS 20\n#define GRID 2\n";

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
    "-",
    "!",
    "unsigned long long",
    "double",
    "half",
    "float4",
    "__syncthreads();",
    "threadIdx.x",
    "__device__",
    "__global__",
    "goto end;",
    "&&",
    "<<",
    "-1",
];

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            random.below(2);
        }
        random
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }
}

/// The files to mutate, with `main` and without.
pub struct Sources {
    programs: Vec<String>,
    others: Vec<String>,
    folder: PathBuf,
}

impl Sources {
    /// Those of the course's kernels, of lab 12, and of the emulator's tests.
    pub fn of_the_course() -> Sources {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().find(|folder| folder.join("Cargo.lock").exists()).unwrap();
        let mut paths = Vec::new();
        for folder in ["kernels", "labs/lab_12"] {
            collect(&root.join(folder), &mut paths);
        }
        paths.sort();
        let mut sources = Sources { programs: Vec::new(), others: Vec::new(), folder: root.join("kernels") };
        for path in paths {
            let text = std::fs::read_to_string(&path).unwrap();
            let puzzle = path.ancestors().find(|folder| folder.join("driver.cu").exists());
            let text = match puzzle {
                Some(_) if path.ends_with("driver.cu") => continue,
                Some(puzzle) => {
                    let host = std::fs::read_to_string(puzzle.join("driver.cu")).unwrap();
                    format!("{OF_KERNEL}{text}\n{OF_HOST}{host}")
                }
                None => text,
            };
            if text.len() < MOST_BYTES {
                let is_program = text.contains("int main(");
                if is_program { &mut sources.programs } else { &mut sources.others }.push(text);
            }
        }
        sources
    }

    /// Half of the mutants come from programs with a `main`.
    fn any(&self, random: &mut Random) -> &str {
        let all = if random.below(2) == 0 { &self.programs } else { &self.others };
        &all[random.below(all.len())]
    }

    pub fn mutant(&self, number: u64) -> String {
        let mut random = Random::new(number);
        let text = self.any(&mut random);
        mutate(text, self.any(&mut random), &mut random)
    }

    /// Finds the text of an `#include`.
    pub fn include(&self, name: &str) -> Option<String> {
        let path = if name == "host.h" { "../labs/lab_12/puzzles/host.h" } else { name };
        std::fs::read_to_string(self.folder.join(path)).ok()
    }

    /// Compiles and runs a mutant, in one of the ways that lab 12 runs a program.
    pub fn attempt(&self, number: u64, text: &str) -> Outcome {
        let program = match Program::checked("mutant.cu", text, &|name| self.include(name)) {
            Ok(program) => program,
            Err(rejected) => {
                assert!(!rejected.text().is_empty());
                return Outcome::Rejected;
            }
        };
        let checks = if number.is_multiple_of(4) { Checks::MEMORY } else { Checks::ALL };
        let mut machine = program.machine(checks);
        (machine.budget, machine.host_budget) = (BUDGET, 10 * BUDGET);
        match number % 8 {
            0 => machine.counters = Some(Vec::new()),
            1 => {
                let wanted = Wanted { launch: 1, block: [0; 3], warp: 0 };
                machine.recorder = Some(Box::new(cuda_emulator::run::recorder::Recorder::new(wanted)));
            }
            _ => {}
        }
        // A `main` that launches without end has a budget for each launch, so only the time ends it.
        let run = program.run_on(machine, std::time::Duration::from_secs(2));
        match run {
            Some(run) if !run.findings.all.is_empty() => {
                assert!(!cuda_emulator::report::text(&program.files, &run, checks).is_empty());
                Outcome::Findings
            }
            Some(_) => Outcome::Clean,
            None => Outcome::NoMain,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Rejected,
    NoMain,
    Findings,
    Clean,
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "cu" || extension == "cuh") {
            paths.push(path);
        }
    }
}

/// The words and numbers of a text, as ranges.
fn words(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let end = at + text[at..].iter().take_while(|byte| is_word(**byte)).count();
        if end > at {
            found.push(at..end);
        }
        at = end + 1;
    }
    found
}

fn mutate(text: &str, other: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(bytes.len());
        let length = random.below(30).min(bytes.len() - at);
        match random.below(10) {
            0 => drop(bytes.drain(at..at + length)),
            1 => drop(bytes.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
            2 => {
                let piece = bytes[at..at + length].to_vec();
                let to = random.below(bytes.len());
                drop(bytes.splice(to..to, piece));
            }
            3 => {
                let from = random.below(other.len());
                let end = (from + random.below(200)).min(other.len());
                drop(bytes.splice(at..at, other.as_bytes()[from..end].iter().copied()));
            }
            4 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.below(128) as u8;
                }
            }
            5 if random.below(20) == 0 => {
                let piece = PIECES[random.below(PIECES.len())].repeat(1 + random.below(3000));
                drop(bytes.splice(at..at, piece.into_bytes()));
            }
            // A word of the text takes the place of another: most such mutants are nearly programs.
            _ => {
                let words = words(&bytes);
                if !words.is_empty() {
                    let (from, to) = (&words[random.below(words.len())], &words[random.below(words.len())]);
                    let piece = match random.below(3) {
                        0 => PIECES[random.below(PIECES.len())].as_bytes().to_vec(),
                        _ => bytes[from.clone()].to_vec(),
                    };
                    drop(bytes.splice(to.clone(), piece));
                }
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
