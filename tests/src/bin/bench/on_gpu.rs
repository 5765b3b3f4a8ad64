//! The same on a GPU: each work is queued many times, and waited for once.

use course_tests::works::Precision::{self, Bf16, F32, Tf32};
use course_tests::works::{self, Doing, again_and_again, median};
use labs::stdio::to_stdout;
use todevice::Machine;
use todevice::prelude::*;

use super::{Options, Outcome, pytorch, row};

type Prepare = fn(&Sizes, Precision) -> Result<Doing>;

/// The work: a name, a limit for the ratio with PyTorch, a precision.
const WORKS: [(&str, f64, Precision, Prepare); 12] = [
    ("tiny_mlp_step", 0.5, F32, |of, _| works::tiny_mlp_step(of.device)),
    ("mnist_mlp_step", 1.0, F32, |of, _| works::mnist_mlp_step(of.device)),
    ("cnn_step", 1.0, F32, |of, precision| works::cnn_step(of.device, precision)),
    ("cnn_step_tf32", 1.0, Tf32, |of, precision| works::cnn_step(of.device, precision)),
    ("cnn_step_bf16", 1.0, Bf16, |of, precision| works::cnn_step(of.device, precision)),
    ("matmul", 1.02, F32, |of, precision| works::product(of.device, of.side, precision)),
    ("matmul_tf32", 1.02, Tf32, |of, precision| works::product(of.device, of.side, precision)),
    ("matmul_bf16", 1.02, Bf16, |of, precision| works::product(of.device, of.side, precision)),
    ("add", 1.0, F32, |of, _| works::add(of.device, of.elements)),
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
    // A simulated GPU computes on the CPU, where less will do.
    let (side, elements) = if modelled { (1024, 1 << 22) } else { (8192, 1 << 26) };
    let (side, elements) = (options.side.unwrap_or(side), options.elements.unwrap_or(elements));
    let sizes = Sizes { device: machine.enter(|| Device::cuda(0)), side, elements };
    let works: Vec<_> =
        machine.enter(|| WORKS.into_iter().filter(|(_, _, precision, _)| precision.is_supported()).collect());

    let how = if modelled { "modelled" } else { "measured" };
    to_stdout(&format!("{machine}: time per run, queued back to back, {how}, {} rounds.\n", options.rounds));
    to_stdout(&format!("{:<16} {:>12} {:>12} {:>7} {:>6}\n", "", "todevice", "PyTorch", "ratio", "aim"));
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        let pytorch = || pytorch(options, &["cuda".to_owned(), side.to_string(), elements.to_string()]);
        let time = |(_, _, precision, prepare): &(_, _, Precision, Prepare)| {
            again_and_again(prepare(&sizes, *precision)?)
        };
        let ours = || machine.enter(|| works.iter().map(time).collect::<Result<Vec<f64>>>());
        // A card that has been busy is warm, and may be slower: each side is first in every second round.
        rounds.push(if round % 2 == 0 {
            let theirs = pytorch()?;
            (ours()?, theirs)
        } else {
            (ours()?, pytorch()?)
        });
    }
    let ours = |name: &str| {
        let i = works.iter().position(|(known, ..)| *known == name)?;
        Some(median(rounds.iter().map(|(ours, _)| ours[i]).collect()))
    };
    for (i, (name, aim, ..)) in works.iter().enumerate() {
        let pairs = rounds.iter().map(|(ours, theirs)| (ours[i], theirs.as_ref()));
        to_stdout(&row(name, pairs.collect(), *aim));
    }
    let rate =
        |tensors: usize, name| ours(name).map_or(0.0, |time| (tensors * 4 * elements) as f64 / time / 1e9);
    let (add, copy) = (rate(3, "add"), rate(2, "copy"));
    to_stdout(&format!(
        "\nAdding {elements} elements moves {add:.0} GB/s, and copying them {copy:.0}: {:.0} % (aim: 90).\n",
        100.0 * add / copy
    ));
    for name in ["matmul", "matmul_tf32", "matmul_bf16"] {
        if let Some(time) = ours(name) {
            let rate = 2.0 * (side as f64).powi(3) / time / 1e12;
            to_stdout(&format!("{name} of {side}³: {rate:.1} TFLOP/s.\n"));
        }
    }
    Ok(())
}
