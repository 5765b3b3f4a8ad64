//! A training step of lab 03, with other cards, batches and memory.

use drawing::words;

use super::{CARD, Compared, Knob, Setting, Shown, WhatIf, bits};
use crate::format_float;
use crate::lab_03_training_loop::step::one_step;

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "step",
    title: "One training step",
    knobs: &[
        CARD,
        Knob {
            name: "batch_size",
            label: "Batch",
            values: &[
                ("16", "16"),
                ("64", "64"),
                ("256", "256"),
                ("1024", "1024"),
                ("4096", "4096"),
            ],
            first: 1,
        },
        Knob {
            name: "copy",
            label: "Batch in memory that is",
            values: &[
                ("pageable", "pageable"),
                ("pinned", "pinned, with non_blocking"),
            ],
            first: 0,
        },
    ],
    run,
};

fn run(setting: &Setting) -> crate::Result<Shown> {
    let (batch, pinned) =
        (setting.number("batch_size"), setting.of("copy") == "pinned");
    let gpu = format!("sim:{}", setting.of("gpu"));
    let step = one_step(Some(&gpu), batch, pinned)?;
    let cpu = one_step(None, batch, false)?;
    let other = one_step(Some(&gpu), batch, !pinned)?;
    let times = |slow: std::time::Duration, fast: std::time::Duration| {
        format!("{:.1} times as fast", slow.as_secs_f64() / fast.as_secs_f64())
    };
    let verdict = match step.done < cpu.done {
        true => format!("The GPU is {}", times(cpu.done, step.done)),
        false => format!("The CPU is {}", times(step.done, cpu.done)),
    };
    let share = 100.0 * step.computed.as_secs_f64() / step.done.as_secs_f64();
    let words = format!(
        "A step with {batch} samples takes {} on the {} and {} on the CPU (modelled). {verdict}. The GPU computes for {share:.0} % of \
         its time (modelled), in {} kernels, and the batch is there after {} (modelled).",
        words::time(step.done),
        setting.words("gpu"),
        words::time(cpu.done),
        step.launches,
        words::time(step.moved),
    );
    let from = if pinned { "from pageable memory" } else { "from pinned memory" };
    let loss = Compared {
        what: format!("The loss is {}", format_float(step.loss, 4)),
        with: vec!["on the CPU".to_owned(), from.to_owned()],
        exactly: "bit for bit",
        holds: [&cpu, &other]
            .iter()
            .all(|same| bits(&[same.loss]) == bits(&[step.loss])),
    };
    Ok(Shown { drawing: (&step.trace).into(), words, same: vec![loss] })
}
