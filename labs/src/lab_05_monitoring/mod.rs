//! Lab 05: monitoring. It reads the table of nvidia-smi. Lab 09 uses this module to find out what an idle GPU waits
//! for.

use std::time::Duration;

use todevice::monitor::{self, Gpu};
use todevice::prelude::*;
use todevice::time::Instant;

use crate::frame::cli::count;
use crate::{Entry, Figure, Lab, Run, Value, machine_figure};

mod the_table;
mod watch;

pub const LAB: Entry<Options> = Entry { name: "lab-05", title: "Monitoring", run };

/// The knobs of this lab.
#[derive(clap::Args)]
pub struct Options {
    /// Watch a training run instead: the table and two charts, redrawn with each sample
    #[arg(long)]
    pub watch: bool,

    /// Number of samples to watch
    #[arg(long, value_name = "N", default_value = "30", requires = "watch", value_parser = count(5..=1000))]
    pub samples: usize,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    if options.watch {
        return watch::section(lab, options.samples);
    }
    the_table::sections(lab)
}

/// A reading that some cards or systems lack.
pub(crate) fn reading(name: &'static str, value: Option<impl Into<Value>>) -> Figure {
    machine_figure(name, value.map_or_else(|| Value::from("N/A"), Into::into))
}

/// The monitor's readings of a loop: GPU, and CPU usage.
pub(crate) type Seen = (Gpu, Option<f64>);

// ANCHOR: watched
/// Trains until the monitor's counters have seen only training. Then reads the GPU's
/// state, and the CPU usage in percent of one core.
pub(crate) fn watched(
    device: Device,
    mut step: impl FnMut() -> Result<()>,
) -> Result<Seen> {
    step()?; // the first takes memory
    step()?;
    let host = monitor::host();
    let start = Instant::now();
    while start.elapsed() <= monitor::sample_period() {
        step()?;
    }
    let gpu = monitor::gpu(device.index())?;
    Ok((gpu, monitor::host().cpu_usage_since(&host)))
}
// ANCHOR_END: watched

/// A network for images of 32 × 32 pixels, and its optimizer.
pub(crate) struct Training {
    pub(crate) model: nn::Sequential,
    optimizer: optim::SGD,
}

impl Training {
    // ANCHOR: network
    pub(crate) fn new(seed: u64, device: Device) -> Result<Training> {
        manual_seed(seed);
        let (hidden, last) = (nn::Linear::new(1024, 128)?, nn::Linear::new(128, 10)?);
        let model = nn::Sequential::new((hidden, nn::ReLU, last));
        model.to(device)?;
        let options = SGDOptions { lr: 0.1, ..Default::default() };
        let optimizer = optim::SGD::new(model.parameters(), options)?;
        Ok(Training { model, optimizer })
    }

    /// One step. The loss stays on the device.
    pub(crate) fn step(&mut self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let loss =
            nn::CrossEntropyLoss::default().forward(&self.model.forward(x)?, y)?;
        self.optimizer.zero_grad();
        loss.backward()?;
        self.optimizer.step()?;
        Ok(loss.detach())
    }
    // ANCHOR_END: network
}

/// The default number of images in a step.
pub(crate) const BATCH: usize = 1024;

/// Images and their classes, on the host.
pub(crate) fn pictures(n: usize) -> Result<(Tensor, Tensor)> {
    let classes: Vec<i64> = (0..n as i64).map(|index| index % 10).collect();
    Ok((Tensor::rand(&[n, 1024])?, Tensor::from_slice(&classes, &[n])?))
}

/// Waits until the monitor has forgotten earlier work.
pub(crate) fn pause() {
    todevice::time::sleep(monitor::sample_period() + Duration::from_millis(1));
}

pub const RUNS: &[Run] = &[
    Run::NONE,
    Run::T4,
    Run::new(
        "others",
        &["--gpu", "sim:t4,others=1GiB"],
        "beside a program that holds 1 GiB",
    ),
    Run::new(
        "watch",
        &["--gpu", "sim:t4", "--watch", "--samples", "10"],
        "a training run, sample by sample",
    ),
];
