//! The process in which a student's code runs.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::seen::{Ended, Seen, with_axis};
use crate::student;

/// A way to solve an exercise, compiled: its name, its file as the compiler was given it, and what runs it.
pub type Variant<'a> = (&'a str, &'a str, fn(&Case) -> Seen);

/// What the process is asked for, on its standard input.
#[derive(Serialize, Deserialize)]
pub struct Job {
    pub variant: String,
    pub cases: Vec<Case>,
    /// Where to write what was seen, a line a case.
    pub report: PathBuf,
    /// What each line begins with: code that does not know it cannot write one.
    pub token: u64,
    /// Whether timelines are drawn, and where their axis ends at the earliest.
    pub axis: Option<u64>,
}

/// The `main` of that process.
pub fn child(variants: &[Variant]) -> ExitCode {
    match run(variants) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(variants: &[Variant]) -> io::Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let job: Job = serde_json::from_str(&text)?;
    let of_name = |variant: &&Variant| variant.0 == job.variant;
    let (_, file, observe) = variants.iter().find(of_name).ok_or(io::ErrorKind::NotFound)?;
    student::set_file(file);
    student::catch_panics();
    let mut report = OpenOptions::new().append(true).create(true).open(&job.report)?;
    for case in &job.cases {
        let seen = with_axis(job.axis, || observe(case));
        let line = serde_json::to_string(&seen)?;
        report.write_all(format!("{} {line}\n", job.token).as_bytes())?;
        if seen.ended == Ended::UsedUp {
            break; // It does not end in the other cases either, and all of them might take longer than the process has.
        }
    }
    Ok(())
}
