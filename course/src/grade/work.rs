//! Checks the files of a class: each distinct file once, several in parallel.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use exercises::check::check_by;
use exercises::library::Library;
use exercises::{Exercise, Seen, Verdict, plain, printable};

use super::name::file_of;
use crate::standing::Standing;

#[derive(Clone, Debug)]
pub enum Outcome {
    Missing,
    Passed,
    /// The diagnosis, its text, and the line.
    Failed {
        diagnosis: String,
        message: String,
        line: Option<u32>,
    },
    /// The final assessment has points.
    Final(Standing),
    /// The check itself failed.
    Unchecked(String),
}

impl Outcome {
    pub fn is_passed(&self) -> bool {
        match self {
            Outcome::Passed => true,
            Outcome::Final(standing) => standing.passed,
            _ => false,
        }
    }

    pub fn diagnosis(&self) -> Option<&str> {
        match self {
            Outcome::Failed { diagnosis, .. } => Some(diagnosis),
            _ => None,
        }
    }

    pub fn summary(&self) -> String {
        match self {
            Outcome::Missing => "not there".to_owned(),
            Outcome::Passed => "passed".to_owned(),
            Outcome::Failed { diagnosis, message, .. } if diagnosis.is_empty() => message.clone(),
            Outcome::Failed { diagnosis, message, .. } => format!("{diagnosis}: {message}"),
            Outcome::Final(standing) => standing.summary(),
            Outcome::Unchecked(why) => format!("not checked: {why}"),
        }
    }
}

/// A file to check: the text, and the exercise, or `None` for the final assessment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    pub id: &'static str,
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct Done {
    pub outcome: Outcome,
    pub seconds: f64,
}

pub struct Checks<'a> {
    pub library: &'a Library,
    pub exercises: &'a [&'static Exercise],
    pub seeds: [u64; 3],
    pub of_final: Option<u64>,
    pub own: &'a Path,
}

/// Runs all jobs, one per core at a time. Calls `progress` with the number of finished jobs.
pub fn run_all(checks: &Checks, jobs: Vec<Job>, progress: &(dyn Fn(usize) + Sync)) -> BTreeMap<Job, Done> {
    let rights: BTreeMap<&str, OnceLock<Vec<Seen>>> =
        checks.exercises.iter().map(|exercise| (exercise.id, OnceLock::new())).collect();
    let waiting = Mutex::new(jobs.into_iter().enumerate());
    let done = Mutex::new(BTreeMap::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((number, job)) = next() {
            let start = Instant::now();
            let folder = checks.own.join(number.to_string());
            // In a thread, so that a panic in one check does not affect the others.
            let outcome = thread::scope(|scope| {
                let thread = scope.spawn(|| run_one(checks, &job, rights.get(job.id), &folder));
                thread.join().unwrap_or_else(|_| Err("the check panics".to_owned()))
            });
            let outcome = outcome.unwrap_or_else(|why| Outcome::Unchecked(first_line(&why)));
            let _ = fs::remove_dir_all(&folder);
            let seconds = start.elapsed().as_secs_f64();
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.insert(job, Done { outcome, seconds });
            progress(done.len());
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one check. An error means that the check failed to run.
fn run_one(
    checks: &Checks,
    job: &Job,
    right: Option<&OnceLock<Vec<Seen>>>,
    folder: &Path,
) -> Result<Outcome, String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let Some(exercise) = checks.exercises.iter().find(|exercise| exercise.id == job.id) else {
        let round = checks.seeds[0] % 1_000_000;
        let graded = crate::assessment::graded(checks.library, &job.text, checks.of_final, round, folder)?;
        return Ok(match graded {
            Ok(standing) => Outcome::Final(standing),
            Err(message) => {
                Outcome::Failed { diagnosis: String::new(), message: first_line(&message), line: None }
            }
        });
    };
    // A copy, so that the compiled code cannot change meanwhile.
    let file = folder.join(file_of(job.id));
    fs::write(&file, &job.text).map_err(|error| format!("{}: {error}", file.display()))?;
    let cases = exercise.cases(&checks.seeds);
    // A teacher's exercise is checked by its host, which runs the solution.
    let right = right.filter(|_| checks.library.host(job.id).is_none());
    let right = right.map(|right| right.get_or_init(|| exercise.right(&cases)).as_slice());
    let checked = check_by(checks.library, exercise, &file, &cases, right, folder)?;
    Ok(match &checked.verdict {
        Verdict::Passed { .. } => Outcome::Passed,
        Verdict::Failed { diagnosis, .. } => Outcome::Failed {
            diagnosis: diagnosis.id.clone(),
            message: first_line(&diagnosis.says),
            line: diagnosis.line,
        },
    })
}

pub fn first_line(text: &str) -> String {
    plain(text.lines().next().unwrap_or_default()).chars().take(120).collect()
}

/// Larger than any exercise.
const LARGEST: u64 = 1 << 20;

/// Reads a student's file. It must be a regular file: no link, no pipe, nothing endless.
pub fn read(file: &Path) -> Result<String, String> {
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
