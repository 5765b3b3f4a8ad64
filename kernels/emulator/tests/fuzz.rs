//! Any text as input: mutants of real files end in an error or a run, never in a panic.

use crate::course::SOURCES;
use cuda_emulator::{Checks, Program};
use std::path::Path;

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

fn fuzz(count: usize, seed: u64) {
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
    let small: Vec<usize> = (0..texts.len()).filter(|i| texts[*i].len() < 4000).collect();
    for i in 0..count {
        let text = mutate(&texts[small[random.below(small.len())]], &texts, &mut random);
        let shown = text.clone();
        let result = std::panic::catch_unwind(|| {
            if let Ok(program) = Program::compile("mutant.cu", &text, &includes) {
                program.run_within(Checks::ALL, 20_000);
            }
        });
        assert!(result.is_ok(), "mutant {i} of seed {seed} panics:\n{shown}");
    }
}

#[test]
fn mutants_of_real_files_never_panic() {
    fuzz(2000, 42);
}

/// `cargo test -p cuda-emulator -- --ignored million`
#[test]
#[ignore = "takes an hour"]
fn a_million_mutants_never_panic() {
    for seed in 1..=100 {
        fuzz(10_000, seed * 7919);
    }
}
