//! Says in the terminal how far a compilation is: in one line that is written over itself, or where stderr is no terminal in a line
//! every few seconds.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use labs::stdio::to_stderr;
use modules::Step;

/// How often a line is written where lines stay.
const OFTEN: Duration = Duration::from_secs(10);

/// A compilation under way.
pub struct Compiling {
    what: &'static str,
    began: Instant,
    is_terminal: bool,
    last: Option<Instant>,
}

impl Compiling {
    /// `the labs`, for one. Nothing is said before the first step: there may be nothing to compile.
    pub fn new(what: &'static str) -> Compiling {
        Compiling { what, began: Instant::now(), is_terminal: io::stderr().is_terminal(), last: None }
    }

    /// Says how far it is, and returns that: `45 of 67 crates, 91 s so far`.
    pub fn tell(&mut self, step: Step) -> String {
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

    /// Says how long it took, if it was told of.
    pub fn end(self) {
        if self.last.is_some() {
            let cleared = if self.is_terminal { "\r\x1b[K" } else { "" };
            let seconds = self.began.elapsed().as_secs();
            to_stderr(&format!("{cleared}Compiling {} took {seconds} s.\n", self.what));
        }
    }
}
