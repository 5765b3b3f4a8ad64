//! The puzzles: their files, settings and gates.
//!
//! The reader edits a kernel. The host half of each puzzle (`driver.cu`) launches it and compares its output with a
//! plain loop's.

use cuda_emulator::{Program, Rejected};

use crate::judge::{Case, Judgement, Task, judge};
use crate::limits::Measure::*;
use crate::limits::{Limit, least, most};
use crate::programs::{Programs, Setting, definitions, of_reader, setting};

pub struct Puzzle {
    /// For example `05-shared`.
    pub name: &'static str,
    /// The starting file. Its first line is the title, the comment below it the task.
    pub start: &'static str,
    driver: &'static str,
    cases: &'static [Case],
    counted: &'static str,
    limits: &'static [Limit],
    whole_blocks: bool,
}

const HOST: &str = include_str!("../puzzles/host.h");

/// Headers that come before the macros, because they may use the macros' names.
const HEADERS: &str = "#include <cmath>\n#include <cstdio>\n#include <cstring>\n#include <vector>\n";

/// Macros for kernels. The others are defined after the kernel, which may use their names as well.
const OF_KERNEL: [&str; 2] = ["BLOCK", "BINS"];

pub type Includes<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Puzzle {
    pub fn title(&self) -> &'static str {
        let line = self.start.lines().next().unwrap_or("");
        line.split_once(": ").map_or(line, |(_, title)| title)
    }

    pub fn heading(&self) -> String {
        format!("Puzzle {}: {}", self.number(), self.title())
    }

    /// The two digits at the start of its name.
    pub fn number(&self) -> &'static str {
        &self.name[..2]
    }

    /// The gates that wrong elements fail.
    pub fn gates(&self) -> impl Iterator<Item = &'static str> {
        self.cases.iter().map(|case| case.gate)
    }

    fn host_half(&self) -> String {
        format!("puzzles/{}/driver.cu", self.name)
    }

    /// Compiles a kernel with the host half. `file` is a name from [`file_name`].
    pub fn program(
        &self,
        file: &str,
        text: &str,
        includes: Includes,
        setting: &Setting,
    ) -> Result<Program, Rejected> {
        let driver = self.host_half();
        let whole =
            with_macros(setting, &format!("#include \"{file}\"\n"), &format!("#include \"{driver}\"\n"));
        let compiled = Program::checked("puzzle", &whole, &|name| match name {
            "host.h" => Some(HOST.to_owned()),
            _ if name == driver => Some(self.driver.to_owned()),
            _ if name == file => Some(text.to_owned()),
            _ => includes(name),
        });
        of_reader(compiled, file)
    }

    /// The kernel and the host half as one program, for `nvcc`.
    pub fn whole(&self, text: &str) -> String {
        let driver = self.driver.replace("#include \"host.h\"\n", &HOST.replace("#pragma once\n", ""));
        let setting = setting(self.cases[0].setting);
        let defines = |of_kernel: bool| {
            let those = setting.iter().filter(move |(name, _)| OF_KERNEL.contains(name) == of_kernel);
            those.map(|(name, value)| format!("#define {name} {value}\n")).collect::<String>()
        };
        format!("{HEADERS}{}\n{}\n\n{}\n{driver}", defines(true), text.trim_end(), defines(false))
    }

    pub fn compile(&self, file: &str, text: &str) -> Result<Program, Rejected> {
        self.program(file, text, &|_| None, &setting(self.cases[0].setting))
    }

    pub fn judge(&self, file: &str, text: &str, includes: Includes) -> Judgement {
        judge(&Task {
            cases: self.cases,
            counted: self.counted,
            limits: self.limits,
            programs: Programs::new(&|setting| self.program(file, text, includes, setting)),
            whole_blocks: self.whole_blocks,
        })
    }
}

/// Joins a kernel and its host half, with the macros of a setting.
fn with_macros(setting: &Setting, kernel: &str, host_half: &str) -> String {
    let of = |of_kernel: bool| {
        definitions(setting.iter().filter(move |(name, _)| OF_KERNEL.contains(name) == of_kernel))
    };
    format!("{}{kernel}\n{HEADERS}{}{host_half}", of(true), of(false))
}

/// A file name that an `#include` accepts.
pub fn file_name(name: &str) -> String {
    let allowed = |c: char| match c {
        '\\' => '/',
        '"' => '_',
        c if c.is_control() => '_',
        c => c,
    };
    name.chars().map(allowed).collect()
}

/// Finds a puzzle by its number or its name, such as `05`, `shared` or `05-shared`.
pub fn find(name: &str) -> Result<&'static Puzzle, String> {
    let is_it = |puzzle: &&Puzzle| {
        puzzle.name == name
            || &puzzle.name[3..] == name
            || name.parse::<u32>().is_ok_and(|number| puzzle.number().parse() == Ok(number))
    };
    let names = || ALL.iter().map(|puzzle| puzzle.name).collect::<Vec<_>>().join(", ");
    ALL.iter().find(is_it).ok_or_else(|| format!("unknown puzzle `{name}`: the puzzles are {}", names()))
}

macro_rules! puzzle {
    ($name:literal, [$($gate:literal: $setting:literal),+ $(,)?], $counted:literal, $limits:expr) => {
        Puzzle {
            name: $name,
            start: include_str!(concat!("../puzzles/", $name, "/start.cu")),
            driver: include_str!(concat!("../puzzles/", $name, "/driver.cu")),
            cases: &[$(Case { gate: $gate, setting: $setting }),+],
            counted: $counted,
            limits: &$limits,
            whole_blocks: false,
        }
    };
}

pub const ALL: &[Puzzle] = &[
    Puzzle {
        whole_blocks: true,
        ..puzzle!(
            "01-map",
            [
                "wrong elements": "N=64 BLOCK=64",
                "wrong elements, several blocks": "N=256 BLOCK=64",
                "wrong elements, other block sizes": "N=96 BLOCK=32",
                "wrong elements, fractions": "N=64 BLOCK=64 SCALE=0.5",
            ],
            "N=1024 BLOCK=128",
            [most(Sectors, 4.0), least(Lanes, 24.0)]
        )
    },
    puzzle!(
        "02-guard",
        [
            "wrong elements": "N=256 BLOCK=64",
            "wrong elements, ragged end": "N=250 BLOCK=64",
            "wrong elements, ragged end": "N=5 BLOCK=64",
            "wrong elements, other block sizes": "N=250 BLOCK=96",
        ],
        "N=1024 BLOCK=128",
        [most(Sectors, 4.0), least(Lanes, 24.0)]
    ),
    puzzle!(
        "03-two-dimensions",
        [
            "wrong elements": "ROWS=32 COLUMNS=32",
            "wrong elements, rectangles": "ROWS=20 COLUMNS=50",
            "wrong elements, rectangles": "ROWS=50 COLUMNS=20",
            "wrong elements, rectangles": "ROWS=1 COLUMNS=17",
        ],
        "ROWS=64 COLUMNS=64",
        [most(Sectors, 4.0), least(Lanes, 24.0)]
    ),
    puzzle!(
        "04-broadcast",
        [
            "wrong elements": "ROWS=32 COLUMNS=32",
            "wrong elements, rectangles": "ROWS=20 COLUMNS=50",
            "wrong elements, rectangles": "ROWS=50 COLUMNS=20",
            "wrong elements, fractions": "ROWS=16 COLUMNS=16 SCALE=0.5",
        ],
        "ROWS=64 COLUMNS=64",
        [most(Loads, 256.0), most(StoreSectors, 4.0), least(Lanes, 24.0)]
    ),
    puzzle!(
        "05-shared",
        [
            "wrong elements": "N=128 BLOCK=64",
            "wrong elements, ragged end": "N=100 BLOCK=64",
            "wrong elements, other block sizes": "N=250 BLOCK=128",
            "wrong elements, other block sizes": "N=100 BLOCK=32",
        ],
        "N=256 BLOCK=64",
        [most(Loads, 8.0), most(Barriers, 8.0), least(Lanes, 24.0)]
    ),
    puzzle!(
        "06-stencil",
        [
            "wrong elements": "N=64 BLOCK=64",
            "wrong elements, several blocks": "N=256 BLOCK=64",
            "wrong elements, ragged end": "N=200 BLOCK=64",
            "wrong elements, ragged end": "N=3 BLOCK=64",
            "wrong elements, other block sizes": "N=200 BLOCK=128",
            "wrong elements, other block sizes": "N=200 BLOCK=32",
        ],
        "N=512 BLOCK=128",
        [most(Loads, 24.0), least(Lanes, 24.0)]
    ),
    puzzle!(
        "07-pooling",
        [
            "wrong elements": "ROWS=32 COLUMNS=64",
            "wrong elements, negative numbers": "ROWS=32 COLUMNS=32 SHIFT=-100",
            "wrong elements, odd sizes": "ROWS=41 COLUMNS=51",
            "wrong elements, odd sizes": "ROWS=3 COLUMNS=70",
        ],
        "ROWS=64 COLUMNS=64",
        [most(Sectors, 8.0), least(Lanes, 24.0)]
    ),
    puzzle!(
        "08-dot",
        [
            "wrong elements": "N=64 BLOCK=64",
            "wrong elements, several blocks": "N=256 BLOCK=64",
            "wrong elements, ragged end": "N=200 BLOCK=64",
            "wrong elements, other block sizes": "N=300 BLOCK=128",
            "wrong elements, other block sizes": "N=100 BLOCK=32",
        ],
        "N=512 BLOCK=128",
        [most(Loads, 32.0), most(Atomics, 4.0)]
    ),
    puzzle!(
        "09-reduction",
        [
            "wrong elements": "N=256 BLOCK=64",
            "wrong elements, ragged end": "N=200 BLOCK=64",
            "wrong elements, other block sizes": "N=300 BLOCK=128",
            "wrong elements, other block sizes": "N=100 BLOCK=32",
        ],
        "N=1024 BLOCK=256",
        [most(DivergentBranches, 40.0), most(Conflicts, 0.0), most(Barriers, 288.0), least(Lanes, 16.0)]
    ),
    puzzle!(
        "10-scan",
        [
            "wrong elements": "N=128 BLOCK=64",
            "wrong elements, ragged end": "N=100 BLOCK=64",
            "wrong elements, other block sizes": "N=300 BLOCK=128",
            "wrong elements, other block sizes": "N=100 BLOCK=32",
        ],
        "N=256 BLOCK=128",
        [most(Loads, 8.0), most(SharedLoads, 280.0), most(Barriers, 120.0), least(Lanes, 12.0)]
    ),
    puzzle!(
        "11-histogram",
        [
            "wrong elements": "N=100 BLOCK=64 GRID=2 BINS=64",
            "wrong elements, more elements than threads": "N=500 BLOCK=64 GRID=2 BINS=64",
            "wrong elements, more bins than threads": "N=100 BLOCK=32 GRID=4 BINS=64",
            "wrong elements, more bins than threads": "N=300 BLOCK=64 GRID=2 BINS=100",
        ],
        "N=1024 BLOCK=128 GRID=2 BINS=64",
        [most(Sectors, 4.0), most(Atomics, 4.0)]
    ),
    puzzle!(
        "12-transpose",
        [
            "wrong elements": "ROWS=32 COLUMNS=32",
            "wrong elements, several tiles": "ROWS=64 COLUMNS=64",
            "wrong elements, rectangles": "ROWS=40 COLUMNS=70",
            "wrong elements, rectangles": "ROWS=70 COLUMNS=5",
        ],
        "ROWS=64 COLUMNS=64",
        [most(LoadSectors, 4.0), most(StoreSectors, 4.0), most(Conflicts, 0.0)]
    ),
    puzzle!(
        "13-softmax",
        [
            "wrong elements": "ROWS=1 COLUMNS=64 BLOCK=64",
            "wrong elements, several rows": "ROWS=3 COLUMNS=64 BLOCK=64",
            "wrong elements, ragged end": "ROWS=2 COLUMNS=40 BLOCK=64",
            "wrong elements, more columns than threads": "ROWS=2 COLUMNS=150 BLOCK=64",
            "wrong elements, other block sizes": "ROWS=2 COLUMNS=100 BLOCK=128",
            "wrong elements, large numbers": "ROWS=1 COLUMNS=64 BLOCK=64 SHIFT=200",
            "wrong elements, very negative numbers": "ROWS=1 COLUMNS=64 BLOCK=64 SHIFT=-200",
        ],
        "ROWS=2 COLUMNS=256 BLOCK=128",
        [most(Loads, 48.0), most(Sectors, 4.0), least(Lanes, 16.0)]
    ),
    puzzle!(
        "14-matmul-tile",
        [
            "wrong elements": "M=16 N=16 K=16",
            "wrong elements, several tiles": "M=16 N=32 K=32",
            "wrong elements, ragged end": "M=18 N=20 K=17",
            "wrong elements, ragged end": "M=3 N=5 K=2",
        ],
        "M=32 N=32 K=32",
        [most(Loads, 128.0), most(Sectors, 4.0), most(Conflicts, 0.0)]
    ),
];
