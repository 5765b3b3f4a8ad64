//! Lab 09: feeding the GPU. Part A follows a batch to the device, part B finds out what a GPU that is not busy waits for.

use crate::cli::count;
use crate::{Entry, Lab, Run};

mod feeding;
mod why_it_waits;

pub const LAB: Entry<Options> = Entry { name: "lab-09", title: "Feeding the GPU", run };

/// The knobs of this lab, with PyTorch's names.
#[derive(clap::Args)]
pub struct Options {
    /// Samples per batch of the pictures and rows in sections 4 and 5
    #[arg(long, value_name = "N", default_value = "64", value_parser = count(1..=512))]
    pub batch_size: usize,

    /// The most workers in section 5, which tries 0, 1, 2, 4 and so on [default: 8, or 1 where time is measured]
    #[arg(long, value_name = "N", value_parser = count(0..=64))]
    pub num_workers: Option<usize>,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    feeding::sections(lab, options)?;
    why_it_waits::sections(lab)
}

/// The runs that are tested. The book shows them.
pub const RUNS: &[Run] = &[Run::NONE, Run::T4];
