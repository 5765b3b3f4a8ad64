//! Gets a program's answer from PyTorch, in a Python child process.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};

use super::{Answer, Dialect, Program};

pub struct PyTorch {
    python: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    pub version: String,
}

impl PyTorch {
    /// Starts a Python that has PyTorch.
    pub fn start(python: &str) -> Result<PyTorch, String> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/differ/pytorch.py");
        let mut command = Command::new(python);
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot run '{python}': {error}"))?;
        let to = child.stdin.take().expect("it is a pipe");
        let mut from = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut line = String::new();
        match from.read_line(&mut line).map(|_| serde_json::from_str(&line)) {
            Ok(Ok(Json::String(version))) => Ok(PyTorch { python: child, to, from, version }),
            _ => {
                let mut errors = String::new();
                let _ = child.stderr.take().expect("it is a pipe").read_to_string(&mut errors);
                let _ = child.wait();
                let last = errors.lines().last().unwrap_or("it said nothing");
                Err(format!("'{python}' has no PyTorch that works: {last}"))
            }
        }
    }

    /// PyTorch's answer to a program; an error if PyTorch crashes.
    pub fn answer(&mut self, program: &Program) -> Result<Json, String> {
        let expressions: Vec<String> =
            program.steps.iter().map(|step| step.written(Dialect::Python)).collect();
        let mut line = String::new();
        let sent = writeln!(self.to, "{}", json!(expressions)).and_then(|_| self.to.flush());
        let got = sent.and_then(|_| self.from.read_line(&mut line));
        match (got, serde_json::from_str(&line)) {
            (Ok(_), Ok(answer)) => Ok(answer),
            _ => Err(format!("PyTorch ended on this program:\n{}", expressions.join("\n"))),
        }
    }
}

impl Drop for PyTorch {
    fn drop(&mut self) {
        let _ = self.python.kill();
        let _ = self.python.wait();
    }
}

/// Parses a fresh or stored answer.
pub fn read(answer: &Json) -> Result<Answer, String> {
    Answer::from_json(answer).ok_or_else(|| format!("an answer that cannot be read: {answer}"))
}
