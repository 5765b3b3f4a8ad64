//! A copy beside a product, in one of the eight ways of lab 09.

use drawing::words;
use todevice::ToOptions;
use todevice::cuda::{self, Stream};
use todevice::prelude::*;
use todevice::trace::Trace;

use super::{CARD, Compared, Knob, Setting, Shown, WhatIf, bits};
use crate::lab_09_feeding::feeding::{one_copy, side_by_side};

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "copies",
    title: "A copy beside a product",
    knobs: &[
        CARD,
        Knob {
            name: "memory",
            label: "Batch in memory that is",
            values: &[("pageable", "pageable"), ("pinned", "pinned")],
            first: 1,
        },
        Knob {
            name: "non_blocking",
            label: "non_blocking",
            values: &[("no", "no"), ("yes", "yes")],
            first: 0,
        },
        Knob {
            name: "stream",
            label: "Stream of the copy",
            values: &[("same", "that of the product"), ("other", "another")],
            first: 0,
        },
    ],
    run,
};

struct Copied {
    trace: Trace,
    call: std::time::Duration,
    all: std::time::Duration,
    there: Vec<f64>,
}

fn run(setting: &Setting) -> crate::Result<Shown> {
    let copied = copy(setting)?;
    let free = if copied.call * 2 < copied.all {
        "The host goes on at once"
    } else {
        "The host waits for the copy"
    };
    let beside = match side_by_side(&copied.trace) {
        Some(true) => "and the copy runs beside the product",
        _ => "and the copy has to wait for the product",
    };
    let words = format!(
        "The call takes {}, and copy and product are done after {} (modelled, {}). {free}, {beside}.",
        words::time(copied.call),
        words::time(copied.all),
        setting.words("gpu"),
    );
    let plain = setting
        .with("memory", "pageable")
        .with("non_blocking", "no")
        .with("stream", "same");
    let best = setting
        .with("memory", "pinned")
        .with("non_blocking", "yes")
        .with("stream", "other");
    let holds = [plain, best].iter().map(copy).collect::<crate::Result<Vec<_>>>()?;
    let same = Compared {
        what: "The numbers that arrive are those that were sent".to_owned(),
        with: vec![
            "as with a plain copy".to_owned(),
            "as from pinned memory, with non_blocking, on another stream".to_owned(),
        ],
        exactly: "bit for bit",
        holds: holds.iter().all(|other| bits(&other.there) == bits(&copied.there))
            && copied.there == sent(),
    };
    Ok(Shown { drawing: (&copied.trace).into(), words, same: vec![same] })
}

fn sent() -> Vec<f64> {
    (0..SIZE * SIZE).map(|number| (number % 251) as f64).collect()
}

/// The rows and columns of the batch, and of each operand of the product.
const SIZE: usize = 384;

fn copy(setting: &Setting) -> crate::Result<Copied> {
    let machine = setting.machine()?;
    machine.enter(|| {
        let device = Device::cuda(0);
        let work = Tensor::ones((&[SIZE, SIZE], device))?;
        let numbers: Vec<f32> =
            sent().into_iter().map(|number| number as f32).collect();
        let mut batch = Tensor::from_slice(&numbers, &[SIZE, SIZE])?;
        if setting.of("memory") == "pinned" {
            batch = batch.pin_memory()?;
        }
        let stream = match setting.of("stream") {
            "other" => Stream::new(device)?,
            _ => cuda::current_stream(device)?,
        };
        let non_blocking = setting.of("non_blocking") == "yes";
        let to = ToOptions { device: Some(device), non_blocking, ..Default::default() };
        one_copy(&work, &batch, &stream, to)?; // not recorded, since it allocates memory
        let (done, trace) = machine.profile(|| one_copy(&work, &batch, &stream, to));
        let (call, all, there) = done?;
        let there = there.to_vec::<f32>()?.into_iter().map(f64::from).collect();
        Ok(Copied { trace, call, all, there })
    })
}
