//! The table of nvidia-smi.

use std::time::Duration;

use drawing::ladder::{self, Rung};
use drawing::smi::{self, mebibytes, watts};
use drawing::words;
use todevice::data::{DataLoader, DataLoaderOptions, Dataset};
use todevice::monitor::{self, Gpu};
use todevice::prelude::*;
use todevice::time::sleep;
use todevice::{Machine, cuda};

use super::{BATCH, Training, pause, pictures, reading, watched};
use crate::frame::clock::{modelled_or_measured, wait_for};
use crate::frame::render_text::wrap;
use crate::{
    Figure, Lab, Prediction, Table, Text, Value, exact, hardware, measured, row, text,
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
    let guess = lab.predict_on_gpu(
        Prediction::number(
            "05-one-float",
            "A program makes a tensor of one float on the GPU, and nothing else. How many MiB of the GPU's memory does \
             `nvidia-smi` show for this program?",
        )
        .unit("MiB")
        .tolerance(0.25) // larger than the differences between drivers and cards
        .because(
            "CUDA itself takes memory as soon as a program uses the GPU: its context. The allocator adds a segment of \
             2 MiB.",
        ),
    );
    if !lab
        .has_gpu_to_show("the table that nvidia-smi prints, and explains its fields.")
    {
        return Ok(());
    }
    let device = lab.device();
    let before = monitor::gpu(device.index())?;
    // ANCHOR: one_float
    let one = Tensor::ones((&[1], device))?;
    wait_for(device)?;
    pause();

    let gpus: Vec<Gpu> =
        (0..cuda::device_count()).map(monitor::gpu).collect::<Result<_>>()?;
    let table = smi::table(&gpus);
    // ANCHOR_END: one_float
    let with_one = &gpus[device.index()];
    drop(one);
    lab.print(text!("{}", hardware("nvidia_smi", table)));
    lab.table(fields());
    let mut moments = Table::new(["moment", "Perf", "Pwr", "Memory-Usage"]);
    for (moment, gpu) in [("before", &before), ("one float", with_one)] {
        let state = gpu.performance_state.map(|state| format!("P{state}"));
        moments = moments.row(row![
            moment,
            reading("performance_state", state),
            reading("power", watts(gpu.power_draw)).unit("W"),
            hardware("memory_used", mebibytes(gpu.memory_used)).unit("MiB"),
        ]);
    }
    lab.table(moments);
    let this = with_one.processes.iter().find(|process| process.is_this);
    let held = this.and_then(|process| process.used_memory);
    let held = mebibytes(held.unwrap_or(with_one.memory_used));
    lab.answer(guess, hardware("held_for_one_float", held).unit("MiB"));
    lab.prose(
        "Four of these bytes are the float. The allocator took 2 MiB for it, which is its smallest segment, and the rest \
         is CUDA's own: the context, which a program gets when it first uses a GPU and keeps until it ends.",
    );
    Ok(())
}

fn fields() -> Table {
    Table::new(["field", "what it says"])
        .row(row!["CUDA UMD Version", "the newest CUDA that this driver can run"])
        .row(row![
            "Persistence-M",
            "whether the driver stays loaded while nobody uses it"
        ])
        .row(row!["Fan", "percent of full speed; N/A for a card without a fan"])
        .row(row!["Temp", "of the chip, in degrees Celsius; near 90 it slows down"])
        .row(row!["Perf", "state of the clocks: P0 is the fastest, P8 or so asleep"])
        .row(row!["Pwr:Usage/Cap", "watts now / the most it may draw"])
        .row(row!["Bus-Id", "the slot it sits in"])
        .row(row![
            "Disp.A",
            "whether memory is set aside for a screen, connected or not"
        ])
        .row(row!["Memory-Usage", "in use, by all processes / all there is"])
        .row(row!["Volatile Uncorr. ECC", "memory errors that nothing could correct"])
        .row(row!["GPU-Util", "the share of the recent past with a kernel running"])
        .row(row!["Compute M.", "who may use it: any program, one, or none"])
        .row(row![
            "MIG M., GI ID, CI ID",
            "whether the GPU is divided, and which part this is"
        ])
        .row(row!["PID, Type", "which process; C computes, G draws, C+G does both"])
        .row(row!["GPU Memory Usage", "what that process holds"])
}

fn before_during_after(lab: &mut Lab) -> crate::Result<()> {
    lab.section(2, "Before, during, after");
    let guess = lab.predict_on_gpu(
        Prediction::choice(
            "05-falls",
            "A training run has ended and all its tensors are dropped. The program waits for a while. Which reading is \
             still as high as during the run?",
        )
        .or("utilization", "GPU-Util", "It is about the last moments, and no kernel has run in them.")
        .or("power", "Pwr", "A card that does nothing draws less, if only after a moment.")
        .or("memory", "Memory-Usage", "Here the memory went back to the driver.")
        .or(
            "none",
            "None of them: all three have fallen.",
            "Two have, because they are about the last moments. Memory that is dropped goes no further than the allocator.",
        )
        .because("The allocator keeps dropped memory for the next tensor, and to the driver that memory is in use.")
        .raced(),
    );
    if !lab.has_gpu_to_show(
        "what the monitor says before, during and after a training run.",
    ) {
        return Ok(());
    }
    let moments = moments(lab.seed(), lab.device())?;
    let mut table = Table::new(["moment", "Pwr", "Memory-Usage", "GPU-Util"]);
    for (moment, gpu) in &moments {
        table = table.row(row![
            *moment,
            reading("moment_power", watts(gpu.power_draw)).unit("W"),
            hardware("moment_memory", mebibytes(gpu.memory_used)).unit("MiB"),
            reading("moment_utilization", gpu.utilization).unit("%"),
        ]);
    }
    lab.table(table);
    let [during, later] = [&moments[2].1, &moments[4].1];
    let as_high = |now: Option<u32>, then: Option<u32>| now.is_some() && now >= then;
    let key = if as_high(later.utilization, during.utilization) {
        "utilization"
    } else if as_high(later.power_draw, during.power_draw) {
        "power"
    } else if later.memory_used >= during.memory_used {
        "memory"
    } else {
        "none"
    };
    lab.answer(guess, key);
    let verdict = if key == "memory" {
        "When the run has just ended, GPU-Util and power still describe the moments before. A while later both are down. \
         Memory stays: the allocator keeps what was dropped until empty_cache(), and the context stays until the program \
         ends. So a program that holds memory need not be computing."
    } else {
        "GPU-Util and power describe the moments before, and should be down a while later, while memory stays until \
         empty_cache(). Here it went otherwise: perhaps another program uses this GPU."
    };
    lab.prose(Text::from(verdict).raced());
    Ok(())
}

// ANCHOR: moments
/// The monitor's readings before, during and after a training run.
fn moments(seed: u64, device: Device) -> Result<[(&'static str, Gpu); 6]> {
    let look = || monitor::gpu(device.index());
    cuda::empty_cache()?;
    pause();
    let before = look()?;

    let mut training = Training::new(seed, device)?;
    let (x, y) = pictures(BATCH)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    let loaded = look()?;

    watched(device, || training.step(&x, &y).map(drop))?;
    let during = look()?;

    wait_for(device)?;
    drop((training, x, y));
    let ended = look()?;

    pause();
    let later = look()?;

    cuda::empty_cache()?;
    let emptied = look()?;
    Ok([
        ("before", before),
        ("data on the GPU", loaded),
        ("training", during),
        ("just ended", ended),
        ("a while later", later),
        ("empty_cache()", emptied),
    ])
}
// ANCHOR_END: moments

fn three_numbers(lab: &mut Lab) -> crate::Result<()> {
    lab.section(3, "Four numbers");
    lab.think(
        "05-between",
        "`memory_reserved()` gives a larger number than `memory_allocated()`, and `nvidia-smi` a larger one still. Why \
         does `nvidia-smi` show more than the program has reserved?",
    );
    if !lab.has_gpu_to_show("how the three counts of memory add up.") {
        return Ok(());
    }
    let device = lab.device();
    let mut training = Training::new(lab.seed(), device)?;
    let (x, y) = pictures(BATCH)?;
    training.step(&x.to(device)?, &y.to(device)?)?; // the batch is freed after it
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
    let rung = |counter: &str, adds: &str, bytes| Rung {
        counter: counter.to_owned(),
        adds: adds.to_owned(),
        bytes,
    };
    let mut rungs = vec![
        rung("memory_allocated()", "in tensors", allocated),
        rung("memory_reserved()", "kept by the allocator", reserved - allocated),
    ];
    if let Some(context) = context {
        rungs.push(rung("nvidia-smi, this process", "CUDA's own (context)", context));
    }
    let counted: u64 = rungs.iter().map(|rung| rung.bytes).sum();
    let rest = gpu.memory_used.saturating_sub(counted);
    rungs.push(rung("nvidia-smi, Memory-Usage", "of others", rest));
    let counts: Vec<String> = (1..=rungs.len())
        .map(|count| {
            let bytes = rungs[..count].iter().map(|rung| rung.bytes).sum();
            format!("{}: {}", rungs[count - 1].counter, words::bytes(bytes))
        })
        .collect();
    let caption = format!(
        "The memory in use at one moment, counted in {} ways, each of which includes the one above it. {}. Only the \
         first is what tensors hold.",
        rungs.len(),
        counts.join("; ")
    );
    lab.picture(ladder::picture(&rungs), &caption);
    lab.prose(
        "All of them are right, because each answers a question of its own. Does my program keep a tensor too long? Look at \
         allocated. Could another tensor fit without asking the driver? Look at what the allocator keeps. Can another program \
         start? Look at Memory-Usage.",
    );
    Ok(())
}

fn who_else(lab: &mut Lab) -> crate::Result<()> {
    lab.section_apart(4, "Who else is there", "it depends on what other programs hold");
    let device = lab.device();
    // Without another program, the answer is unknown.
    let is_shared = match lab.gpu() {
        Some(gpu) => {
            let processes = monitor::gpu(gpu.index())?.processes;
            processes.iter().any(|process| !process.is_this)
        }
        None => false,
    };
    let guess = lab.predict(
        Prediction::choice(
            "05-other",
            "Another program holds some of your GPU's memory, and computes nothing. Both programs run on Linux. How does your \
             program notice?",
        )
        .or(
            "slower",
            "It gets slower, because the two share the memory.",
            "On Linux, memory that others hold costs no time; only their kernels would. Windows may spill memory \
             into the host's, and that is slow.",
        )
        .or("fails", "It fails once it asks for more than is left.", "It got more than was left, as it may on Windows.")
        .or(
            "moved",
            "It does not: the driver moves the other program's memory out of the way.",
            "On Linux no program is made to give up memory. On Windows the other program may be.",
        )
        .because("What others hold is not available to you, whether they compute or not.")
        .only_if(is_shared),
    );
    if !lab.has_gpu_to_show("who holds memory of the GPU.") {
        return Ok(());
    }
    // ANCHOR: processes
    let listed = cuda::list_gpu_processes()?;
    let gpu = monitor::gpu(device.index())?;
    let others = gpu.processes.iter().filter(|process| !process.is_this);
    let held: u64 = others.filter_map(|process| process.used_memory).sum();
    // ANCHOR_END: processes
    lab.print(text!("{}", hardware("gpu_processes", listed)));
    if !is_shared {
        lab.prose(
            "Nobody else holds memory of this GPU. With --gpu sim:t4,others=1GiB a browser does.",
        );
        return Ok(());
    }
    // ANCHOR: too_much
    const PART: u64 = 512 << 20; // 512 MiB
    cuda::empty_cache()?;
    let (free, total) = cuda::mem_get_info()?;
    let parts = free / PART + 1; // together more than is free
    let outcome = (0..parts)
        .map(|_| Tensor::empty((&[PART as usize / 4], device)))
        .collect::<Result<Vec<_>>>();
    // ANCHOR_END: too_much
    let outcome = outcome.map(drop);
    cuda::empty_cache()?; // frees the parts that did fit
    let too_much = parts * PART;
    lab.table(
        Table::new(["", "MiB"])
            .row(row!["all there is", hardware("total_memory", mebibytes(total))])
            .row(row!["free", hardware("free_memory", mebibytes(free))])
            .row(row!["held by others", hardware("held_by_others", mebibytes(held))])
            .row(row!["asked for", hardware("asked_for", mebibytes(too_much))]),
    );
    let error = match outcome {
        Ok(()) => {
            drop(guess); // No figure here can tell the others apart.
            lab.prose(
                "It fits, although the card has less free. This driver spills memory into the host's, as it does on Windows, and \
                 whatever is spilled is read over the PCI bus: your program does not fail, it crawls. NVIDIA's control panel \
                 calls this CUDA - Sysmem Fallback Policy, and can switch it off.",
            );
            return Ok(());
        }
        Err(error) if error.code() != Some("GPU0002") => return Err(error.into()),
        Err(error) => error.to_string(),
    };
    lab.report(wrap(error.split(" Of the allocated").next().unwrap_or_default()));
    lab.answer(guess, "fails");
    lab.prose(
        "It fails when it asks for more than is left. What others hold is not available to you, whether they compute \
         or not, and the error names them by their numbers. Close that program, move to another GPU, or make do with a \
         smaller batch. empty_cache() does not help you here: it gives memory to others, and takes none from them.",
    );
    Ok(())
}

fn the_host(lab: &mut Lab) -> crate::Result<()> {
    lab.section(5, "The host");
    let is_known = monitor::host().cpu_time.is_some();
    let guess = lab.predict_on_gpu(
        Prediction::number(
            "05-waits",
            "`htop` shows the CPU in percent of one core. A program asks the GPU for a product, waits until it is done, \
             and begins again. What percentage does `htop` show for it?",
        )
        .unit("%")
        .tolerance(0.1)
        .because("CUDA does not sleep while it waits. It asks the GPU again and again, so that it finds out at once.")
        .raced()
        .only_if(is_known),
    );
    let mut shown = Vec::new();
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
        shown.push((what.to_owned(), cpu));
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
    note(LARGE_PRODUCTS, &mut || large.matmul(&large).map(drop))?;
    let mut nap = || {
        sleep(Duration::from_millis(1));
        Ok(())
    };
    note("sleeps", &mut nap)?;
    if let Some(device) = lab.gpu() {
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
    let cpu_of = |program: &str| {
        shown.iter().find(|(what, _)| what == program).and_then(|(_, cpu)| *cpu)
    };
    lab.answer(guess, reading("waiting_cpu", cpu_of(WAITS_FOR_A_GPU)).unit("%"));
    let verdict = match cpu_of(LARGE_PRODUCTS) {
        // Measured values differ from run to run.
        Some(percent) if percent > 150 && Machine::current().time_is_modelled() => {
            "100 % is one thread that does not rest. The large products show more, because they are shared among the cores."
        }
        _ => {
            "100 % is one thread that does not rest. If several cores are free, large products are shared among them, \
             and show more."
        }
    };
    lab.prose(Text::from(verdict).raced());
    lab.prose_on_gpu(
        "The thread that waits for the GPU asks again and again whether it is done. That looks like work, but is not.",
    );
    lab.prose(
        "The program that waits for workers sleeps meanwhile. Its row shows what the workers use.",
    );
    Ok(())
}

/// Rows of section 5 that the text mentions.
const LARGE_PRODUCTS: &str = "large products";
const WAITS_FOR_A_GPU: &str = "waits for a GPU";

/// The length of an observation. A real system counts in steps of 10 ms.
fn look() -> Duration {
    Duration::from_millis(modelled_or_measured(4, 200))
}

/// A figure whose value may be unknown.
fn if_known(
    kind: fn(&'static str, Value) -> Figure,
    name: &'static str,
    value: Option<u64>,
) -> Figure {
    kind(name, value.map_or_else(|| "N/A".into(), Into::into))
}

/// Images as bytes. Each sample costs the CPU some time: it becomes floats of mean 0.
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
    /// Makes `kept` images, used repeatedly.
    fn new(kept: usize) -> Result<Pictures> {
        Ok(Pictures { pixels: (Tensor::rand(&[kept, 1024])? * 255.0)?.to(DType::U8)? })
    }
}
