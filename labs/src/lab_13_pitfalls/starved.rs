//! Section 5: a GPU that is idle while the CPU is busy.

use std::time::Duration;

use drawing::{Comparison, words};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::trace::Trace;
use todevice::{Machine, ToOptions, cuda};

use super::pitfall::Pitfall;
use super::training::{network, train_step};
use crate::{Figure, Lab, Prediction, Table, Text, Value, machine_figure, row, timed};

// ANCHOR: pictures
/// Images as bytes. Each costs the CPU some time: it becomes floats of mean 0 and
/// standard deviation 1.
struct Pictures {
    pixels: Tensor,
}

impl Dataset for Pictures {
    type Sample = (Tensor, i64);

    fn len(&self) -> usize {
        self.pixels.sizes()[0]
    }

    fn get(&self, index: usize) -> Result<(Tensor, i64)> {
        let picture = self.pixels.select(0, index as i64)?.to(DType::F32)?;
        let centred = (&picture - picture.mean()?)?;
        let deviation = centred.square()?.mean()?.sqrt()?;
        Ok(((centred / deviation)?, index as i64 % 10))
    }
}
// ANCHOR_END: pictures

const SAMPLES: usize = 256;

/// An epoch, and its trace.
struct Epoch {
    time: Duration,
    trace: Trace,
    loading: Duration,
}

impl Epoch {
    // ANCHOR: epoch
    /// Trains for an epoch with `num_workers` workers.
    fn run(device: Device, num_workers: usize, pin_memory: bool) -> Result<Epoch> {
        let pixels = (Tensor::rand(&[SAMPLES, 1024])? * 255.0)?.to(DType::U8)?;
        let options = DataLoaderOptions {
            batch_size: 32,
            num_workers,
            pin_memory,
            ..Default::default()
        };
        let loader = DataLoader::new(Pictures { pixels }, options)?;
        let (model, mut optimizer) = network()?;
        model.to(device)?;
        let to = ToOptions {
            device: Some(device),
            non_blocking: pin_memory,
            ..Default::default()
        };
        let mut epoch = || {
            for batch in &loader {
                let (x, y) = batch?;
                train_step(&model, &mut optimizer, &x.to(to)?, &y.to(to)?)?;
            }
            cuda::synchronize()
        };
        epoch()?; // not timed: the first epoch allocates memory
        let start = Instant::now();
        let (outcome, trace) = Machine::current().profile(epoch);
        outcome?;
        let time = start.elapsed();

        let start = Instant::now(); // loading alone
        loader.iter().try_for_each(|batch| batch.map(drop))?;
        let loading = start.elapsed();
        Ok(Epoch { time, trace, loading })
    }
    // ANCHOR_END: epoch

    /// The share of the epoch in which the GPU computes, in percent.
    fn busy(&self) -> Option<f64> {
        let device = self.trace.work.first()?.span.stream.device;
        let computed = self.trace.compute_time(device).as_secs_f64();
        Some(100.0 * computed / self.time.as_secs_f64())
    }

    fn busy_figure(&self) -> Figure {
        let busy = self.busy().map_or_else(|| Value::from("unknown"), Value::from);
        machine_figure("busy", busy).unit("%").digits(0)
    }

    fn is_loading(&self) -> bool {
        self.loading > self.time / 2
    }
}

pub(super) fn waits_for_the_loader(
    lab: &mut Lab,
    device: Device,
) -> crate::Result<Pitfall> {
    lab.section(5, "A trace");
    lab.part("trace");
    manual_seed(lab.seed());
    let before = Epoch::run(device, 0, false)?;
    lab.picture(
        Comparison::new().case("as it was", words::time(before.time), &before.trace),
        "An epoch of eight batches: what the host does, what is copied, and when the GPU computes.",
    );
    let is_idle = before.busy().is_none_or(|busy| busy < 50.0);
    let guess = lab.predict(
        Prediction::choice(
            "13-starved",
            "This is an epoch. What is wrong, what proves it, and what helps?",
        )
        .or(
            "copies",
            "The copies take the time. `x.to(device)` alone, timed, takes as long as the epoch. Pin the memory.",
            "In the trace the copies are thin lines.",
        )
        .or(
            "loader",
            "The loop waits for its batches. Loading alone, timed, takes most of the epoch. Use workers and `pin_memory`.",
            "Loading alone takes less than half of the epoch here.",
        )
        .or(
            "network",
            "The network is too large. A step alone, timed, takes as long as the epoch. Use a smaller one.",
            "Then the GPU would compute for most of the epoch.",
        )
        .because("The host prepares each picture itself, one after the other, and the GPU waits for every batch.")
        .raced()
        .only_if(is_idle),
    );
    let after = Epoch::run(device, 4, true)?;
    lab.table(
        Table::new(["the loader", "loading alone", "epoch", "GPU busy"])
            .row(row![
                "no workers",
                timed("loading_time", before.loading),
                timed("epoch_time", before.time),
                before.busy_figure()
            ])
            .row(row![
                "4 workers, pinned",
                timed("loading_time", after.loading),
                timed("epoch_time", after.time),
                after.busy_figure()
            ]),
    );
    lab.answer(guess, if before.is_loading() { "loader" } else { "network" });
    let verdict = if !is_idle {
        "Here the GPU is busy for most of the epoch, so a faster loader gains little."
    } else if !before.is_loading() {
        "Loading alone takes less than half of the epoch, and the GPU is idle all the same: the host launches, or copies."
    } else if after.time < before.time {
        "Loading alone takes most of the epoch, so it sets the pace. Workers share it."
    } else {
        "Loading alone takes most of the epoch, and workers make it longer here."
    };
    lab.prose(Text::from(verdict).raced());
    Ok(Pitfall {
        what: "GPU idle, CPU busy",
        counted: "GPU busy",
        before: before.busy_figure().into(),
        after: after.busy_figure().into(),
    })
}
