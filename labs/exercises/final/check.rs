//! From a student's file to what it earns: one call of the compiler, and one process.

use std::path::Path;
use std::thread;

use super::{
    Draw, Finding, Outcome, REFERENCE, RIGHT, RIGHT_IN_A_GRADE, SEEDS, Score, UNITS, Unit, judge, look, pace,
};
use crate::check::{Compiled, compile_error, compile_root, observed};
use crate::library::Library;
use crate::own_folder::OwnFolder;
use crate::process::Ended;
use crate::{CallKind, Case, Diagnosis, Seen, confined, file, rules};

/// The name of the student's file.
pub const FILE: &str = "final.rs";

/// The inputs of a check on a student's computer. Others, which nobody has seen, decide on a grade.
pub const ROUND: u64 = 1;

/// A run of a unit with the student's function.
pub struct Looked {
    pub unit: &'static Unit,
    pub case: Case,
    /// Nothing if the program ended before.
    pub seen: Option<Seen>,
}

/// What the student's functions did, each on its machines.
pub struct Run {
    pub looked: Vec<Looked>,
    pub printed: String,
    /// Why some were not run.
    pub ended: Option<String>,
}

/// Says which program a file is: the number in its first line.
pub fn seed_of(text: &str) -> Result<u64, String> {
    let first = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default();
    let number = first.split_once("seed ").map(|(_, rest)| rest.trim_end_matches('.'));
    match number.and_then(|number| number.trim().parse().ok()) {
        Some(seed) if seed < SEEDS => Ok(seed),
        _ => Err(format!("its first line has to end in `seed` and a number from 0 to {}", SEEDS - 1)),
    }
}

/// The text of a student's file. A diagnosis says why it cannot be compiled at all.
fn text_of(file: &Path) -> Result<Result<String, Diagnosis>, String> {
    let text = match file::text(file)? {
        Ok(text) => text,
        Err(diagnosis) => return Ok(Err(diagnosis)),
    };
    Ok(rules::check("final", &text, confined::is_available()).map(|()| text))
}

/// Compiles a student's file and runs these cases of its functions, with timelines if they are to be drawn. `folder` is for temporary
/// files. The outer error is not the student's.
pub fn run(
    library: &Library,
    file: &Path,
    cases: &[Case],
    folder: &Path,
    is_drawn: bool,
) -> Result<Result<Run, Diagnosis>, String> {
    let text = match text_of(file)? {
        Ok(text) => text,
        Err(diagnosis) => return Ok(Err(diagnosis)),
    };
    let own = OwnFolder::new(folder)?;
    let program = own.path().join("final");
    let functions: String =
        UNITS.iter().map(|Unit { name, .. }| format!("        {name}: student::{name},\n")).collect();
    let root = format!(
        "#[path = {file:?}]\nmod student;\n\
         fn main() -> std::process::ExitCode {{\n    \
         exercises::child(&[(\"student\", {file:?}, |case| exercises::assessment::look(case, &exercises::assessment::Program {{\n\
         {functions}    }}))])\n}}\n"
    );
    match compile_root(library, &root, &program)? {
        Compiled::Well => {}
        Compiled::Wrong(errors) => {
            let functions = [("", "the functions of the file you were given")];
            return Ok(Err(compile_error(&functions, file, &text, &errors)));
        }
        Compiled::GaveUp(why) => {
            return Ok(Err(Diagnosis::new(
                "compiler",
                format!("The compiler made no program of this file: it {why}."),
            )));
        }
    }
    let axis = is_drawn.then_some(0);
    let observed = observed(&program, "student", cases, axis, own.path())?;
    let ended = match observed.ended {
        Ended::Well => None,
        ended => Some(ended.why(&crate::check::PROGRAM, &observed.printed).unwrap_or("ended".to_owned())),
    };
    let mut seen = observed.seen.into_iter();
    let looked =
        cases.iter().map(|case| Looked { unit: Unit::of(case), case: case.clone(), seen: seen.next() });
    Ok(Ok(Run { looked: looked.collect(), printed: observed.printed, ended }))
}

/// Checks a student's file as the program of a seed, with inputs that depend on `round`.
pub fn check(
    library: &Library,
    file: &Path,
    seed: u64,
    round: u64,
    folder: &Path,
) -> Result<Result<Score, Diagnosis>, String> {
    let cases: Vec<Case> = UNITS.iter().flat_map(|unit| unit.cases(seed, round)).collect();
    let least = if round == ROUND { RIGHT } else { RIGHT_IN_A_GRADE };
    thread::scope(|scope| {
        // Meanwhile.
        let right = scope.spawn(|| cases.iter().map(|case| look(case, &REFERENCE)).collect::<Vec<_>>());
        let run = run(library, file, &cases, folder, false)?;
        let right = right.join().map_err(|_| "the reference panics".to_owned())?;
        Ok(run.map(|run| Score::of(&Draw::of(seed), outcome(&run, &right, least))))
    })
}

/// What is found of a run.
fn outcome(run: &Run, right: &[Seen], least: f64) -> Outcome {
    let died = || Finding {
        symptom: "error",
        seen: run.ended.clone().unwrap_or_else(|| "an earlier function does not end".to_owned()),
        expected: "an end".to_owned(),
    };
    let mut findings: Vec<(&'static str, Option<Finding>)> = Vec::new();
    let mut trains = true;
    let mut fit = Err("`fit` did not run".to_owned());
    for (Looked { unit, seen, .. }, right) in run.looked.iter().zip(right) {
        if unit.name == "fit" {
            fit = seen.as_ref().map_or_else(
                || Err(format!("`fit` did not run: {}", died().seen)),
                |seen| pace(seen, right, least),
            );
            continue;
        }
        if let Some(seen) = seen
            && unit.name == "train"
            && matches!(seen.ended, crate::Ended::Returned(_))
        {
            trains &= 2 * seen.count(CallKind::Launch) >= right.count(CallKind::Launch);
        }
        let finding = seen.as_ref().map_or_else(|| Some(died()), |seen| judge(unit.name, seen, right));
        match findings.last_mut() {
            Some((name, found)) if *name == unit.name => *found = found.take().or(finding),
            _ => findings.push((unit.name, finding)),
        }
    }
    Outcome { findings, trains, fit }
}
