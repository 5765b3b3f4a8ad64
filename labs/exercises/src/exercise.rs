//! The parts of an exercise.

use crate::case::Case;
use crate::choices::Choices;
use crate::seen::Seen;
use crate::verdict::{Diagnosis, Verdict};

/// An exercise: everything about it stands in one file, `labs/exercises/source/<id>.rs`.
///
/// The solution is Rust between two lines of that file. All that is almost the solution, the skeleton and what others get
/// wrong among it, is an edit of it, so that nothing can drift apart.
pub struct Exercise {
    /// The chapter's number and a few words: `02-batch`. It never changes: progress is kept under it.
    pub id: &'static str,
    pub title: &'static str,
    pub kind: Kind,
    /// The task, in Markdown.
    pub task: &'static str,
    /// From a nudge to nearly all.
    pub hints: [&'static str; 3],
    /// A sentence for the reader who has solved it.
    pub afterwards: &'static str,
    /// The text of the file that this stands in.
    pub source: &'static str,
    /// The functions of the student's file that the check calls, with what they look like.
    pub functions: &'static [(&'static str, &'static str)],
    /// Edits that make the solution the file a student begins with.
    pub skeleton: &'static [Edit],
    /// Other ways to write it that are right.
    pub styles: &'static [Style],
    pub wrong: &'static [Wrong],
    /// The choices in the page, if there are any.
    pub places: &'static [Place],
    /// The machines and sizes it is checked with.
    pub gpus: &'static [&'static str],
    pub sizes: &'static [usize],
    /// Runs the solution.
    pub observe: Observe,
    /// Compares what the student's code did with what the solution did.
    pub judge: Judge,
}

/// Runs code on the machine of a case, and says what it did.
pub type Observe = fn(&Case) -> Seen;

/// Compares what code did in a case with what the solution did.
pub type Judge = fn(&Case, &Seen, &Seen) -> Result<(), Diagnosis>;

/// The seeds of the runs on a student's computer. Others, which nobody has seen, decide on a grade.
pub const SEEDS: [u64; 3] = [1, 2, 3];

/// The kind of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The code has a mistake.
    Fix,
    /// A part of the code is missing.
    Write,
}

/// A piece of the solution, which stands in it once, and what stands there instead.
pub type Edit = (&'static str, &'static str);

/// The subject of a choice, and its options, each as edits of the solution. The code compiles with any choice elsewhere: every
/// combination is compiled for the page. One of them is the skeleton, and one the solution. An edit that several places have
/// is made where none of what is chosen can do without it: see [`Choices`].
pub type Place = (&'static str, &'static [&'static [Edit]]);

/// Another way to write the solution.
pub struct Style {
    pub name: &'static str,
    pub edits: &'static [Edit],
}

/// A mistake that people make.
pub struct Wrong {
    pub name: &'static str,
    /// The mistake, for the page: "The batch stays on the CPU."
    pub what: &'static str,
    pub edits: &'static [Edit],
    /// The id of the diagnosis that it gets.
    pub diagnosis: &'static str,
}

/// The lines of a source between which the student's file stands, in a module `solution`.
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

    /// Where all of it stands, from the root of the checkout.
    pub fn source(&self) -> String {
        format!("labs/exercises/source/{}", self.file())
    }

    /// The name of its module, `x02_batch`.
    pub fn module(&self) -> String {
        format!("x{}", self.id.replace('-', "_"))
    }

    /// Whether its source has a solution where it belongs.
    pub fn has_solution(&self) -> bool {
        self.source.split_once(BEGIN).is_some_and(|(_, rest)| rest.contains(END))
    }

    /// The student's file as it is when it is right.
    pub fn solution(&self) -> String {
        let (_, rest) = self.source.split_once(BEGIN).expect("tested");
        let (text, _) = rest.split_once(END).expect("tested");
        text.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect()
    }

    /// The student's file as it is at first.
    pub fn skeleton(&self) -> String {
        self.edited(self.skeleton).expect("tested")
    }

    /// The solution with some pieces replaced. The error says which piece does not stand in it once.
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

    /// The choices in the page. The error says which edits do not fit together.
    pub fn choices(&self) -> Result<Choices, String> {
        let places: Vec<Vec<Vec<Edit>>> = self
            .places
            .iter()
            .map(|(_, options)| options.iter().map(|edits| edits.to_vec()).collect())
            .collect();
        Choices::new(&self.solution(), &places).map_err(|what| format!("{}: {what}", self.id))
    }

    /// The runs with these seeds: each on every machine, with every size.
    pub fn cases(&self, seeds: &[u64]) -> Vec<Case> {
        Case::all(self.gpus, seeds, self.sizes)
    }

    /// The runs of the solution in each of these cases.
    pub fn right(&self, cases: &[Case]) -> Vec<Seen> {
        cases.iter().map(self.observe).collect()
    }

    /// The verdict on runs, each with the solution's run in the same case.
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
