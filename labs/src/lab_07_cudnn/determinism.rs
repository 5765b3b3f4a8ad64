//! The same program, the same numbers: the same bits?

use todevice::backends::cudnn::{self, Flags};
use todevice::prelude::*;
use todevice::trace::Kernel;
use todevice::{Machine, use_deterministic_algorithms};

use super::{
    OWN_ALGORITHMS, convolution, has_cudnn, microseconds, millionths, rounding,
    yes_or_no,
};
use crate::{Lab, Prediction, Table, exact, row};

pub(super) fn the_same_bits(lab: &mut Lab, steps: usize) -> crate::Result<()> {
    lab.section_apart(6, "The same bits", OWN_ALGORITHMS);
    lab.think(
        "07-order",
        "`a` is 100000000, `b` is -100000000 and `c` is 1, all in f32. Is `a + (b + c)` the same as `(a + b) + c`?",
    );
    // ANCHOR: order
    let (a, b, c) = (100000000f32, -100000000f32, 1f32);
    let from_the_left = (a + b) + c;
    let from_the_right = a + (b + c);
    // ANCHOR_END: order
    lab.table(
        Table::new(["order", "sum"])
            .row(row!["(a + b) + c", exact("sum", from_the_left).digits(1)])
            .row(row!["a + (b + c)", exact("sum", from_the_right).digits(1)]),
    );
    lab.prose(
        "Beside 100000000 an f32 has no room for the 1: its neighbours are 8 apart. Each addition rounds, so a sum \
         depends on the order. Blocks of a GPU that add to the same memory with atomicAdd do so in whatever order they \
         get there.",
    );
    repeated_gradients(lab)?;
    repeated_trainings(lab, steps)?;
    what_order_costs(lab)
}

// ANCHOR: network
fn network(device: Device) -> Result<nn::Sequential> {
    let padded = nn::Conv2dOptions { padding: 1.into(), ..Default::default() };
    let net = nn::Sequential::new((
        nn::Conv2d::with_options(1, 8, 3, padded)?,
        nn::ReLU,
        nn::MaxPool2d::new(2),
        nn::Flatten::default(),
        nn::Linear::new(8 * 8 * 8, 10)?,
    ));
    net.to(device)?;
    Ok(net)
}

/// 32 images of noise, each of a class.
fn data(device: Device) -> Result<(Tensor, Tensor)> {
    let classes: Vec<i64> = (0..32).map(|image| image % 10).collect();
    let x = Tensor::randn(&[32, 1, 16, 16])?;
    Ok((x.to(device)?, Tensor::from_slice(&classes, &[32])?.to(device)?))
}
// ANCHOR_END: network

/// Whether all numbers of two lists have the same bits.
fn same(a: &[f32], b: &[f32]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// In how many numbers two lists differ, and by how much at most, in millionths of the largest. How many there are
/// depends on how a processor adds, too.
fn difference(a: &[f32], b: &[f32]) -> (&'static str, f64) {
    let differ =
        match a.iter().zip(b).filter(|(a, b)| a.to_bits() != b.to_bits()).count() {
            0 => "none",
            all if all == a.len() => "all",
            _ => "some",
        };
    let most = a.iter().zip(b).map(|(a, b)| f64::from(a - b).abs()).fold(0.0, f64::max);
    let largest = a.iter().map(|a| f64::from(a.abs())).fold(0.0, f64::max);
    (differ, 1e6 * most / largest)
}

fn repeated_gradients(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let guess = lab.predict(
        Prediction::number(
            "07-bits",
            "The gradients of a network are computed five times, with the same weights and the same images. How many of \
             the four later runs give the convolution's weight a gradient whose bits differ from the first run's?",
        )
        .unit("runs")
        .because(match has_cudnn(device) {
            true => "The parts of the sum are added in whatever order they come, and each addition rounds.",
            false => "Here sums are added in an order that is fixed.",
        }),
    );
    // ANCHOR: gradients
    manual_seed(lab.seed());
    let ((x, y), net) = (data(device)?, network(device)?);
    let weight = &net.parameters()[0];
    let gradient = || -> Result<Vec<f32>> {
        net.zero_grad();
        nn::CrossEntropyLoss::default().forward(&net.forward(&x)?, &y)?.backward()?;
        weight.grad().map_or(Ok(Vec::new()), |gradient| gradient.to_vec())
    };
    let five = || (0..5).map(|_| gradient()).collect::<Result<Vec<_>>>();
    let as_it_is = five()?;
    cudnn::set_deterministic(true);
    let deterministic = five()?;
    cudnn::set_deterministic(false);
    // ANCHOR_END: gradients
    let mut table = Table::new(["", "runs that differ", "by millionths at most"]);
    let mut differing = Vec::new();
    for (name, runs) in [("as it is", as_it_is), ("deterministic", deterministic)] {
        let (first, later) = (&runs[0], &runs[1..]);
        let differ = later.iter().filter(|run| !same(first, run)).count();
        let by = later.iter().map(|run| difference(first, run).1).fold(0.0, f64::max);
        differing.push(differ);
        table = table.row(row![
            name,
            rounding(device, "differing_runs", differ),
            rounding(device, "by", millionths(by))
        ]);
    }
    lab.table(table);
    lab.answer(guess, rounding(device, "differing_runs", differing[0]).unit("runs"));
    lab.prose(match has_cudnn(device) {
        true => {
            "The algorithm that makes the gradient of the weight adds its parts in whatever order they come. \
             cudnn::set_deterministic(true) leaves out such algorithms. On this simulated card even the disorder is \
             computed, so the whole lab gives the same bits again; a real card does not."
        }
        false => {
            "None: this crate adds in an order that is fixed. With --gpu sim:t4 cuDNN makes the gradient, in whatever \
             order its parts come."
        }
    });
    Ok(())
}

// ANCHOR: train
/// Trains a new network. Returns the last loss, and all weights.
fn train(seed: u64, device: Device, steps: usize) -> Result<(f64, Vec<f32>)> {
    manual_seed(seed);
    let ((x, y), net) = (data(device)?, network(device)?);
    let mut sgd = optim::SGD::new(
        net.parameters(),
        SGDOptions { lr: 0.1, ..Default::default() },
    )?;
    let loss_fn = nn::CrossEntropyLoss::default();
    let mut last = f64::NAN;
    for _ in 0..steps {
        let loss = loss_fn.forward(&net.forward(&x)?, &y)?;
        sgd.zero_grad();
        loss.backward()?;
        sgd.step()?;
        last = loss.item()?;
    }
    let mut weights = Vec::new();
    for parameter in net.parameters() {
        weights.extend(parameter.tensor().to_vec::<f32>()?);
    }
    Ok((last, weights))
}
// ANCHOR_END: train

fn repeated_trainings(lab: &mut Lab, steps: usize) -> crate::Result<()> {
    let (seed, device) = (lab.seed(), lab.device());
    let count =
        if steps == 1 { "one step".to_owned() } else { format!("{steps} steps") };
    lab.think(
        "07-whole",
        format!("The network is trained twice, for {count}, with the same seed. Do the two end with the same weights?"),
    );
    let mut trained = Vec::new();
    // ANCHOR: trainings
    for setting in ["a seed", "+ deterministic", "+ everywhere"] {
        cudnn::set_deterministic(setting == "+ deterministic");
        use_deterministic_algorithms(setting == "+ everywhere");
        trained.push((
            setting,
            train(seed, device, steps)?,
            train(seed, device, steps)?,
        ));
    }
    // ANCHOR_END: trainings
    use_deterministic_algorithms(false);
    let mut table =
        Table::new(["", "loss", "again", "weights with other bits", "by millionths"]);
    for (setting, (loss, weights), (again, others)) in trained {
        let (differ, by) = difference(&weights, &others);
        table = table.row(row![
            setting,
            rounding(device, "loss", loss).digits(4),
            rounding(device, "again", again).digits(4),
            rounding(device, "differing_weights", differ),
            rounding(device, "weights_by", millionths(by))
        ]);
    }
    lab.table(table);
    lab.prose(match has_cudnn(device) {
        true => {
            "The seed fixes the weights at the start and the images. It does not fix the order of additions: the \
             printed losses agree, the weights do not. Each step builds on the differences of the last; in so small a \
             network they stay tiny. \"+ deterministic\" is cudnn::set_deterministic(true), \"+ everywhere\" \
             use_deterministic_algorithms(true), which covers all operations; in this crate only convolutions \
             need it."
        }
        false => "Here a seed is enough. With --gpu sim:t4 it is not.",
    });
    Ok(())
}

fn what_order_costs(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    if !has_cudnn(device) {
        return Ok(());
    }
    lab.think("07-cost", "What does it cost to add in a fixed order?");
    let mut table = Table::new([
        "gradient of",
        "deterministic",
        "algorithm",
        "time",
        "workspace in bytes",
    ]);
    for (name, images, channels, size, kernel) in
        [("5×5, 3→32", 8, [3, 32], 32, 5), ("3×3, 64→64", 8, [64, 64], 16, 3)]
    {
        let (conv, x) = convolution(device, images, channels, size, kernel)?;
        for deterministic in [false, true] {
            // ANCHOR: cost
            let flags = Flags { deterministic, ..cudnn::current() };
            let backward = || -> Result<()> { conv.forward(&x)?.sum()?.backward() };
            let (done, trace) =
                Machine::current().profile(|| cudnn::flags(flags, backward));
            let kernels = trace.kernels(device.index());
            // ANCHOR_END: cost
            done?;
            let of_weight =
                |kernel: &&Kernel| kernel.name.starts_with("conv_backward_filter");
            let kernel = kernels
                .iter()
                .find(of_weight)
                .ok_or("no convolution made the gradient")?;
            table = table.row(row![
                name,
                yes_or_no(deterministic),
                kernel.name.trim_start_matches("conv_backward_filter "),
                microseconds("gradient_time", kernel.time.unwrap_or_default()),
                exact("gradient_workspace", kernel.workspace)
            ]);
        }
    }
    lab.table(table);
    lab.prose(
        "ALGO_0 adds where the sum is, in any order. ALGO_1 keeps the parts apart, in a workspace, and adds them in \
         order, for which it makes fewer of them. The gradient of 3→32 is small: with few parts most of a card has \
         nothing to do. That of 64→64 has enough to do either way, and the order costs nothing.",
    );
    Ok(())
}
