//! Each function of the program, run by itself on inputs of its own: a *unit*. The observations are plain data.

mod files;
mod inputs;
mod measures;
mod streams;
mod training;

use todevice::amp::GradScaler;
use todevice::cuda::Stream;
use todevice::nn::StateDict;
use todevice::prelude::*;

use super::numbers::with_numbers;
use super::{Loader, draw, program};
use crate::{Case, Seen};

/// Declares the functions of a program, and for each the machines that its unit runs on and how it is run.
macro_rules! units {
    ($($name:ident: $type:ty, on $gpus:expr, $observe:path;)+) => {
        /// The functions of one program.
        #[derive(Clone, Copy)]
        pub struct Program {
            $(pub $name: $type,)+
        }

        /// The program without a fault.
        pub const REFERENCE: Program = Program { $($name: program::$name,)+ };

        /// All functions.
        pub static UNITS: &[Unit] = &[$(Unit { name: stringify!($name), gpus: $gpus, observe: $observe },)+];
    };
}

/// A function of the program, and how to look at it.
pub struct Unit {
    pub name: &'static str,
    pub gpus: &'static [&'static str],
    pub observe: fn(&Case, &Program) -> Seen,
}

const ONE: &[&str] = &["sim:t4", TWO];
/// A file may be of any machine, and come to any.
const ANY: &[&str] = &["sim:t4", TWO, "none"];
const STREAMS: &[&str] = &["sim:t4"];
/// On this machine the device is the GPU that nobody takes unless told to.
const TWO: &str = "sim:t4x2";

units! {
    network: fn(Device) -> Result<nn::Sequential>, on ONE, training::network;
    loader: fn(&Tensor, &Tensor) -> Result<Loader>, on STREAMS, training::loader;
    normalize: fn(&Tensor) -> Result<Tensor>, on ONE, training::normalize;
    augment: fn(&Tensor) -> Result<Tensor>, on ONE, training::augment;
    train: for<'a> fn(&'a nn::Sequential, &mut optim::SGD, &mut GradScaler, &'a Loader, &Tensor, Device) -> Result<Tensor>, on ONE, training::train;
    accumulate: for<'a> fn(&'a nn::Sequential, &mut optim::SGD, &mut GradScaler, &'a [[Tensor; 2]], &Tensor, Device) -> Result<Tensor>, on ONE, training::accumulate;
    fine_tune: for<'a> fn(&nn::Sequential, &nn::Linear, &mut GradScaler, [&'a Tensor; 2], &Tensor, Device) -> Result<Tensor>, on ONE, training::fine_tune;
    evaluate: fn(&nn::Sequential, &Loader, Device) -> Result<[f64; 2]>, on ONE, measures::evaluate;
    predict: fn(&nn::Sequential, &Tensor, Device) -> Result<Tensor>, on ONE, measures::predict;
    center: fn(&nn::Sequential, &Loader, Device) -> Result<Tensor>, on ONE, measures::center;
    confusion: fn(&Tensor, &Tensor) -> Result<Tensor>, on ONE, measures::confusion;
    recall: fn(&Tensor) -> Result<Tensor>, on ONE, measures::recall;
    average: fn(Option<StateDict>, &nn::Sequential) -> Result<StateDict>, on ONE, measures::average;
    keep_best: fn(&mut (f64, StateDict), f64, &nn::Sequential) -> Result<()>, on ONE, measures::keep_best;
    checkpoint: fn(&nn::Sequential, &optim::SGD, i64) -> Result<Vec<u8>>, on ONE, files::checkpoint;
    resume: fn(&[u8], &nn::Sequential, &mut optim::SGD, Device) -> Result<i64>, on ANY, files::resume;
    restore: fn(&[u8], &nn::Sequential, Device) -> Result<()>, on ANY, files::restore;
    statistics: fn(&[u8], Device) -> Result<[Tensor; 2]>, on ANY, files::statistics;
    upload: fn(&[Tensor], &Stream, &mut dyn FnMut(Tensor) -> Result<()>) -> Result<()>, on STREAMS, streams::upload;
    download: fn(&[Tensor], &Stream) -> Result<Vec<f64>>, on STREAMS, streams::download;
    blend: for<'a> fn(&Tensor, [&'a Tensor; 2], &Stream) -> Result<Tensor>, on STREAMS, streams::blend;
    fit: fn(&Tensor, &Tensor, Device) -> Result<nn::Sequential>, on STREAMS, training::fit;
}

impl Unit {
    pub fn find(name: &str) -> Option<&'static Unit> {
        UNITS.iter().find(|unit| unit.name == name)
    }

    /// Its runs for a program, with inputs that depend on `run`.
    pub fn cases(&'static self, seed: u64, run: u64) -> impl Iterator<Item = Case> {
        let size = UNITS.iter().position(|unit| unit.name == self.name).unwrap_or(0);
        let case = move |gpu: &&str| Case { gpu: (*gpu).to_owned(), seed: run * draw::SEEDS + seed, size };
        self.gpus.iter().map(case)
    }

    /// The unit that a case is about.
    pub fn of(case: &Case) -> &'static Unit {
        &UNITS[case.size % UNITS.len()]
    }
}

/// Runs the unit of a case, with the numbers of the student whose seed it is.
pub fn look(case: &Case, program: &Program) -> Seen {
    let unit = Unit::of(case);
    with_numbers(draw::numbers(case.seed % draw::SEEDS), || {
        case.machine().enter(|| (unit.observe)(case, program))
    })
}
