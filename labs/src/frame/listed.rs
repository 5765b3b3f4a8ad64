//! An entry in the list of labs: how to run the lab, and facts for tests and the book.

use clap::Command;
use todevice::Machine;

use super::entry::{Captured, Stop};
use super::lab::Sink;

pub struct Listed {
    /// The name of the binary, `lab-03`.
    pub name: &'static str,
    /// The name of the module: a file or a folder in `labs/src`.
    pub module: &'static str,
    /// The folder's modules besides `mod.rs`, in reading order.
    pub parts: &'static [&'static str],
    pub run: fn(&[&str]) -> Captured,
    /// As `run`, on a prepared machine.
    pub run_prepared: fn(&[&str], fn(&Machine)) -> Captured,
    /// Runs it in this process and sends its events to a sink as they occur.
    pub run_streamed: fn(&[&str], &mut dyn Sink) -> Result<(), Stop>,
    pub command: fn() -> Command,
    /// The runs with a snapshot.
    pub runs: &'static [Run],
}

/// A run of a lab with a tested output.
pub struct Run {
    /// Its name in directives.
    pub name: &'static str,
    /// The reader's flags after `cargo run --bin lab-03 --`.
    pub flags: &'static [&'static str],
    /// More flags, which do not change the text, but make it the same on every computer.
    pub steady: &'static [&'static str],
    /// A description for the reader.
    pub what: &'static str,
}

impl Run {
    // Runs that most labs have.
    pub const NONE: Run = Run::new("none", &["--gpu", "none"], "on the CPU");
    pub const T4: Run = Run::new("t4", &["--gpu", "sim:t4"], "on a simulated Tesla T4");
    pub const T4X2: Run = Run::new("t4x2", &["--gpu", "sim:t4x2"], "on two of them");

    /// A run with the same output on every computer.
    pub const fn new(
        name: &'static str,
        flags: &'static [&'static str],
        what: &'static str,
    ) -> Run {
        Run { name, flags, steady: &[], what }
    }
}

impl Listed {
    /// The number of its chapter, `03`.
    pub fn number(&self) -> &'static str {
        self.name.trim_start_matches("lab-")
    }

    /// The command that a reader types.
    pub fn command(&self, flags: &[&str]) -> String {
        let command = format!("cargo run --bin {}", self.name);
        if flags.is_empty() {
            command
        } else {
            format!("{command} -- {}", flags.join(" "))
        }
    }

    /// Its source files, relative to the root of the checkout.
    pub fn sources(&self) -> Vec<String> {
        let module = self.module;
        let files = match self.parts {
            [] => vec![module.to_owned()],
            parts => ["mod"]
                .iter()
                .chain(parts)
                .map(|part| format!("{module}/{part}"))
                .collect(),
        };
        files.into_iter().map(|file| format!("labs/src/{file}.rs")).collect()
    }

    /// The snapshot of a run, relative to the root of the checkout.
    pub fn snapshot(&self, run: &Run) -> String {
        format!("labs/tests/snapshots/{}-{}.snap", self.name, run.name)
    }
}
