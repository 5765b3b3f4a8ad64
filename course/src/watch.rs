//! Checks an exercise whenever its file is saved.
//!
//! Polls the file several times a second. So the file may be a symbolic link, or on a file system without change
//! notifications, and an editor may write it in place or replace it.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use exercises::{Exercise, file, printable};
use labs::Stop;
use labs::stdio::{line, to_stdout, to_stdout_as_it_is};

use crate::assessment;
use crate::show::{name, text};
use crate::student::{hint, list, titled, verdict, verdict_text};
use crate::workplace::Workplace;

const LOOK: Duration = Duration::from_millis(100);
/// Editors write a file in several steps. It counts as saved once it has been unchanged for this long.
const SETTLED: Duration = Duration::from_millis(40);
/// An editor that moves the old file away has written the new one after this number of polls.
const GONE: u32 = 10;

/// Watches until the student quits. The student decides when to move to the next exercise.
pub fn watch(place: &mut Workplace, mut exercise: &'static Exercise) -> Result<(), Stop> {
    let (send, said) = mpsc::channel();
    thread::spawn(move || listen(send));
    'exercise: loop {
        // Only once: while the student works, a missing file is about to be saved.
        place.start_file(exercise)?;
        let mut last = None;
        let mut misses = 0;
        loop {
            match stable_content(&place.file(exercise)) {
                Some(now) => {
                    misses = 0;
                    // A change of the modification time alone is not a change.
                    if last.as_ref() != Some(&now) {
                        last = check(place, exercise)?.then_some(now);
                    }
                }
                None => {
                    misses += 1;
                    if misses == GONE {
                        let file = place.file(exercise);
                        to_stdout(&format!(
                            "{} is gone. Save it again, or press Enter to restore the original file.\n",
                            name(&file)
                        ));
                    }
                }
            }
            match next(&said).as_deref() {
                None => {}
                Some("" | "c") => continue 'exercise,
                Some("n") => {
                    place.refresh();
                    match place.after(exercise) {
                        Some(next) => {
                            exercise = next;
                            continue 'exercise;
                        }
                        None => to_stdout("That was the last one.\n"),
                    }
                }
                Some("h") => {
                    hint(place, exercise, None, true);
                    to_stdout(&prompt(false));
                }
                Some("s") => to_stdout(&exercise.solution()),
                Some("l") => {
                    place.refresh();
                    list(place, None, false, false)?;
                }
                Some("q") => return Ok(()),
                Some(other) => {
                    let other = printable::line(other);
                    to_stdout(&format!("`{other}` is not a command here. {}", prompt(false)))
                }
            }
        }
    }
}

/// Watches the program of the final assessment, and checks it at each save.
pub fn watch_final(place: &mut Workplace) -> Result<(), Stop> {
    let file = assessment::file_of(place);
    if !file.exists() {
        assessment::show(place, None, None)?;
    }
    let (send, said) = mpsc::channel();
    thread::spawn(move || listen(send));
    let mut last = None;
    loop {
        let now = stable_content(&file);
        if now.is_some() && now != last {
            match assessment::check(place) {
                Ok(_) => {}
                // The error has been reported; the next save may fix it.
                Err(stop) if stop.message.is_empty() => {}
                Err(stop) => return Err(stop),
            }
            to_stdout("\nEnter to check again, q to leave (a letter, then Enter)\n");
            last = stable_content(&file);
        }
        match next(&said).as_deref() {
            None => {}
            Some("q") => return Ok(()),
            Some(_) => last = None,
        }
    }
}

/// Checks the file and prints the verdict, unless the file has just disappeared.
fn check(place: &mut Workplace, exercise: &Exercise) -> Result<bool, Stop> {
    let file = place.file(exercise);
    let is_terminal = io::stdout().is_terminal();
    if is_terminal {
        to_stdout("checking …\n");
    }
    let checked = match verdict(place, exercise) {
        Err(_) if !file.exists() => return Ok(false),
        checked => checked?,
    };
    if is_terminal {
        to_stdout_as_it_is("\x1b[2J\x1b[3J\x1b[H");
    }
    to_stdout(&format!(
        "{}\n{}\n\n{}\n{}\n{}",
        titled(exercise),
        name(&file),
        text(exercise.task, ""),
        verdict_text(exercise, &checked, &file),
        prompt(checked.verdict.passed()),
    ));
    Ok(true)
}

fn prompt(passed: bool) -> String {
    let next = if passed { "n next, " } else { "h hint, " };
    format!("{next}Enter to check again, s solution, l list, q to leave (a letter, then Enter)\n")
}

/// The content of the file, or why it cannot be read, once stable; `None` while it is missing or being written.
fn stable_content(file: &Path) -> Option<Result<Vec<u8>, String>> {
    let read = || match file::bytes(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        other => Some(other.map_err(|error| error.to_string())),
    };
    let before = read()?;
    thread::sleep(SETTLED);
    read().filter(|now| *now == before)
}

fn listen(send: Sender<String>) {
    while let Some(said) = line() {
        if send.send(said.trim().to_lowercase()).is_err() {
            return;
        }
    }
}

fn next(said: &Receiver<String>) -> Option<String> {
    match said.recv_timeout(LOOK) {
        Ok(said) => Some(said),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => {
            // Stdin is closed; the file is still watched.
            thread::sleep(LOOK);
            None
        }
    }
}
