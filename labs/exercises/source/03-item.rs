//! A number that is asked for too often.

use todevice::prelude::*;

use crate::{Call, CallKind, Case, Diagnosis, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// Trains the model on each batch once an epoch. Model and batches are on the device
    /// already. Returns the mean loss of each epoch.
    pub fn train(
        model: &nn::Sequential,
        batches: &[(Tensor, Tensor)],
        epochs: usize,
    ) -> Result<Vec<f64>> {
        let loss_fn = nn::CrossEntropyLoss::default();
        let options = SGDOptions { lr: 0.1, ..Default::default() };
        let mut optimizer = optim::SGD::new(model.parameters(), options)?;

        let mut means = Vec::new();
        for _epoch in 0..epochs {
            let mut total = Tensor::zeros((&[], batches[0].0.device()))?;
            for (x, y) in batches {
                let loss = loss_fn.forward(&model.forward(x)?, y)?;
                optimizer.zero_grad();
                loss.backward()?;
                optimizer.step()?;
                total = (&total + &loss.detach())?;
            }
            means.push(total.item()? / batches.len() as f64);
        }
        Ok(means)
    }
    // END
}

type Train = fn(&nn::Sequential, &[(Tensor, Tensor)], usize) -> Result<Vec<f64>>;

const NEW: &str = "        let mut total = Tensor::zeros((&[], batches[0].0.device()))?;\n";
const EPOCH: &str = "    for _epoch in 0..epochs {\n";
const BATCH: &str = "        for (x, y) in batches {\n";
const LOSS: &str = "            let loss = loss_fn.forward(&model.forward(x)?, y)?;\n";
const STEP: &str = "            optimizer.step()?;\n";
const ADD: &str = "            total = (&total + &loss.detach())?;\n";
const MEAN: &str = "        means.push(total.item()? / batches.len() as f64);\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "03-loop";

pub static EXERCISE: Exercise = Exercise {
    id: "03-item",
    title: "Are we there yet?",
    kind: Kind::Fix,
    task: "This loop trains as it should, and returns the mean loss of each epoch. But in every step the host stops and waits \
           for the GPU, and then the GPU waits for the host. Return the same numbers, and let the host wait only \
           when all batches of an epoch have been queued. Once an epoch is enough.",
    hints: [
        "Which call in the inner loop needs a number that the GPU has not computed yet?",
        "A loss is a tensor. It can be added to others, or kept, where it is. Only what the function returns has to come to the host.",
        "`total` begins as `Tensor::zeros((&[], device))?` in each epoch, gets `total = (&total + &loss.detach())?` in \
         each step, and is read after the loop.",
    ],
    afterwards: "`item()` looks like reading a variable. But it copies, and it waits for all that was queued before.",
    source: include_str!("03-item.rs"),
    functions: &[(
        "train",
        "pub fn train(model: &nn::Sequential, batches: &[(Tensor, Tensor)], epochs: usize) -> Result<Vec<f64>>",
    )],
    skeleton: ITEM_EACH_STEP,
    styles: &[
        Style {
            name: "list",
            edits: &[
                (NEW, "        let mut losses = Vec::new();\n"),
                (ADD, "            losses.push(loss.detach());\n"),
                (MEAN, "        means.push(Tensor::stack(&losses, 0)?.mean()?.item()?);\n"),
            ],
        },
        Style {
            name: "in_place",
            edits: &[
                (NEW, "        let total = Tensor::zeros(&[])?.to(batches[0].1.device())?;\n"),
                (ADD, "            no_grad(|| total.add_(&loss))?;\n"),
            ],
        },
        Style {
            name: "to_vec",
            edits: &[
                (NEW, "        let mut losses = vec![];\n"),
                (ADD, "            losses.push(loss.detach());\n"),
                (
                    MEAN,
                    "        let losses = Tensor::stack(&losses, 0)?.to_vec::<f32>()?;\n        \
                     let sum: f64 = losses.iter().map(|&loss| f64::from(loss)).sum();\n        \
                     means.push(sum / batches.len() as f64);\n",
                ),
            ],
        },
        Style {
            name: "step_by_hand",
            edits: &[(STEP, STEP_BY_HAND)],
        },
        Style {
            name: "option",
            edits: &[
                (NEW, "        let mut total: Option<Tensor> = None;\n"),
                (
                    ADD,
                    "            let loss = loss.detach();\n            total = Some(match total {\n                \
                     Some(total) => (total + loss)?,\n                None => loss,\n            });\n",
                ),
                (MEAN, "        let sum = total.map_or(Ok(0.0), |total| total.item())?;\n        means.push(sum / batches.len() as f64);\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "item_each_step",
            what: "Each step reads its loss with `item()`.",
            edits: ITEM_EACH_STEP,
            diagnosis: "item-each-step",
        },
        Wrong {
            name: "cpu_each_step",
            what: "Each step copies its loss to the CPU, and keeps it there.",
            edits: &[
                (NEW, "        let mut losses = Vec::new();\n"),
                (ADD, "            losses.push(loss.detach().cpu()?);\n"),
                (MEAN, "        means.push(Tensor::stack(&losses, 0)?.mean()?.item()?);\n"),
            ],
            diagnosis: "copied-each-step",
        },
        Wrong {
            name: "printed_each_step",
            what: "The sum stays on the device, but each step prints its loss.",
            edits: &[(ADD, "            total = (&total + &loss.detach())?;\n            println!(\"{loss}\");\n")],
            diagnosis: "printed-each-step",
        },
        Wrong {
            name: "every_second_step",
            what: "Every second step reads the sum.",
            edits: &[
                (BATCH, "        for (i, (x, y)) in batches.iter().enumerate() {\n"),
                (STEP, STEP_BY_HAND),
                (
                    ADD,
                    "            total = (&total + &loss.detach())?;\n            if i % 2 == 1 {\n                \
                     println!(\"{:.4}\", total.item()? / (i + 1) as f64);\n            }\n",
                ),
            ],
            diagnosis: "still-in-the-loop",
        },
        Wrong {
            name: "read_one_by_one",
            what: "The losses are kept on the device, and read one by one at the end of the epoch.",
            edits: &[
                (NEW, "        let mut losses = Vec::new();\n"),
                (ADD, "            losses.push(loss.detach());\n"),
                (
                    MEAN,
                    "        let mut total = 0.0;\n        for loss in &losses {\n            \
                     total += loss.item()?;\n        }\n        means.push(total / batches.len() as f64);\n",
                ),
            ],
            diagnosis: "read-one-by-one",
        },
        Wrong {
            name: "synchronized",
            what: "The sum stays on the device, but each step synchronizes.",
            edits: &[
                (STEP, STEP_BY_HAND),
                (ADD, "            total = (&total + &loss.detach())?;\n            todevice::cuda::synchronize()?;\n"),
            ],
            diagnosis: "synchronized-each-step",
        },
        Wrong {
            name: "last_loss",
            what: "Only the last loss of the epoch is kept and read.",
            edits: &[(ADD, "            total = loss.detach();\n"), (MEAN, "        means.push(total.item()?);\n")],
            diagnosis: "last-loss",
        },
        Wrong {
            name: "not_divided",
            what: "The sum is read, but not divided.",
            edits: &[(MEAN, "        means.push(total.item()?);\n")],
            diagnosis: "sum",
        },
        Wrong {
            name: "never_reset",
            what: "The sum is made once, before the epochs, and goes on growing.",
            edits: &[
                (NEW, ""),
                (EPOCH, "    let mut total = Tensor::zeros((&[], batches[0].0.device()))?;\n    for _epoch in 0..epochs {\n"),
            ],
            diagnosis: "never-reset",
        },
        Wrong {
            name: "on_the_cpu",
            what: "Model and batches go to the CPU, where reading costs nothing.",
            edits: &[
                (EPOCH, "    model.to(Device::Cpu)?;\n    for _epoch in 0..epochs {\n"),
                (NEW, "        let mut total = Tensor::zeros(&[])?;\n"),
                (LOSS, "            let (x, y) = (x.cpu()?, y.cpu()?);\n            let loss = loss_fn.forward(&model.forward(&x)?, &y)?;\n"),
            ],
            diagnosis: "on-the-cpu",
        },
        Wrong {
            name: "not_trained",
            what: "The line with `step` is lost in the change.",
            edits: &[(STEP, "")],
            diagnosis: "losses",
        },
    ],
    places: &[
        (
            "What becomes of each loss",
            &[
                &[],
                ITEM_EACH_STEP,
                &[
                    (NEW, "        let mut losses = Vec::new();\n"),
                    (ADD, "            losses.push(loss.detach().cpu()?);\n"),
                    (MEAN, "        means.push(Tensor::stack(&losses, 0)?.mean()?.item()?);\n"),
                ],
                &[
                    (NEW, "        let mut losses = Vec::new();\n"),
                    (ADD, "            losses.push(loss.detach());\n"),
                    (MEAN, "        means.push(Tensor::stack(&losses, 0)?.mean()?.item()?);\n"),
                ],
                &[
                    (NEW, "        let mut losses = Vec::new();\n"),
                    (ADD, "            losses.push(loss.detach());\n"),
                    (
                        MEAN,
                        "        let mut total = 0.0;\n        for loss in &losses {\n            \
                         total += loss.item()?;\n        }\n        means.push(total / batches.len() as f64);\n",
                    ),
                ],
                &[(ADD, "            total = (&total + &loss.detach())?;\n            println!(\"{loss}\");\n")],
                &[(ADD, "            total = loss.detach();\n"), (MEAN, "        means.push(total.item()?);\n")],
            ],
        ),
    ],
    gpus: &["sim:t4", "sim:h200", "none"],
    sizes: &[4, 7],
    observe: |case| observe(case, solution::train),
    judge,
};

const STEP_BY_HAND: &str = "            for parameter in model.parameters() {\n                \
                            let gradient = parameter.grad().expect(\"it learns\");\n                \
                            no_grad(|| parameter.tensor().sub_(&(&gradient * 0.1)?))?;\n            }\n";

const ITEM_EACH_STEP: &[(&str, &str)] = &[
    (NEW, "        let mut total = 0.0;\n"),
    (ADD, "            total += loss.item()?;\n"),
    (MEAN, "        means.push(total / batches.len() as f64);\n"),
];

/// The size of a case is the number of batches. How many epochs there are depends on the seed.
pub fn observe(case: &Case, train: Train) -> Seen {
    case.machine().enter(|| {
        let (model, batches) = given(case).expect("the machine is new");
        crate::observe(case, || train(&model, &batches, epochs(case)), |_| Ok(()))
    })
}

const FEATURES: usize = 256;
const SAMPLES: usize = 256;

fn epochs(case: &Case) -> usize {
    2 + case.seed as usize % 2
}

fn given(case: &Case) -> Result<(nn::Sequential, Vec<(Tensor, Tensor)>)> {
    manual_seed(case.seed);
    let device = case.device();
    let model = nn::Sequential::new((nn::Linear::new(FEATURES, 10)?,));
    model.to(device)?;
    let mut all = Vec::new();
    for _ in 0..case.size {
        let x = Tensor::randn(&[SAMPLES, FEATURES])?.to(device)?;
        all.push((x, Tensor::randint(0, 10, &[SAMPLES])?.to(device)?));
    }
    Ok((model, all))
}

/// The loss of each batch of each epoch.
fn losses(case: &Case) -> Result<Vec<Vec<f64>>> {
    case.machine().enter(|| {
        let (model, batches) = given(case)?;
        let options = SGDOptions { lr: 0.1, ..Default::default() };
        let mut optimizer = optim::SGD::new(model.parameters(), options)?;
        let mut all = Vec::new();
        for _ in 0..epochs(case) {
            let mut losses = Vec::new();
            for (x, y) in &batches {
                let loss = nn::CrossEntropyLoss::default().forward(&model.forward(x)?, y)?;
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

/// The calls that make the host wait while some batches of an epoch are trained on, and others are not yet.
fn in_the_loop<'a>(case: &Case, seen: &'a Seen) -> Vec<&'a Call> {
    // Steps can be written by hand. What every batch has is one backward pass, and that begins with its loss.
    let mut batches = 0;
    let mut waits = Vec::new();
    let mut before = None;
    for call in &seen.calls {
        let is_backward = call.operation.as_deref() == Some(BACKWARD_OPERATION);
        match call.kind {
            CallKind::Launch => {
                batches += usize::from(is_backward && before != Some(BACKWARD_OPERATION));
                before = call.operation.as_deref();
            }
            CallKind::ToHost | CallKind::Wait if !batches.is_multiple_of(case.size) => waits.push(call),
            _ => {}
        }
    }
    waits
}

/// The kernels with which a backward pass from a cross-entropy begins.
const BACKWARD_OPERATION: &str = "NllLossBackward0";

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let (epochs, batches) = (epochs(case), case.size);
    let means = seen.returned()?;
    if case.gpu != "none" {
        judge_waits(case, seen, right)?;
    }
    // A sum of a few f32 losses depends on its order by some 1e-7 of it. The mistakes below are off by 1e-3 and more.
    if means.is_near(right.value(), 1e-4) {
        return Ok(());
    }
    let is = |numbers: Vec<f64>| {
        means.is_near(&Value::List(numbers.into_iter().map(Value::Number).collect()), 1e-4)
    };
    let last = |means: &Value| means.list().last().and_then(Value::number).unwrap_or(f64::NAN);
    let told = |diagnosis: Diagnosis| {
        diagnosis
            .seen(format!("{:.5}, the last of {} numbers", last(means), means.list().len()))
            .expected(format!("{:.5}, the last of {epochs}: a mean of {batches} losses", last(right.value())))
    };
    let losses = losses(case).unwrap_or_default();
    let sums: Vec<f64> = losses.iter().map(|losses| losses.iter().sum()).collect();
    let so_far = |epoch: usize| sums[..=epoch].iter().sum::<f64>() / batches as f64;
    if is(losses.iter().map(|losses| losses[batches - 1]).collect()) {
        return Err(told(Diagnosis::new("last-loss", "The numbers are the losses of the last batches."))
            .idea("Reading less often is right, but what is read must still contain every batch."));
    }
    if is(sums.clone()) {
        return Err(told(Diagnosis::new("sum", "The numbers are sums."))
            .idea("What is read once an epoch is a sum on the device. The host divides it."));
    }
    if is((0..epochs).map(so_far).collect()) {
        return Err(told(Diagnosis::new("never-reset", "The sum goes on from epoch to epoch."))
            .idea("Whatever belongs to an epoch is made anew when the epoch begins. A tensor is no exception."));
    }
    Err(told(Diagnosis::new("losses", "These are not the means of the right training run."))
        .idea("Only how the losses are collected was to change. The training was right."))
}

/// How often has the host waited, and when?
fn judge_waits(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let (epochs, batches) = (epochs(case), case.size);
    let steps = epochs * batches;
    // A mean is computed where its losses are: a few kernels more or less are a matter of style, half of them are not.
    if seen.count(CallKind::Launch) < right.count(CallKind::Launch) / 2 {
        return Err(Diagnosis::new("on-the-cpu", "It trains on the CPU.")
            .seen(format!("{} kernels on the GPU", seen.count(CallKind::Launch)))
            .expected(format!("{}", right.count(CallKind::Launch)))
            .idea("On the CPU there is no wait, because there is nobody to wait for. The arithmetic belongs on the GPU."));
    }
    let waits = in_the_loop(case, seen);
    if !waits.is_empty() {
        let by = |kind: CallKind, operation: &str| {
            let is = |call: &&&Call| call.kind == kind && call.operation.as_deref() == Some(operation);
            waits.iter().filter(is).count()
        };
        // In each epoch the wait of one step is not in the loop: that before the first batch, or that after the last.
        let each_step = epochs * (batches - 1);
        let diagnosis = if waits.len() < each_step {
            Diagnosis::new("still-in-the-loop", "It waits less often, but still within the epoch.")
                .idea("Whenever the host reads something while batches are left, the GPU runs dry. Read when all of them are queued.")
        } else if by(CallKind::Wait, "synchronize") >= each_step {
            Diagnosis::new("synchronized-each-step", "Each step waits for the GPU, and reads nothing.")
                .idea("Operations on a GPU come in order without it. Synchronize to stop a clock, not to train.")
        } else if by(CallKind::ToHost, "print") >= each_step {
            Diagnosis::new("printed-each-step", "Each step prints a tensor, and waits for its numbers.")
                .idea("To print a number, the host must have it. `println!` of a tensor is an `item()` in disguise.")
        } else if by(CallKind::ToHost, "_to_copy") >= each_step {
            Diagnosis::new("copied-each-step", "Each step copies its loss to the CPU, and waits for it.")
                .idea("`cpu()` waits as `item()` does: there is nothing to copy until the loss has been computed.")
        } else {
            Diagnosis::new("item-each-step", "Each step reads a number, and waits for it.")
                .idea("The host cannot queue the next step while it waits, so the GPU has nothing to do. Keep the sum on the GPU.")
        };
        let mut lines: Vec<u32> = waits.iter().filter_map(|call| call.line).collect();
        lines.sort_unstable();
        return Err(diagnosis
            .seen(format!("{} waits in the middle of an epoch, in {steps} steps", waits.len()))
            .expected("none: the host waits when an epoch is over")
            .at(lines.first().copied())
            .timelines(seen, right));
    }
    // A program that reads its last loss, too, or that reads the mean twice, is still far from one read a batch.
    let reads = seen.count(CallKind::ToHost);
    if reads >= steps {
        return Err(Diagnosis::new("read-one-by-one", "The losses of an epoch are read one by one.")
            .seen(format!("{reads} copies to the host"))
            .expected(format!("{epochs}: one an epoch"))
            .idea(
                "The first read waits for the whole epoch, and the others cost a copy each. Let the GPU add them up: \
                 one number is enough.",
            )
            .at(seen.line(CallKind::ToHost))
            .timelines(seen, right));
    }
    Ok(())
}
