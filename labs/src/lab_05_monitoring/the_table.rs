//! What nvidia-smi says.

use std::time::Duration;

use drawing::smi::{self, mebibytes, watts};
use todevice::cuda;
use todevice::data::{DataLoader, DataLoaderOptions, Dataset};
use todevice::monitor;
use todevice::prelude::*;
use todevice::time::sleep;

use super::{BATCH, Training, on_gpu, pause, pictures, reading, wait_for, watched};
use crate::render_text::wrap;
use crate::{
    Figure, Lab, Prediction, Table, Value, exact, hardware, measured, row, text,
};

pub(super) fn sections(lab: &mut Lab) -> crate::Result<()> {
    the_table(lab)?;
    before_during_after(lab)?;
    three_numbers(lab)?;
    who_else(lab)?;
    the_host(lab)
}

fn the_table(lab: &mut Lab) -> crate::Result<()> {
    lab.section(1, "The table");
    let guess = lab.predict(
        Prediction::number(
            "05-one-float",
            "A program makes a tensor of one float on the GPU, and nothing else. How many MiB of the GPU's memory does \
             `nvidia-smi` show for this program?",
        )
        .unit("MiB")
        .tolerance(0.25) // which is less than drivers and cards differ by
        .because(
            "CUDA itself takes memory as soon as a program uses the GPU (its context), and the allocator takes 2 MiB at a \
             time.",
        )
        .only_if(lab.device().is_cuda()),
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

    let gpus =
        (0..cuda::device_count()).map(monitor::gpu).collect::<Result<Vec<_>>>()?;
    lab.print(text!("{}", hardware("nvidia_smi", smi::table(&gpus))));
    // ANCHOR_END: one_float
    note("one float")?;
    drop(one);
    lab.table(
        Table::new(["field", "what it says"])
            .row(row!["Fan", "percent of full speed; N/A for a card without a fan"])
            .row(row!["Temp", "of the chip, in degrees Celsius; near 90 it slows down"])
            .row(row![
                "Perf",
                "the clocks: P0 the fastest, P8 or so asleep, P12 the slowest"
            ])
            .row(row!["Pwr:Usage/Cap", "watts now / the most it may draw"])
            .row(row!["Memory-Usage", "in use, by all processes / all there is"])
            .row(row!["GPU-Util", "the share of the recent past with a kernel running"])
            .row(row!["PID, Type", "whose process; C computes, G draws, C+G both"])
            .row(row!["Memory Usage", "what that process holds"]),
    );
    lab.table(table);
    let gpu = monitor::gpu(device.index())?;
    let this = gpu.processes.iter().find(|process| process.is_this);
    let held = this.and_then(|process| process.used_memory).unwrap_or(gpu.memory_used);
    lab.answer(guess, hardware("held_for_one_float", mebibytes(held)).unit("MiB"));
    lab.prose(
        "Hundreds of MiB for four bytes. CUDA itself takes memory as soon as a program uses the GPU (its context), and \
         the allocator takes 2 MiB at a time. A real table has more columns; chapter 05 names them.",
    );
    Ok(())
}

fn before_during_after(lab: &mut Lab) -> crate::Result<()> {
    lab.section(2, "Before, during, after");
    let guess = lab.predict(
        Prediction::choice(
            "05-falls",
            "A training run has ended and all its tensors are dropped. The program waits for a while. Which reading is \
             still as high as in training?",
        )
        .or("utilization", "GPU-Util", "It is about the last moments, and no kernel has run in them.")
        .or("power", "Pwr", "A card that does nothing draws less, if only after a moment.")
        .or("memory", "Memory-Usage", "Here the memory went back to the driver.")
        .or(
            "none",
            "None of them: all three have fallen.",
            "Two have, because they are about the last moments. Memory that is dropped goes to the allocator only.",
        )
        .because("The allocator keeps dropped memory for the next tensor, and to the driver it is in use.")
        .raced()
        .only_if(lab.device().is_cuda()),
    );
    if !on_gpu(lab, "what the monitor says before, during and after a training run.") {
        return Ok(());
    }
    let device = lab.device();
    let mut seen = Vec::new();
    let mut table = Table::new(["moment", "Pwr", "Memory-Usage", "GPU-Util"]);
    let mut note = |moment: &str| -> Result<()> {
        let gpu = monitor::gpu(device.index())?;
        table.rows.push(row![
            moment,
            reading("moment_power", watts(gpu.power_draw)).unit("W"),
            hardware("moment_memory", mebibytes(gpu.memory_used)).unit("MiB"),
            reading("moment_utilization", gpu.utilization).unit("%"),
        ]);
        seen.push(gpu);
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
    let [training, later] = [&seen[2], &seen[4]];
    let key = if later.utilization.is_some()
        && later.utilization >= training.utilization
    {
        "utilization"
    } else if later.power_draw.is_some() && later.power_draw >= training.power_draw {
        "power"
    } else if later.memory_used >= training.memory_used {
        "memory"
    } else {
        "none"
    };
    lab.answer(guess, key);
    lab.prose(
        "None of them falls at once. Utilization and power describe the moments before: a while later they are down. Memory \
         stays, because the allocator keeps what was dropped, until empty_cache(); and the context stays until the \
         program ends. So a program that holds memory need not be computing.",
    );
    Ok(())
}

fn three_numbers(lab: &mut Lab) -> crate::Result<()> {
    lab.section(3, "Three numbers");
    lab.think(
        "05-between",
        "`memory_reserved()` gives a larger number than `memory_allocated()`, and `nvidia-smi` a larger one still. Why \
         does `nvidia-smi` show more than the program has reserved?",
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
    let (this, others): (Vec<_>, Vec<_>) =
        gpu.processes.iter().partition(|process| process.is_this);
    let this = this.first().and_then(|process| process.used_memory);
    let others: u64 = others.iter().filter_map(|process| process.used_memory).sum();
    let context = this.map(|this| this.saturating_sub(reserved));
    // ANCHOR_END: ladder
    let line = |what: &str, figure: Figure| {
        let mebibytes = match figure.value {
            Value::Int(bytes) => {
                hardware("in_mebibytes", bytes as f64 / 1048576.0).digits(2)
            }
            _ => hardware("in_mebibytes", "N/A"),
        };
        row![what, figure, mebibytes]
    };
    lab.table(
        Table::new(["", "bytes", "MiB"])
            .row(line("memory_allocated(): in tensors", exact("allocated", allocated)))
            .row(line("+ kept by the allocator", exact("kept", reserved - allocated)))
            .row(line("= memory_reserved()", exact("reserved", reserved)))
            .row(line(
                "+ CUDA's own, the context",
                if_known(hardware, "context", context),
            ))
            .row(line("= this process", if_known(hardware, "this_process", this)))
            .row(line("+ other processes", hardware("other_processes", others)))
            .row(line("= Memory-Usage", hardware("memory_usage", gpu.memory_used))),
    );
    lab.prose(
        "Each is right, and answers another question. Does my program keep a tensor too long? Look at \
         allocated. Could one more fit without asking the driver? Look at what the allocator keeps. Can another program start? Look at \
         Memory-Usage.",
    );
    Ok(())
}

fn who_else(lab: &mut Lab) -> crate::Result<()> {
    lab.section_apart(4, "Who else is there", "it depends on what other programs hold");
    let device = lab.device();
    // Without another program nobody could tell.
    let is_shared = device.is_cuda()
        && monitor::gpu(device.index())?
            .processes
            .iter()
            .any(|process| !process.is_this);
    let guess = lab.predict(
        Prediction::choice(
            "05-other",
            "Another program holds some of your GPU's memory, and computes nothing. How does your program notice?",
        )
        .or(
            "slower",
            "It is slower, because the two share the memory.",
            "Memory that is held costs no time. Only kernels of the other program would.",
        )
        .or("fails", "It fails once it asks for more than is left.", "It got more than was left.")
        .or(
            "moved",
            "It does not: the driver moves the other's memory out of the way.",
            "No program is made to give memory up.",
        )
        .because("What others hold is missing, whether they compute or not.")
        .only_if(is_shared),
    );
    if !on_gpu(lab, "who holds memory of the GPU.") {
        return Ok(());
    }
    // ANCHOR: processes
    lab.print(text!("{}", hardware("gpu_processes", cuda::list_gpu_processes()?)));
    let gpu = monitor::gpu(device.index())?;
    let others: Vec<_> =
        gpu.processes.iter().filter(|process| !process.is_this).collect();
    // ANCHOR_END: processes
    if !is_shared {
        lab.prose(
            "Nobody else holds any. With --gpu sim:t4,others=1GiB a browser holds some of it.",
        );
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
    if error.code() != Some("GPU0002") {
        return Err(error.into());
    }
    lab.answer(guess, "fails");
    lab.prose(
        "It fails, as soon as it asks for more than is left. What others hold is not there for you, whether they compute or not. The error \
         names them by their numbers. Close that program, or move it to another GPU; or make do with a smaller batch. \
         empty_cache() is of no use: it gives memory to others, and takes none from them.",
    );
    Ok(())
}

fn the_host(lab: &mut Lab) -> crate::Result<()> {
    lab.section(5, "The host");
    let device = lab.device();
    let is_known = device.is_cuda() && monitor::host().cpu_time.is_some();
    let guess = lab.predict(
        Prediction::number(
            "05-waits",
            "`htop` shows the CPU in percent of one core. A program asks the GPU for a product, waits until it is done, \
             and begins again. What percentage does `htop` show for it?",
        )
        .unit("%")
        .tolerance(0.1)
        .because("CUDA does not sleep until the GPU is done. It asks again and again, because that answers soonest.")
        .raced()
        .only_if(is_known),
    );
    let mut waiting = None;
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
        let cpu = cpu.map(|percent| percent.round() as i64);
        if what == WAITS_FOR_A_GPU {
            waiting = cpu;
        }
        table.rows.push(row![
            what,
            reading("host_cpu", cpu).unit("%"),
            if_known(
                measured,
                "host_threads",
                now.threads.map(|threads| threads as u64)
            ),
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
        note(WAITS_FOR_A_GPU, &mut || {
            there.matmul(&there)?;
            wait_for(device)
        })?;
    }
    // ANCHOR: workers
    let options =
        DataLoaderOptions { batch_size: 64, num_workers: 2, ..Default::default() };
    let loader = DataLoader::new(Pictures::new(64)?, options)?;
    let mut batches = loader.iter();
    // ANCHOR_END: workers
    note("waits for workers", &mut || batches.next().transpose().map(drop))?;
    drop(batches);
    let held = Tensor::ones(&[64 << 18])?; // 64 MiB
    note("64 MiB more", &mut nap)?;
    drop(held);
    lab.table(table);
    lab.answer(guess, reading("waiting_cpu", waiting).unit("%"));
    lab.prose(
        "100 % is one thread that never rests. Small operations keep one busy, large ones are shared among the cores. \
         A thread that waits for a GPU keeps asking whether it is done: that is 100 % as well, and no sign of work. One that waits for \
         a worker sleeps; what you see is the workers.",
    );
    Ok(())
}

/// The row of section 5 that is asked about.
const WAITS_FOR_A_GPU: &str = "waits for a GPU";

/// For how long the host is looked at. A real system counts in steps of 10 ms.
fn look() -> Duration {
    let modelled = todevice::Machine::current().time_is_modelled();
    Duration::from_millis(if modelled { 4 } else { 200 })
}

/// A figure of what is not known everywhere.
fn if_known(
    kind: fn(&'static str, Value) -> Figure,
    name: &'static str,
    value: Option<u64>,
) -> Figure {
    kind(name, value.map_or_else(|| "N/A".into(), Into::into))
}

/// Pictures as bytes. Each sample costs the CPU something: it is made floats of mean 0.
struct Pictures {
    pixels: Tensor,
}

impl Dataset for Pictures {
    type Sample = (Tensor, i64);

    fn len(&self) -> usize {
        1 << 20
    }

    fn get(&self, index: usize) -> Result<(Tensor, i64)> {
        let kept = self.pixels.size(0)?;
        let picture = self.pixels.select(0, (index % kept) as i64)?.to(DType::F32)?;
        let centred = (&picture - picture.mean()?)?;
        Ok((centred, (index % 10) as i64))
    }
}

impl Pictures {
    /// So many, over and over again.
    fn new(kept: usize) -> Result<Pictures> {
        Ok(Pictures { pixels: (Tensor::rand(&[kept, 1024])? * 255.0)?.to(DType::U8)? })
    }
}
