//! The child process that runs a student's code.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::confined::confine;
use crate::seen::{Ended, Form, Seen, with_axis};
use crate::student;

/// A compiled solution: its name, its file as passed to the compiler, and the function that runs it.
pub type Variant<'a> = (&'a str, &'a str, fn(&Case) -> Seen);

/// The request to the process, on its standard input.
#[derive(Serialize, Deserialize)]
pub struct Job {
    pub variant: String,
    pub cases: Vec<Case>,
    /// The file for the observations, one line per case.
    pub report: PathBuf,
    /// The start of each line: code that does not know it cannot forge one.
    pub token: u64,
    /// Whether the process confines itself before it runs the student's code. It works in a folder of its own.
    pub is_confined: bool,
    /// Whether timelines are drawn, and the minimum end of their axis.
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
    let axis = job.axis.map(|until| (until, Form::Text));
    let mut report = OpenOptions::new().append(true).create(true).open(&job.report)?;
    let own = Path::new(".");
    if job.is_confined {
        confine(own).map_err(io::Error::other)?;
    }
    for case in &job.cases {
        let seen = with_axis(axis, || observe(case));
        let line = serde_json::to_string(&seen)?;
        report.write_all(format!("{} {line}\n", job.token).as_bytes())?;
        // No run finds files of an earlier one.
        clear(own)?;
        if seen.ended == Ended::UsedUp {
            break; // Other cases would not end either, and together they might exceed the time limit.
        }
    }
    Ok(())
}

fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}
