//! The algorithm of a convolution: chosen by heuristics, or by a search.

use std::time::Duration;

use drawing::algorithms::{self, Algorithm};
use drawing::words;
use todevice::backends::cudnn::{self, Flags};
use todevice::prelude::*;
use todevice::trace::Kernel;
use todevice::{Machine, cuda};

use super::{
    OWN_ALGORITHMS, bits, convolution, error, has_cudnn, has_tf32, in_f64,
    microseconds, millionths, time_of, without_cudnn, yes_or_no,
};
use crate::{
    Cell, Figure, Lab, Prediction, Table, Text, Value, exact, observed, raced, row,
};

fn algorithm(kernel: &Kernel) -> &str {
    kernel.name.strip_prefix("conv_forward ").unwrap_or(&kernel.name)
}

fn kernel_time(kernel: &Kernel) -> Cell {
    kernel
        .time
        .map_or(Cell::from("unknown"), |time| microseconds("kernel_time", time).into())
}

pub(super) fn one_convolution(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.section_apart(2, "One convolution, several algorithms", OWN_ALGORITHMS);
    if !has_cudnn(device) {
        without_cudnn(lab, "the algorithms that cuDNN tries, and what they need");
        return Ok(());
    }
    // ANCHOR: tried
    // 16 images of 16 × 16 pixels, from 32 channels to 32.
    let (conv, x) = convolution(device, 16, [32, 32], 16, 3)?;
    cudnn::set_benchmark(true); // tries all algorithms
    let (y, trace) = Machine::current().profile(|| no_grad(|| conv.forward(&x)));
    cudnn::set_benchmark(false);
    let mut tried = trace.kernels(device.index());
    // ANCHOR_END: tried
    y?; // After a failure, there may be no trials.
    let found = tried.last().map(|kernel| kernel.name.clone());
    // The last run is the actual call.
    let searched = &tried[..tried.len().saturating_sub(1)];
    let search_time: Option<Duration> = searched.iter().map(|kernel| kernel.time).sum();
    let search = (searched.len(), search_time.filter(|time| !time.is_zero()));
    let (y, by_rule) = Machine::current().profile(|| no_grad(|| conv.forward(&x)));
    y?;
    let by_rule = by_rule.kernels(device.index()).pop().map(|kernel| kernel.name);
    tried.sort_by(|a, b| a.name.cmp(&b.name));
    tried.dedup_by(|a, b| a.name == b.name);
    let in_code = |kernel: &Kernel| format!("`{}`", algorithm(kernel));
    let names: Vec<String> = tried.iter().map(in_code).collect();
    tried.sort_by_key(|kernel| kernel.time);
    let by_time: Vec<String> = tried.iter().map(in_code).collect();
    let guess = lab.predict(
        Prediction::order(
            "07-algorithms",
            "cuDNN has several algorithms for this convolution of 3×3 weights. `GEMM` writes out what the weights cover, \
             nine numbers for each pixel and channel, and multiplies matrices. `IMPLICIT_PRECOMP_GEMM` multiplies the same \
             matrices, but looks each number up in the image, so each multiplication is slower. `WINOGRAD_NONFUSED` transforms the image, the weights and the result, and so needs fewer multiplications than the other two. Put them in order of time, the fastest first.",
            names,
        )
        .because(why_the_fastest(&by_time[0]))
        .raced(),
    );
    let mut table = Table::new(["algorithm", "time", "workspace in bytes"]).ranked();
    for kernel in &tried {
        let workspace = exact("workspace", kernel.workspace);
        table = table.row(row![algorithm(kernel), kernel_time(kernel), workspace]);
    }
    lab.table(table);
    lab.answer(guess, by_time);
    draw(lab, &tried, [("the search", found), ("the rule", by_rule)], search);
    lab.prose(
        "The workspace is memory that an algorithm needs besides the images, the weights and the result: GEMM writes its \
         numbers there, and Winograd keeps its transforms there.",
    );

    let guess = lab.predict(
        Prediction::yes_no(
            "07-same",
            "The same images go through the same convolution three times, and each time the algorithm is chosen in a different way. \
             Are the results the same, to the bit?",
        )
        .because("Another algorithm may add the same products in another order, or compute other products, and so it rounds elsewhere.")
        .raced(),
    );
    let by_default = Flags::default();
    let exact_y = in_f64(&conv, &x)?;
    let mut results = Vec::new();
    // ANCHOR: three_ways
    for (name, flags) in [
        ("by default", by_default),
        ("benchmark", Flags { benchmark: true, ..by_default }),
        ("not enabled", Flags { enabled: false, ..by_default }),
    ] {
        let forward = || cudnn::flags(flags, || no_grad(|| conv.forward(&x)));
        let (y, trace) = Machine::current().profile(forward);
        results.push((name, y?, trace.kernels(device.index())));
    }
    // ANCHOR_END: three_ways
    let first = bits(&results[0].1)?;
    let mut are_same = true;
    let mut table =
        Table::new(["", "computed by", "error in millionths", "same as first"]);
    for (name, y, kernels) in &results {
        let is_same = bits(y)? == first;
        are_same &= is_same;
        // Only the search depends on times.
        let found = |figure, value: Value| match *name {
            "benchmark" => raced(figure, value),
            _ => observed(figure, value),
        };
        table = table.row(row![
            *name,
            found("computed_by", kernels.last().map_or("none", algorithm).into()),
            found("rounding", millionths(error(y, &exact_y)?).into()),
            found("same_bits", yes_or_no(is_same).into())
        ]);
    }
    lab.table(table);
    lab.answer(guess, are_same);
    lab.prose(
        "The errors are against the same convolution in f64. An algorithm may add the same products in another order, or \
         compute other products, so it rounds elsewhere. No result is wrong, but you cannot count on two being the same.",
    );
    if has_tf32(device)? {
        lab.prose(
            "An error of some hundred millionths comes from TF32, which section 7 is about.",
        );
    }
    Ok(())
}

fn why_the_fastest(name: &str) -> &'static str {
    match name {
        "`WINOGRAD_NONFUSED`" => {
            "Multiplying is what takes the time on this card, and Winograd's way multiplies least. On a card that \
             multiplies fast, its transforms cost more than they save."
        }
        "`GEMM`" => {
            "Here a product of ready-made matrices is so much faster that it pays to write them out first."
        }
        _ => {
            "This one prepares only a small table. The other two rewrite their numbers before they multiply, and here \
             that costs more than it saves."
        }
    }
}

/// Draws the algorithms and their users, with the search's number of runs and time.
fn draw(
    lab: &mut Lab,
    tried: &[Kernel],
    takers: [(&str, Option<String>); 2],
    (runs, search_time): (usize, Option<Duration>),
) {
    let taken_by = |kernel: &Kernel| {
        let taken =
            takers.iter().filter(|(_, name)| name.as_ref() == Some(&kernel.name));
        taken.map(|(who, _)| (*who).to_owned()).collect::<Vec<_>>()
    };
    let all: Vec<Algorithm> = tried
        .iter()
        .map(|kernel| Algorithm {
            name: algorithm(kernel).to_owned(),
            time: kernel.time,
            workspace: kernel.workspace,
            taken_by: taken_by(kernel),
        })
        .collect();
    let kind = microseconds("", Duration::ZERO).kind.name();
    let said = all.iter().map(|Algorithm { name, time, workspace, .. }| {
        let time = time.map_or_else(|| "an unknown time".to_owned(), words::time);
        format!("{name} {time} and {}", words::bytes(*workspace))
    });
    let taken = |name: &Option<String>| {
        let kernel = tried.iter().find(|kernel| Some(&kernel.name) == name.as_ref());
        kernel.map_or("another", algorithm)
    };
    let [(_, found), (_, by_rule)] = &takers;
    let room = all.iter().map(|algorithm| algorithm.workspace).max().unwrap_or(0);
    // A search inside cuDNN is not timed.
    let price = search_time.map_or_else(String::new, |time| {
        format!(
            " in {runs} runs, which keep the GPU busy for {} ({kind}) and need up to {} of workspace",
            words::time(time),
            words::bytes(room),
        )
    });
    let caption = format!(
        "One convolution and {} algorithms for it, each with the time ({kind}) and the workspace that it needs: {}. \
         The search tries all of them{price}, and takes the fastest, {}. The rule of thumb tries none: it goes by the sizes of \
         images and weights, and takes {}.",
        all.len(),
        said.collect::<Vec<_>>().join(", "),
        taken(found),
        taken(by_rule),
    );
    lab.picture(algorithms::picture(&all, kind), &caption);
}

// ANCHOR: convolutions
/// Name, number of images, channels before and after, pixels across, and the size of
/// the kernel.
const CONVOLUTIONS: [(&str, usize, [usize; 2], usize, usize); 4] = [
    ("3×3, 32→32", 8, [32, 32], 24, 3),
    ("3×3, 64→64", 4, [64, 64], 16, 3),
    ("5×5, 3→32", 8, [3, 32], 32, 5),
    ("1×1, 64→128", 8, [64, 128], 16, 1),
];
// ANCHOR_END: convolutions

pub(super) fn rule_or_search(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.section_apart(3, "A rule of thumb, or a search", OWN_ALGORITHMS);
    if !has_cudnn(device) {
        without_cudnn(
            lab,
            "what benchmark mode finds, what it costs, and when that is paid back",
        );
        return Ok(());
    }
    lab.think(
        "07-rule",
        "Without benchmark mode a rule of thumb picks the algorithm. In benchmark mode the first call tries all of \
         them, and later calls take the fastest. For how many of the lab's four convolutions is the rule wrong?",
    );
    let mut later_calls = Table::new(["convolution", "rule", "later", "found"]);
    let mut first_calls =
        Table::new(["convolution", "the rule was", "first", "calls to pay it back"]);
    // The largest gain of the search per call, its convolution, and the number of calls until the search has paid off.
    let mut best = (Duration::ZERO, "", raced("paid_back", "never"));
    for (name, images, channels, size, kernel) in CONVOLUTIONS {
        // ANCHOR: first_and_later
        let (conv, x) = convolution(device, images, channels, size, kernel)?;
        let forward = || no_grad(|| conv.forward(&x));
        time_of(device, forward)?; // not timed: the first call allocates memory
        let rule = time_of(device, forward)?;
        cudnn::set_benchmark(true);
        let first = time_of(device, forward)?; // tries all algorithms
        let later = time_of(device, forward)?; // runs the fastest
        // ANCHOR_END: first_and_later
        let found = taken(device, forward)?;
        cudnn::set_benchmark(false);
        let by_rule = taken(device, forward)?;
        later_calls = later_calls.row(row![
            name,
            microseconds("rule_time", rule),
            microseconds("later_time", later),
            raced("found", found.as_str())
        ]);
        // If the search finds the same algorithm, a difference in times is not a gain.
        let gain = match found == by_rule {
            true => Duration::ZERO,
            false => rule.saturating_sub(later),
        };
        let paid_back = paid_back(first.saturating_sub(rule), gain);
        if gain > best.0 {
            best = (gain, name, paid_back.clone());
        }
        first_calls = first_calls.row(row![
            name,
            raced("rule_was", if gain.is_zero() { "right" } else { "wrong" }),
            microseconds("first_time", first),
            paid_back
        ]);
    }
    lab.table(later_calls);
    let (gain, name, paid_back) = best;
    let guess = lab.predict(if gain.is_zero() {
        Prediction::think("07-pay", "Where the rule was right, after how many later calls is a search paid back?")
    } else {
        Prediction::number(
            "07-pay",
            format!(
                "The first call of `{name}` in benchmark mode tries all algorithms. How many of the shorter calls \
                 that follow does it take to pay that back?"
            ),
        )
        .unit("calls")
        .integer()
        .tolerance(0.25)
        .because(
            "The search runs every algorithm, the slow ones too, and takes memory for them first. Each later call \
             saves only a little of that.",
        )
        .raced()
    });
    lab.table(first_calls);
    lab.answer(guess, paid_back.unit("calls"));
    let verdict = match gain.is_zero() {
        true => {
            "Here the rule was right each time, so the searches gain nothing and are never paid back."
        }
        false => {
            "Where the rule was right, the search gains nothing and is never paid back. Where it was wrong, each later \
             call is shorter."
        }
    };
    lab.prose(Text::from(verdict).raced());
    lab.prose(
        "The rule of this simulated cuDNN knows the sizes and not the card, so it errs on one card where it is right on \
         another. The rule of the real cuDNN knows more.",
    );
    Ok(())
}

/// The algorithm that a convolution uses now.
fn taken(device: Device, forward: impl FnOnce() -> Result<Tensor>) -> Result<String> {
    let (y, trace) = Machine::current().profile(forward);
    y?;
    Ok(trace.kernels(device.index()).last().map_or("none", algorithm).to_owned())
}

/// The number of later calls until the search has paid off.
fn paid_back(cost: Duration, gain: Duration) -> Figure {
    match gain.as_nanos() {
        0 => raced("paid_back", "never"),
        gain => raced("paid_back", cost.as_nanos().div_ceil(gain) as i64),
    }
}

pub(super) fn when_it_never_pays(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.section_apart(4, "When the search never pays", OWN_ALGORITHMS);
    if !has_cudnn(device) {
        without_cudnn(
            lab,
            "which calls search, and what that costs where images have many sizes",
        );
        return Ok(());
    }
    let guess = lab.predict(
        Prediction::number(
            "07-shapes",
            "30 images come in batches of 8, so the last batch has 6. How many searches are there in eight epochs in \
             benchmark mode?",
        )
        .unit("searches")
        .out_of(32)
        .because("There are two batch sizes. Each is searched once, in the first epoch, and the result is kept."),
    );
    // ANCHOR: loops
    let (conv, images) = convolution(device, 30, [32, 8], 16, 3)?;
    let epoch = images.split(8, 0)?; // 8, 8, 8, 6
    let later: Vec<Tensor> = (0..7).flat_map(|_| epoch.clone()).collect();
    let of_size = |size: usize| Tensor::randn((&[8, 32, size, size], device));
    let sizes =
        [9, 11, 13, 17, 19, 21].into_iter().map(of_size).collect::<Result<Vec<_>>>()?;
    let others = [10, 12, 14, 18, 20, 22]
        .into_iter()
        .map(of_size)
        .collect::<Result<Vec<_>>>()?;
    let all = Flags { benchmark: true, ..cudnn::current() };
    let one = Flags { benchmark_limit: 1, ..all };
    let loops = [
        ("first epoch, 8 8 8 6", &epoch, all),
        ("seven more epochs", &later, all),
        ("six sizes of images", &sizes, all),
        ("the same six again", &sizes, all),
        ("six others, limit 1", &others, one),
        ("the same six again", &others, one),
    ];
    // ANCHOR_END: loops
    let mut table = Table::new(["", "calls", "searches", "off", "on"]);
    let mut all_searches = Vec::new();
    for (name, batches, on) in loops {
        forward_all(&conv, batches, device)?; // a warm-up, which allocates memory
        let (off_time, _) = forward_all(&conv, batches, device)?;
        let (on_time, searches) =
            cudnn::flags(on, || forward_all(&conv, batches, device))?;
        all_searches.push(searches);
        table = table.row(row![
            name,
            batches.len(),
            observed("searches", searches),
            microseconds("off_time", off_time).digits(0),
            microseconds("on_time", on_time).digits(0)
        ]);
    }
    lab.table(table);
    // The first two loops are the eight epochs.
    let searches: usize = all_searches.iter().take(2).sum();
    lab.answer(guess, observed("searches", searches).unit("searches"));
    lab.prose(
        "What a search finds is kept for each pass, type and set of sizes. A smaller last batch costs one more search, once. Sizes \
         that are new each time are searched each time, and those searches are never paid back. With a \
         benchmark_limit a search tries fewer algorithms: with 1 it tries only the rule's choice, which costs less and \
         finds nothing better. Training has three passes, one forward and two for the gradients, so it searches three times for each size.",
    );
    Ok(())
}

// ANCHOR: forward_all
/// The time to convolve all batches, and the number of calls with a search.
fn forward_all(
    conv: &nn::Conv2d,
    batches: &[Tensor],
    device: Device,
) -> Result<(Duration, usize)> {
    let mut searches = 0;
    let time = time_of(device, || {
        for x in batches {
            let before = Machine::current().counters().launches;
            no_grad(|| conv.forward(x))?;
            let launches = Machine::current().counters().launches - before;
            searches += usize::from(launches > 1); // a search launches each candidate
        }
        Ok(())
    })?;
    Ok((time, searches))
}
// ANCHOR_END: forward_all

pub(super) fn memory_to_work_in(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    lab.section_apart(5, "Memory to work in", OWN_ALGORITHMS);
    if !has_cudnn(device) {
        without_cudnn(
            lab,
            "the workspace of a convolution, and what happens if there is no room for it",
        );
        return Ok(());
    }
    lab.part("peak");
    // ANCHOR: peaks
    let (conv, x) = convolution(device, 8, [32, 8], 24, 3)?;
    let peak = || -> Result<u64> {
        cuda::reset_peak_memory_stats();
        let before = cuda::memory_allocated();
        no_grad(|| conv.forward(&x))?;
        Ok(cuda::max_memory_allocated() - before)
    };
    let by_rule = peak()?;
    cudnn::set_benchmark(true);
    let in_search = peak()?;
    let after_it = peak()?;
    cudnn::set_benchmark(false);
    // ANCHOR_END: peaks
    lab.table(
        Table::new(["", "bytes at the peak"])
            .row(row!["by the rule", exact("peak", by_rule)])
            .row(row!["in the search", exact("peak", in_search)])
            .row(row!["after it", raced("peak", after_it)]),
    );
    lab.prose("The search needs room for the hungriest algorithm, even if another one is taken in the end.");
    drop((conv, x));

    let guess = lab.predict(
        Prediction::choice(
            "07-no-room",
            "A convolution has used an algorithm with a large workspace. Now tensors fill all the memory that the program \
             may have. What does the next call do?",
        )
        .or(
            "error",
            "It fails: out of memory.",
            "It would if there were no other way, but another algorithm needs next to no workspace.",
        )
        .or(
            "same",
            "It uses the same algorithm as before.",
            "A workspace is memory like any other, and none of that size is left.",
        )
        .or("other", "It uses another algorithm.", "Here the algorithm was frugal already."),
    );
    // ANCHOR: no_room
    let (conv, x) = convolution(device, 4, [64, 64], 16, 3)?;
    let forward = || Machine::current().profile(|| no_grad(|| conv.forward(&x)));
    let (y, with_room) = forward();
    drop(y?);

    // From here on, the program gets no more memory than it has reserved,
    cuda::empty_cache()?;
    let reserved = cuda::memory_reserved() as f64;
    let (_, total) = cuda::mem_get_info()?;
    cuda::set_per_process_memory_fraction(reserved / total as f64)?;
    // and all of that is in use.
    let mut held = Vec::new();
    while let Ok(two_mebibytes) = Tensor::zeros((&[1 << 19], device)) {
        held.push(two_mebibytes);
    }
    let (y, full) = forward();
    drop(y?);
    // ANCHOR_END: no_room
    cuda::set_per_process_memory_fraction(1.0)?;
    let runs = [("with room", with_room), ("full", full)]
        .map(|(name, trace)| (name, trace.kernels(device.index())));
    let mut table = Table::new(["memory", "algorithm", "time", "workspace in bytes"]);
    for (name, kernel) in runs
        .iter()
        .flat_map(|(name, kernels)| kernels.iter().map(move |kernel| (*name, kernel)))
    {
        let workspace = exact("room", kernel.workspace);
        table =
            table.row(row![name, algorithm(kernel), kernel_time(kernel), workspace]);
    }
    lab.table(table);
    let used = |run: usize| runs[run].1.last().map(|kernel| &kernel.name);
    lab.answer(guess, if used(0) == used(1) { "same" } else { "other" });
    let [with_room, full] =
        [0, 1].map(|run| runs[run].1.last().and_then(|kernel| kernel.time));
    lab.prose(
        "There is no error and no warning. Another algorithm is taken, which works in less memory and may round differently.",
    );
    let verdict = match full > with_room {
        true => {
            "It is slower here. If your training becomes slower for no visible reason, memory may be short."
        }
        false => {
            "It is no slower here, because the rule had not chosen the fastest. On another card it is, and nobody tells \
             you why."
        }
    };
    lab.prose(Text::from(verdict).raced());
    Ok(())
}
