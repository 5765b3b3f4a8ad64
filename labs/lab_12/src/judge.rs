//! Judges a kernel: runs it in several settings with all checks, compares its results, and then counts its use of the
//! hardware.
//!
//! Every gate has the reader's figure next to its own. The first fault ends the judgement, because later figures would
//! follow from it.

use cuda_emulator::Rejected;

use crate::faults::{self, Fault, Kind};
use crate::limits::{Bound, Limit};
use crate::programs::{Programs, Setting, counted, setting};
use crate::smallest::{self, Smallest};

/// A run with all checks.
#[derive(Clone, Copy)]
pub struct Case {
    /// The gate that wrong elements fail, such as `wrong elements, fractions`.
    pub gate: &'static str,
    pub setting: &'static str,
}

/// Something to judge: a program for each setting, and limits to its counters.
pub struct Task<'a> {
    pub cases: &'a [Case],
    /// The setting of the run that is counted.
    pub counted: &'static str,
    pub limits: &'a [Limit],
    pub programs: Programs<'a>,
    /// Whether N must be a multiple of BLOCK.
    pub whole_blocks: bool,
}

/// A figure of the reader's kernel next to that of the puzzle.
pub struct Gate {
    pub name: &'static str,
    /// `None` if a fault ended the judgement before.
    pub yours: Option<f64>,
    pub bound: Bound,
    /// A hint if the gate fails; empty where the report is enough.
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
    /// The first fault, with its setting.
    pub fault: Option<(Fault, Setting)>,
    /// The smallest setting with that fault.
    pub smallest: Option<Smallest>,
    /// The errors of a program that does not compile.
    pub rejected: Option<Rejected>,
    /// The compiler's warnings.
    pub warnings: String,
}

impl Judgement {
    pub fn is_right(&self) -> bool {
        self.rejected.is_none() && self.gates.iter().all(|gate| gate.passes() == Some(true))
    }

    /// Whether all numbers are right, and only a limit is exceeded.
    pub fn does_too_much(&self) -> bool {
        self.rejected.is_none() && self.fault.is_none() && !self.is_right()
    }

    /// The hints of the gates that the kernel fails.
    pub fn advice(&self) -> Vec<&'static str> {
        let failed = self.gates.iter().filter(|gate| gate.passes() == Some(false));
        let mut advice: Vec<&str> =
            failed.map(|gate| gate.advice).filter(|advice| !advice.is_empty()).collect();
        advice.dedup();
        advice
    }

    /// The names of the gates that the kernel fails.
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
        // Whether nothing writes an element is a gate of the first case; in the others, its elements are just wrong.
        if fault.kind == Kind::Missing && number > 0 {
            fault.kind = Kind::Wrong;
        }
        let gates = gates(task, number, Some((fault.kind, fault.count)));
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

/// The gates after `cases` cases without a fault, and one with the given kind and count of faults.
fn gates(task: &Task, cases: usize, fault: Option<(Kind, f64)>) -> Vec<Gate> {
    let mut gates: Vec<Gate> = Vec::new();
    let is_over = cases == task.cases.len();
    for kind in Kind::ALL {
        let found = fault.filter(|(found, _)| *found == kind).map(|(_, count)| count);
        let was_reached = is_over || fault.is_some_and(|(found, _)| kind < found);
        let yours = found.or(was_reached.then_some(0.0));
        match kind {
            Kind::Other if found.is_none() => {}
            Kind::Wrong => {
                for (number, case) in task.cases.iter().enumerate() {
                    let yours = match number {
                        _ if number < cases || is_over => Some(0.0),
                        _ if number == cases => yours,
                        _ => None,
                    };
                    // A gate of several cases has the figure of the last one.
                    match gates.iter_mut().find(|gate| gate.name == case.gate) {
                        Some(gate) => gate.yours = gate.yours.filter(|yours| *yours > 0.0).or(yours),
                        None => gates.push(Gate {
                            name: case.gate,
                            yours,
                            bound: Bound::AtMost(0.0),
                            advice: kind.advice(),
                        }),
                    }
                }
            }
            _ => gates.push(Gate {
                name: kind.name(),
                yours,
                bound: Bound::AtMost(0.0),
                advice: kind.advice(),
            }),
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
