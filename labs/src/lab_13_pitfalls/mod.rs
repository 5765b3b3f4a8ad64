//! Lab 13: pitfalls. Each section shows a symptom first, then its cause, and then the cure.

use todevice::prelude::*;
use todevice::{Machine, SimulatedGpus, cuda};

use crate::frame::cli::count;
use crate::{Entry, Lab, Run, Table, row};

mod build;
mod pitfall;
mod ranks;
mod small;
mod starved;
mod training;
mod unmoved;
mod way;
mod worker;

use pitfall::Pitfall;

pub const LAB: Entry<Options> = Entry { name: "lab-13", title: "Pitfalls", run };

/// The knobs of this lab.
#[derive(clap::Args)]
pub struct Options {
    /// Build of PyTorch that runs on a newer card in section 6
    #[arg(long, value_name = "BUILD", default_value = "cu126", value_parser = ["cu126", "cu130"])]
    pub build: String,

    /// Number of programs that load the same checkpoint in section 9
    #[arg(long, value_name = "N", default_value = "4", value_parser = count(2..=8))]
    pub ranks: usize,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let machine = Machine::current();
    let gpus = match runs_kernels() {
        true => machine,
        false => {
            let gpus = Machine::simulated(SimulatedGpus::default());
            lab.prose(format!("No GPU here runs kernels, so sections 1 to 5 and 7 have one of their own: {gpus}."));
            gpus
        }
    };
    let mut pitfalls = Vec::new();
    gpus.enter(|| on_one_gpu(lab, &mut pitfalls))?;
    pitfalls.push(build::section(lab, &options.build)?);
    pitfalls.push(gpus.enter(|| worker::section(lab))?);
    pitfalls.push(way::section(lab)?);
    pitfalls.push(ranks::section(lab, options.ranks)?);
    table(lab, pitfalls);
    Ok(())
}

/// Whether there is a GPU, and the build of PyTorch has kernels for it. Running one would allocate memory.
fn runs_kernels() -> bool {
    let Ok((major, minor)) = cuda::get_device_capability(0) else { return false };
    let runs = |architecture: &String| {
        let number: Option<u32> =
            architecture.strip_prefix("sm_").and_then(|it| it.parse().ok());
        number.is_some_and(|number| number / 10 == major && number % 10 <= minor)
    };
    let all = cuda::get_arch_list();
    all.is_empty() || all.iter().any(runs)
}

/// The GPU of `--device` on the current machine, or its first one.
fn gpu(lab: &Lab) -> Device {
    let named = lab.gpu().map_or(0, |gpu| gpu.index());
    Device::cuda(if named < cuda::device_count() { named } else { 0 })
}

fn on_one_gpu(lab: &mut Lab, pitfalls: &mut Vec<Pitfall>) -> crate::Result<()> {
    let device = gpu(lab);
    let sections = || -> crate::Result<()> {
        pitfalls.push(unmoved::nothing_is_moved(lab, device)?);
        pitfalls.push(unmoved::devices_are_mixed(lab, device)?);
        pitfalls.push(training::graphs_are_kept(lab, device)?);
        pitfalls.push(small::slower_than_the_cpu(lab, device)?);
        pitfalls.push(starved::waits_for_the_loader(lab, device)?);
        Ok(())
    };
    cuda::device(device.index(), sections)?
}

fn table(lab: &mut Lab, pitfalls: Vec<Pitfall>) {
    lab.section(10, "All nine");
    let head = ["pitfall", "what is counted", "before", "after"];
    let rows = pitfalls.into_iter().fold(Table::new(head), |table, pitfall| {
        let Pitfall { what, counted, before, after } = pitfall;
        table.row(row![what, counted, before, after])
    });
    lab.table(rows);
}

pub const RUNS: &[Run] = &[
    Run { what: "with no GPU: on a simulated one", ..Run::NONE },
    Run::T4,
    Run::new("h200", &["--gpu", "sim:h200"], "on a simulated H200"),
];
