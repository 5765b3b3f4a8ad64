//! A program: compiled once, run any number of times.

use super::calls::Host;
use super::device::Device;
use super::untimed::Untimed;
use super::{cuda, errors, functions};
use crate::ir;
use crate::lower::{Lower, Lowered};
use crate::run::checks::{Checks, Finding, Findings, Severity, Site};
use crate::run::counters::Counters;
use crate::run::interpreter::Stop;
use crate::run::launch::{HOST_BUDGET, LAUNCH_BUDGET, MOST_TIME, Machine, Shape};
use crate::run::memory::Owner;
use crate::run::recorder::Recorder;
use crate::run::recording::{Recording, Wanted};
use crate::source::preprocessor::Includes;
use crate::source::{Errors, Files};
use crate::syntax::sides::both_sides;
use std::time::{Duration, Instant};

pub struct Program {
    pub files: Files,
    pub main: Option<ir::Program>,
    pub kernels: Vec<ir::Program>,
    pub globals: Vec<ir::Global>,
    /// Code that is valid, and probably not meant like this.
    pub warnings: Errors,
}

/// The errors of a program that does not compile.
#[derive(Debug)]
pub struct Rejected {
    pub files: Files,
    pub errors: Errors,
}

impl Rejected {
    pub fn text(&self) -> String {
        self.errors.render(&self.files)
    }
}

#[derive(Debug)]
pub struct Run {
    pub output: String,
    pub findings: Findings,
    pub outcome: Outcome,
    /// The CUDA error that the context ended with, and the first call that returned it.
    pub error: Option<(u32, &'static str)>,
    pub launches: u64,
    pub counters: Vec<Counters>,
    /// The steps of a warp, if the run recorded them and launched the wanted kernel.
    pub recording: Option<Recording>,
    /// Bytes and number of the allocations that were never freed.
    pub leaked: (u64, u64),
    /// Whether the program has read the time between events.
    pub reads_time: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `main` returned, or called `exit`.
    Exit(i32),
    Fault,
}

impl Program {
    /// Compiles a program. `includes` finds the files of `#include "…"`. The errors come as one text.
    pub fn compile(name: &str, text: &str, includes: Includes<'_>) -> Result<Program, String> {
        Program::checked(name, text, includes).map_err(|rejected| rejected.text())
    }

    /// As [`Program::compile`], with the errors as a list.
    pub fn checked(name: &str, text: &str, includes: Includes<'_>) -> Result<Program, Rejected> {
        let mut files = Files::default();
        match Program::compiled(&mut files, name, text, includes) {
            Ok(lowered) => Ok(Program {
                main: lowered.main,
                kernels: lowered.kernels,
                globals: lowered.globals,
                warnings: lowered.warnings,
                files,
            }),
            Err(errors) => Err(Rejected { files, errors }),
        }
    }

    fn compiled(
        files: &mut Files,
        name: &str,
        text: &str,
        includes: Includes<'_>,
    ) -> Result<Lowered, Errors> {
        let tree = both_sides(files, name, text, includes)?;
        Lower::new(&tree).lower()
    }

    pub fn machine(&self, checks: Checks) -> Machine {
        let mut machine = Machine::new(checks);
        for global in &self.globals {
            machine.heap.place_global(global);
        }
        machine
    }

    /// Finds a kernel by its name, without parameters or template arguments.
    pub fn kernel(&self, name: &str) -> Option<(u32, &ir::Program)> {
        let at = self.kernels.iter().position(|kernel| kernel.name.split(['(', '<']).next() == Some(name))?;
        Some((at as u32, &self.kernels[at]))
    }

    pub fn run(&self, checks: Checks) -> Option<Run> {
        self.run_within(checks, LAUNCH_BUDGET)
    }

    /// As [`Program::run`], with a maximum number of warp instructions for each launch, and ten times as many for `main`.
    pub fn run_within(&self, checks: Checks, budget: u64) -> Option<Run> {
        self.run_limited(checks, budget, MOST_TIME)
    }

    /// As [`Program::run_within`], with a maximum run time.
    pub fn run_limited(&self, checks: Checks, budget: u64, most_time: Duration) -> Option<Run> {
        let mut machine = self.machine(checks);
        (machine.budget, machine.host_budget) = (budget, budget.saturating_mul(HOST_BUDGET / LAUNCH_BUDGET));
        self.run_on(machine, most_time)
    }

    /// Runs `main` and counts the kernels' use of the hardware. Only memory is checked, since that does not affect
    /// the counters.
    pub fn count(&self) -> Option<Run> {
        self.count_sample(None)
    }

    /// As [`Program::count`], with at most `sample` blocks of each launch, spread over its grid. The program ends where
    /// the host would copy results.
    pub fn count_sample(&self, sample: Option<u64>) -> Option<Run> {
        let mut machine = self.machine(Checks::MEMORY);
        machine.counters = Some(Vec::new());
        machine.sample = sample.map(|most| most.max(1));
        self.run_on(machine, MOST_TIME)
    }

    /// Runs `main` and records the steps of a warp.
    pub fn record(&self, wanted: Wanted) -> Option<Run> {
        self.run_on(self.machine_to_record(wanted), MOST_TIME)
    }

    pub fn machine_to_record(&self, wanted: Wanted) -> Machine {
        // Shared memory tracks unwritten bytes only if they are checked.
        let mut machine = self.machine(Checks { init: true, sync: true, ..Checks::MEMORY });
        machine.recorder = Some(Box::new(Recorder::new(wanted)));
        machine
    }

    /// As [`Program::run`], on a machine from [`Program::machine`].
    pub fn run_on(&self, machine: Machine, most_time: Duration) -> Option<Run> {
        self.run_with(machine, most_time, Box::new(Untimed::default()))
    }

    /// As [`Program::run_on`], with a device. If it is a real one, only host code is checked.
    pub fn run_with(
        &self,
        mut machine: Machine,
        most_time: Duration,
        device: Box<dyn Device + '_>,
    ) -> Option<Run> {
        let main = self.main.as_ref()?;
        let checks = machine.checks();
        let mut host = Host::new(&self.kernels, &self.globals, device);
        let is_timed = |op: &ir::Op| match op {
            ir::Op::Host { function, .. } => cuda::TIMED.contains(&functions::NAMES[*function as usize].0),
            _ => false,
        };
        host.is_timed = main.ops.iter().any(is_timed);
        // A web page has no clock; the page ends a run that takes too long.
        machine.began = if cfg!(target_family = "wasm") { None } else { Some(Instant::now()) };
        machine.most_time = most_time;
        let shape = Shape { grid: [1, 1, 1], block: [1, 1, 1], dynamic_shared: 0 };
        let result = machine.run(main, u32::MAX, shape, &[], Some(&mut host));
        let outcome = match result {
            Ok(()) => Outcome::Exit(0),
            Err(Stop::Exit(code)) => Outcome::Exit(code),
            Err(_) => Outcome::Fault,
        };
        // After a fault, nothing can be freed.
        let mut leaked = (0, 0);
        if checks.leaks && host.sticky == 0 && outcome != Outcome::Fault {
            leaked = leaks(&mut machine);
        }
        let error = host.fatal_call.or((host.sticky != 0).then_some((host.sticky, "cudaDeviceSynchronize")));
        let mut counters = machine.counters.unwrap_or_default();
        counters.sort_by_key(|of| of.kernel);
        let recording = machine.recorder.and_then(|recorder| recorder.recording());
        Some(Run {
            output: machine.output,
            findings: machine.findings,
            outcome,
            error,
            launches: host.launches,
            leaked,
            counters,
            recording,
            reads_time: host.reads_time,
        })
    }
}

/// Returns the bytes and the number of device allocations that were never freed.
fn leaks(machine: &mut Machine) -> (u64, u64) {
    let left: Vec<_> = machine
        .heap
        .allocations
        .iter()
        .filter(|known| matches!(known.owner, Owner::Device | Owner::Managed) && !known.is_freed)
        .map(|known| (known.size, known.offset, known.name.clone(), known.span))
        .collect();
    let sum = left.iter().map(|(size, ..)| size).sum();
    let count = left.len() as u64;
    for (size, offset, name, span) in left {
        machine.findings.add(Finding {
            check: "leakcheck",
            severity: Severity::Error,
            title: format!("Leaked {} at {:#x}", crate::run::amounts::bytes(size), ir::space::HEAP + offset),
            function: "main".to_owned(),
            sites: vec![Site { text: format!("allocated by {name} at"), span: Some(span), thread: None }],
            notes: Vec::new(),
            count: 1,
            is_fatal: false,
        });
    }
    (sum, count)
}

impl Run {
    /// 0: no findings; 1: errors, races, or a nonzero exit code of `main`.
    pub fn exit_code(&self) -> i32 {
        let counts = |finding: &Finding| match finding.check {
            "racecheck" => finding.severity >= Severity::Warning,
            _ => finding.severity == Severity::Error,
        };
        let has_errors = self.findings.all.iter().any(counts);
        match self.outcome {
            Outcome::Fault => 1,
            Outcome::Exit(code) if code != 0 => 1,
            _ => i32::from(has_errors || self.error.is_some()),
        }
    }

    pub fn error_text(&self) -> Option<String> {
        let (code, call) = self.error?;
        Some(errors::report(code, call))
    }
}
