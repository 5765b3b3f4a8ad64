//! Part A, its last two sections: how many workers help, and which tensors to create on the GPU.

use std::time::Duration;

use todevice::Machine;
use todevice::cuda;
use todevice::data::default_collate;
use todevice::prelude::*;
use todevice::time::Instant;

use super::epoch::{Pictures, SAMPLES};
use super::feeding::microseconds;
use super::{Options, time_of};
use crate::frame::render_text::wrap;
use crate::{Lab, Prediction, Table, Text, exact, row, text, timed};

pub(super) fn sections(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let why = "fewer workers are tried where time is measured";
    if lab.section_apart(5, "How many workers?", why) {
        more_workers(lab, options)?;
    }
    if lab.section(6, "Created on the device or moved") {
        created_or_moved(lab)?;
    }
    Ok(())
}

// ANCHOR: workers
/// The time of an epoch of loading: of 1024 rows in memory, and of the images.
fn epochs(batch_size: usize, num_workers: usize) -> Result<(Duration, Duration)> {
    let options = DataLoaderOptions { batch_size, num_workers, ..Default::default() };
    let x = Tensor::randn(&[1024, 16])?;
    let y = Tensor::randn(&[1024, 1])?;
    let rows = DataLoader::new(TensorDataset::new([x, y])?, options.clone())?;
    let pictures = DataLoader::new(Pictures::new(SAMPLES)?, options)?;

    let rows_time = time_of(|| rows.iter().try_for_each(|batch| batch.map(drop)))?;
    let pictures_time =
        time_of(|| pictures.iter().try_for_each(|batch| batch.map(drop)))?;
    Ok((rows_time, pictures_time))
}
// ANCHOR_END: workers

fn more_workers(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let batch_size = options.batch_size;
    // More workers than cores cause a warning, and a measuring machine may have one core.
    let modelled = Machine::current().time_is_modelled();
    let most = options.num_workers.unwrap_or(if modelled { 8 } else { 1 });
    manual_seed(lab.seed());
    let mut times = Vec::new();
    for workers in
        [0, 1, 2, 4, 8, 16, 32, 64].into_iter().filter(|workers| *workers <= most)
    {
        let (rows, pictures) = epochs(batch_size, workers)?;
        times.push((workers, rows, pictures));
    }
    let [(_, rows_alone, pictures_alone), with_workers @ ..] = &times[..] else {
        return Err("no epoch".into());
    };
    let rows_gain = with_workers.iter().any(|(_, rows, _)| rows < rows_alone);
    let rows_gain_much =
        with_workers.iter().any(|(_, rows, _)| *rows < *rows_alone * 19 / 20);
    // A gain below a tenth is not worth a core.
    let pictures_gain = with_workers
        .iter()
        .any(|(_, _, pictures)| *pictures < *pictures_alone * 9 / 10);
    let guess = lab.predict(
        Prediction::yes_no(
            "09-workers",
            "Chapter 03's 1024 rows of 16 numbers lie in memory. Loading them for an epoch takes some time without \
             workers. Does it take less time with workers?",
        )
        .because(match rows_gain {
            false => "Workers must be started and batches handed over, however little there is to do.",
            true => "Here what the workers share is a little more than what it costs to start them.",
        })
        .raced()
        .only_if(most > 0),
    );
    let mut table = Table::new(["workers", "rows in memory", "pictures"]);
    for (workers, rows, pictures) in &times {
        table = table.row(row![
            *workers,
            microseconds("rows_epoch_time", *rows).digits(1),
            timed("pictures_epoch_time", *pictures)
        ]);
    }
    lab.table(table);
    lab.answer(guess, rows_gain);
    lab.prose(
        "Workers share the work of making samples, batch by batch. Each worker has to be started in every epoch, and \
         each batch handed over to the loop.",
    );
    let for_pictures = if pictures_gain {
        "The pictures are a lot of work, so they gain."
    } else if batch_size == SAMPLES {
        "The pictures gain nothing, because all of them are a single batch."
    } else {
        "The pictures gain nothing: one worker has nobody to share with, and the loop waits for it as it would for \
         itself."
    };
    let for_rows = match rows_gain {
        false => {
            "The rows are hardly any work, and sharing the work costs more than it saves."
        }
        true if rows_gain_much => {
            "The rows are little work, and yet they gain, because this host is slow even at that."
        }
        true => "The rows are hardly any work, and gain next to nothing.",
    };
    if modelled && most > 0 {
        lab.prose(Text::from(format!("{for_pictures} {for_rows}")).raced());
    } else {
        lab.prose("So they pay where there is much work to share, and not where there is little.");
    }
    if modelled {
        let hand_over = time_to_load(2, 1)? - time_to_load(1, 1)?;
        let worker = time_to_load(1, 1)? - time_to_load(1, 0)? - hand_over;
        lab.prose(text!(
            "In this crate a worker is a thread. The model counts {} for its start and end and {} for each batch, as \
             measured with this crate; --gpu none --num-workers 4 measures yours.",
            microseconds("worker_time", worker),
            microseconds("hand_over_time", hand_over)
        ));
    } else {
        lab.prose(
            "In this crate a worker is a thread. --num-workers tries more of them; more than there are cores only take \
             turns.",
        );
    }
    // With workers 2 of PyTorch 2.11 on a CPU.
    let [alone, with_two] = [("pytorch_alone", 3.2), ("pytorch_two", 60.0)]
        .map(|(name, milliseconds)| exact(name, milliseconds).unit("ms").digits(1));
    lab.prose(text!(
        "In PyTorch a worker is a process, started anew each epoch unless persistent_workers says otherwise, and costs \
         far more. On these rows PyTorch 2.11 took {} an epoch without workers and {} with two, when it was measured on \
         a CPU. Begin with none, and add workers while the epoch gets shorter.",
        alone,
        with_two
    ));
    Ok(())
}

/// An epoch of batches of one number: hardly any work, so it shows the cost of workers.
fn time_to_load(batches: usize, num_workers: usize) -> Result<Duration> {
    let options = DataLoaderOptions { num_workers, ..Default::default() };
    let loader =
        DataLoader::new(TensorDataset::new([Tensor::ones(&[batches])?])?, options)?;
    time_of(|| loader.iter().try_for_each(|batch| batch.map(drop)))
}

fn created_or_moved(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    if lab.gpu().is_none() {
        lab.part("to-cpu");
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
            "With --gpu sim:t4 you see which memory it takes to make a tensor on the host and move it to a GPU.",
        );
        return Ok(());
    }
    lab.part("way");
    // Not timed: the first call allocates memory.
    drop(Tensor::zeros((&[1024, 1024], device))?);
    cuda::synchronize()?;
    let machine = Machine::current();
    let taken = || (machine.host_memory().allocated(), cuda::memory_allocated());
    let before = taken();
    let mut steps = Vec::new();
    let mut note = |step| steps.push((step, taken()));
    // ANCHOR: created
    let start = Instant::now();
    let host = Tensor::rand(&[1024, 1024])?;
    note("made on the CPU");
    let there = host.to(device)?;
    let moved_time = start.elapsed();
    note("moved to the GPU");
    drop(host);
    note("dropped on the CPU");
    drop(there);
    note("dropped on the GPU");

    let start = Instant::now();
    let there = Tensor::rand((&[1024, 1024], device))?;
    cuda::synchronize()?;
    let made_time = start.elapsed();
    note("made on the GPU");
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
        "Made on the CPU and moved, a tensor takes memory in both places for a while, and costs a copy. Made on the \
         GPU it takes memory there only, and no copy. A worker may not use the GPU: in PyTorch it is a fork, and CUDA does not \
         survive that. Only host memory can be pinned: torch.cuda.FloatTensor is PyTorch's old name for a tensor of float32 on a \
         GPU. So a collate_fn that uses the GPU needs num_workers 0 and no \
         pin_memory.",
    );
    Ok(())
}
