//! Measures training speed as a ratio to PyTorch in the same run.
//!
//! `cargo run --release --bin bench -- --python PATH` with a Python that has PyTorch 2.11; without `--python`, only
//! this crate's own times are printed. `--threads N` sets the threads of both sides (2). With `--gpu real` both sides
//! use the first GPU.

mod on_gpu;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};

use clap::Parser;
use course_tests::with_gpu;
use course_tests::works::Precision::F32;
use course_tests::works::{self, median, one_by_one};
use labs::cli::count;
use labs::stdio::to_stdout;
use labs::{failed, program, wrong};
use todevice::prelude::*;
use todevice::{GpuSpec, Machine};

/// The timed work: a name, and the maximum ratio to PyTorch (design: "Speed that users feel").
const WORKS: [(&str, f64); 5] = [
    ("tiny_mlp_step", 0.1),
    ("mnist_mlp_step", 0.85),
    ("matmul_1024", 1.0),
    ("add_16m", 0.5),
    ("cnn_step", 1.0),
];

/// The maximum ratio of a simulated GPU to the plain CPU: work under a millisecond may take twice as long.
const SIMULATED_AIMS: [f64; 5] = [2.0, 1.2, 1.2, 1.2, 1.2];

/// Times training, and prints ratios to PyTorch
#[derive(Parser)]
#[command(name = "bench", version)]
struct Options {
    /// Path of a Python with PyTorch 2.11; without it, only this crate's times are printed
    #[arg(long, value_name = "PATH")]
    python: Option<String>,

    /// Runs both sides on the first GPU [default: on the CPU]
    #[arg(long, value_name = "GPU", help = format!("GPUs to run on; both sides use the first [default: none]: {}", GpuSpec::GRAMMAR))]
    gpu: Option<GpuSpec>,

    /// Rows and columns of the matrices that a GPU multiplies [default: 8192, or 1024 on a simulated GPU]
    #[arg(long, value_name = "N", requires = "gpu", value_parser = count(1..=65_536))]
    side: Option<usize>,

    /// Number of elements that a GPU adds and copies [default: 67108864, or 4194304 on a simulated GPU]
    #[arg(long, value_name = "N", requires = "gpu", value_parser = count(1..=1 << 32))]
    elements: Option<usize>,

    /// Time only this work on a GPU; can be repeated
    #[arg(long, value_name = "WORK", requires = "gpu", value_parser = work_on_gpu)]
    only: Vec<String>,

    /// Number of threads on each side
    #[arg(long, value_name = "N", default_value = "2", value_parser = count(1..=1024))]
    threads: usize,

    /// Number of rounds; the median counts
    #[arg(long, value_name = "N", default_value = "5", value_parser = count(1..=1000))]
    rounds: usize,
}

fn work_on_gpu(name: &str) -> std::result::Result<String, String> {
    let known: Vec<&str> = on_gpu::names().collect();
    match known.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("expected one of {}", known.join(", "))),
    }
}

type Outcome<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    program(|options: Options| {
        #[allow(unsafe_code)]
        // SAFETY: no other thread that could read the environment has been started yet.
        unsafe {
            std::env::set_var("RAYON_NUM_THREADS", options.threads.to_string());
        }
        match &options.gpu {
            Some(gpu) => {
                let machine = with_gpu(gpu)?;
                if machine.time_is_modelled() && options.python.is_some() {
                    let reason = "PyTorch's times are measured, and those of a simulated GPU modelled";
                    return Err(wrong(format!("--python: {reason}, so they do not compare")));
                }
                on_gpu::run(&machine, &options).map_err(failed)
            }
            None => run(&options).map_err(failed),
        }
    })
}

fn run(options: &Options) -> Outcome<()> {
    to_stdout(&format!(
        "Median time of one step, measured, {} threads, {} rounds.\n",
        options.threads, options.rounds
    ));
    to_stdout(&format!("{:<19} {:>12} {:>12} {:>7} {:>6}\n", "", "todevice", "PyTorch", "ratio", "aim"));
    // Alternate within a round, so that both sides run under the same load.
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let theirs = pytorch(options, &[])?;
        rounds.push((todevice(Device::Cpu)?, theirs));
    }
    for (i, (name, aim)) in WORKS.into_iter().enumerate() {
        let pairs = rounds.iter().map(|(ours, theirs)| (ours[i], theirs.as_ref()));
        to_stdout(&row(name, pairs.collect(), aim));
    }
    simulated(options)
}

/// The cost of simulating a GPU: the wall-clock time of the same work, relative to the plain CPU.
fn simulated(options: &Options) -> Outcome<()> {
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let plain = todevice(Device::Cpu)?;
        let machine: Machine = "sim:t4".parse()?;
        rounds.push((plain, machine.enter(|| todevice(Device::cuda(0)))?));
    }
    to_stdout("\nReal time on a simulated T4, against plain CPU.\n");
    to_stdout(&format!("{:<16} {:>12} {:>12} {:>7} {:>6}\n", "", "simulated", "CPU", "ratio", "aim"));
    for (i, ((name, _), aim)) in WORKS.into_iter().zip(SIMULATED_AIMS).enumerate() {
        let of = |pick: fn(&([f64; 5], [f64; 5])) -> &[f64; 5]| {
            1e6 * median(rounds.iter().map(|round| pick(round)[i]).collect())
        };
        let ratio = median(rounds.iter().map(|(plain, simulated)| simulated[i] / plain[i]).collect());
        let (ours, plain) = (of(|round| &round.1), of(|round| &round.0));
        to_stdout(&format!("{name:<16} {ours:>9.1} µs {plain:>9.1} µs {ratio:>7.3} {aim:>6.2}\n"));
    }
    let plain = one_element(Device::Cpu)?;
    let machine: Machine = "sim:t4".parse()?;
    let simulated = machine.enter(|| one_element(Device::cuda(0)))?;
    to_stdout(&format!(
        "\nx.add_(1.0) on one element: {simulated:.0} ns simulated, {plain:.0} ns on the CPU; a launch adds \
         {:.0} ns (aim: 500)\n",
        simulated - plain
    ));
    Ok(())
}

/// Nanoseconds of an operation with one launch and hardly any work.
fn one_element(device: Device) -> Result<f64> {
    let mut launch = works::launch(device)?;
    Ok(1e6 * one_by_one(device, 300, || (0..1000).try_for_each(|_| launch()))?)
}

/// PyTorch's times by the name of the work, if there is a Python.
fn pytorch(options: &Options, on_gpu: &[String]) -> Outcome<Option<BTreeMap<String, f64>>> {
    let Some(python) = &options.python else { return Ok(None) };
    // Embedded, because this program may run without the checkout.
    let script = include_str!("../../../bench/pytorch.py");
    let output = Command::new(python)
        .args(["-c", script, &options.threads.to_string()])
        .args(on_gpu)
        .output()
        .map_err(|error| format!("cannot run '{python}': {error}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        let last = message.lines().last().unwrap_or_default();
        return Err(format!("'{python}' failed: {last}").into());
    }
    Ok(Some(serde_json::from_slice(&output.stdout)?))
}

/// A row of the table: in each round, our time and PyTorch's, if there are any.
fn row(name: &str, rounds: Vec<(f64, Option<&BTreeMap<String, f64>>)>, aim: f64) -> String {
    let ours = median(rounds.iter().map(|(ours, _)| *ours).collect());
    let mut line = format!("{name:<19} {:>9.2} µs", ours * 1e6);
    let pairs: Vec<(f64, f64)> =
        rounds.iter().filter_map(|(ours, theirs)| Some((*ours, *theirs.as_ref()?.get(name)?))).collect();
    if !pairs.is_empty() {
        let theirs = median(pairs.iter().map(|(_, theirs)| *theirs).collect());
        let ratio = median(pairs.iter().map(|(ours, theirs)| ours / theirs).collect());
        let verdict = if ratio > aim { "  missed" } else { "" };
        line += &format!(" {:>9.2} µs {ratio:>7.3} {aim:>6.2}{verdict}", theirs * 1e6);
    }
    line + "\n"
}

/// The same work on a device.
fn todevice(device: Device) -> Result<[f64; 5]> {
    manual_seed(0);
    Ok([
        one_by_one(device, 5000, works::tiny_mlp_step(device)?)?,
        one_by_one(device, 100, works::mnist_mlp_step(device, F32)?)?,
        one_by_one(device, 30, works::product(device, 1024, F32)?)?,
        one_by_one(device, 15, works::add(device, 1 << 24)?)?,
        one_by_one(device, 60, works::cnn_step(device, F32)?)?,
    ])
}
