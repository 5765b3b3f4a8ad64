//! The batch that stayed behind.

use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, Kind, Operand, Seen, Style, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// Trains the model on each batch once, on the device, and returns the losses.
    pub fn train(
        model: &nn::Sequential,
        batches: &[(Tensor, Tensor)],
        device: Device,
    ) -> Result<Vec<f64>> {
        model.to(device)?;
        let loss_fn = nn::CrossEntropyLoss::default();
        let options = SGDOptions { lr: 0.1, ..Default::default() };
        let mut optimizer = optim::SGD::new(model.parameters(), options)?;

        let mut losses = Vec::new();
        for (x, y) in batches {
            let x = x.to(device)?;
            let y = y.to(device)?;
            let loss = loss_fn.forward(&model.forward(&x)?, &y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            losses.push(loss.item()?);
        }
        Ok(losses)
    }
    // END
}

type Train = fn(&nn::Sequential, &[(Tensor, Tensor)], Device) -> Result<Vec<f64>>;

pub static EXERCISE: Exercise = Exercise {
    id: "02-batch",
    title: "The batch that stayed behind",
    kind: Kind::Fix,
    task: "The model is moved to the device, and then the first batch stops the program. Make `train` run on any \
           machine: with a GPU all of the arithmetic belongs there, and every batch crosses the bus once, when its turn \
           comes.",
    hints: [
        "Read the report of GPU0001: it names the tensor that is elsewhere, and the line that made it.",
        "A batch is two tensors, and both take part. What `.to(device)` returns is on the device; what it was called on \
         stays where it is.",
        "The loop begins with `let x = x.to(device)?;` and a second line like it.",
    ],
    afterwards: "Two copies a batch is what training costs at least when the data is on the host. Chapter 09 hides them.",
    source: include_str!("02-batch.rs"),
    functions: &[(
        "train",
        "pub fn train(model: &nn::Sequential, batches: &[(Tensor, Tensor)], device: Device) -> Result<Vec<f64>>",
    )],
    skeleton: &[(X, ""), (Y, "")],
    styles: &[
        Style {
            name: "one_let",
            edits: &[(X, "        let (x, y) = (x.to(device)?, y.to(device)?);\n"), (Y, "")],
        },
        Style {
            name: "in_place",
            edits: &[
                (X, ""),
                (Y, ""),
                ("&model.forward(&x)?, &y)", "&model.forward(&x.to(device)?)?, &y.to(device)?)"),
            ],
        },
        Style {
            name: "indexed",
            edits: &[
                ("for (x, y) in batches {", "for i in 0..batches.len() {"),
                (X, "        let x = batches[i].0.to(device)?;\n"),
                (Y, "        let y = batches[i].1.to(device)?;\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "batch_left",
            what: "The batch stays on the CPU.",
            edits: &[(X, ""), (Y, "")],
            diagnosis: "batch-left",
        },
        Wrong {
            name: "result_dropped",
            what: "`.to(device)` is called, and what it returns is dropped.",
            edits: &[(X, "        x.to(device)?;\n"), (Y, "        y.to(device)?;\n")],
            diagnosis: "result-dropped",
        },
        Wrong {
            name: "targets_left",
            what: "The inputs are moved, the targets are not.",
            edits: &[(Y, "")],
            diagnosis: "targets-left",
        },
        Wrong {
            name: "model_left",
            what: "The batch is moved, the model is not.",
            edits: &[("    model.to(device)?;\n", "")],
            diagnosis: "model-left",
        },
        Wrong {
            name: "nothing_moved",
            what: "Nothing is moved. It runs, on the CPU.",
            edits: &[("    model.to(device)?;\n", "    let _ = device;\n"), (X, ""), (Y, "")],
            diagnosis: "nothing-moved",
        },
        Wrong {
            name: "loss_on_the_cpu",
            what: "The prediction is fetched to where the targets are.",
            edits: &[(Y, ""), ("&model.forward(&x)?, &y)", "&model.forward(&x)?.cpu()?, y)")],
            diagnosis: "loss-on-the-cpu",
        },
        Wrong {
            name: "moved_twice",
            what: "The batch is moved, and the original is moved again for the model.",
            edits: &[
                ("for (x, y) in batches {", "for (x0, y) in batches {\n        let x = x0;"),
                ("model.forward(&x)?", "model.forward(&x0.to(device)?)?"),
            ],
            diagnosis: "moved-twice",
        },
        Wrong {
            name: "all_at_once",
            what: "All batches are moved before the loop, and fill the memory.",
            edits: &[
                (
                    "    for (x, y) in batches {\n",
                    "    let mut moved = Vec::new();\n    for (x, y) in batches {\n        \
                     moved.push((x.to(device)?, y.to(device)?));\n    }\n    for (x, y) in &moved {\n",
                ),
                (X, ""),
                (Y, ""),
                ("&model.forward(&x)?, &y)", "&model.forward(x)?, y)"),
            ],
            diagnosis: "all-at-once",
        },
        Wrong {
            name: "model_travels",
            what: "The model goes back to the CPU after each batch.",
            edits: &[
                ("    model.to(device)?;\n", ""),
                (X, "        model.to(device)?;\n        let x = x.to(device)?;\n"),
                ("        losses.push(loss.item()?);\n", "        losses.push(loss.item()?);\n        model.to(Device::Cpu)?;\n"),
            ],
            diagnosis: "model-travels",
        },
        Wrong {
            name: "hard_coded",
            what: "The GPU is named instead of asked for: it fails where there is none.",
            edits: &[
                ("    model.to(device)?;\n", "    let device = if device.is_cuda() { device } else { Device::cuda(0) };\n    model.to(device)?;\n"),
            ],
            diagnosis: "hard-coded",
        },
        Wrong {
            name: "one_by_one",
            what: "Each sample is moved on its own.",
            edits: &[(
                X,
                "        let mut rows = Vec::new();\n        for i in 0..x.size(0)? {\n            \
                 rows.push(x.select(0, i as i64)?.to(device)?);\n        }\n        \
                 let x = Tensor::stack(&rows.iter().collect::<Vec<_>>(), 0)?;\n",
            )],
            diagnosis: "one-by-one",
        },
    ],
    gpus: &["sim:t4", "sim:h200", "none"],
    sizes: &[8, 24],
    observe: |case| observe(case, solution::train),
    judge,
};

const X: &str = "        let x = x.to(device)?;\n";
const Y: &str = "        let y = y.to(device)?;\n";

/// The size of a case is that of a batch. How many batches there are depends on the seed.
pub fn observe(case: &Case, train: Train) -> Seen {
    case.machine().enter(|| {
        let (model, batches) = given(case).expect("the machine is new");
        crate::observe(case, || train(&model, &batches, case.device()), |_| Ok(()))
    })
}

const FEATURES: usize = 64;

/// The parameters of the model: a weight and a bias of each layer.
const PARAMETERS: usize = 4;

fn batches(case: &Case) -> usize {
    4 + case.seed as usize % 4
}

fn given(case: &Case) -> Result<(nn::Sequential, Vec<(Tensor, Tensor)>)> {
    manual_seed(case.seed);
    let layers = (nn::Linear::new(FEATURES, 16)?, nn::ReLU, nn::Linear::new(16, 4)?);
    let model = nn::Sequential::new(layers);
    let mut all = Vec::new();
    for _ in 0..batches(case) {
        let x = Tensor::randn(&[case.size, FEATURES])?;
        all.push((x, Tensor::randint(0, 4, &[case.size])?));
    }
    Ok((model, all))
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if let Some(operand) = seen.left_behind() {
        return Err(left_behind(seen, operand).report(seen));
    }
    if case.gpu == "none"
        && let Ended::Failed { message, .. } = &seen.ended
    {
        return Err(Diagnosis::new("hard-coded", "It fails on a machine that has no GPU.")
            .seen(message)
            .expected("training on the CPU, which is the device here")
            .idea("The caller decides on the device. Code that says `device` everywhere runs everywhere."));
    }
    let losses = seen.returned()?;
    // A style may need a few more or less; on the CPU there are none.
    let launches = seen.count(CallKind::Launch);
    if launches < right.count(CallKind::Launch) / 2 {
        return Err(Diagnosis::new("nothing-moved", "It trains, but on the CPU.")
            .seen(if launches == 0 { "no kernel on the GPU".to_owned() } else { format!("{launches} kernels on the GPU") })
            .expected(format!("{} kernels", right.count(CallKind::Launch)))
            .idea("Model and batches are all on the CPU, so the golden rule is kept and nothing complains. Only the time shows it."));
    }

    let (copies, expected) = (seen.count(CallKind::ToDevice), right.count(CallKind::ToDevice));
    let count = batches(case);
    let at = seen.line(CallKind::ToDevice);
    let counted = |diagnosis: Diagnosis| {
        diagnosis
            .seen(format!("{copies} copies to the GPU for {count} batches"))
            .expected(format!("{expected}: {PARAMETERS} of the model, and 2 a batch"))
            .at(at)
    };
    if seen.count(CallKind::ToHost) >= right.count(CallKind::ToHost) + 4 * count {
        return Err(counted(Diagnosis::new("model-travels", "The model goes back and forth with every batch."))
            .idea("Moving a model copies each of its parameters. Move it once, before the loop; it stays."));
    }
    if seen.bytes(CallKind::ToHost) > right.bytes(CallKind::ToHost) {
        return Err(counted(Diagnosis::new("loss-on-the-cpu", "The loss is computed on the CPU."))
            .seen(format!("{} bytes fetched to the CPU", seen.bytes(CallKind::ToHost)))
            .expected(format!("{}: the losses", right.bytes(CallKind::ToHost)))
            .idea(
                "Where the targets are decides where the loss is computed. Fetching the prediction makes the host \
                 wait for the GPU, and its gradient has to go back; the targets are smaller, and go one way.",
            )
            .at(seen.line(CallKind::ToHost)));
    }
    if copies >= expected + count * case.size / 2 {
        return Err(counted(Diagnosis::new("one-by-one", "The batch goes over in pieces."))
            .idea("A copy costs some ten microseconds however small it is. Move the whole tensor at once."));
    }
    if copies > expected {
        return Err(counted(Diagnosis::new("moved-twice", "A batch is moved more than once."))
            .idea("`.to` copies whenever the tensor it is called on is elsewhere. Keep what it returns, and use that."));
    }
    // A batch is 64 floats and an i64 a sample.
    let batch = (case.size * (FEATURES * 4 + 8)) as u64;
    if seen.peak > right.peak + 2 * batch {
        return Err(Diagnosis::new("all-at-once", "All batches are on the GPU at the same time.")
            .seen(format!("{} bytes at most", seen.peak))
            .expected(format!("about {}, with one batch at a time", right.peak))
            .idea("The memory of the GPU is the scarcest there is. Move a batch when its turn comes; it is freed with its turn.")
            .at(at));
    }
    if !losses.is_near(right.value(), 1e-4) {
        return Err(Diagnosis::new("losses", "The losses are not those of this training.")
            .seen(format!("{} losses, the last of them {:?}", losses.list().len(), losses.list().last()))
            .expected(format!("{count}, one a batch, in order"))
            .idea("Each batch is trained on once: forward, loss, zero_grad, backward, step."));
    }
    Ok(())
}

/// Which tensor of a device mismatch is on the CPU?
fn left_behind(seen: &Seen, operand: &Operand) -> Diagnosis {
    let copies = seen.count(CallKind::ToDevice);
    if operand.learned {
        return Diagnosis::new("model-left", "The batch is on the GPU, and the model is not.")
            .seen(format!("`{}`, which is learned, is on the CPU", operand.name))
            .idea("The golden rule: all tensors of an operation live on one device. The model's tensors are its parameters.");
    }
    if operand.name == "target" {
        return Diagnosis::new("targets-left", "The inputs are on the GPU, and the targets are not.")
            .seen("the loss is to compare tensors on two devices")
            .idea("A batch is two tensors, and the loss needs both.");
    }
    if copies > PARAMETERS {
        return Diagnosis::new("result-dropped", "The batch is copied to the GPU, and the copy is dropped.")
            .seen(format!("{copies} copies to the GPU, {PARAMETERS} of them of the model"))
            .idea("A tensor's `.to` returns another tensor and leaves the one it was called on where it is.");
    }
    Diagnosis::new("batch-left", "The model is on the GPU, and the batch is not.")
        .seen(format!("`{}` is on the CPU", operand.name))
        .idea("Nothing moves by itself. Move each batch, as the model was moved.")
}
