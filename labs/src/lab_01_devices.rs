//! Lab 01: devices. Why to use a GPU, how to list GPUs, and how to move tensors and models to them.

use std::time::Duration;

use drawing::chart::{Series, log_log};
use drawing::link::{self, Moved};
use drawing::placement::{Role, Thing, picture};
use drawing::words;
use todevice::cuda::{self, DeviceProperties};
use todevice::nn::Parameter;
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::trace::Counters;
use todevice::{Machine, ToOptions};

use crate::frame::cli::count;
use crate::frame::clock::wait_for;
use crate::frame::render_text::wrap;
use crate::{
    Entry, Figure, Lab, Prediction, Run, Table, Text, exact, hardware, row, text, timed,
};

pub const LAB: Entry<Options> = Entry { name: "lab-01", title: "Devices", run };

/// The knobs of this lab.
#[derive(clap::Args)]
pub struct Options {
    /// Rows and columns of the largest matrices to multiply
    #[arg(long, value_name = "N", default_value = "1024", value_parser = count(16..=8192))]
    pub max_size: usize,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    manual_seed(lab.seed());

    lab.section(1, "Why a GPU");
    why_a_gpu(lab, options.max_size)?;

    lab.section(2, "Which GPUs are there?");
    which_gpus(lab)?;

    lab.section(3, "The line that makes a program portable");
    portable_line(lab)?;

    lab.section(4, "Six calls of .to");
    six_calls(lab)?;

    lab.section(5, "There and back");
    there_and_back(lab)?;

    lab.section(6, "Made where it is needed");
    made_where_needed(lab)?;

    lab.section(7, "A model on the device");
    model_on_the_device(lab)?;

    lab.section(8, "The current device");
    current_device(lab)
}

fn why_a_gpu(lab: &mut Lab, max_size: usize) -> crate::Result<()> {
    lab.prose(
        "Training a network means multiplying matrices, over and over: millions of simple operations that need not wait for \
         each other. On a CPU a training run can take days or weeks. A GPU does thousands of these operations at once.",
    );
    lab.prose(
        "The CPU and its memory are the host. A GPU and its memory are a device. Your program is host code, because it runs on \
         the host. To have the device compute something, it launches a kernel. A kernel is device code: a function that \
         thousands of threads of the GPU run at the same time.",
    );
    if cuda::is_available() {
        first_use(lab)?;
    }

    let guess = lab.predict(race(max_size).only_if(cuda::is_available()));

    // ANCHOR: crossover
    product_on_cpu(256)?; // not shown: it wakes the threads of the CPU

    let (mut on_cpu, mut on_gpu) = (Vec::new(), Vec::new());
    let progress = lab.progress(1 + (max_size / 16).ilog2() as usize, "multiplying");
    let mut size = 16;
    while size <= max_size {
        on_cpu.push((size, product_on_cpu(size)?));
        if cuda::is_available() {
            on_gpu.push((size, product_on_gpu(size)?));
        }
        size *= 2;
        progress.inc(1);
    }
    // ANCHOR_END: crossover
    progress.finish();

    if on_gpu.is_empty() {
        let mut times = Table::new(["rows and columns", "CPU"]);
        for (size, time) in on_cpu {
            times = times.row(row![size, in_ms("cpu_time", time)]);
        }
        lab.table(times);
        lab.prose(
            "A second column belongs here, but this machine has no GPU. The rest of the lab runs all the same, on the CPU. Run it \
             with --gpu sim:t4 to see what a simulated GPU does.",
        );
        return Ok(());
    }

    let mut times = Table::new(["rows and columns", "CPU", "GPU", "CPU / GPU"]);
    for ((size, cpu), (_, gpu)) in on_cpu.iter().zip(&on_gpu) {
        times = times.row(row![
            *size,
            in_ms("cpu_time", *cpu),
            in_ms("gpu_time", *gpu),
            ratio("speedup", *cpu, *gpu)
        ]);
    }
    lab.table(times);
    lab.picture(
        chart(&on_cpu, &on_gpu),
        "How the time of each device grows with the size of the product. Both axes are logarithmic.",
    );
    let faster = on_cpu.iter().zip(&on_gpu).find(|((_, cpu), (_, gpu))| gpu < cpu);
    lab.answer(
        guess,
        match faster {
            Some(((..=16, _), _)) => "16",
            Some(((..=64, _), _)) => "32",
            Some(((..=256, _), _)) => "128",
            Some(_) => "512",
            None => "never",
        },
    );

    let (_, smallest) = on_gpu[0];
    let (size, larger) = on_gpu[2.min(on_gpu.len() - 1)];
    let growth = text!(
        "CPU / GPU says how many times as long the CPU takes. At size 16 the GPU needs {}, and at size {size} it needs {}.",
        in_ms("smallest_gpu_time", smallest),
        in_ms("larger_gpu_time", larger)
    );
    lab.prose(growth);
    let overhead = if 2 * smallest > larger {
        "Hardly any of that is arithmetic. It goes into the launch, into reaching the device, and into waiting for the \
         end, and these take the same time for every size."
    } else {
        "Part of that goes into the launch, into reaching the device, and into waiting for the end, which take the same time \
         for every size. But this GPU also feels the arithmetic from the start."
    };
    lab.prose(Text::from(overhead).raced());
    let verdict = match faster {
        Some(((16, _), _)) => Text::from(
            "On this machine the GPU wins at every size, the smallest included.",
        ),
        Some(((size, cpu), _)) => text!(
            "Size {} is the first at which the GPU wins. Many small operations can be slower on a GPU than on the CPU, and \
             a few large ones are faster.",
            Figure { kind: in_ms("", *cpu).kind, ..exact("crossover", *size) }
        ),
        None => text!(
            "The GPU does not win at any of these sizes. Try a larger --max-size."
        ),
    };
    lab.prose(verdict.raced());
    Ok(())
}

/// Asks for the size at which the GPU overtakes the CPU.
fn race(max_size: usize) -> Prediction {
    Prediction::choice(
        "01-faster",
        format!(
            "A square matrix is multiplied by itself: 16 × 16 first, then one with twice as many rows, and so on \
             up to {}. At which size does the GPU begin to be faster than the CPU?",
            16 << (max_size / 16).ilog2()
        ),
    )
    .or(
        "16",
        "From 16 on: it is always faster.",
        "The CPU is done with the smallest product before the GPU is.",
    )
    .or("32", "From 32 or 64 on.", "What decides is where the arithmetic outweighs the launch and the wait.")
    .or("128", "From 128 or 256 on.", "What decides is where the arithmetic outweighs the launch and the wait.")
    .or(
        "512",
        "From 512 on, or a larger size.",
        "With each doubling there is eight times as much arithmetic, and the launch costs no more.",
    )
    .or("never", "At none of these sizes.", "At some size the arithmetic outweighs the launch.")
    .raced()
}

/// One-time costs, and the number of launches.
fn first_use(lab: &mut Lab) -> crate::Result<()> {
    let device = Device::cuda(0);
    const SETTING_UP: &str = "At its first use the driver has to set the GPU up; the second time everything is ready.";
    let guess = lab.predict(
        Prediction::choice(
            "01-twice",
            "The first thing that a program does with the GPU is make a small tensor on it, 16 × 16 zeros. \
             Then it makes another one like it. How many times as long does the first one take?",
        )
        .or("1", "Less than twice as long.", SETTING_UP)
        .or("30", "2 to 30 times as long.", SETTING_UP)
        .or(
            "1000",
            "30 to 1000 times as long.",
            SETTING_UP,
        )
        .or("more", "More than 1000 times as long.", "The GPU had been used before.")
        .raced(),
    );

    // ANCHOR: first_use
    let first = time_of(device, || Tensor::zeros((&[16, 16], device)))?;
    let second = time_of(device, || Tensor::zeros((&[16, 16], device)))?;
    // ANCHOR_END: first_use
    lab.table(
        Table::new(["16 × 16 zeros on the GPU", "time"])
            .row(row!["the first time", in_ms("first_use_time", first)])
            .row(row!["the second time", in_ms("second_use_time", second)]),
    );
    lab.answer(
        guess,
        match first.as_secs_f64() / second.as_secs_f64() {
            ..2.0 => "1",
            ..30.0 => "30",
            ..1000.0 => "1000",
            _ => "more",
        },
    );
    lab.prose(
        "The first use of a GPU creates its context: the driver sets up memory and loads code. A program pays for that once, \
         and the times below leave it out.",
    );

    lab.think(
        "01-launches",
        "Three operations on the GPU: `matmul`, `+` and `relu`. How many kernels are launched?",
    );

    // ANCHOR: launches
    let x = Tensor::rand((&[16, 16], device))?;
    let before = Machine::current().counters();
    (x.matmul(&x)? + 1.0)?.relu()?;
    let done = Machine::current().counters() - before;
    // ANCHOR_END: launches
    lab.print(text!("Kernels launched: {}", exact("launches", done.launches)));
    lab.prose(
        "Each of the three operations launches a kernel of its own. A launch takes the host some time, whatever the tensor's \
         size.",
    );
    Ok(())
}

// ANCHOR: product
fn product_on_cpu(size: usize) -> Result<Duration> {
    let x = Tensor::rand(&[size, size])?;

    let start = Instant::now();
    x.matmul(&x)?;
    Ok(start.elapsed())
}

fn product_on_gpu(size: usize) -> Result<Duration> {
    let x = Tensor::rand((&[size, size], Device::cuda(0)))?;
    x.matmul(&x)?; // not timed: the first product allocates memory and loads code

    cuda::synchronize()?; // the GPU has finished all earlier work
    let start = Instant::now();
    x.matmul(&x)?; // only launches the product
    cuda::synchronize()?; // waits until it is done
    Ok(start.elapsed())
}
// ANCHOR_END: product

fn which_gpus(lab: &mut Lab) -> crate::Result<()> {
    lab.think(
        "01-gpus",
        "Without a GPU, which of these three questions fails: is one available, how many are there, which is \
         the current one?",
    );

    // ANCHOR: availability
    let is_available = cuda::is_available();
    let device_count = cuda::device_count();
    // ANCHOR_END: availability
    lab.print(text!("cuda::is_available(): {is_available}"));
    lab.print(text!(
        "cuda::device_count(): {}",
        hardware("device_count", device_count)
    ));

    // ANCHOR: current
    let current_device = cuda::current_device();
    // ANCHOR_END: current
    match current_device {
        Ok(index) => lab.print(text!("cuda::current_device(): {index}")),
        Err(error) => fails(lab, "cuda::current_device()", &error),
    }
    if !is_available {
        lab.prose(
            "Ask is_available() first: it always answers. Whatever needs a GPU fails without one, even the question which GPU \
             is the current one.",
        );
        return Ok(());
    }

    let mut gpus = Table::new([
        "device",
        "name",
        "memory",
        "multiprocessors",
        "threads",
        "capability",
    ]);
    for (index, (name, gpu)) in list_gpus()?.into_iter().enumerate() {
        let threads = gpu.multi_processor_count * gpu.max_threads_per_multi_processor;
        gpus = gpus.row(row![
            Device::cuda(index).to_string(),
            hardware("name", name),
            hardware("total_memory", gpu.total_memory as f64 / f64::from(1 << 30))
                .unit("GiB")
                .digits(1),
            hardware("multi_processor_count", u64::from(gpu.multi_processor_count)),
            hardware("threads", u64::from(threads)),
            hardware("compute_capability", format!("{}.{}", gpu.major, gpu.minor)),
        ]);
    }
    lab.table(gpus);
    lab.prose(
        "A multiprocessor is to a GPU what a core is to a CPU, but it keeps a thousand threads or more going. The column \
         threads adds them up. The compute capability is the version of the hardware.",
    );
    Ok(())
}

// ANCHOR: list
/// The name and the properties of each GPU.
fn list_gpus() -> Result<Vec<(String, DeviceProperties)>> {
    let mut gpus = Vec::new();
    for index in 0..cuda::device_count() {
        gpus.push((cuda::get_device_name(index)?, cuda::get_device_properties(index)?));
    }
    Ok(gpus)
}
// ANCHOR_END: list

fn portable_line(lab: &mut Lab) -> crate::Result<()> {
    // ANCHOR: device
    let device = Device::cuda_if_available();
    // ANCHOR_END: device
    lab.print(text!("The selected device is: {device}"));

    // ANCHOR: long_form
    let same = match cuda::is_available() {
        true => Device::cuda(cuda::current_device()?),
        false => Device::Cpu,
    };
    // ANCHOR_END: long_form
    lab.print(text!("The same in full, by way of the current device: {same}"));
    if lab.device() != device {
        lab.print(text!(
            "The rest of the lab uses the device that --device names: {}",
            hardware("device", lab.device().to_string())
        ));
    }

    // Each line looks as if it could fail.
    const EIGHTH: &str = "\
let eighth: Device = \"cuda:7\".parse()?;
let on_cpu = Tensor::zeros(&[2])?;
let used = on_cpu.to(eighth)?;
let sum = used.sum()?;";
    let guess = lab.predict(if cuda::device_count() < 8 {
        Prediction::line(
            "01-eighth",
            "`cuda:7` names the eighth GPU, and this machine has fewer. Which line is the first to fail?",
            EIGHTH,
        )
        .because("It is the first that touches the device.")
    } else {
        Prediction::think(
            "01-eighth",
            "`cuda:7` names the eighth GPU. When is it found out whether it is there?",
        )
    });
    // ANCHOR: naming
    let eighth: Device = "cuda:7".parse()?;
    let used = Tensor::zeros(&[2])?.to(eighth);
    // ANCHOR_END: naming
    let is_there = used.is_ok();
    lab.print(text!("Its name: {eighth}"));
    match used {
        Ok(tensor) => lab.print(text!("A tensor on it: {tensor}")),
        Err(error) => fails(lab, "A tensor on it", &error),
    }
    lab.answer(guess, if is_there { "used.sum()" } else { "on_cpu.to(" });
    lab.prose("A device is a name. You find out whether it is there when you put something on it.");
    Ok(())
}

fn six_calls(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.prose(format!(
        "The device is {device}, and each tensor has 1000 numbers of 4 bytes. The last two columns are what the machine \
         counts: the copies from the host to the device, and their bytes."
    ));
    let guess = lab.predict(
        Prediction::number(
            "01-six-calls",
            "`on_cpu` and `on_device` hold numbers of type F32. How many of these six calls return a new \
             tensor?\n\
             `on_cpu.to(Device::Cpu)`, `on_cpu.to(device)`,\n\
             `on_device.to(device)`, `on_device.to(DType::F64)`,\n\
             `on_device.to(copy: true)`, `on_cpu.to((device, DType::F64))`",
        )
        .out_of(6)
        .because(
            "If the device and the type are already right, `.to` returns the tensor that it was called on, unless you ask for a copy.",
        ),
    );

    // ANCHOR: six_calls
    let on_cpu = Tensor::rand(&[1000])?;
    let on_device = Tensor::rand((&[1000], device))?;

    let calls = [
        call(&on_cpu, Device::Cpu)?,
        call(&on_cpu, device)?,
        call(&on_device, device)?,
        call(&on_device, DType::F64)?,
        call(&on_device, ToOptions { copy: true, ..Default::default() })?,
        call(&on_cpu, (device, DType::F64))?,
    ];
    // ANCHOR_END: six_calls
    let names = [
        "on_cpu.to(Device::Cpu)",
        "on_cpu.to(device)",
        "on_device.to(device)",
        "on_device.to(DType::F64)",
        "on_device.to(copy: true)",
        "on_cpu.to((device, DType::F64))",
    ];
    let is_new =
        |result: &Tensor| !result.is_same(&on_cpu) && !result.is_same(&on_device);
    let new = calls.iter().filter(|(result, _)| is_new(result)).count();
    let mut table =
        Table::new(["call", "device", "dtype", "result", "copies", "bytes"]);
    for (name, (result, done)) in names.into_iter().zip(&calls) {
        table = table.row(row![
            name,
            result.device().to_string(),
            result.dtype().to_string(),
            if is_new(result) { "new" } else { "the same" },
            exact("copies_to_device", done.copies_to_device),
            exact("bytes_to_device", done.bytes_to_device),
        ]);
    }
    lab.table(table);
    lab.answer(guess, new);
    lab.prose(
        "If device and type are right already, .to returns the same tensor and costs nothing, unless you pass copy: true. So you \
         can write it everywhere. A new type or copy: true makes a new tensor where the old one is.",
    );
    lab.prose(lab.gpu_or_cpu(
        "The last call converts on the CPU, and then moves twice the bytes. Moving first and converting on the \
         GPU would move 4000.",
        "The device is the CPU, so nothing is copied. With --gpu sim:t4 you see which of the calls copy.",
    ));
    if let Some(gpu) = lab.gpu() {
        one_move(lab, gpu)?;
    }
    Ok(())
}

/// Moves one tensor, and times the same copy within each of the two memories.
fn one_move(lab: &mut Lab, device: Device) -> crate::Result<()> {
    let x = Tensor::ones(&[4 << 20])?;
    let there = x.to(device)?;
    let again = || ToOptions { copy: true, ..Default::default() };
    let bytes = x.nbytes() as u64;
    let moved = Moved {
        name: "x".to_owned(),
        bytes,
        device: device.to_string(),
        card: cuda::get_device_name(device.index())?,
        within_host: cost_of(device, || x.to(again()))?.1,
        over_link: cost_of(device, || x.to(device))?.1,
        within_device: cost_of(device, || there.to(again()))?.1,
        kind: timed("", Duration::ZERO).kind.name(),
    };
    let [host, link, gpu] =
        [moved.within_host, moved.over_link, moved.within_device].map(words::time);
    let slowest = if moved.over_link > moved.within_host.max(moved.within_device) {
        "The link is the slowest path"
    } else {
        "Each path takes its own time"
    };
    let caption = format!(
        "The host and the device each have their own memory, and one link joins the two. Here x is a tensor of {}, and \
         x.to({device}) copies it over the link, in {link}. x stays in the host's memory, and .to returns a second tensor in \
         the device's memory. \
         {slowest}: a copy of the same size takes {host} inside the host's memory, and {gpu} inside the device's. These times are {}.",
        words::bytes(bytes),
        moved.kind,
    );
    lab.picture(link::picture(&moved), &caption);
    Ok(())
}

// ANCHOR: call
/// Calls `x.to(options)`. Returns the result, and what the machine copied to the
/// device for it.
fn call(x: &Tensor, options: impl Into<ToOptions>) -> Result<(Tensor, Counters)> {
    let before = Machine::current().counters();
    let result = x.to(options)?;
    Ok((result, Machine::current().counters() - before))
}
// ANCHOR_END: call

fn there_and_back(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    // ANCHOR: there_and_back
    let start = Machine::current().counters();
    let x = Tensor::new([0.1, 0.2])?;
    let x_device = x.to(device)?;
    let there = Machine::current().counters();
    let x_back = x_device.to(Device::Cpu)?;
    let back = Machine::current().counters();

    let equal = x_back.to_vec::<f32>()? == x.to_vec::<f32>()?;
    // ANCHOR_END: there_and_back
    lab.print(text!("x:        {x}"));
    lab.print(text!("x_device: {x_device}"));
    lab.print(text!("x_back:   {x_back}"));
    lab.print(text!("Equal bits: {equal}"));

    // ANCHOR: item
    let before_item = Machine::current().counters();
    let sum = x_device.sum()?.item()?;
    let after_item = Machine::current().counters();
    // ANCHOR_END: item
    let crossed = |what: &str, done: Counters| {
        row![
            what,
            exact("bytes_to_device", done.bytes_to_device),
            exact("bytes_to_host", done.bytes_to_host),
        ]
    };
    lab.table(
        Table::new(["call", "bytes to the device", "bytes to the host"])
            .row(crossed("x.to(device)", there - start))
            .row(crossed("x_device.to(Device::Cpu)", back - there))
            .row(crossed("x_device.sum()?.item()", after_item - before_item)),
    );
    lab.prose(text!(
        "A copy changes no bit. item() reads one number, here {:.2}. If the number is on a GPU, item() waits until the GPU has \
         computed it, and copies it to the host.",
        exact("sum", sum)
    ));
    Ok(())
}

fn made_where_needed(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    if let Some(device) = lab.gpu() {
        let zeros = Tensor::zeros(&[1000, 1000])?;
        let (_, copied) = cost_of(device, || zeros.to(device))?;
        let (_, made) = cost_of(device, || Tensor::zeros((&[1000, 1000], device)))?;
        lab.prose(text!(
            "A million zeros are copied to the GPU in {}, and made there in {}.",
            in_ms("copy_time", copied),
            in_ms("zeros_time", made)
        ));
    }
    let guess = lab.predict(lab.gpu_or_cpu(
        Prediction::number(
            "01-million",
            "You need a million random numbers on the GPU. You can make them on the CPU and move them, or \
             make them where you need them. About how many times as long does the first way take?",
        )
        .unit("times")
        .positive()
        .tolerance(0.25)
        .because("The first way makes them with the few cores of the CPU, and then copies 4 MB. The second copies nothing.")
        .raced(),
        Prediction::think(
            "01-million",
            "A million random numbers are needed. What does `.to(device)` cost where the device is the CPU?",
        ),
    ));

    // ANCHOR: made
    let moved = cost_of(device, || Tensor::rand(&[1000, 1000])?.to(device))?;
    let made = cost_of(device, || Tensor::rand((&[1000, 1000], device)))?;
    // ANCHOR_END: made
    let cost = |way: &str, (done, time): (Counters, Duration)| {
        row![
            way,
            exact("copies_to_device", done.copies_to_device),
            exact("bytes_to_device", done.bytes_to_device),
            timed("time", time).digits(4), // their ratio is printed below
        ]
    };
    lab.table(
        Table::new(["1000 × 1000 random numbers", "copies", "bytes", "time"])
            .row(cost("Tensor::rand(…)?.to(device)", moved))
            .row(cost("Tensor::rand((…, device))", made)),
    );
    lab.answer(guess, ratio("times_as_long", moved.1, made.1).unit("times").digits(0));
    if let Some(device) = lab.gpu() {
        lab.prose("If you make a tensor on the device, you need not move it there. Tensor::zeros and Tensor::ones take a device, too.");
        // ANCHOR: seeds
        manual_seed(lab.seed());
        let by_cpu = Tensor::rand(&[1])?.item()?;
        let by_gpu = Tensor::rand((&[1], device))?.item()?;
        // ANCHOR_END: seeds
        lab.print(text!("First number made by the CPU: {}", exact("cpu_rand", by_cpu)));
        lab.print(text!("First number made by the GPU: {}", exact("gpu_rand", by_gpu)));
        lab.prose(
            "The CPU and the GPU each have a generator, and they draw different numbers from the same seed. If you want to compare \
             runs on both, make the numbers on the CPU and move them.",
        );
    } else {
        lab.prose("On the CPU both ways come to the same thing, since .to(device) has nothing to do.");
    }
    Ok(())
}

/// The cost of making something after the first time.
fn cost_of(
    device: Device,
    make: impl Fn() -> Result<Tensor>,
) -> Result<(Counters, Duration)> {
    time_of(device, &make)?; // until nothing of it is under way
    let before = Machine::current().counters();
    let time = time_of(device, make)?;
    Ok((Machine::current().counters() - before, time))
}

fn time_of(device: Device, make: impl Fn() -> Result<Tensor>) -> Result<Duration> {
    let start = Instant::now();
    make()?;
    wait_for(device)?;
    Ok(start.elapsed())
}

// ANCHOR: actor
/// Maps an agent's state to an action: ten numbers in, one action out.
#[derive(Module)]
pub(crate) struct Actor {
    hidden: nn::Sequential,
    out: nn::Linear,
    low: f64,
    high: f64,
}

impl Actor {
    pub(crate) fn new(
        inputs: usize,
        low: f64,
        high: f64,
        hidden: [usize; 3],
    ) -> Result<Actor> {
        let [first, second, third] = hidden;
        Ok(Actor {
            hidden: nn::Sequential::new((
                nn::Linear::new(inputs, first)?,
                nn::ReLU,
                nn::Linear::new(first, second)?,
                nn::ReLU,
                nn::Linear::new(second, third)?,
                nn::ReLU,
            )),
            out: nn::Linear::new(third, 1)?,
            low,
            high,
        })
    }

    /// tanh maps any number to [−1, 1]; the next step stretches that range to [low,
    /// high].
    pub(crate) fn forward(&self, state: &Tensor) -> Result<Tensor> {
        let squashed = self.out.forward(&self.hidden.forward(state)?)?.tanh()?;
        let share = ((squashed + 1.0)? / 2.0)?; // in [0, 1]
        (share * (self.high - self.low))? + self.low
    }
}
// ANCHOR_END: actor

fn model_on_the_device(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    manual_seed(lab.seed());

    // ANCHOR: new_actor
    let actor = Actor::new(10, -2.0, 2.0, [100, 50, 25])?;
    // ANCHOR_END: new_actor
    lab.report(&actor as &dyn Module);
    lab.prose(
        "An actor decides what an agent does in a given state. Ten numbers go in, and one action between -2 and 2 comes out.",
    );

    let guess = lab.predict(lab.gpu_or_cpu(
        Prediction::yes_no(
            "01-forgotten",
            "`actor.hidden` is moved to the GPU, and `actor.out` is forgotten. Many programs check only whether the \
             first parameter is on a GPU. Does that check notice the mistake?",
        )
        .because("The first parameter belongs to the first layer, and that one has moved."),
        Prediction::think(
            "01-forgotten",
            "The actor moves to the CPU, where it is already. What does `is_cuda()` of its first parameter say?",
        ),
    ));
    // ANCHOR: half_moved
    actor.hidden.to(device)?; // forgets actor.out

    let first = &actor.parameters()[0];
    // ANCHOR_END: half_moved
    lab.print(text!(
        "Is the first parameter on a GPU? {}",
        hardware("is_cuda", first.is_cuda().to_string())
    ));
    lab.answer(guess, !first.is_cuda());
    let half = places(&actor);
    lab.picture(
        picture(&parameter_boxes(&actor)),
        "After actor.hidden.to(device), each parameter of the actor is drawn in the memory that holds it.",
    );

    // ANCHOR: half_forward
    let state = Tensor::randn(&[1, 10])?.to(device)?;
    let action = actor.forward(&state);
    // ANCHOR_END: half_forward
    if let Err(error) = action {
        fails(lab, "Its forward pass", &error);
    }

    // ANCHOR: moved
    actor.to(device)?;
    let all_on_device = actor
        .parameters()
        .iter()
        .all(|parameter| parameter.tensor().device() == device);
    // ANCHOR_END: moved
    let mut table = Table::new([
        "parameter",
        "after actor.hidden.to(device)",
        "after actor.to(device)",
    ]);
    for ((name, half), (_, whole)) in half.into_iter().zip(places(&actor)) {
        table = table.row(row![name, half, whole]);
    }
    lab.table(table);
    lab.print(text!("All parameters on {device}: {all_on_device}"));
    lab.prose("The first parameter speaks only for itself. To know where a model is, ask all of them. Lab 02 is about \
         the error that a forgotten one leads to.");

    let guess = lab.predict_on_gpu(
        Prediction::number(
            "01-model-copies",
            "The actor has four layers, each with a weight and a bias. How many copies does it take to move all of it to the device?",
        )
        .unit("copies")
        .integer()
        .because("Each of the parameters is a tensor of its own, and is copied by itself."),
    );
    // ANCHOR: copies
    let actor = Actor::new(10, -2.0, 2.0, [100, 50, 25])?;
    let before = Machine::current().counters();
    actor.to(device)?;
    let once = Machine::current().counters();
    actor.to(device)?;
    let twice = Machine::current().counters();
    // ANCHOR_END: copies
    let copies = |call: &str, done: Counters| {
        row![
            call,
            exact("copies_to_device", done.copies_to_device),
            exact("bytes_to_device", done.bytes_to_device),
        ]
    };
    lab.table(
        Table::new(["call", "copies", "bytes"])
            .row(copies("actor.to(device)", once - before))
            .row(copies("actor.to(device) again", twice - once)),
    );
    lab.answer(
        guess,
        exact("model_copies", (once - before).copies_to_device).unit("copies"),
    );
    let numbers: usize =
        actor.parameters().iter().map(|parameter| parameter.numel()).sum();
    lab.prose(text!(
        "This model has {} numbers of 4 bytes, in 8 tensors. Its .to changes the model itself, so there is nothing to assign. A \
         tensor's .to returns another tensor, and leaves the one you called it on where it is.",
        exact("num_parameters", numbers)
    ));

    // ANCHOR: action
    let action = no_grad(|| actor.forward(&state))?;
    // ANCHOR_END: action
    lab.print(text!(
        "One action, on {}: {}",
        hardware("device", action.device().to_string()),
        exact("action", action.item()?)
    ));
    Ok(())
}

fn parameter_boxes(model: &impl Module) -> Vec<Thing> {
    let thing = |(name, parameter): (String, Parameter)| {
        Thing::of(&name, Role::Parameter, &[parameter.tensor()])
    };
    model.named_parameters().into_iter().map(thing).collect()
}

fn places(model: &impl Module) -> Vec<(String, String)> {
    let parameters = model.named_parameters().into_iter();
    parameters
        .map(|(name, parameter)| (name, parameter.tensor().device().to_string()))
        .collect()
}

fn current_device(lab: &mut Lab) -> crate::Result<()> {
    if cuda::device_count() < 2 {
        lab.prose(
            "With several GPUs, each thread of the host has one of them as its current device. That is where a tensor goes if you \
             only say \"cuda\". This machine has too few GPUs to show it; --gpu sim:t4x2 has two.",
        );
        return Ok(());
    }
    let guess = lab.predict(
        Prediction::choice(
            "01-current",
            "`x` is on `cuda:0`, and `cuda:1` is made the current device. Where is `x + 1`?",
        )
        .or("cuda:0", "On `cuda:0`, where `x` is.", "The result is elsewhere.")
        .or(
            "cuda:1",
            "On `cuda:1`, the current device.",
            "The current device decides only where new tensors go if you give no number.",
        )
        .or(
            "nowhere",
            "Nowhere: it is an error.",
            "The operation has only one tensor, so all its tensors are on one device.",
        ),
    );

    // ANCHOR: scope
    let y = Tensor::zeros(&[2])?;
    let x = y.to(Device::cuda(0))?;
    let (moved, sum) = cuda::device(1, || (y.cuda(), &x + 1.0))?;
    // ANCHOR_END: scope
    let (moved, sum) = (moved?, sum?);
    // ANCHOR: by_name
    let model = nn::Linear::new(3, 1)?;
    model.to(Device::cuda(1))?; // by its name, whatever is current
    // ANCHOR_END: by_name
    lab.table(
        Table::new(["within cuda::device(1, …)", "is on"])
            .row(row!["y.cuda()", moved.device().to_string()])
            .row(row!["x + 1", sum.device().to_string()]),
    );
    lab.answer(guess, sum.device().to_string().as_str());
    let of_the_model = model.parameters()[0].tensor().device();
    lab.print(text!("Outside of it, after model.to(Device::cuda(1)): {of_the_model}"));
    lab.prose(
        "The current device decides where new tensors go if you only say \"cuda\". An operation runs where its tensors are, and \
         leaves its result there.",
    );

    // ANCHOR: set_device
    let before = cuda::current_device()?;
    cuda::set_device(1)?;
    let after = cuda::current_device()?;
    cuda::set_device(before)?;
    // ANCHOR_END: set_device
    lab.print(text!(
        "cuda::current_device(): {before}, after cuda::set_device(1): {after}"
    ));
    lab.prose(
        "The scope puts the current device back by itself, and set_device does not. Most programs need neither, because \
         Device::cuda(1) says which device you mean.",
    );
    Ok(())
}

/// A time with its significant digits.
fn in_ms(name: &'static str, time: Duration) -> Figure {
    timed(name, time).digits(if time < Duration::from_millis(10) { 3 } else { 1 })
}

/// The ratio of two times, of the same kind as the times.
fn ratio(name: &'static str, time: Duration, other: Duration) -> Figure {
    let kind = timed(name, time).kind;
    Figure { kind, ..exact(name, time.as_secs_f64() / other.as_secs_f64()).digits(2) }
}

/// Shows PyTorch's message for an error: the first line, however long.
fn fails(lab: &mut Lab, what: &str, error: &Error) {
    let message = error.to_string();
    lab.report(wrap(&format!(
        "{what} fails: {}",
        message.lines().next().unwrap_or_default()
    )));
}

fn chart(on_cpu: &[(usize, Duration)], on_gpu: &[(usize, Duration)]) -> String {
    let points = |times: &[(usize, Duration)]| {
        times
            .iter()
            .map(|(size, time)| (*size as f64, time.as_secs_f64() * 1e3))
            .collect()
    };
    let kind = timed("time", on_cpu[0].1).kind.name();
    log_log(
        "rows and columns",
        &format!("time of a product (ms, {kind})"),
        &[
            Series { name: "CPU", on_device: false, points: points(on_cpu) },
            Series { name: "GPU", on_device: true, points: points(on_gpu) },
        ],
    )
}

pub const RUNS: &[Run] = &[Run::NONE, Run::T4, Run::T4X2];
