//! Part A: the way of a batch.

use std::time::Duration;

use drawing::Timeline;
use todevice::cuda::{self, Stream};
use todevice::data::{DevicePrefetcher, default_collate};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::trace::{Trace, record_function};
use todevice::{Machine, RaceCheck, ToOptions};

use super::Options;
use crate::lab_05_monitoring::{found, wait_for};
use crate::render_text::wrap;
use crate::{Figure, Lab, Prediction, Table, exact, raced, row, text, timed};

pub(super) fn sections(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    lab.section(1, "Pageable and pinned");
    pageable_and_pinned(lab)?;

    lab.section(2, "What blocks the host");
    what_blocks_the_host(lab)?;

    lab.section(3, "What the host may not touch yet");
    stale_and_torn(lab)?;

    lab.section(4, "One epoch, fed in different ways");
    one_epoch(lab, options.batch_size)?;

    lab.section_apart(
        5,
        "How many workers?",
        "fewer workers are tried where time is measured",
    );
    more_workers(lab, options)?;

    lab.section(6, "Created on the device or moved");
    created_or_moved(lab)
}

fn microseconds(name: &'static str, time: Duration) -> Figure {
    found(name, time.as_secs_f64() * 1e6).unit("µs").digits(0)
}

fn time_of<R>(run: impl FnOnce() -> Result<R>) -> Result<Duration> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed())
}

fn pageable_and_pinned(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    if !device.is_cuda() {
        lab.think(
            "09-copies-what",
            "The batch is on the CPU, and so is the model. What does `x.to(device)` copy?",
        );
        let x = Tensor::ones(&[64, 1024])?;
        lab.print(text!(
            "x.to(cpu) is x itself: {}",
            exact("same", x.to(device)?.is_same(&x).to_string())
        ));
        lab.prose(
            "Nothing has to get anywhere, so nothing is copied, and pinned memory would be of no use. --gpu sim:t4 \
             shows how fast copies to a GPU are, from pageable memory and from pinned memory.",
        );
        return Ok(());
    }
    lab.think(
        "09-pinned",
        "Pinned memory is memory of the host too. How many times as fast is a copy of 8 MiB from it?",
    );
    // To the CPU, a copy that nobody waits for goes to pinned memory.
    let into_pinned = ToOptions {
        device: Some(Device::Cpu),
        non_blocking: true,
        ..Default::default()
    };
    let mut table = Table::new(["copy", "pageable", "pinned"]);
    for (size, bytes) in [("64 KiB", 1 << 16), ("1 MiB", 1 << 20), ("8 MiB", 1 << 23)] {
        // ANCHOR: bandwidth
        let pageable = Tensor::zeros(&[bytes / 4])?;
        let pinned = pageable.pin_memory()?;
        let there = pageable.to(device)?;
        // Not timed: the first takes memory.
        drop((pageable.to(device)?, there.to(into_pinned)?));
        cuda::synchronize()?;

        let to_gpu = [time_of(|| pageable.to(device))?, time_of(|| pinned.to(device))?];
        let pageable_to_cpu = time_of(|| there.to(Device::Cpu))?;
        let pinned_to_cpu = time_of(|| {
            let _back = there.to(into_pinned)?;
            cuda::synchronize()
        })?;
        // ANCHOR_END: bandwidth
        for (direction, [slow, fast]) in
            [("to the GPU", to_gpu), ("to the CPU", [pageable_to_cpu, pinned_to_cpu])]
        {
            let rate = |name, time: Duration| {
                found(name, bytes as f64 / time.as_secs_f64() / 1e9)
                    .unit("GB/s")
                    .digits(1)
            };
            table = table.row(row![
                format!("{size} {direction}"),
                rate("pageable_rate", slow),
                rate("pinned_rate", fast)
            ]);
        }
    }
    lab.table(table);

    lab.think(
        "09-pin-time",
        "A batch of 12 MiB is copied to the GPU once. Is it worth pinning first?",
    );
    // ANCHOR: pinning
    let batch = Tensor::zeros(&[12 << 18])?;
    let there = batch.to(device)?;
    drop(there);
    let copied = time_of(|| batch.to(device))?;
    let pinned_first = time_of(|| batch.pin_memory())?; // takes memory from the driver
    // Takes the same memory from the cache.
    let pinned_again = time_of(|| batch.pin_memory())?;
    // ANCHOR_END: pinning
    lab.table(
        Table::new(["12 MiB", "time"])
            .row(row![
                "copied to the GPU, pageable",
                timed("pageable_copy_time", copied)
            ])
            .row(row![
                "pin_memory(), the first time",
                timed("first_pin_time", pinned_first)
            ])
            .row(row!["pin_memory(), again", timed("second_pin_time", pinned_again)]),
    );
    lab.prose(
        "The GPU can read only pinned memory by itself. From pageable memory the driver first copies to a \
         staging buffer, which is pinned memory of the host. Taking pinned memory is slow, so it is kept for the next \
         time. pin_memory() still copies: it pays where somebody other than the training loop does it, or where what \
         is pinned is copied more than once.",
    );
    Ok(())
}

// ANCHOR: one_copy
/// Queues work, then a copy on a stream. The times: of the call of the copy, and of
/// all.
fn one_copy(
    work: &Tensor,
    batch: &Tensor,
    stream: &Stream,
    to: ToOptions,
) -> Result<(Duration, Duration)> {
    let start = Instant::now();
    record_function("compute", || work.matmul(work))?;

    let called = Instant::now();
    let _there = record_function("copy", || cuda::stream(stream, || batch.to(to)))?;
    let call = called.elapsed();

    record_function("synchronize", cuda::synchronize)?;
    Ok((call, start.elapsed()))
}
// ANCHOR_END: one_copy

fn what_blocks_the_host(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let in_how_many = "The GPU is at work, and the host sends it the next batch: from pageable or pinned memory, with \
                       `non_blocking` or without, on the stream of the work or on another. In how many of these eight \
                       cases does the call return at once?";
    if !device.is_cuda() {
        lab.think("09-eight", in_how_many);
        lab.prose(
            "--gpu sim:t4 shows which of the eight keep the host waiting, and which overlap with the GPU's work. On the \
             CPU there is nobody else to do the work: every call returns when it is done.",
        );
        return Ok(());
    }
    let at_once = lab.predict(
        Prediction::number("09-eight", in_how_many)
            .because("The GPU fetches a batch by itself only from pinned memory, and only `non_blocking` lets the host go.")
            .raced(),
    );
    let beside = lab.predict(
        Prediction::choice(
            "09-overlap",
            "The work is asked for first. What does it take, at the least, for the copy to run beside it?",
        )
        .or(
            "free",
            "Pinned memory and `non_blocking`.",
            "They free the host, but on the stream of the work the copy still waits for its turn.",
        )
        .or(
            "stream",
            "Another stream for the copy.",
            "In this run a copy from pageable memory did not run beside the work, on any stream.",
        )
        .or(
            "pinned",
            "Another stream and pinned memory.",
            "CUDA promises overlap for pinned memory only. But here the work was asked for first, and then any copy on another stream runs beside it.",
        )
        .or(
            "all",
            "Another stream, pinned memory and `non_blocking`.",
            "`non_blocking` frees the host, and the GPU does not care whether the host waits.",
        )
        .because("What is in one stream runs in order, one piece after the other.")
        .raced(),
    );
    // ANCHOR: truth
    let work = Tensor::ones_with(&[1024, 1024], device)?;
    let pageable = Tensor::ones(&[512, 512])?;
    let pinned = pageable.pin_memory()?;
    let same = cuda::current_stream(device)?;
    let side = Stream::new(device)?;

    let mut rows = Vec::new();
    for (memory, batch) in [("pageable", &pageable), ("pinned", &pinned)] {
        for non_blocking in [false, true] {
            for (name, stream) in [("same", &same), ("other", &side)] {
                let to = ToOptions {
                    device: Some(device),
                    non_blocking,
                    ..Default::default()
                };
                // Not timed: the first takes memory.
                one_copy(&work, batch, stream, to)?;
                let (times, trace) =
                    Machine::current().profile(|| one_copy(&work, batch, stream, to));
                let (call, all) = times?;
                rows.push((memory, non_blocking, name, call, all, trace));
            }
        }
    }
    // ANCHOR_END: truth
    // Against the same copy on the stream of the work: there one comes after the other.
    let overlap = |index: usize| rows[index].4 < rows[index - index % 2].4 * 9 / 10;
    let mut table =
        Table::new(["memory", "non_blocking", "stream", "call", "all", "overlap"]);
    for (index, (memory, non_blocking, stream, call, all, _)) in rows.iter().enumerate()
    {
        table = table.row(row![
            *memory,
            if *non_blocking { "yes" } else { "no" },
            *stream,
            microseconds("call_time", *call),
            microseconds("all_time", *all),
            raced("overlap", if overlap(index) { "yes" } else { "no" })
        ]);
    }
    lab.table(table);
    // Against the same copy without `non_blocking`, two rows above.
    let returns_at_once = |index: &usize| rows[*index].3 < rows[*index - 2].3 / 2;
    lab.answer(
        at_once,
        raced(
            "at_once",
            [2, 3, 6, 7].iter().filter(|index| returns_at_once(index)).count(),
        ),
    );
    let [pageable_beside, pinned_beside] = [1, 5].map(overlap);
    lab.answer(
        beside,
        match (pageable_beside, pinned_beside) {
            (true, _) => "stream",
            (false, true) => "pinned",
            (false, false) => "all",
        },
    );
    lab.picture(
        Timeline::of(&rows[6].5).beside(&[&rows[7].5]),
        "Pinned and non_blocking, on the stream of the work: the host is free, the copy waits.",
    );
    lab.picture(
        Timeline::of(&rows[7].5).beside(&[&rows[6].5]),
        "Pinned and non_blocking, on another stream, to the same scale: the host is free, and the copy runs beside the work.",
    );
    lab.prose(
        "Two things are easily taken for one. non_blocking frees the host, but only from pinned memory. Another \
         stream lets the copy overlap with the work: on one stream everything runs in order, however the copy was asked for. \
         Only pinned memory with non_blocking on another stream has both.",
    );
    Ok(())
}

fn stale_and_torn(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let what_is_read = "The loss on the GPU is 1 in the first step and 2 in the second. After each step it is copied to \
                        the CPU with `non_blocking`. After the second copy the host reads the result at once. What does \
                        it read?";
    if !device.is_cuda() {
        lab.think("09-loss-reads", what_is_read);
        lab.prose(
            "--gpu sim:t4 shows a result that is read before it has come, and a batch that is overwritten while it \
             is copied. On the CPU no call returns before it is done, so neither can happen.",
        );
        return Ok(());
    }
    let machine = Machine::current();
    let check = machine.race_check();
    machine.set_race_check(RaceCheck::Ignore);
    let known = machine.races().len();

    let guess = lab.predict(
        Prediction::choice("09-loss-reads", what_is_read)
            .or("first", "1, the loss of the first step.", "In this run the copy was faster than the host.")
            .or(
                "second",
                "2, because `item()` waits for the copy.",
                "`item()` waits where its tensor is on the GPU, and this one is on the CPU already.",
            )
            .or(
                "error",
                "Nothing: it is an error to read a tensor that is still being copied.",
                "Nobody checks that, and on a real GPU nobody could.",
            )
            .or(
                "else",
                "0, because new memory is cleared.",
                "Memory is handed out as it is, with what was last in it.",
            )
            .because(
                "The second result got the memory of the first, and holds its old number until the copy runs.",
            )
            .raced(),
    );
    // ANCHOR: stale
    let to_cpu = ToOptions {
        device: Some(Device::Cpu),
        non_blocking: true,
        ..Default::default()
    };
    let loss = Tensor::ones_with(&[], device)?;
    let first = loss.to(to_cpu)?;
    cuda::synchronize()?;
    let first_value = first.item()?;
    drop(first);

    loss.fill_(2.0)?;
    let second = loss.to(to_cpu)?;
    let at_once = second.item()?;
    cuda::synchronize()?;
    let later = second.item()?;
    // ANCHOR_END: stale
    lab.table(
        Table::new(["the loss", "value"])
            .row(row!["first step", exact("first_loss", first_value).digits(1)])
            .row(row![
                "second step, read at once",
                raced("early_loss", at_once).digits(1)
            ])
            .row(row![
                "second step, after synchronize()",
                exact("late_loss", later).digits(1)
            ]),
    );
    lab.answer(
        guess,
        match at_once {
            read if read == first_value => "first",
            read if read == later => "second",
            _ => "else",
        },
    );
    let tell = |lab: &mut Lab, index: usize| {
        if let Some(race) = machine.races().get(index) {
            let report = race.report();
            lab.report(wrap(report.lines().next().unwrap_or_default()));
        }
    };
    tell(lab, known);
    lab.prose(
        "The second result got the memory of the first, and was read before the copy had run: no error, a plausible \
         number, one step old. item() of a tensor on the GPU waits; of a tensor on the host it has no reason to.",
    );

    lab.think(
        "09-twos",
        "A pinned batch of ones is sent to the GPU with `non_blocking`, and the next line fills it with twos. What arrives?",
    );
    // ANCHOR: torn
    let to_gpu =
        ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
    let mut counts = Vec::new();
    for wait in [false, true] {
        let batch = Tensor::ones(&[1 << 20])?.pin_memory()?;
        drop(batch.to(device)?); // the first takes memory, and that waits
        let there = batch.to(to_gpu)?;
        if wait {
            cuda::current_stream(device)?.record_event()?.synchronize()?;
        }
        batch.fill_(2.0)?;
        let twos = (there.sum()?.item()? as i64) - (1 << 20); // each of them adds one
        counts.push((wait, (1 << 20) - twos, twos));
    }
    // ANCHOR_END: torn
    let mut table = Table::new(["filled with twos", "ones that arrive", "twos"]);
    for (wait, ones, twos) in counts {
        table = table.row(match wait {
            false => row!["at once", raced("ones", ones), raced("twos", twos)],
            true => {
                row!["after the copy's event", exact("ones", ones), exact("twos", twos)]
            }
        });
    }
    lab.table(table);
    tell(lab, known + 1);
    lab.prose(
        "The host wrote before it knew that the copy had run. How much of each arrives depends on who is faster; the \
         race is there in any case. Until a copy has run, its memory is not the host's: wait for an event recorded after the \
         copy, or fill another buffer. A loader with pin_memory uses its memory again only when its copies have run.",
    );
    machine.set_race_check(check);
    Ok(())
}

/// In each of the data sets of pictures.
const SAMPLES: usize = 512;

// ANCHOR: pictures
/// Grey pictures of 32 × 32 pixels, as bytes. Each sample costs the CPU something:
/// it is made a float tensor of mean 0 and deviation 1.
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
/// Pictures of 128 × 128 pixels, prepared already: 64 KiB each, and for the CPU
/// no more work than a copy.
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

/// Batches as the training loop takes them.
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
    rows: Vec<(&'static str, Duration, Trace)>,
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
        Ok(Training { model, sgd, device, rows: Vec::new() })
    }
    // ANCHOR_END: training

    /// An epoch of the batches that come in this way, timed until the device has done its work.
    fn way<'a>(
        &mut self,
        name: &'static str,
        batches: impl Fn() -> Result<Batches<'a>>,
    ) -> Result<()> {
        train(&self.model, &mut self.sgd, batches()?)?; // not timed: the first takes memory
        wait_for(self.device)?;
        let epoch = || {
            train(&self.model, &mut self.sgd, batches()?)?;
            wait_for(self.device)
        };
        let (time, trace) = Machine::current().profile(|| time_of(epoch));
        self.rows.push((name, time?, trace));
        Ok(())
    }

    fn table(&self, samples: usize) -> Table {
        let mut header = vec!["batches", "epoch", "samples/s"];
        header.extend(self.device.is_cuda().then_some("busy"));
        let mut table = Table::new(header);
        for (name, time, trace) in &self.rows {
            let seconds = time.as_secs_f64();
            let rate = found("samples_per_second", (samples as f64 / seconds) as i64);
            let mut cells = row![*name, timed("epoch_time", *time).digits(2), rate];
            if self.device.is_cuda() {
                let share =
                    trace.compute_time(self.device.index()).as_secs_f64() / seconds;
                cells.push(
                    found("compute_share", 100.0 * share).unit("%").digits(0).into(),
                );
            }
            table = table.row(cells);
        }
        table
    }
}

// ANCHOR: moved
/// The batches of a loader, each moved when the loop asks for it.
fn moved<D>(
    loader: &DataLoader<D, (Tensor, Tensor)>,
    device: Device,
    non_blocking: bool,
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

/// The batches of a loader, each sent ahead of time, on a stream for copies.
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

fn one_epoch(lab: &mut Lab, batch_size: usize) -> crate::Result<()> {
    let device = lab.device();
    manual_seed(lab.seed());
    lab.think(
        "09-shorter",
        "The samples of a data set cost the CPU something, and the network is small. What makes an epoch shortest: \
         pinned memory, copies that nobody waits for, or workers?",
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
    if device.is_cuda() {
        // ANCHOR: ways
        let (pageable, pinned) = (loader(0, false)?, loader(0, true)?);
        training.way("pageable", || Ok(moved(&pageable, device, false)))?;
        training.way("pinned", || Ok(moved(&pinned, device, false)))?;
        training.way("+ non_blocking", || Ok(moved(&pinned, device, true)))?;

        let copies = Stream::new(device)?;
        training.way("+ prefetcher", || Ok(ahead(&pinned, &copies)))?;

        let (two, four) = (loader(2, true)?, loader(4, true)?);
        training.way("+ 2 workers", || Ok(ahead(&two, &copies)))?;
        training.way("+ 4 workers", || Ok(ahead(&four, &copies)))?;

        let to_device = move |samples: Vec<(Tensor, i64)>| {
            let (x, y) = default_collate(samples)?;
            Ok((x.to(device)?, y.to(device)?))
        };
        let options = DataLoaderOptions { batch_size, ..Default::default() };
        let collated =
            DataLoader::with_collate_fn(Pictures::new(SAMPLES)?, to_device, options)?;
        training.way("collate to GPU", || Ok(Box::new(collated.iter())))?;

        let once = DataLoaderOptions { batch_size: SAMPLES, ..Default::default() };
        let all = DataLoader::new(Pictures::new(SAMPLES)?, once)?;
        let (x, y) = moved(&all, device, false).next().ok_or("no batch")??;
        training.way("data on the GPU", || {
            let (x, y) = (x.split(batch_size, 0)?, y.split(batch_size, 0)?);
            Ok(Box::new(x.into_iter().zip(y).map(Ok)))
        })?;
        // ANCHOR_END: ways
    } else {
        let (none, one) = (loader(0, false)?, loader(1, false)?);
        training.way("no workers", || Ok(moved(&none, device, false)))?;
        training.way("1 worker", || Ok(moved(&one, device, false)))?;
    }

    lab.table(training.table(SAMPLES));
    if !device.is_cuda() {
        lab.prose("--gpu sim:t4 shows eight ways to bring the batches to a GPU, and how much of the time it computes.");
        return Ok(());
    }
    let [slow, fast] = [0, 5].map(|row| &training.rows[row].2);
    lab.picture(
        Timeline::of(slow).beside(&[fast]),
        "An epoch from pageable memory, without workers: the GPU waits for the host.",
    );
    lab.picture(
        Timeline::of(fast).beside(&[slow]),
        "The same epoch with 4 workers, pinned memory and a prefetcher, to the same scale.",
    );
    lab.prose(
        "Each + adds to the row above. The slowest part sets the pace: here it is the CPU that makes the samples, and \
         what makes the copies cheaper changes little, while workers take that part away from the loop. (\"busy\" is \
         the share of the epoch in which the GPU computes.) Data that is on the GPU already, prepared once, needs no \
         loading; it must fit there. A collate_fn that uses the GPU allows no workers: section 6.",
    );
    copies_set_the_pace(lab)
}

fn copies_set_the_pace(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.think(
        "09-pictures",
        "The pictures are larger now, and prepared beforehand: a batch is 4 MiB, and costs the CPU no more than a copy. Which gains least \
         now: pinned memory, `non_blocking`, or another stream?",
    );
    // ANCHOR: copies
    let pictures = Tensor::rand(&[SAMPLES, 128 * 128])?;
    let loader = |pin_memory| {
        let classes = (0..SAMPLES as i64).map(|i| i % 10).collect();
        let dataset = Prepared { pictures: pictures.clone(), classes };
        let four = DataLoaderOptions { num_workers: 4, ..Default::default() };
        DataLoader::new(
            dataset,
            DataLoaderOptions { batch_size: 64, pin_memory, ..four },
        )
    };
    let copies = Stream::new(device)?;
    let (pageable, pinned) = (loader(false)?, loader(true)?);
    // Takes pinned memory for as many batches as may be under way, not timed.
    drop(pinned.iter().collect::<Result<Vec<_>>>()?);
    let mut training = Training::new(128 * 128, 64, device)?;
    training.way("pageable", || Ok(moved(&pageable, device, false)))?;
    training.way("pinned", || Ok(moved(&pinned, device, false)))?;
    training.way("+ non_blocking", || Ok(moved(&pinned, device, true)))?;
    training.way("+ prefetcher", || Ok(ahead(&pinned, &copies)))?;
    // ANCHOR_END: copies
    lab.table(training.table(SAMPLES));
    let [one, two] = [2, 3].map(|row| &training.rows[row].2);
    lab.picture(
        Timeline::of(one).beside(&[two]),
        "Pinned and non_blocking: the host is far ahead, but on one stream copy and work take turns.",
    );
    lab.picture(
        Timeline::of(two).beside(&[one]),
        "The same with a prefetcher, to the same scale: the next batch is copied while this one is worked on.",
    );
    lab.prose(
        "Now the copies set the pace. Pinned memory makes each of them shorter. non_blocking lets the host ask for the \
         work while the copy runs: it gains what the asking takes, no more, because the work still waits for the copy. \
         With a stream of its own the next copy runs beside the work, and after the first batch the epoch takes little more \
         than the copies. \
         The loader is the same in all rows: 4 workers, and where it pins, it does so beside the loop.",
    );
    Ok(())
}

fn more_workers(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let batch_size = options.batch_size;
    // More workers than cores are warned of, and who measures has perhaps one core.
    let modelled = Machine::current().time_is_modelled();
    let most = options.num_workers.unwrap_or(if modelled { 8 } else { 1 });
    let is_shorter = "The 1024 rows of 16 numbers of chapter 03 lie in memory. An epoch of loading them takes some time \
                      without workers. Does it take less with workers?";
    let guess = lab.predict(
        Prediction::yes_no("09-workers", is_shorter)
            .because("Workers must be started and batches handed over, however little there is to do.")
            .raced()
            .only_if(most > 0),
    );
    let mut times = Vec::new();
    // ANCHOR: workers
    manual_seed(lab.seed());
    for num_workers in
        [0, 1, 2, 4, 8, 16, 32, 64].into_iter().filter(|workers| *workers <= most)
    {
        let options =
            DataLoaderOptions { batch_size, num_workers, ..Default::default() };
        let x = Tensor::randn(&[1024, 16])?;
        let y = Tensor::randn(&[1024, 1])?;
        let rows = DataLoader::new(TensorDataset::new([x, y])?, options.clone())?;
        let pictures = DataLoader::new(Pictures::new(SAMPLES)?, options)?;

        let rows_time = time_of(|| rows.iter().try_for_each(|batch| batch.map(drop)))?;
        let pictures_time =
            time_of(|| pictures.iter().try_for_each(|batch| batch.map(drop)))?;
        times.push((num_workers, rows_time, pictures_time));
    }
    // ANCHOR_END: workers
    let mut table = Table::new(["workers", "rows in memory", "pictures"]);
    for (num_workers, rows_time, pictures_time) in &times {
        table = table.row(row![
            *num_workers,
            microseconds("rows_epoch_time", *rows_time).digits(1),
            timed("pictures_epoch_time", *pictures_time)
        ]);
    }
    lab.table(table);
    let [(_, alone, _), with_workers @ ..] = &times[..] else {
        return Err("no epoch".into());
    };
    lab.answer(guess, with_workers.iter().any(|(_, time, _)| time < alone));
    lab.prose(
        "Workers share the work of making samples, so they help where there is much of it. Each costs its start in every \
         epoch, and each batch its way from the worker to the loop: where there is little to share, that is more than they save.",
    );
    if modelled {
        let hand_over = time_to_load(2, 1)? - time_to_load(1, 1)?;
        let worker = time_to_load(1, 1)? - time_to_load(1, 0)? - hand_over;
        lab.prose(text!(
            "In this crate a worker is a thread. The model takes {} for its start and end and {} for a batch, as measured \
             with this crate; --gpu none --num-workers 4 measures yours.",
            microseconds("worker_time", worker),
            microseconds("hand_over_time", hand_over)
        ));
    } else {
        lab.prose(
            "In this crate a worker is a thread. --num-workers tries more of them; more than there are cores only take \
             turns.",
        );
    }
    lab.prose(
        "In PyTorch a worker is a process, started anew each epoch unless persistent_workers says otherwise, and costs \
         far more. Measured with PyTorch 2.11 on these rows in memory, and only quoted here: 3.2 ms an epoch without \
         workers, 60.0 ms with two. Begin with none, and add workers while the epoch gets shorter.",
    );
    Ok(())
}

/// An epoch of batches of one number: hardly any work, so it shows what workers cost.
fn time_to_load(batches: usize, num_workers: usize) -> Result<Duration> {
    let options = DataLoaderOptions { num_workers, ..Default::default() };
    let loader =
        DataLoader::new(TensorDataset::new([Tensor::ones(&[batches])?])?, options)?;
    time_of(|| loader.iter().try_for_each(|batch| batch.map(drop)))
}

fn created_or_moved(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    if !device.is_cuda() {
        lab.think("09-to-cpu", "A tensor of 1024 × 1024 numbers is made on the CPU and moved to the CPU. How many bytes are taken?");
        let before = Machine::current().host_memory().allocated();
        let x = Tensor::rand(&[1024, 1024])?;
        let moved = x.to(device)?;
        lab.figure(exact(
            "host_bytes",
            Machine::current().host_memory().allocated() - before,
        ));
        lab.prose(if moved.is_same(&x) {
            "Once its bytes: it is there already."
        } else {
            "Twice its bytes."
        });
        lab.prose(
            "--gpu sim:t4 shows which memory it takes to make a tensor on the host and move it to a GPU.",
        );
        return Ok(());
    }
    lab.think(
        "09-way",
        "A tensor of 4 MiB is made on the CPU and moved to the GPU. How much memory does that take, on the two together?",
    );
    // ANCHOR: created
    // Not timed: the first takes memory.
    drop(Tensor::zeros_with(&[1024, 1024], device)?);
    cuda::synchronize()?;
    let machine = Machine::current();
    let taken = || (machine.host_memory().allocated(), cuda::memory_allocated());
    let before = taken();
    let mut steps = Vec::new();

    let start = Instant::now();
    let host = Tensor::rand(&[1024, 1024])?;
    steps.push(("made on the CPU", taken()));
    let there = host.to(device)?;
    steps.push(("moved to the GPU", taken()));
    let moved_time = start.elapsed();
    drop(host);
    steps.push(("dropped on the CPU", taken()));
    drop(there);
    steps.push(("dropped on the GPU", taken()));

    let start = Instant::now();
    let there = Tensor::rand_with(&[1024, 1024], device, None)?;
    cuda::synchronize()?;
    let made_time = start.elapsed();
    steps.push(("made on the GPU", taken()));
    // ANCHOR_END: created
    let mut table = Table::new(["step", "bytes on the host", "bytes on the GPU"]);
    for (step, (host_bytes, device_bytes)) in steps {
        table = table.row(row![
            step,
            exact("host_bytes", host_bytes - before.0),
            exact("device_bytes", (device_bytes - before.1) as i64)
        ]);
    }
    lab.table(table);
    lab.table(
        Table::new(["a tensor on the GPU", "time"])
            .row(row!["made on the CPU and moved", timed("moved_time", moved_time)])
            .row(row!["made on the GPU", timed("made_time", made_time)]),
    );

    lab.think(
        "09-why-not",
        "So why not let the loader's workers make their batches on the GPU?",
    );
    // ANCHOR: refused
    let to_device = move |samples: Vec<(Tensor, i64)>| {
        let (x, y) = default_collate(samples)?;
        Ok((x.to(device)?, y.to(device)?))
    };
    let options =
        DataLoaderOptions { batch_size: 4, num_workers: 2, ..Default::default() };
    let loader = DataLoader::with_collate_fn(Pictures::new(8)?, to_device, options)?;
    let in_worker = loader.iter().next().ok_or("no batch")?;
    let pinned = there.pin_memory();
    // ANCHOR_END: refused
    for error in [in_worker.err(), pinned.err()].into_iter().flatten() {
        lab.report(wrap(&error.to_string()));
    }
    lab.prose(
        "Made on the CPU and moved, a tensor takes both memories for a while, and a copy. Made on the GPU it takes one. \
         A worker may not use the GPU: in PyTorch it is a fork, and CUDA does not survive that. Only memory of the host \
         can be pinned. So a collate_fn that uses the GPU needs num_workers 0 and no pin_memory.",
    );
    Ok(())
}
