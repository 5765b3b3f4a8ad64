//! Whether a training goes on as it began: memory and the time of a step must not grow.
//!
//! `cargo run --release --bin endure -- --gpu real --seconds 240` trains as lab 03 does, with its data loader, and says after
//! each twelfth of the time what the program holds.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use labs::cli::count;
use labs::stdio::to_stdout;
use labs::{Stop, program, wrong};
use todevice::data::{DataLoader, DataLoaderOptions, TensorDataset};
use todevice::prelude::*;
use todevice::{GpuSpec, cuda, monitor};

/// Trains for a while, and fails if memory or the time of a step grows
#[derive(Parser)]
#[command(name = "endure", version)]
struct Options {
    /// GPUs to run on, of which the first is used
    #[arg(long, value_name = "GPU", default_value = "real", help = format!("GPUs to run on, of which the first is used: {}", GpuSpec::GRAMMAR))]
    gpu: GpuSpec,

    /// How long to train, in seconds
    #[arg(long, value_name = "N", default_value = "240", value_parser = count(1..=86_400))]
    seconds: usize,
}

/// What is looked at after each part of the time.
struct Look {
    steps: usize,
    /// Of a step, in microseconds: of the fastest epoch, which nothing disturbed.
    step: f64,
    allocated: u64,
    reserved: u64,
    resident: u64,
}

const LOOKS: u32 = 12;

fn main() -> ExitCode {
    program(|options: Options| {
        let machine = options.gpu.machine().map_err(wrong)?;
        let failed = |message: String| Stop { message: format!("error: {message}\n"), exit_code: 1 };
        to_stdout(&format!("{machine}, {} s\n", options.seconds));
        to_stdout("   steps    µs a step    allocated     reserved    resident\n");
        let part = Duration::from_secs(options.seconds as u64) / LOOKS;
        let looks = machine.enter(|| train(part)).map_err(|error| failed(error.to_string()))?;
        match grown(&looks) {
            None => {
                to_stdout("Neither memory nor the time of a step has grown.\n");
                Ok(())
            }
            Some(what) => Err(failed(what)),
        }
    })
}

fn train(part: Duration) -> Result<Vec<Look>> {
    manual_seed(42);
    let device = if cuda::is_available() { Device::cuda(0) } else { Device::Cpu };
    let dataset = TensorDataset::new([Tensor::randn(&[1024, 16])?, Tensor::randn(&[1024, 1])?])?;
    let options = DataLoaderOptions {
        batch_size: 64,
        shuffle: true,
        num_workers: 2,
        pin_memory: true,
        ..Default::default()
    };
    let loader = DataLoader::new(dataset, options)?;
    let model = nn::Sequential::new((nn::Linear::new(16, 64)?, nn::ReLU, nn::Linear::new(64, 1)?));
    model.to(device)?;
    let loss_fn = nn::MSELoss::default();
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;

    let mut looks = Vec::new();
    for _ in 0..LOOKS {
        let (start, mut steps, mut fastest) = (Instant::now(), 0, f64::INFINITY);
        while start.elapsed() < part {
            let epoch = Instant::now();
            for batch in &loader {
                let [x, y] = batch?;
                let loss = loss_fn.forward(&model.forward(&x.to(device)?)?, &y.to(device)?)?;
                optimizer.zero_grad();
                loss.backward()?;
                optimizer.step()?;
                steps += 1;
            }
            if device.is_cuda() {
                cuda::synchronize()?;
            }
            fastest = fastest.min(epoch.elapsed().as_secs_f64() * 1e6 / loader.len() as f64);
        }
        let look = Look {
            steps,
            step: fastest,
            allocated: cuda::memory_allocated(),
            reserved: cuda::memory_reserved(),
            resident: monitor::host().memory.unwrap_or(0),
        };
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        to_stdout(&format!(
            "{:>8} {:>12.1} {:>8.2} MiB {:>8.2} MiB {:>7.1} MiB\n",
            look.steps,
            look.step,
            mebibytes(look.allocated),
            mebibytes(look.reserved),
            mebibytes(look.resident)
        ));
        looks.push(look);
    }
    Ok(looks)
}

/// What has grown from the first half of the time to the last look, if anything has. The process may keep a little more than
/// it did, and a computer is slower at times.
fn grown(looks: &[Look]) -> Option<String> {
    let (first, last) = (&looks[..looks.len() / 2], looks.last()?);
    let most = |of: fn(&Look) -> u64| first.iter().map(of).max().unwrap_or(0);
    let slowest = first.iter().map(|look| look.step).fold(0.0, f64::max);
    let memory = [
        ("allocated", last.allocated, most(|look| look.allocated), 0),
        ("reserved", last.reserved, most(|look| look.reserved), 0),
        ("resident", last.resident, most(|look| look.resident), 8 << 20),
    ];
    for (name, now, before, spare) in memory {
        if now > before + spare {
            return Some(format!("{name} memory has grown from {before} to {now} bytes"));
        }
    }
    (last.step > 1.25 * slowest)
        .then(|| format!("a step takes {:.1} µs, and took {slowest:.1} at most in the first half", last.step))
}
