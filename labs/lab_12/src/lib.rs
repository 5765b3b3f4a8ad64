//! Lab 12: takes a program in CUDA C++ and returns a report, for the terminal (`main.rs`) or a web page (`module.rs`).

#[cfg(not(target_family = "wasm"))]
mod activation;
pub mod advice;
pub mod card;
pub mod cases;
#[cfg(not(target_family = "wasm"))]
pub mod commands;
#[cfg(not(target_family = "wasm"))]
mod compare;
#[cfg(not(target_family = "wasm"))]
pub mod device_half;
pub mod faults;
pub mod gpu;
mod instructions;
#[cfg(not(target_family = "wasm"))]
mod interpreter;
pub mod judge;
pub mod ladder;
#[cfg(not(target_family = "wasm"))]
mod launch;
pub mod limits;
pub mod model;
#[cfg(target_family = "wasm")]
mod module;
pub mod programs;
pub mod puzzles;
#[cfg(not(target_family = "wasm"))]
pub mod real;
mod registers;
pub mod smallest;
pub mod step;
#[cfg(not(target_family = "wasm"))]
pub mod terminal;
#[cfg(not(target_family = "wasm"))]
pub mod train;
pub mod verdict;

use cuda_emulator::ir::Program as Kernel;
use cuda_emulator::report::counters::Known;
use cuda_emulator::run::counters::Counters;
use cuda_emulator::{Checks, Program, Rejected, report};
use todevice_figures::profile::Profile;

pub const EXAMPLE: &str = include_str!("../examples/vector_add.cu");

#[derive(Clone, Copy)]
pub struct Wanted {
    pub checks: Checks,
    /// Count instead of checking.
    pub counters: bool,
    /// The number of registers of a thread, if known.
    pub registers: Option<u32>,
    /// The card that occupancy, roof and time are modelled on.
    pub card: &'static Profile,
    pub json: bool,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted {
            checks: Checks { race: true, ..Checks::MEMORY },
            counters: false,
            registers: None,
            card: card::DEFAULT,
            json: false,
        }
    }
}

/// The result of a run: the program's output and the report, or the errors that prevent it; and the exit code.
pub struct Response {
    pub output: String,
    pub errors: String,
    pub code: u8,
}

/// Compiles, runs and checks a program. `includes` finds the files of `#include "…"`.
pub fn run(name: &str, text: &str, includes: &dyn Fn(&str) -> Option<String>, wanted: Wanted) -> Response {
    let refused = |errors| Response { output: String::new(), errors, code: 2 };
    let program = match Program::checked(name, text, includes) {
        Ok(program) => program,
        Err(rejected) if wanted.json => {
            return Response { output: report::json::rejected(&rejected), errors: String::new(), code: 2 };
        }
        Err(rejected) => return refused(rejected.text()),
    };
    let checks = if wanted.counters { Checks::MEMORY } else { wanted.checks };
    let registers = |kernel: &Kernel| wanted.registers.or_else(|| registers::known(&program.files, kernel));
    let mut machine = program.machine(checks);
    machine.counters = wanted.counters.then(Vec::new);
    let Some(run) = gpu::simulated::run(&program, machine, wanted.card, &registers) else {
        return refused(without_main(name));
    };
    let time = |counters: &Counters, kernel: &Kernel| {
        let modelled = model::time(wanted.card, counters, kernel, registers(kernel))?;
        Some((modelled.microseconds, modelled.bound.to_owned()))
    };
    let known = Known { card: &card::card(wanted.card), registers: &registers, time: &time };
    let output = match (wanted.json, wanted.counters) {
        (true, false) => report::json::json(&program.files, &run),
        (true, true) => {
            let counters = report::counters::json(&run.counters, &program.kernels, &known);
            with_field(&report::json::json(&program.files, &run), "counters", &counters)
        }
        (false, true) if run.exit_code() == 0 => {
            let table = report::counters::text(&run.counters, &program.kernels, &known);
            format!("{}\n{table}", run.output)
        }
        // Findings take precedence: the counts of a kernel that ended early are incomplete.
        (false, _) => format!("{}{}", run.output, report::text(&program.files, &run, checks)),
    };
    let output = with_warnings(output, &program, wanted.json);
    let output = if run.reads_time { with_times(output, wanted) } else { output };
    Response { output, errors: String::new(), code: run.exit_code() as u8 }
}

/// Compiles a program without running it. It needs no `main`. The output has its errors as JSON.
pub fn compile(name: &str, text: &str) -> Response {
    errors(Program::checked(name, text, &|_| None))
}

/// The errors of a compilation, or its warnings, as JSON.
pub fn errors(compiled: Result<Program, Rejected>) -> Response {
    let (output, code) = match compiled {
        Err(rejected) => (report::json::rejected(&rejected), 2),
        Ok(program) => (report::json::accepted(&program), 0),
    };
    Response { output, errors: String::new(), code }
}

/// A JSON object with one more field.
fn with_field(object: &str, name: &str, value: &str) -> String {
    let object = object.trim_end();
    format!("{},\"{name}\":{value}}}\n", object.strip_suffix('}').unwrap_or(object))
}

/// A report, with the warnings of the compiler if there are any.
fn with_warnings(report: String, program: &Program, json: bool) -> String {
    match program.warnings.0.is_empty() {
        true => report,
        false if json => {
            let warnings = report::json::list(&program.files, &program.warnings);
            with_field(&report, "warnings", &format!("[{warnings}]"))
        }
        false => format!("{}\n{report}", program.warnings.render(&program.files)),
    }
}

/// A report, with a note that the times between events in it are modelled: no clock has measured them.
fn with_times(report: String, wanted: Wanted) -> String {
    match wanted.json {
        true => with_field(&report, "times", "\"modelled\""),
        false => {
            let card = wanted.card.name;
            format!("{report}Times of cudaEventElapsedTime are modelled for a {card}, not measured.\n")
        }
    }
}

fn without_main(name: &str) -> String {
    format!("error: {name} has no `main`: host code has to launch its kernels\n")
}

pub fn is_json(format: &str) -> Result<bool, String> {
    match format {
        "text" => Ok(false),
        "json" => Ok(true),
        other => Err(format!("unknown format `{other}`: expected text or json")),
    }
}

/// The table of a ladder on one card, or its times on several.
pub fn ladder(name: &str, cards: &[&'static Profile], json: bool) -> Response {
    let tables = ladder::find(name).and_then(|ladder| {
        let counted = ladder.count()?;
        cards.iter().map(|card| ladder.table(&counted, card)).collect::<Result<Vec<_>, _>>()
    });
    match tables {
        Ok(tables) => {
            let output = match &tables[..] {
                tables if json => tables.iter().map(ladder::Table::json).collect(),
                [table] => table.text(),
                tables => ladder::on_every_card(tables),
            };
            Response { output, errors: String::new(), code: 0 }
        }
        Err(trouble) => Response { output: String::new(), errors: format!("error: {trouble}\n"), code: 2 },
    }
}
