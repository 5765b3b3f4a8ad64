//! A step of `DistributedDataParallel` in time, and the gain from overlapping averaging and computing.

use std::time::Duration;

use drawing::{Comparison, Timeline, words};
use todevice::distributed::{
    DistributedDataParallel, DistributedDataParallelOptions, Ranks,
};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::trace::Trace;
use todevice::{Machine, cuda};

use super::ranks::{Replica, set_up};
use super::{Options, WIDTH, network, sgd, step, take_memory};
use crate::{Lab, Prediction, Table, Text, exact, row, timed};

pub(super) fn section(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    if !lab.section(6, "Averaging during the backward pass") {
        return Ok(());
    }
    let guess = lab.predict(
        Prediction::choice(
            "10-leaves",
            "A backward pass computes the gradients of the last layer first. When can their averaging begin?",
        )
        .or("beside", "While the gradients of the other layers are computed.", "The second picture has one bucket, which leaves at the end.")
        .or("after", "When the backward pass is done.", "A gradient is complete when the last use of its parameter has been gone through. It need not wait for the rest.")
        .or("step", "When the optimizer takes its step.", "The optimizer needs the averages, so they have to be there before it.")
        .because("A bucket leaves as soon as the last of its gradients is there, and travels on a stream of its own."),
    );
    let rows = options.batch_size;
    let several = trained(lab.seed(), rows, SEVERAL)?;
    let one = trained(lab.seed(), rows, ONE)?;
    let begins = several.begins_beside();
    lab.picture(
        Timeline::of(&several.trace),
        &format!(
            "One training step of two ranks, in buckets of {SEVERAL} MiB. Each rank has a GPU of its own. The row of copies shows when its \
             buckets are averaged: {}.",
            match begins {
                true => "the first begins before the backward pass has ended",
                false => "none begins before the backward pass has ended",
            }
        ),
    );
    lab.answer(guess, if begins { "beside" } else { "after" });

    lab.think(
        "10-one-bucket",
        "The same step runs with all gradients in one bucket. Nothing else changes. Is it faster, for having fewer messages, or slower?",
    );
    let mut table = Table::new(["bucket_cap_mb", "buckets", "a training step"]);
    for (limit, run) in [(SEVERAL, &several), (ONE, &one)] {
        table = table.row(row![
            format!("{limit}"),
            exact("buckets", run.buckets),
            timed("step_time", run.time)
        ]);
    }
    lab.table(table);
    let note = |run: &Run| format!("{} for the step", words::time(run.time));
    lab.picture(
        Comparison::new()
            .case("several buckets", note(&several), &several.trace)
            .case("one bucket", note(&one), &one.trace),
        &format!(
            "The same step in several buckets and in one. With several, the step takes {}, and with one, {} ({}). The lane of the host \
             is that of rank 0.",
            words::time(several.time),
            words::time(one.time),
            timed("", one.time).kind.name()
        ),
    );
    let verdict = if several.time < one.time {
        "Several buckets are faster here: some of the bytes travel while the GPU computes. With one, the GPU has nothing to do until the \
         average is there."
    } else {
        "Several buckets are no faster here: each further one costs more than it hides."
    };
    lab.prose(Text::from(verdict).raced());
    Ok(())
}

/// The size of a bucket in mebibytes: several buckets, and a single one.
const SEVERAL: f64 = 0.25;
const ONE: f64 = 25.0;

struct Run {
    time: Duration,
    buckets: usize,
    trace: Trace,
}

impl Run {
    /// Whether an average begins before the last kernel of the backward pass.
    fn begins_beside(&self) -> bool {
        let starts = |is: fn(&str, &str) -> bool| {
            let work = self.trace.work.iter().filter(move |work| {
                is(&work.call.kind.name(), work.call.operation.unwrap_or_default())
            });
            work.map(|work| work.span.start)
        };
        let first = starts(|kind, _| kind == "all_reduce").min();
        let last = starts(|_, operation| operation.ends_with("Backward0")).max();
        first.zip(last).is_some_and(|(first, last)| first < last)
    }
}

fn trained(seed: u64, rows: usize, bucket_cap_mb: f64) -> Result<Run> {
    manual_seed(seed);
    let batch = Tensor::randn(&[2 * rows, WIDTH])?;
    let ranks = Ranks::new(2)?;
    // ANCHOR: buckets
    let mut replicas = ranks.run(|rank| {
        let device = set_up(rank)?;
        let x = batch.narrow(0, rank * rows, rows)?.to(device)?;
        let net = network(WIDTH)?;
        net.to(device)?;
        let options = DistributedDataParallelOptions {
            bucket_cap_mb: Some(bucket_cap_mb),
            ..Default::default()
        };
        let model = DistributedDataParallel::new((net, options))?;
        let optimizer = sgd(&model)?;
        Ok(Replica { model, optimizer, x })
    })?;
    // ANCHOR_END: buckets
    // The first step has one bucket, and shows in which order gradients come; the
    // next one makes new buckets. Few rows will do.
    for _ in 0..2 {
        ranks.run_each(&mut replicas, |_, replica| {
            take_memory(&replica.x)?;
            let few = replica.x.narrow(0, 0, rows.min(8))?;
            step(&replica.model, &mut replica.optimizer, &few)
        })?;
    }
    ranks.run(|_| cuda::synchronize())?;
    let (started, trace) = Machine::current().profile(|| {
        ranks.run_each(&mut replicas, |rank, replica| {
            let start = Instant::now();
            one_step(rank, replica)?;
            Ok(start)
        })
    });
    let mut started = started?;
    let times = ranks.run_each(&mut started, |_, start| {
        cuda::synchronize()?;
        Ok(start.elapsed())
    })?;
    Ok(Run {
        time: times.into_iter().max().unwrap_or_default(),
        buckets: replicas[0].model.buckets().len(),
        trace,
    })
}

fn one_step(_rank: usize, replica: &mut Replica) -> Result<()> {
    step(&replica.model, &mut replica.optimizer, &replica.x)
}
