//! The checkout that the book is built from: its labs, their sources, and their tested output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::{fs, thread};

use labs::{Captured, Event, LABS, Listed, Run, render_text, without_measured};
use questions::recorded;

use crate::labs::of_command;
use crate::mistake::choices;
use crate::{output, sources};

/// Hashes of the lab sources when this program was built. They determine the labs' output.
const BUILT_FROM: &[(&str, u64)] = include!(concat!(env!("OUT_DIR"), "/built_from.rs"));

pub struct Course {
    root: PathBuf,
    /// Whether its labs are those in this program, once checked.
    same: OnceLock<Result<(), String>>,
}

impl Course {
    pub fn new(root: impl Into<PathBuf>) -> Course {
        Course { root: root.into(), same: OnceLock::new() }
    }

    /// The course that this program was built from.
    pub fn here() -> Course {
        Course::new(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("..")))
    }

    pub fn book(&self) -> PathBuf {
        self.root.join("book")
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads a file, given its path from the root.
    pub(crate) fn read(&self, file: &str) -> Result<String, String> {
        match fs::read_to_string(self.root.join(file)) {
            // On Windows, Git may convert line endings.
            Ok(text) => Ok(text.replace("\r\n", "\n")),
            Err(error) => Err(format!("{file} cannot be read: {error}")),
        }
    }

    pub(crate) fn lab(&self, number: &str) -> Result<&'static Listed, String> {
        let all = || choices(LABS.iter().map(Listed::number));
        LABS.iter()
            .find(|lab| lab.number() == number)
            .ok_or_else(|| format!("no lab `{number}`: write {}", all()))
    }

    /// The path and the text of every source of a lab.
    pub(crate) fn sources(&self, lab: &Listed) -> Result<Vec<(String, String)>, String> {
        self.is_built_in()?;
        let read = |path: String| self.read(&path).map(|text| (path, text));
        lab.sources().into_iter().map(read).collect()
    }

    /// Checks that the lab sources have not changed since this program was built, because it prints the output of the
    /// labs in it.
    pub(crate) fn is_built_in(&self) -> Result<(), String> {
        let compare = || {
            let built: BTreeMap<&str, u64> = BUILT_FROM.iter().copied().collect();
            let now = sources::hashes(&self.root)
                .map_err(|error| format!("the sources of the labs cannot be read: {error}"))?;
            let mut files = built.keys().copied().chain(now.keys().map(String::as_str));
            match files.find(|file| built.get(file) != now.get(*file)) {
                None => Ok(()),
                Some(file) => Err(format!(
                    "{file} has changed since this program was built: stop it and start it again, with \
                     `cargo run --bin book`"
                )),
            }
        };
        self.same.get_or_init(compare).clone()
    }

    /// Runs all tested configurations of the selected labs, in parallel. Pages show nearly all of these runs, but
    /// request them one at a time.
    pub(crate) fn run_labs(&self, wanted: impl Fn(&Listed) -> bool) {
        if self.is_built_in().is_err() {
            return; // Each page that needs a run reports the error.
        }
        let labs = LABS.iter().filter(|lab| wanted(lab));
        let runs: Vec<_> = labs.flat_map(|lab| lab.runs.iter().map(move |run| (lab, run))).collect();
        let waiting = Mutex::new(runs.into_iter());
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some((lab, run)) = next() {
                let _ = captured(lab, run);
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(work);
            }
        });
    }

    /// The events of a chapter's lab in this run.
    pub(crate) fn lab_events(&self, number: &str, run: &str) -> Result<&'static [Event], String> {
        match number {
            recorded::CHAPTER => recorded::events(run),
            _ => self.events(self.lab(number)?, run),
        }
    }

    /// The events of a lab in this run, which match its snapshot.
    pub(crate) fn events(&self, lab: &Listed, run: &str) -> Result<&'static [Event], String> {
        let all = || choices(lab.runs.iter().map(|run| run.name));
        let run = lab.runs.iter().find(|known| known.name == run);
        let run = run.ok_or_else(|| format!("{} has no such run: write run={}", lab.name, all()))?;
        self.is_built_in()?;
        let LabRun { captured, printed } = captured(lab, run)?;
        let snapshot = lab.snapshot(run);
        let printed = printed.get_or_init(|| render_text::render(&without_measured(&captured.events)));
        output::check(&self.read(&snapshot)?, printed).map_err(|difference| {
            format!(
                "stale snapshot {snapshot}{difference} (run: {}). To update it: INSTA_UPDATE=always cargo test -p labs",
                lab.command(run.flags)
            )
        })?;
        Ok(&captured.events)
    }

    /// Runs a command as a reader would. The error says why it fails, or that it is not a lab command.
    pub fn run(&self, command: &str) -> Result<(), String> {
        let Some((lab, flags)) = of_command(command) else {
            return Err(format!(
                "`{command}` is not run: write `cargo run --bin lab-03 -- …`, or give the reason in the line \
                 above the block, `<!-- not run: … -->`"
            ));
        };
        if flags.len() > 1 && flags.iter().any(|flag| ["-h", "--help", "-V", "--version"].contains(flag)) {
            return Err(format!("`{command}`: `--help` ignores the other flags, so remove them"));
        }
        // Runs all sections, but shows only the selected one.
        let (flags, section) = match flags.iter().position(|flag| *flag == "--section") {
            Some(at) if at + 1 < flags.len() => {
                ([&flags[..at], &flags[at + 2..]].concat(), Some(flags[at + 1]))
            }
            _ => (flags, None),
        };
        let captured = &run_once(lab, &flags).captured;
        if captured.exit_code != 0 {
            let (code, errors) = (captured.exit_code, captured.errors.trim());
            return Err(format!("`{command}` ends with exit code {code}: {errors}"));
        }
        let has = |wanted: &str| {
            let mut events = captured.events.iter();
            events.any(|event| matches!(event, Event::Section { number, .. } if number == wanted))
        };
        match section {
            Some(section) if !has(section) => {
                Err(format!("`{command}`: {} has no section {section}", lab.name))
            }
            _ => Ok(()),
        }
    }
}

struct LabRun {
    captured: Captured,
    /// The output without measured times, computed at the first request: pages request it for each of their pieces.
    printed: OnceLock<String>,
}

fn captured(lab: &Listed, run: &Run) -> Result<&'static LabRun, String> {
    let flags = [run.flags, run.steady].concat();
    let run = run_once(lab, &flags);
    match (run.captured.exit_code, run.captured.errors.as_str()) {
        (0, "") => Ok(run),
        (_, errors) => Err(format!("{} fails or warns: {}", lab.command(&flags), errors.trim())),
    }
}

fn run_once(lab: &Listed, flags: &[&str]) -> &'static LabRun {
    type Runs = BTreeMap<String, &'static OnceLock<LabRun>>;
    static RUNS: Mutex<Runs> = Mutex::new(BTreeMap::new());
    let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    let once = *runs.entry(lab.command(flags)).or_insert_with(|| Box::leak(Box::default()));
    drop(runs); // Lets other threads run other labs meanwhile.
    once.get_or_init(|| LabRun { captured: (lab.run)(flags), printed: OnceLock::new() })
}
