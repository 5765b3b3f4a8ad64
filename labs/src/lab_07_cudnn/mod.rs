//! Lab 07: cuDNN's choice of an algorithm, its search for the fastest, deterministic results, TF32, and the memory
//! format of images.

mod channels_last;
mod determinism;
mod search;
mod tf32;

use std::time::Duration;

use todevice::backends::{self, cudnn};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{Conv2dOptions, cuda};

use crate::frame::cli::count;
use crate::frame::clock::wait_for;
use crate::frame::compute_capability;
use crate::{Entry, Figure, Lab, Run, Table, exact, hardware, machine_figure, row};

pub const LAB: Entry<Options> =
    Entry { name: "lab-07", title: "cuDNN benchmarking, determinism, TF32", run };

/// The knobs of this lab.
#[derive(clap::Args)]
pub struct Options {
    /// Steps of each training run that is compared bit by bit
    #[arg(long, value_name = "N", default_value = "20", value_parser = count(1..=1000))]
    pub steps: usize,

    /// Rows and columns of the matrices that are multiplied with and without TF32
    #[arg(long, value_name = "N", default_value = "512", value_parser = count(1..=4096))]
    pub size: usize,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    manual_seed(lab.seed());
    four_questions(lab)?;
    search::one_convolution(lab)?;
    search::rule_or_search(lab)?;
    search::when_it_never_pays(lab)?;
    search::memory_to_work_in(lab)?;
    determinism::the_same_bits(lab, options.steps)?;
    tf32::ten_bits(lab, options.size)?;
    channels_last::channels_last(lab)
}

fn four_questions(lab: &mut Lab) -> crate::Result<()> {
    lab.section(1, "Four questions");
    lab.think(
        "07-yes",
        "A program can ask whether CUDA is built in, whether there is a GPU, whether there is cuDNN, and whether cuDNN \
         is enabled. To which of the four can the answer be yes on a computer without a GPU?",
    );
    // ANCHOR: questions
    let built = backends::cuda::is_built();
    let gpu = cuda::is_available();
    let available = cudnn::is_available();
    let enabled = cudnn::enabled();
    let version = cudnn::version();
    // ANCHOR_END: questions
    let version = version.map_or("none".to_owned(), |version| version.to_string());
    lab.table(
        Table::new(["question", "asked with", "answer"])
            .row(row!["Is CUDA built in?", "backends::cuda::is_built()", fact(built)])
            .row(row!["Is a GPU available?", "cuda::is_available()", fact(gpu)])
            .row(row!["Is cuDNN available?", "cudnn::is_available()", fact(available)])
            .row(row!["Is it enabled?", "cudnn::enabled()", flag(enabled)])
            .row(row![
                "Which version is it?",
                "cudnn::version()",
                hardware("version", version)
            ]),
    );
    lab.prose(
        "A yes to one of the first three questions promises nothing about the next. Enabled is only a wish: it can be \
         true even without a GPU, and then it has no effect.",
    );

    lab.part("flags");
    lab.table(
        Table::new(["flag", "at first"])
            .row(row!["cudnn::benchmark()", flag(cudnn::benchmark())])
            .row(row!["cudnn::deterministic()", flag(cudnn::deterministic())])
            .row(row!["cudnn::allow_tf32()", flag(cudnn::allow_tf32())])
            .row(row![
                "cuda::matmul::allow_tf32()",
                flag(backends::cuda::matmul::allow_tf32())
            ]),
    );
    lab.prose(
        "Sections 2 to 5 are about the first flag, section 6 is about the second, and section 7 about the last two.",
    );
    Ok(())
}

fn fact(answer: bool) -> Figure {
    hardware("answer", answer.to_string())
}

fn flag(value: bool) -> Figure {
    exact("flag", value.to_string())
}

/// Why a section about cuDNN's algorithms differs on a real GPU.
const OWN_ALGORITHMS: &str = "cuDNN chooses there, if it is installed";

/// A time that is modelled if the machine's time is modelled, and measured otherwise.
fn microseconds(name: &'static str, time: Duration) -> Figure {
    machine_figure(name, time.as_nanos() as f64 / 1e3).unit("µs").digits(1)
}

// ANCHOR: time_of
/// The time until the work is done.
fn time_of<R>(device: Device, run: impl FnOnce() -> Result<R>) -> Result<Duration> {
    let start = Instant::now();
    run()?;
    wait_for(device)?;
    Ok(start.elapsed())
}
// ANCHOR_END: time_of

fn has_cudnn(device: Device) -> bool {
    device.is_cuda() && cudnn::is_available()
}

fn has_tf32(device: Device) -> Result<bool> {
    Ok(compute_capability(device)? >= 8)
}

/// Explains why a section has nothing to show.
fn without_cudnn(lab: &mut Lab, what: &str) {
    lab.prose(format!(
        "{} has no cuDNN. With --gpu sim:t4 this section shows {what}.",
        lab.device()
    ));
}

// ANCHOR: convolution
/// A convolution, and square images as its input.
fn convolution(
    device: Device,
    images: usize,
    [from, to]: [usize; 2],
    size: usize,
    kernel: usize,
) -> Result<(nn::Conv2d, Tensor)> {
    // Enough zeros around an image to keep its size.
    let options = nn::Conv2dOptions {
        padding: (kernel / 2).into(),
        bias: false,
        ..Default::default()
    };
    let conv = nn::Conv2d::new(from, to, (kernel, options))?;
    conv.to(device)?;
    Ok((conv, Tensor::randn(&[images, from, size, size])?.to(device)?))
}
// ANCHOR_END: convolution

/// The convolution of 3×3 kernels, on the host in double precision.
fn in_f64(conv: &nn::Conv2d, x: &Tensor) -> Result<Tensor> {
    let options = Conv2dOptions { padding: 1.into(), ..Default::default() };
    let weight = conv.weight.tensor().detach().to((Device::Cpu, DType::F64))?;
    x.to((Device::Cpu, DType::F64))?.conv2d(&weight, (None, options))
}

// ANCHOR: error
/// The largest error, in millionths of the largest value.
fn error(found: &Tensor, exact: &Tensor) -> Result<f64> {
    let difference = (found.detach().to((Device::Cpu, DType::F64))? - exact)?;
    Ok(1e6 * difference.abs()?.max()?.item()? / exact.abs()?.max()?.item()?)
}
// ANCHOR_END: error

/// Rounds an error so that it does not depend on the CPU's order of addition.
fn millionths(error: f64) -> String {
    match error {
        0.0 => "0".to_owned(),
        error if error < 1.0 => "under 1".to_owned(),
        error => {
            let digit = 10f64.powf(error.log10().floor());
            format!("about {}", (error / digit).round() * digit)
        }
    }
}

fn bits(tensor: &Tensor) -> Result<Vec<u32>> {
    Ok(tensor.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
}

fn yes_or_no(answer: bool) -> &'static str {
    if answer { "yes" } else { "no" }
}

pub const RUNS: &[Run] = &[
    Run::NONE,
    Run::T4,
    Run::new("rtx4090", &["--gpu", "sim:rtx4090"], "on a newer card"),
    Run::new("h200", &["--gpu", "sim:h200"], "on a card of a data centre"),
];
