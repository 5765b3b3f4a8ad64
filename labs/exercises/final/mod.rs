//! The final assessment: one training program with twelve planted faults, which a student finds and mends.

#[cfg(not(target_family = "wasm"))]
mod check;
mod draw;
mod faults;
pub mod header;
mod judge;
mod kinds;
pub mod last_act;
mod looked;
mod numbers;
pub mod offers;
#[rustfmt::skip] // Its lines are those of a student, which are shorter.
pub mod program;
pub mod program_text;
mod score;
mod shown;
mod units;

#[cfg(not(target_family = "wasm"))]
pub use check::{FILE, Run, check, run, seed_of};
pub use draw::{DIFFERENT, Draw, PLANTED, SEEDS};
pub use faults::{FAULTS, Fault};
pub use judge::{Finding, NOT_RUN, judge};
pub use kinds::{Category, KINDS, Kind};
pub use looked::{Looked, ROUND, cases, outcome};
pub use numbers::{CHOICES, Numbers, PLACES, numbers};
pub use program::Loader;
pub use score::*;
pub use shown::{COLUMNS, MEANING, figures, one, overview};
pub use units::{Program, REFERENCE, UNITS, Unit, look};

use crate::{Case, Seen};

/// Runs a unit with a program and with the reference. Returns what is found on each machine, with what was seen there.
pub fn compared(
    unit: &'static Unit,
    program: &Program,
    seed: u64,
    run: u64,
) -> Vec<(Case, Seen, Option<Finding>)> {
    let compare = |case: Case| {
        let (seen, right) = (look(&case, program), look(&case, &REFERENCE));
        let finding = judge(unit.name, &seen, &right);
        (case, seen, finding)
    };
    unit.cases(seed, run).map(compare).collect()
}

/// The finding in a function, in one line for a test: the symptom, the values, and a text that is equal where the same was
/// seen.
#[doc(hidden)]
pub fn tried(place: &str, program: &Program, seed: u64) -> String {
    let unit = Unit::find(place).expect("a function of the program");
    let all = compared(unit, program, seed, 1);
    let found = all.iter().find_map(|(case, _, finding)| Some((case, finding.as_ref()?)));
    let told = found.map_or("\t".to_owned(), |(case, finding)| {
        let text = format!("{}, not {}, on {}", finding.seen, finding.expected, case.gpu);
        format!("{}\t{}", finding.symptom, text.replace(['\n', '\t'], " "))
    });
    let mut print = String::new();
    for (_, seen, _) in &all {
        let calls: Vec<_> =
            seen.calls.iter().map(|call| (call.name.clone(), call.bytes, call.waits)).collect();
        let races: Vec<_> =
            seen.races.iter().map(|race| (race.operations.clone(), race.streams, race.reused)).collect();
        print += &format!(
            "{:?} {:?} {calls:?} {races:?} {} {}",
            seen.ended,
            seen.facts,
            seen.peak,
            judge::copying(seen)
        );
    }
    format!("{told}\t{:016x}", fingerprint(&print))
}

/// How fast `fit` is, in one line for a test.
#[doc(hidden)]
pub fn paced(program: &Program, seed: u64) -> String {
    let unit = Unit::find("fit").expect("a function of the program");
    let case = unit.cases(seed, 1).next().expect("a machine");
    let (seen, right) = (look(&case, program), look(&case, &REFERENCE));
    match pace(&seen, &right, RIGHT) {
        Ok(pace) => format!("{:.2}\t{:.3}\t{}", pace.factor(), pace.right, table(&pace).replace('\n', "|")),
        Err(why) => format!("0\t0\t{why}"),
    }
}

/// FNV-1a.
fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
