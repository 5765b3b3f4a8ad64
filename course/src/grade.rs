//! Grades a folder: what a teacher trusts.
//!
//! Only the files that are named as exercises are taken, and they are compiled against this checkout. The seeds differ from those
//! of a student's checks, and from grading to grading unless they are given. No file spoils the grade of another.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use exercises::assessment;
use exercises::check::check;
use exercises::library::Library;
use exercises::{EXERCISES, Exercise, OwnFolder, Verdict, can_confine, plain, printable};
use labs::Stop;
use labs::stdio::{to_stderr, to_stdout};

use crate::report::{Format, Row, written};
use crate::workplace::{Workplace, failed, wrong};

/// Grades what is in a folder.
pub fn grade(
    place: &Workplace,
    folder: &Path,
    seed: Option<u64>,
    of_final: Option<u64>,
    format: Format,
) -> Result<(), Stop> {
    if !folder.is_dir() {
        return Err(wrong(format!("{}: there is no such folder", folder.display())));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = seed.unwrap_or(now.as_nanos() as u64 % 1_000_000_007);
    let seeds =
        [0, 1, 2].map(|number| 1000 + questions::hash(format!("{seed} {number}").bytes()) % 1_000_000);
    to_stderr(&format!("graded with --seed {seed}\n"));
    if !can_confine() {
        to_stderr(
            "warning: this system has no Landlock to keep a run in a folder of its own, so code that writes files is refused\n",
        );
    }
    let library = place.library()?;
    // Others may grade at the same time.
    let own = OwnFolder::new(&place.scratch).map_err(failed)?;
    let mut rows = Vec::new();
    let mut unchecked = 0;
    for exercise in EXERCISES {
        let (passed, says) = match read(&folder.join(exercise.file())) {
            Err(says) => (false, says),
            Ok(text) => graded(&library, exercise, &text, &seeds, own.path()).unwrap_or_else(|error| {
                unchecked += 1;
                (false, format!("not checked: {}", first_line(&error)))
            }),
        };
        rows.push(Row { id: exercise.id.to_owned(), title: exercise.title.to_owned(), passed, says });
    }
    let standing = match folder.join(assessment::FILE) {
        file if file.exists() || of_final.is_some() => {
            let graded = read(&file).map(|text| {
                crate::assessment::graded(&library, &text, of_final, seeds[0] % 1_000_000, own.path())
            });
            match graded {
                Ok(Ok(Ok(standing))) => Some(standing),
                Ok(Ok(Err(says))) | Err(says) => {
                    rows.push(Row {
                        id: crate::assessment::ID.to_owned(),
                        title: crate::assessment::TITLE.to_owned(),
                        passed: false,
                        says: first_line(&says),
                    });
                    None
                }
                Ok(Err(error)) => return Err(failed(format!("{}: {error}", assessment::FILE))),
            }
        }
        _ => None,
    };
    to_stdout(&written(&rows, standing.as_ref(), format)?);
    match unchecked {
        0 => Ok(()),
        _ => Err(failed(format!("{unchecked} of {} exercises could not be checked", EXERCISES.len()))),
    }
}

/// Whether a text passes, and what the check says. An error means that the check itself did not work.
fn graded(
    library: &Library,
    exercise: &Exercise,
    text: &str,
    seeds: &[u64],
    own: &Path,
) -> Result<(bool, String), String> {
    // A copy: the code that was compiled cannot change meanwhile.
    let file = own.join(exercise.file());
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    // In a thread, so that a check that panics spoils no other.
    let checked = thread::scope(|scope| {
        let thread = scope.spawn(|| check(library, exercise, &file, &exercise.cases(seeds), own));
        thread.join().unwrap_or_else(|_| Err("the check panics".to_owned()))
    })?;
    Ok(match &checked.verdict {
        Verdict::Passed { .. } => (true, "passed".to_owned()),
        Verdict::Failed { diagnosis, .. } => {
            (false, format!("{}: {}", diagnosis.id, first_line(&diagnosis.says)))
        }
    })
}

/// The beginning of a text, for one line of a table.
fn first_line(text: &str) -> String {
    plain(text.lines().next().unwrap_or_default()).chars().take(120).collect()
}

/// No exercise is larger.
const LARGEST: u64 = 1 << 20;

/// A student's file, which is a file and no other thing of that name: no link, no pipe, nothing without an end.
fn read(file: &Path) -> Result<String, String> {
    let metadata = fs::symlink_metadata(file).map_err(|_| "not there".to_owned())?;
    if !metadata.is_file() {
        return Err("not a file".to_owned());
    }
    if metadata.len() > LARGEST {
        return Err(format!("larger than {LARGEST} bytes"));
    }
    let text = fs::read(file).map_err(|error| error.to_string())?;
    printable::decoded(&text).map(str::to_owned).map_err(|what| format!("it is {what}"))
}
