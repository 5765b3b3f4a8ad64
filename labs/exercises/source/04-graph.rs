//! Losses that keep the graphs they came from.

use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// Trains the model for some epochs. Returns the mean loss over the held-out batches
    /// after each of them. Everything is on the device already.
    pub fn train(
        model: &nn::Sequential,
        training: &[(Tensor, Tensor)],
        held_out: &[(Tensor, Tensor)],
        epochs: usize,
    ) -> Result<Vec<f64>> {
        let loss_fn = nn::CrossEntropyLoss::default();
        let options = SGDOptions { lr: 0.1, ..Default::default() };
        let mut optimizer = optim::SGD::new(model.parameters(), options)?;

        let mut curve = Vec::new();
        for _ in 0..epochs {
            for (x, y) in training {
                optimizer.zero_grad();
                loss_fn.forward(&model.forward(x)?, y)?.backward()?;
                optimizer.step()?;
            }

            let mut losses = Vec::new();
            for (x, y) in held_out {
                let loss = loss_fn.forward(&model.forward(x)?, y)?;
                losses.push(loss.detach());
            }
            curve.push(Tensor::stack(&losses, 0)?.mean()?);
        }
        curve.iter().map(|mean| mean.item()).collect()
    }
    // END
}

type Train = fn(
    &nn::Sequential,
    &[(Tensor, Tensor)],
    &[(Tensor, Tensor)],
    usize,
) -> Result<Vec<f64>>;

/// The exercise before this one in the chapter.
pub const AFTER: &str = "04-accumulate";

pub static EXERCISE: Exercise = Exercise {
    id: "04-graph",
    title: "Small numbers with long memories",
    kind: Kind::Fix,
    task: "After each epoch `train` computes the loss of every held-out batch, and at the end it returns the mean of \
           each epoch. A loss is one number, yet each of them holds as much memory as a forward pass, until \
           there is none left. Fix it: when a held-out batch begins, only one number may be left in memory \
           from each batch before it. The training and the returned means must stay as they are.",
    hints: [
        "Between one epoch and the next, only a list survives. What does a tensor hold on to, besides its number?",
        "A loss knows how it was computed, and so it holds what the layers kept for the backward pass. You need the number \
         without the graph.",
        "`loss.detach()` is the number alone, on the device; `loss.item()?` is the number alone, on the host.",
    ],
    afterwards: "In a training loop you would hardly notice the same list, because `backward` frees what the layers kept. In an \
                 evaluation nobody calls `backward`.",
    source: include_str!("04-graph.rs"),
    functions: &[(
        "train",
        "pub fn train(model: &nn::Sequential, training: &[(Tensor, Tensor)], held_out: &[(Tensor, Tensor)], epochs: usize) \
         -> Result<Vec<f64>>",
    )],
    skeleton: &[(PUSH, "losses.push(loss);")],
    styles: &[
        Style {
            name: "numbers",
            edits: &[
                ("let mut losses = Vec::new();", "let mut sum = 0.0;"),
                (PUSH, "sum += loss.item()?;"),
                (CURVE, "curve.push(sum / held_out.len() as f64);"),
                (ITEMS, "Ok(curve)"),
            ],
        },
        Style {
            name: "no_grad",
            edits: &[
                (
                    "let loss = loss_fn.forward(&model.forward(x)?, y)?;",
                    "let loss = no_grad(|| loss_fn.forward(&model.forward(x)?, y))?;",
                ),
                (PUSH, "losses.push(loss);"),
            ],
        },
        Style {
            name: "output_detached",
            edits: &[
                (
                    "let loss = loss_fn.forward(&model.forward(x)?, y)?;",
                    "let output = model.forward(x)?.detach();\n            let loss = loss_fn.forward(&output, y)?;",
                ),
                (PUSH, "losses.push(loss);"),
            ],
        },
        Style {
            name: "sum_of_detached",
            edits: &[
                ("let mut losses = Vec::new();", "let mut sum = Tensor::zeros(&[])?;"),
                (PUSH, "sum = (sum + loss.detach())?;"),
                (CURVE, "curve.push((sum / held_out.len() as f64)?);"),
            ],
        },
        Style {
            name: "one_list",
            edits: &[
                ("let mut losses = Vec::new();\n", "\n"),
                (PUSH, "curve.push(loss.detach().cpu()?);"),
                (CURVE, ""),
                (
                    ITEMS,
                    "let numbers: Result<Vec<f64>> = curve.iter().map(|loss| loss.item()).collect();\n    \
                     let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;\n    \
                     Ok(numbers?.chunks(held_out.len()).map(mean).collect())",
                ),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "loss_pushed",
            what: "The losses are kept as they are, and their graphs with them.",
            edits: &[(PUSH, "losses.push(loss);")],
            diagnosis: "graphs-kept",
        },
        Wrong {
            name: "sum_with_graph",
            what: "The losses are added up, and the sum keeps the graph of each.",
            edits: &[
                ("let mut losses = Vec::new();", "let mut sum = Tensor::zeros(&[])?;"),
                (PUSH, "sum = (sum + loss)?;"),
                (CURVE, "curve.push((sum / held_out.len() as f64)?);"),
            ],
            diagnosis: "sum-with-graph",
        },
        Wrong {
            name: "detached_too_late",
            what: "The mean is detached, but not the losses that it was computed from.",
            edits: &[
                (PUSH, "losses.push(loss);"),
                (CURVE, "curve.push(Tensor::stack(&losses, 0)?.mean()?.detach());"),
            ],
            diagnosis: "detached-too-late",
        },
        Wrong {
            name: "copied",
            what: "A copy of the loss is kept, and a copy has a graph, too.",
            edits: &[(PUSH, "losses.push(loss.copy()?);")],
            diagnosis: "copied",
        },
        Wrong {
            name: "moved_to_the_cpu",
            what: "The loss is moved to the CPU. Its graph stays on the GPU.",
            edits: &[(PUSH, "losses.push(loss.cpu()?);")],
            diagnosis: "moved-to-the-cpu",
        },
        Wrong {
            name: "predictions_kept",
            what: "The predictions are kept instead of the losses, without their graphs.",
            edits: &[
                ("let mut losses = Vec::new();\n", "\n"),
                (
                    "            let loss = loss_fn.forward(&model.forward(x)?, y)?;\n",
                    "            let output = model.forward(x)?.detach();\n",
                ),
                (PUSH, "curve.push(output);"),
                (CURVE, ""),
                (
                    ITEMS,
                    "let mut means = Vec::new();\n    for outputs in curve.chunks(held_out.len()) {\n        \
                     let mut sum = 0.0;\n        for (output, (_, y)) in outputs.iter().zip(held_out) {\n            \
                     sum += loss_fn.forward(output, y)?.item()?;\n        }\n        \
                     means.push(sum / held_out.len() as f64);\n    }\n    Ok(means)",
                ),
            ],
            diagnosis: "predictions-kept",
        },
        Wrong {
            name: "backward_to_free",
            what: "`backward` is called on the held-out losses, because it frees the graph.",
            edits: &[(PUSH, "loss.backward()?;\n            losses.push(loss);")],
            diagnosis: "backward-to-free",
        },
        Wrong {
            name: "trained_without_grad",
            what: "The whole epoch runs within `no_grad`, training included.",
            edits: &[
                (
                    "            loss_fn.forward(&model.forward(x)?, y)?.backward()?;\n",
                    "            no_grad(|| loss_fn.forward(&model.forward(x)?, y))?.backward()?;\n",
                ),
                ("let loss = loss_fn.forward(&model.forward(x)?, y)?;", "let loss = no_grad(|| loss_fn.forward(&model.forward(x)?, y))?;"),
            ],
            diagnosis: "trained-without-grad",
        },
        Wrong {
            name: "all_at_once",
            what: "The held-out batches are joined, and go through the model at once.",
            edits: &[
                (
                    "        let mut losses = Vec::new();\n        for (x, y) in held_out {\n            \
                     let loss = loss_fn.forward(&model.forward(x)?, y)?;\n            losses.push(loss.detach());\n        }\n",
                    "        let xs: Vec<&Tensor> = held_out.iter().map(|(x, _)| x).collect();\n        \
                     let ys: Vec<&Tensor> = held_out.iter().map(|(_, y)| y).collect();\n        \
                     let (x, y) = (Tensor::cat(&xs, 0)?, Tensor::cat(&ys, 0)?);\n        \
                     let loss = no_grad(|| loss_fn.forward(&model.forward(&x)?, &y))?;\n",
                ),
                (CURVE, "curve.push(loss);"),
            ],
            diagnosis: "all-at-once",
        },
        Wrong {
            name: "only_the_last",
            what: "Only the loss of the last held-out batch is kept.",
            edits: &[
                ("let mut losses = Vec::new();", "let mut last = Vec::new();"),
                (PUSH, "last = vec![loss.detach()];"),
                (CURVE, "curve.extend(last);"),
            ],
            diagnosis: "losses",
        },
    ],
    places: &[
        (
            "The loss of a held-out batch",
            &[
                &[],
                &[(
                    "let loss = loss_fn.forward(&model.forward(x)?, y)?;",
                    "let loss = no_grad(|| loss_fn.forward(&model.forward(x)?, y))?;",
                )],
            ],
        ),
        (
            "The value kept from it",
            &[
                &[],
                &[(PUSH, "losses.push(loss);")],
                &[(PUSH, "losses.push(loss.copy()?);")],
                &[(PUSH, "losses.push(loss.cpu()?);")],
            ],
        ),
        (
            "The value kept from the epoch",
            &[&[], &[(CURVE, "curve.push(Tensor::stack(&losses, 0)?.mean()?.detach());")]],
        ),
    ],
    gpus: &["sim:t4", "sim:h200", "none"],
    sizes: &[256, 512],
    observe: |case| observe(case, solution::train),
    judge,
};

const PUSH: &str = "losses.push(loss.detach());";
const CURVE: &str = "curve.push(Tensor::stack(&losses, 0)?.mean()?);";
const ITEMS: &str = "curve.iter().map(|mean| mean.item()).collect()";

const FEATURES: usize = 16;
const HIDDEN: usize = 64;
const CLASSES: usize = 16;

fn epochs(case: &Case) -> usize {
    4 + case.seed as usize % 3
}

fn held_out(case: &Case) -> usize {
    5 + case.seed as usize % 2
}

/// What the forward pass of a held-out batch keeps for the backward pass, at least: what ReLU puts out.
fn activations(case: &Case) -> u64 {
    (case.size * HIDDEN * 4) as u64
}

/// The size of a case is that of a held-out batch. The seed decides on the number of batches and of epochs.
pub fn observe(case: &Case, train: Train) -> Seen {
    case.machine().enter(|| {
        let device = case.device();
        manual_seed(case.seed);
        let given = || -> Result<_> {
            let layers = (nn::Linear::new(FEATURES, HIDDEN)?, nn::ReLU, nn::Linear::new(HIDDEN, CLASSES)?);
            let model = nn::Sequential::new(layers);
            model.to(device)?;
            let batch = |rows| -> Result<(Tensor, Tensor)> {
                let x = Tensor::randn(&[rows, FEATURES])?.to(device)?;
                Ok((x, Tensor::randint(0, CLASSES as i64, &[rows])?.to(device)?))
            };
            let training: Vec<_> = (0..3).map(|_| batch(32)).collect::<Result<_>>()?;
            let held_out: Vec<_> = (0..held_out(case)).map(|_| batch(case.size)).collect::<Result<_>>()?;
            // Takes the workspace for products.
            no_grad(|| model.forward(&training[0].0))?;
            Ok((model, training, held_out))
        };
        let (model, training, held_out) = given().expect("the machine is new");
        crate::observe(case, || train(&model, &training, &held_out, epochs(case)), |_| Ok(()))
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if let Ended::Failed { message, .. } = &seen.ended
        && message.contains("does not require grad")
    {
        return Err(Diagnosis::new("trained-without-grad", "The training has no graph to go back through.")
            .seen(message)
            .expected("training that is recorded, and an evaluation that is not")
            .idea("`no_grad` is for what has no backward pass. Put it around the evaluation, and around nothing else."));
    }
    let means = seen.returned()?;
    let (epochs, batches) = (epochs(case), held_out(case));
    // Rounding aside, which the order of a sum decides, all ways to take the mean give the same.
    if !means.is_near(right.value(), 1e-4) {
        return Err(Diagnosis::new("losses", "`train` does not return the mean losses of this training.")
            .seen(format!("{} numbers, the last of them {}", means.list().len(), last(means)))
            .expected(format!(
                "{epochs}, the last of them {}: the mean over {batches} held-out batches",
                last(right.value())
            ))
            .idea("Forget the graphs, not the numbers: the loss of each held-out batch has its part in the mean."));
    }
    let ways_back = |seen: &Seen| operations(seen, "NllLossBackward0");
    if ways_back(seen) > ways_back(right) {
        return Err(Diagnosis::new("backward-to-free", "`backward` runs for the held-out batches, too.")
            .seen(format!("{} backward passes", ways_back(seen)))
            .expected(format!("{}: one for each batch of the training", ways_back(right)))
            .idea(
                "It does free the graph, at the price of computing gradients that nobody asked for. They stay in the \
                 parameters, and only the next `zero_grad` keeps the model from learning from its own test.",
            ));
    }

    // What a single held-out batch keeps is A and a little; the largest peak of a style that lets it go is that of the
    // solution. So there is room for one that goes late, and none for the graphs of an epoch, which has five batches or six.
    let one = activations(case);
    if seen.peak <= right.peak + one * 3 / 2 {
        return Ok(());
    }
    let of_memory = |id: &str, says: &str| {
        Diagnosis::new(id, says)
            .seen(format!("{} KiB at most", seen.peak / 1024))
            .expected(format!("about {} KiB, however many epochs and held-out batches there are", right.peak / 1024))
    };
    if operations(seen, "cross_entropy") < operations(right, "cross_entropy") {
        return Err(of_memory("all-at-once", "Several held-out batches go through the model at the same time.")
            .idea("A layer's output grows with the rows that go in. That is why data comes in batches."));
    }
    // If it stays, at least one block a batch is still held when the last epoch trains; of the solution's losses one an epoch.
    let stays = held_in_the_last_training(seen)
        >= held_in_the_last_training(right) + ((batches - 1) * (epochs - 1)) as i64;
    if !stays && case.gpu != "none" {
        return Err(of_memory("detached-too-late", "Each epoch holds the graphs of all its held-out batches until it ends.")
            .idea(
                "If you hold the losses, or a sum of them, you hold their graphs. Cut each loss off as soon as it is computed: \
                 there is nothing to wait for.",
            ));
    }
    // With its graph, a batch keeps A at least; its predictions alone are a quarter of that.
    if seen.peak - right.peak < one / 2 * (batches * epochs) as u64 {
        return Err(of_memory("predictions-kept", "No graph is kept, but each batch leaves something as large as its predictions.")
            .idea(format!(
                "A prediction has {CLASSES} numbers a row, and a loss has one for all rows. Compute the loss first, and keep only that."
            )));
    }
    let total = epochs * batches;
    if operations(seen, "clone") >= total {
        return Err(of_memory("copied", "The copies hold the graphs, as the losses did.")
            .seen(format!("{} KiB at most, and {} copies", seen.peak / 1024, operations(seen, "clone")))
            .idea("Copying is an operation like any other: it is recorded, and its result knows what it was copied from."));
    }
    if operations(seen, "_to_copy") >= total {
        return Err(of_memory("moved-to-the-cpu", "The losses are on the CPU, and their graphs still on the GPU.")
            .idea(
                "`.cpu()` is recorded, because a backward pass could go through it to the GPU. So the loss on the CPU still holds \
                 its graph there. Moving a tensor does not cut it off.",
            )
            .at(seen.line(CallKind::ToHost)));
    }
    // The first of a sum may need no addition.
    if operations(seen, "add") >= total - epochs {
        return Err(of_memory("sum-with-graph", "The sum holds the graph of every loss that was added to it.")
            .idea("A sum of tensors is a tensor with a graph, and everything that was added is in that graph. Add numbers, or tensors without a graph."));
    }
    Err(of_memory("graphs-kept", "The graph of every held-out loss stays in memory, epoch after epoch.")
        .idea("A loss is one number, and a way back to all that it was computed from. You keep both, but need only the number."))
}

/// How many kernels, or copies, an operation has.
fn operations(seen: &Seen, name: &str) -> usize {
    let mut calls = seen.calls.iter().filter(|call| matches!(call.kind, CallKind::Launch | CallKind::ToHost));
    calls.by_ref().filter(|call| call.operation.as_deref() == Some(name)).count()
}

/// Blocks of memory that are held when the optimizer takes its last step, beyond those held at first.
fn held_in_the_last_training(seen: &Seen) -> i64 {
    let is_step = |call: &crate::Call| call.operation.as_deref() == Some("_fused_sgd_");
    let end = seen.calls.iter().rposition(is_step).unwrap_or(0);
    let change = |call: &crate::Call| match call.kind {
        CallKind::Allocate => 1,
        CallKind::Free => -1,
        _ => 0,
    };
    seen.calls[..end].iter().map(change).sum()
}

fn last(numbers: &Value) -> String {
    numbers.list().last().and_then(Value::number).map_or("none".to_owned(), |number| format!("{number:.4}"))
}
