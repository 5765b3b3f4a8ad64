//! Part B: why is my GPU idle?

use std::iter;

use drawing::smi::watts;
use todevice::ToOptions;
use todevice::data::{DataLoader, DataLoaderOptions};
use todevice::monitor::Gpu;
use todevice::prelude::*;
use todevice::time::Instant;

use super::epoch::Pictures;
use crate::frame::clock::{launches_wait, wait_for};
use crate::lab_05_monitoring::{
    BATCH, Seen, Training, pause, pictures, reading, watched,
};
use crate::{Cell, Figure, Lab, Prediction, Table, Text, machine_figure, row};

pub(super) fn sections(lab: &mut Lab) -> crate::Result<()> {
    if lab.section(7, "Why is my GPU not busy?") {
        why(lab)?;
    }
    if lab.section(8, "How full is busy?") {
        busy_is_not_full(lab)?;
    }
    Ok(())
}

fn why(lab: &mut Lab) -> crate::Result<()> {
    lab.part("how-busy");
    if !lab.has_gpu_to_show(
        "four training loops that keep a GPU waiting, each in another way, and how a monitor tells them apart.",
    ) {
        return Ok(());
    }
    let (device, seed) = (lab.device(), lab.seed());
    let seen: Watched<Seen> = &|device, step| watched(device, || step().map(drop));
    let fed = well_fed(seed, device, BATCH, seen)?;
    lab.table(readings(FED, &[("well fed", &fed)]));
    let verdict = if launches_wait(device)? {
        "CUDA_LAUNCH_BLOCKING=1 is set, so the host launches each kernel only when the one before is done. Between the two \
         the GPU has nothing to do."
    } else if fed.0.utilization.is_some_and(|percent| percent >= 85) {
        "The GPU is busy nearly all the time. What is left are the short pauses between kernels. The host is at 100 % too: it launches, \
         and waits where the queue is full."
    } else {
        "The GPU is idle for a good part of the time, although nobody makes it wait. The kernels are so short that the pauses between them, \
         or the host that launches them, take that time. The host is at 100 %."
    };
    lab.prose(Text::from(verdict).raced());

    lab.part("four-loops");
    let loops = [
        (TINY, tiny_batches(seed, device, seen)?),
        (PAGEABLE, pageable(seed, device, BATCH, seen)?),
        (LOADER, slow_loader(seed, device, 320, 4, seen)?),
        (WAITS, waits(seed, device, BATCH, seen)?),
    ];
    let [(_, a), (_, b), (_, c), (_, d)] = &loops;
    lab.table(readings(STARVED, &[("A", a), ("B", b), ("C", c), ("D", d)]));
    lab.prose(
        "GPU-Util does not tell which is which. Look at the host first: one loop keeps it busier than a single thread \
         can. Of the other three, one has batches coming over the bus. Of the last two, one runs kernels that few of the \
         multiprocessors take part in. And one shows nothing odd at all, and that tells you something too.",
    );

    let told_apart = [a, b, d].iter().all(|other| cpu(c) > cpu(other))
        && [a, d].iter().all(|other| b.0.pcie_to_device > other.0.pcie_to_device)
        && in_use(a) < 0.8 * in_use(d);
    let guess = lab.predict(
        Prediction::order(
            "09-which-loop",
            "Which loop is which? Put them in the order A, B, C, D.",
            [LOADER, PAGEABLE, TINY, WAITS],
        )
        .because(
            "Workers show in the CPU, copies on the bus, and tiny kernels in SM active. The loop that shows none of \
             these signs is the one that waits.",
        )
        .raced()
        .only_if(told_apart),
    );
    lab.table(
        Table::new(["loop", "what it is", "what gives it away"])
            .row(row!["A", TINY, "SM active is far below GPU-Util"])
            .row(row!["B", PAGEABLE, "batches on the bus, and no workers"])
            .row(row!["C", LOADER, "CPU above 100 %, workers included"])
            .row(row!["D", WAITS, "nothing: GPU and host wait for each other"]),
    );
    lab.answer(
        guess,
        loops.iter().map(|(what, _)| (*what).to_owned()).collect::<Vec<_>>(),
    );
    let verdict = if !told_apart {
        "On this machine the readings do not tell the four apart: a timeline has to."
    } else if a.0.power_draw < d.0.power_draw && a.0.utilization >= d.0.utilization {
        "nvidia-smi has no column for SM active, but it shows that A draws less power than D, although A's kernels run \
         for at least as much of the time."
    } else {
        "nvidia-smi has no column for SM active, and here its other columns do not tell A from D for certain."
    };
    lab.prose(Text::from(verdict).raced());

    lab.think("05-cures", "What would you do about each of the four?");
    lab.prose(
        "A wants larger batches. B wants pinned memory and a copy that runs ahead. C wants more workers, or less work for \
         each sample. D wants its numbers read less often. The first table shows a loop that has none of the four.",
    );
    Ok(())
}

/// The CPU usage in percent of one core.
fn cpu((_, percent): &Seen) -> f64 {
    percent.unwrap_or(f64::NAN)
}

fn in_use((gpu, _): &Seen) -> f64 {
    match (gpu.sm_active, gpu.utilization) {
        (Some(active), Some(busy)) => f64::from(active) / f64::from(busy),
        _ => f64::NAN,
    }
}

// The reasons why the GPU waits.
const TINY: &str = "tiny batches";
const PAGEABLE: &str = "pageable copies";
const LOADER: &str = "a slow loader";
const WAITS: &str = "numbers read";

/// The names of a table's figures, from top to bottom.
type Names = [&'static str; 6];

const FED: Names = [
    "fed_utilization",
    "fed_memory_busy",
    "fed_sm_active",
    "fed_power",
    "fed_from_host",
    "fed_cpu",
];
const STARVED: Names = [
    "starved_utilization",
    "starved_memory_busy",
    "starved_sm_active",
    "starved_power",
    "starved_from_host",
    "starved_cpu",
];

/// A table with readings as rows and loops as columns.
fn readings(names: Names, loops: &[(&str, &Seen)]) -> Table {
    let line = |label: &str, figure: &dyn Fn(&Seen) -> Figure| -> Vec<Cell> {
        let figures = loops.iter().map(|(_, seen)| Cell::from(figure(seen)));
        [Cell::from(label)].into_iter().chain(figures).collect()
    };
    let [utilization, memory_busy, sm_active, power, from_host, cpu] = names;
    let megabytes = |bytes: Option<u64>| bytes.map(|bytes| bytes / 1_000_000);
    Table::new([""].into_iter().chain(loops.iter().map(|(name, _)| *name)))
        .row(line("GPU-Util, %", &|(gpu, _)| reading(utilization, gpu.utilization)))
        .row(line("memory busy, %", &|(gpu, _)| {
            reading(memory_busy, gpu.memory_utilization)
        }))
        .row(line("SM active, %", &|(gpu, _)| reading(sm_active, gpu.sm_active)))
        .row(line("Pwr, W", &|(gpu, _)| reading(power, watts(gpu.power_draw))))
        .row(line("from host, MB/s", &|(gpu, _)| {
            reading(from_host, megabytes(gpu.pcie_to_device))
        }))
        .row(line("CPU, %", &|(_, percent)| {
            reading(cpu, percent.map(|percent| percent.round() as i64))
        }))
}

/// Watches a loop: calls its step, which returns the loss, any number of times.
pub(crate) type Watched<'a, R> =
    &'a dyn Fn(Device, &mut dyn FnMut() -> Result<Tensor>) -> Result<R>;

// ANCHOR: fed
pub(crate) fn well_fed<R>(
    seed: u64,
    device: Device,
    batch: usize,
    watched: Watched<R>,
) -> Result<R> {
    let mut training = Training::new(seed, device)?;
    let (x, y) = pictures(batch)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    watched(device, &mut || training.step(&x, &y))
}
// ANCHOR_END: fed

// ANCHOR: tiny
pub(crate) fn tiny_batches<R>(
    seed: u64,
    device: Device,
    watched: Watched<R>,
) -> Result<R> {
    let mut training = Training::new(seed, device)?;
    let (x, y) = pictures(4)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    watched(device, &mut || training.step(&x, &y))
}
// ANCHOR_END: tiny

// ANCHOR: from_pageable
pub(crate) fn pageable<R>(
    seed: u64,
    device: Device,
    batch: usize,
    watched: Watched<R>,
) -> Result<R> {
    let mut training = Training::new(seed, device)?;
    let (x, y) = pictures(batch)?;
    watched(device, &mut || training.step(&x.to(device)?, &y.to(device)?))
}
// ANCHOR_END: from_pageable

// ANCHOR: slow_loader
pub(crate) fn slow_loader<R>(
    seed: u64,
    device: Device,
    batch_size: usize,
    num_workers: usize,
    watched: Watched<R>,
) -> Result<R> {
    let mut training = Training::new(seed, device)?;
    let options = DataLoaderOptions {
        batch_size,
        num_workers,
        pin_memory: true,
        ..Default::default()
    };
    let loader = DataLoader::new(Pictures::new(20 * batch_size)?, options)?;
    let to_gpu =
        ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
    let mut batches = iter::repeat_with(|| loader.iter()).flatten();
    watched(device, &mut || {
        let batch = batches.next().ok_or_else(|| Error::custom("no more pictures"))?;
        let (x, y) = batch?;
        training.step(&x.to(to_gpu)?, &y.to(to_gpu)?)
    })
}
// ANCHOR_END: slow_loader

// ANCHOR: waits
pub(crate) fn waits<R>(
    seed: u64,
    device: Device,
    batch: usize,
    watched: Watched<R>,
) -> Result<R> {
    let mut training = Training::new(seed, device)?;
    let (x, y) = pictures(batch)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    watched(device, &mut || {
        let loss = training.step(&x, &y)?;
        check(&loss)?;
        for parameter in training.model.parameters() {
            check(&parameter.tensor())?;
            parameter.grad().iter().try_for_each(check)?;
        }
        Ok(loss)
    })
}

/// A forgotten check for NaN in the loop.
fn check(x: &Tensor) -> Result<()> {
    match x.detach().sum()?.item()?.is_finite() {
        true => Ok(()),
        false => Err(Error::custom("NaN")),
    }
}
// ANCHOR_END: waits

// ANCHOR: rows
/// Keeps the GPU busy with a tensor of `rows` rows. Returns the monitor's reading and
/// the number of rows per millisecond.
fn argmax_of(rows: usize, device: Device) -> Result<(Gpu, f64)> {
    let x = Tensor::rand((&[rows, 1 << 16], device))?;
    pause();
    let (start, mut launches) = (Instant::now(), 0);
    let (gpu, _) = watched(device, || {
        for _ in 0..20 {
            x.argmax(1, false)?; // one block of threads per row
            launches += 1;
        }
        wait_for(device)
    })?;
    let milliseconds = 1e3 * start.elapsed().as_secs_f64();
    Ok((gpu, (rows * launches) as f64 / milliseconds))
}
// ANCHOR_END: rows

fn busy_is_not_full(lab: &mut Lab) -> crate::Result<()> {
    let times_as_many = "`argmax` finds the largest of the 65536 numbers in each row, in a tensor of 1, 8 or 80 \
                         rows. Each tensor keeps the GPU busy, launch after launch. A row is one block of threads, and a \
                         multiprocessor can work on several blocks at once. With 80 rows in a launch, how many times \
                         as many rows get done in a second as with one row?";
    if lab.gpu().is_none() {
        lab.part("argmax");
    }
    if !lab.has_gpu_to_show("a busy GPU on which all multiprocessors but one are idle.")
    {
        return Ok(());
    }
    let guess = lab.predict(
        Prediction::number("05-argmax", times_as_many)
            .positive()
            .tolerance(0.25)
            .because(
                "A single row keeps one multiprocessor at work, and the others stand idle. More rows find room beside it, \
                 and GPU-Util stays as it is.",
            )
            .raced(),
    );
    let device = lab.device();
    let mut seen = Vec::new();
    for rows in [1, 8, 80] {
        let (gpu, per_millisecond) = argmax_of(rows, device)?;
        seen.push((rows, gpu, per_millisecond));
    }
    let line =
        |label: &str, figure: &dyn Fn(&(usize, Gpu, f64)) -> Figure| -> Vec<Cell> {
            let figures = seen.iter().map(|seen| Cell::from(figure(seen)));
            [Cell::from(label)].into_iter().chain(figures).collect()
        };
    let columns = seen
        .iter()
        .map(|(rows, ..)| format!("{rows} row{}", if *rows == 1 { "" } else { "s" }));
    lab.table(
        Table::new([String::new()].into_iter().chain(columns))
            .row(line("GPU-Util, %", &|(_, gpu, _)| {
                reading("rows_utilization", gpu.utilization)
            }))
            .row(line("SM active, %", &|(_, gpu, _)| {
                reading("rows_sm_active", gpu.sm_active)
            }))
            .row(line("occupancy, %", &|(_, gpu, _)| {
                reading("rows_occupancy", gpu.sm_occupancy)
            }))
            .row(line("Pwr, W", &|(_, gpu, _)| {
                reading("rows_power", watts(gpu.power_draw))
            }))
            .row(line("rows per ms", &|(_, _, rate)| {
                machine_figure("rows_per_millisecond", rate.round() as i64)
            })),
    );
    let [(.., one), _, (.., eighty)] = &seen[..] else {
        return Err("three sizes".into());
    };
    lab.answer(guess, machine_figure("rows_gain", eighty / one).digits(0));
    lab.prose(
        "GPU-Util asks whether any kernel ran, not how much of the GPU it filled. One row is one block of threads, and one \
         block runs on one multiprocessor; the others stand idle. SM active is the share of the multiprocessors that had \
         work, and occupancy the share of all places for threads that were taken. Both come from a profiler, or from DCGM \
         in a data centre. With nvidia-smi alone, look at the power.",
    );
    Ok(())
}
