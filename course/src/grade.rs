//! Grades a folder: what a teacher trusts.
//!
//! Only the files that are named as exercises are taken, and they are compiled against this checkout. The seeds are others than
//! those of a student's checks, and other at every grading unless they are given.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use exercises::check::check;
use exercises::{EXERCISES, Verdict, plain};
use labs::Stop;
use labs::stdio::{to_stderr, to_stdout};

use crate::report::{Format, Row, written};
use crate::workplace::{Workplace, failed, wrong};

/// Grades what is in a folder.
pub fn grade(place: &Workplace, folder: &Path, seed: Option<u64>, format: Format) -> Result<(), Stop> {
    if !folder.is_dir() {
        return Err(wrong(format!("{}: there is no such folder", folder.display())));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = seed.unwrap_or(now.as_nanos() as u64 % 1_000_000_007);
    let seeds =
        [0, 1, 2].map(|number| 1000 + questions::hash(format!("{seed} {number}").bytes()) % 1_000_000);
    to_stderr(&format!("graded with --seed {seed}\n"));
    let library = place.library()?;
    // Others may grade at the same time.
    let own = place.scratch.join(format!("grade-{}", std::process::id()));
    fs::create_dir_all(&own).map_err(|error| failed(format!("{}: {error}", own.display())))?;
    let mut rows = Vec::new();
    for exercise in EXERCISES {
        let given = folder.join(exercise.file());
        let (passed, says) = match read(&given) {
            Err(says) => (false, says),
            Ok(text) => {
                // A copy: what it was compiled from cannot change meanwhile.
                let file = own.join(exercise.file());
                place.write(&file, &text)?;
                let checked =
                    check(&library, exercise, &file, &exercise.cases(&seeds), &own).map_err(failed)?;
                match &checked.verdict {
                    Verdict::Passed { .. } => (true, "passed".to_owned()),
                    Verdict::Failed { diagnosis, .. } => {
                        let says = diagnosis.says.lines().next().unwrap_or_default();
                        let says: String = plain(says).chars().take(120).collect();
                        (false, format!("{}: {says}", diagnosis.id))
                    }
                }
            }
        };
        rows.push(Row { id: exercise.id, title: exercise.title, passed, says });
    }
    let _ = fs::remove_dir_all(&own);
    to_stdout(&written(&rows, format)?);
    Ok(())
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
    Ok(String::from_utf8_lossy(&text).into_owned())
}
