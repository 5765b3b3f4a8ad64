//! Lab 04: memory. Part A asks why a GPU runs out of memory, part B how its allocator thinks.

use todevice::prelude::*;
use todevice::{Machine, cuda};

use crate::frame::cli::count;
use crate::{Entry, Lab, Run};

mod evaluation;
pub(crate) mod filling;
mod how_the_allocator_thinks;
mod out_of_memory;
mod remedies;
mod the_cache;
mod why_it_runs_out;

pub const LAB: Entry<Options> = Entry { name: "lab-04", title: "Memory", run };

/// The knobs of this lab.
#[derive(clap::Args)]
pub struct Options {
    /// Samples per batch, in sections 2 and 4
    #[arg(long, value_name = "N", default_value = "64", value_parser = count(1..=4096))]
    pub batch_size: usize,

    /// Limit of the GPU's memory in section 6, in MiB
    #[arg(long, value_name = "MIB", default_value = "64", value_parser = count(48..=256))]
    pub limit: usize,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    manual_seed(lab.seed());
    why_it_runs_out::sections(lab, options)?;
    evaluation::section(lab)?;
    out_of_memory::sections(lab, options)?;
    how_the_allocator_thinks::sections(lab)
}

// ANCHOR: counters
/// The bytes that tensors hold. PyTorch counts them on a GPU; this crate also counts
/// them on the CPU.
fn memory_allocated(device: Device) -> u64 {
    match device {
        Device::Cpu => Machine::current().host_memory().allocated() as u64,
        Device::Cuda { .. } => cuda::memory_allocated(),
    }
}

/// The peak since `reset_peak_memory_stats`.
fn max_memory_allocated(device: Device) -> u64 {
    match device {
        Device::Cpu => Machine::current().host_memory().max_allocated() as u64,
        Device::Cuda { .. } => cuda::max_memory_allocated(),
    }
}

fn reset_peak_memory_stats(device: Device) {
    match device {
        Device::Cpu => Machine::current().host_memory().reset_peak(),
        Device::Cuda { .. } => cuda::reset_peak_memory_stats(),
    }
}
// ANCHOR_END: counters

// ANCHOR: peak_of_a_step
/// The peak memory of a training step, in bytes.
fn peak_of_a_step(
    model: &nn::Sequential,
    optimizer: &mut optim::Adam,
    batch_size: usize,
) -> Result<u64> {
    cuda::reset_peak_memory_stats();
    step(model, optimizer, batch_size)?;
    Ok(cuda::max_memory_allocated())
}

fn step(
    model: &nn::Sequential,
    optimizer: &mut optim::Adam,
    batch_size: usize,
) -> Result<()> {
    let weight = model.parameters()[0].tensor();
    let device = weight.device();
    let x = Tensor::ones((&[batch_size, weight.size(1)?], device))?;
    let y = Tensor::zeros((&[batch_size], (device, DType::I64)))?;

    let loss = nn::CrossEntropyLoss::default().forward(&model.forward(&x)?, &y)?;
    optimizer.zero_grad();
    loss.backward()?;
    optimizer.step()
}
// ANCHOR_END: peak_of_a_step

/// Stands for any use of a tensor.
fn use_it(_tensor: &Tensor) {}

pub const RUNS: &[Run] = &[
    Run::NONE,
    Run::T4,
    Run::new(
        "small",
        &["--gpu", "sim:t4,mem=512MiB"],
        "on a simulated Tesla T4 with 512 MiB",
    ),
];
