//! Compares the model's times with a card's: the same work on both, excluding work used for calibration.
//!
//! `cargo run --release --bin calibrate -- --output my-card.profile --host-output my-card.host`, and then `cargo run
//! --release --bin how-wrong -- --model sim:my-card.profile,host=my-card.host`. It prints Markdown tables.

use std::process::ExitCode;

use clap::Parser;
use course_tests::with_gpu;
use course_tests::works::Precision::{Bf16, F32, Tf32};
use course_tests::works::{self, again_and_again, median};
use labs::calibrate::{busy, on_device};
use labs::cli::count;
use labs::stdio::to_stdout;
use labs::{failed, program, wrong};
use todevice::prelude::*;
use todevice::{Conv2dOptions, GpuSpec, LayerNormArguments, Machine, ToOptions};

/// Compares modelled times with measured times, and prints tables
#[derive(Parser)]
#[command(name = "how-wrong", version)]
struct Options {
    /// GPUs to measure; only the first is used
    #[arg(long, value_name = "GPU", default_value = "real", help = format!("GPUs to measure; only the first is used: {}", GpuSpec::GRAMMAR))]
    gpu: GpuSpec,

    /// Simulated GPU to compare with, from the files of calibrate: sim:FILE.profile,host=FILE.host
    #[arg(long, value_name = "GPU")]
    model: GpuSpec,

    /// Divisor of all sizes, for slow GPUs
    #[arg(long, value_name = "N", default_value = "1", value_parser = count(1..=64))]
    smaller: usize,

    /// Compare only this kind of work; can be repeated
    #[arg(long, value_name = "KIND", value_parser = ["operations", "copies", "trainings"])]
    only: Vec<String>,
}

fn main() -> ExitCode {
    program(|options: Options| {
        if !matches!(options.model, GpuSpec::Simulated(_)) {
            let model = options.model;
            return Err(wrong(format!(
                "--model {model}: expected a simulated GPU, such as sim:my-card.profile"
            )));
        }
        let card = with_gpu(&options.gpu)?;
        let model = options.model.machine().map_err(wrong)?;
        // A simulated card serves only for a rehearsal, and its times are not measurements.
        let how = if card.time_is_modelled() { "modelled on the GPU" } else { "measured" };
        let is_asked = |kind: &Kind| {
            options.only.is_empty() || options.only.iter().any(|only| kind.name.ends_with(only))
        };
        for kind in KINDS.into_iter().filter(is_asked) {
            let times = |machine: &Machine| machine.enter(|| (kind.times)(options.smaller)).map_err(failed);
            show(&kind, how, &times(&card)?, &times(&model)?);
        }
        let sizes = match options.smaller {
            1 => String::new(),
            by => format!(" All sizes but those of the trainings are divided by {by}."),
        };
        to_stdout(&format!("The GPU is {card}, the model {}.{sizes}\n", options.model));
        Ok(())
    })
}

/// Names of work, with their times in microseconds.
type Times = Vec<(String, f64)>;

/// A kind of work, and the maximum error of the model, in percent.
struct Kind {
    name: &'static str,
    times: fn(usize) -> Result<Times>,
    /// Shorter work does not count, in microseconds.
    from: f64,
    median: f64,
    largest: f64,
}

const KINDS: [Kind; 3] = [
    Kind { name: "operations", times: operations, from: 20.0, median: 10.0, largest: 30.0 },
    Kind { name: "copies", times: copies, from: 0.0, median: 10.0, largest: 10.0 },
    Kind { name: "steps of trainings", times: trainings, from: 0.0, median: 20.0, largest: 20.0 },
];

fn show(kind: &Kind, how: &str, measured: &Times, modelled: &Times) {
    let mut text = format!("| {} | {how} | modelled | off by |\n| --- | --: | --: | --: |\n", kind.name);
    let mut errors = Vec::new();
    for (name, measured) in measured {
        // A model without tensor cores for a dtype lacks some work.
        let Some((_, modelled)) = modelled.iter().find(|(known, _)| known == name) else { continue };
        let error = 100.0 * (modelled / measured - 1.0);
        text += &format!("| {name} | {measured:.1} µs | {modelled:.1} µs | {error:+.0} % |\n");
        if *measured >= kind.from {
            errors.push(error.abs());
        }
    }
    let Kind { name, from, .. } = kind;
    let which = if *from > 0.0 { format!("{name} of {from} µs and more") } else { name.to_string() };
    if errors.is_empty() {
        text += &format!("\nThere are no {which} to compare.\n\n");
    } else {
        let (middle, worst) = (median(errors.clone()), errors.iter().fold(0.0, |a: f64, b| a.max(*b)));
        let against =
            |error: f64, goal: f64| if error > goal { format!("missed: {goal}") } else { format!("{goal}") };
        text += &format!(
            "\nOf {} {which} the median is off by {middle:.0} % (goal {}), and the worst by {worst:.0} % (goal {}).\n\n",
            errors.len(),
            against(middle, kind.median),
            against(worst, kind.largest)
        );
    }
    to_stdout(&text);
}

/// Times of operations, each queued while the GPU is busy with other work.
struct Queued {
    busy: Tensor,
    times: Times,
}

impl Queued {
    fn new(device: Device) -> Result<Queued> {
        Ok(Queued { busy: busy(device)?, times: Times::new() })
    }

    fn add(&mut self, name: &str, operation: impl Fn() -> Result<Tensor>) -> Result<()> {
        self.times.push((name.to_owned(), on_device(&self.busy, || operation().map(drop))?));
        Ok(())
    }
}

fn operations(smaller: usize) -> Result<Times> {
    let device = Device::cuda(0);
    let mut queued = Queued::new(device)?;
    // Random, because a card multiplies ones faster.
    let randn = |sizes: &[usize]| Tensor::randn((sizes, device));
    {
        let sizes = [8192 / smaller, 8192];
        let [a, b, row] = [randn(&sizes)?, randn(&sizes)?, randn(&[8192])?];
        let half = a.to(DType::F16)?;
        queued.add("`add`, 8192 by 8192", || a.add(&b))?;
        queued.add("`mul` by a row, 8192 by 8192", || a.mul(&row))?;
        queued.add("`exp` of f16, 8192 by 8192", || half.exp())?;
        queued.add("`relu`, 8192 by 8192", || a.relu())?;
        queued.add("`dropout`, 8192 by 8192", || a.dropout(0.5, true))?;
        queued.add("`t().contiguous()`, 8192 by 8192", || a.t()?.contiguous())?;
        queued.add("`cat` of two, 8192 by 8192 each", || Tensor::cat(&[&a, &b], 0))?;
        queued.add("`sum`, 8192 by 8192", || a.sum())?;
        queued.add("`sum_dims(&[0])`, 8192 by 8192", || a.sum_dims(&[0], false))?;
        queued.add("`sum_dims(&[1])`, 8192 by 8192", || a.sum_dims(&[1], false))?;
    }
    {
        let (rows, weight, bias) = (randn(&[16_384 / smaller, 1024])?, randn(&[1024])?, randn(&[1024])?);
        let count = 16_384 / smaller as i64;
        let classes: Vec<i64> = (0..count).map(|i| i % 1000).collect();
        // All rows, in an order that defeats caches.
        let order: Vec<i64> = (0..count).map(|i| i * 7919 % count).collect();
        let indices = |indices: &[i64]| Tensor::from_slice(indices, &[indices.len()])?.to(device);
        let (classes, order) = (indices(&classes)?, indices(&order)?);
        queued.add("`softmax(1)`, 16,384 by 1024", || rows.softmax(1))?;
        queued.add("`layer_norm`, 16,384 by 1024", || {
            rows.layer_norm((
                &[1024],
                LayerNormArguments {
                    weight: Some(weight.clone()),
                    bias: Some(bias.clone()),
                    ..Default::default()
                },
            ))
        })?;
        queued.add("`cross_entropy`, 16,384 by 1024", || rows.cross_entropy(&classes))?;
        queued.add("`index_select`, 16,384 rows of 1024", || rows.index_select(0, &order))?;
    }
    for (side, precision, name) in [
        (1024, F32, "`matmul`, 1024³"),
        (2048, F32, "`matmul`, 2048³"),
        (4096, F32, "`matmul`, 4096³"),
        (4096, Tf32, "`matmul`, 4096³, TF32"),
        (4096, Bf16, "`matmul`, 4096³, bf16"),
    ] {
        if precision.is_supported() {
            let side = side / smaller;
            let dtype = if precision == Bf16 { DType::BF16 } else { DType::F32 };
            let square = randn(&[side, side])?.to(dtype)?;
            precision.rounding(|| queued.add(name, || square.matmul(&square)))?;
        }
    }
    let batch = randn(&[64 / smaller, 512, 512])?;
    queued.add("`bmm`, 64 times 512³", || batch.bmm(&batch))?;
    let (images, weight) = (randn(&[64 / smaller, 64, 56, 56])?, randn(&[64, 64, 3, 3])?);
    let padded = Conv2dOptions { padding: 1.into(), ..Default::default() };
    F32.rounding(|| {
        queued.add("`conv2d` 3×3, 64 images of 64×56×56", || images.conv2d(&weight, (None, padded)))
    })?;
    queued.add("`max_pool2d` 2×2, 64 images of 64×56×56", || images.max_pool2d(2))?;
    Ok(queued.times)
}

/// Copies between host and device, from and to pinned or pageable memory.
fn copies(smaller: usize) -> Result<Times> {
    let device = Device::cuda(0);
    let mut queued = Queued::new(device)?;
    let unwaited = |device| ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
    for mebibytes in [1, 16, 256] {
        let pageable = Tensor::randn(&[(mebibytes << 18) / smaller])?;
        let (pinned, there, here) = (pageable.pin_memory()?, pageable.to(device)?, pageable.copy()?);
        let name = |what: &str| format!("{mebibytes} MiB {what}");
        queued.add(&name("to the device, pinned"), || pinned.to(unwaited(device)))?;
        queued.add(&name("to the host, pinned"), || there.to(unwaited(Device::Cpu)))?;
        for (what, to, from) in
            [("to the device, pageable", &there, &pageable), ("to the host, pageable", &here, &there)]
        {
            let time = again_and_again(|| to.copy_(from).map(drop))?;
            queued.times.push((name(what), time * 1e6));
        }
    }
    Ok(queued.times)
}

fn trainings(_: usize) -> Result<Times> {
    let device = Device::cuda(0);
    let mut times = vec![
        ("a tiny MLP".to_owned(), 1e6 * again_and_again(works::tiny_mlp_step(device)?)?),
        ("an MLP for digits".to_owned(), 1e6 * again_and_again(works::mnist_mlp_step(device, F32)?)?),
        ("a CNN".to_owned(), 1e6 * again_and_again(works::cnn_step(device, F32)?)?),
    ];
    if Bf16.is_supported() {
        times.push((
            "a CNN, bf16 with autocast".to_owned(),
            1e6 * again_and_again(works::cnn_step(device, Bf16)?)?,
        ));
    }
    Ok(times)
}
