//! Lab 10: many GPUs. One model, several cards, and their communication.

use std::ops::Range;
use std::time::Duration;

use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{GpuSpec, Machine, SimulatedGpus, cuda};

use crate::frame::cli::count;
use crate::frame::clock::wait_for;
use crate::{Entry, Lab, Run};

mod by_hand;
mod ddp;
mod deadlock;
mod devices;
mod ranks;
mod scaling;

pub const LAB: Entry<Options> = Entry { name: "lab-10", title: "Many GPUs", run };

/// The knobs of this lab.
#[derive(clap::Args)]
pub struct Options {
    /// Rows per batch in sections 4, 6, and 7: of the whole batch, or of each GPU's share
    #[arg(long, value_name = "N", default_value = "512", value_parser = count(16..=4096))]
    pub batch_size: usize,
}

/// No section builds on another, so a selected one runs alone.
pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let machine = Machine::current();
    let has_several = cuda::device_count() >= 2;
    let gpus = if has_several { machine.clone() } else { eight_of(&machine) };
    // Ranks on real GPUs need NCCL, which this crate does not call yet.
    let with_ranks =
        if gpus.time_is_modelled() { gpus.clone() } else { eight_of(&machine) };
    let asked = match cuda::device_count() {
        0 => "no GPU",
        1 => "one GPU",
        _ => "",
    };
    gpus.enter(|| {
        devices::sections(lab, asked)?;
        by_hand::sections(lab, options)
    })?;
    with_ranks.enter(|| {
        ranks::section(lab, gpus.time_is_modelled())?;
        ddp::section(lab, options)?;
        scaling::section(lab, options)?;
        deadlock::section(lab)
    })
}

/// A machine with eight GPUs like this machine's, or eight simulated ones.
fn eight_of(machine: &Machine) -> Machine {
    let one = match machine.gpus() {
        GpuSpec::Simulated(gpus) => gpus.clone(),
        _ => SimulatedGpus::default(),
    };
    Machine::simulated(SimulatedGpus { count: 8, ..one })
}

/// Starts a section. Several real GPUs cannot be compared with simulated ones.
fn section(lab: &mut Lab, number: usize, title: &str) -> bool {
    match Machine::current().time_is_modelled() {
        true => lab.section(number, title),
        false => {
            lab.section_apart(number, title, "there are as many GPUs as there are")
        }
    }
}

// ANCHOR: network
/// Three layers, each with as many outputs as inputs.
fn network(width: usize) -> Result<nn::Sequential> {
    Ok(nn::Sequential::new((
        nn::Linear::new(width, width)?,
        nn::ReLU,
        nn::Linear::new(width, width)?,
        nn::ReLU,
        nn::Linear::new(width, width)?,
    )))
}

/// The network learns to reproduce its input.
fn loss_of(net: &dyn Module, x: &Tensor) -> Result<Tensor> {
    net.forward(x)?.mse_loss(x, Reduction::Mean)
}
// ANCHOR_END: network

/// The width of a layer in measurements of time and memory.
const WIDTH: usize = 384;

fn sgd(net: &dyn Module) -> Result<optim::SGD> {
    optim::SGD::new(net.parameters(), SGDOptions { lr: 0.1, ..Default::default() })
}

fn step(net: &dyn Module, optimizer: &mut optim::SGD, x: &Tensor) -> Result<()> {
    let loss = loss_of(net, x)?;
    optimizer.zero_grad();
    loss.backward()?;
    optimizer.step()
}

/// Makes the allocator reserve memory for a step's activations, which are all as large as its input, so that the first
/// timed step does not call the driver.
fn take_memory(x: &Tensor) -> Result<()> {
    let activations = (0..16).map(|_| Tensor::empty((x.sizes(), x.device())));
    drop(activations.collect::<Result<Vec<_>>>()?);
    Ok(())
}

/// The time until these GPUs have finished the work.
fn time_of<R>(
    gpus: Range<usize>,
    run: impl FnOnce() -> Result<R>,
) -> Result<(R, Duration)> {
    let wait = || gpus.clone().map(Device::cuda).try_for_each(wait_for);
    wait()?;
    let start = Instant::now();
    let result = run()?;
    wait()?;
    Ok((result, start.elapsed()))
}

pub const RUNS: &[Run] = &[
    Run { what: "with no GPU: on eight simulated ones", ..Run::NONE },
    Run::T4,
    Run::T4X2,
];
