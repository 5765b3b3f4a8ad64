//! Which one was it?

use std::cell::RefCell;

use todevice::cuda;
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::cuda;
    use todevice::prelude::*;

    /// One step of a program that runs on the GPU.
    pub type Step<'a> = &'a dyn Fn() -> Result<Tensor>;

    /// Runs the steps in their order up to the first that fails, on the host or on the
    /// GPU, and returns its number. The first step is number 0.
    pub fn first_to_fail(steps: &[Step]) -> Result<Option<usize>> {
        for (number, step) in steps.iter().enumerate() {
            let ended = step().and_then(|_| cuda::synchronize());
            if ended.is_err() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
    // END
}

type FirstToFail = fn(&[solution::Step]) -> Result<Option<usize>>;

const ENDED: &str = "        let ended = step().and_then(|_| cuda::synchronize());\n";
const RETURN: &str = "            return Ok(Some(number));\n";
const FOR: &str = "    for (number, step) in steps.iter().enumerate() {\n";
const NONE: &str = "    Ok(None)\n";
const USES: &str = "use todevice::cuda;\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "08-clock";

pub static EXERCISE: Exercise = Exercise {
    id: "08-line",
    title: "Which one was it?",
    kind: Kind::Write,
    task: "A program of several steps ends with *device-side assert triggered*, and the message names a step that is innocent. Write \
           `first_to_fail`, which runs the steps and returns the number of the one that fails: with an error of the call, or with one \
           that the GPU reports later. Run each step once, none after the one that failed, and leave no setting changed.",
    hints: [
        "A step has returned. What do you know about its work on the GPU?",
        "Wait for the GPU after each step. The wait returns the error of the work before it.",
        "`step().and_then(|_| cuda::synchronize())` is an error if the call or its work failed.",
    ],
    afterwards: "For a whole program you set `CUDA_LAUNCH_BLOCKING=1`, which waits after each launch, and you need not touch the code.",
    source: include_str!("08-line.rs"),
    functions: &[("first_to_fail", "pub fn first_to_fail(steps: &[Step]) -> Result<Option<usize>>")],
    skeleton: &[
        (FOR, "    for (_number, step) in steps.iter().enumerate() {\n"),
        (ENDED, "        // Has it failed, on the host or on the GPU?\n        let ended = step();\n"),
        (RETURN, "            todo!()\n"),
        (NONE, "    todo!()\n"),
    ],
    styles: &[
        Style {
            name: "blocking",
            edits: &[
                (
                    FOR,
                    "    let before = cuda::launch_blocking()?;\n    cuda::set_launch_blocking(true)?;\n    let mut found = None;\n    \
                     for (number, step) in steps.iter().enumerate() {\n",
                ),
                (ENDED, "        let ended = step();\n"),
                (RETURN, "            found = Some(number);\n            break;\n"),
                (NONE, "    cuda::set_launch_blocking(before)?;\n    Ok(found)\n"),
            ],
        },
        Style {
            name: "iterator",
            edits: &[
                (FOR, "    let fails = |step: &Step| step().and_then(|_| cuda::synchronize()).is_err();\n    Ok(steps.iter().position(fails))\n"),
                (ENDED, ""),
                ("        if ended.is_err() {\n            return Ok(Some(number));\n        }\n    }\n    Ok(None)\n", ""),
            ],
        },
        Style {
            name: "waits_for_the_stream",
            edits: &[
                (
                    ENDED,
                    "        let stream = cuda::current_stream(Device::cuda(0))?;\n        \
                     let ended = step().and_then(|_| stream.synchronize());\n",
                ),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "no_wait",
            what: "Only the call is looked at. It returns before its work is done.",
            edits: &[
                (USES, ""),
                (ENDED, "        let ended = step();\n"),
            ],
            diagnosis: "no-wait",
        },
        Wrong {
            name: "waits_at_the_end",
            what: "There is one wait after all steps, and the last is blamed.",
            edits: &[
                (ENDED, "        let _ = (number, step());\n"),
                ("        if ended.is_err() {\n            return Ok(Some(number));\n        }\n", ""),
                (NONE, "    match cuda::synchronize() {\n        Ok(()) => Ok(None),\n        Err(_) => Ok(Some(steps.len() - 1)),\n    }\n"),
            ],
            diagnosis: "waits-at-the-end",
        },
        Wrong {
            name: "waits_before",
            what: "The wait comes before the step, so the step after the guilty one is blamed.",
            edits: &[(ENDED, "        let ended = cuda::synchronize().and_then(|_| step());\n")],
            diagnosis: "one-too-late",
        },
        Wrong {
            name: "only_the_gpu",
            what: "An error of the call itself is thrown away.",
            edits: &[(ENDED, "        let _ = step();\n        let ended = cuda::synchronize();\n")],
            diagnosis: "errors-of-calls",
        },
        Wrong {
            name: "gives_up",
            what: "`?` returns the error, and nobody learns the number.",
            edits: &[(ENDED, "        step()?;\n        let ended = cuda::synchronize();\n")],
            diagnosis: "gives-up",
        },
        Wrong {
            name: "goes_on",
            what: "The search goes on after the failure, and finds the last step that fails.",
            edits: &[
                (FOR, "    let mut found = None;\n    for (number, step) in steps.iter().enumerate() {\n"),
                (RETURN, "            found = Some(number);\n"),
                (NONE, "    Ok(found)\n"),
            ],
            diagnosis: "goes-on",
        },
        Wrong {
            name: "counts_from_one",
            what: "The steps are counted from 1.",
            edits: &[(RETURN, "            return Ok(Some(number + 1));\n")],
            diagnosis: "counts-from-one",
        },
        Wrong {
            name: "left_blocking",
            what: "Launches wait from now on, in the whole program.",
            edits: &[
                (FOR, "    cuda::set_launch_blocking(true)?;\n    for (number, step) in steps.iter().enumerate() {\n"),
                (ENDED, "        let ended = step();\n"),
            ],
            diagnosis: "left-blocking",
        },
        Wrong {
            name: "runs_twice",
            what: "The steps run once to see whether there is an error, and once more to find it.",
            edits: &[
                (
                    FOR,
                    "    let mut all = Vec::new();\n    for step in steps {\n        all.push(step().is_ok());\n    }\n    \
                     for (number, step) in steps.iter().enumerate() {\n",
                ),
            ],
            diagnosis: "runs-twice",
        },
        Wrong {
            name: "last_step_left_out",
            what: "There is no wait after the last step.",
            edits: &[
                (
                    ENDED,
                    "        let ended = match number + 1 < steps.len() {\n            true => step().and_then(|_| cuda::synchronize()),\n            \
                     false => step().map(|_| ()),\n        };\n",
                ),
            ],
            diagnosis: "last-step",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "sim:h200"],
    sizes: &[6, 5, 4, 3],
    observe: |case| observe(case, solution::first_to_fail),
    judge,
};

/// What fails in a run.
#[derive(Clone, Copy, PartialEq)]
enum Fails {
    /// The work of a step, on the GPU.
    OnTheGpu(usize),
    /// The call of a step.
    OnTheHost(usize),
    Nothing,
}

/// The size of a case is the number of steps, and it says what fails: a step in the middle, the last step, nothing, or a call.
fn fails(case: &Case) -> Fails {
    match case.size {
        6 => Fails::OnTheGpu(1 + case.seed as usize % 3),
        5 => Fails::OnTheGpu(4),
        4 => Fails::Nothing,
        _ => Fails::OnTheHost(1),
    }
}

pub fn observe(case: &Case, first_to_fail: FirstToFail) -> Seen {
    case.machine().enter(|| {
        let device = case.device();
        let table = Tensor::ones((&[10, 4], device)).expect("it is small");
        let ids = |last: i64| Tensor::new([0, 1, last]).and_then(|ids| ids.to(device)).expect("they are small");
        let (good, bad) = (ids(9), ids(12));
        let runs = RefCell::new(Vec::new());
        let step = |number: usize| {
            let (table, good, bad, runs) = (&table, &good, &bad, &runs);
            move || {
                runs.borrow_mut().push(number as f64);
                match fails(case) {
                    Fails::OnTheHost(at) if at == number => table.matmul(table),
                    Fails::OnTheGpu(at) if at == number => table.index_select(0, bad),
                    _ => table.index_select(0, good)?.add(1.0),
                }
            }
        };
        let steps: Vec<_> = (0..case.size).map(step).collect();
        let steps: Vec<solution::Step> = steps.iter().map(|step| step as solution::Step).collect();
        let mut seen = crate::observe(
            case,
            || {
                let found = first_to_fail(&steps)?;
                Ok(found.map(|number| number as u64))
            },
            |_| Ok(()),
        );
        let blocking = cuda::launch_blocking().unwrap_or(false);
        seen.facts.insert("blocking".to_owned(), Value::Flag(blocking));
        seen.facts.insert("runs".to_owned(), runs.take().into_value().unwrap_or(Value::None));
        seen
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let runs: Vec<usize> = seen.fact("runs").list().iter().filter_map(|number| Some(number.number()? as usize)).collect();
    let named = |value: &Value| match value.number() {
        Some(number) => format!("step {number}"),
        None => "no step".to_owned(),
    };
    let wanted = right.value();
    if matches!(seen.ended, Ended::Failed { .. }) && fails(case) != Fails::Nothing {
        return Err(Diagnosis::new("gives-up", "The error is returned, and with it no number.")
            .seen("an error")
            .expected(named(wanted))
            .idea("The error of a step is what you look for, and not a reason to stop. Look at the `Result` instead of using `?`."));
    }
    let found = seen.returned()?;
    let told = |id: &str, says: &str, idea: &str| {
        Err(Diagnosis::new(id, says).seen(named(found)).expected(named(wanted)).idea(idea))
    };
    let mut once = runs.clone();
    once.sort_unstable();
    once.dedup();
    if once.len() < runs.len() {
        return Err(Diagnosis::new("runs-twice", "Steps run more than once.")
            .seen(format!("{} runs of {} steps", runs.len(), case.size))
            .expected("each step once")
            .idea("After an error the GPU does nothing more for this program, so a second run fails at its first step."));
    }
    if seen.fact("blocking") == &Value::Flag(true) {
        return Err(Diagnosis::new("left-blocking", "Launches wait from now on, in the whole program.")
            .seen("`launch_blocking` is on afterwards")
            .expected("off, as before")
            .idea("Put the setting back on every way out of the function, or wait after each step instead."));
    }
    let ran_on = wanted.number().is_some_and(|number| runs.iter().any(|run| *run as f64 > number));
    if found != wanted {
        let late = found.number().zip(wanted.number()).map(|(found, wanted)| found - wanted);
        let waits = seen.calls.iter().filter(|call| call.kind == CallKind::Wait || call.waits).count();
        return match (fails(case), late) {
            (Fails::OnTheHost(_), _) if found == &Value::None => told(
                "errors-of-calls",
                "A step whose call fails is not found.",
                "Some errors are known at once, such as two shapes that do not fit. The step returns those itself.",
            ),
            (Fails::OnTheGpu(at), _) if at + 1 == case.size && found == &Value::None => told(
                "last-step",
                "The last step is not found.",
                "Nobody asks for more work after the last step. Wait after it as well.",
            ),
            (_, Some(late)) if late > 1.0 && waits == 0 && found.number() == Some(case.size as f64 - 1.0) => told(
                "waits-at-the-end",
                "The last step is blamed.",
                "At the end you learn that something has failed, and not which step. Wait after each.",
            ),
            (_, Some(late)) if late > 0.0 && waits == 0 => told(
                "no-wait",
                "A later step is blamed.",
                "A call returns before its work is done, so a later call gets the error. Wait after each step.",
            ),
            (_, None) if waits == 0 => told(
                "no-wait",
                "Nobody is blamed, and yet a step has failed.",
                "A call returns before its work is done. Wait after each step: the wait returns the error.",
            ),
            (_, Some(1.0)) if waits >= runs.len() => told(
                "one-too-late",
                "The step after the guilty one is blamed.",
                "A wait before a step waits for the step before it. Wait after the step.",
            ),
            (_, Some(late)) if late > 0.0 && !ran_on => told("counts-from-one", "The number is one too large.", "The first step is number 0."),
            (_, Some(late)) if late > 0.0 && waits > 1 => told(
                "goes-on",
                "Steps after the guilty one are tried as well, and fail in their turn.",
                "After the first error every call fails. Return its number at once.",
            ),
            _ => told("another-step", "That is not the step that failed.", "Wait after each step, and return the number of the first that fails."),
        };
    }
    if ran_on {
        return Err(Diagnosis::new("goes-on-quietly", "Steps run after the one that failed.")
            .seen(format!("{} steps", runs.len()))
            .expected(format!("{} steps", runs.len().min(wanted.number().map_or(case.size, |number| number as usize + 1))))
            .idea("After the first error every call fails. Return at once."));
    }
    Ok(())
}
