//! Checks that random kernels give the same bits in the emulator as when compiled by g++.
//!
//! ```text
//! cargo run --release -p cuda-emulator --example against_gpp -- 10000
//! ```
//!
//! A second number sets the first seed. Kernels whose bits differ are printed with their seeds. `CXX` selects another
//! compiler. With `show` in front, the kernel of a seed is printed: `against_gpp -- show 7`.

mod compare;
mod generator;

use std::process::{Command, ExitCode};

/// The number of kernels per compilation.
const BATCH: u64 = 250;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|argument| argument == "show").is_some() {
        for seed in arguments.filter_map(|argument| argument.parse().ok()) {
            print!("{}", compare::source(seed));
        }
        return ExitCode::SUCCESS;
    }
    let mut numbers = arguments.map(|argument| argument.parse::<u64>());
    let (Ok(count), Ok(first)) = (numbers.next().unwrap_or(Ok(1000)), numbers.next().unwrap_or(Ok(1))) else {
        eprintln!("error: the arguments are how many kernels, and the first seed");
        return ExitCode::from(2);
    };
    let (mut same, mut different) = (0, 0);
    for start in (first..first + count).step_by(BATCH as usize) {
        let seeds: Vec<u64> = (start..(start + BATCH).min(first + count)).collect();
        let compiler = Command::new(std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned()));
        let found = match compare::differences(&seeds, compiler) {
            Ok(found) => found,
            Err(trouble) => {
                eprintln!("error: {trouble}");
                return ExitCode::from(2);
            }
        };
        for (seed, why) in &found {
            println!("seed {seed}: {why}\n{}", generator::kernel("k", *seed));
        }
        different += found.len();
        same += seeds.len() - found.len();
        println!("{same} kernels have the same bits, {different} have others");
    }
    ExitCode::from(u8::from(different > 0))
}
