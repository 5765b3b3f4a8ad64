//! The right number.

use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// The share of held-out samples that the model, which is on the device, assigns to
    /// their class. Afterwards the model is in training mode.
    pub fn accuracy(
        model: &nn::Sequential,
        held_out: &[(Tensor, Tensor)],
        device: Device,
    ) -> Result<f64> {
        model.eval();
        let mut right = Tensor::zeros((&[], device))?;
        let mut samples = 0;
        for (x, y) in held_out {
            let (x, y) = (x.to(device)?, y.to(device)?);
            let output = no_grad(|| model.forward(&x))?;
            let hits = output.argmax(1, false)?.eq(&y)?;
            right = (right + hits.sum()?)?;
            samples += y.numel();
        }
        model.train();
        Ok(right.item()? / samples as f64)
    }
    // END
}

type Accuracy = fn(&nn::Sequential, &[(Tensor, Tensor)], Device) -> Result<f64>;

const EVAL: &str = "    model.eval();\n";
const RIGHT: &str = "    let mut right = Tensor::zeros((&[], device))?;\n";
const SAMPLES: &str = "    let mut samples = 0;\n";
const FOR: &str = "    for (x, y) in held_out {\n";
const MOVE: &str = "        let (x, y) = (x.to(device)?, y.to(device)?);\n";
const FORWARD: &str = "        let output = no_grad(|| model.forward(&x))?;\n";
const HITS: &str = "        let hits = output.argmax(1, false)?.eq(&y)?;\n";
const ADD: &str = "        right = (right + hits.sum()?)?;\n";
const COUNT: &str = "        samples += y.numel();\n";
const TRAIN: &str = "    model.train();\n";
const SHARE: &str = "    Ok(right.item()? / samples as f64)\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "03-optimizer";

pub static EXERCISE: Exercise = Exercise {
    id: "03-accuracy",
    title: "The right number",
    kind: Kind::Write,
    task: "Write `accuracy`, the number that tells whether a network has learned: the share of held-out samples that it assigns to \
           their class. The model has a dropout and a batch norm, and no part of it may change. The batches are on the CPU, and the \
           last one is smaller. Build no graph, read one number in all, and leave the model in training mode.",
    hints: [
        "Two things have to be switched off for an evaluation, one at the model, the other around the forward pass.",
        "Count the samples that are right and the samples that there are. A mean of the batches' shares counts a sample of the small \
         batch for more. Leave the count on the device, and read it once.",
        "In the loop: `let hits = output.argmax(1, false)?.eq(&y)?;`, then `right = (right + hits.sum()?)?;`. At the end \
         `right.item()? / samples as f64`.",
    ],
    afterwards: "`eval()` changes what layers do, and `no_grad` changes what is remembered. An evaluation wants both.",
    source: include_str!("03-accuracy.rs"),
    functions: &[(
        "accuracy",
        "pub fn accuracy(model: &nn::Sequential, held_out: &[(Tensor, Tensor)], device: Device) -> Result<f64>",
    )],
    skeleton: &[
        (EVAL, "    // Put the model into the right mode, and back into training mode afterwards.\n    let _ = (model, device);\n"),
        (RIGHT, ""),
        (SAMPLES, ""),
        (FOR, "    for (_x, _y) in held_out {\n"),
        (MOVE, "        // Count samples, and those that are right.\n"),
        (FORWARD, ""),
        (HITS, ""),
        (ADD, ""),
        (COUNT, ""),
        (TRAIN, ""),
        (SHARE, "    todo!()\n"),
    ],
    styles: &[
        Style {
            name: "list_of_hits",
            edits: &[
                (RIGHT, "    let mut all = Vec::new();\n"),
                (SAMPLES, ""),
                (ADD, "        all.push(hits);\n"),
                (COUNT, ""),
                (SHARE, "    Tensor::cat(&all, 0)?.to(DType::F32)?.mean()?.item()\n"),
            ],
        },
        Style {
            name: "inference_mode",
            edits: &[(FORWARD, "        let output = inference_mode(|| model.forward(&x))?;\n")],
        },
        Style {
            name: "detached_loop",
            edits: &[
                (
                    FORWARD,
                    "        let guess = no_grad(|| model.forward(&x)?.softmax(1)?.argmax(1, false))?;\n",
                ),
                (HITS, "        let hits = guess.eq(&y)?;\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "in_training_mode",
            what: "The model stays in training mode: it drops numbers, and its batch norm learns from the held-out samples.",
            edits: &[(EVAL, "")],
            diagnosis: "in-training-mode",
        },
        Wrong {
            name: "left_in_eval",
            what: "The model is never put back into training mode.",
            edits: &[(TRAIN, "")],
            diagnosis: "left-in-eval",
        },
        Wrong {
            name: "with_a_graph",
            what: "Each forward pass keeps what a backward pass would need.",
            edits: &[(FORWARD, "        let output = model.forward(&x)?;\n")],
            diagnosis: "with-a-graph",
        },
        Wrong {
            name: "reads_each",
            what: "The host waits for a number of each batch.",
            edits: &[
                (RIGHT, "    let mut right = 0.0;\n"),
                (ADD, "        right += hits.sum()?.item()?;\n"),
                (SHARE, "    Ok(right / samples as f64)\n"),
            ],
            diagnosis: "reads-each",
        },
        Wrong {
            name: "mean_of_means",
            what: "The shares of the batches are averaged, and the last batch is smaller.",
            edits: &[
                (SAMPLES, ""),
                (ADD, "        right = (right + hits.to(DType::F32)?.mean()?)?;\n"),
                (COUNT, ""),
                (SHARE, "    Ok(right.item()? / held_out.len() as f64)\n"),
            ],
            diagnosis: "mean-of-means",
        },
        Wrong {
            name: "equal_batches",
            what: "All batches are taken to be as large as the first.",
            edits: &[(SAMPLES, "    let samples = held_out.len() * held_out[0].1.numel();\n"), (COUNT, "")],
            diagnosis: "samples-not-there",
        },
        Wrong {
            name: "last_batch_left_out",
            what: "The last batch is left out, because it is smaller.",
            edits: &[(FOR, "    for (x, y) in &held_out[..held_out.len() - 1] {\n")],
            diagnosis: "a-batch-left-out",
        },
        Wrong {
            name: "count",
            what: "The number of hits is returned, and not their share.",
            edits: &[(SAMPLES, ""), (COUNT, ""), (SHARE, "    right.item()\n")],
            diagnosis: "not-a-share",
        },
        Wrong {
            name: "error_rate",
            what: "The share of wrong samples is returned.",
            edits: &[(SHARE, "    Ok(1.0 - right.item()? / samples as f64)\n")],
            diagnosis: "share-of-errors",
        },
        Wrong {
            name: "loss",
            what: "The mean loss is returned. It says how sure the network is, and not how often it is right.",
            edits: &[
                (HITS, "        let loss = nn::CrossEntropyLoss::default().forward(&output, &y)?;\n"),
                (ADD, "        right = (right + (loss * y.numel() as f64)?)?;\n"),
            ],
            diagnosis: "a-loss",
        },
        Wrong {
            name: "on_the_cpu",
            what: "The outputs go to the CPU, and are compared there.",
            edits: &[
                (RIGHT, "    let mut right = Tensor::zeros(&[])?;\n"),
                (MOVE, "        let x = x.to(device)?;\n"),
                (HITS, "        let hits = output.cpu()?.argmax(1, false)?.eq(y)?;\n"),
            ],
            diagnosis: "on-the-cpu",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "sim:h200", "none"],
    sizes: &[16, 32],
    observe: |case| observe(case, solution::accuracy),
    judge,
};

const CLASSES: usize = 3;
const PIXELS: usize = 12;

fn batches(case: &Case) -> usize {
    5 + case.seed as usize % 3
}

/// The last batch has a quarter of the samples, and the model is right about fewer of them.
fn given(case: &Case) -> Result<(nn::Sequential, Vec<(Tensor, Tensor)>)> {
    manual_seed(case.seed);
    let layers = (
        nn::Linear::new(PIXELS, 256)?,
        nn::BatchNorm1d::new(256)?,
        nn::ReLU,
        nn::Dropout::new(0.5)?,
        nn::Linear::new(256, 256)?,
        nn::ReLU,
        nn::Linear::new(256, CLASSES)?,
    );
    let model = nn::Sequential::new(layers);
    model.eval();
    let mut all = Vec::new();
    for batch in 0..batches(case) {
        let rows = if batch + 1 == batches(case) { case.size / 4 } else { case.size };
        let x = Tensor::randn(&[rows, PIXELS])?;
        // Of four labels, three are the class that the model says, and in the last batch two.
        let said: Vec<i64> = no_grad(|| model.forward(&x)?.argmax(1, false))?.to_vec()?;
        let one_in = if rows < case.size { 2 } else { 4 };
        let changed = |row: usize| row.is_multiple_of(one_in);
        let y: Vec<i64> =
            said.iter().enumerate().map(|(row, class)| if changed(row) { (class + 1) % CLASSES as i64 } else { *class }).collect();
        all.push((x, Tensor::from_slice(&y, &[rows])?));
    }
    model.to(case.device())?;
    // The library makes its workspace for the first product.
    no_grad(|| model.forward(&all[0].0.to(case.device())?))?;
    model.train();
    Ok((model, all))
}

fn buffers(model: &nn::Sequential) -> Result<Vec<Vec<f64>>> {
    let numbers = |tensor: Tensor| tensor.cpu()?.to(DType::F64)?.reshape(&[-1])?.to_vec();
    model.named_buffers().into_iter().map(|(_, buffer)| numbers(buffer.tensor())).collect()
}

pub fn observe(case: &Case, accuracy: Accuracy) -> Seen {
    case.machine().enter(|| {
        let (model, held_out) = given(case).expect("it is small");
        let before = buffers(&model).expect("they are numbers");
        crate::observe(
            case,
            || accuracy(&model, &held_out, case.device()),
            |facts| {
                let after = buffers(&model)?;
                facts.insert("learned".to_owned(), Value::Flag(after != before));
                // In training mode its running statistics change.
                no_grad(|| model.forward(&held_out[0].0.to(case.device())?))?;
                facts.insert("trains".to_owned(), Value::Flag(buffers(&model)? != after));
                Ok(())
            },
        )
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let share = seen.returned()?.number().unwrap_or(f64::NAN);
    let wanted = right.value().number().unwrap_or(f64::NAN);
    let holds = |name: &str| seen.fact(name) == &Value::Flag(true);
    if holds("learned") {
        return Err(Diagnosis::new("in-training-mode", "The model is evaluated in training mode.")
            .seen("a batch norm whose running statistics have changed")
            .expected("a model that is as it was")
            .idea("In training mode a dropout drops, and a batch norm learns. `model.eval()` comes before the first batch."));
    }
    if !holds("trains") {
        return Err(Diagnosis::new("left-in-eval", "The model is left in evaluation mode.")
            .seen("a model that is not in training mode afterwards")
            .expected("training mode")
            .idea("The training goes on after the evaluation, and needs its dropout. Call `model.train()` at the end."));
    }
    let rows = (batches(case) - 1) * case.size + case.size / 4;
    let told = |id: &str, says: &str, idea: &str| {
        Err(Diagnosis::new(id, says).seen(format!("{share:.4}")).expected(format!("{wanted:.4}")).idea(idea))
    };
    let is = |value: f64| (share - value).abs() < 1e-5;
    if !is(wanted) {
        let hits = wanted * rows as f64;
        let (full, size) = ((batches(case) - 1) as f64, case.size as f64);
        let last = size / 8.0;
        return match share {
            _ if is(hits) => told("not-a-share", "That is a number of samples.", "Divide by the number of all held-out samples."),
            _ if is(1.0 - wanted) => told("share-of-errors", "That is the share of the samples that are wrong.", "Count those that are right."),
            _ if is((hits - last) / (full * size)) => told(
                "a-batch-left-out",
                "The last batch is not counted.",
                "A smaller batch has samples like any other.",
            ),
            _ if is(hits / ((full + 1.0) * size)) => told(
                "samples-not-there",
                "More samples are counted than there are.",
                "The last batch is smaller. Add up the sizes of the batches.",
            ),
            _ if is(((hits - last) / size + last / (size / 4.0)) / (full + 1.0)) => told(
                "mean-of-means",
                "The shares of the batches are averaged, and the batches are not alike.",
                "The last batch is smaller, so each of its samples counts for more. Count samples, and divide once.",
            ),
            _ => told(
                "a-loss",
                "That is not the share of the samples that are right.",
                "For each sample, is the class with the largest output the right one? A loss says how sure the network is.",
            ),
        };
    }
    if case.gpu == "none" {
        return Ok(());
    }
    let reads = seen.count(CallKind::ToHost);
    if seen.bytes(CallKind::ToHost) > 64 && !seen.computed_on_the_gpu(right) || seen.bytes(CallKind::ToHost) > 512 {
        return Err(Diagnosis::new("on-the-cpu", "Outputs are copied to the CPU, and compared there.")
            .seen(format!("{} bytes to the host", seen.bytes(CallKind::ToHost)))
            .expected(format!("{} bytes: one number", right.bytes(CallKind::ToHost)))
            .idea("`argmax`, `eq` and `sum` run where their tensor is. Send the labels to the device instead.")
            .at(seen.line(CallKind::ToHost)));
    }
    if reads > 2 {
        return Err(Diagnosis::new("reads-each", "The host waits for a number of each batch.")
            .seen(format!("{reads} copies to the host"))
            .expected("1, at the end")
            .idea("`item()` waits until the GPU is done. Add up on the device.")
            .at(seen.line(CallKind::ToHost)));
    }
    if 2 * seen.peak > 3 * right.peak {
        return Err(Diagnosis::new("with-a-graph", "Each forward pass keeps what a backward pass would need.")
            .seen(format!("{} KiB of the GPU at most", seen.peak / 1024))
            .expected(format!("{} KiB", right.peak / 1024))
            .idea("In evaluation mode there is a graph as well. Only `no_grad` does without."));
    }
    Ok(())
}
