//! Detective cases: programs with intermittent faults. The reader finds the mistake and corrects it.

use cuda_emulator::{Program, Rejected};

use crate::faults::Kind;
use crate::judge::{Case as Run, Judgement, Task, judge};
use crate::programs::{Programs, Setting, definitions, of_reader, setting};
use crate::puzzles::Includes;

const CEIL: &str =
    "In C++, `n / BLOCK` drops the fraction before `ceil` sees it: write `(n + BLOCK - 1) / BLOCK`.";

pub struct Case {
    pub name: &'static str,
    /// The program. Its first comment describes the symptom.
    pub source: &'static str,
    runs: &'static [Run],
    /// The mistake, and why it often goes unnoticed, for a reader who has found it.
    pub explanation: &'static str,
}

impl Case {
    pub fn heading(&self) -> String {
        format!("Case {}", self.name)
    }

    fn program(file: &str, text: &str, includes: Includes, setting: &Setting) -> Result<Program, Rejected> {
        let whole = format!("{}#include \"{file}\"\n", definitions(setting.iter()));
        let compiled = Program::checked("case", &whole, &|name| {
            if name == file { Some(text.to_owned()) } else { includes(name) }
        });
        of_reader(compiled, file)
    }

    /// Compiles a program for the first run, without running it.
    pub fn compile(&self, file: &str, text: &str) -> Result<Program, Rejected> {
        Case::program(file, text, &|_| None, &setting(self.runs[0].setting))
    }

    /// Judges a corrected program. `file` is a name from [`crate::puzzles::file_name`].
    pub fn judge(&self, file: &str, text: &str, includes: Includes) -> Judgement {
        let mut judgement = judge(&Task {
            cases: self.runs,
            counted: self.runs[0].setting,
            limits: &[],
            programs: Programs::new(&|setting| Case::program(file, text, includes, setting)),
            whole_blocks: false,
        });
        // A second try of those who know Python's division.
        let is_missing = judgement.fault.as_ref().is_some_and(|(fault, _)| fault.kind == Kind::Missing);
        if is_missing && text.contains("ceil") {
            judgement.hint = Some(CEIL);
        }
        judgement
    }
}

pub fn find(name: &str) -> Result<&'static Case, String> {
    let names = || ALL.iter().map(|case| case.name).collect::<Vec<_>>().join(", ");
    let found = ALL.iter().find(|case| case.name == name);
    found.ok_or_else(|| format!("unknown case `{name}`: the cases are {}", names()))
}

const fn run(setting: &'static str) -> Run {
    Run { gate: "wrong elements", setting }
}

macro_rules! case {
    ($name:literal, [$($setting:literal),+], $explanation:literal) => {
        Case {
            name: $name,
            source: include_str!(concat!("../cases/", $name, ".cu")),
            runs: &[$(run($setting)),+],
            explanation: $explanation,
        }
    };
}

pub const ALL: &[Case] = &[
    case!(
        "missing_barrier",
        ["N=1024 BLOCK=128", "N=300 BLOCK=64", "N=10 BLOCK=32"],
        "A thread read an element of the tile before the thread that writes it had come that far. On a card, the order changes from run to run."
    ),
    case!(
        "off_by_one",
        ["N=1000 BLOCK=128", "N=256 BLOCK=64", "N=1 BLOCK=32"],
        "The last thread read one element past the end, and then did not use it. That crashes only where no other memory of the program comes next."
    ),
    case!(
        "nobody_writes",
        ["N=1000 BLOCK=128", "N=256 BLOCK=64", "N=1 BLOCK=32"],
        "The division rounded down, so the last elements had no thread. Fresh memory is often 0, which can look like a result."
    ),
    case!(
        "right_by_luck",
        ["N=1000 BLOCK=128", "N=256 BLOCK=64", "N=1 BLOCK=32"],
        "The last block need not be the last to finish: blocks run in any order, and a barrier waits only for the threads of its own block."
    ),
    case!(
        "one_block_size",
        ["N=1000 BLOCK=256", "N=1000 BLOCK=512", "N=200 BLOCK=64", "N=1 BLOCK=32"],
        "The stride began at 128, half of one block size. With larger blocks the other threads' sums were never added; with smaller ones, threads read past the end."
    ),
];
