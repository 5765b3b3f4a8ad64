//! Runs random programs through this crate and through PyTorch, and reports differences.
//!
//! `cargo run --release --bin differ -- --python PATH` with a Python that has PyTorch 2.11. Each program runs on the
//! CPU and on a simulated T4, and in PyTorch on the CPU. A difference is printed as the shortest program that still
//! shows it, in Rust and in Python. `--record FILE` stores the programs that agree, with PyTorch's answers, for the
//! test that runs them without Python.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

use course_tests::differ::compare::{Against, Difference, difference};
use course_tests::differ::pytorch::{PyTorch, read};
use course_tests::differ::{Argument, Dialect, Program, generate, known, run};
use labs::stdio::{to_stderr, to_stdout};
use labs::{files, wrong};
use serde_json::{Value as Json, json};

const USAGE: &str = "usage: differ --python PATH [--programs N] [--seed N] [--record FILE]";

/// The maximum size of a file of programs.
const LARGEST_RECORD: usize = 390_000;

struct Options {
    python: String,
    programs: u64,
    seed: u64,
    record: Option<String>,
}

fn main() -> ExitCode {
    match parse().and_then(|options| compare(&options)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            to_stderr(&wrong(message).message);
            ExitCode::from(2)
        }
    }
}

fn parse() -> Result<Options, String> {
    let mut options = Options { python: String::new(), programs: 200, seed: 1, record: None };
    let arguments = std::env::args_os().skip(1);
    let mut arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or_else(|| USAGE.to_string())?;
        let number = || value.parse().map_err(|_| format!("{flag} takes a number, not '{value}'"));
        match flag.as_str() {
            "--python" => options.python = value,
            "--programs" => options.programs = number()?,
            "--seed" => options.seed = number()?,
            "--record" => options.record = Some(value),
            _ => return Err(format!("unknown flag '{flag}'; {USAGE}")),
        }
    }
    if options.python.is_empty() { Err(USAGE.to_string()) } else { Ok(options) }
}

/// Returns the number of kinds of differences.
fn compare(options: &Options) -> Result<usize, String> {
    let mut pytorch = PyTorch::start(&options.python)?;
    let mut meant: BTreeMap<&str, usize> = BTreeMap::new();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut record = Record::default();
    let mut steps = 0;
    for i in 0..options.programs {
        let program = generate::program(options.seed.wrapping_mul(1 << 32).wrapping_add(i));
        steps += program.steps.len();
        let outcome = differs(&program, &mut pytorch)?;
        match &outcome.difference {
            None => record.add(&program, &outcome.answer),
            Some((_, difference)) if known::reason(difference).is_some() => {
                *meant.entry(known::reason(difference).unwrap_or_default()).or_default() += 1;
            }
            Some((_, first)) => {
                let kind = kind(first);
                let seen = kinds.entry(kind.clone()).or_default();
                *seen += 1;
                if *seen == 1 {
                    to_stdout(&shortest(program, &kind, &mut pytorch)?);
                }
            }
        }
    }
    to_stdout(&format!(
        "{} programs of {steps} steps, against PyTorch {}.\n",
        options.programs, pytorch.version
    ));
    for (reason, count) in &meant {
        to_stdout(&format!("{count:>6} differ, as they are meant to: {reason}\n"));
    }
    for (kind, count) in &kinds {
        to_stdout(&format!("{count:>6} differ: {kind}\n"));
    }
    if let Some(file) = &options.record {
        files::write(file.as_ref(), record.text(&pytorch.version).as_bytes())
            .map_err(|error| format!("{file}: {error}"))?;
        to_stdout(&format!("{} programs are kept in {file}.\n", record.lines.len()));
    }
    Ok(kinds.len())
}

struct Outcome {
    made: Vec<Option<usize>>,
    answer: Json,
    difference: Option<(Against, Difference)>,
}

fn differs(program: &Program, pytorch: &mut PyTorch) -> Result<Outcome, String> {
    let answer = pytorch.answer(program)?;
    let ours = run::on_cpu(program);
    let from =
        |against, theirs: &_| difference(program, &ours, theirs, against).map(|found| (against, found));
    let difference = match from(Against::PyTorch, &read(&answer)?) {
        Some(found) => Some(found),
        None => from(Against::SimulatedGpu, &run::on_simulated_t4(program)),
    };
    Ok(Outcome { made: ours.made(), answer, difference })
}

/// A key for differences with the same cause.
fn kind(difference: &Difference) -> String {
    let Difference { operation, what, ours, theirs, .. } = difference;
    match *what {
        "values" | "strides" => format!("{what} of {operation}"),
        _ if what.starts_with("gradient") => format!("{what} of {operation}"),
        // The tensors created instead are irrelevant to the cause.
        _ => {
            let [ours, theirs] = [ours, theirs].map(|text| text.split(", but").next().unwrap_or(text));
            format!("{what} of {operation}: {ours}, not {theirs}")
        }
    }
}

/// The shortest program that differs in the same way, and the difference: leaves out every step that is not needed.
fn shortest(mut program: Program, kind_of_it: &str, pytorch: &mut PyTorch) -> Result<String, String> {
    let mut outcome = differs(&program, pytorch)?;
    for step in (0..program.steps.len()).rev() {
        let Some(shorter) = without(&program, step, &outcome.made) else { continue };
        let of_it = differs(&shorter, pytorch)?;
        if of_it.difference.as_ref().is_some_and(|(_, found)| kind(found) == kind_of_it) {
            (program, outcome) = (shorter, of_it);
        }
    }
    let Some((against, found)) = &outcome.difference else { return Ok(String::new()) };
    let theirs = if *against == Against::PyTorch { "PyTorch" } else { "sim:t4" };
    let mut text = String::new();
    let _ = writeln!(text, "{kind_of_it}: step {} of", found.step + 1);
    for dialect in [Dialect::Rust, Dialect::Python] {
        for line in program.written(dialect, &outcome.made).lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    let _ = writeln!(text, "  here    {}\n  {theirs} {}\n", found.ours, found.theirs);
    Ok(text)
}

/// The program without a step, unless others need its results.
fn without(program: &Program, step: usize, made: &[Option<usize>]) -> Option<Program> {
    let before: usize = made[..step].iter().flatten().sum();
    let count = made[step].unwrap_or(0);
    let mut steps = program.steps.clone();
    steps.remove(step);
    for step in &mut steps {
        for argument in &mut step.arguments {
            if let Argument::Tensor(variable) | Argument::Optional(Some(variable)) = argument {
                match *variable {
                    earlier if earlier < before => {}
                    its_own if its_own < before + count => return None,
                    later => *variable = later - count,
                }
            }
        }
    }
    Some(Program { steps })
}

/// Programs with PyTorch's answers.
#[derive(Default)]
struct Record {
    lines: Vec<String>,
    size: usize,
}

impl Record {
    fn add(&mut self, program: &Program, answer: &Json) {
        let line = json!({ "program": program.to_json(), "answer": answer }).to_string();
        if self.size + line.len() < LARGEST_RECORD {
            self.size += line.len() + 2;
            self.lines.push(line);
        }
    }

    fn text(&self, version: &str) -> String {
        format!("{{\"torch\":\"{version}\",\"programs\":[\n{}\n]}}\n", self.lines.join(",\n"))
    }
}
