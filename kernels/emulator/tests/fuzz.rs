//! Fuzz tests: mutants of real files end in an error or a run, never in a panic. The example `mutants` runs a million.

#[path = "../examples/mutants/mutate.rs"]
mod mutate;

use mutate::{Outcome, Sources};
use std::time::{Duration, Instant};

/// The maximum time for one mutant, on a computer that is busy with other work.
const MOST_TIME: Duration = Duration::from_secs(60);

#[test]
fn mutants_of_real_files_never_panic() {
    let sources = Sources::of_the_course();
    let mut outcomes = Vec::new();
    for number in 1..=1500 {
        let text = sources.mutant(number);
        let start = Instant::now();
        let result =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sources.attempt(number, &text)));
        let took = start.elapsed();
        assert!(took < MOST_TIME, "mutant {number} takes {took:?}:\n{text}");
        match result {
            Ok(outcome) => outcomes.push(outcome),
            Err(_) => panic!("mutant {number} panics:\n{text}"),
        }
    }
    // Some mutants are still valid programs.
    for (outcome, least) in [(Outcome::NoMain, 100), (Outcome::Findings, 50), (Outcome::Clean, 1)] {
        let count = outcomes.iter().filter(|found| **found == outcome).count();
        assert!(count >= least, "{count} {outcome:?}");
    }
}
