//! The parts of an exercise.

use crate::case::Case;
use crate::choices::Choices;
use crate::seen::Seen;
use crate::verdict::{Diagnosis, Verdict};

/// An exercise. All of it is in one file, `labs/exercises/source/<id>.rs`.
///
/// The solution is the Rust code between two marker lines of that file. Its variants, such as the skeleton and common
/// mistakes, are edits of it, so that they cannot get out of sync.
pub struct Exercise {
    /// The chapter number and a few words: `02-batch`. It never changes, because progress is stored under it.
    pub id: &'static str,
    pub title: &'static str,
    pub kind: Kind,
    /// The task, in Markdown.
    pub task: &'static str,
    /// From a nudge to nearly the full solution.
    pub hints: [&'static str; 3],
    /// A sentence for the reader who has solved it.
    pub afterwards: &'static str,
    /// The text of the exercise's own source file.
    pub source: &'static str,
    /// The functions in the student's file that the check calls, with their signatures.
    pub functions: &'static [(&'static str, &'static str)],
    /// Edits that turn the solution into the student's initial file.
    pub skeleton: &'static [Edit],
    /// Other correct ways to write the solution.
    pub styles: &'static [Style],
    pub wrong: &'static [Wrong],
    /// The choices in the page, if there are any.
    pub places: &'static [Place],
    /// The machines and sizes it is checked with.
    pub gpus: &'static [&'static str],
    pub sizes: &'static [usize],
    /// Runs code on the machine of a case.
    pub observe: Observe,
    /// Compares the student's run with the solution's.
    pub judge: Judge,
}

/// Runs code on the machine of a case, and returns the observations.
pub type Observe = fn(&Case) -> Seen;

/// Compares a run in a case with the solution's run.
pub type Judge = fn(&Case, &Seen, &Seen) -> Result<(), Diagnosis>;

/// The seeds used on a student's computer. Grading uses other, secret ones.
pub const SEEDS: [u64; 3] = [1, 2, 3];

/// The kind of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The code contains a mistake.
    Fix,
    /// A part of the code is missing.
    Write,
}

/// A piece that occurs exactly once in the solution, and its replacement.
pub type Edit = (&'static str, &'static str);

/// The subject of a choice, and its options, each as edits of the solution. Every combination of choices is compiled
/// for the page, so each option compiles with any other choices. One option is the skeleton, and one the solution. An
/// edit shared by several places is applied if none of the chosen options needs the original: see [`Choices`].
pub type Place = (&'static str, &'static [&'static [Edit]]);

/// Another correct way to write the solution.
pub struct Style {
    pub name: &'static str,
    pub edits: &'static [Edit],
}

/// A common mistake.
pub struct Wrong {
    pub name: &'static str,
    /// The mistake, for the page: "The batch stays on the CPU."
    pub what: &'static str,
    pub edits: &'static [Edit],
    /// The id of the expected diagnosis.
    pub diagnosis: &'static str,
}

/// The source lines around the student's file, in a module `solution`.
const BEGIN: &str = "// BEGIN\n";
const END: &str = "// END\n";

impl Exercise {
    /// The number of its chapter, `02`.
    pub fn chapter(&self) -> &'static str {
        self.id.split('-').next().unwrap_or(self.id)
    }

    /// The name of the student's file.
    pub fn file(&self) -> String {
        format!("{}.rs", self.id)
    }

    /// The path of its source, relative to the root of the checkout.
    pub fn source(&self) -> String {
        format!("labs/exercises/source/{}", self.file())
    }

    /// The name of its module, `x02_batch`.
    pub fn module(&self) -> String {
        format!("x{}", self.id.replace('-', "_"))
    }

    /// Whether its source contains a marked solution.
    pub fn has_solution(&self) -> bool {
        self.source.split_once(BEGIN).is_some_and(|(_, rest)| rest.contains(END))
    }

    /// The student's file with the solution.
    pub fn solution(&self) -> String {
        let (_, rest) = self.source.split_once(BEGIN).expect("tested");
        let (text, _) = rest.split_once(END).expect("tested");
        text.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect()
    }

    /// The student's initial file.
    pub fn skeleton(&self) -> String {
        self.edited(self.skeleton).expect("tested")
    }

    /// The solution with some pieces replaced. The error names a piece that does not occur exactly once.
    pub fn edited(&self, edits: &[Edit]) -> Result<String, String> {
        let mut text = self.solution();
        for (from, to) in edits {
            match text.matches(from).count() {
                1 => text = text.replacen(from, to, 1),
                count => {
                    return Err(format!("{}: `{from}` stands in the solution {count} times", self.id));
                }
            }
        }
        Ok(text)
    }

    /// The choices in the page. The error names the edits that conflict.
    pub fn choices(&self) -> Result<Choices, String> {
        let places: Vec<Vec<Vec<Edit>>> = self
            .places
            .iter()
            .map(|(_, options)| options.iter().map(|edits| edits.to_vec()).collect())
            .collect();
        Choices::new(&self.solution(), &places).map_err(|what| format!("{}: {what}", self.id))
    }

    /// The runs with these seeds: every machine with every size.
    pub fn cases(&self, seeds: &[u64]) -> Vec<Case> {
        Case::all(self.gpus, seeds, self.sizes)
    }

    /// Runs the solution in each of these cases.
    pub fn right(&self, cases: &[Case]) -> Vec<Seen> {
        cases.iter().map(self.observe).collect()
    }

    /// Judges runs against the solution's runs in the same cases.
    pub fn judge(&self, cases: &[Case], seen: &[Seen], right: &[Seen]) -> Verdict {
        for (case, (seen, right)) in cases.iter().zip(seen.iter().zip(right)) {
            if let Err(diagnosis) = (self.judge)(case, seen, right) {
                let (diagnosis, case) = (Box::new(diagnosis), Some(case.clone()));
                return Verdict::Failed { diagnosis, case };
            }
        }
        Verdict::Passed { runs: seen.len() }
    }
}
