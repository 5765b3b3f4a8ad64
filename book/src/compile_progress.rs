//! Reports the progress of a compilation in a terminal line that is overwritten, or, if stderr is not a terminal, in a
//! new line every few seconds.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use labs::stdio::to_stderr;
use modules::Step;

/// The interval between lines if they are not overwritten.
const OFTEN: Duration = Duration::from_secs(10);

pub struct CompileProgress {
    what: &'static str,
    began: Instant,
    is_terminal: bool,
    last: Option<Instant>,
}

impl CompileProgress {
    /// `what` is, for example, `the labs`. Prints nothing before the first step, since there may be nothing to compile.
    pub fn new(what: &'static str) -> CompileProgress {
        CompileProgress { what, began: Instant::now(), is_terminal: io::stderr().is_terminal(), last: None }
    }

    /// Prints the progress, and returns it: `45 of 67 crates, 91 s so far`.
    pub fn report(&mut self, step: Step) -> String {
        let how_far = format!("{step}, {} s so far", self.began.elapsed().as_secs());
        let line = format!("Compiling {} for the pages: {how_far}", self.what);
        if self.is_terminal {
            to_stderr(&format!("\r\x1b[K{line}"));
            self.last = Some(Instant::now());
        } else if self.last.is_none_or(|last| last.elapsed() >= OFTEN) {
            to_stderr(&format!("{line}\n"));
            self.last = Some(Instant::now());
        }
        how_far
    }

    /// Prints the total time, if any progress was printed.
    pub fn end(self) {
        if self.last.is_some() {
            let cleared = if self.is_terminal { "\r\x1b[K" } else { "" };
            let seconds = self.began.elapsed().as_secs();
            to_stderr(&format!("{cleared}Compiling {} took {seconds} s.\n", self.what));
        }
    }
}
