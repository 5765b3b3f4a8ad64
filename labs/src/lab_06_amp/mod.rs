//! Lab 06: mixed precision. Half the bits, and what to do about the other half.

mod costs;
mod images;
mod numbers;
mod scaling;
mod training;

use std::time::Duration;

use todevice::data::vision::Sets;
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{Machine, cuda};

use crate::frame::cli::count;
use crate::frame::clock::wait_for;
use crate::frame::compute_capability;
use crate::{Entry, Figure, Lab, Run, exact};

pub const LAB: Entry<Options> = Entry { name: "lab-06", title: "Mixed precision", run };

/// The knobs of this lab.
#[derive(clap::Args)]
pub struct Options {
    /// Steps of a training run, in sections 5 and 6
    #[arg(long, value_name = "N", default_value = "30", value_parser = count(1..=1000))]
    pub steps: usize,

    /// Batches of 1024 samples that the loss averages; more batches make each gradient smaller
    #[arg(long, value_name = "N", default_value = "4096", value_parser = count(1..=1_048_576))]
    pub batches: usize,

    /// Images per batch in the timed step of section 8
    #[arg(long, value_name = "N", default_value = "64", value_parser = count(1..=4096))]
    pub batch_size: usize,

    /// Images that train the networks of section 8, in batches of 8
    #[arg(long, value_name = "N", default_value = "640", value_parser = count(1..=60_000))]
    pub images: usize,

    /// Passes over these images in section 8
    #[arg(long, value_name = "N", default_value = "1", value_parser = count(1..=1000))]
    pub epochs: usize,

    /// Folder with the files of CIFAR-10, Fashion-MNIST, or MNIST, for section 8 [default: generated images]
    #[arg(long, value_name = "DIR", value_parser = images::in_folder)]
    pub data: Option<Sets>,
}

/// No section builds on another, so a selected one runs alone.
pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    first_product(lab.device())?;
    if lab.section(1, "A number in sixteen bits") {
        numbers::a_number(lab)?;
    }
    if lab.section(2, "What a type costs") {
        costs::by_type(lab)?;
    }
    if lab.section(3, "Which operation runs in which type") {
        training::who_runs_in_what(lab)?;
    }
    if lab.section(4, "Gradients that vanish") {
        training::vanishing(lab, options)?;
    }
    if lab.section(5, "Scaling the loss") {
        scaling::scaled(lab, options)?;
    }
    if lab.section(6, "Four training runs side by side") {
        training::side_by_side(lab, options)?;
    }
    if lab.section(7, "When it pays") {
        costs::slower(lab)?;
    }
    if lab.section(8, "A network for images") {
        images::on_images(lab, options)?;
    }
    Ok(())
}

fn name_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        _ => "float32",
    }
}

fn time_of<R>(
    device: Device,
    run: impl FnOnce() -> Result<R>,
) -> Result<(R, Duration)> {
    wait_for(device)?;
    let start = Instant::now();
    let result = run()?;
    wait_for(device)?;
    Ok((result, start.elapsed()))
}

/// Computes a product. The library allocates its own memory for the first one, which no section should count.
fn first_product(device: Device) -> Result<()> {
    let x = Tensor::ones((&[8, 8], device))?;
    x.matmul(&x).map(drop)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn percent(name: &'static str, share: f64) -> Figure {
    exact(name, 100.0 * share).unit("%").digits(0)
}

fn kibibytes(name: &'static str, bytes: u64) -> Figure {
    exact(name, bytes.div_ceil(1024)).unit("KiB")
}

/// The peak GPU memory of `run`, above the memory already in use.
fn peak_of<R>(
    device: Device,
    run: impl FnOnce() -> crate::Result<R>,
) -> crate::Result<(R, Option<u64>)> {
    if !device.is_cuda() {
        return Ok((run()?, None));
    }
    cuda::reset_peak_memory_stats();
    let before = cuda::memory_allocated();
    let result = run()?;
    Ok((result, Some(cuda::max_memory_allocated() - before)))
}

/// Another, simulated card for comparison: a T4 if this card is newer, otherwise a newer one.
fn other_card(device: Device) -> crate::Result<(Machine, &'static str)> {
    let newer = compute_capability(device)? >= 8;
    let (profile, name) =
        if newer { ("sim:t4", "Tesla T4") } else { ("sim:rtx4090", "RTX 4090") };
    Ok((profile.parse()?, name))
}

pub const RUNS: &[Run] = &[
    Run::NONE,
    Run::T4,
    Run::new(
        "rtx4090",
        &["--gpu", "sim:rtx4090", "--batch-size", "512"],
        "on a simulated RTX 4090, with a larger batch in section 8",
    ),
];
