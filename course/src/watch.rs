//! Checks an exercise whenever its file is saved.

use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use std::{fs, thread};

use exercises::Exercise;
use labs::Stop;
use labs::stdio::to_stdout;
use notify::{Config, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};

use crate::show::text;
use crate::student::{hint, list, titled, told, verdict};
use crate::workplace::{Workplace, failed};

/// Editors write a file in several steps: what follows within this time is one save.
const SETTLED: Duration = Duration::from_millis(40);
/// How often files are looked at where the system tells nothing of changes.
const POLL: Duration = Duration::from_millis(300);

enum Happened {
    Saved,
    Said(String),
    /// Nobody is there to say anything.
    Silence,
}

/// Watches until the student leaves. It goes on to the next exercise only when told to.
pub fn watch(place: &mut Workplace, mut exercise: &'static Exercise, poll: bool) -> Result<(), Stop> {
    let (send, happened) = mpsc::channel();
    // Dropped at the end, it would stop watching.
    let _watcher = watcher(&place.folder, poll, send.clone())?;
    thread::spawn(move || listen(send));
    let is_terminal = io::stdout().is_terminal();
    let mut last = None;
    loop {
        let (file, _) = place.begun(exercise)?;
        let now = fs::read(&file).ok();
        // What changes a file's time alone is no change.
        if now.is_some() && now != last {
            let clear = if is_terminal { "\x1b[2J\x1b[3J\x1b[H" } else { "" };
            if is_terminal {
                to_stdout("checking …\n");
            }
            let checked = verdict(place, exercise)?;
            to_stdout(&format!(
                "{clear}{}\n{}\n\n{}\n{}\n{}",
                titled(exercise),
                file.display(),
                text(exercise.task, ""),
                told(exercise, &checked, &file),
                prompt(checked.verdict.passed()),
            ));
            last = now;
        }
        match wait(&happened) {
            Some(Happened::Saved) => {}
            Some(Happened::Said(said)) => match said.as_str() {
                "" | "c" => last = None,
                "n" => {
                    let next = place.after(exercise);
                    match next {
                        Some(next) => (exercise, last) = (next, None),
                        None => to_stdout("That was the last one.\n"),
                    }
                }
                "h" => {
                    hint(place, exercise, None, true);
                    to_stdout(&prompt(false));
                }
                "s" => to_stdout(&exercise.solution()),
                "l" => list(place, None, false, false)?,
                "q" => return Ok(()),
                other => to_stdout(&format!("`{other}` is none of them. {}", prompt(false))),
            },
            Some(Happened::Silence) => {}
            None => return Ok(()),
        }
    }
}

fn prompt(passed: bool) -> String {
    let next = if passed { "n next, " } else { "h hint, " };
    format!("{next}Enter to check again, s solution, l list, q to leave (a letter, then Enter)\n")
}

fn watcher(folder: &Path, poll: bool, send: Sender<Happened>) -> Result<Box<dyn Watcher>, Stop> {
    let cannot = |error: notify::Error| failed(format!("{}: {error}", folder.display()));
    let tell = move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            let _ = send.send(Happened::Saved);
        }
    };
    let polled =
        |tell| PollWatcher::new(tell, Config::default().with_poll_interval(POLL).with_compare_contents(true));
    if !poll {
        let told = RecommendedWatcher::new(tell.clone(), Config::default());
        // Some file systems tell of no changes, some containers have no watches left.
        if let Ok(mut watcher) = told
            && watcher.watch(folder, RecursiveMode::NonRecursive).is_ok()
        {
            return Ok(Box::new(watcher));
        }
    }
    let mut watcher = polled(tell).map_err(cannot)?;
    watcher.watch(folder, RecursiveMode::NonRecursive).map_err(cannot)?;
    Ok(Box::new(watcher))
}

/// The student's words, a line each.
fn listen(send: Sender<Happened>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if send.send(Happened::Said(line.trim().to_lowercase())).is_err() {
            return;
        }
    }
    let _ = send.send(Happened::Silence);
}

/// The next thing that happens. Several saves in a row are one.
fn wait(happened: &Receiver<Happened>) -> Option<Happened> {
    let first = happened.recv().ok()?;
    if let Happened::Saved = first {
        loop {
            match happened.recv_timeout(SETTLED) {
                Ok(Happened::Saved) => {}
                Ok(other) => return Some(other),
                Err(_) => break,
            }
        }
    }
    Some(first)
}
