//! Lab 02: the golden rule. All tensors of one operation are on one device.

use std::time::Duration;

use drawing::quadrants::{self, Placement};
use drawing::words;
use todevice::cuda;
use todevice::nn::Buffer;
use todevice::prelude::*;
use todevice::time::Instant;

use crate::frame::cli::count;
use crate::frame::clock::wait_for;
use crate::{Entry, Figure, Lab, Prediction, Run, Table, exact, row, text, timed};

pub const LAB: Entry<Options> = Entry { name: "lab-02", title: "The golden rule", run };

/// The knobs of this lab, with PyTorch's names.
#[derive(clap::Args)]
pub struct Options {
    /// Samples per batch
    #[arg(long, value_name = "N", default_value = "256", value_parser = count(1..=65_536))]
    pub batch_size: usize,

    /// Timed training steps for each placement of model and data
    #[arg(long, value_name = "N", default_value = "5", value_parser = count(1..=1000))]
    pub steps: usize,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    devices(lab)?;
    tensor_and_tensor(lab)?;
    model_and_data(lab, options)?;
    loss_and_target(lab, options)?;
    four_placements(lab, options)?;
    exceptions(lab)?;
    what_moves(lab)?;
    optimizer_before_or_after(lab, options)?;
    module_of_your_own(lab)?;
    two_gpus(lab)
}

fn devices(lab: &mut Lab) -> crate::Result<()> {
    lab.section(1, "The devices");
    // ANCHOR: devices
    let device = lab.device();
    let x = Tensor::zeros(&[3])?;
    lab.print(text!("Tensors are made on: {}", place(&x)));
    let x = x.to(device)?;
    lab.print(text!("In this run they move to: {}", place(&x)));
    // ANCHOR_END: devices
    lab.prose("The golden rule: all tensors of one operation live on one device.");
    lab.prose_on_cpu(match cuda::is_available() {
        false => {
            "This machine has no GPU. Its only device is the CPU, so you cannot break the rule: every line below runs, even \
             those that fail on a machine with a GPU. To see them fail, simulate a GPU with --gpu sim:t4."
        }
        true => {
            "This run uses only the CPU, so you cannot break the rule: every line below runs, even those that fail with a \
             GPU. To see them fail, leave out --device cpu."
        }
    });
    Ok(())
}

fn tensor_and_tensor(lab: &mut Lab) -> crate::Result<()> {
    lab.section(2, "Tensor and tensor");
    let device = lab.device();
    let guess = lab.predict(
        Prediction::choice(
            "02-sum",
            format!(
                "`a` stays on the CPU, and `b` moves to {device}. What does `a + b` do?"
            ),
        )
        .or("left", "It moves `b` to where `a` is, and adds there.", NOTHING_MOVES)
        .or("right", "It moves `a` to where `b` is, and adds there.", NOTHING_MOVES)
        .or(
            "together",
            "It adds them where they are.",
            "PyTorch's kernels want all their tensors in one memory.",
        )
        .or("error", "It is an error.", ONE_DEVICE),
    );
    manual_seed(lab.seed());
    // ANCHOR: tensors
    let a = Tensor::randn(&[3, 4])?;
    let b = Tensor::randn(&[3, 4])?.to(device)?;
    let sum = &a + &b;
    // ANCHOR_END: tensors
    let runs = show(lab, "a + b", sum)?;
    lab.answer(guess, if runs { "together" } else { "error" });
    lab.prose_on_gpu(
        "The first line is PyTorch's sentence, and the arrow points at the operation. Then come its two tensors: self is the \
         left one, a, and other is b. The report says where each was made and where it was last moved. The one that never \
         moved is usually the one that you forgot.",
    );
    lab.prose("The fix is to move a as well. (If it is on the device already, .to(device) does nothing.)");
    // ANCHOR: tensors_fixed
    let a = a.to(device)?;
    let sum = &a + &b;
    // ANCHOR_END: tensors_fixed
    show(lab, "a + b", sum)?;
    Ok(())
}

fn model_and_data(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let batch_size = options.batch_size;

    lab.section(3, "Model and data");
    let device = lab.device();
    // ANCHOR: model
    let model = network()?;
    model.to(device)?;
    let x = Tensor::randn(&[batch_size, 784])?;
    let scores = model.forward(&x);
    // ANCHOR_END: model
    show(lab, "model.forward(&x)", scores)?;
    lab.prose_on_gpu(
        "A model is made of tensors, so the rule holds for it too. Its first layer computes self + mat1 · mat2, where self is \
         the bias, mat1 is the input x, and mat2 is the weight. A layer words its error differently, but it breaks the \
         same rule.",
    );
    lab.prose("The fix is to move every batch to where the model is.");
    // ANCHOR: model_fixed
    let x = x.to(device)?;
    let scores = model.forward(&x);
    // ANCHOR_END: model_fixed
    show(lab, "model.forward(&x)", scores)?;
    Ok(())
}

fn loss_and_target(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let batch_size = options.batch_size;

    lab.section(4, "Loss and target");
    let device = lab.device();
    let guess = lab.predict_on_gpu(
        Prediction::choice(
            "02-loss",
            format!(
                "The model moves to {device}, and its input is moved as well. Which line stops the program?"
            ),
        )
        .or("forward", "`model.forward(&x.to(device)?)`", "This line moves its input itself.")
        .or("loss", "`loss_fn.forward(&scores, &y)`", ONE_DEVICE)
        .or("none", "None of them.", "The loss compares the scores with the targets, and `y` never moved.")
        .because("A batch is two tensors, `x` and `y`."),
    );
    // ANCHOR: loss
    let x = Tensor::randn(&[batch_size, 784])?;
    let y = Tensor::randint(0, 10, &[batch_size])?;
    let model = network()?;
    model.to(device)?;
    let loss_fn = nn::CrossEntropyLoss::default();

    let scores = model.forward(&x.to(device)?)?;
    let loss = loss_fn.forward(&scores, &y);
    // ANCHOR_END: loss
    let runs = show(lab, "loss_fn.forward(&scores, &y)", loss)?;
    lab.answer(guess, if runs { "none" } else { "loss" });
    lab.prose_on_gpu(
        "Somebody forgot the target. (self is the scores. Nobody moved them: the model made them on its own device.)",
    );
    lab.prose("A batch is x and y. The fix is to move both.");
    // ANCHOR: loss_fixed
    let y = y.to(device)?;
    let loss = loss_fn.forward(&scores, &y);
    // ANCHOR_END: loss_fixed
    show(lab, "loss_fn.forward(&scores, &y)", loss)?;
    Ok(())
}

fn four_placements(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    lab.section(5, "Four placements");
    let device = lab.device();
    let guess = lab.predict_on_gpu(
        Prediction::number(
            "02-placements",
            "The model can be moved to the GPU or forgotten, and so can the data. In how many of the four placements \
             does the model train?",
        )
        .out_of(4)
        .because("The rule asks that all tensors be on the same device; it does not say which."),
    );
    // ANCHOR: placements
    let devices =
        if device.is_cuda() { vec![Device::Cpu, device] } else { vec![Device::Cpu] };
    let mut table =
        Table::new(["model", "data", "outcome", "first loss", "last loss", "one step"]);
    let (mut trained, mut errors) = (0, Vec::new());
    let mut placements = Vec::new(); // to be drawn
    for &model_device in &devices {
        for &data_device in &devices {
            let (model, data) = (model_device.to_string(), data_device.to_string());
            match train(lab.seed(), options, model_device, data_device) {
                Ok(Training { first_loss, last_loss, step_time }) => {
                    trained += 1;
                    placements.push((model_device, data_device, Ok(step_time)));
                    table = table.row(row![
                        model,
                        data,
                        "trains",
                        exact("first_loss", first_loss),
                        exact("last_loss", last_loss),
                        timed("step_time", step_time)
                    ]);
                }
                Err(error @ Error::DeviceMismatch(_)) => {
                    table = table.row(row![model, data, "error GPU0001"]);
                    let said = "error: two devices".to_owned();
                    placements.push((model_device, data_device, Err(said)));
                    errors.push((model_device, data_device, error));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    // ANCHOR_END: placements
    lab.table(table);
    lab.answer(guess, exact("placements", trained));
    if !lab.has_gpu_or("With one device the four placements are one and the same.") {
        return Ok(());
    }
    draw(lab, placements);
    lab.prose(
        "If you forget one of the two, the program fails at once. If you forget both, it does not fail: the network trains on \
         the CPU and reaches the same loss. Nothing warns you, and only the time of a step differs. (By how much does it \
         differ for a small batch? Try --batch-size 8.)",
    );
    for (model, data, error) in errors {
        lab.print(text!("Model on {model}, data on {data}:"));
        lab.report(error.report());
    }
    lab.prose(
        "PyTorch's sentence blames mat1, the data, both times. The bias comes first, so PyTorch takes its device for the right \
         one, even where you forgot the model. Look for what never moved.",
    );
    Ok(())
}

/// Draws the placements.
fn draw(lab: &mut Lab, placements: Vec<(Device, Device, Result<Duration, String>)>) {
    let placement = |(model, data, outcome)| Placement { model, data, outcome };
    let all: Vec<Placement> = placements.into_iter().map(placement).collect();
    let kind = timed("", Duration::ZERO).kind.name();
    let refused = all.iter().filter(|placement| placement.outcome.is_err()).count();
    let times: Vec<String> = all
        .iter()
        .filter_map(|Placement { model, outcome, .. }| {
            let time = outcome.as_ref().ok()?;
            Some(format!("{} with both on {model}", words::time(*time)))
        })
        .collect();
    let caption = format!(
        "Each cell is one way to place a model and its data. In {refused} of the {} they are in different memories, \
         and the first layer fails. In the others the network trains, and only the time of a step tells you \
         where: {} ({kind}).",
        all.len(),
        times.join(", and "),
    );
    lab.picture(quadrants::picture(&all, kind), &caption);
}

/// The result of a few training steps.
struct Training {
    first_loss: f64,
    last_loss: f64,
    step_time: Duration,
}

// ANCHOR: train
/// Trains a new network on one batch.
fn train(
    seed: u64,
    options: &Options,
    model_device: Device,
    data_device: Device,
) -> Result<Training> {
    manual_seed(seed);
    let (x, y) = batch(options.batch_size)?;
    let (x, y) = (x.to(data_device)?, y.to(data_device)?);

    let model = network()?;
    model.to(model_device)?;
    let loss_fn = nn::CrossEntropyLoss::default();
    let mut optimizer = optim::SGD::new(
        model.parameters(),
        SGDOptions { lr: 0.1, ..Default::default() },
    )?;
    let mut step = || -> Result<Tensor> {
        let loss = loss_fn.forward(&model.forward(&x)?, &y)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        Ok(loss.detach())
    };

    // The first step is not timed: it also allocates memory and starts libraries.
    let mut loss = step()?;
    let first_loss = loss.item()?;

    wait_for(model_device)?;
    let start = Instant::now();
    for _ in 0..options.steps {
        loss = step()?;
    }
    wait_for(model_device)?; // a GPU may still be working after the loop
    let time = start.elapsed();

    let last_loss = loss.item()?;
    Ok(Training { first_loss, last_loss, step_time: time / options.steps as u32 })
}
// ANCHOR_END: train

fn exceptions(lab: &mut Lab) -> crate::Result<()> {
    lab.section(6, "The exceptions");
    let device = lab.device();
    let question = format!(
        "`x` is on {device}. Three tensors are on the CPU: `number`, which has no dimensions; `vector`, which has \
         one dimension with one element; and `index`. How many of these eight operations run?\n\
         `x + 2.0`, `x + number`, `x + vector`, `number.to(device)? + vector`,\n\
         `x.copy_(&vector)`, `x.index(&index)`,\n\
         `x.index_select(0, &index)`, `x.gather(0, &index)`"
    );
    let guess = lab.predict_on_gpu(
        Prediction::number("02-exceptions", question)
            .out_of(8)
            .because(
                "A number has no device, a 0-dim tensor on the CPU counts as a number, `copy_` reads from anywhere, \
                 and `index` moves its index for you.",
            ),
    );
    // ANCHOR: exceptions
    let x = Tensor::ones(&[3])?.to(device)?;
    let number = Tensor::new(2.0)?;
    let vector = Tensor::new([2.0])?;
    let index = Tensor::new([2, 0])?;

    let results = [
        &x + 2.0,
        &x + &number,
        &x + &vector,
        number.to(device)? + &vector,
        x.copy_(&vector),
        x.index(&index),
        x.index_select(0, &index),
        x.gather(0, &index),
    ];
    // ANCHOR_END: exceptions
    let names = [
        ("x + 2.0", "2.0, a Rust number"),
        ("x + number", "number, sizes []"),
        ("x + vector", "vector, sizes [1]"),
        ("number.to(device)? + vector", "vector, sizes [1]"),
        ("x.copy_(&vector)", "vector, sizes [1]"),
        ("x.index(&index)", "index, sizes [2]"),
        ("x.index_select(0, &index)", "index, sizes [2]"),
        ("x.gather(0, &index)", "index, sizes [2]"),
    ];
    let running = results.iter().filter(|result| result.is_ok()).count();
    let mut table = Table::new(["operation", "its operand on cpu", "outcome"]);
    for ((operation, operand), result) in names.into_iter().zip(results) {
        table = table.row(row![operation, operand, outcome(result)?]);
    }
    lab.table(table);
    lab.answer(guess, exact("running", running));
    lab.prose_on_gpu(
        "A Rust number is not a tensor and has no device. A 0-dim tensor on the CPU counts as a number, but a vector with one \
         element does not, and you cannot add a 0-dim tensor on the GPU to a vector on the CPU. copy_ takes its source from \
         any device, since copying is all it does. And x.index(&index), PyTorch's x[index], accepts an index on the CPU, \
         although index_select and gather do not.",
    );
    Ok(())
}

fn what_moves(lab: &mut Lab) -> crate::Result<()> {
    lab.section(7, "What moves");
    let device = lab.device();
    let guess = lab.predict(
        Prediction::choice(
            "02-kept",
            "A program runs `x.to(device)?;` and `model.to(device)?;`, and keeps nothing that they return. What is on the \
             device now?",
        )
        .or("both", "Both `x` and the model.", "A tensor is a value: its `to` returns another one.")
        .or("tensor", "Only `x`.", "A tensor's `to` leaves the tensor where it is, and a model's `to` changes the model.")
        .or("model", "Only the model.", ONE_DEVICE)
        .or("neither", "Neither of them.", "A model owns its parameters, and its `to` changes where they are."),
    );
    // ANCHOR: moves
    let x = Tensor::randn(&[64, 784])?;
    x.to(device)?; // the result is dropped
    let kept = x.to(device)?;

    let model = network()?;
    model.to(device)?;
    let weight = model.parameters()[0].tensor();
    // ANCHOR_END: moves
    lab.print(text!("x.to(device)?;             x is on {}", place(&x)));
    lab.print(text!("let kept = x.to(device)?;  kept is on {}", place(&kept)));
    lab.print(text!(
        "model.to(device)?;         its first weight is on {}",
        place(&weight)
    ));
    lab.answer(
        guess,
        match (x.device() == device, weight.device() == device) {
            (true, true) => "both",
            (true, false) => "tensor",
            (false, true) => "model",
            (false, false) => "neither",
        },
    );
    lab.prose(
        "A tensor's to leaves the tensor where it is and returns another one, so keep that. A model's to changes the model: \
         its parameters stay the same parameters, but their values are on the device.",
    );
    Ok(())
}

fn optimizer_before_or_after(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    lab.section(8, "An optimizer, made before or after");
    let device = lab.device();
    let guess = lab.predict(
        Prediction::yes_no(
            "02-optimizer",
            format!(
                "An optimizer is made from the model's parameters. Then the model moves to {device}. Does the \
                 optimizer still update the model?"
            ),
        )
        .because("The optimizer holds the parameters themselves, and only their values have moved."),
    );
    // ANCHOR: optimizers
    let after = losses(lab.seed(), options, OptimizerMade::AfterTheMove, device)?;
    let before = losses(lab.seed(), options, OptimizerMade::BeforeTheMove, device)?;
    // ANCHOR_END: optimizers
    let learns = before.last() < before.first();
    let mut table =
        Table::new(["step", "loss if made after the move", "loss if made before"]);
    for (step, (after, before)) in after.into_iter().zip(before).enumerate() {
        table = table.row(row![
            step + 1,
            exact("loss_after", after),
            exact("loss_before", before)
        ]);
    }
    lab.table(table);
    lab.answer(guess, learns);
    lab.prose(
        "It does, and the losses are the same. The optimizer holds the parameters, and they stay the same parameters when the \
         model moves. (Once it has taken a step, Adam also has tensors of its own. Chapter 11 is about those.)",
    );
    Ok(())
}

// ANCHOR: losses
enum OptimizerMade {
    BeforeTheMove,
    AfterTheMove,
}

/// The losses of the first three steps.
fn losses(
    seed: u64,
    options: &Options,
    made: OptimizerMade,
    device: Device,
) -> Result<Vec<f64>> {
    manual_seed(seed);
    let (x, y) = batch(options.batch_size)?;
    let (x, y) = (x.to(device)?, y.to(device)?);
    let loss_fn = nn::CrossEntropyLoss::default();

    let model = network()?;
    let adam = || {
        optim::Adam::new(
            model.parameters(),
            AdamOptions { lr: 1e-3, ..Default::default() },
        )
    };
    let mut optimizer = match made {
        OptimizerMade::BeforeTheMove => {
            let optimizer = adam()?;
            model.to(device)?;
            optimizer
        }
        OptimizerMade::AfterTheMove => {
            model.to(device)?;
            adam()?
        }
    };

    let mut losses = Vec::new();
    for _ in 0..3 {
        let loss = loss_fn.forward(&model.forward(&x)?, &y)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        losses.push(loss.item()?);
    }
    Ok(losses)
}
// ANCHOR_END: losses

// ANCHOR: center
/// Subtracts a mean from its input.
#[derive(Module)]
struct Center {
    #[module(skip)]
    mean: Tensor,
}

impl Center {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x - &self.mean
    }
}
// ANCHOR_END: center

// ANCHOR: buffer
/// The same, with the mean as a buffer: not learned, but part of the module.
#[derive(Module)]
struct CenterWithBuffer {
    mean: Buffer,
}

impl CenterWithBuffer {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x - self.mean.tensor()
    }
}
// ANCHOR_END: buffer

fn module_of_your_own(lab: &mut Lab) -> crate::Result<()> {
    lab.section(9, "A module of your own");
    let device = lab.device();
    let guess = lab.predict_on_gpu(
        Prediction::yes_no(
            "02-own",
            format!(
                "The module `Center` subtracts a mean, a tensor in one of its fields. `x` is on {device}. Does \
                 `center.forward(&x)` run after `center.to(device)?;`?"
            ),
        )
        .because("A module moves its parameters and its buffers, and a plain tensor in a field is neither."),
    );
    // ANCHOR: own_module
    let x = Tensor::randn(&[64, 784])?.to(device)?;
    let mean = Tensor::zeros(&[784])?;

    let center = Center { mean: mean.clone() };
    center.to(device)?;
    let centred = center.forward(&x);
    // ANCHOR_END: own_module
    let runs = show(lab, "center.forward(&x)", centred)?;
    lab.answer(guess, runs);
    lab.prose_on_gpu(
        "self is x, and other is the mean. The mean did not move, because a module moves its parameters and its buffers, and a \
         plain tensor in a field is neither.",
    );
    lab.prose("The fix is to make it a buffer. (PyTorch has register_buffer.)");
    // ANCHOR: own_module_fixed
    let center = CenterWithBuffer { mean: Buffer::new(&mean) };
    center.to(device)?;
    let centred = center.forward(&x);
    // ANCHOR_END: own_module_fixed
    show(lab, "center.forward(&x)", centred)?;
    Ok(())
}

fn two_gpus(lab: &mut Lab) -> crate::Result<()> {
    lab.section(10, "Two GPUs");
    if cuda::device_count() < 2 {
        lab.prose(
            "Two GPUs are two devices, and the rule holds between them as well. You can see it with --gpu sim:t4x2.",
        );
        return Ok(());
    }
    lab.think(
        "02-two-gpus",
        "a is on cuda:0, b on cuda:1. Both are on a GPU. Does a + b run?",
    );
    // ANCHOR: two_gpus
    let a = Tensor::ones(&[3])?.to(Device::cuda(0))?;
    let b = Tensor::ones(&[3])?.to(Device::cuda(1))?;
    let sum = &a + &b;
    // ANCHOR_END: two_gpus
    show(lab, "a + b", sum)?;
    lab.prose("Two GPUs are two devices. Copies between them always work, so the fix is the same.");
    // ANCHOR: two_gpus_fixed
    let b = b.to(a.device())?;
    let sum = &a + &b;
    // ANCHOR_END: two_gpus_fixed
    show(lab, "a + b", sum)?;
    Ok(())
}

// ANCHOR: network
/// Scores for ten classes from 784 features.
fn network() -> Result<nn::Sequential> {
    let hidden = nn::Linear::new(784, 1024)?;
    let out = nn::Linear::new(1024, 10)?;
    Ok(nn::Sequential::new((hidden, nn::ReLU, out)))
}
// ANCHOR_END: network

/// Random features. A sample's class is the one of ten random directions that it points in most.
fn batch(batch_size: usize) -> Result<(Tensor, Tensor)> {
    let x = Tensor::randn(&[batch_size, 784])?;
    let y = x.matmul(&Tensor::randn(&[784, 10])?)?.argmax(1, false)?;
    Ok((x, y))
}

/// Shows the result of an attempt: its device, or the report of the broken
/// rule. Returns whether it runs.
fn show(lab: &mut Lab, attempt: &str, result: Result<Tensor>) -> Result<bool> {
    let runs = result.is_ok();
    match result {
        Ok(tensor) => {
            lab.print(text!("{attempt} runs. The result is on {}", place(&tensor)))
        }
        Err(error @ Error::DeviceMismatch(_)) => lab.report(error.report()),
        Err(error) => return Err(error),
    }
    Ok(runs)
}

/// Why the other choices are wrong.
const NOTHING_MOVES: &str = "Tensors never move by themselves: a copy hidden in a loop would cost time nobody sees.";
const ONE_DEVICE: &str = "This run has one device, so everything is on it.";

/// The result in a few words.
fn outcome(result: Result<Tensor>) -> Result<String> {
    match result {
        Ok(tensor) => Ok(format!("runs, on {}", tensor.device())),
        Err(Error::DeviceMismatch(_)) => Ok("error GPU0001".to_string()),
        Err(error) => Err(error),
    }
}

/// The device of a tensor, as a figure.
fn place(tensor: &Tensor) -> Figure {
    exact("device", tensor.device().to_string())
}

pub const RUNS: &[Run] = &[Run::NONE, Run::T4, Run::T4X2];
