//! Part A, the location of a batch and its copies: pinned memory, blocking copies, and buffers still in use.

use std::time::Duration;

use drawing::{Comparison, words};
use todevice::cuda::{self, Stream};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::trace::{CopyKind, EventKind, Trace, TracedWork, record_function};
use todevice::{Machine, RaceCheck, ToOptions};

use super::time_of;
use crate::frame::clock::launches_wait;
use crate::frame::render_text::wrap;
use crate::{
    Figure, Lab, Prediction, Table, Text, exact, machine_figure, raced, row, text,
    timed,
};

pub(super) fn sections(lab: &mut Lab) -> crate::Result<()> {
    if lab.section(1, "Pageable and pinned") {
        pageable_and_pinned(lab)?;
    }
    if lab.section(2, "What blocks the host") {
        what_blocks_the_host(lab)?;
    }
    if lab.section(3, "What the host may not touch yet") {
        stale_and_torn(lab)?;
    }
    Ok(())
}

pub(super) fn microseconds(name: &'static str, time: Duration) -> Figure {
    machine_figure(name, time.as_secs_f64() * 1e6).unit("µs").digits(0)
}

fn pageable_and_pinned(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    if lab.gpu().is_none() {
        lab.part("copies-what");
        let x = Tensor::ones(&[64, 1024])?;
        lab.print(text!(
            "x.to(cpu) is x itself: {}",
            exact("same", x.to(device)?.is_same(&x).to_string())
        ));
        lab.prose(
            "Nothing has to move, so nothing is copied, and pinned memory would be of no use. With --gpu sim:t4 \
             you see how fast copies to a GPU are, from pageable memory and from pinned memory.",
        );
        return Ok(());
    }
    lab.think(
        "09-pinned",
        "Pinned memory is host memory too. How much faster is a copy of 8 MiB from there than from pageable memory?",
    );
    let mut table = Table::new(["copy", "pageable", "pinned"]);
    for (size, bytes) in [("64 KiB", 1 << 16), ("1 MiB", 1 << 20), ("8 MiB", 1 << 23)] {
        // ANCHOR: bandwidth
        let pageable = Tensor::zeros(&[bytes / 4])?;
        let pinned = pageable.pin_memory()?;
        let there = pageable.to(device)?;
        // A non-blocking copy to the CPU goes to pinned memory.
        let into_pinned = ToOptions {
            device: Some(Device::Cpu),
            non_blocking: true,
            ..Default::default()
        };
        // Not timed: the first call also allocates memory.
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
                machine_figure(name, bytes as f64 / time.as_secs_f64() / 1e9)
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
    let pageable_copy = time_of(|| batch.to(device))?;
    let pinned_first = time_of(|| batch.pin_memory())?; // gets memory from the driver
    let pinned_again = time_of(|| batch.pin_memory())?; // gets it from the cache
    let pinned = batch.pin_memory()?;
    let pinned_copy = time_of(|| pinned.to(device))?;
    // ANCHOR_END: pinning
    lab.table(
        Table::new(["12 MiB", "time"])
            .row(row![
                "copied to the GPU, pageable",
                timed("pageable_copy_time", pageable_copy)
            ])
            .row(row![
                "copied to the GPU, pinned",
                timed("pinned_copy_time", pinned_copy)
            ])
            .row(row![
                "pin_memory(), the first time",
                timed("first_pin_time", pinned_first)
            ])
            .row(row!["pin_memory(), again", timed("second_pin_time", pinned_again)]),
    );
    lab.prose(
        "The GPU can read only pinned memory by itself. From pageable memory the driver first copies to a \
         staging buffer, which is pinned memory of the host. Taking pinned memory from the driver costs time, so what \
         you drop is kept for the next tensor.",
    );
    let verdict = if pinned_first + pinned_copy < pageable_copy {
        "Here pinning pays even for a single copy: the link is that slow."
    } else if pinned_again + pinned_copy < pageable_copy {
        "For a single copy pinning does not pay. According to these times, pinning and copying together take less than the \
         pageable copy if the pinned memory is reused; measure this before you rely on it."
    } else {
        "For a single copy pinning does not pay, even if the pinned memory is reused: pin_memory() is a copy, too, \
         within the host."
    };
    lab.prose(Text::from(verdict).raced());
    lab.prose(
        "It can pay where somebody else does it beside the training loop, or where the same pinned memory is copied more than once.",
    );
    Ok(())
}

// ANCHOR: one_copy
/// Queues work, then a copy on a stream. Returns the time of the copying call, the
/// total time of work and copy, and the copy.
pub(crate) fn one_copy(
    work: &Tensor,
    batch: &Tensor,
    stream: &Stream,
    to: ToOptions,
) -> Result<(Duration, Duration, Tensor)> {
    let start = Instant::now();
    record_function("compute", || work.matmul(work))?;

    let called = Instant::now();
    let there = record_function("copy", || cuda::stream(stream, || batch.to(to)))?;
    let call = called.elapsed();

    record_function("synchronize", cuda::synchronize)?;
    Ok((call, start.elapsed(), there))
}
// ANCHOR_END: one_copy

fn what_blocks_the_host(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let in_how_many = "The GPU is at work, and the host sends it the next batch: from pageable or pinned memory, with \
                       `non_blocking` or without, on the stream of the work or on another. In how many of these eight \
                       cases does the call return at once?";
    if !lab.has_gpu_or_part(
        "eight",
        "With --gpu sim:t4 you see which of the eight keep the host waiting, and which overlap with the GPU's work. \
         On the CPU there is nobody else to do the work: every call returns when it is done.",
    ) {
        return Ok(());
    }
    let blocking = launches_wait(device)?;
    let at_once = lab.predict(
        Prediction::number("09-eight", in_how_many)
            .out_of(8)
            .because("The GPU fetches a batch by itself only from pinned memory, and only `non_blocking` lets the host go on.")
            .raced()
            .only_if(!blocking),
    );
    let beside = lab.predict(
        Prediction::choice(
            "09-overlap",
            "The host asks for the work first. What is the least it takes for the copy to run beside the work?",
        )
        .or(
            "free",
            "Pinned memory and `non_blocking`.",
            "They free the host, but on the stream of the work the copy still has to wait its turn.",
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
        .raced()
        .only_if(!blocking),
    );
    // ANCHOR: truth
    let work = Tensor::ones((&[1024, 1024], device))?;
    let pageable = Tensor::ones(&[512, 512])?;
    let pinned = pageable.pin_memory()?;
    let same = cuda::current_stream(device)?;
    let other = Stream::new(device)?;

    let mut rows = Vec::new();
    for (memory, batch) in [("pageable", &pageable), ("pinned", &pinned)] {
        for non_blocking in [false, true] {
            for (name, stream) in [("same", &same), ("other", &other)] {
                let device = Some(device);
                let to = ToOptions { device, non_blocking, ..Default::default() };
                // Not timed: the first call also allocates memory.
                one_copy(&work, batch, stream, to)?;
                let (times, trace) =
                    Machine::current().profile(|| one_copy(&work, batch, stream, to));
                let (call, all, _there) = times?;
                rows.push((memory, non_blocking, name, call, all, trace));
            }
        }
    }
    // ANCHOR_END: truth
    let overlap = |index: usize| {
        let (.., all, trace) = &rows[index];
        // Compared with the same copy on the stream of the work, where one waits for the other.
        let (.., in_turn, _) = &rows[index - index % 2];
        side_by_side(trace).unwrap_or(*all < *in_turn * 9 / 10)
    };
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
    // Compared with the same copy without `non_blocking`, two rows above.
    let returns_at_once = |index: &usize| rows[*index].3 < rows[*index - 2].3 / 2;
    let free = [2, 3, 6, 7].iter().filter(|index| returns_at_once(index)).count();
    let overlapping = (0..8).filter(|index| overlap(*index)).count();
    lab.answer(at_once, raced("at_once", free));
    let [pageable_beside, pinned_beside] = [1, 5].map(overlap);
    lab.answer(
        beside,
        match (pageable_beside, pinned_beside) {
            (true, _) => "stream",
            (false, true) => "pinned",
            (false, false) => "all",
        },
    );
    let mut pictures =
        Comparison::new().waiting_is("the host is done and waits for the GPU");
    let mut both = Vec::new();
    for (index, (memory, non_blocking, stream, call, all, trace)) in
        rows.iter().enumerate()
    {
        let non_blocking = if *non_blocking { "non_blocking, " } else { "" };
        let title = format!("{memory}, {non_blocking}{stream} stream");
        let at_once = index % 4 >= 2 && returns_at_once(&index);
        if at_once && overlap(index) {
            both.push(title.clone());
        }
        let note = format!("call {}, all {}", words::time(*call), words::time(*all));
        pictures = pictures.case(title, note, trace);
    }
    lab.picture(
        pictures,
        &format!(
            "The GPU works on a product, and the host sends it a batch, in eight ways (times {}). In {free} of them \
             the call does not wait for the copy, and the host could do other work; here it has none, and waits for the GPU. \
             In {overlapping} the copy runs beside the product. \
             {}.",
            microseconds("", Duration::ZERO).kind.name(),
            match &both[..] {
                [] => "None does both".to_owned(),
                [one] => format!("Only one does both: {one}"),
                several => format!("These do both: {}", several.join("; ")),
            },
        ),
    );
    let verdict = match (free, overlapping) {
        _ if blocking => {
            "CUDA_LAUNCH_BLOCKING=1 is set, so every call waits until its work is done: none returns at once, and \
             nothing runs beside anything else."
                .to_owned()
        }
        (2, 4) => {
            "Two things are easily taken for one. non_blocking frees the host, but only from pinned memory. Another \
             stream lets the copy run beside the work: on one stream everything runs in order, however you asked for \
             the copy. Only pinned memory with non_blocking on another stream has both."
                .to_owned()
        }
        _ => format!(
            "Here the call returns at once in {free} of the eight cases, and the copy runs beside the work in \
             {overlapping}. On one stream everything runs in order, however you asked for the copy."
        ),
    };
    lab.prose(Text::from(verdict).raced());
    Ok(())
}

/// Whether a copy to the device and kernels overlapped for most of the shorter one's time. `None` for a real GPU.
pub(crate) fn side_by_side(trace: &Trace) -> Option<bool> {
    let is_copy = |work: &&TracedWork| {
        matches!(work.call.kind, EventKind::Copy { kind: CopyKind::HostToDevice, .. })
    };
    let (copies, kernels): (Vec<&TracedWork>, Vec<&TracedWork>) =
        trace.work.iter().partition(is_copy);
    let time = |work: &[&TracedWork]| {
        work.iter().map(|work| work.span.end - work.span.start).sum::<u64>()
    };
    let both = |copy: &TracedWork, kernel: &TracedWork| {
        let (start, end) = (
            copy.span.start.max(kernel.span.start),
            copy.span.end.min(kernel.span.end),
        );
        end.saturating_sub(start)
    };
    let beside: u64 = copies
        .iter()
        .flat_map(|copy| kernels.iter().map(|kernel| both(copy, kernel)))
        .sum();
    let shorter = time(&copies).min(time(&kernels));
    (shorter > 0).then_some(2 * beside > shorter)
}

// ANCHOR: stale
/// The loss of the first step, and that of the second, read at once and after a wait.
fn losses(device: Device) -> Result<[f64; 3]> {
    let to_cpu = ToOptions {
        device: Some(Device::Cpu),
        non_blocking: true,
        ..Default::default()
    };
    let loss = Tensor::ones((&[], device))?;
    let first = loss.to(to_cpu)?;
    cuda::synchronize()?;
    let first_loss = first.item()?;
    drop(first); // its memory is cached for the next copy
    cuda::synchronize()?;

    loss.fill_(2.0)?;
    let second = loss.to(to_cpu)?;
    let at_once = second.item()?;
    cuda::synchronize()?;
    Ok([first_loss, at_once, second.item()?])
}
// ANCHOR_END: stale

// ANCHOR: torn
/// Copies a batch of ones, and fills it with twos. How many twos arrive?
fn twos(wait: bool, device: Device) -> Result<i64> {
    let to_gpu =
        ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
    let batch = Tensor::ones(&[1 << 20])?.pin_memory()?;
    drop(batch.to(device)?); // the first copy also allocates memory, which waits
    let there = batch.to(to_gpu)?;
    if wait {
        cuda::current_stream(device)?.record_event()?.synchronize()?;
    }
    batch.fill_(2.0)?;
    Ok(there.sum()?.item()? as i64 - (1 << 20)) // each two adds one more
}
// ANCHOR_END: torn

fn stale_and_torn(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let what_is_read = "The loss on the GPU is 1 in the first step and 2 in the second. Each time it is copied to \
                        the CPU with `non_blocking`. The host waits for the first copy, but reads the second without \
                        waiting. What does it read?";
    if !lab.has_gpu_or_part(
        "loss-reads",
        "With --gpu sim:t4 you see a result that is read before it has come, and a batch that is overwritten while \
         it is copied. On the CPU no call returns before it is done, so neither can happen.",
    ) {
        return Ok(());
    }
    let machine = Machine::current();
    let check = machine.race_check();
    machine.set_race_check(RaceCheck::Ignore);
    let known = machine.races().len();
    let blocking = launches_wait(device)?;

    let guess = lab.predict(
        Prediction::choice("09-loss-reads", what_is_read)
            .or("first", "1, the loss of the first step.", "In this run the copy was done before the host read.")
            .or(
                "second",
                "2, the loss of the second step.",
                "`item()` waits if its tensor is on the GPU, and this one is on the CPU already.",
            )
            .or(
                "error",
                "Nothing: it is an error to read a tensor that is still being copied.",
                "No call fails. A simulated GPU reports the race, but it lets the host read.",
            )
            .or(
                "else",
                "0, because new memory is cleared.",
                "Memory is handed out as it is, with whatever was last in it.",
            )
            .because(
                "The second result gets the memory of the first, which holds the old number until the copy has run. \
                 Nothing made the host wait for that.",
            )
            .raced()
            .only_if(!blocking),
    );
    let [first_loss, at_once, later] = losses(device)?;
    lab.table(
        Table::new(["the loss", "value"])
            .row(row!["first step", exact("first_loss", first_loss).digits(1)])
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
            read if read == first_loss => "first",
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
    let verdict = if blocking {
        "CUDA_LAUNCH_BLOCKING=1 is set, so the copy had run when its call returned, and you read the right number. The \
         program still waits for nothing: without the variable it may read an old one."
    } else if at_once == later {
        "The number is right, by luck: the copy had run when you read it. Nothing made the host wait for it."
    } else {
        "You read the second result before the copy had run, and found what its memory held before. You got no error, but a \
         plausible number that is one step old. item() waits for a tensor on the GPU, but has no reason to wait for \
         one on the host."
    };
    lab.prose(Text::from(verdict).raced());

    let guess = lab.predict(
        Prediction::choice(
            "09-twos",
            "A pinned batch of ones is sent to the GPU with `non_blocking`, and the next line fills it with twos. What arrives?",
        )
        .or("ones", "Ones.", "Only if the copy had run before the host wrote, and here it had not.")
        .or("twos", "Twos.", "Only if the host was done before the copy had begun, and here it was not.")
        .or("both", "Some of each.", "Here one of the two had finished before the other began.")
        .because("Nothing makes the host wait for the copy, which reads the memory while it runs.")
        .raced()
        .only_if(!blocking),
    );
    let (at_once, after_the_event) = (twos(false, device)?, twos(true, device)?);
    let ones = |twos: i64| (1 << 20) - twos;
    lab.table(
        Table::new(["filled with twos", "ones that arrive", "twos"])
            .row(row!["at once", raced("ones", ones(at_once)), raced("twos", at_once)])
            .row(row![
                "after the copy's event",
                exact("ones", ones(after_the_event)),
                exact("twos", after_the_event)
            ]),
    );
    lab.answer(
        guess,
        match at_once {
            0 => "ones",
            twos if ones(twos) == 0 => "twos",
            _ => "both",
        },
    );
    tell(lab, known + 1);
    let verdict = match at_once {
        _ if blocking => {
            "CUDA_LAUNCH_BLOCKING=1 is set, so the copy had run before the host wrote."
        }
        0 => "By luck the copy had finished before the host wrote: only ones arrive.",
        twos if ones(twos) == 0 => {
            "The host was done before the copy had begun: no ones arrive."
        }
        _ => "The host wrote while the copy was under way, and so some of each arrive.",
    };
    lab.prose(Text::from(verdict).raced());
    lab.prose(
        "How many of each arrive depends on who comes first. The race is there in any case. Until a copy has run, its \
         memory is not the host's: wait for an event recorded after the copy, or fill another buffer. A loader with \
         pin_memory uses its memory again only when its copies have run.",
    );
    machine.set_race_check(check);
    Ok(())
}
