//! Judges a kernel: runs it in several settings with all checks, compares its results, then counts its use of the
//! hardware.
//!
//! Every gate shows the reader's figure and its limit. The first fault ends the judgement, because it would cause
//! others.

use cuda_emulator::Rejected;

use crate::advice;
use crate::faults::{self, Fault, Kind};
use crate::limits::{Bound, Limit};
use crate::programs::{Programs, Setting, counted, setting};
use crate::smallest::{self, Smallest};

#[derive(Clone, Copy)]
pub struct Case {
    /// The gate that wrong elements fail, such as `wrong elements, fractions`.
    pub gate: &'static str,
    pub setting: &'static str,
}

/// A judgement's input: a program for each setting, and limits to its counters.
pub struct Task<'a> {
    pub cases: &'a [Case],
    /// The setting of the counted run.
    pub counted: &'static str,
    pub limits: &'a [Limit],
    pub programs: Programs<'a>,
    /// Whether N must be a multiple of BLOCK.
    pub whole_blocks: bool,
}

/// A figure of the reader's kernel, with its limit.
pub struct Gate {
    pub name: &'static str,
    /// `None` if a fault ended the judgement earlier.
    pub yours: Option<f64>,
    pub bound: Bound,
    /// A hint if the gate fails; empty if the report is enough.
    pub advice: &'static str,
}

impl Gate {
    pub fn passes(&self) -> Option<bool> {
        self.yours.map(|yours| self.bound.holds(yours))
    }
}

#[derive(Default)]
pub struct Judgement {
    pub gates: Vec<Gate>,
    pub fault: Option<(Fault, Setting)>,
    pub smallest: Option<Smallest>,
    /// A hint besides those of the gates.
    pub hint: Option<&'static str>,
    pub rejected: Option<Rejected>,
    /// The compiler's warnings.
    pub warnings: String,
}

impl Judgement {
    pub fn is_right(&self) -> bool {
        self.rejected.is_none() && self.gates.iter().all(|gate| gate.passes() == Some(true))
    }

    /// Whether all results are right, but a limit is exceeded.
    pub fn does_too_much(&self) -> bool {
        self.rejected.is_none() && self.fault.is_none() && !self.is_right()
    }

    pub fn advice(&self) -> Vec<&'static str> {
        let failed = self.gates.iter().filter(|gate| gate.passes() == Some(false));
        let mut advice: Vec<&str> =
            failed.map(|gate| gate.advice).filter(|advice| !advice.is_empty()).chain(self.hint).collect();
        advice.dedup();
        advice
    }

    pub fn failed(&self) -> Vec<&'static str> {
        self.gates.iter().filter(|gate| gate.passes() == Some(false)).map(|gate| gate.name).collect()
    }
}

pub fn judge(task: &Task) -> Judgement {
    let judgement = judged(task).unwrap_or_else(|rejected| Judgement {
        gates: gates(task, 0, None),
        rejected: Some(rejected),
        ..Judgement::default()
    });
    Judgement { warnings: task.programs.warnings(), ..judgement }
}

fn judged(task: &Task) -> Result<Judgement, Rejected> {
    for (number, case) in task.cases.iter().enumerate() {
        let setting = setting(case.setting);
        let Some(mut fault) = faults::find(&task.programs, &setting)? else { continue };
        // Unwritten elements are a gate of the first case only; in the others, they are just wrong.
        if fault.kind == Kind::Missing && number > 0 {
            (fault.kind, fault.count) = (Kind::Wrong, fault.wrong);
        }
        let gates = gates(task, number, Some(&fault));
        let smallest = smallest::find(task, &setting, fault.kind);
        return Ok(Judgement { gates, fault: Some((fault, setting)), smallest, ..Judgement::default() });
    }
    let mut gates = gates(task, task.cases.len(), None);
    let counted = task.programs.with(&setting(task.counted), |program| {
        let counters = counted(program)?;
        let kernel = &program.kernels[counters.kernel as usize];
        Some(task.limits.iter().map(|limit| limit.measure.of(&counters, kernel)).collect::<Vec<f64>>())
    })?;
    let figures = counted.unwrap_or_default();
    let of_limits = gates.len() - task.limits.len();
    for (gate, figure) in gates[of_limits..].iter_mut().zip(figures) {
        gate.yours = Some(figure);
    }
    Ok(Judgement { gates, ..Judgement::default() })
}

/// The gates after `cases` cases without a fault, and one with the given fault.
fn gates(task: &Task, cases: usize, fault: Option<&Fault>) -> Vec<Gate> {
    let mut gates: Vec<Gate> = Vec::new();
    let is_over = cases == task.cases.len();
    for kind in Kind::ALL {
        let found = fault.filter(|fault| fault.kind == kind);
        let was_reached = is_over || fault.is_some_and(|fault| kind < fault.kind);
        let yours = found.map(|fault| fault.count).or(was_reached.then_some(0.0));
        let gate = |name, yours| Gate {
            name,
            yours,
            bound: Bound::AtMost(0.0),
            advice: found.map_or("", |fault| advice::of(fault, name)),
        };
        match kind {
            Kind::Other if found.is_none() => {}
            Kind::Wrong => {
                for (number, case) in task.cases.iter().enumerate() {
                    let yours = match number {
                        _ if number < cases || is_over => Some(0.0),
                        _ if number == cases => yours,
                        _ => None,
                    };
                    // A gate of several cases shows the first figure above 0, or the last case's.
                    match gates.iter_mut().find(|gate| gate.name == case.gate) {
                        Some(gate) => gate.yours = gate.yours.filter(|yours| *yours > 0.0).or(yours),
                        None => gates.push(gate(case.gate, yours)),
                    }
                }
            }
            _ => gates.push(gate(kind.name(), yours)),
        }
    }
    gates.extend(task.limits.iter().map(|limit| Gate {
        name: limit.measure.name(),
        yours: None,
        bound: limit.bound,
        advice: limit.measure.advice(),
    }));
    gates
}
