//! Two steps of a loop of lab 09 that keeps a GPU waiting.

use drawing::words;
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::trace::{Trace, record_function};
use todevice::{Machine, cuda};

use super::{CARD, Compared, Knob, Setting, Shown, WhatIf, bits};
use crate::format_float;
use crate::lab_09_feeding::why_it_waits::{
    pageable, slow_loader, tiny_batches, waits, well_fed,
};

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "loops",
    title: "Two steps of a training loop",
    knobs: &[
        Knob {
            name: "loop",
            label: "Loop",
            values: &[
                ("fed", "well fed"),
                ("pageable", "copies from pageable memory"),
                ("reads", "reads numbers"),
                ("loader", "a slow loader"),
                ("tiny", "tiny batches"),
            ],
            first: 3,
        },
        Knob {
            name: "num_workers",
            label: "Workers of the loader",
            values: &[("0", "0"), ("1", "1"), ("2", "2"), ("4", "4")],
            first: 1,
        },
        CARD,
    ],
    run,
};

/// Images per step: fewer than in the lab, but enough to show why the GPU waits.
const BATCH: usize = 32;

/// Two steps, after the loop has allocated all its memory.
struct Looped {
    trace: Trace,
    time: std::time::Duration,
    /// Of all steps.
    losses: Vec<f64>,
}

fn run(setting: &Setting) -> crate::Result<Shown> {
    let looped = run_loop(setting)?;
    let share =
        100.0 * looped.trace.compute_time(0).as_secs_f64() / looped.time.as_secs_f64();
    let verdict = match setting.of("loop") {
        "fed" => "Nothing but the host's launches holds the GPU up",
        "pageable" => {
            "Before each step the host copies the batch, and the GPU waits for it"
        }
        "reads" => {
            "Each number that is read makes the host wait for the GPU, and then the GPU for the host"
        }
        "loader" => {
            "The GPU waits for the workers, which prepare one picture after another"
        }
        _ => "The kernels are so short that the host cannot launch them fast enough",
    };
    let workers = match setting.of("loop") {
        "loader" => match setting.number("num_workers") {
            1 => ", whose loader has one worker,".to_owned(),
            count => format!(", whose loader has {count} workers,"),
        },
        _ => String::new(),
    };
    let words = format!(
        "Two steps of the loop \"{}\"{workers} take {} on the {} (modelled). The GPU computes for {share:.0} % of that (modelled). {verdict}.",
        setting.words("loop"),
        words::time(looped.time),
        setting.words("gpu"),
    );
    // The same images give the same losses, whatever the GPU waits for.
    let (knob, others): (&str, &[(&str, &str)]) = match setting.of("loop") {
        "fed" | "pageable" | "reads" => (
            "loop",
            &[
                ("fed", "if the loop is well fed"),
                ("pageable", "if it copies from pageable memory"),
                ("reads", "if it reads numbers"),
            ],
        ),
        "loader" => ("num_workers", &[("0", "without workers"), ("4", "with four")]),
        _ => (
            "gpu",
            &[
                ("t4", "on the Tesla T4"),
                ("rtx4090", "on the RTX 4090"),
                ("h200", "on the H200"),
            ],
        ),
    };
    let others = others.iter().filter(|(value, _)| *value != setting.of(knob));
    let (others, with): (Vec<Setting>, Vec<&str>) =
        others.map(|(value, words)| (setting.with(knob, value), *words)).unzip();
    let others = others.iter().map(run_loop).collect::<crate::Result<Vec<_>>>()?;
    let last = &looped.losses[looped.losses.len() - 2..];
    let last: Vec<String> = last.iter().map(|loss| format_float(*loss, 4)).collect();
    let losses = Compared {
        what: format!("The losses of the two steps are {}", last.join(" and ")),
        with: with.into_iter().map(str::to_owned).collect(),
        exactly: "bit for bit",
        holds: others.iter().all(|other| bits(&other.losses) == bits(&looped.losses)),
    };
    Ok(Shown { drawing: (&looped.trace).into(), words, same: vec![losses] })
}

fn run_loop(setting: &Setting) -> crate::Result<Looped> {
    let machine = setting.machine()?;
    let looped = machine.enter(|| {
        let (seed, device) = (0, Device::cuda(0));
        match setting.of("loop") {
            "pageable" => pageable(seed, device, BATCH, &steps),
            "reads" => waits(seed, device, BATCH, &steps),
            "loader" => {
                slow_loader(seed, device, BATCH, setting.number("num_workers"), &steps)
            }
            "tiny" => tiny_batches(seed, device, &steps),
            _ => well_fed(seed, device, BATCH, &steps),
        }
    });
    Ok(looped?)
}

/// Runs steps that allocate memory, including that of prefetched batches, then two recorded ones.
fn steps(_: Device, step: &mut dyn FnMut() -> Result<Tensor>) -> Result<Looped> {
    let mut losses = (0..4).map(|_| step()).collect::<Result<Vec<_>>>()?;
    cuda::synchronize()?;
    let (time, trace) = Machine::current().profile(|| {
        let start = Instant::now();
        for _ in 0..2 {
            losses.push(record_function("step", &mut *step)?);
        }
        record_function("synchronize", cuda::synchronize)?;
        Ok::<_, Error>(start.elapsed())
    });
    let losses = losses.iter().map(Tensor::item).collect::<Result<Vec<f64>>>()?;
    Ok(Looped { trace, time: time?, losses })
}
