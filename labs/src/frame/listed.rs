//! What the list of the labs holds of each: how it is run, and what tests and the book know of it.

use clap::Command;
use todevice::Machine;

use super::entry::{Captured, Stop};
use super::lab::Sink;

/// A lab in the list.
pub struct Listed {
    /// The name of its binary, `lab-03`.
    pub name: &'static str,
    /// The name of its module: of a file in `labs/src`, or of a folder there.
    pub module: &'static str,
    /// The modules of the folder besides `mod.rs`, in the order in which they are read.
    pub parts: &'static [&'static str],
    /// Runs it in this process.
    pub run: fn(&[&str]) -> Captured,
    /// The same on a machine that has been prepared.
    pub run_prepared: fn(&[&str], fn(&Machine)) -> Captured,
    /// Runs it in this process and tells what it says as it comes.
    pub run_streamed: fn(&[&str], &mut dyn Sink) -> Result<(), Stop>,
    /// What its flags are.
    pub command: fn() -> Command,
    /// The runs that a test keeps a snapshot of.
    pub runs: &'static [Run],
}

/// A way to run a lab whose output is tested.
pub struct Run {
    /// What directives call it.
    pub name: &'static str,
    /// What a reader types after `cargo run --bin lab-03 --`.
    pub flags: &'static [&'static str],
    /// More flags, which change nothing that is printed, but make it the same on every computer.
    pub steady: &'static [&'static str],
    /// What a reader gets from it.
    pub what: &'static str,
}

impl Run {
    // Those that most labs have.
    pub const NONE: Run = Run::new("none", &["--gpu", "none"], "on the CPU");
    pub const T4: Run = Run::new("t4", &["--gpu", "sim:t4"], "on a simulated Tesla T4");
    pub const T4X2: Run = Run::new("t4x2", &["--gpu", "sim:t4x2"], "on two of them");

    /// One that prints the same on every computer.
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

    /// What a reader types to run it.
    pub fn command(&self, flags: &[&str]) -> String {
        let command = format!("cargo run --bin {}", self.name);
        if flags.is_empty() {
            command
        } else {
            format!("{command} -- {}", flags.join(" "))
        }
    }

    /// Its source, in one file or several, from the root of the checkout.
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

    /// The snapshot of a run, from the root of the checkout.
    pub fn snapshot(&self, run: &Run) -> String {
        format!("labs/tests/snapshots/{}-{}.snap", self.name, run.name)
    }
}
