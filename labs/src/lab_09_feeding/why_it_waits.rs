//! Part B: why is my GPU at 11 %?

use std::iter;

use drawing::smi::watts;
use todevice::ToOptions;
use todevice::data::{DataLoader, DataLoaderOptions};
use todevice::monitor::Gpu;
use todevice::prelude::*;
use todevice::time::Instant;

use super::feeding::Pictures;
use crate::lab_05_monitoring::{
    BATCH, Seen, Training, found, on_gpu, pause, pictures, reading, wait_for, watched,
};
use crate::{Cell, Figure, Lab, Prediction, Table, row};

pub(super) fn sections(lab: &mut Lab) -> crate::Result<()> {
    why(lab)?;
    busy_is_not_full(lab)
}

fn why(lab: &mut Lab) -> crate::Result<()> {
    lab.section(7, "Why is my GPU at 11 %?");
    lab.think(
        "05-how-busy",
        "A network of two layers trains on 1024 pictures in each step. They are on the GPU already, and nobody reads a number. How \
         busy is the GPU?",
    );
    if !on_gpu(
        lab,
        "four training loops that starve a GPU, each in another way, and how a monitor tells them apart.",
    ) {
        return Ok(());
    }
    let (device, seed) = (lab.device(), lab.seed());
    let fed = well_fed(seed, device)?;
    lab.table(readings(FED, &[("well fed", &fed)]));
    lab.prose(
        "Nearly all the time. Most of its multiprocessors have work, and it draws most of the watts it may. The host is \
         at 100 % too: it launches, and waits where the queue is full.",
    );

    lab.think(
        "05-four-loops",
        "Four loops train the same network, and each starves the GPU in another way: a loader that is too slow, numbers \
         read in every step, a tiny batch, copies from pageable memory. Which reading gives each of them away?",
    );
    let loops = [
        (TINY, tiny_batches(seed, device)?),
        (PAGEABLE, pageable(seed, device)?),
        (LOADER, slow_loader(seed, device)?),
        (WAITS, waits(seed, device)?),
    ];
    let [(_, a), (_, b), (_, c), (_, d)] = &loops;
    lab.table(readings(STARVED, &[("A", a), ("B", b), ("C", c), ("D", d)]));
    lab.prose(
        "GPU-Util alone does not tell: look for the one other number that is odd. One has a host that is busier than a \
         single thread can be. One has a busy bus. One has a GPU that runs kernels more than half of the time, with few of \
         its multiprocessors at work. And one has nothing odd at all, which says something too.",
    );

    let guess = lab.predict(
        Prediction::order(
            "09-which-loop",
            "Which loop is which? Put them in the order A, B, C, D.",
            [LOADER, PAGEABLE, TINY, WAITS],
        )
        .because("A, B and C have one odd reading each, and D has none."),
    );
    lab.table(
        Table::new(["loop", "what it is", "what gives it away"])
            .row(row!["A", TINY, "kernels run, yet few SMs have work: they are tiny"])
            .row(row![
                "B",
                PAGEABLE,
                "much comes over the bus, and the GPU waits for it"
            ])
            .row(row!["C", LOADER, "CPU above 100 %: the workers are at work"])
            .row(row!["D", WAITS, "nothing: GPU and host wait for each other in turn"]),
    );
    lab.answer(
        guess,
        loops.iter().map(|(what, _)| (*what).to_owned()).collect::<Vec<_>>(),
    );

    lab.think("05-cures", "What would you do about each of the four?");
    lab.prose(
        "A wants larger batches. B wants pinned memory and a copy that runs ahead. C wants more workers, or less work for \
         each sample. D wants its numbers read less often. The first table is what is left when all four are cured.",
    );
    Ok(())
}

// What starves the GPU.
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

/// Readings from top to bottom, loops from left to right.
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

// ANCHOR: fed
fn well_fed(seed: u64, device: Device) -> Result<Seen> {
    let mut training = Training::new(seed, device)?;
    let (x, y) = pictures(BATCH)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    watched(device, || training.step(&x, &y).map(drop))
}
// ANCHOR_END: fed

// ANCHOR: tiny
fn tiny_batches(seed: u64, device: Device) -> Result<Seen> {
    let mut training = Training::new(seed, device)?;
    let (x, y) = pictures(4)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    watched(device, || training.step(&x, &y).map(drop))
}
// ANCHOR_END: tiny

// ANCHOR: from_pageable
fn pageable(seed: u64, device: Device) -> Result<Seen> {
    let mut training = Training::new(seed, device)?;
    let (x, y) = pictures(BATCH)?;
    watched(device, || training.step(&x.to(device)?, &y.to(device)?).map(drop))
}
// ANCHOR_END: from_pageable

// ANCHOR: slow_loader
fn slow_loader(seed: u64, device: Device) -> Result<Seen> {
    let mut training = Training::new(seed, device)?;
    let options = DataLoaderOptions {
        batch_size: 320,
        num_workers: 4,
        pin_memory: true,
        ..Default::default()
    };
    let loader = DataLoader::new(Pictures::new(20 * 320)?, options)?;
    let to_gpu =
        ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
    let mut batches = iter::repeat_with(|| loader.iter()).flatten();
    watched(device, || {
        let (x, y) =
            batches.next().ok_or_else(|| Error::custom("no more pictures"))??;
        training.step(&x.to(to_gpu)?, &y.to(to_gpu)?).map(drop)
    })
}
// ANCHOR_END: slow_loader

// ANCHOR: waits
fn waits(seed: u64, device: Device) -> Result<Seen> {
    let mut training = Training::new(seed, device)?;
    let (x, y) = pictures(BATCH)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    watched(device, || {
        let loss = training.step(&x, &y)?;
        check(&loss)?;
        for parameter in training.model.parameters() {
            check(&parameter.tensor())?;
            parameter.grad().iter().try_for_each(check)?;
        }
        Ok(())
    })
}

/// Left in the loop when a NaN was found.
fn check(x: &Tensor) -> Result<()> {
    match x.detach().sum()?.item()?.is_finite() {
        true => Ok(()),
        false => Err(Error::custom("NaN")),
    }
}
// ANCHOR_END: waits

fn busy_is_not_full(lab: &mut Lab) -> crate::Result<()> {
    lab.section(8, "How full is busy?");
    let times_as_many = "`argmax` finds the largest of 65536 numbers, in one row, in 8 rows, or in 80. Each keeps the GPU \
                         busy, launch after launch. A row is one block of threads, and a multiprocessor can work on several blocks at once. How many times as many rows a second get done with 80 in a launch as \
                         with one?";
    if !lab.device().is_cuda() {
        lab.think("05-argmax", times_as_many);
    }
    if !on_gpu(lab, "a busy GPU of which 39 of 40 multiprocessors have nothing to do.")
    {
        return Ok(());
    }
    let guess = lab.predict(
        Prediction::number("05-argmax", times_as_many)
            .tolerance(0.25)
            .because(
                "With a single row one multiprocessor works on one block, and the others stand idle. With 80 there is room for all of them at once, and \
                 GPU-Util does not mind.",
            )
            .raced(),
    );
    let device = lab.device();
    let mut seen = Vec::new();
    // ANCHOR: rows
    for rows in [1, 8, 80] {
        let x = Tensor::rand_with(&[rows, 1 << 16], device, None)?;
        pause();
        let (start, mut launches) = (Instant::now(), 0);
        let (gpu, _) = watched(device, || {
            for _ in 0..20 {
                x.argmax(1, false)?; // one block of threads a row
                launches += 1;
            }
            wait_for(device)
        })?;
        let per_millisecond =
            (rows * launches) as f64 / start.elapsed().as_secs_f64() / 1e3;
        seen.push((rows, gpu, per_millisecond));
    }
    // ANCHOR_END: rows
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
            .row(line("rows a ms", &|(_, _, rate)| {
                found("rows_per_millisecond", rate.round() as i64)
            })),
    );
    let [(.., one), _, (.., eighty)] = &seen[..] else {
        return Err("three sizes".into());
    };
    lab.answer(guess, found("rows_gain", eighty / one).digits(0));
    lab.prose(
        "GPU-Util asks whether any kernel ran, not how much of the GPU it filled. One row is one block of threads, and one \
         block is on one multiprocessor; the others stand idle. What gives it away in nvidia-smi is the power. \
         SM active (of the multiprocessors, the share with work) and occupancy (of the threads there is room for, the \
         share that is there) say it outright; they come from a profiler, or from DCGM in a data centre.",
    );
    Ok(())
}
