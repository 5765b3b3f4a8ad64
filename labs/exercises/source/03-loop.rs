//! The training loop, from nothing.

use todevice::cuda;
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// Trains the model with Adam, on the device. Returns the mean loss of each epoch.
    pub fn train(
        model: &nn::Sequential,
        loader: &DataLoader<TensorDataset<2>>,
        epochs: usize,
        device: Device,
    ) -> Result<Vec<f64>> {
        let options = AdamOptions { lr: 1e-2, ..Default::default() };
        let loss_fn = nn::MSELoss::default();
        model.to(device)?;
        let mut optimizer = optim::Adam::new(model.parameters(), options)?;

        let mut means = Vec::new();
        for _epoch in 0..epochs {
            let mut losses = Vec::new();
            for batch in loader {
                let [x, y] = batch?;
                let (x, y) = (x.to(device)?, y.to(device)?);
                let loss = loss_fn.forward(&model.forward(&x)?, &y)?;
                optimizer.zero_grad();
                loss.backward()?;
                optimizer.step()?;
                losses.push(loss.detach());
            }
            means.push(Tensor::stack(&losses, 0)?.mean()?.item()?);
        }
        Ok(means)
    }
    // END
}

type Train =
    fn(&nn::Sequential, &DataLoader<TensorDataset<2>>, usize, Device) -> Result<Vec<f64>>;

const OPTIONS: &str = "    let options = AdamOptions { lr: 1e-2, ..Default::default() };\n";
const MOVE: &str = "    model.to(device)?;\n";
const MAKE: &str =
    "    let mut optimizer = optim::Adam::new(model.parameters(), options)?;\n";
const EPOCH: &str = "    for _epoch in 0..epochs {\n";
const LOSSES: &str = "        let mut losses = Vec::new();\n";
const LOOP: &str = "        for batch in loader {\n";
const BATCH: &str = "            let [x, y] = batch?;\n";
const MOVE_BATCH: &str = "            let (x, y) = (x.to(device)?, y.to(device)?);\n";
const LOSS: &str =
    "            let loss = loss_fn.forward(&model.forward(&x)?, &y)?;\n";
const ZERO: &str = "            optimizer.zero_grad();\n";
const BACKWARD: &str = "            loss.backward()?;\n";
const STEP: &str = "            optimizer.step()?;\n";
const KEEP: &str = "            losses.push(loss.detach());\n";
const MEAN: &str =
    "        }\n        means.push(Tensor::stack(&losses, 0)?.mean()?.item()?);\n";

pub static EXERCISE: Exercise = Exercise {
    id: "03-loop",
    title: "The loop, by heart",
    kind: Kind::Write,
    task: "Write the training loop. `train` goes through all batches of `loader` once an epoch, for `epochs` epochs: \
           each batch is one step of `Adam`, computed on `device`. It returns one number per epoch: the mean loss of \
           the epoch's batches, each loss taken before its step. (All batches have the same size.)",
    hints: [
        "Which lines run once, which once an epoch, and which once a batch? First put each where it belongs.",
        "A step has six parts: move the batch, forward, loss, `zero_grad`, `backward`, `step`. When `step` \
         runs, there must be gradients, and only those of this batch.",
        "`let loss = loss_fn.forward(&model.forward(&x)?, &y)?;`, then `optimizer.zero_grad();`, `loss.backward()?;` and \
         `optimizer.step()?;`. The losses go into a `Vec` that is new in each epoch.",
    ],
    afterwards: "You will write this loop a hundred times. When a loss looks odd, ask first which of the six parts is in the \
                 wrong place.",
    source: include_str!("03-loop.rs"),
    functions: &[(
        "train",
        "pub fn train(model: &nn::Sequential, loader: &DataLoader<TensorDataset<2>>, epochs: usize, device: Device) \
         -> Result<Vec<f64>>",
    )],
    skeleton: &[
        (MOVE, ""),
        (MAKE, "    // What is done once? `optim::Adam::new` takes parameters and options.\n"),
        (
            LOSSES,
            "        // Each batch of the loader is one step. `let [x, y] = batch?;` takes it apart.\n",
        ),
        (LOOP, "        // Then push the mean of the losses of this epoch.\n"),
        (BATCH, "        todo!(\"train on each batch, and push the mean loss\")\n"),
        (MOVE_BATCH, ""),
        (LOSS, ""),
        (ZERO, ""),
        (BACKWARD, ""),
        (STEP, ""),
        (KEEP, ""),
        (MEAN, ""),
    ],
    styles: &[
        Style {
            name: "zero_grad_last",
            edits: &[(ZERO, ""), (STEP, "            optimizer.step()?;\n            optimizer.zero_grad();\n")],
        },
        Style {
            name: "read_in_each_step",
            edits: &[
                (MOVE, ""),
                (MAKE, "    let mut optimizer = optim::Adam::new(model.parameters(), options)?;\n    model.to(device)?;\n"),
                (LOSSES, "        let mut sum = 0.0;\n"),
                (KEEP, "            sum += loss.item()?;\n"),
                (MEAN, "        }\n        means.push(sum / loader.len() as f64);\n"),
            ],
        },
        Style {
            name: "sum_on_the_device",
            edits: &[
                (LOSSES, "        model.train();\n        let mut sum = Tensor::zeros((&[], device))?;\n"),
                (ZERO, ""),
                (LOSS, "            optimizer.zero_grad();\n            let loss = loss_fn.forward(&model.forward(&x)?, &y)?;\n"),
                (KEEP, "            sum = (&sum + &loss.detach())?;\n"),
                (MEAN, "        }\n        means.push(sum.item()? / loader.len() as f64);\n"),
            ],
        },
        Style {
            name: "loss_by_hand",
            edits: &[
                ("    let loss_fn = nn::MSELoss::default();\n", ""),
                (LOSS, "            let loss = (model.forward(&x)? - y)?.square()?.mean()?;\n"),
            ],
        },
        Style {
            name: "iterators",
            edits: &[
                (LOSSES, ""),
                (LOOP, "        let step = |batch: Result<[Tensor; 2]>| {\n"),
                (KEEP, "            Ok(loss.detach())\n"),
                (
                    MEAN,
                    "        };\n        let losses = loader.iter().map(step).collect::<Result<Vec<_>>>()?;\n        \
                     means.push(Tensor::stack(&losses, 0)?.mean()?.item()?);\n",
                ),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "no_zero_grad",
            what: "Gradients are never set to zero, and add up.",
            edits: &[(ZERO, "")],
            diagnosis: "gradients-add-up",
        },
        Wrong {
            name: "zeroed_once_an_epoch",
            what: "Gradients are set to zero once an epoch.",
            edits: &[(ZERO, ""), (LOSSES, "        optimizer.zero_grad();\n        let mut losses = Vec::new();\n")],
            diagnosis: "zeroed-once-an-epoch",
        },
        Wrong {
            name: "zeroed_before_the_step",
            what: "`zero_grad` comes between `backward` and `step`.",
            edits: &[(ZERO, ""), (STEP, "            optimizer.zero_grad();\n            optimizer.step()?;\n")],
            diagnosis: "zeroed-before-the-step",
        },
        Wrong {
            name: "step_before_backward",
            what: "`step` comes between `zero_grad` and `backward`.",
            edits: &[(STEP, ""), (BACKWARD, "            optimizer.step()?;\n            loss.backward()?;\n")],
            diagnosis: "step-before-backward",
        },
        Wrong {
            name: "step_first",
            what: "`step` comes first, and uses the gradients of the batch before.",
            edits: &[(STEP, ""), (BATCH, "            optimizer.step()?;\n            let [x, y] = batch?;\n")],
            diagnosis: "gradients-of-the-batch-before",
        },
        Wrong {
            name: "step_after_forward",
            what: "`step` comes between the forward pass and `backward`.",
            edits: &[(STEP, ""), (ZERO, "            optimizer.step()?;\n            optimizer.zero_grad();\n")],
            diagnosis: "step-after-forward",
        },
        Wrong {
            name: "one_step_an_epoch",
            what: "`step` comes after the loop over the batches.",
            edits: &[
                (STEP, ""),
                (ZERO, ""),
                (LOSSES, "        optimizer.zero_grad();\n        let mut losses = Vec::new();\n"),
                (MEAN, "        }\n        optimizer.step()?;\n        means.push(Tensor::stack(&losses, 0)?.mean()?.item()?);\n"),
            ],
            diagnosis: "one-step-an-epoch",
        },
        Wrong {
            name: "no_backward",
            what: "`backward` is missing, and so are the gradients.",
            edits: &[(BACKWARD, "")],
            diagnosis: "no-backward",
        },
        Wrong {
            name: "new_optimizer",
            what: "Each epoch makes a new optimizer.",
            edits: &[
                (MAKE, ""),
                (EPOCH, "    for _epoch in 0..epochs {\n        let mut optimizer = optim::Adam::new(model.parameters(), options)?;\n"),
            ],
            diagnosis: "new-optimizer",
        },
        Wrong {
            name: "last_loss",
            what: "The loss of the last batch is returned instead of the mean.",
            edits: &[(MEAN, "        }\n        means.push(losses[losses.len() - 1].item()?);\n")],
            diagnosis: "last-loss",
        },
        Wrong {
            name: "sum",
            what: "The losses are added, but not divided.",
            edits: &[(MEAN, "        }\n        means.push(Tensor::stack(&losses, 0)?.sum()?.item()?);\n")],
            diagnosis: "sum",
        },
        Wrong {
            name: "divided_by_samples",
            what: "The sum of the losses is divided by the number of samples.",
            edits: &[(
                MEAN,
                "        }\n        let sum = Tensor::stack(&losses, 0)?.sum()?.item()?;\n        \
                 means.push(sum / loader.dataset().len() as f64);\n",
            )],
            diagnosis: "divided-by-samples",
        },
        Wrong {
            name: "running_mean",
            what: "The list of losses is never emptied: the mean is that of all epochs so far.",
            edits: &[(LOSSES, ""), (EPOCH, "    let mut losses = Vec::new();\n    for _epoch in 0..epochs {\n")],
            diagnosis: "running-mean",
        },
        Wrong {
            name: "each_loss",
            what: "The loss of each batch is returned.",
            edits: &[(LOSSES, ""), (KEEP, "            means.push(loss.item()?);\n"), (MEAN, "        }\n")],
            diagnosis: "each-loss",
        },
        Wrong {
            name: "loss_after_the_step",
            what: "The loss is computed once more after the step, and that one is kept.",
            edits: &[(
                KEEP,
                "            losses.push(no_grad(|| loss_fn.forward(&model.forward(&x)?, &y))?);\n",
            )],
            diagnosis: "other-losses",
        },
        Wrong {
            name: "in_no_grad",
            what: "The forward pass is within `no_grad`.",
            edits: &[(
                LOSS,
                "            let prediction = no_grad(|| model.forward(&x))?;\n            \
                 let loss = loss_fn.forward(&prediction, &y)?;\n",
            )],
            diagnosis: "no-graph",
        },
        Wrong {
            name: "one_batch",
            what: "Each epoch stops after its first batch.",
            edits: &[(KEEP, "            losses.push(loss.detach());\n            break;\n")],
            diagnosis: "not-all-batches",
        },
        Wrong {
            name: "same_order",
            what: "The batches are collected once, so all epochs have the same batches in the same order.",
            edits: &[
                (EPOCH, "    let batches = loader.iter().collect::<Result<Vec<_>>>()?;\n    for _epoch in 0..epochs {\n"),
                (LOOP, "        for batch in &batches {\n"),
                (BATCH, "            let [x, y] = batch;\n"),
            ],
            diagnosis: "same-order",
        },
        Wrong {
            name: "model_left",
            what: "The model is not moved.",
            edits: &[(MOVE, "")],
            diagnosis: "model-left",
        },
        Wrong {
            name: "batch_left",
            what: "The batches are not moved.",
            edits: &[(MOVE_BATCH, "")],
            diagnosis: "batch-left",
        },
        Wrong {
            name: "another_device",
            what: "The GPU is chosen by the function, whatever `device` says.",
            edits: &[(MOVE, "    let _ = device;\n    let device = Device::cuda_if_available();\n    model.to(device)?;\n")],
            diagnosis: "another-device",
        },
        Wrong {
            name: "sgd",
            what: "The optimizer is SGD.",
            edits: &[
                (OPTIONS, "        let options = SGDOptions { lr: 1e-2, ..Default::default() };\n"),
                (MAKE, "    let mut optimizer = optim::SGD::new(model.parameters(), options)?;\n"),
            ],
            diagnosis: "not-adam",
        },
        Wrong {
            name: "other_lr",
            what: "The learning rate is changed.",
            edits: &[("lr: 1e-2", "lr: 1e-3")],
            diagnosis: "losses",
        },
        Wrong {
            name: "on_the_cpu",
            what: "Nothing is moved, and the CPU trains.",
            edits: &[(MOVE, "    let _ = Tensor::ones((&[1], device))?;\n"), (MOVE_BATCH, "")],
            diagnosis: "on-the-cpu",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "sim:h200", "none", "sim:t4x2"],
    sizes: &[8, 16],
    observe: |case| observe(case, solution::train),
    judge,
};

/// The size of a case is that of a batch. How many batches and epochs there are depends on the seed.
pub fn observe(case: &Case, train: Train) -> Seen {
    case.machine().enter(|| {
        let (model, loader) = given(case).expect("the machine is new");
        let before = weights(&model).expect("they are numbers");
        crate::observe(
            case,
            || train(&model, &loader, epochs(case), device(case)),
            |facts| {
                let elsewhere = case.gpu == TWO && cuda::device(0, cuda::max_memory_allocated)? > 0;
                facts.insert("elsewhere".to_owned(), Value::Flag(elsewhere));
                let gradients = model.parameters().iter().any(|parameter| parameter.grad().is_some());
                facts.insert("gradients".to_owned(), Value::Flag(gradients));
                facts.insert("changed".to_owned(), Value::Flag(weights(&model)? != before));
                Ok(())
            },
        )
    })
}

/// A machine where `device` is the GPU that nobody takes unless told to.
const TWO: &str = "sim:t4x2";

fn device(case: &Case) -> Device {
    if case.gpu == TWO { Device::cuda(1) } else { case.device() }
}

const FEATURES: usize = 16;

/// The parameters of the model: a weight and a bias of each layer.
const PARAMETERS: usize = 4;

/// Every number of epochs and of batches occurs within six seeds.
fn epochs(case: &Case) -> usize {
    2 + case.seed as usize % 2
}

fn batches(case: &Case) -> usize {
    3 + case.seed as usize % 3
}

fn given(case: &Case) -> Result<(nn::Sequential, DataLoader<TensorDataset<2>>)> {
    manual_seed(case.seed);
    let layers = (nn::Linear::new(FEATURES, 32)?, nn::ReLU, nn::Linear::new(32, 1)?);
    let model = nn::Sequential::new(layers);
    let x = Tensor::randn(&[case.size * batches(case), FEATURES])?;
    let y = (x.mean_dims(&[1], true)? + 1.0)?;
    let options = DataLoaderOptions { batch_size: case.size, shuffle: true, ..Default::default() };
    Ok((model, DataLoader::new(TensorDataset::new([x, y])?, options)?))
}

fn weights(model: &nn::Sequential) -> Result<Vec<Vec<f32>>> {
    model.parameters().iter().map(|parameter| parameter.tensor().detach().cpu()?.to_vec()).collect()
}

/// The loss of each batch of each epoch, when it is trained as it should be; or with the same batches in every epoch.
fn losses(case: &Case, collected: bool) -> Result<Vec<Vec<f64>>> {
    case.machine().enter(|| {
        let (model, loader) = given(case)?;
        let device = case.device();
        model.to(device)?;
        let options = AdamOptions { lr: 1e-2, ..Default::default() };
        let mut optimizer = optim::Adam::new(model.parameters(), options)?;
        let new = || loader.iter().collect::<Result<Vec<_>>>();
        let once = if collected { Some(new()?) } else { None };
        let mut all = Vec::new();
        for _ in 0..epochs(case) {
            let mut losses = Vec::new();
            for [x, y] in once.clone().map_or_else(new, Ok)? {
                let (x, y) = (x.to(device)?, y.to(device)?);
                let loss = nn::MSELoss::default().forward(&model.forward(&x)?, &y)?;
                optimizer.zero_grad();
                loss.backward()?;
                optimizer.step()?;
                losses.push(loss.item()?);
            }
            all.push(losses);
        }
        Ok(all)
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let (epochs, batches) = (epochs(case), batches(case));
    let steps = epochs * batches;
    if let Some(operand) = seen.left_behind() {
        let diagnosis = match operand.learned {
            true => Diagnosis::new("model-left", "The batch is on the GPU, but the model is not.")
                .idea("Move the model once, before the loops. Its parameters stay where they are put."),
            false => Diagnosis::new("batch-left", "The model is on the GPU, but a part of the batch is not.")
                .idea("The loader makes batches on the host. Move both tensors of each batch when its turn comes."),
        };
        return Err(diagnosis.seen(format!("`{}` is on the CPU", operand.name)).report(seen));
    }
    if let Ended::Failed { message, .. } = &seen.ended
        && message.contains("modified by an inplace operation")
    {
        return Err(Diagnosis::new("step-after-forward", "A step changes the parameters between forward and backward.")
            .seen("`backward` finds parameters that are not those of the forward pass")
            .expected("`step` after `backward`")
            .idea("The gradients of a loss are computed with the parameters that the loss was computed with.")
            .report(seen));
    }
    if let Ended::Failed { message, .. } = &seen.ended
        && message.contains("does not require grad")
    {
        return Err(Diagnosis::new("no-graph", "The loss does not know how it was computed.")
            .seen("`backward` on a loss that depends on no parameter")
            .expected("a loss that depends on those of the model")
            .idea("Within `no_grad`, and after `detach()`, nothing is remembered for `backward`. They are for evaluation, and for a loss that is kept."));
    }
    let means = seen.returned()?;
    if seen.fact("elsewhere") == &Value::Flag(true) {
        return Err(Diagnosis::new("another-device", "The training runs on another GPU, not on the one that `device` names.")
            .seen("memory of cuda:0 is used")
            .expected("memory of cuda:1, which is `device` here")
            .idea("The caller decides on the device, and the function uses the one that it is given."));
    }
    // Who leaves out batches, or parts of a step, has fewer kernels, too. But nobody computes this model without a product.
    let launched = seen.count(CallKind::Launch);
    if case.gpu != "none" && !seen.of(CallKind::Launch).any(|call| call.name == "gemm") {
        return Err(Diagnosis::new("on-the-cpu", "It trains, but on the CPU.")
            .seen(format!("kernels on the GPU: {launched}, and no matrix product among them"))
            .expected(format!("{} kernels", right.count(CallKind::Launch)))
            .idea("Model and batches are together, so nothing complains. But both belong on `device`."));
    }
    if case.gpu != "none" {
        judge_steps(case, seen, right)?;
    }
    if means.list().len() != epochs {
        let count = means.list().len();
        let diagnosis = match count == steps {
            true => Diagnosis::new("each-loss", "The loss of each batch is returned."),
            false => Diagnosis::new("count", "The function does not return one number for each epoch."),
        };
        return Err(diagnosis
            .seen(format!("{count} numbers"))
            .expected(format!("{epochs}: a mean for each epoch of {batches} batches"))
            .idea("A single loss says as much about its batch as about the model. The mean of an epoch is steadier."));
    }
    // The sum of a few f32 losses depends on the order by some 1e-7 of it. The mistakes below are off by 1e-2 and more.
    if means.is_near(right.value(), 1e-4) {
        return Ok(());
    }
    let last = |means: &Value| means.list().last().and_then(Value::number).unwrap_or(f64::NAN);
    let is = |numbers: Vec<f64>| {
        means.is_near(&Value::List(numbers.into_iter().map(Value::Number).collect()), 1e-4)
    };
    let each = |of: fn(&[f64]) -> f64| -> Vec<f64> {
        losses(case, false).unwrap_or_default().iter().map(|losses| of(losses)).collect()
    };
    let sums = each(|losses| losses.iter().sum());
    let told = |diagnosis: Diagnosis| {
        diagnosis
            .seen(format!("{:.5} for the last epoch", last(means)))
            .expected(format!("{:.5}, the mean of {batches} losses", last(right.value())))
    };
    if is(each(|losses| losses[losses.len() - 1])) {
        return Err(told(Diagnosis::new("last-loss", "Your code returns the loss of each epoch's last batch."))
            .idea("A few samples picked by chance decide it. The mean over the epoch is steadier."));
    }
    if is(sums.clone()) {
        return Err(told(Diagnosis::new("sum", "The losses of an epoch are added, but not divided."))
            .idea("A sum grows with the number of batches. Only a mean can be compared with that of other data."));
    }
    if is(sums.iter().map(|sum| sum / (batches * case.size) as f64).collect()) {
        return Err(told(Diagnosis::new("divided-by-samples", "The sum is divided by the number of samples."))
            .idea("The loss of a batch is a mean over its samples already. Divide by the number of batches."));
    }
    let so_far = |epoch: usize| sums[..=epoch].iter().sum::<f64>() / ((epoch + 1) * batches) as f64;
    if is((0..epochs).map(so_far).collect()) {
        return Err(told(Diagnosis::new("running-mean", "Each mean includes the losses of all earlier epochs."))
            .idea("Whatever belongs to an epoch, such as the list or the sum of its losses, is made anew when the epoch begins."));
    }
    let collected = losses(case, true).unwrap_or_default();
    if is(collected.iter().map(|losses| losses.iter().sum::<f64>() / batches as f64).collect()) {
        return Err(told(Diagnosis::new("same-order", "Every epoch has the same batches, in the same order."))
            .idea(
                "The loader shuffles whenever a loop begins over it. Loop over the loader itself in each epoch; \
                 collected batches also stay in memory, all of them.",
            ));
    }
    let forward = launches(seen, LOSS_OPERATION);
    if forward > launches(right, LOSS_OPERATION) {
        let of_one = launches(right, LOSS_OPERATION) / steps;
        return Err(Diagnosis::new("other-losses", "Losses are computed more than once a batch, and the returned ones are not those of the steps.")
            .seen(format!("{} forward passes with a loss", forward / of_one))
            .expected(format!("{steps}, one a batch"))
            .idea("The loss that `backward` starts from is the one to keep. It tells how good the model was before this step."));
    }
    Err(told(Diagnosis::new("losses", "These are not the losses of the right training run."))
        .idea("Each batch is one step. Are the loss, the optimizer and its options those of the task?"))
}

/// Has each batch made its step, with its own gradients? The GPU has seen it.
fn judge_steps(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let (epochs, batches) = (epochs(case), batches(case));
    let steps = epochs * batches;
    let line_of = |operation: &str| {
        let is = |name: &str| name == operation;
        let mut calls = seen.of(CallKind::Launch);
        calls.find(|call| call.operation.as_deref().is_some_and(is)).and_then(|call| call.line)
    };
    let line = line_of(ADAM);
    // Who writes the loss by hand has none of these.
    let losses = launches(seen, LOSS_OPERATION);
    if losses > 0 && losses < launches(right, LOSS_OPERATION) {
        let of_one = launches(right, LOSS_OPERATION) / steps;
        return Err(Diagnosis::new("not-all-batches", "Not every batch is trained on.")
            .seen(format!("{} forward passes with a loss", losses / of_one))
            .expected(format!("{steps}: {batches} batches in each of {epochs} epochs"))
            .idea("An epoch is one pass through all the data."));
    }
    let is_backward = |operation: &str| operation.contains("Backward");
    let mut kernels = seen.of(CallKind::Launch);
    let backward = kernels.find(|call| call.operation.as_deref().is_some_and(is_backward));
    if backward.is_none() {
        return Err(Diagnosis::new("no-backward", "No gradient is ever computed.")
            .seen("no backward pass")
            .expected(format!("{steps}, one a batch"))
            .idea("`step` changes only parameters that have a gradient, and says nothing about the others."));
    }
    let updates = launches(seen, ADAM) / PARAMETERS;
    let updated = |diagnosis: Diagnosis| {
        diagnosis
            .seen(format!("{updates} steps of Adam that changed parameters"))
            .expected(format!("{steps}, one a batch"))
    };
    if updates == 0 && seen.fact("changed") == &Value::Flag(true) {
        return Err(updated(Diagnosis::new("not-adam", "The parameters change, but it is not Adam that changes them."))
            .idea("`optim::Adam::new(model.parameters(), options)` makes the optimizer that is asked for."));
    }
    let left = seen.fact("gradients") == &Value::Flag(true);
    if updates == 0 && !left {
        return Err(updated(Diagnosis::new(
            "zeroed-before-the-step",
            "The gradients are forgotten before they are used: nothing is learned.",
        ))
        .idea("`step` passes over parameters without a gradient, and says nothing. So `zero_grad` must not come between `backward` and `step`."));
    }
    if updates == 0 {
        return Err(updated(Diagnosis::new(
            "step-before-backward",
            "There are gradients, and no step uses them: nothing is learned.",
        ))
        .idea("`backward` makes the gradients and `step` uses them, in this order, with no `zero_grad` in between."));
    }
    if updates == epochs {
        return Err(updated(Diagnosis::new("one-step-an-epoch", "The parameters change once an epoch."))
            .idea("The batches of an epoch are there so that the model learns from each. A step belongs to a batch.")
            .at(line));
    }
    if updates < steps {
        return Err(updated(Diagnosis::new(
            "gradients-of-the-batch-before",
            "A step uses the gradients of the batch before, and those of the last batch are never used.",
        ))
        .idea("A step comes after the backward pass of its own batch.")
        .at(line));
    }
    // A parameter that has a gradient gets the next one added to it, by a kernel. If no gradient is set to zero within an
    // epoch, it gets one for each batch but the first. A sum of losses on the same line would be one a batch: less.
    let backward_line = backward.and_then(|call| call.line);
    let added = seen
        .of(CallKind::Launch)
        .filter(|call| call.line == backward_line && call.operation.as_deref() == Some("add"))
        .count();
    let least = PARAMETERS * epochs * (batches - 1);
    if added >= least + PARAMETERS {
        return Err(Diagnosis::new("gradients-add-up", "The gradients of all batches add up.")
            .seen(format!("{added} gradients added to earlier ones"))
            .expected("none")
            .idea("`backward` adds to the gradients that are there. `zero_grad` forgets them, anywhere between `step` and the next `backward`.")
            .at(backward_line));
    }
    if added >= least {
        return Err(Diagnosis::new("zeroed-once-an-epoch", "The gradients of an epoch add up.")
            .seen(format!("{added} gradients added to earlier ones"))
            .expected("none")
            .idea("`backward` adds to the gradients that are there. Forget them once for each batch, not once for each epoch.")
            .at(backward_line));
    }
    // Adam fills its two averages of each parameter with zeros, on the line of its step, when it first sees it.
    let fills = seen
        .of(CallKind::Launch)
        .filter(|call| call.line.is_some() && call.line == line && call.name.starts_with("fill"))
        .count();
    let optimizers = fills / (2 * PARAMETERS);
    if optimizers > 1 {
        return Err(Diagnosis::new("new-optimizer", "A new optimizer is made, and the state of the old one is lost.")
            .seen(format!("Adam begins with averages of zero {optimizers} times"))
            .expected("once")
            .idea("Adam keeps two averages for each parameter, and they take many steps to be of use. Make it once, before the loops.")
            .at(line));
    }
    Ok(())
}

const ADAM: &str = "_fused_adam_";
const LOSS_OPERATION: &str = "mse_loss";

/// The kernels that an operation launched. Each of those above launches the same ones whatever the style.
fn launches(seen: &Seen, operation: &str) -> usize {
    let is = |name: &str| name == operation;
    seen.of(CallKind::Launch).filter(|call| call.operation.as_deref().is_some_and(is)).count()
}
