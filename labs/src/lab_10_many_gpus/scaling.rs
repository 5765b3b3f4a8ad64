//! One, two, four, eight GPUs: the gain, and when it is not worth it.

use std::time::Duration;

use todevice::cuda;
use todevice::distributed::{
    CollectiveKind, DistributedDataParallel, Ranks, ReduceOp, collective_time,
};
use todevice::optim::SGD;
use todevice::prelude::*;
use todevice::time::Instant;

use super::ranks::set_up;
use super::{Options, WIDTH, network, sgd, step, take_memory};
use crate::{Lab, Prediction, Table, Text, bytes, exact, modelled, row, timed};

pub(super) fn section(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    if !lab.section(7, "From one GPU to many") {
        return Ok(());
    }
    let rows = options.batch_size;
    let counts: Vec<usize> = [1, 2, 4, 8, 16]
        .into_iter()
        .filter(|count| *count <= cuda::device_count())
        .collect();
    let most = counts.last().copied().unwrap_or(1);
    lab.think(
        "10-weak",
        format!(
            "One GPU trains with {rows} rows in each step. Now there are {most}, with {rows} rows each. How many times as many rows a \
             second do they train on?"
        ),
    );
    let weak = Series::of(lab.seed(), &counts, |_| rows)?;
    lab.table(weak.table(["weak_step_time", "weak_rate", "weak_efficiency"]));

    let guess = lab.predict(
        Prediction::number(
            "10-strong",
            format!(
                "Now the batch stays at {rows} rows, and {most} GPUs share it. How many times as many rows a second as one GPU do they \
                 train on?"
            ),
        )
        .unit("times")
        .positive()
        .tolerance(0.2)
        .because("The work of each GPU shrinks, but there are as many gradients to average, and as many kernels to launch, however few the rows.")
        .raced(),
    );
    let strong = Series::of(lab.seed(), &counts, |count| rows.div_ceil(count))?;
    lab.table(strong.table(["strong_step_time", "strong_rate", "strong_efficiency"]));
    lab.answer(guess, modelled("strong_gain", strong.gain()).unit("times").digits(1));
    let verdict = match (strong.gain() < 1.0, strong.gain() < weak.gain()) {
        (true, _) => {
            "The same batch on all of them is slower than on one. A larger batch for each of them gains more."
        }
        (false, true) => {
            "To share a batch gains less than to give each GPU a batch of its own."
        }
        (false, false) => "Here a shared batch gains as much as one for each GPU.",
    };
    lab.prose(Text::from(verdict).raced());
    lab.table(peaks(rows, &weak, &strong));
    latency(lab, most)
}

struct Replica {
    model: Box<dyn Module>,
    optimizer: SGD,
    x: Tensor,
}

/// The cost of a step on `count` GPUs.
struct Taken {
    count: usize,
    /// Per GPU.
    rows: usize,
    time: Duration,
    peak: u64,
}

impl Taken {
    fn rows_per_second(&self) -> f64 {
        (self.count * self.rows) as f64 / self.time.as_secs_f64()
    }
}

struct Series(Vec<Taken>);

impl Series {
    fn of(
        seed: u64,
        counts: &[usize],
        rows: impl Fn(usize) -> usize,
    ) -> Result<Series> {
        let taken = counts.iter().map(|count| trained(seed, *count, rows(*count)));
        Ok(Series(taken.collect::<Result<_>>()?))
    }

    /// The throughput of the largest number of GPUs, relative to one GPU.
    fn gain(&self) -> f64 {
        match &self.0[..] {
            [one, .., most] => most.rows_per_second() / one.rows_per_second(),
            _ => 1.0,
        }
    }

    fn table(&self, names: [&'static str; 3]) -> Table {
        let [step, rate, efficiency] = names;
        let one = self.0[0].rows_per_second();
        let mut table = Table::new(["GPUs", "rows", "step", "rows/ms", "efficiency"]);
        for taken in &self.0 {
            let per_second = taken.rows_per_second();
            let share = 100.0 * per_second / (taken.count as f64 * one);
            table = table.row(row![
                taken.count,
                taken.rows,
                timed(step, taken.time),
                modelled(rate, per_second / 1e3).digits(0),
                modelled(efficiency, share).unit("%").digits(0)
            ]);
        }
        table
    }
}

fn peaks(rows: usize, weak: &Series, strong: &Series) -> Table {
    let mut table = Table::new([
        "GPUs".to_owned(),
        format!("peak with {rows} rows each"),
        format!("peak with {rows} rows shared"),
    ]);
    for (weak, strong) in weak.0.iter().zip(&strong.0) {
        table = table.row(row![
            weak.count,
            bytes("weak_peak", weak.peak),
            bytes("strong_peak", strong.peak)
        ]);
    }
    table
}

// ANCHOR: measured
/// The time of a training step on `count` GPUs, with `rows` rows on each.
fn trained(seed: u64, count: usize, rows: usize) -> Result<Taken> {
    manual_seed(seed);
    let batch = Tensor::randn(&[rows, WIDTH])?;
    let ranks = Ranks::new(count)?;
    let mut replicas = ranks.run(|rank| {
        let device = set_up(rank)?;
        let x = batch.to(device)?;
        let net = network(WIDTH)?;
        net.to(device)?;
        let model: Box<dyn Module> = match count {
            1 => Box::new(net), // no communication
            _ => Box::new(DistributedDataParallel::new(net)?),
        };
        let optimizer = sgd(&*model)?;
        Ok(Replica { model, optimizer, x })
    })?;
    // Not timed: a step shows the order of the gradients, and the next one makes new
    // buckets. Few rows are enough.
    for _ in 0..2 {
        ranks.run_each(&mut replicas, |_, replica| {
            take_memory(&replica.x)?;
            let few = replica.x.narrow(0, 0, rows.min(8))?;
            step(&*replica.model, &mut replica.optimizer, &few)
        })?;
    }
    let mut started = ranks.run_each(&mut replicas, |_, replica| {
        cuda::synchronize()?;
        cuda::reset_peak_memory_stats();
        let start = Instant::now();
        step(&*replica.model, &mut replica.optimizer, &replica.x)?;
        Ok(start)
    })?;
    let taken = ranks.run_each(&mut started, |_, start| {
        cuda::synchronize()?;
        Ok((start.elapsed(), cuda::max_memory_allocated()))
    })?;
    let time = taken.iter().map(|(time, _)| *time).max().unwrap_or_default();
    let peak = taken.iter().map(|(_, peak)| *peak).max().unwrap_or_default();
    Ok(Taken { count, rows, time, peak })
}
// ANCHOR_END: measured

fn latency(lab: &mut Lab, ranks: usize) -> crate::Result<()> {
    lab.part("thousandth");
    let mut table =
        Table::new(["gradients", "all_reduce", "of that, latency", "ruled by"]);
    for kibibytes in [4, 64, 1 << 10, 64 << 10] {
        // ANCHOR: collective_time
        let kind = CollectiveKind::AllReduce(ReduceOp::Sum);
        let time = collective_time(kind, 1024 * kibibytes, ranks)?;
        // ANCHOR_END: collective_time
        table = table.row(row![
            bytes("gradients", 1024 * kibibytes),
            timed("all_reduce_time", Duration::from_nanos(time.total())),
            timed("steps_time", Duration::from_nanos(time.latency)).digits(4),
            exact("rules", if time.latency_rules() { "latency" } else { "bandwidth" })
        ]);
    }
    lab.table(table);
    lab.prose(
        "An average goes from GPU to GPU in steps, and each step takes its time, however few bytes it carries. Where latency rules, a smaller \
         network gains little.",
    );
    Ok(())
}
