//! Same program, same numbers: same bits?

use std::time::Duration;

use todevice::backends::cudnn::{self, Flags};
use todevice::prelude::*;
use todevice::trace::Kernel;
use todevice::{Machine, use_deterministic_algorithms};

use super::{
    OWN_ALGORITHMS, convolution, has_cudnn, microseconds, millionths, yes_or_no,
};
use crate::{Lab, Prediction, Table, Text, exact, rounded_by, row};

pub(super) fn the_same_bits(lab: &mut Lab, steps: usize) -> crate::Result<()> {
    lab.section_apart(6, "The same bits", OWN_ALGORITHMS);
    let guess = lab.predict(
        Prediction::yes_no(
            "07-order",
            "`a` is 100000000, `b` is -100000000 and `c` is 1, all in f32. Is `a + (b + c)` the same as `(a + b) + c`?",
        )
        .because("Next to 100000000 an f32 has no room for the 1, so `b + c` is rounded back to `b`."),
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
    lab.answer(guess, from_the_left == from_the_right);
    lab.prose(
        "Next to 100000000 an f32 has no room for the 1: its neighbours are 8 apart. Each addition rounds, so a sum \
         depends on the order. Blocks of a GPU that add to the same memory with atomicAdd do so in whatever order they \
         arrive.",
    );
    repeated_gradients(lab)?;
    repeated_trainings(lab, steps)?;
    what_order_costs(lab)
}

// ANCHOR: network
fn network(device: Device) -> Result<nn::Sequential> {
    let padded = nn::Conv2dOptions { padding: 1.into(), ..Default::default() };
    let net = nn::Sequential::new((
        nn::Conv2d::new(1, 8, (3, padded))?,
        nn::ReLU,
        nn::MaxPool2d::new(2),
        nn::Flatten::default(),
        nn::Linear::new(8 * 8 * 8, 10)?,
    ));
    net.to(device)?;
    Ok(net)
}

/// 32 images of noise, each with a class.
fn data(device: Device) -> Result<(Tensor, Tensor)> {
    let classes: Vec<i64> = (0..32).map(|image| image % 10).collect();
    let x = Tensor::randn(&[32, 1, 16, 16])?;
    Ok((x.to(device)?, Tensor::from_slice(&classes, &[32])?.to(device)?))
}
// ANCHOR_END: network

fn same(a: &[f32], b: &[f32]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// The number of differing values, and the largest difference in millionths of the largest value. The number also
/// depends on the CPU's order of addition.
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

// ANCHOR: gradients
/// The gradient of the convolution's weight, computed five times.
fn five_gradients(net: &nn::Sequential, x: &Tensor, y: &Tensor) -> Result<Vec<Tensor>> {
    let weight = &net.parameters()[0];
    let mut gradients = Vec::new();
    for _ in 0..5 {
        net.zero_grad();
        let loss = nn::CrossEntropyLoss::default().forward(&net.forward(x)?, y)?;
        loss.backward()?;
        gradients.extend(weight.grad());
    }
    Ok(gradients)
}
// ANCHOR_END: gradients

fn repeated_gradients(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let guess = lab.predict(
        Prediction::number(
            "07-bits",
            "The gradients of a network are computed five times, with the same weights and the same images. How many of \
             the four later runs give the convolution's weight a gradient whose bits differ from the first run's?",
        )
        .unit("runs")
        .out_of(4)
        .because(match has_cudnn(device) {
            true => "The parts of the sum are added in whatever order they come, and each addition rounds.",
            false => "Here sums are added in an order that is fixed.",
        }),
    );
    manual_seed(lab.seed());
    let ((x, y), net) = (data(device)?, network(device)?);
    let as_it_is = five_gradients(&net, &x, &y)?;
    let flags = Flags { deterministic: true, ..cudnn::current() };
    let deterministic = cudnn::flags(flags, || five_gradients(&net, &x, &y))?;
    let mut table = Table::new(["", "runs that differ", "by millionths at most"]);
    let mut differing = Vec::new();
    for (name, runs) in [("as it is", as_it_is), ("deterministic", deterministic)] {
        let runs =
            runs.iter().map(Tensor::to_vec).collect::<Result<Vec<Vec<f32>>>>()?;
        let (first, later) = (&runs[0], &runs[1..]);
        let differ = later.iter().filter(|run| !same(first, run)).count();
        let by = later.iter().map(|run| difference(first, run).1).fold(0.0, f64::max);
        differing.push(differ);
        table = table.row(row![
            name,
            rounded_by("differing_runs", differ, device),
            rounded_by("by", millionths(by), device)
        ]);
    }
    lab.table(table);
    lab.answer(guess, rounded_by("differing_runs", differing[0], device).unit("runs"));
    lab.prose(match has_cudnn(device) {
        true => {
            "The algorithm that computes the gradient of the weight adds its parts in whatever order they come. \
             cudnn::set_deterministic(true) leaves out such algorithms."
        }
        false => {
            "None: this crate adds in an order that is fixed. With --gpu sim:t4 cuDNN computes the gradient, and adds \
             its parts in whatever order they come."
        }
    });
    if Machine::current().time_is_modelled() {
        lab.prose_on_gpu(
            "On a simulated card even the disorder is computed, so this lab prints the same whenever you run it. On a real \
             card the order changes from run to run.",
        );
    }
    Ok(())
}

// ANCHOR: train
/// Trains a new network. Returns the last loss, and all weights.
fn train(seed: u64, steps: usize, device: Device) -> Result<(f64, Vec<f32>)> {
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
        format!("The network is trained twice, for {count}, with the same seed. Do the two runs end with the same weights?"),
    );
    // ANCHOR: trainings
    let a_seed = [train(seed, steps, device)?, train(seed, steps, device)?];

    cudnn::set_deterministic(true);
    let deterministic = [train(seed, steps, device)?, train(seed, steps, device)?];
    cudnn::set_deterministic(false);

    use_deterministic_algorithms(true);
    let everywhere = [train(seed, steps, device)?, train(seed, steps, device)?];
    use_deterministic_algorithms(false);
    // ANCHOR_END: trainings
    let trained = [
        ("a seed", a_seed),
        ("+ deterministic", deterministic),
        ("+ everywhere", everywhere),
    ];
    let mut table =
        Table::new(["", "loss", "again", "weights with other bits", "by millionths"]);
    let mut with_a_seed = ("none", true);
    for (setting, [(loss, weights), (again, others)]) in trained {
        let (differ, by) = difference(&weights, &others);
        let [loss, again] = [("loss", loss), ("again", again)]
            .map(|(name, loss)| rounded_by(name, loss, device).digits(4));
        if setting == "a seed" {
            with_a_seed = (differ, loss.printed_value() == again.printed_value());
        }
        table = table.row(row![
            setting,
            loss,
            again,
            rounded_by("differing_weights", differ, device),
            rounded_by("weights_by", millionths(by), device)
        ]);
    }
    lab.table(table);
    if !has_cudnn(device) {
        lab.prose("Here a seed is enough. With --gpu sim:t4 it is not.");
        return Ok(());
    }
    lab.prose(
        "The seed fixes the initial weights and the images. It does not fix the order of additions, and each step \
         builds on the differences of the last. \"+ deterministic\" is cudnn::set_deterministic(true), \"+ everywhere\" \
         is use_deterministic_algorithms(true), which covers all operations; in this crate only convolutions need it.",
    );
    lab.prose(Text::from(match with_a_seed {
        ("none", _) => "Here the weights came out alike with a seed alone, by luck.",
        (_, true) => {
            "With a seed alone the printed losses agree and the weights do not. In so small a network the differences \
             stay tiny."
        }
        (_, false) => "With a seed alone the differences have grown until you see them in the losses.",
    }).raced());
    Ok(())
}

fn what_order_costs(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    if !has_cudnn(device) {
        return Ok(());
    }
    lab.part("cost");
    let mut table = Table::new([
        "gradient of",
        "deterministic",
        "algorithm",
        "time",
        "workspace in bytes",
    ]);
    let mut times = Vec::new();
    for (name, images, channels, size, kernel) in
        [("5×5, 3→32", 8, [3, 32], 32, 5), ("3×3, 64→64", 8, [64, 64], 16, 3)]
    {
        let (conv, x) = convolution(device, images, channels, size, kernel)?;
        let mut both = [Duration::ZERO; 2];
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
                .ok_or("no convolution computed the gradient")?;
            let time = kernel.time.unwrap_or_default();
            both[usize::from(deterministic)] = time;
            table = table.row(row![
                name,
                yes_or_no(deterministic),
                kernel.name.trim_start_matches("conv_backward_filter "),
                microseconds("gradient_time", time),
                exact("gradient_workspace", kernel.workspace)
            ]);
        }
        times.push((name, both));
    }
    lab.table(table);
    lab.prose(
        "ALGO_0 adds its parts in any order. ALGO_1 keeps the parts in a workspace and adds them in order. It \
         makes fewer parts, so that the workspace does not grow too large.",
    );
    let slower: Vec<&str> = times
        .iter()
        .filter(|(_, [any, ordered])| *ordered > *any * 11 / 10)
        .map(|(name, _)| *name)
        .collect();
    let verdict = match slower[..] {
        [] => "Here the order costs memory and hardly any time: there are enough parts for the whole card.".to_owned(),
        [one] => format!(
            "Here the order costs time for {one}: its parts are too few for the whole card. The other gradient has \
             enough to do either way."
        ),
        _ => "Here the order costs time for both: their parts are too few for the whole card.".to_owned(),
    };
    lab.prose(Text::from(verdict).raced());
    Ok(())
}
