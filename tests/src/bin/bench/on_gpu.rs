//! The benchmark on a GPU: each work is queued many times, with one synchronization at the end.

use std::collections::BTreeMap;

use course_tests::works::Precision::{self, Bf16, F32, Tf32};
use course_tests::works::{self, Doing, again_and_again, median};
use labs::stdio::to_stdout;
use todevice::Machine;
use todevice::prelude::*;

use super::{Options, Outcome, pytorch, row};

/// The names of all works.
pub fn names() -> impl Iterator<Item = &'static str> {
    WORKS.into_iter().map(|(name, ..)| name)
}

type Prepare = fn(&Sizes, Precision) -> Result<Doing>;

/// The work: a name, the maximum ratio to PyTorch, a precision.
const WORKS: [(&str, f64, Precision, Prepare); 15] = [
    ("tiny_mlp_step", 0.5, F32, |of, _| works::tiny_mlp_step(of.device)),
    ("mnist_mlp_step", 1.0, F32, |of, precision| works::mnist_mlp_step(of.device, precision)),
    ("mnist_mlp_step_tf32", 1.0, Tf32, |of, precision| works::mnist_mlp_step(of.device, precision)),
    ("mnist_mlp_step_bf16", 1.0, Bf16, |of, precision| works::mnist_mlp_step(of.device, precision)),
    ("cnn_step", 1.0, F32, |of, precision| works::cnn_step(of.device, precision)),
    ("cnn_step_tf32", 1.0, Tf32, |of, precision| works::cnn_step(of.device, precision)),
    ("cnn_step_bf16", 1.0, Bf16, |of, precision| works::cnn_step(of.device, precision)),
    ("matmul", 1.02, F32, |of, precision| works::product(of.device, of.side, precision)),
    ("matmul_tf32", 1.02, Tf32, |of, precision| works::product(of.device, of.side, precision)),
    ("matmul_bf16", 1.02, Bf16, |of, precision| works::product(of.device, of.side, precision)),
    ("add", 1.0, F32, |of, _| works::add(of.device, of.elements)),
    ("relu", 1.0, F32, |of, _| works::relu(of.device, of.elements)),
    ("copy", 1.0, F32, |of, _| works::copy(of.device, of.elements)),
    ("launch", 1.0, F32, |of, _| works::launch(of.device)),
    ("allocation", 1.0, F32, |of, _| works::allocation(of.device)),
];

struct Sizes {
    device: Device,
    side: usize,
    elements: usize,
}

pub fn run(machine: &Machine, options: &Options) -> Outcome<()> {
    let modelled = machine.time_is_modelled();
    // A simulated GPU computes on the CPU, so smaller sizes suffice.
    let (side, elements) = if modelled { (1024, 1 << 22) } else { (8192, 1 << 26) };
    let (side, elements) = (options.side.unwrap_or(side), options.elements.unwrap_or(elements));
    let sizes = Sizes { device: machine.enter(|| Device::cuda(0)), side, elements };
    let is_asked = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let works: Vec<_> = machine.enter(|| {
        WORKS
            .into_iter()
            .filter(|(name, _, precision, _)| is_asked(name) && precision.is_supported())
            .collect()
    });

    let how = if modelled { "modelled" } else { "measured" };
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        let on_gpu = ["cuda".to_owned(), side.to_string(), elements.to_string()];
        let pytorch = || pytorch(options, &[&on_gpu[..], &options.only].concat());
        let time = |(_, _, precision, prepare): &(_, _, Precision, Prepare)| {
            again_and_again(prepare(&sizes, *precision)?)
        };
        let ours = || machine.enter(|| works.iter().map(time).collect::<Result<Vec<f64>>>());
        // A busy card is warm and may be slower, so the sides alternate in going first.
        rounds.push(if round % 2 == 0 {
            let theirs = pytorch()?;
            (ours()?, theirs)
        } else {
            (ours()?, pytorch()?)
        });
        // Print after each round, so that an interrupted run keeps its results.
        to_stdout(&format!(
            "{machine}: time per run, queued back to back, {how}, round {} of {}.\n",
            round + 1,
            options.rounds
        ));
        let names = works.iter().map(|(name, aim, ..)| (*name, *aim)).collect::<Vec<_>>();
        to_stdout(&table(&names, &rounds));
        to_stdout(&rates(&names, &rounds, side, elements));
    }
    Ok(())
}

/// Our times of all works in a round, and PyTorch's.
type Round = (Vec<f64>, Option<BTreeMap<String, f64>>);

/// The names of the works, each with its limit.
type Names<'a> = [(&'a str, f64)];

fn table(names: &Names, rounds: &[Round]) -> String {
    let head = format!("{:<19} {:>12} {:>12} {:>7} {:>6}\n", "", "todevice", "PyTorch", "ratio", "aim");
    let rows = names.iter().enumerate().map(|(i, (name, aim))| {
        row(name, rounds.iter().map(|(ours, theirs)| (ours[i], theirs.as_ref())).collect(), *aim)
    });
    head + &rows.collect::<String>()
}

/// The fraction of the memory bandwidth that memory-bound operations reach, and the throughput of products.
fn rates(names: &Names, rounds: &[Round], side: usize, elements: usize) -> String {
    let time = |name: &str| {
        let i = names.iter().position(|(known, _)| *known == name)?;
        Some(median(rounds.iter().map(|(ours, _)| ours[i]).collect()))
    };
    let rate = |name, tensors: usize| Some((tensors * 4 * elements) as f64 / time(name)? / 1e9);
    let mut text = String::new();
    for (name, tensors) in [("add", 3), ("relu", 2)] {
        if let (Some(of_it), Some(copy)) = (rate(name, tensors), rate("copy", 2)) {
            let percent = 100.0 * of_it / copy;
            let missed = if percent < 90.0 { "  missed" } else { "" };
            text += &format!(
                "{name} of {elements} elements moves {of_it:.0} GB/s, copy {copy:.0}: {percent:.0} % (aim: 90){missed}\n"
            );
        }
    }
    for name in ["matmul", "matmul_tf32", "matmul_bf16"] {
        if let Some(time) = time(name) {
            let rate = 2.0 * (side as f64).powi(3) / time / 1e12;
            text += &format!("{name} of {side}³: {rate:.1} TFLOP/s\n");
        }
    }
    text
}
