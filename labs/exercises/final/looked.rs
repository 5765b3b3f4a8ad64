//! The runs of a program's functions, and the findings in them.

use super::{Finding, NOT_RUN, Outcome, Program, UNITS, Unit, judge, look, pace};
use crate::{CallKind, Case, Ended, Seen, student};

/// The inputs of a check on a student's computer. Others, which nobody has seen, decide on a grade.
pub const ROUND: u64 = 1;

/// A run of a unit with the student's function.
pub struct Looked {
    pub unit: &'static Unit,
    pub case: Case,
    /// None if it did not run, or the program ended in it.
    pub seen: Option<Seen>,
    /// How the program ended in it, as a sentence goes on after "it".
    pub died: Option<String>,
}

/// The runs of all functions of a student's program, with inputs that depend on `round`.
pub fn cases(seed: u64, round: u64) -> Vec<Case> {
    UNITS.iter().flat_map(|unit| unit.cases(seed, round)).collect()
}

impl Looked {
    /// Runs a unit with a program that this very program has: its functions stand in `folder`, as the compiler was given it.
    pub fn here(case: &Case, program: &Program, folder: &str) -> Looked {
        student::set_file(folder);
        let seen = Some(look(case, program));
        Looked { unit: Unit::of(case), case: case.clone(), seen, died: None }
    }
}

/// The findings of these runs, compared with those of the reference.
pub fn outcome(looked: &[Looked], right: &[Seen], least: f64) -> Outcome {
    let finding = |symptom, seen: String| Finding { symptom, seen, expected: "an end".to_owned() };
    let mut stopped = Vec::new();
    let mut findings: Vec<(&'static str, Option<Finding>)> = Vec::new();
    let mut trains = true;
    let mut fit = Err("`fit` did not run, because too many other functions do not end".to_owned());
    for (Looked { unit, case, seen, died }, right) in looked.iter().zip(right) {
        if let Some(why) = died {
            stopped.push(format!("`{}` on {}: it {why}.", unit.name, case.gpu));
        }
        if seen.as_ref().is_some_and(|seen| seen.ended == Ended::UsedUp) {
            stopped.push(format!("`{}` on {}: it does not end.", unit.name, case.gpu));
        }
        if unit.name == "fit" {
            fit = match (seen, died) {
                (Some(seen), _) => pace(seen, right, least),
                (None, Some(why)) => Err(format!("`fit` {why}")),
                (None, None) => fit,
            };
            continue;
        }
        if let Some(seen) = seen
            && unit.name == "train"
            && matches!(seen.ended, Ended::Returned(_))
        {
            trains &= 2 * seen.count(CallKind::Launch) >= right.count(CallKind::Launch);
        }
        let finding = match (seen, died) {
            (Some(seen), _) => judge(unit.name, seen, right),
            (None, Some(why)) => Some(finding("error", why.clone())),
            (None, None) => Some(finding(NOT_RUN, "it did not run".to_owned())),
        };
        match findings.last_mut() {
            Some((name, found)) if *name == unit.name => *found = found.take().or(finding),
            _ => findings.push((unit.name, finding)),
        }
    }
    Outcome { findings, trains, fit, stopped }
}
