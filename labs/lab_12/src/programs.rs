//! A program in several settings.

use std::cell::RefCell;

use cuda_emulator::run::counters::Counters;
use cuda_emulator::run::launch::MOST_TIME;
use cuda_emulator::{Checks, Files, Program, Rejected, Span};

/// The maximum number of warp instructions of a launch. A kernel that needs more counts as endless.
pub const BUDGET: u64 = 2_000_000;

/// Macros and their values: the size of a run, and its kind of input.
pub type Setting = Vec<(&'static str, f64)>;

/// Problem sizes. They are variables, so that a program is compiled once for all of them.
pub const SIZES: [&str; 6] = ["N", "ROWS", "COLUMNS", "M", "K", "GRID"];

/// Parses a setting such as `N=64 BLOCK=32`.
pub fn setting(text: &'static str) -> Setting {
    let pair =
        |text: &'static str| text.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
    text.split_whitespace().filter_map(pair).collect()
}

pub fn value(setting: &Setting, name: &str) -> f64 {
    setting.iter().find(|(known, _)| *known == name).map_or(1.0, |(_, value)| *value)
}

/// Defines a setting's macros. Every size is the name of a variable.
pub fn definitions<'a>(setting: impl Iterator<Item = &'a (&'static str, f64)>) -> String {
    let define = |(name, value): &(&'static str, f64)| match SIZES.contains(name) {
        true => format!("int {} = {value};\n#define {name} {}\n", variable(name), variable(name)),
        false => format!("#define {name} {value}\n"),
    };
    setting.map(define).collect()
}

fn variable(size: &str) -> String {
    format!("the_{}", size.to_lowercase())
}

pub struct Programs<'a> {
    compile: &'a dyn Fn(&Setting) -> Result<Program, Rejected>,
    known: RefCell<Vec<(Setting, Program)>>,
}

impl<'a> Programs<'a> {
    pub fn new(compile: &'a dyn Fn(&Setting) -> Result<Program, Rejected>) -> Programs<'a> {
        Programs { compile, known: RefCell::default() }
    }

    /// The warnings about the first program.
    pub fn warnings(&self) -> String {
        let known = self.known.borrow();
        known.first().map_or(String::new(), |(_, program)| program.warnings.render(&program.files))
    }

    /// Calls `with` on the program of a setting. Compiles it unless a compiled one differs in its sizes only.
    pub fn with<T>(&self, setting: &Setting, with: impl FnOnce(&Program) -> T) -> Result<T, Rejected> {
        let is_macro = |(name, _): &&(&str, f64)| !SIZES.contains(name);
        let is_same = |(known, _): &(Setting, Program)| {
            known.iter().filter(is_macro).eq(setting.iter().filter(is_macro))
                && known.iter().map(|(name, _)| name).eq(setting.iter().map(|(name, _)| name))
        };
        let mut all = self.known.borrow_mut();
        let at = match all.iter().position(is_same) {
            Some(at) => at,
            None => {
                all.push((setting.clone(), (self.compile)(setting)?));
                all.len() - 1
            }
        };
        let program = &mut all[at].1;
        for (name, value) in setting.iter().filter(|pair| !is_macro(pair)) {
            let global = program.globals.iter_mut().find(|global| global.name == variable(name));
            if let Some(init) = global.and_then(|global| global.init.as_mut()) {
                init.copy_from_slice(&(*value as i32).to_le_bytes());
            }
        }
        Ok(with(program))
    }
}

/// Keeps the errors, or the warnings, in the reader's file. If there are errors elsewhere only, they are kept.
pub fn of_reader(compiled: Result<Program, Rejected>, file: &str) -> Result<Program, Rejected> {
    let is_in_file = |files: &Files, span: Span| files.0[span.file as usize].name == file;
    match compiled {
        Ok(mut program) => {
            program.warnings.0.retain(|warning| is_in_file(&program.files, warning.span));
            Ok(program)
        }
        Err(mut rejected) => {
            let files = &rejected.files;
            if rejected.errors.0.iter().any(|error| is_in_file(files, error.span)) {
                rejected.errors.0.retain(|error| is_in_file(files, error.span));
            }
            Err(rejected)
        }
    }
}

pub fn counted(program: &Program) -> Option<Counters> {
    let mut machine = program.machine(Checks::MEMORY);
    machine.budget = BUDGET;
    machine.counters = Some(Vec::new());
    program.run_on(machine, MOST_TIME)?.counters.into_iter().next()
}
