//! From a student's file to what it earns: one call of the compiler, and one process.

use std::path::Path;
use std::thread;

use super::{
    Draw, Looked, REFERENCE, RIGHT, RIGHT_IN_A_GRADE, ROUND, SEEDS, Score, UNITS, Unit, cases, look, outcome,
};
use crate::check::{Compiled, compile_error, compile_root, observed};
use crate::library::Library;
use crate::own_folder::OwnFolder;
use crate::process::Ended;
use crate::{Case, Diagnosis, confined, file, rules};

/// The name of the student's file.
pub const FILE: &str = "final.rs";

/// The runs of the student's functions, each on its machines.
pub struct Run {
    pub looked: Vec<Looked>,
    pub printed: String,
}

/// How many functions may end their process: the others run in a fresh one. Each may take as long as a process has.
const LIVES: usize = 4;

/// Says which program a file is: the number in its first line.
pub fn seed_of(text: &str) -> Result<u64, String> {
    let first = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default();
    let number = first.split_once("seed ").map(|(_, rest)| rest.trim_end_matches('.'));
    match number.and_then(|number| number.trim().parse().ok()) {
        Some(seed) if seed < SEEDS => Ok(seed),
        _ => Err(format!(
            "its first line has to end in \"the program of seed N.\", with N from 0 to {}",
            SEEDS - 1
        )),
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

/// Compiles a student's file and runs these cases of its functions, with timelines if they are to be drawn. Where a function does
/// not end, the next ones run in a fresh process. `folder` is for temporary files. The outer error is not the student's.
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
                format!("The compiler could not build this file: it {why}."),
            )));
        }
    }
    let axis = is_drawn.then_some(0);
    let mut looked: Vec<Looked> = Vec::new();
    let mut printed = String::new();
    let mut lives = LIVES;
    while let rest = &cases[looked.len()..]
        && !rest.is_empty()
    {
        let not_run =
            |case: &Case| Looked { unit: Unit::of(case), case: case.clone(), seen: None, died: None };
        if lives == 0 {
            looked.extend(rest.iter().map(not_run));
            break;
        }
        let observed = observed(&program, "student", rest, axis, own.path())?;
        printed += &observed.printed;
        let came_to = observed.seen.len();
        let is_used_up = observed.seen.last().is_some_and(|seen| seen.ended == crate::Ended::UsedUp);
        let seen = rest.iter().zip(observed.seen);
        looked.extend(seen.map(|(case, seen)| Looked { seen: Some(seen), ..not_run(case) }));
        if let Some(case) = rest.get(came_to)
            && !is_used_up
        {
            let why = match observed.ended {
                Ended::Well => None,
                ended => ended.why(&crate::check::PROGRAM, &observed.printed),
            };
            let died = Some(why.unwrap_or("ended the program".to_owned()));
            looked.push(Looked { died, ..not_run(case) });
        }
        // It would end in the same way on its other machines.
        let place = looked.last().map(|last| last.unit.name);
        let others = cases[looked.len()..].iter().take_while(|case| place == Some(Unit::of(case).name));
        looked.extend(others.map(not_run).collect::<Vec<_>>());
        lives -= 1;
    }
    Ok(Ok(Run { looked, printed }))
}

/// Checks a student's file as the program of a seed, with inputs that depend on `round`.
pub fn check(
    library: &Library,
    file: &Path,
    seed: u64,
    round: u64,
    folder: &Path,
) -> Result<Result<Score, Diagnosis>, String> {
    let cases = cases(seed, round);
    let least = if round == ROUND { RIGHT } else { RIGHT_IN_A_GRADE };
    thread::scope(|scope| {
        // Meanwhile.
        let right = scope.spawn(|| cases.iter().map(|case| look(case, &REFERENCE)).collect::<Vec<_>>());
        let run = run(library, file, &cases, folder, false)?;
        let right = right.join().map_err(|_| "the reference panics".to_owned())?;
        Ok(run.map(|run| Score::of(&Draw::of(seed), outcome(&run.looked, &right, least))))
    })
}
