//! The verdict on a student's code.

use std::fmt::{self, Write};

use drawing::printable;
use serde::{Deserialize, Serialize};

use crate::case::{Case, OPERATIONS};
use crate::seen::{CallKind, Ended, Race, Seen, Value};

/// Why code is not right yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// A few words, unique within the exercise: `moved-twice`.
    pub id: String,
    /// The finding as a sentence: "Each batch is copied twice."
    pub says: String,
    /// The observation, and the expected one.
    pub seen: String,
    pub expected: String,
    /// The missing idea.
    pub idea: String,
    /// The line in the student's file.
    pub line: Option<u32>,
    /// The timelines of the student's code and of the solution, if timing matters.
    pub timelines: Option<[String; 2]>,
    /// The full report of an error.
    pub report: Option<String>,
}

impl Diagnosis {
    pub fn new(id: &str, says: impl Into<String>) -> Diagnosis {
        Diagnosis {
            id: id.to_owned(),
            says: says.into(),
            seen: String::new(),
            expected: String::new(),
            idea: String::new(),
            line: None,
            timelines: None,
            report: None,
        }
    }

    pub fn seen(self, seen: impl Into<String>) -> Diagnosis {
        Diagnosis { seen: seen.into(), ..self }
    }

    pub fn expected(self, expected: impl Into<String>) -> Diagnosis {
        Diagnosis { expected: expected.into(), ..self }
    }

    pub fn idea(self, idea: impl Into<String>) -> Diagnosis {
        Diagnosis { idea: idea.into(), ..self }
    }

    pub fn at(self, line: Option<u32>) -> Diagnosis {
        Diagnosis { line, ..self }
    }

    /// Adds the report of the error that ended the code.
    pub fn report(self, seen: &Seen) -> Diagnosis {
        match &seen.ended {
            Ended::Failed { report, .. } => Diagnosis { report: Some(report.clone()), ..self },
            _ => self,
        }
    }

    /// Adds the report of the data race.
    pub fn race(self, race: &Race) -> Diagnosis {
        Diagnosis { report: Some(race.report.clone()), ..self }
    }

    /// Adds the two timelines.
    pub fn timelines(self, seen: &Seen, right: &Seen) -> Diagnosis {
        let timelines = Some([seen.timeline.clone(), right.timeline.clone()]);
        Diagnosis { timelines, ..self }
    }
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Passed { runs: usize },
    Failed { diagnosis: Box<Diagnosis>, case: Option<Case> },
}

impl Verdict {
    pub fn passed(&self) -> bool {
        matches!(self, Verdict::Passed { .. })
    }
}

/// A verdict as text. `{}` formats it for 80 columns.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (diagnosis, case) = match self {
            Verdict::Passed { runs } => {
                return writeln!(f, "passed: right in all {runs} runs");
            }
            Verdict::Failed { diagnosis, case } => (diagnosis, case),
        };
        f.write_str(&wrapped("not yet: ", &diagnosis.says))?;
        let line = diagnosis.line.map(|line| format!("line {line}")).unwrap_or_default();
        let machine = case.as_ref().map(Case::described);
        for (label, text) in [
            ("seen      ", &diagnosis.seen),
            ("expected  ", &diagnosis.expected),
            ("where     ", &line),
            ("machine   ", &machine.unwrap_or_default()),
            ("idea      ", &diagnosis.idea),
        ] {
            if !text.is_empty() {
                f.write_str(&wrapped(label, text))?;
            }
        }
        if let Some(report) = &diagnosis.report {
            write!(f, "\n{}\n", printable::lines(report).trim_end())?;
        }
        if let Some([seen, right]) = &diagnosis.timelines {
            let [seen, right] = [seen, right].map(|timeline| printable::lines(timeline.trim_end()));
            write!(f, "\nYour code:\n{seen}\n\nThe solution:\n{right}\n")?;
        }
        Ok(())
    }
}

/// Text after a label, wrapped at 80 columns, with hanging indentation.
pub fn wrapped(label: &str, text: &str) -> String {
    const WIDTH: usize = 80;
    let mut all = String::new();
    let mut line = label.to_owned();
    for word in printable::lines(text).split_whitespace() {
        let is_first = line.chars().count() == label.len();
        if !is_first && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(all, "{}", line.trim_end());
            line = " ".repeat(label.len());
        } else if !is_first {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(all, "{}", line.trim_end());
    all
}

/// Checks that most exercises share. Each returns a diagnosis of the mistake.
impl Seen {
    /// Checks that the code returned. An error is shown with its report.
    pub fn returned(&self) -> Result<&Value, Diagnosis> {
        match &self.ended {
            Ended::Returned(value) => Ok(value),
            Ended::UsedUp => Err(Diagnosis::new("endless", "The code does not end.")
                .seen(format!("{OPERATIONS} operations without an end"))
                .idea("Look at the condition that ends each loop.")),
            Ended::Panicked { message, line } if message.starts_with("not yet implemented") => {
                Err(Diagnosis::new("todo", "There is a todo!() left.")
                    .seen(message)
                    .idea("Write the code that the comment beside it describes.")
                    .at(*line))
            }
            Ended::Panicked { message, line } => Err(Diagnosis::new("panic", "The code panics.")
                .seen(message)
                .expected("an error is returned with `?`, and this code has no reason for one")
                .at(*line)),
            Ended::Failed { code, message, .. } => {
                let id = code.as_deref().unwrap_or("error");
                let diagnosis = Diagnosis::new(id, "The code returns an error.").seen(message);
                Err(match code {
                    Some(code) => diagnosis
                        .report(self)
                        .idea(format!("`cargo course explain {code}` tells the whole story of {code}.")),
                    None => diagnosis.expected("no error"),
                })
            }
        }
    }

    /// Checks that the GPU computed the result, if it did in the solution. Other styles launch a few more or fewer
    /// kernels. Code that does some or all of the work elsewhere launches less than half as many.
    pub fn computed_on_the_gpu(&self, right: &Seen) -> bool {
        2 * self.count(CallKind::Launch) >= right.count(CallKind::Launch)
    }
}
