//! Part A, one epoch with different ways of feeding: what limits its speed.

use std::time::Duration;

use drawing::{Comparison, words};
use todevice::Machine;
use todevice::ToOptions;
use todevice::cuda::Stream;
use todevice::data::{DevicePrefetcher, default_collate};
use todevice::prelude::*;
use todevice::trace::{CopyKind, EventKind, Trace};

use super::time_of;
use crate::frame::clock::{launches_wait, wait_for};
use crate::{Figure, Lab, Prediction, Table, Text, Value, machine_figure, row, timed};

/// The size of each data set of small images.
pub(super) const SAMPLES: usize = 512;
/// The size of the data set of large images: six batches.
const LARGE: usize = 384;

// ANCHOR: pictures
/// Grey images of 32 × 32 pixels, as bytes. Each sample costs the CPU some time:
/// it becomes a float tensor of mean 0 and standard deviation 1.
pub(super) struct Pictures {
    pixels: Tensor,
    classes: Vec<i64>,
}

impl Dataset for Pictures {
    type Sample = (Tensor, i64);

    fn len(&self) -> usize {
        self.classes.len()
    }

    fn get(&self, index: usize) -> Result<(Tensor, i64)> {
        let picture = self.pixels.select(0, index as i64)?.to(DType::F32)?;
        let centred = (&picture - picture.mean()?)?;
        let deviation = centred.square()?.mean()?.sqrt()?;
        Ok(((centred / deviation)?, self.classes[index]))
    }
}
// ANCHOR_END: pictures

impl Pictures {
    pub(super) fn new(n: usize) -> Result<Pictures> {
        let pixels = (Tensor::rand(&[n, 1024])? * 255.0)?.to(DType::U8)?;
        Ok(Pictures { pixels, classes: (0..n as i64).map(|i| i % 10).collect() })
    }
}

// ANCHOR: prepared
/// Prepared images of 128 × 128 pixels. The CPU only has to copy the 64 KiB of
/// each.
struct Prepared {
    pictures: Tensor,
    classes: Vec<i64>,
}

impl Dataset for Prepared {
    type Sample = (Tensor, i64);

    fn len(&self) -> usize {
        self.classes.len()
    }

    fn get(&self, index: usize) -> Result<(Tensor, i64)> {
        Ok((self.pictures.select(0, index as i64)?, self.classes[index]))
    }
}
// ANCHOR_END: prepared

type Batches<'a> = Box<dyn Iterator<Item = Result<(Tensor, Tensor)>> + 'a>;

// ANCHOR: train
fn train(
    model: &nn::Sequential,
    optimizer: &mut optim::SGD,
    batches: Batches,
) -> Result<()> {
    let loss_fn = nn::CrossEntropyLoss::default();
    for batch in batches {
        let (x, y) = batch?;
        let loss = loss_fn.forward(&model.forward(&x)?, &y)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
    }
    Ok(())
}
// ANCHOR_END: train

struct Training {
    model: nn::Sequential,
    sgd: optim::SGD,
    device: Device,
    epochs: Vec<Epoch>,
}

/// An epoch with one way of feeding.
struct Epoch {
    name: &'static str,
    time: Duration,
    trace: Trace,
}

impl Training {
    // ANCHOR: training
    fn new(features: usize, hidden: usize, device: Device) -> Result<Training> {
        let hidden_layer = nn::Linear::new(features, hidden)?;
        let model =
            nn::Sequential::new((hidden_layer, nn::ReLU, nn::Linear::new(hidden, 10)?));
        model.to(device)?;
        let sgd = optim::SGD::new(
            model.parameters(),
            SGDOptions { lr: 0.01, ..Default::default() },
        )?;
        Ok(Training { model, sgd, device, epochs: Vec::new() })
    }
    // ANCHOR_END: training

    /// Runs and times an epoch of these batches, until the device has finished.
    fn way<'a>(
        &mut self,
        name: &'static str,
        batches: impl Fn() -> Batches<'a>,
    ) -> Result<()> {
        // Not timed: the first batches allocate memory.
        train(&self.model, &mut self.sgd, Box::new(batches().take(2)))?;
        wait_for(self.device)?;
        let epoch = || {
            train(&self.model, &mut self.sgd, batches())?;
            wait_for(self.device)
        };
        let (time, trace) = Machine::current().profile(|| time_of(epoch));
        self.epochs.push(Epoch { name, time: time?, trace });
        Ok(())
    }

    /// Draws two of the ways as timelines on one axis.
    fn compared(&self, ways: [usize; 2]) -> Comparison {
        ways.into_iter().fold(Comparison::new(), |all, way| {
            let Epoch { name, time, trace } = &self.epochs[way];
            all.case(*name, words::time(*time), trace)
        })
    }

    fn table(&self) -> Table {
        let on_gpu = self.device.is_cuda();
        let mut header = vec!["batches", "epoch"];
        header.extend(on_gpu.then_some(["copies", "busy"]).into_iter().flatten());
        let mut table = Table::new(header);
        for epoch in &self.epochs {
            let mut cells = row![epoch.name, timed("epoch_time", epoch.time).digits(2)];
            if on_gpu {
                let copies = epoch.copies().map(|time| 1e3 * time.as_secs_f64());
                let busy = epoch.busy().map(|share| 100.0 * share);
                cells.push(seen("copy_time", copies).unit("ms").digits(2).into());
                cells.push(seen("compute_share", busy).unit("%").digits(0).into());
            }
            table = table.row(cells);
        }
        table
    }
}

/// A number from the trace of a simulated GPU; unknown on a real one.
fn seen(name: &'static str, number: Option<f64>) -> Figure {
    machine_figure(name, number.map_or_else(|| Value::from("unknown"), Value::from))
}

impl Epoch {
    fn copies(&self) -> Option<Duration> {
        let is_copy =
            |kind| matches!(kind, EventKind::Copy { kind: CopyKind::HostToDevice, .. });
        let copies = self.trace.work.iter().filter(|work| is_copy(work.call.kind));
        let nanoseconds = copies.map(|work| work.span.end - work.span.start).sum();
        self.is_traced().then_some(Duration::from_nanos(nanoseconds))
    }

    /// The share of the epoch in which the GPU computed.
    fn busy(&self) -> Option<f64> {
        let device = self.trace.work.first()?.span.stream.device;
        Some(self.trace.compute_time(device).as_secs_f64() / self.time.as_secs_f64())
    }

    fn is_traced(&self) -> bool {
        !self.trace.work.is_empty()
    }

    fn saves(&self, share: f64, other: &Epoch) -> bool {
        self.time.as_secs_f64() < share * other.time.as_secs_f64()
    }
}

// ANCHOR: moved
/// The batches of a loader, each moved when the loop requests it.
fn moved<D>(
    loader: &DataLoader<D, (Tensor, Tensor)>,
    non_blocking: bool,
    device: Device,
) -> Batches<'_>
where
    D: Dataset + 'static,
{
    let to = ToOptions { device: Some(device), non_blocking, ..Default::default() };
    Box::new(loader.iter().map(move |batch| {
        let (x, y) = batch?;
        Ok((x.to(to)?, y.to(to)?))
    }))
}

/// The batches of a loader, each copied ahead of time, on a copy stream.
fn ahead<'a, D>(
    loader: &'a DataLoader<D, (Tensor, Tensor)>,
    copies: &Stream,
) -> Batches<'a>
where
    D: Dataset + 'static,
{
    Box::new(DevicePrefetcher::with_stream(loader, copies))
}
// ANCHOR_END: moved

pub(super) fn one_epoch(lab: &mut Lab, batch_size: usize) -> crate::Result<()> {
    let device = lab.device();
    manual_seed(lab.seed());
    let guess = lab.predict_on_gpu(
        Prediction::choice(
            "09-shorter",
            "The samples of a data set take the CPU some time to prepare, and the network is small. What shortens an epoch \
             most?",
        )
        .or("pinned", "Pinned memory.", "The copies take too small a part of the epoch for that.")
        .or("ahead", "Copies that nobody waits for.", "The copies take too small a part of the epoch for that.")
        .or("workers", "Workers.", "Here the samples are not what the epoch waits for.")
        .because("Speeding up the slowest part of the epoch saves most.")
        .raced(),
    );
    // ANCHOR: loader
    let loader = |num_workers, pin_memory| {
        let options = DataLoaderOptions {
            batch_size,
            num_workers,
            pin_memory,
            ..Default::default()
        };
        DataLoader::new(Pictures::new(SAMPLES)?, options)
    };
    let mut training = Training::new(1024, 256, device)?;
    // ANCHOR_END: loader
    if lab.gpu().is_none() {
        let (none, one) = (loader(0, false)?, loader(1, false)?);
        training.way("no workers", || moved(&none, false, device))?;
        training.way("1 worker", || moved(&one, false, device))?;
        lab.table(training.table());
        lab.prose(
            "With --gpu sim:t4 you see eight ways to bring the batches to a GPU, and how much of the time it computes.",
        );
        return Ok(());
    }
    // ANCHOR: ways
    let (pageable, pinned) = (loader(0, false)?, loader(0, true)?);
    training.way("pageable", || moved(&pageable, false, device))?;
    training.way("pinned", || moved(&pinned, false, device))?;
    training.way("+ non_blocking", || moved(&pinned, true, device))?;

    let copies = Stream::new(device)?;
    training.way("+ prefetcher", || ahead(&pinned, &copies))?;

    let (two, four) = (loader(2, true)?, loader(4, true)?);
    training.way("+ 2 workers", || ahead(&two, &copies))?;
    training.way("+ 4 workers", || ahead(&four, &copies))?;

    let to_device = move |samples: Vec<(Tensor, i64)>| {
        let (x, y) = default_collate(samples)?;
        Ok((x.to(device)?, y.to(device)?))
    };
    let options = DataLoaderOptions { batch_size, ..Default::default() };
    let collated =
        DataLoader::with_collate_fn(Pictures::new(SAMPLES)?, to_device, options)?;
    training.way("collate to GPU", || Box::new(collated.iter()))?;

    let all: Vec<usize> = (0..SAMPLES).collect();
    let (x, y) = Pictures::new(SAMPLES)?.get_batch(&all)?;
    let xs = x.to(device)?.split(batch_size, 0)?;
    let ys = y.to(device)?.split(batch_size, 0)?;
    training.way("data on the GPU", || {
        Box::new(xs.iter().cloned().zip(ys.iter().cloned()).map(Ok))
    })?;
    // ANCHOR_END: ways
    lab.table(training.table());
    lab.picture(
        training.compared([0, 5]),
        "One epoch, fed in two ways: above without workers and from pageable memory, below with workers, pinned memory \
         and a prefetcher.",
    );
    lab.prose(
        "Each + adds to the row above. \"copies\" is the time of all copies to the GPU, \"busy\" the share of the epoch in \
         which the GPU computes.",
    );
    let [pageable, _, _, prefetched, _, workers, ..] = &training.epochs[..] else {
        return Err("eight ways".into());
    };
    let pinned = &training.epochs[1];
    let saved = |before: &Epoch, after: &Epoch| before.time.saturating_sub(after.time);
    let savings = [
        (saved(pageable, pinned), "pinned"),
        (saved(pinned, prefetched), "ahead"),
        (saved(prefetched, workers), "workers"),
    ];
    lab.answer(guess, savings.into_iter().max().map_or("workers", |(_, what)| what));
    let cheaper_copies = match prefetched.saves(0.9, pageable) {
        true => "What makes the copies cheaper saves something.",
        false => "What makes the copies cheaper changes little.",
    };
    let sharing = if workers.saves(0.75, prefetched) {
        "Workers change much: what set the pace was the CPU, which prepared one sample after the other."
    } else if batch_size == SAMPLES {
        "Workers change little, because they share batches, and here all samples are a single batch."
    } else if workers.busy().is_some_and(|share| share > 0.8) {
        "Workers change little, because here the GPU sets the pace: it is busy most of the time."
    } else {
        "Workers change little, because the host sets the pace: it has to ask for every step, and the batches are small."
    };
    lab.prose(Text::from(format!("{cheaper_copies} {sharing}")).raced());
    lab.prose(
        "If the data is on the GPU already, prepared once, there is nothing to load, but it has to fit there. A collate_fn that \
         uses the GPU allows no workers: section 6.",
    );
    copies_set_the_pace(lab)
}

fn copies_set_the_pace(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.part("pictures");
    // ANCHOR: copies
    let pictures = Tensor::rand(&[LARGE, 128 * 128])?;
    let loader = |pin_memory| {
        let classes = (0..LARGE as i64).map(|i| i % 10).collect();
        let dataset = Prepared { pictures: pictures.clone(), classes };
        let four = DataLoaderOptions { num_workers: 4, ..Default::default() };
        DataLoader::new(
            dataset,
            DataLoaderOptions { batch_size: 64, pin_memory, ..four },
        )
    };
    let copies = Stream::new(device)?;
    let (pageable, pinned) = (loader(false)?, loader(true)?);
    // Not timed: this allocates pinned memory for all batches in flight.
    drop(pinned.iter().collect::<Result<Vec<_>>>()?);
    let mut training = Training::new(128 * 128, 32, device)?;
    training.way("pageable", || moved(&pageable, false, device))?;
    training.way("pinned", || moved(&pinned, false, device))?;
    training.way("+ non_blocking", || moved(&pinned, true, device))?;
    training.way("+ prefetcher", || ahead(&pinned, &copies))?;
    // ANCHOR_END: copies
    lab.table(training.table());
    lab.picture(
        training.compared([2, 3]),
        "Above, on one stream, a copy and the work with it take turns. Below, a prefetcher copies the next batch on a \
         stream of its own.",
    );
    lab.prose("The loader is the same in all rows: it has 4 workers, and where it pins, it pins beside the loop.");
    if launches_wait(device)? {
        lab.prose(
            Text::from(
                "CUDA_LAUNCH_BLOCKING=1 is set, so every copy is waited for, whatever asked for it: only the time of the \
                 copies themselves can change.",
            )
            .raced(),
        );
        return Ok(());
    }
    lab.prose(Text::from(what_copies_gain(&training.epochs)?).raced());
    Ok(())
}

/// The gain of each of the four ways, by their times.
fn what_copies_gain(epochs: &[Epoch]) -> crate::Result<String> {
    let [pageable, pinned, non_blocking, prefetched] = epochs else {
        return Err("four ways".into());
    };
    let copies = match pageable.copies().is_some_and(|time| 2 * time > pageable.time) {
        true => "From pageable memory the copies take most of the epoch.",
        false => "Here the copies are not what takes the time.",
    };
    let pinning = if pinned.saves(0.95, pageable) {
        "Pinned memory makes each of them shorter."
    } else {
        "Pinned memory gains nothing: what it saves goes into pinning."
    };
    let beside = if prefetched.saves(0.95, non_blocking) {
        "A stream of its own lets the next copy run beside the work, and that saves time."
    } else if prefetched.saves(1.0, non_blocking) {
        "A stream of its own lets the next copy run beside the work, but the work is so short that this saves hardly \
         anything."
    } else {
        "A stream of its own gains nothing: here the host sets the pace, and a stream with its events is one more thing \
         to ask for."
    };
    Ok(format!(
        "{copies} {pinning} non_blocking lets the host ask for the work while the copy runs, and cannot gain more than \
         this asking takes, because the work still waits for the copy. {beside}"
    ))
}
