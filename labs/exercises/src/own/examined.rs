//! The defects of an exercise: missing parts, and wrong solutions that pass.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use todevice::GpuSpec;

use crate::check::{Compiled, compile, run};
use crate::exercise::{Edit, Exercise, Kind, SEEDS};
use crate::library::Library;
use crate::rules;
use crate::verdict::Verdict;

/// With fewer wrong solutions, nobody knows whether the check detects mistakes.
const LEAST_WRONG: usize = 3;

/// Returns one line per defect. An error means that the exercise could not be examined.
pub fn defects(library: &Library, exercise: &Exercise, folder: &Path) -> Result<Vec<String>, String> {
    let mut defects = in_words(exercise);
    let machines = exercise.gpus.iter().filter(|gpu| gpu.parse::<GpuSpec>().is_err()).collect::<Vec<_>>();
    for gpu in &machines {
        defects.push(format!(
            "`gpus` has the unknown machine `{gpu}`: expected sim:t4, sim:h200, none, or similar"
        ));
    }
    let attempts = attempts(exercise, &mut defects);
    // An exercise that does not compile cannot run.
    if !machines.is_empty() || exercise.gpus.is_empty() || exercise.sizes.is_empty() || attempts.is_empty() {
        return Ok(defects);
    }
    if let Some(attempts) = whole(library, exercise, attempts, folder, &mut defects)? {
        tried(exercise, &attempts, folder, &mut defects)?;
    }
    Ok(defects)
}

/// The defects that need no run to be found.
fn in_words(exercise: &Exercise) -> Vec<String> {
    let mut defects = Vec::new();
    let mut defect = |is: bool, what: String| {
        if is {
            defects.push(what);
        }
    };
    let blank = |text: &str| text.trim().is_empty();
    let id = exercise.id;
    let (number, words) = id.split_once('-').unwrap_or_default();
    let is_id = number.len() == 2
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && !words.is_empty()
        && words.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    defect(
        !is_id,
        format!(
            "the id `{id}` must be like `02-some-words`: the number of a chapter, and words of the letters a to z"
        ),
    );
    defect(
        Exercise::find(id).is_some(),
        format!("the course already has an exercise `{id}`: choose another id"),
    );
    defect(blank(exercise.title), "`title` is missing".to_owned());
    defect(blank(exercise.task), "`task` is missing: describe the task".to_owned());
    for (number, hint) in (1..).zip(exercise.hints) {
        defect(
            blank(hint),
            format!("hint {number} is missing: write three, from a nudge to nearly the whole solution"),
        );
    }
    let hints: BTreeSet<&str> = exercise.hints.into_iter().filter(|hint| !blank(hint)).collect();
    let written = exercise.hints.iter().filter(|hint| !blank(hint)).count();
    defect(hints.len() < written, "two hints are the same".to_owned());
    defect(
        blank(exercise.afterwards),
        "`afterwards` is missing: write a sentence for students who passed".to_owned(),
    );
    defect(
        exercise.functions.is_empty(),
        "`functions` is empty: name the functions that the check calls".to_owned(),
    );
    defect(
        exercise.gpus.is_empty() || exercise.sizes.is_empty(),
        "`gpus` or `sizes` is empty, so the check runs nothing".to_owned(),
    );
    defect(
        exercise.gpus.len() * exercise.sizes.len() == 1,
        "the check uses one machine and one size: code that works only there would pass".to_owned(),
    );
    let wrong = exercise.wrong.len();
    defect(
        wrong < LEAST_WRONG,
        format!(
            "there are {wrong} wrong solutions: write at least {LEAST_WRONG}, to show that the check finds mistakes"
        ),
    );
    let mut seen = BTreeSet::new();
    for wrong in exercise.wrong {
        defect(
            blank(wrong.what),
            format!("the wrong solution `{}` does not describe the mistake: `what` is empty", wrong.name),
        );
        defect(
            !seen.insert(wrong.diagnosis),
            format!(
                "two wrong solutions have the diagnosis `{}`: each mistake needs its own diagnosis",
                wrong.diagnosis
            ),
        );
    }
    defects
}

/// A solution, right or wrong.
struct Attempt {
    name: String,
    text: String,
    /// None if it is right; otherwise the diagnosis, if known.
    expected: Option<Option<&'static str>>,
}

/// All solutions of the exercise. Those whose edits do not apply are defects.
fn attempts(exercise: &Exercise, defects: &mut Vec<String>) -> Vec<Attempt> {
    if !exercise.has_solution() {
        defects.push("its `source` has no solution between the lines `// BEGIN` and `// END`".to_owned());
        return Vec::new();
    }
    let skeleton = match exercise.kind {
        Kind::Write => Some(Some("todo")),
        Kind::Fix => Some(None),
    };
    let mut edits: Vec<(String, &[Edit], Option<Option<&'static str>>)> =
        vec![("solution".to_owned(), &[], None), ("skeleton".to_owned(), exercise.skeleton, skeleton)];
    edits.extend(exercise.styles.iter().map(|style| (style.name.to_owned(), style.edits, None)));
    edits.extend(
        exercise.wrong.iter().map(|wrong| (wrong.name.to_owned(), wrong.edits, Some(Some(wrong.diagnosis)))),
    );
    let mut all = Vec::new();
    let mut names = BTreeSet::new();
    for (name, edits, expected) in edits {
        let is_name =
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !is_name || name.is_empty() || !names.insert(name.clone()) {
            defects
                .push(format!("`{name}` is not a valid name, or occurs twice: use a to z, digits, and `_`"));
            continue;
        }
        let text = match exercise.edited(edits) {
            Ok(text) => text,
            Err(what) => {
                defects.push(format!("{name}: {what}"));
                continue;
            }
        };
        if expected.is_some() && text == exercise.solution() {
            defects.push(format!("{name} is the solution itself"));
            continue;
        }
        if let Err(diagnosis) = rules::check(exercise.id, &text, true) {
            defects.push(format!("{name}: {}", diagnosis.says));
            continue;
        }
        all.push(Attempt { name, text, expected });
    }
    all
}

/// Compiles all solutions into one program. Those that do not compile are defects.
fn whole(
    library: &Library,
    exercise: &Exercise,
    attempts: Vec<Attempt>,
    folder: &Path,
    defects: &mut Vec<String>,
) -> Result<Option<Vec<Attempt>>, String> {
    let mut left: Vec<(Attempt, PathBuf)> = Vec::new();
    for attempt in attempts {
        let file = folder.join(format!("{}.rs", attempt.name));
        fs::write(&file, &attempt.text).map_err(|error| format!("{}: {error}", file.display()))?;
        left.push((attempt, file));
    }
    loop {
        let files: Vec<(&str, &Path)> =
            left.iter().map(|(attempt, file)| (attempt.name.as_str(), file.as_path())).collect();
        if files.is_empty() {
            return Ok(None);
        }
        match compile(library, exercise, &files, &folder.join("program"))? {
            Compiled::Well => return Ok(Some(left.into_iter().map(|(attempt, _)| attempt).collect())),
            Compiled::GaveUp(why) => return Err(format!("the compiler {why}")),
            Compiled::Wrong(errors) => {
                let before = left.len();
                left.retain(|(attempt, file)| {
                    let of_it = errors.iter().find(|error| {
                        Path::new(error.file()) == file
                            || error.rendered().contains(&format!("{}::", attempt.name))
                    });
                    if let Some(error) = of_it {
                        defects.push(format!("{} does not compile: {}", attempt.name, error.message));
                    }
                    of_it.is_none()
                });
                if left.len() == before {
                    return Err(errors[0].rendered().to_owned());
                }
            }
        }
    }
}

/// Runs the solutions, and compares each verdict with the expected one.
fn tried(
    exercise: &Exercise,
    attempts: &[Attempt],
    folder: &Path,
    defects: &mut Vec<String>,
) -> Result<(), String> {
    let cases = exercise.cases(&SEEDS);
    let right = exercise.right(&cases);
    for Attempt { name, expected, .. } in attempts {
        let checked = run(&folder.join("program"), exercise, name, &cases, &right, folder)?;
        let found = match &checked.verdict {
            Verdict::Passed { .. } => None,
            Verdict::Failed { diagnosis, .. } => Some(diagnosis),
        };
        let defect = match (expected, found) {
            (None, Some(diagnosis)) => {
                Some(format!("{name} is right, but is rejected: {}: {}", diagnosis.id, diagnosis.says))
            }
            (Some(_), None) => Some(format!("{name} is wrong, but passes")),
            (Some(Some(expected)), Some(diagnosis)) if diagnosis.id != *expected => Some(format!(
                "{name} gets the diagnosis `{}`, not `{expected}`: {}",
                diagnosis.id, diagnosis.says
            )),
            _ => None,
        };
        defects.extend(defect);
    }
    Ok(())
}
