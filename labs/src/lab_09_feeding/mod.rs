//! Lab 09: feeding the GPU. Part A follows a batch to the device. Part B finds out what an idle GPU waits for.

use std::sync::Arc;
use std::time::Duration;

use todevice::Result;
use todevice::time::Instant;

use crate::frame::cli::count;
use crate::{Entry, Lab, Run};

mod cifar10;
mod epoch;
pub(crate) mod feeding;
pub(crate) mod why_it_waits;
mod workers;

pub use cifar10::Cifar10;

pub const LAB: Entry<Options> = Entry { name: "lab-09", title: "Feeding the GPU", run };

/// The knobs of this lab, with PyTorch's names.
#[derive(clap::Args)]
pub struct Options {
    /// Images or rows per batch in sections 4 and 5
    #[arg(long, value_name = "N", default_value = "64", value_parser = count(1..=512))]
    pub batch_size: usize,

    /// Maximum number of workers in section 5, which tries 0, 1, 2, 4, and so on [default: 8, or 1 if time is measured]
    #[arg(long, value_name = "N", value_parser = count(0..=64))]
    pub num_workers: Option<usize>,

    /// Folder with data_batch_1.bin to data_batch_5.bin of CIFAR-10, binary version, for section 4 [default: a few
    /// generated records]
    #[arg(long, value_name = "DIR", value_parser = cifar10::in_folder)]
    pub cifar10: Option<Arc<Cifar10>>,
}

/// No section builds on another, so a selected one runs alone.
pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    feeding::sections(lab)?;
    if lab.section(4, "One epoch, fed in different ways") {
        cifar10::from_files(lab, options.cifar10.as_ref())?;
        epoch::one_epoch(lab, options.batch_size)?;
    }
    workers::sections(lab, options)?;
    why_it_waits::sections(lab)
}

/// The time of a call by the machine's clock.
fn time_of<R>(run: impl FnOnce() -> Result<R>) -> Result<Duration> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed())
}

pub const RUNS: &[Run] = &[Run::NONE, Run::T4];
