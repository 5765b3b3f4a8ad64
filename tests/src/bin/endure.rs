//! Checks over a long training run that memory and step time do not grow.
//!
//! `cargo run --release --bin endure -- --gpu real --seconds 240` trains as lab 03 does, with its data loader, and
//! prints the memory use after each twelfth of the time.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use course_tests::endurance::{Look, grown, slower};
use labs::cli::count;
use labs::stdio::to_stdout;
use labs::{failed, program, wrong};
use todevice::data::{DataLoader, DataLoaderOptions, TensorDataset};
use todevice::prelude::*;
use todevice::{GpuSpec, cuda, monitor};

/// Trains for a while, and fails if memory or the time of a step grows
#[derive(Parser)]
#[command(name = "endure", version)]
struct Options {
    /// GPUs to run on; only the first is used
    #[arg(long, value_name = "GPU", default_value = "real", help = format!("GPUs to run on; only the first is used: {}", GpuSpec::GRAMMAR))]
    gpu: GpuSpec,

    /// Duration of the training, in seconds
    #[arg(long, value_name = "N", default_value = "240", value_parser = count(1..=86_400))]
    seconds: usize,
}

const LOOKS: u32 = 12;

/// In a shorter time, other load on the computer may slow down every epoch.
const LONG_ENOUGH: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    program(|options: Options| {
        let machine = options.gpu.machine().map_err(wrong)?;
        to_stdout(&format!(
            "{machine}: {} s by the real clock, which times the steps too\n",
            options.seconds
        ));
        to_stdout("   steps    µs a step    allocated     reserved       device    resident\n");
        let part = Duration::from_secs(options.seconds as u64) / LOOKS;
        let looks = machine.enter(|| train(part)).map_err(failed)?;
        grown(&looks).map_err(failed)?;
        if part < LONG_ENOUGH {
            to_stdout("Memory has not grown. That is too short a time to judge the steps.\n");
        } else {
            slower(&looks).map_err(failed)?;
            to_stdout("Neither memory nor the time of a step has grown.\n");
        }
        Ok(())
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
        let (free, total) = if device.is_cuda() { cuda::mem_get_info()? } else { (0, 0) };
        let look = Look {
            step: fastest,
            allocated: cuda::memory_allocated(),
            reserved: cuda::memory_reserved(),
            device: total - free,
            resident: monitor::host().memory.unwrap_or(0),
        };
        let mebibytes = |bytes: u64| format!("{:.2} MiB", bytes as f64 / f64::from(1 << 20));
        let memory = [look.allocated, look.reserved, look.device, look.resident].map(mebibytes);
        let [allocated, reserved, used, resident] = memory;
        to_stdout(&format!(
            "{steps:>8} {fastest:>12.1} {allocated:>12} {reserved:>12} {used:>12} {resident:>11}\n"
        ));
        looks.push(look);
    }
    Ok(looks)
}
