//! How far a compilation is, by what Cargo says of it.

use std::fmt::{self, Display};
use std::io::{BufReader, Read};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// What Cargo is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another Cargo works in the same folder.
    Waiting,
    /// Crates, or Rust's own libraries for WebAssembly.
    Fetching,
    /// So many crates are compiled, of so many.
    Compiling { done: usize, all: usize },
}

impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Waiting => write!(f, "waiting for another cargo to end"),
            Step::Fetching => write!(f, "fetching libraries"),
            // It is linked with all others.
            Step::Compiling { done, all } if done + 1 == *all => {
                write!(f, "{done} of {all} crates, and the last one takes longest")
            }
            Step::Compiling { done, all } => write!(f, "{done} of {all} crates"),
        }
    }
}

/// With this Cargo draws its progress bar where there is no terminal, and draws it as `step` expects.
pub const ENVIRONMENT: [(&str, &str); 4] = [
    ("CARGO_TERM_PROGRESS_WHEN", "always"),
    ("CARGO_TERM_PROGRESS_WIDTH", "80"),
    ("CARGO_TERM_COLOR", "never"),
    ("CARGO_TERM_QUIET", "false"),
];

/// Tells of each step until Cargo has no more to say, and every second that it goes on. Returns all that Cargo said but the progress
/// bar.
pub fn follow(says: impl Read + Send, told: &mut dyn FnMut(Step)) -> String {
    let (mut said, mut last) = (String::new(), None);
    thread::scope(|scope| {
        let (sender, lines) = mpsc::channel();
        scope.spawn(move || send_lines(says, &sender));
        loop {
            match lines.recv_timeout(Duration::from_secs(1)) {
                Ok(line) => match step(&line) {
                    Some(step) if last == Some(step) => continue,
                    Some(step) => last = Some(step),
                    None => {
                        said += &format!("{line}\n");
                        continue;
                    }
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Some(step) = last {
                told(step);
            }
        }
    });
    said
}

/// Sends what is read, line by line. The bar is drawn over itself, so it ends in a carriage return.
fn send_lines(says: impl Read, lines: &Sender<String>) {
    let mut line = Vec::new();
    // What cannot be read any more, Cargo does not say either.
    for byte in BufReader::new(says).bytes().map_while(Result::ok).chain([b'\n']) {
        match byte {
            b'\r' | b'\n' => {
                let text = String::from_utf8_lossy(&line).into_owned();
                line.clear();
                let _ = lines.send(text);
            }
            _ => line.push(byte),
        }
    }
}

/// What a line of Cargo's says of that.
fn step(line: &str) -> Option<Step> {
    let (verb, rest) = line.trim_start().split_once(' ')?;
    match verb {
        "Building" => {
            let counts = rest.split("] ").nth(1)?.split(':').next()?;
            let (done, all) = counts.trim().split_once('/')?;
            Some(Step::Compiling { done: done.parse().ok()?, all: all.parse().ok()? })
        }
        "Blocking" => Some(Step::Waiting),
        "Updating" | "Downloading" | "Downloaded" => Some(Step::Fetching),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_from_what_cargo_says() {
        // As cargo 1.95 writes it.
        let says = [
            "    Blocking waiting for file lock on build directory\n",
            " Downloading crates ...\n",
            "  Downloaded serde v1.0.229\n",
            "   Compiling serde v1.0.229\n",
            "    Building [                             ] 0/2: serde                                     \r",
            "   Compiling player v0.1.0\n",
            "    Building [                             ] 0/2: player                                    \r",
            "    Building [=============>               ] 1/2: player(bin)                               \r",
            "error[E0425]: cannot find value `x`\n",
            "error: could not compile `player`",
        ]
        .concat();
        let mut steps = Vec::new();
        let said = follow(says.as_bytes(), &mut |step| steps.push(step));
        let compiling = |done| Step::Compiling { done, all: 2 };
        assert_eq!(steps, [Step::Waiting, Step::Fetching, compiling(0), compiling(1)]);
        assert_eq!(
            said.lines().find(|line| line.starts_with("error")),
            Some("error[E0425]: cannot find value `x`")
        );
        assert_eq!(compiling(0).to_string(), "0 of 2 crates");
        assert_eq!(compiling(1).to_string(), "1 of 2 crates, and the last one takes longest");
    }
}
