//! Lab 11: checkpoints. A run saved on one device continues on another.

use std::path::PathBuf;
use std::sync::Arc;

use crate::frame::cli::count;
use crate::{Entry, Lab, Run};

mod cpu_first;
mod disk;
mod files;
mod machines;
mod optimizer;
mod resume;

use disk::Disk;

pub const LAB: Entry<Options> = Entry { name: "lab-11", title: "Checkpoints", run };

/// The knobs of this lab.
#[derive(clap::Args)]
pub struct Options {
    /// Epochs of the training run in section 7; a checkpoint is saved halfway
    #[arg(long, value_name = "N", default_value = "4", value_parser = count(2..=100))]
    pub epochs: usize,

    /// Folder to save the lab's files in [default: in memory only]
    #[arg(long, value_name = "DIR", value_parser = disk::folder)]
    pub folder: Option<PathBuf>,

    /// training.pt of an earlier run, to resume in section 7 as well
    #[arg(long, value_name = "FILE", value_parser = resume::file)]
    pub resume: Option<Arc<[u8]>>,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let disk = Disk::new(options.folder.clone());
    // After each part, since a page that shows one section ends there.
    files::save_and_load(lab, &disk)?;
    disk.hand_to(lab);
    machines::map_location(lab, &disk)?;
    disk.hand_to(lab);
    files::inside(lab, &disk)?;
    disk.hand_to(lab);
    optimizer::sections(lab, &disk)?;
    disk.hand_to(lab);
    cpu_first::to_the_cpu_first(lab, &disk)?;
    disk.hand_to(lab);
    resume::resumed(lab, &disk, options)?;
    disk.hand_to(lab);
    Ok(())
}

pub const RUNS: &[Run] = &[Run::NONE, Run::T4, Run::T4X2];
