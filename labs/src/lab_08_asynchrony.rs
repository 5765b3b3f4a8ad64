//! Lab 08: asynchrony. A call to a GPU returns before its work is done.

use std::time::Duration;

use drawing::{Comparison, words};
use todevice::cuda::{Event, EventOptions, Stream, SyncDebugMode};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::trace::Trace;
use todevice::{GpuSpec, Machine, RaceCheck, ToOptions, cuda};

use crate::frame::cli::count;
use crate::frame::clock::{
    host_runs_ahead, launches_wait, modelled_or_measured, wait_for,
};
use crate::{
    Entry, Figure, Lab, Prediction, Run, Table, Text, exact, hardware, machine_figure,
    row, text, timed,
};

pub const LAB: Entry<Options> = Entry { name: "lab-08", title: "Asynchrony", run };

/// The knobs of this lab.
#[derive(clap::Args)]
pub struct Options {
    /// Steps of the loop that is searched for waits
    #[arg(long, value_name = "N", default_value = "4", value_parser = count(1..=1000))]
    pub steps: usize,

    /// Chunks to copy and compute with, on one stream and on two
    #[arg(long, value_name = "N", default_value = "4", value_parser = count(1..=100))]
    pub chunks: usize,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    manual_seed(lab.seed());
    calls_return(lab)?;
    timing(lab)?;
    hidden_synchronizations(lab, options)?;
    two_streams(lab, options)?;
    a_race(lab)?;
    the_default_stream(lab)?;
    whodunit(lab, options)
}

fn calls_return(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.section(1, "A call returns before the work");
    lab.part("call");
    let mut times = Table::new(["product of", "the call returns", "the work is done"]);
    for size in [128, 256, 512, 1024] {
        let (call, work) = call_and_work(size, device)?;
        times = times.row(row![
            format!("{size} x {size}"),
            timed("call_time", call),
            timed("work_time", work)
        ]);
    }
    lab.table(times);
    let runs_ahead = host_runs_ahead(device)?;
    lab.prose(if runs_ahead {
        "The call does not wait for the product: it puts it into a queue and returns, whatever its size. The GPU works \
         through the queue by itself, and synchronize() waits until the queue is empty."
    } else if launches_wait(device)? {
        "CUDA_LAUNCH_BLOCKING=1 is set, so each call waits until its product is done. Without it the call puts the \
         product into a queue and returns."
    } else {
        "On the CPU a call returns when its work is done, so both columns say the same. With --gpu sim:t4 the first \
         column does not grow."
    });

    let guess = lab.predict(
        Prediction::number(
            "08-ten",
            "Ten products of 512 × 512 are asked for, each with the result of the one before. How long does it take \
             until the last call returns?",
        )
        .unit("ms")
        .tolerance(0.25)
        .because(match runs_ahead {
            true => "These are ten launches. No call needs the numbers of the product before it, only the place where they will be.",
            false => "Here each call returns only when its product is there.",
        })
        .raced(),
    );
    // ANCHOR: queue
    let x = Tensor::randn(&[512, 512])?.to(device)?;
    let mut y = x.matmul(&x)?.matmul(&x)?; // not timed
    wait_for(device)?;

    let start = Instant::now();
    for _ in 0..10 {
        y = y.matmul(&x)?; // depends on the previous one
    }
    let queued = start.elapsed();
    wait_for(device)?;
    let done = start.elapsed();
    // ANCHOR_END: queue
    lab.table(
        Table::new(["ten products of 512 x 512", "time"])
            .row(row!["until the last call returns", timed("ten_calls_time", queued)])
            .row(row![
                "until the last product is there",
                timed("ten_products_time", done)
            ]),
    );
    lab.answer(guess, timed("ten_calls_time", queued));
    lab.prose(if runs_ahead {
        "You waited for ten launches, not for ten products. Each product needs the one before, and still no call waits \
         for it: the queue keeps the order."
    } else {
        "Each call returns only when its product is there, so nothing is left to wait for."
    });
    Ok(())
}

// ANCHOR: calls
/// The time until the call returns, and until the product is done.
fn call_and_work(size: usize, device: Device) -> Result<(Duration, Duration)> {
    let x = Tensor::randn(&[size, size])?.to(device)?;
    x.matmul(&x)?; // not timed: the first product allocates memory
    wait_for(device)?;

    let start = Instant::now();
    x.matmul(&x)?;
    let call = start.elapsed();
    wait_for(device)?;
    let work = start.elapsed();
    Ok((call, work))
}
// ANCHOR_END: calls

fn timing(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let runs_ahead = host_runs_ahead(device)?;
    lab.section(2, "Timing, wrong and right");
    let guess = lab.predict(
        Prediction::number(
            "08-three-clocks",
            "Five products of 512 × 512 are asked for, each with the result of the one before. The next line reads \
             one number of the last product, and is timed on its own. How long does that line take?",
        )
        .unit("ms")
        .tolerance(0.25)
        .because(match runs_ahead {
            true => "A number can be read only once it is there, so this line waits for all five products.",
            false => "The products are there already, and the line only reads.",
        })
        .raced(),
    );
    // ANCHOR: wrong
    let x = Tensor::randn(&[512, 512])?.to(device)?;
    five_products(&x)?; // not timed
    wait_for(device)?;

    let start = Instant::now();
    let y = five_products(&x)?;
    let returned = start.elapsed(); // wrong: the work may not even have started

    let start = Instant::now();
    y.select(0, 0)?.select(0, 0)?.item()?;
    let item = start.elapsed(); // wrong: it waits for the products
    // ANCHOR_END: wrong

    // ANCHOR: right
    let start = Instant::now(); // nothing from before is running: item() has waited
    five_products(&x)?;
    wait_for(device)?;
    let synchronized = start.elapsed();
    // ANCHOR_END: right

    let mut times = Table::new(["five products of 512 x 512", "time"])
        .row(row!["the clock stopped at once", timed("returned_time", returned)])
        .row(row!["the next line, which reads one number", timed("item_time", item)])
        .row(row![
            "the clock stopped after synchronize()",
            timed("synchronized_time", synchronized)
        ]);
    if lab.gpu().is_none() {
        lab.table(times);
        lab.answer(guess, timed("item_time", item));
        lab.prose(
            "On the CPU you may stop the clock as soon as the call returns. With --gpu sim:t4 such a clock shows only the \
             launches, the next line is charged with the work, and there are events, which measure on the GPU.",
        );
        return Ok(());
    }

    // ANCHOR: events
    let (start, end) = (timing_event(), timing_event());
    start.record()?;
    five_products(&x)?;
    end.record()?;
    end.synchronize()?; // elapsed_time() needs both events to be complete
    let milliseconds = start.elapsed_time(&end)?;
    // ANCHOR_END: events
    times = times.row(row![
        "between two events",
        timed("event_time", in_milliseconds(milliseconds))
    ]);
    lab.table(times);
    lab.answer(guess, timed("item_time", item));
    lab.prose(if !runs_ahead {
        "CUDA_LAUNCH_BLOCKING=1 is set, so the work is done when the call returns, and every clock shows it. Do not time \
         a program this way: nothing overlaps, and each launch is charged with its wait."
    } else {
        "The clock that is stopped when the calls return shows only the time to ask. What is left of the \
         work is charged to the next line that waits, however small that line is. After synchronize() the clock shows what a user waits for: \
         launches, work, and the wait itself. Events go into the queue with the work and note the time on the GPU, so \
         they leave the host's part out, except where the GPU has to wait for it, as it does here for the first launch."
    });
    Ok(())
}

// ANCHOR: five_products
fn five_products(x: &Tensor) -> Result<Tensor> {
    let mut y = x.matmul(x)?;
    for _ in 1..5 {
        y = y.matmul(x)?;
    }
    Ok(y)
}
// ANCHOR_END: five_products

// ANCHOR: timing_event
fn timing_event() -> Event {
    Event::new(EventOptions { enable_timing: true })
}
// ANCHOR_END: timing_event

fn in_milliseconds(milliseconds: f64) -> Duration {
    Duration::from_secs_f64(milliseconds / 1e3)
}

fn hidden_synchronizations(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let device = lab.device();
    lab.section(3, "Hidden synchronizations");
    let question = "In every step a training loop copies a batch with `batch.to(device)`, adds `loss.item()` to a sum, and \
                    prints the loss. How many of these three lines wait for the GPU?";
    let guess = lab.predict_on_gpu(
        Prediction::number("08-waits", question)
            .out_of(3)
            .because(
                "Whatever needs a number on the host waits for it, and a copy from ordinary memory waits until it is \
                 done.",
            ),
    );
    let batches = (0..options.steps)
        .map(|_| Tensor::randn(&[256, 256]))
        .collect::<Result<Vec<_>>>()?;
    if lab.gpu().is_some() {
        let x = batches[0].to(device)?;
        let loss = network(lab.seed(), device)?.step(&x)?;
        // ANCHOR: debug
        cuda::set_sync_debug_mode(SyncDebugMode::Error)?;
        let copied = batches[0].to(device);
        let read = loss.item();
        let printed = format!("{loss}");
        cuda::set_sync_debug_mode(SyncDebugMode::Default)?;
        // ANCHOR_END: debug
        let waits =
            [copied.is_err(), read.is_err(), printed.contains("cannot be read")];
        let waits = waits.into_iter().filter(|waits| *waits).count();
        refused(lab, "batch.to(device)", copied)?;
        refused(lab, "loss.item()", read)?;
        lab.print("format!(\"{loss}\")");
        lab.report(printed);
        lab.answer(guess, exact("waits", waits));
        lab.prose(
            "Three: the copy, item() and printing. In the mode Error of set_sync_debug_mode a call that would wait fails and names its line; \
             printing cannot fail, and says why the numbers are missing. In the mode Warn they wait, and the machine \
             warns, once for each line. Pinned batches copied with non_blocking need no wait, nor does a sum that \
             stays on the GPU.",
        );
    } else {
        lab.prose("None here: what a call of the CPU returns is there.");
    }

    lab.think(
        "08-saved",
        "The same steps run without these waits. How much of the time is saved?",
    );
    // A warm-up for both: the first run allocates memory.
    waiting_loop(&mut network(lab.seed(), device)?, &batches, device)?;
    let mut training = network(lab.seed(), device)?;
    wait_for(device)?;
    // ANCHOR: timelines
    let start = Instant::now();
    let (total, waiting) =
        Machine::current().profile(|| waiting_loop(&mut training, &batches, device));
    let (waiting_total, waiting_time) = (total?, start.elapsed());
    // ANCHOR_END: timelines

    let pinned = match device.is_cuda() {
        true => batches.iter().map(Tensor::pin_memory).collect::<Result<Vec<_>>>()?,
        false => batches,
    };
    loop_that_runs_ahead(&mut network(lab.seed(), device)?, &pinned, device)?;
    let mut training = network(lab.seed(), device)?;
    wait_for(device)?;
    let start = Instant::now();
    let (total, ahead) = Machine::current()
        .profile(|| loop_that_runs_ahead(&mut training, &pinned, device));
    let (ahead_total, ahead_time) = (total?, start.elapsed());

    let blocking = launches_wait(device)?;
    let busy = |trace: &Trace, time: Duration| {
        100.0 * trace.compute_time(device.index()).as_secs_f64() / time.as_secs_f64()
    };
    let waiting_row = row![
        "three waits a step",
        exact("waiting_total", waiting_total),
        timed("waiting_loop_time", waiting_time)
    ];
    let ahead_row = row![
        "one at the end",
        exact("ahead_total", ahead_total),
        timed("ahead_loop_time", ahead_time)
    ];
    if lab.gpu().is_none() {
        let table = Table::new(["the loop", "sum of losses", "time"]);
        lab.table(table.row(waiting_row).row(ahead_row));
        lab.prose(
            "Nothing: nothing is late here. With --gpu sim:t4 the first loop is slower, and its waits are named and \
             drawn.",
        );
        return Ok(());
    }
    let share = |name, trace, time| share(name, busy(trace, time));
    lab.table(
        Table::new(["the loop", "sum of losses", "time", "GPU busy"])
            .row(
                [waiting_row, row![share("waiting_loop_busy", &waiting, waiting_time)]]
                    .concat(),
            )
            .row(
                [ahead_row, row![share("ahead_loop_busy", &ahead, ahead_time)]]
                    .concat(),
            ),
    );
    let computes = |trace: &Trace, time: Duration| {
        let percent = busy(trace, time);
        format!("{}, the GPU computes {percent:.0} % of it", words::time(time))
    };
    lab.picture(
        Comparison::new()
            .case("three waits in each step", computes(&waiting, waiting_time), &waiting)
            .case("one wait at the end", computes(&ahead, ahead_time), &ahead),
        &format!(
            "{} training steps, in two loops. Above, the program waits three times in each step, and after each wait \
             the GPU has nothing to do until the host has launched again. Below, the program waits once, at the end. \
             The first loop takes {}, the second {} ({}).",
            options.steps,
            words::time(waiting_time),
            words::time(ahead_time),
            timed("", ahead_time).kind.name(),
        ),
    );
    let verdict = if blocking {
        "Both loops add up the same losses. CUDA_LAUNCH_BLOCKING=1 is set, so the second waits as often as it launches, and \
         has no chance to run ahead."
    } else if ahead_time * 10 < waiting_time * 9 {
        "Both loops add up the same losses, and the second is done sooner. After each wait the queue is empty, so the GPU has \
         nothing to do until the host has launched again. A host that runs ahead hides the time of its launches."
    } else {
        "Both loops add up the same losses, and here they take about as long. After each wait the queue is empty, and the GPU \
         has nothing to do until the host has launched again; but on this machine something else takes so long that you do \
         not see these waits."
    };
    lab.prose(Text::from(verdict).raced());
    Ok(())
}

/// A share of time in percent.
fn share(name: &'static str, percent: f64) -> Figure {
    machine_figure(name, percent).unit("%").digits(0)
}

/// Shows the error of a call that would have waited.
fn refused<T>(lab: &mut Lab, call: &str, result: Result<T>) -> crate::Result<()> {
    let error = result.err().ok_or_else(|| format!("{call} did not wait"))?;
    lab.print(call);
    lab.report(error);
    Ok(())
}

/// A network in training.
struct Training {
    model: nn::Sequential,
    optimizer: optim::SGD,
}

fn network(seed: u64, device: Device) -> Result<Training> {
    manual_seed(seed);
    // ANCHOR: network
    let model = nn::Sequential::new((
        nn::Linear::new(256, 256)?,
        nn::ReLU,
        nn::Linear::new(256, 256)?,
    ));
    model.to(device)?;
    let optimizer = optim::SGD::new(
        model.parameters(),
        SGDOptions { lr: 0.1, ..Default::default() },
    )?;
    // ANCHOR_END: network
    Ok(Training { model, optimizer })
}

impl Training {
    // ANCHOR: step
    /// Learns to reproduce its input. The loss stays on the GPU.
    fn step(&mut self, x: &Tensor) -> Result<Tensor> {
        let loss = self.model.forward(x)?.mse_loss(x, Reduction::Mean)?;
        self.optimizer.zero_grad();
        loss.backward()?;
        self.optimizer.step()?;
        Ok(loss.detach())
    }
    // ANCHOR_END: step
}

// ANCHOR: waiting
fn waiting_loop(
    training: &mut Training,
    batches: &[Tensor],
    device: Device,
) -> Result<f64> {
    let mut total = 0.0;
    let mut log = String::new();
    for batch in batches {
        let x = batch.to(device)?; // waits until the batch has arrived
        let loss = training.step(&x)?;
        total += loss.item()?; // waits for the step
        log += &format!("loss: {loss}\n"); // waits for a copy of the loss
    }
    Ok(total)
}
// ANCHOR_END: waiting

// ANCHOR: ahead
fn loop_that_runs_ahead(
    training: &mut Training,
    batches: &[Tensor],
    device: Device,
) -> Result<f64> {
    let mut total = Tensor::zeros((&[], device))?;
    for batch in batches {
        let x = batch.to(not_waiting(device))?; // the batch is pinned
        let loss = training.step(&x)?;
        total = (total + loss)?; // on the GPU
    }
    total.item() // the only wait
}

fn not_waiting(device: Device) -> ToOptions {
    ToOptions { device: Some(device), non_blocking: true, ..Default::default() }
}
// ANCHOR_END: ahead

fn two_streams(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let device = lab.device();
    lab.section(4, "Two streams that overlap");
    lab.think(
        "08-copies",
        "Several chunks are copied to the GPU, and kernels compute with each of them. The copies go on one stream, the \
         kernels on another. Does that hide the time of the copies or that of the kernels?",
    );
    if !lab.has_gpu_or(
        "The CPU has no streams. With --gpu sim:t4 there is one to copy and one to compute, and a picture of \
         both.",
    ) {
        return Ok(());
    }
    let machine = Machine::current();
    // ANCHOR: chunks
    let mut chunks = Vec::new();
    for _ in 0..options.chunks {
        chunks.push(Tensor::randn(&[1 << 20])?.pin_memory()?);
    }
    let copies = Stream::new(device)?;
    // ANCHOR_END: chunks

    // A warm-up for both: the first run allocates memory.
    on_one_stream(&chunks, device)?;
    on_two_streams(&chunks, &copies, device)?;
    wait_for(device)?;
    let (done, one) =
        machine.profile(|| until_done(device, || on_one_stream(&chunks, device)));
    let one_time = done?;
    let (done, two) = machine
        .profile(|| until_done(device, || on_two_streams(&chunks, &copies, device)));
    let two_time = done?;
    lab.table(
        Table::new(["copies and computing", "time"])
            .row(row!["on one stream", timed("one_stream_time", one_time)])
            .row(row!["on two streams", timed("two_streams_time", two_time)]),
    );
    lab.picture(
        Comparison::new()
            .case("one stream", words::time(one_time), &one)
            .case("two streams, one for the copies", words::time(two_time), &two),
        &format!(
            "{} chunks are copied, and kernels compute with each of them. On one stream each copy waits for the \
             kernels of the chunk before it. On two streams no copy waits for kernels. One stream takes {}, two \
             take {} ({}).",
            options.chunks,
            words::time(one_time),
            words::time(two_time),
            timed("", two_time).kind.name(),
        ),
    );
    let verdict = if options.chunks == 1 {
        "A single chunk has to be copied before the GPU can compute with it, so there is nothing to put side by side. \
         Try --chunks 4."
    } else if two_time * 20 < one_time * 19 {
        "The second stream saves time. Copies have an engine of their own, and on a stream of their own they need not \
         wait for the computing, so some of the shorter work hides behind the longer. Only the first copy and the last \
         kernels run alone. The chunks are pinned and the copies non_blocking, because any other copy makes the host \
         wait."
    } else {
        "Here the second stream saves hardly anything. It lets copies and computing run side by side, but on this \
         machine one of the two is so short, or the host so late with its launches, that little is left to hide."
    };
    lab.prose(Text::from(verdict).raced());

    lab.think(
        "08-chains",
        "Two chains of kernels need nothing from each other. Does a second stream make them faster?",
    );
    // ANCHOR: chains
    let (a, b) = (
        Tensor::randn(&[1 << 18])?.to(device)?,
        Tensor::randn(&[1 << 18])?.to(device)?,
    );
    let side = Stream::new(device)?;
    let both_here = || {
        chain(&a)?;
        chain(&b).map(drop)
    };
    let one_beside = || {
        side.wait_stream(&cuda::current_stream(device)?)?; // b was made there
        chain(&a)?;
        cuda::stream(&side, || chain(&b)).map(drop)
    };
    // ANCHOR_END: chains
    until_done(device, both_here)?;
    until_done(device, one_beside)?;
    let one_time = until_done(device, both_here)?;
    let (done, two) = machine.profile(|| until_done(device, one_beside));
    let two_time = done?;
    lab.table(
        Table::new(["two chains of eight kernels", "time"])
            .row(row!["on one stream", timed("chains_one_stream_time", one_time)])
            .row(row!["on two streams", timed("chains_two_streams_time", two_time)]),
    );
    let busy =
        100.0 * two.compute_time(device.index()).as_secs_f64() / two_time.as_secs_f64();
    let busy = share("chains_busy", busy);
    let verdict = if two_time * 20 < one_time * 19 {
        text!(
            "It does here: this GPU ran kernels of both streams side by side, and was busy for {} of the time. It can do \
             that as long as neither kernel fills it.",
            busy
        )
    } else {
        text!(
            "It does not. Even with two streams the GPU is busy for {} of the time, and runs one kernel after the other: \
             a simulated GPU has one engine for kernels. A real one may run two side by side as long as neither fills \
             it.",
            busy
        )
    };
    lab.prose(verdict.raced());
    Ok(())
}

// ANCHOR: one_stream
fn on_one_stream(chunks: &[Tensor], device: Device) -> Result<()> {
    for chunk in chunks {
        let x = chunk.to(not_waiting(device))?;
        chain(&x)?;
    }
    Ok(())
}
// ANCHOR_END: one_stream

// ANCHOR: two_streams
fn on_two_streams(chunks: &[Tensor], copies: &Stream, device: Device) -> Result<()> {
    let compute = cuda::current_stream(device)?;
    for chunk in chunks {
        let x = cuda::stream(copies, || chunk.to(not_waiting(device)))?;
        compute.wait_stream(copies)?; // for this chunk; the next copy is not queued yet
        chain(&x)?;
        x.record_stream(&compute)?; // its memory belongs to `copies`
    }
    Ok(())
}
// ANCHOR_END: two_streams

// ANCHOR: chain
/// Eight small kernels, one after another.
fn chain(x: &Tensor) -> Result<Tensor> {
    let mut y = x.relu()?;
    for _ in 1..8 {
        y = y.relu()?;
    }
    Ok(y)
}
// ANCHOR_END: chain

fn a_race(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.section(5, "A race, named");
    if !lab.has_gpu_or_part(
        "sum",
        "The CPU has no streams, so nothing can race. With --gpu sim:t4 there is a race to see, and its report.",
    ) {
        return Ok(());
    }
    let guess = lab.predict(
        Prediction::number(
            "08-sum",
            "A busy stream will fill a tensor of 1000 zeros with ones when it gets to that. Another stream adds the numbers up without waiting. \
             What is the sum?",
        )
        .out_of(1000)
        .because("Between two streams there is no order but the one that you ask for, so the sum is that of the numbers that are there already.")
        .raced(),
    );
    let machine = Machine::current();
    let check = machine.race_check();
    machine.set_race_check(RaceCheck::Ignore); // otherwise, the report is a warning, and the program continues as here

    // ANCHOR: race
    let side = Stream::new(device)?;
    let large = Tensor::ones((&[1024, 1024], device))?;
    let x = Tensor::zeros((&[1000], device))?;
    // A warm-up: the first allocation makes the GPU wait.
    large.matmul(&large)?;
    cuda::synchronize()?;
    cuda::stream(&side, || x.sum()?.item())?;

    large.matmul(&large)?; // keeps this stream busy
    x.fill_(1.0)?; // then it fills x
    let raced = cuda::stream(&side, || x.sum()?.item())?;
    // ANCHOR_END: race
    let races = machine.races();
    cuda::synchronize()?;

    // ANCHOR: wait_stream
    x.zero_()?;
    large.matmul(&large)?;
    x.fill_(1.0)?;
    side.wait_stream(&cuda::current_stream(device)?)?;
    let waited = cuda::stream(&side, || x.sum()?.item())?;
    // ANCHOR_END: wait_stream
    cuda::synchronize()?;
    let after_stream = machine.races().len();

    // ANCHOR: wait_event
    x.zero_()?;
    large.matmul(&large)?;
    x.fill_(1.0)?;
    let filled = cuda::current_stream(device)?.record_event()?;
    large.matmul(&large)?; // the other stream need not wait for this
    side.wait_event(&filled)?;
    let by_event = cuda::stream(&side, || x.sum()?.item())?;
    // ANCHOR_END: wait_event
    cuda::synchronize()?;
    let after_event = machine.races().len();

    // ANCHOR: luck
    x.zero_()?;
    cuda::synchronize()?;
    x.fill_(1.0)?; // nothing is queued before it
    let in_time = cuda::stream(&side, || x.sum()?.item())?;
    // ANCHOR_END: luck
    let after_luck = machine.races().len();
    cuda::synchronize()?;
    machine.set_race_check(check);

    lab.figure(
        crate::raced("stale_sum", raced)
            .digits(0)
            .label("Sum of 1000 ones, without waiting"),
    );
    lab.answer(guess, crate::raced("first_sum", raced).digits(0));
    for race in &races {
        lab.report(race.report());
    }
    let blocking = cuda::launch_blocking()?;
    lab.prose(if blocking {
        "CUDA_LAUNCH_BLOCKING=1 is set, so the host waits for every launch and the sum comes out right. The program itself \
         still asks for no order between its two streams. That is how an error can vanish while you look for it."
    } else if raced < 1000.0 {
        "The sum was taken before the ones were there. Each stream keeps its own order, and between two streams there is \
         no order but the one you ask for. A real GPU does not tell you. A simulated one does: it names both lines, who \
         reads, who writes, and the fix."
    } else {
        "The sum is right, by luck: here the ones were there in time. Each stream keeps its own order, and between two \
         streams there is no order but the one you ask for. On another card, or with more work before them, they come \
         too late."
    });
    let question = format!(
        "Now nothing keeps the first stream busy, and the sum is {in_time}. Is it a race?"
    );
    let guess = lab.predict(
        Prediction::yes_no("08-still", question)
            .because("It is a race if nothing in the program says who comes first. Who came first this time does not matter.")
            .raced(),
    );
    let row_of = |way, sum: Figure, races: Figure| row![way, sum.digits(0), races];
    lab.table(
        Table::new(["the other stream", "sum", "races found"])
            .row(row_of(
                "does not wait",
                crate::raced("raced_sum", raced),
                races_found("races", races.len()),
            ))
            .row(row_of(
                "waits for the stream",
                exact("waited_sum", waited),
                races_found("waited_races", after_stream - races.len()),
            ))
            .row(row_of(
                "waits for the event",
                exact("event_sum", by_event),
                races_found("event_races", after_event - after_stream),
            ))
            .row(row_of(
                "does not wait, and nothing keeps the first busy",
                crate::raced("lucky_sum", in_time),
                races_found("lucky_races", after_luck - after_event),
            )),
    );
    // A real GPU does not detect races. This one exists for the same reason as the first.
    let is_race = !machine.time_is_modelled() || after_luck > after_event;
    lab.answer(guess, is_race);
    lab.prose(
        "It is a race. A right number proves nothing: what decides is whether anything makes one stream wait for the \
         other, not which of them came first this time. wait_stream waits for all that the other stream was given so \
         far, and wait_event only for what came before the event. The host waits for neither.",
    );
    Ok(())
}

/// The number of data races that a simulated GPU found. A real one does not detect any.
fn races_found(name: &'static str, count: usize) -> Figure {
    modelled_or_measured(exact(name, count), hardware(name, "not looked for"))
}

fn the_default_stream(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.section(6, "Why the default stream is special");
    lab.part("orders");
    if !lab.has_gpu_or("The CPU has no streams. With --gpu sim:t4 this section shows who does not wait for whom.") {
        return Ok(());
    }
    let machine = Machine::current();
    let check = machine.race_check();
    machine.set_race_check(RaceCheck::Ignore);
    let before = machine.races().len();

    // ANCHOR: no_order
    let side = Stream::new(device)?;
    // On the default stream, like everything outside a scope.
    let x = Tensor::ones((&[1000], device))?;
    let y = cuda::stream(&side, || x.mul(2.0))?;
    let unordered_sum = y.sum()?.item()?;
    // ANCHOR_END: no_order
    let unordered = machine.races().split_off(before);
    cuda::synchronize()?;
    for race in &unordered {
        lab.print(format!("{race}"));
    }
    lab.prose(
        "Neither waits by itself. In CUDA the default stream waits for other streams, and they for it, unless they were \
         made not to. PyTorch makes its streams that way, and so does this course. The default stream is special only \
         because everything outside a scope runs on it, and so most tensors that a side stream uses were made there.",
    );

    // ANCHOR: both_ways
    let default = cuda::default_stream(device)?;
    let x = Tensor::ones((&[1000], device))?;
    side.wait_stream(&default)?; // before side uses x
    let y = cuda::stream(&side, || x.mul(2.0))?;
    default.wait_stream(&side)?; // before y is used here
    let sum = y.sum()?.item()?;
    // ANCHOR_END: both_ways
    let ordered = machine.races().len() - before - unordered.len();

    let guess = lab.predict(
        Prediction::number(
            "08-dropped",
            "Now there are waits both ways. `x` holds 1000 ones, and the side stream is to double them, but it is still \
             busy when `x` is dropped and a tensor of 1000 sevens is made on the default stream. What is the sum of the \
             doubled numbers?",
        )
        .because(
            "The memory of `x` goes back to the allocator when `x` is dropped, and the tensor of sevens gets it. The \
             side stream doubles whatever is there when it gets that far.",
        )
        .raced(),
    );
    let before = machine.races().len();
    // ANCHOR: dropped
    let large = Tensor::ones((&[1024, 1024], device))?;
    side.wait_stream(&default)?;
    cuda::stream(&side, || large.matmul(&large))?; // a warm-up on this stream too
    cuda::synchronize()?;

    let x = Tensor::ones((&[1000], device))?;
    side.wait_stream(&default)?;
    let y = cuda::stream(&side, || {
        large.matmul(&large)?;
        x.mul(2.0) // after the product
    })?;
    drop(x);
    let other = Tensor::full(&[1000], (7.0, device))?;
    side.synchronize()?;
    let dropped_sum = y.sum()?.item()?;
    // ANCHOR_END: dropped
    let dropped = machine.races().split_off(before);
    drop(other);

    // ANCHOR: recorded
    let x = Tensor::ones((&[1000], device))?;
    side.wait_stream(&default)?;
    let y = cuda::stream(&side, || {
        large.matmul(&large)?;
        x.mul(2.0)
    })?;
    x.record_stream(&side)?; // its memory is not reused before side is done with it
    drop(x);
    let other = Tensor::full(&[1000], (7.0, device))?;
    side.synchronize()?;
    let recorded_sum = y.sum()?.item()?;
    // ANCHOR_END: recorded
    let recorded = machine.races().len() - before - dropped.len();
    drop(other);
    machine.set_race_check(check);

    lab.table(
        Table::new(["2 x 1000 ones", "sum", "races found"])
            .row(row![
                "no wait",
                crate::raced("unordered_sum", unordered_sum).digits(0),
                races_found("unordered_races", unordered.len())
            ])
            .row(row![
                "wait_stream both ways",
                exact("ordered_sum", sum).digits(0),
                races_found("ordered_races", ordered)
            ])
            .row(row![
                "x dropped early",
                crate::raced("dropped_sum", dropped_sum).digits(0),
                races_found("dropped_races", dropped.len())
            ])
            .row(row![
                "x dropped after record_stream",
                exact("recorded_sum", recorded_sum).digits(0),
                races_found("recorded_races", recorded)
            ]),
    );
    lab.answer(guess, crate::raced("dropped_sum", dropped_sum).digits(0));
    for race in &dropped {
        lab.report(race.report());
    }
    let what_was_doubled = match dropped_sum {
        14000.0 => "Here the sevens were doubled.",
        2000.0 => {
            "Here the ones were doubled all the same, before the sevens were written."
        }
        _ => "Here part of it was overwritten before it was doubled.",
    };
    let why = format!(
        "The memory of x goes back to the stream it was made on, and that stream may use it again without waiting, since \
         its own work is in order, so the new tensor got it. {what_was_doubled} record_stream tells the allocator who \
         else uses the memory. It orders nothing: that is what wait_stream is for."
    );
    lab.prose(Text::from(why).raced());
    Ok(())
}

/// The lines, one of which fails.
const LOOKED_UP: &str = "\
let rows = table.index_select(0, &ids)?;
let hidden = rows.tanh()?;
let mean = hidden.mean()?;
mean.item()";

fn whodunit(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    lab.section_apart(7, "Whodunit", "a real GPU does nothing more after its error");
    let guess = lab.predict(
        Prediction::line(
            "08-which-line",
            "A table has 10 rows. `index_select` looks up three of them by their ids, and one id is 12. Three more \
             lines follow: `tanh`, `mean` and `item`. Which line fails?",
            LOOKED_UP,
        )
        .because(lab.gpu_or_cpu(
            "Only the GPU can see the ids. It finds the bad one when the kernel runs, and the host is told \
             by a later line, here the one that waits.",
            "On the CPU the line itself looks at the ids.",
        ))
        .raced(),
    );
    // Such an error leaves a context broken, so each example runs on a separate machine.
    let machine = || match Machine::current().gpus() {
        GpuSpec::Real => GpuSpec::Real.machine(), // Launch blocking may be set.
        other => other.bare_machine(),
    };
    let (failed, error) = machine()?.enter(|| fails(lab, bad_index))?;
    lab.report(error);
    lab.answer(guess, format!(".{failed}(").as_str());
    if !lab.has_gpu_or(
        "On the CPU the line that is wrong fails, and says what is wrong. With --gpu sim:t4 another line fails, \
         further down.",
    ) {
        return Ok(());
    }
    lab.prose(if failed == "index_select" {
        "index_select fails, because launches wait here (CUDA_LAUNCH_BLOCKING=1). Without that the host goes on, and a \
         later line fails that did nothing wrong."
            .to_owned()
    } else {
        format!(
            "{failed} fails, but it did nothing wrong. The GPU found the bad index when the kernel ran. The host had gone on \
             by then, and was told at its next call that checks for errors. That is what the sentence about some other \
             API call means."
        )
    });

    if *Machine::current().gpus() == GpuSpec::Real {
        lab.prose(
            "The error stays: a real GPU does nothing more for this process. CUDA_LAUNCH_BLOCKING=1 in the environment \
             makes index_select fail; --gpu sim:t4 shows that here, and what the error leaves behind.",
        );
        return Ok(());
    }

    let guess = lab.predict(
        Prediction::line(
            "08-now",
            "The same lines run again, but now every launch waits until its work is done. Which line fails?",
            LOOKED_UP,
        )
        .because("The host waits for the kernel that finds the bad id, so it learns of the error at the line that launched it."),
    );
    let (failed, error) = machine()?.enter(|| {
        // ANCHOR: blocking
        // For a whole program: CUDA_LAUNCH_BLOCKING=1 in its environment.
        cuda::set_launch_blocking(true)?;
        // ANCHOR_END: blocking
        fails(lab, bad_index)
    })?;
    lab.report(error);
    lab.answer(guess, format!(".{failed}(").as_str());
    let [ahead, blocking] = times_of_the_loop(lab, options)?;
    lab.table(
        Table::new(["the loop of section 3, one wait at the end", "time"])
            .row(row!["launches go on", timed("launching_loop_time", ahead)])
            .row(row!["launches wait", timed("blocking_loop_time", blocking)]),
    );
    lab.prose(if blocking > ahead {
        "Now the line that is to blame fails, and the sentence about some other API call is gone. In PyTorch you set \
         CUDA_LAUNCH_BLOCKING=1 in the environment, and change nothing in the program. It makes programs slower, because the \
         host never runs ahead, so use it only to find an error."
    } else {
        "Now the line that is to blame fails, and the sentence about some other API call is gone. In PyTorch you set \
         CUDA_LAUNCH_BLOCKING=1 in the environment, and change nothing in the program. It cost this loop nothing you could \
         see, since the GPU sets its pace anyway; still, use it only to find an error."
    });

    lab.think("08-after", "After such an error, does the GPU still add one and one?");
    machine()?.enter(|| after_the_error(lab))?;
    lab.prose(
        "The error sticks: every call to this GPU fails with it until the program is started again. The CPU is as it \
         was. Running a step there is often the shortest way to the cause: it fails on the right line, and says what is \
         wrong.",
    );
    Ok(())
}

/// The times of the loop that runs ahead, without and with launch blocking.
fn times_of_the_loop(lab: &Lab, options: &Options) -> Result<[Duration; 2]> {
    let device = lab.device();
    let batch = || Tensor::randn(&[256, 256])?.pin_memory();
    let batches = (0..options.steps).map(|_| batch()).collect::<Result<Vec<_>>>()?;
    let mut training = network(lab.seed(), device)?;
    let as_before = cuda::launch_blocking()?;
    let mut time = |blocking| {
        cuda::set_launch_blocking(blocking)?;
        until_done(device, || loop_that_runs_ahead(&mut training, &batches, device))
    };
    time(false)?; // the first run allocates memory
    let times = [time(false)?, time(true)?];
    cuda::set_launch_blocking(as_before)?;
    Ok(times)
}

/// The device of the same name on the current machine.
fn on_this_machine(device: Device) -> Device {
    if device.is_cuda() { Device::cuda(device.index()) } else { device }
}

// ANCHOR: bad_index
fn bad_index(log: &mut Log, device: Device) -> Result<f64> {
    let table = Tensor::ones((&[10, 4], device))?;
    let ids = Tensor::new([3, 12, 5])?.to(device)?;
    let large = Tensor::ones((&[1024, 1024], device))?;
    // Keeps the GPU busy, as in the middle of a program.
    large.matmul(&large)?;

    let rows = logged(log, "index_select", table.index_select(0, &ids))?;
    let hidden = logged(log, "tanh", rows.tanh())?;
    let mean = logged(log, "mean", hidden.mean())?;
    logged(log, "item", mean.item())
}
// ANCHOR_END: bad_index

fn after_the_error(lab: &mut Lab) -> crate::Result<()> {
    let device = on_this_machine(lab.device());
    // ANCHOR: sticks
    let table = Tensor::ones((&[10, 4], device))?;
    let ids = Tensor::new([3, 12, 5])?;
    let one = Tensor::ones((&[1], device))?;
    table.index_select(0, &ids.to(device)?)?;
    let first = wait_for(device);

    let on_gpu = &one + &one;
    let one = Tensor::ones(&[1])?;
    let on_cpu = &one + &one;
    let looked_up = Tensor::ones(&[10, 4])?.index_select(0, &ids);
    // ANCHOR_END: sticks
    lab.table(
        Table::new(["after the bad index", ""])
            .row(row!["synchronize()", outcome(&first)])
            .row(row!["1 + 1 on the GPU", outcome(&on_gpu)])
            .row(row!["1 + 1 on the CPU", outcome(&on_cpu)])
            .row(row!["the same lookup on the CPU", outcome(&looked_up)]),
    );
    Ok(())
}

/// Lines and whether each succeeded.
type Log = Vec<(&'static str, bool)>;

/// Notes whether a line succeeded, and returns its result.
fn logged<T>(log: &mut Log, line: &'static str, result: Result<T>) -> Result<T> {
    log.push((line, result.is_ok()));
    result
}

/// Runs lines, one of which fails, and shows the result of each. Returns the failed line and its error.
fn fails(
    lab: &mut Lab,
    lines: fn(&mut Log, Device) -> Result<f64>,
) -> crate::Result<(&'static str, todevice::Error)> {
    let mut log = Log::new();
    let result = lines(&mut log, on_this_machine(lab.device()));
    let mut failed = "";
    for (line, returned) in log {
        lab.print(format!(
            "{line:<12}  {}",
            if returned { "returned" } else { "failed" }
        ));
        failed = line;
    }
    Ok((failed, result.err().ok_or("no line failed")?))
}

/// The first line of a result's error.
fn outcome<T>(result: &Result<T>) -> String {
    let error = result.as_ref().err().map(|error| error.to_string());
    let first = error.as_deref().and_then(|error| error.split(['\n', '(']).next());
    first.unwrap_or("right").trim_end().to_owned()
}

/// The time until the device has finished the work.
fn until_done<R>(device: Device, work: impl FnOnce() -> Result<R>) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    wait_for(device)?;
    Ok(start.elapsed())
}

pub const RUNS: &[Run] = &[Run::NONE, Run::T4];
