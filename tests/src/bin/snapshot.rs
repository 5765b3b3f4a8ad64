//! Prints the contents of a GPU's memory during a training step, in the format in which `tests/card/snapshot.py` prints
//! the same program in PyTorch.
//!
//! `cargo run --bin snapshot -- --gpu real`

use std::process::ExitCode;

use clap::Parser;
use course_tests::{with_gpu, works};
use labs::stdio::to_stdout;
use labs::{failed, program};
use todevice::cuda::SegmentType;
use todevice::prelude::*;
use todevice::{GpuSpec, cuda};

/// Prints the segments and blocks of a GPU's memory while a network is trained
#[derive(Parser)]
#[command(name = "snapshot", version)]
struct Options {
    /// GPUs to run on; only the first is used
    #[arg(long, value_name = "GPU", default_value = "real", help = format!("GPUs to run on; only the first is used: {}", GpuSpec::GRAMMAR))]
    gpu: GpuSpec,
}

fn main() -> ExitCode {
    program(|options: Options| with_gpu(&options.gpu)?.enter(train).map_err(failed))
}

fn train() -> Result<()> {
    let device = Device::cuda(0);
    manual_seed(0);
    let model = works::mlp(&[784, 512, 512, 10], device)?;
    print("the model");
    let (x, y) = (Tensor::randn(&[128, 784])?.to(device)?, Tensor::randint(0, 10, &[128])?.to(device)?);
    print("a batch");
    let options = SGDOptions { lr: 0.1, momentum: 0.9, ..Default::default() };
    let mut optimizer = optim::SGD::new(model.parameters(), options)?;
    let loss = nn::CrossEntropyLoss::default().forward(&model.forward(&x)?, &y)?;
    print("forward");
    loss.backward()?;
    print("backward");
    optimizer.step()?;
    print("step");
    optimizer.zero_grad();
    drop(loss);
    print("zero_grad");
    Ok(())
}

fn print(when: &str) {
    let mut text =
        format!("{when}: {} allocated, {} reserved\n", cuda::memory_allocated(), cuda::memory_reserved());
    for segment in cuda::memory_snapshot() {
        let kind = if segment.segment_type == SegmentType::Small { "small" } else { "large" };
        text += &format!("  {kind} {}:", segment.total_size);
        for block in segment.blocks {
            text += &format!(" {}{}", block.size, if block.requested_size > 0 { "" } else { " free" });
        }
        text.push('\n');
    }
    to_stdout(&text);
}
