//! Generated solutions are compiled into one program, run, and judged.

use std::fs;
use std::path::{Path, PathBuf};

use exercises::check::{Compiled, compile, run};
use exercises::library::Library;
use exercises::{Exercise, Seen};

use super::mutation::Mutant;

/// Seeds that no exercise is tried with otherwise.
const HELD_OUT: [u64; 2] = [4_711, 90_210];

/// How many did not compile, were rejected, and did what the solution does; those that passed otherwise; and what the list was
/// needed for.
#[derive(Debug, Default)]
pub struct Counts {
    pub broken: usize,
    pub rejected: usize,
    pub same: usize,
    pub listed: usize,
    pub passed: Vec<String>,
    pub used: Vec<usize>,
}

impl Counts {
    pub fn all(&self) -> usize {
        self.broken + self.rejected + self.same + self.listed + self.passed.len()
    }
}

/// A change that is right, too.
pub struct Equivalent {
    /// An exercise, or all of them.
    pub exercise: &'static str,
    /// How the change is told, from its beginning, without the number of the line.
    pub what: &'static str,
    pub reason: &'static str,
}

const ALL: &str = "every exercise";

impl Equivalent {
    fn is(&self, exercise: &Exercise, mutant: &Mutant) -> bool {
        let (_, what) = mutant.what.split_once(": ").unwrap_or_default();
        [ALL, exercise.id].contains(&self.exercise) && what.starts_with(self.what)
    }
}

/// Those of `equivalent.txt`: after the line of an exercise come reasons, each with the changes that it is for.
pub fn equivalents() -> Vec<Equivalent> {
    let mut exercise = "";
    let mut reason = "";
    let mut all = Vec::new();
    for line in include_str!("equivalent.txt").lines() {
        if let Some(id) = line.strip_prefix("# ") {
            exercise = id.trim();
        } else if let Some(what) = line.strip_prefix("- ") {
            all.push(Equivalent { exercise, what: what.trim_end(), reason });
        } else if !line.trim().is_empty() {
            reason = line.trim();
        }
    }
    all
}

/// Tries all, in a folder for temporary files.
pub fn try_all(
    library: &Library,
    exercise: &Exercise,
    mutants: &[Mutant],
    equivalents: &[Equivalent],
    folder: &Path,
    counts: &mut Counts,
) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(cannot)?;
    let mut files: Vec<(String, PathBuf, &Mutant)> = Vec::new();
    for (number, mutant) in mutants.iter().enumerate() {
        let file = folder.join(format!("m{number}.rs"));
        fs::write(&file, &mutant.text).map_err(cannot)?;
        files.push((format!("m{number}"), file, mutant));
    }
    let program = folder.join("program");
    // One that does not compile is left out; then more may be found.
    loop {
        let named: Vec<(&str, &Path)> =
            files.iter().map(|(name, file, _)| (name.as_str(), file.as_path())).collect();
        match compile(library, exercise, &named, &program)? {
            Compiled::Well => break,
            Compiled::GaveUp(why) => return Err(format!("{}: the compiler {why}", exercise.id)),
            Compiled::Wrong(errors) => {
                let before = files.len();
                files.retain(|(name, file, _)| {
                    let is_it = |told: &str| Path::new(told) == file;
                    // The check cannot call it: that is told of the file that does.
                    !errors
                        .iter()
                        .any(|error| is_it(error.file()) || error.rendered().contains(&format!("{name}::")))
                });
                counts.broken += before - files.len();
                if files.len() == before {
                    return Err(format!("{}: {}", exercise.id, errors[0].rendered()));
                }
            }
        }
    }
    let cases = exercise.cases(&HELD_OUT);
    let right = exercise.right(&cases);
    let few = exercise.gpus.len();
    for (name, _, mutant) in &files {
        // Most mistakes show in the first runs.
        let first = run(&program, exercise, name, &cases[..few], &right[..few], folder)?;
        if !first.verdict.passed() {
            counts.rejected += 1;
            continue;
        }
        let checked = run(&program, exercise, name, &cases, &right, folder)?;
        if !checked.verdict.passed() {
            counts.rejected += 1;
        } else if checked.seen.iter().zip(&right).all(|(seen, right)| does_the_same(seen, right)) {
            counts.same += 1;
        } else if let Some(number) = equivalents.iter().position(|known| known.is(exercise, mutant)) {
            counts.listed += 1;
            counts.used.push(number);
        } else {
            counts.passed.push(format!("{}: {}", exercise.id, mutant.what));
        }
    }
    Ok(())
}

/// The same results by the same calls, on whatever lines and in whatever order.
fn does_the_same(seen: &Seen, right: &Seen) -> bool {
    let done = |seen: &Seen| {
        let mut calls: Vec<String> = seen
            .calls
            .iter()
            .map(|call| format!("{:?} {} {} {}", call.kind, call.name, call.bytes, call.stream))
            .collect();
        calls.sort();
        // As text: a result may be no number, and that is never equal.
        format!("{:?} {:?} {:?} {calls:?}", seen.ended, seen.facts, seen.races)
    };
    done(seen) == done(right)
}
