//! The process in which a student's code runs.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::confined::confine;
use crate::seen::{Ended, Form, Seen, with_axis};
use crate::student;

/// A way to solve an exercise, compiled: its name, its file as the compiler was given it, and what runs it.
pub type Variant<'a> = (&'a str, &'a str, fn(&Case) -> Seen);

/// The request to the process, on its standard input.
#[derive(Serialize, Deserialize)]
pub struct Job {
    pub variant: String,
    pub cases: Vec<Case>,
    /// Where to write what was seen, a line a case.
    pub report: PathBuf,
    /// The beginning of each line: code that does not know it cannot write one.
    pub token: u64,
    /// Whether the process goes behind walls before it runs any of the student's code. It works in a folder of its own.
    pub is_confined: bool,
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
        // No run finds what an earlier one left.
        clear(own)?;
        if seen.ended == Ended::UsedUp {
            break; // It does not end in the other cases either, and all of them might take longer than the process has.
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
