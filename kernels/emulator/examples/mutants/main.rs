//! Compiles and runs mutants of real files: none may panic, take long or take much memory.
//!
//! ```text
//! cargo run --release -p cuda-emulator --example mutants -- 1000000
//! ```
//!
//! Further numbers set the first mutant and the number of processor cores. With `show` in front, a mutant is printed:
//! `mutants -- show 4711`. Each hundred runs on a separate thread, named after its first mutant, so that the message of
//! a stack overflow tells where to look; a panic is reported with the number of its mutant.

mod mutate;

use mutate::{Outcome, Sources};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A mutant that takes longer, on a computer that is busy with other work, is a failure.
const MOST_TIME: Duration = Duration::from_secs(60);
/// The mutants of one thread, which parses the headers once.
const BATCH: u64 = 100;
/// The stack that a thread of a program has by default.
const STACK: usize = 2 << 20;

#[derive(Default)]
struct Tally {
    outcomes: BTreeMap<&'static str, u64>,
    failures: Vec<u64>,
    /// The slowest mutants, in descending order.
    slowest: Vec<(Duration, u64)>,
    /// The mutant after which the process had its highest use of memory.
    largest: (u64, u64),
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_shown = arguments.first().is_some_and(|argument| argument == "show");
    if is_shown {
        arguments.remove(0);
    }
    let numbers: Result<Vec<u64>, _> = arguments.iter().map(|argument| argument.parse()).collect();
    let Ok(numbers) = numbers else {
        eprintln!(
            "error: the arguments are the number of mutants, the first mutant, and the number of cores"
        );
        return ExitCode::from(2);
    };
    let number = |at: usize, default: u64| numbers.get(at).copied().unwrap_or(default);
    let sources = Sources::of_the_course();
    if is_shown {
        print!("{}", sources.mutant(number(0, 1)));
        return ExitCode::SUCCESS;
    }
    let (count, first, cores) = (number(0, 10_000), number(1, 1), number(2, 1));
    let (start, next) = (Instant::now(), AtomicU64::new(first));
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(BATCH, Ordering::Relaxed);
                    if number >= first + count {
                        return;
                    }
                    let end = (number + BATCH).min(first + count);
                    let thread =
                        std::thread::Builder::new().name(format!("mutants from {number}")).stack_size(STACK);
                    let attempts = || (number..end).for_each(|number| attempt(&sources, number, &tally));
                    std::thread::scope(|scope| thread.spawn_scoped(scope, attempts).unwrap().join().unwrap());
                    if (end - first).is_multiple_of(10_000) || end == first + count {
                        report(&tally.lock().unwrap(), end - first, start.elapsed());
                    }
                }
            });
        }
    });
    ExitCode::from(u8::from(!tally.into_inner().unwrap().failures.is_empty()))
}

fn attempt(sources: &Sources, number: u64, tally: &Mutex<Tally>) {
    let start = Instant::now();
    let result = std::panic::catch_unwind(|| sources.attempt(number, &sources.mutant(number)));
    let took = start.elapsed();
    let mut tally = tally.lock().unwrap();
    let name = match result {
        Ok(_) if took > MOST_TIME => "too slow",
        Ok(Outcome::Rejected) => "rejected",
        Ok(Outcome::NoMain) => "compiled",
        Ok(Outcome::Findings) => "ran with findings",
        Ok(Outcome::Clean) => "ran without findings",
        Err(_) => "panicked",
    };
    *tally.outcomes.entry(name).or_default() += 1;
    if ["too slow", "panicked"].contains(&name) {
        println!("mutant {number}: {name}, {took:.1?}");
        tally.failures.push(number);
    }
    tally.slowest.push((took, number));
    tally.slowest.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
    tally.slowest.truncate(5);
    let memory = most_memory();
    if memory > tally.largest.0 {
        tally.largest = (memory, number);
    }
}

/// The highest use of memory of this process so far, in KiB; 0 where the system does not say.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}

fn report(tally: &Tally, count: u64, took: Duration) {
    let outcomes: Vec<String> =
        tally.outcomes.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let slowest: Vec<String> =
        tally.slowest.iter().map(|(took, number)| format!("{took:.1?} (mutant {number})")).collect();
    println!(
        "{count} mutants in {:.0} s: {}; slowest {}; {} MiB at most (mutant {})",
        took.as_secs_f64(),
        outcomes.join(", "),
        slowest.join(", "),
        tally.largest.0 / 1024,
        tally.largest.1,
    );
}
