//! Part A: what nvidia-smi says.

use std::time::Duration;

use drawing::smi::{self, mebibytes, watts};
use todevice::cuda;
use todevice::data::{DataLoader, DataLoaderOptions};
use todevice::monitor;
use todevice::prelude::*;
use todevice::time::sleep;

use super::why_it_waits::Pictures;
use super::{BATCH, Training, on_gpu, pause, pictures, reading, wait_for, watched};
use crate::render_text::wrap;
use crate::{Figure, Lab, Table, Value, exact, hardware, measured, row, text};

pub(super) fn sections(lab: &mut Lab) -> crate::Result<()> {
    the_table(lab)?;
    before_during_after(lab)?;
    three_numbers(lab)?;
    who_else(lab)?;
    the_host(lab)
}

fn the_table(lab: &mut Lab) -> crate::Result<()> {
    lab.section(1, "The table");
    lab.predict(
        "A tensor of one float is on the GPU. What does nvidia-smi show as Memory-Usage: 0 MiB, 2 MiB, or more?",
    );
    if !on_gpu(lab, "the table that nvidia-smi prints, and explains its fields.") {
        return Ok(());
    }
    let device = lab.device();
    let mut table = Table::new(["moment", "Perf", "Pwr", "Memory-Usage"]);
    let mut note = |moment: &str| -> Result<()> {
        let gpu = monitor::gpu(device.index())?;
        let state = gpu.performance_state.map(|state| format!("P{state}"));
        table.rows.push(row![
            moment,
            reading("performance_state", state),
            reading("power", watts(gpu.power_draw)).unit("W"),
            hardware("memory_used", mebibytes(gpu.memory_used)).unit("MiB"),
        ]);
        Ok(())
    };
    note("before")?;
    // ANCHOR: one_float
    let one = Tensor::ones_with(&[1], lab.device())?;
    wait_for(lab.device())?;
    pause();

    let gpus = (0..cuda::device_count()).map(monitor::gpu).collect::<Result<Vec<_>>>()?;
    lab.print(text!("{}", hardware("nvidia_smi", smi::table(&gpus))));
    // ANCHOR_END: one_float
    note("one float")?;
    drop(one);
    lab.table(
        Table::new(["field", "what it says"])
            .row(row!["Fan", "percent of full speed; a card without a fan has none"])
            .row(row!["Temp", "of the chip, in degrees Celsius; near 90 it slows down"])
            .row(row!["Perf", "the clocks: P0 the fastest, P8 or so asleep, P12 the slowest"])
            .row(row!["Pwr:Usage/Cap", "watts now / the most it may draw"])
            .row(row!["Memory-Usage", "in use, by all processes / all there is"])
            .row(row!["GPU-Util", "of the last moments, the share with a kernel running"])
            .row(row!["PID, Type", "whose process; C computes, G draws, C+G both"])
            .row(row!["Memory Usage", "what that process holds"]),
    );
    lab.table(table);
    lab.prose(
        "Hundreds of MiB for four bytes. CUDA itself takes memory as soon as a program uses the GPU (its context), and \
         the allocator takes 2 MiB at a time. A real table has more columns; chapter 05 names them.",
    );
    Ok(())
}

fn before_during_after(lab: &mut Lab) -> crate::Result<()> {
    lab.section(2, "Before, during, after");
    lab.predict(
        "A training run ends, and all its tensors are dropped. The program goes on. Which numbers fall at once, which a \
         moment later, and which not at all?",
    );
    if !on_gpu(lab, "what the monitor says before, during and after a training run.") {
        return Ok(());
    }
    let device = lab.device();
    let mut table = Table::new(["moment", "Pwr", "Memory-Usage", "GPU-Util"]);
    let mut note = |moment: &str| -> Result<()> {
        let gpu = monitor::gpu(device.index())?;
        table.rows.push(row![
            moment,
            reading("moment_power", watts(gpu.power_draw)).unit("W"),
            hardware("moment_memory", mebibytes(gpu.memory_used)).unit("MiB"),
            reading("moment_utilization", gpu.utilization).unit("%"),
        ]);
        Ok(())
    };
    cuda::empty_cache()?;
    pause();
    // ANCHOR: moments
    note("before")?;
    let mut training = Training::new(lab.seed(), device)?;
    let (x, y) = pictures(BATCH)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    note("data on the GPU")?;

    watched(device, || training.step(&x, &y).map(drop))?;
    note("training")?;

    wait_for(device)?;
    drop((training, x, y));
    note("just ended")?;

    pause();
    note("a while later")?;

    cuda::empty_cache()?;
    note("empty_cache()")?;
    // ANCHOR_END: moments
    lab.table(table);
    lab.prose(
        "None falls at once. Utilization and power are about the moments before: a while later they are down. Memory \
         stays, because the allocator keeps what was dropped, until empty_cache(); and the context stays until the \
         program ends. So a program that holds memory need not be computing, and one that computes may have only begun.",
    );
    Ok(())
}

fn three_numbers(lab: &mut Lab) -> crate::Result<()> {
    lab.section(3, "Three numbers");
    lab.predict(
        "memory_allocated() says one number, memory_reserved() a larger one, nvidia-smi one that is larger still. What \
         lies between them?",
    );
    if !on_gpu(lab, "how the three counts of memory add up.") {
        return Ok(());
    }
    let device = lab.device();
    let mut training = Training::new(lab.seed(), device)?;
    let (x, y) = pictures(BATCH)?;
    training.step(&x.to(device)?, &y.to(device)?)?; // the batch is dropped after it
    wait_for(device)?;

    // ANCHOR: ladder
    let allocated = cuda::memory_allocated();
    let reserved = cuda::memory_reserved();
    let gpu = monitor::gpu(device.index())?;
    let (this, others): (Vec<_>, Vec<_>) = gpu.processes.iter().partition(|process| process.is_this);
    let this = this.first().and_then(|process| process.used_memory);
    let others: u64 = others.iter().filter_map(|process| process.used_memory).sum();
    let context = this.map(|this| this.saturating_sub(reserved));
    // ANCHOR_END: ladder
    let line = |what: &str, figure: Figure| {
        let mebibytes = match figure.value {
            Value::Int(bytes) => hardware("in_mebibytes", bytes as f64 / 1048576.0).digits(2),
            _ => hardware("in_mebibytes", "N/A"),
        };
        row![what, figure, mebibytes]
    };
    lab.table(
        Table::new(["", "bytes", "MiB"])
            .row(line("memory_allocated(): in tensors", exact("allocated", allocated)))
            .row(line("+ kept by the allocator", exact("kept", reserved - allocated)))
            .row(line("= memory_reserved()", exact("reserved", reserved)))
            .row(line("+ CUDA's own, the context", if_known(hardware, "context", context)))
            .row(line("= this process", if_known(hardware, "this_process", this)))
            .row(line("+ other processes", hardware("other_processes", others)))
            .row(line("= Memory-Usage", hardware("memory_usage", gpu.memory_used))),
    );
    lab.prose(
        "Each is right, and answers another question. Does my program keep a tensor too long? Look at \
         allocated. Could one more fit without asking the driver? At what the allocator keeps. Can another program start? At \
         Memory-Usage.",
    );
    Ok(())
}

fn who_else(lab: &mut Lab) -> crate::Result<()> {
    lab.section_apart(4, "Who else is there", "it depends on what other programs hold");
    lab.predict("Another program holds 1 GiB of your GPU. How does your program notice: is it slower, or does it fail?");
    if !on_gpu(lab, "who holds memory of the GPU.") {
        return Ok(());
    }
    let device = lab.device();
    // ANCHOR: processes
    lab.print(text!("{}", hardware("gpu_processes", cuda::list_gpu_processes()?)));
    let gpu = monitor::gpu(device.index())?;
    let others: Vec<_> = gpu.processes.iter().filter(|process| !process.is_this).collect();
    // ANCHOR_END: processes
    if others.is_empty() {
        lab.prose("Nobody else. With --gpu sim:t4,others=1GiB a browser holds some of it.");
        return Ok(());
    }
    let held: u64 = others.iter().filter_map(|process| process.used_memory).sum();
    // ANCHOR: too_much
    cuda::empty_cache()?;
    let (free, total) = cuda::mem_get_info()?;
    let too_much = free as usize + (64 << 20);
    let error = Tensor::empty(&[too_much / 4], device).err().ok_or("it fits")?;
    // ANCHOR_END: too_much
    lab.table(
        Table::new(["", "MiB"])
            .row(row!["all there is", hardware("total_memory", mebibytes(total))])
            .row(row!["free", hardware("free_memory", mebibytes(free))])
            .row(row!["held by others", hardware("held_by_others", mebibytes(held))])
            .row(row!["asked for", hardware("asked_for", mebibytes(too_much as u64))]),
    );
    let message = error.to_string();
    lab.report(wrap(message.split(" Of the allocated").next().unwrap_or_default()));
    lab.prose(
        "It fails, as soon as it asks for more than is left. What others hold is missing here, whether they compute or not. The error \
         names them by their numbers. Close that program, or move it to another GPU; or make do with a smaller batch. \
         empty_cache() is of no use: it gives memory to others, and takes none from them.",
    );
    Ok(())
}

fn the_host(lab: &mut Lab) -> crate::Result<()> {
    lab.section(5, "The host");
    lab.predict(
        "htop shows the CPU in percent of one core. What does it show while the program adds small tensors, multiplies \
         large ones, sleeps, waits for a GPU, waits for two loading workers?",
    );
    let device = lab.device();
    let mut table = Table::new(["the program", "CPU", "threads", "RSS"]);
    let mut note = |what: &str, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
        work()?;
        // ANCHOR: host
        let before = monitor::host();
        while before.at.elapsed() < look() {
            work()?;
        }
        let now = monitor::host();
        let cpu = now.cpu_usage_since(&before); // percent of one core
        // ANCHOR_END: host
        table.rows.push(row![
            what,
            reading("host_cpu", cpu.map(|percent| percent.round() as i64)).unit("%"),
            if_known(measured, "host_threads", now.threads.map(|threads| threads as u64)),
            if_known(measured, "host_memory", now.memory.map(mebibytes)).unit("MiB"),
        ]);
        Ok(())
    };
    let small = Tensor::ones(&[64])?;
    note("small sums", &mut || (&small + &small).map(drop))?;
    let large = Tensor::ones(&[512, 512])?;
    note("large products", &mut || large.matmul(&large).map(drop))?;
    let mut nap = || {
        sleep(Duration::from_millis(1));
        Ok(())
    };
    note("sleeps", &mut nap)?;
    if device.is_cuda() {
        let there = large.to(device)?;
        note("waits for a GPU", &mut || {
            there.matmul(&there)?;
            wait_for(device)
        })?;
    }
    // ANCHOR: workers
    let options = DataLoaderOptions { batch_size: 64, num_workers: 2, ..Default::default() };
    let loader = DataLoader::new(Pictures::new(64)?, options)?;
    let mut batches = loader.iter();
    // ANCHOR_END: workers
    note("waits for workers", &mut || batches.next().transpose().map(drop))?;
    drop(batches);
    let held = Tensor::ones(&[64 << 18])?; // 64 MiB
    note("64 MiB more", &mut nap)?;
    drop(held);
    lab.table(table);
    lab.prose(
        "100 % is one thread that never rests. Small operations keep one busy, large ones are shared among the cores. \
         Who waits for a GPU keeps asking whether it is done: that is 100 % as well, and no sign of work. Who waits for \
         a worker sleeps; what is seen is the workers.",
    );
    Ok(())
}

/// For how long the host is looked at. A real system counts in steps of 10 ms.
fn look() -> Duration {
    let modelled = todevice::Machine::current().time_is_modelled();
    Duration::from_millis(if modelled { 4 } else { 200 })
}

/// A figure of what is not known everywhere.
fn if_known(kind: fn(&'static str, Value) -> Figure, name: &'static str, value: Option<u64>) -> Figure {
    kind(name, value.map_or_else(|| "N/A".into(), Into::into))
}
