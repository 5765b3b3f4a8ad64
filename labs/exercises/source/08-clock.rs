//! Too fast to be true.

use std::cell::RefCell;
use std::time::Duration;

use todevice::prelude::*;
use todevice::time::Instant;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::cuda;
    use todevice::prelude::*;
    use todevice::time::Instant;

    /// How long a step takes once it runs steadily: the average of `steps` in a row.
    pub fn time_per_step(
        steps: u32,
        device: Device,
        step: &mut dyn FnMut() -> Result<Tensor>,
    ) -> Result<std::time::Duration> {
        step()?;
        wait_for(device)?;
        let start = Instant::now();
        for _ in 0..steps {
            step()?;
        }
        wait_for(device)?;
        Ok(start.elapsed() / steps)
    }

    /// Waits for a GPU. On the CPU there is nothing to wait for.
    fn wait_for(device: Device) -> Result<()> {
        match device.is_cuda() {
            true => cuda::device(device.index(), || cuda::synchronize())?,
            false => Ok(()),
        }
    }
    // END
}

type TimePerStep = fn(u32, Device, &mut dyn FnMut() -> Result<Tensor>) -> Result<Duration>;

/// The exercise before this one in the chapter.
pub const AFTER: &str = "08-stream";

pub static EXERCISE: Exercise = Exercise {
    id: "08-clock",
    title: "Too fast to be true",
    kind: Kind::Fix,
    task: "`time_per_step` should return the average time of `steps` steps in a row. That includes all their work on the \
           GPU. It includes neither work that was already queued, nor anything that only the very first step does. The \
           steps should run as they do in training, where nobody waits between them. The function must work without a \
           GPU, too. At present it measures something else.",
    hints: [
        "What has a step done when it returns? And what is the GPU doing when the clock starts?",
        "Three things are missing: a step that nobody times, a wait before the clock starts, and a wait before it is read.",
        "`step()?; wait_for(device)?;` before `Instant::now()`, and `wait_for(device)?;` before `start.elapsed()`.",
    ],
    afterwards: "Two events would measure the time on the GPU alone. A user waits for the host as well, so say which of the two you mean.",
    source: include_str!("08-clock.rs"),
    functions: &[(
        "time_per_step",
        "pub fn time_per_step(steps: u32, device: Device, step: &mut dyn FnMut() -> Result<Tensor>) -> Result<std::time::Duration>",
    )],
    skeleton: &[(WARM_UP, "    let start = Instant::now();\n"), (END, "        step()?;\n    }\n")],
    styles: &[
        Style {
            name: "more_warm_up",
            edits: &[(WARM_UP, "    for _ in 0..3 {\n        step()?;\n    }\n    wait_for(device)?;\n    let start = Instant::now();\n")],
        },
        Style {
            name: "reads_the_last",
            edits: &[
                (WARM_UP, "    step()?.item()?;\n    let start = Instant::now();\n"),
                (
                    "    for _ in 0..steps {\n",
                    "    let mut last = None;\n    for _ in 0..steps {\n",
                ),
                (END, "        last = Some(step()?);\n    }\n    if let Some(loss) = last {\n        loss.item()?;\n    }\n"),
            ],
        },
        Style {
            name: "events",
            edits: &[
                ("use todevice::cuda;\n", "use todevice::cuda::{self, Event, EventOptions};\n"),
                (
                    "    let start = Instant::now();\n",
                    "    if device.is_cuda() {\n        let timed = || Event::new(EventOptions { enable_timing: true });\n        \
                     let (start, end) = (timed(), timed());\n        start.record()?;\n        \
                     for _ in 0..steps {\n            step()?;\n        }\n        end.record()?;\n        \
                     end.synchronize()?;\n        let milliseconds = start.elapsed_time(&end)?;\n        \
                     return Ok(std::time::Duration::from_secs_f64(milliseconds / 1e3) / steps);\n    }\n    \
                     let start = Instant::now();\n",
                ),
            ],
        },
        Style {
            name: "events_in_the_queue",
            edits: &[
                ("use todevice::cuda;\n", "use todevice::cuda::{self, Event, EventOptions};\n"),
                (
                    WARM_UP,
                    "    step()?;\n    if device.is_cuda() {\n        let timed = || Event::new(EventOptions { enable_timing: true });\n        \
                     let (start, end) = (timed(), timed());\n        start.record()?;\n        \
                     for _ in 0..steps {\n            step()?;\n        }\n        end.record()?;\n        \
                     end.synchronize()?;\n        let milliseconds = start.elapsed_time(&end)?;\n        \
                     return Ok(std::time::Duration::from_secs_f64(milliseconds / 1e3) / steps);\n    }\n    let start = Instant::now();\n",
                ),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "no_wait",
            what: "Nobody waits: the clock shows how long it takes to ask.",
            edits: &[(WARM_UP, "    let start = Instant::now();\n"), (END, "        step()?;\n    }\n")],
            diagnosis: "no-wait",
        },
        Wrong {
            name: "stops_early",
            what: "The clock is read before the work is done.",
            edits: &[(END, "        step()?;\n    }\n")],
            diagnosis: "stops-early",
        },
        Wrong {
            name: "clock_first",
            what: "The clock is read, and then there is a wait.",
            edits: &[
                (END, "        step()?;\n    }\n    let time = start.elapsed();\n    wait_for(device)?;\n"),
                ("    Ok(start.elapsed() / steps)\n", "    Ok(time / steps)\n"),
            ],
            diagnosis: "clock-first",
        },
        Wrong {
            name: "starts_early",
            what: "The clock starts while the GPU still has other work.",
            edits: &[(WARM_UP, "    step()?;\n    let start = Instant::now();\n")],
            diagnosis: "starts-early",
        },
        Wrong {
            name: "clock_before_the_wait",
            what: "The clock starts before the wait for the warm-up.",
            edits: &[(WARM_UP, "    step()?;\n    let start = Instant::now();\n    wait_for(device)?;\n")],
            diagnosis: "clock-before-wait",
        },
        Wrong {
            name: "no_warm_up",
            what: "The very first step is timed as well.",
            edits: &[(WARM_UP, "    wait_for(device)?;\n    let start = Instant::now();\n")],
            diagnosis: "no-warm-up",
        },
        Wrong {
            name: "warm_up_counted",
            what: "The clock runs during the warm-up.",
            edits: &[
                (WARM_UP, "    wait_for(device)?;\n    let start = Instant::now();\n    step()?;\n    wait_for(device)?;\n"),
            ],
            diagnosis: "warm-up-counted",
        },
        Wrong {
            name: "waits_each",
            what: "The host waits after each step.",
            edits: &[(END, "        step()?;\n        wait_for(device)?;\n    }\n")],
            diagnosis: "waits-each",
        },
        Wrong {
            name: "reads_each",
            what: "The loss of each step is read.",
            edits: &[(END, "        step()?.item()?;\n    }\n    wait_for(device)?;\n")],
            diagnosis: "reads-each",
        },
        Wrong {
            name: "wrong_count",
            what: "The time is divided by the number of all steps, the warm-up included.",
            edits: &[("start.elapsed() / steps", "start.elapsed() / (steps + 1)")],
            diagnosis: "wrong-count",
        },
        Wrong {
            name: "not_divided",
            what: "The time of all steps is returned.",
            edits: &[("start.elapsed() / steps", "start.elapsed()")],
            diagnosis: "not-divided",
        },
        Wrong {
            name: "one_step",
            what: "One step is timed instead of `steps`.",
            edits: &[
                ("    for _ in 0..steps {\n", "    {\n"),
                ("Ok(start.elapsed() / steps)", "let _ = steps;\n    Ok(start.elapsed())"),
            ],
            diagnosis: "one-step",
        },
        Wrong {
            name: "one_step_more",
            what: "One more step is timed than the time is divided by.",
            edits: &[("for _ in 0..steps {", "for _ in 0..=steps {")],
            diagnosis: "one-step-more",
        },
        Wrong {
            name: "halved",
            what: "The time of a step is halved.",
            edits: &[("start.elapsed() / steps", "start.elapsed() / steps / 2")],
            diagnosis: "time",
        },
        Wrong {
            name: "hard_coded",
            what: "It waits for a GPU, whether there is one or not.",
            edits: &[
                ("    match device.is_cuda() {\n        true => cuda::device(device.index(), || cuda::synchronize())?,\n        false => Ok(()),\n    }\n", "    let _ = device;\n    cuda::synchronize()\n"),
            ],
            diagnosis: "hard-coded",
        },
    ],
    places: &[
        (
            "Before the steps",
            &[
                &[],
                &[(WARM_UP, "    let start = Instant::now();\n")],
                &[(WARM_UP, "    step()?;\n    let start = Instant::now();\n")],
                &[(WARM_UP, "    step()?;\n    let start = Instant::now();\n    wait_for(device)?;\n")],
                &[(WARM_UP, "    wait_for(device)?;\n    let start = Instant::now();\n")],
            ],
        ),
        (
            "The steps, and what comes after them",
            &[
                &[],
                &[(END, "        step()?;\n    }\n")],
                &[(END, "        step()?;\n        wait_for(device)?;\n    }\n")],
                &[(END, "        step()?.item()?;\n    }\n    wait_for(device)?;\n")],
            ],
        ),
    ],
    gpus: &["sim:t4", "sim:h200", "none"],
    sizes: &[10, 4],
    observe: |case| observe(case, solution::time_per_step),
    judge,
};

const WARM_UP: &str = "    step()?;\n    wait_for(device)?;\n    let start = Instant::now();\n";
const END: &str = "        step()?;\n    }\n    wait_for(device)?;\n";

/// The size of a case is the number of steps.
pub fn observe(case: &Case, time_per_step: TimePerStep) -> Seen {
    case.machine().enter(|| {
        let device = case.device();
        let x = given(case, device).expect("the machine is new");
        // When each step began and ended, in nanoseconds since the student's code began.
        let stamps = RefCell::new((Vec::new(), Vec::new()));
        crate::observe(
            case,
            || {
                let began = Instant::now();
                let now = || began.elapsed().as_nanos() as f64;
                // Somebody else's work is in the queue.
                for _ in 0..3 {
                    work(&x)?;
                }
                let mut kept = None;
                time_per_step(case.size as u32, device, &mut || {
                    stamps.borrow_mut().0.push(now());
                    // The first time it makes what it keeps.
                    if kept.is_none() {
                        kept = Some(Tensor::ones(&[256, x.size(1)?])?.to(device)?);
                    }
                    let loss = work(&x)?.mean()?;
                    stamps.borrow_mut().1.push(now());
                    Ok(loss)
                })
            },
            |facts| {
                let (begun, ended) = stamps.take();
                facts.insert("begun".to_owned(), begun.into_value()?);
                facts.insert("ended".to_owned(), ended.into_value()?);
                Ok(())
            },
        )
    })
}

fn given(case: &Case, device: Device) -> Result<Tensor> {
    manual_seed(case.seed);
    Tensor::randn(&[512 + 128 * (case.seed as usize % 3), 1024])?.to(device)
}

/// On the T4 these kernels take several times as long as their launches.
fn work(x: &Tensor) -> Result<Tensor> {
    x.relu()?.add(x)?.relu()?.add(x)
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if case.gpu == "none"
        && let Ended::Failed { message, .. } = &seen.ended
    {
        return Err(Diagnosis::new("hard-coded", "It fails on a machine that has no GPU.")
            .seen(message)
            .expected("the time of steps on the CPU, where a call returns when its work is done")
            .idea("Only a GPU works while the host goes on, so only for a GPU is there something to wait for. Ask the device."));
    }
    let value = seen.returned()?.number().unwrap_or(f64::NAN);
    let expected = right.value().number().unwrap_or(f64::NAN);
    let list = |name: &str| seen.fact(name).list().iter().filter_map(Value::number).collect::<Vec<_>>();
    let (begun, ended) = (list("begun"), list("ended"));
    let steps = case.size;
    let micros = |nanoseconds: f64| format!("{:.0} µs", nanoseconds / 1e3);
    if begun.len() < steps {
        return Err(Diagnosis::new("one-step", "Too few steps are timed.")
            .seen(format!("{} steps in all", begun.len()))
            .expected(format!("{steps} in a row, and one before them that nobody times"))
            .idea("You ask for a single step and wait for it. In a training run steps follow one another: while the GPU works on one, the host asks for the next."));
    }
    // On the CPU real time passes, of which nothing can be said.
    if case.gpu == "none" {
        return Ok(());
    }
    // Reading a number waits, too.
    let waits: Vec<(f64, f64)> = seen
        .calls
        .iter()
        .filter(|call| matches!(call.kind, CallKind::Wait | CallKind::ToHost))
        .map(|call| (call.begin as f64, call.end as f64))
        .collect();
    let (first, last) = (begun[begun.len() - steps], ended[ended.len() - 1]);
    let said = |diagnosis: Diagnosis| {
        diagnosis
            .seen(format!("{} a step (modelled)", micros(value)))
            .expected(micros(expected))
    };
    let drawn = |diagnosis: Diagnosis| said(diagnosis).timelines(seen, right);
    if waits.is_empty() {
        return Err(drawn(Diagnosis::new("no-wait", "The clock shows how long it takes to ask for the steps, not to do them."))
            .idea("A step returns when its work is in the queue. To time work on a GPU, wait before the clock starts, and again before you read it."));
    }
    let Some(&(_, done)) = waits.iter().rfind(|(begin, _)| *begin >= last) else {
        return Err(drawn(Diagnosis::new("stops-early", "The clock is read before the work is done."))
            .idea("When the last step returns, its work is still in the queue, and maybe that of the steps before it. Wait for it, then read the clock."));
    };
    let within = waits.iter().filter(|(begin, _)| *begin > first && *begin < last).count();
    // Now and then somebody may wait; each time is a habit.
    if 2 * within >= steps {
        let reads = seen.count(CallKind::ToHost);
        let (kind, diagnosis) = match 2 * reads >= steps {
            true => (CallKind::ToHost, Diagnosis::new("reads-each", "Each step's loss is read, and reading waits.")),
            false => (CallKind::Wait, Diagnosis::new("waits-each", "The host waits after each step.")),
        };
        return Err(drawn(diagnosis)
            .at(seen.line(kind))
            .idea("With a wait in every step the GPU has nothing to do while the host asks for the next one. That is not the program you want to time. Wait once, at the end."));
    }

    // What a clock would say that starts and stops elsewhere: modelled times agree to the nanosecond, but for the clock's own
    // calls, of which there are few.
    let is = |nanoseconds: f64| (value - nanoseconds).abs() <= 0.01 * nanoseconds;
    let (all, count) = (begun.len() as f64, steps as f64);
    let warm_up = begun.len() - steps;
    if warm_up == 0 {
        return Err(drawn(Diagnosis::new("no-warm-up", "The very first step is timed with the others."))
            .idea("The first step makes what the later ones keep: memory, tables, here a tensor that it sends to the GPU. Run one step before the clock starts."));
    }
    // Where the host sets the pace many clocks agree. On the T4 the GPU does. Between two events there is no host, which
    // makes a small difference.
    if (value - expected).abs() <= 0.03 * expected {
        return Ok(());
    }
    if is((last - first) / count) && last - first < 0.8 * count * expected {
        return Err(drawn(Diagnosis::new("clock-first", "There is a wait, but the clock has been read before it."))
            .idea("First wait, then read the clock."));
    }
    if is((done - begun[0]) / count) || is((done - begun[0]) / all) {
        return Err(drawn(Diagnosis::new("warm-up-counted", "The clock runs during the warm-up."))
            .idea("The warm-up is there so that what only happens once is not timed. Start the clock after it, when its work is done."));
    }
    if is((done - first) / all) {
        return Err(said(Diagnosis::new("wrong-count", "The time is divided by the wrong number of steps."))
            .idea(format!("{steps} steps are timed. The warm-up is not among them, so it is not counted either.")));
    }
    if is(done - first) {
        return Err(said(Diagnosis::new("not-divided", "That is the time of all steps together."))
            .idea(format!("Divide by the number of steps that the clock has seen: {steps}.")));
    }
    // From a step of the warm-up on, but not from the first.
    if let Some(extra) = (1..warm_up).find(|&k| is((done - begun[k]) / count)) {
        let timed = steps + warm_up - extra;
        return Err(said(Diagnosis::new("one-step-more", "More steps are timed than the time is divided by."))
            .idea(format!("The clock sees {timed} steps, and the time is divided by {steps}. `0..steps` has {steps} numbers, `0..=steps` one more.")));
    }
    let is_quiet = waits.iter().any(|(begin, end)| *begin >= ended[warm_up - 1] && *end <= first);
    if !is_quiet && is((done - first) / count) {
        return Err(drawn(Diagnosis::new("starts-early", "The clock starts while the GPU is busy with something else."))
            .idea("The GPU first does what was queued before, the warm-up and maybe the work of others, and your clock runs meanwhile. Wait before you start it."));
    }
    if is((done - ended[warm_up - 1]) / count) {
        return Err(drawn(Diagnosis::new("clock-before-wait", "The clock starts, and then there is a wait for the warm-up."))
            .idea("The wait is there so that nothing of the warm-up is timed. First wait, then start the clock."));
    }
    // All styles known are within 3 %. Where the host sets the pace, which is not so on the T4, the time between two events may
    // be shorter by the host's own calls before the first step and after the last, so there is some room.
    let near = if case.gpu == "sim:t4" { 0.03 } else { 0.1 };
    let is_near = (value - expected).abs() <= near * expected;
    if !is_near {
        // Not the number itself: that may be of a clock that is different each time.
        return Err(Diagnosis::new("time", "The waits are right, but the time is not.")
            .seen(if value > expected { "more than that" } else { "less than that" })
            .expected(format!("{} a step (modelled)", micros(expected)))
            .idea("Is it divided by the steps that were timed? And is it the right clock? A simulated GPU has its own, `todevice::time::Instant`; `std::time::Instant` shows how long the simulation takes."));
    }
    Ok(())
}
