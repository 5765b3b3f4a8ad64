//! Grades a folder: what a teacher trusts.
//!
//! Only the files that are named as exercises are taken, and they are compiled against this checkout. The seeds are others than
//! those of a student's checks, and other at every grading unless they are given.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use exercises::check::check;
use exercises::{EXERCISES, Verdict};
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
    let mut rows = Vec::new();
    for exercise in EXERCISES {
        let given = folder.join(exercise.file());
        let (passed, says) = match fs::read(&given) {
            Err(_) => (false, "not there".to_owned()),
            Ok(text) => {
                // A copy: what it was compiled from cannot change meanwhile.
                let file = place.scratch.join(format!("graded-{}", exercise.file()));
                place.write(&file, &String::from_utf8_lossy(&text))?;
                let checked = check(&library, exercise, &file, &exercise.cases(&seeds), &place.scratch)
                    .map_err(failed)?;
                match &checked.verdict {
                    Verdict::Passed { .. } => (true, "passed".to_owned()),
                    Verdict::Failed { diagnosis, .. } => {
                        (false, format!("{}: {}", diagnosis.id, diagnosis.says))
                    }
                }
            }
        };
        rows.push(Row { id: exercise.id, title: exercise.title, passed, says });
    }
    to_stdout(&written(&rows, format)?);
    Ok(())
}
