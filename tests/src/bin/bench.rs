//! How fast training on the CPU is, as ratios with PyTorch taken in the same run.
//!
//! `cargo run --release --bin bench -- --python PATH` with a Python that has PyTorch 2.11;
//! without `--python` only this crate's own times are printed. `--threads N` sets both sides (2).

use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use labs::cli::count;
use labs::stdio::to_stdout;
use labs::{Stop, program};
use todevice::prelude::*;
use todevice::{Machine, cuda};

/// The work that is timed: a name, a limit for the ratio with PyTorch (design: "Speed that users feel").
const WORKS: [(&str, f64); 5] = [
    ("tiny_mlp_step", 0.1),
    ("mnist_mlp_step", 0.85),
    ("matmul_1024", 1.0),
    ("add_16m", 0.5),
    ("cnn_step", 1.0),
];

/// Limits for the ratio of a simulated GPU to the plain CPU: what takes under a millisecond may take twice as
/// long.
const SIMULATED_AIMS: [f64; 5] = [2.0, 1.2, 1.2, 1.2, 1.2];

/// Times training on the CPU, and prints ratios with PyTorch
#[derive(Parser)]
#[command(name = "bench", version)]
struct Options {
    /// A Python that has PyTorch 2.11; without it only this crate's own times are printed
    #[arg(long, value_name = "PATH")]
    python: Option<String>,

    /// Threads of both sides
    #[arg(long, value_name = "N", default_value = "2", value_parser = count(1..=1024))]
    threads: usize,

    /// Rounds, of which the median is taken
    #[arg(long, value_name = "N", default_value = "5", value_parser = count(1..=1000))]
    rounds: usize,
}

fn main() -> ExitCode {
    program(|options: Options| {
        run(&options).map_err(|error| Stop { message: format!("error: {error}\n"), exit_code: 1 })
    })
}

fn run(options: &Options) -> std::result::Result<(), Box<dyn std::error::Error>> {
    #[allow(unsafe_code)]
    // SAFETY: no other thread has been started that could read the environment meanwhile.
    unsafe {
        std::env::set_var("RAYON_NUM_THREADS", options.threads.to_string());
    }
    to_stdout(&format!(
        "Median time of one step, measured, {} threads, {} rounds.\n",
        options.threads, options.rounds
    ));
    to_stdout(&format!("{:<16} {:>12} {:>12} {:>7} {:>6}\n", "", "todevice", "PyTorch", "ratio", "aim"));
    // One after the other within a round, so that both sides meet the same weather.
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let theirs = options.python.as_deref().map(|python| pytorch(python, options.threads)).transpose()?;
        rounds.push((todevice(Device::Cpu)?, theirs));
    }
    for (i, (name, aim)) in WORKS.into_iter().enumerate() {
        let ours = median(rounds.iter().map(|(ours, _)| ours[i]).collect());
        let mut line = format!("{name:<16} {:>9.1} µs", ours * 1e6);
        if options.python.is_some() {
            let theirs = |times: &Option<[f64; 5]>| times.map_or(f64::NAN, |times| times[i]);
            let their_time = median(rounds.iter().map(|(_, times)| theirs(times)).collect());
            let ratio = median(rounds.iter().map(|(ours, times)| ours[i] / theirs(times)).collect());
            line += &format!(" {:>9.1} µs {ratio:>7.3} {aim:>6.2}", their_time * 1e6);
        }
        to_stdout(&format!("{line}\n"));
    }
    simulated(options)
}

/// What simulating a GPU costs: real time of the same work, against plain CPU.
fn simulated(options: &Options) -> std::result::Result<(), Box<dyn std::error::Error>> {
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

/// Nanoseconds of an operation that is one launch and next to no work.
fn one_element(device: Device) -> Result<f64> {
    let x = Tensor::zeros_with(&[1], device)?;
    let thousand = time(device, 300, || (0..1000).try_for_each(|_| x.add_(1.0).map(drop)))?;
    Ok(thousand * 1e6)
}

fn pytorch(python: &str, threads: usize) -> std::result::Result<[f64; 5], Box<dyn std::error::Error>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/pytorch.py");
    let output = Command::new(python)
        .args([script, &threads.to_string()])
        .output()
        .map_err(|error| format!("cannot run '{python}': {error}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        let last = message.lines().last().unwrap_or_default();
        return Err(format!("'{python}' failed: {last}").into());
    }
    let times: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(WORKS.map(|(name, _)| times[name].as_f64().unwrap_or(f64::NAN)))
}

/// The same on a device.
fn todevice(device: Device) -> Result<[f64; 5]> {
    manual_seed(0);
    let randn = |sizes: &[usize]| Tensor::randn(sizes)?.to(device);
    let classes = |count| Tensor::randint(0, 10, &[count])?.to(device);
    let cross_entropy = nn::CrossEntropyLoss::default();

    let (model, x, y) = (mlp(&[16, 64, 1], device)?, randn(&[64, 16])?, randn(&[64, 1])?);
    let (mse, adam) = (nn::MSELoss::default(), optim::Adam::new(model.parameters(), AdamOptions::default())?);
    let tiny = training_step(adam, 5000, device, || mse.forward(&model.forward(&x)?, &y))?;

    let (model, x, y) = (mlp(&[784, 512, 512, 10], device)?, randn(&[128, 784])?, classes(128)?);
    let adam = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    let mnist = training_step(adam, 100, device, || cross_entropy.forward(&model.forward(&x)?, &y))?;

    let (a, b) = (randn(&[1024, 1024])?, randn(&[1024, 1024])?);
    let matmul = time(device, 30, || a.matmul(&b).map(drop))?;

    let (a, b) = (randn(&[1 << 24])?, randn(&[1 << 24])?);
    let add = time(device, 15, || a.add(&b).map(drop))?;
    drop((a, b));

    let (model, x, y) = (cnn(device)?, randn(&[64, 3, 32, 32])?, classes(64)?);
    let sgd =
        optim::SGD::new(model.parameters(), SGDOptions { lr: 0.01, momentum: 0.9, ..Default::default() })?;
    let cnn = training_step(sgd, 60, device, || cross_entropy.forward(&model.forward(&x)?, &y))?;
    Ok([tiny, mnist, matmul, add, cnn])
}

fn mlp(sizes: &[usize], device: Device) -> Result<nn::Sequential> {
    let mut layers: Vec<Box<dyn Module>> = Vec::new();
    for (i, pair) in sizes.windows(2).enumerate() {
        if i > 0 {
            layers.push(Box::new(nn::ReLU));
        }
        layers.push(Box::new(nn::Linear::new(pair[0], pair[1])?));
    }
    let model = nn::Sequential::new(layers);
    model.to(device)?;
    Ok(model)
}

/// A small network for pictures of 32 by 32 in three colours.
fn cnn(device: Device) -> Result<nn::Sequential> {
    let padding = nn::Conv2dOptions { padding: 1.into(), ..Default::default() };
    let model = nn::Sequential::new((
        nn::Conv2d::with_options(3, 32, 3, padding)?,
        nn::ReLU,
        nn::MaxPool2d::new(2),
        nn::Conv2d::with_options(32, 64, 3, padding)?,
        nn::ReLU,
        nn::MaxPool2d::new(2),
        nn::Flatten::default(),
        nn::Linear::new(64 * 8 * 8, 10)?,
    ));
    model.to(device)?;
    Ok(model)
}

fn training_step(
    mut optimizer: impl Optimizer,
    repetitions: usize,
    device: Device,
    loss: impl Fn() -> Result<Tensor>,
) -> Result<f64> {
    time(device, repetitions, || {
        let loss = loss()?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()
    })
}

/// The median time of `work` until it is done, in seconds.
fn time(device: Device, repetitions: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    for _ in 0..repetitions / 10 + 3 {
        work()?;
    }
    let mut times = Vec::with_capacity(repetitions);
    for _ in 0..repetitions {
        let start = Instant::now();
        work()?;
        if device.is_cuda() {
            cuda::synchronize()?;
        }
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(median(times))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
