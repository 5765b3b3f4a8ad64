//! Lab 12: takes a program in CUDA C++ and returns a report. The terminal (`main.rs`) and a web page (`module.rs`)
//! show it.

pub mod cases;
#[cfg(not(target_family = "wasm"))]
pub mod commands;
pub mod faults;
pub mod judge;
pub mod limits;
#[cfg(target_family = "wasm")]
mod module;
pub mod programs;
pub mod puzzles;
mod registers;
pub mod smallest;
pub mod verdict;

use cuda_emulator::ir::Program as Kernel;
use cuda_emulator::{Checks, Program, report};

/// The program that runs if no file is given.
pub const EXAMPLE: &str = include_str!("../examples/vector_add.cu");

/// Options of a run and its report.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub checks: Checks,
    /// Count instead of checking.
    pub counters: bool,
    /// The number of registers of a thread, if known.
    pub registers: Option<u32>,
    pub json: bool,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted {
            checks: Checks { race: true, ..Checks::MEMORY },
            counters: false,
            registers: None,
            json: false,
        }
    }
}

/// The result of a run: the program's output and the report, or the errors that prevent it; and the exit code.
pub struct Said {
    pub output: String,
    pub errors: String,
    pub code: u8,
}

/// Compiles, runs and checks a program. `includes` finds the files of `#include "…"`.
pub fn run(name: &str, text: &str, includes: &dyn Fn(&str) -> Option<String>, wanted: Wanted) -> Said {
    let refused = |errors| Said { output: String::new(), errors, code: 2 };
    let program = match Program::checked(name, text, includes) {
        Ok(program) => program,
        Err(rejected) if wanted.json => {
            return Said { output: report::json::rejected(&rejected), errors: String::new(), code: 2 };
        }
        Err(rejected) => return refused(rejected.text()),
    };
    let checks = if wanted.counters { Checks::MEMORY } else { wanted.checks };
    let run = if wanted.counters { program.count() } else { program.run(checks) };
    let Some(run) = run else {
        return refused(format!("error: {name} has no `main`: host code has to launch its kernels\n"));
    };
    let registers = |kernel: &Kernel| wanted.registers.or_else(|| registers::known(&program.files, kernel));
    let output = match (wanted.json, wanted.counters) {
        (true, false) => report::json::json(&program.files, &run),
        (true, true) => {
            let json = report::json::json(&program.files, &run);
            let counters = report::counters::json(&run.counters, &program.kernels, &registers);
            format!("{},\"counters\":{counters}}}\n", json.trim_end().strip_suffix('}').unwrap_or(&json))
        }
        (false, true) if run.exit_code() == 0 => {
            let table = report::counters::text(&run.counters, &program.kernels, &registers);
            format!("{}\n{table}", run.output)
        }
        // Findings take precedence: the counts of a kernel that ended early are incomplete.
        (false, _) => format!("{}{}", run.output, report::text(&program.files, &run, checks)),
    };
    Said { output, errors: String::new(), code: run.exit_code() as u8 }
}

/// Parses `text` or `json`.
pub fn is_json(format: &str) -> Result<bool, String> {
    match format {
        "text" => Ok(false),
        "json" => Ok(true),
        other => Err(format!("there is no format `{other}`: there are text and json")),
    }
}
