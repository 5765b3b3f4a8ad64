//! The batch that stayed behind.

use todevice::cuda;
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, Kind, Operand, Seen, Style, Value, Wrong};

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
           machine: where there is a GPU, all of the arithmetic belongs on it, and every batch is copied to it once, \
           when its turn comes.",
    hints: [
        "Read the report of GPU0001: it names the tensor that is elsewhere, the operation that stopped, and its line. Where \
         should that tensor have been moved?",
        "A batch is two tensors, and both have to move. `.to(device)` returns a tensor on the device; the one it was \
         called on stays where it is.",
        "The loop begins with `let x = x.to(device)?;` and a second line like it.",
    ],
    afterwards: "With the data on the host, training costs at least two copies per batch. Chapter 09 hides them.",
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
        Style {
            name: "read_again",
            edits: &[(
                KEEP,
                "        losses.push(loss.to(DType::F64)?.item()?);\n        \
                 println!(\"{:.4}\", loss.item()?);\n        assert!(loss.item()?.is_finite());\n",
            )],
        },
        Style {
            name: "with_accuracy",
            edits: &[
                ("&model.forward(&x)?, &y)", "&prediction, &y)"),
                (Y, "        let y = y.to(device)?;\n        let prediction = model.forward(&x)?;\n"),
                (
                    KEEP,
                    "        losses.push(loss.item()?);\n        let right = prediction.argmax(1, false)?.eq(&y)?;\n        \
                     println!(\"{}\", right.to(DType::F32)?.mean()?.item()?);\n",
                ),
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
            what: "`.to(device)` is called, but what it returns is dropped.",
            edits: &[(X, "        x.to(device)?;\n"), (Y, "        y.to(device)?;\n")],
            diagnosis: "result-dropped",
        },
        Wrong {
            name: "targets_left",
            what: "The inputs are moved, but not the targets.",
            edits: &[(Y, "")],
            diagnosis: "targets-left",
        },
        Wrong {
            name: "model_left",
            what: "The batch is moved, but not the model.",
            edits: &[("    model.to(device)?;\n", "")],
            diagnosis: "model-left",
        },
        Wrong {
            name: "only_targets",
            what: "The targets are moved, but neither the model nor the inputs.",
            edits: &[("    model.to(device)?;\n", ""), (X, "")],
            diagnosis: "prediction-left",
        },
        Wrong {
            name: "nothing_moved",
            what: "Nothing is moved, so it runs on the CPU.",
            edits: &[("    model.to(device)?;\n", "    let _ = device;\n"), (X, ""), (Y, "")],
            diagnosis: "nothing-moved",
        },
        Wrong {
            name: "loss_on_the_cpu",
            what: "The prediction is fetched to the CPU, where the targets are.",
            edits: &[(Y, ""), ("&model.forward(&x)?, &y)", "&model.forward(&x)?.cpu()?, y)")],
            diagnosis: "loss-on-the-cpu",
        },
        Wrong {
            name: "there_and_back",
            what: "The targets are moved, fetched back, and moved again.",
            edits: &[(Y, "        let y = y.to(device)?.cpu()?.to(device)?;\n")],
            diagnosis: "there-and-back",
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
            name: "larger_on_the_way",
            what: "The inputs are converted to eight bytes per number on the host, and back to four on the GPU.",
            edits: &[(X, "        let x = x.to(DType::F64)?.to(device)?.to(DType::F32)?;\n")],
            diagnosis: "twice-the-bytes",
        },
        Wrong {
            name: "another_device",
            what: "The function chooses a GPU itself, whatever `device` says.",
            edits: &[("    model.to(device)?;\n", "    let _ = device;\n    let device = Device::cuda_if_available();\n    model.to(device)?;\n")],
            diagnosis: "another-device",
        },
        Wrong {
            name: "other_lr",
            what: "The learning rate is changed.",
            edits: &[("lr: 0.1,", "lr: 0.2,")],
            diagnosis: "losses",
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
            what: "`cuda:0` is written into the code, which fails where there is no GPU.",
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
    places: &[
        ("The model", &[&[], &[("    model.to(device)?;\n", "")]]),
        (
            "The inputs",
            &[
                &[],
                &[(X, "")],
                &[(X, "        x.to(device)?;\n")],
                &[(X, "        let x = x.to(DType::F64)?.to(device)?.to(DType::F32)?;\n")],
            ],
        ),
        (
            "The targets",
            &[
                &[],
                &[(Y, "")],
                &[(Y, "        y.to(device)?;\n")],
                &[(Y, "        let y = y.to(device)?.cpu()?.to(device)?;\n")],
            ],
        ),
    ],
    gpus: &["sim:t4", "sim:h200", "none", "sim:t4x2"],
    sizes: &[8, 24],
    observe: |case| observe(case, solution::train),
    judge,
};

const X: &str = "        let x = x.to(device)?;\n";
const Y: &str = "        let y = y.to(device)?;\n";
const KEEP: &str = "        losses.push(loss.item()?);\n";

/// The size of a case is that of a batch. How many batches there are depends on the seed.
pub fn observe(case: &Case, train: Train) -> Seen {
    case.machine().enter(|| {
        let (model, batches) = given(case).expect("the machine is new");
        crate::observe(case, || train(&model, &batches, device(case)), |facts| {
            let elsewhere = case.gpu == TWO && cuda::device(0, cuda::max_memory_allocated)? > 0;
            facts.insert("elsewhere".to_owned(), Value::Flag(elsewhere));
            Ok(())
        })
    })
}

/// A machine where `device` is the GPU that nobody takes unless told to.
const TWO: &str = "sim:t4x2";

fn device(case: &Case) -> Device {
    if case.gpu == TWO { Device::cuda(1) } else { case.device() }
}

const FEATURES: usize = 64;
const CLASSES: usize = 4;

/// The parameters of the model: a weight and a bias of each layer.
const PARAMETERS: usize = 4;

fn batches(case: &Case) -> usize {
    4 + case.seed as usize % 4
}

fn given(case: &Case) -> Result<(nn::Sequential, Vec<(Tensor, Tensor)>)> {
    manual_seed(case.seed);
    let layers = (nn::Linear::new(FEATURES, 16)?, nn::ReLU, nn::Linear::new(16, CLASSES)?);
    let model = nn::Sequential::new(layers);
    let mut all = Vec::new();
    for _ in 0..batches(case) {
        let x = Tensor::randn(&[case.size, FEATURES])?;
        all.push((x, Tensor::randint(0, CLASSES as i64, &[case.size])?));
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
    if seen.fact("elsewhere") == &Value::Flag(true) {
        return Err(Diagnosis::new("another-device", "It trains on another GPU than the one that `device` names.")
            .seen("memory of cuda:0 is used")
            .expected("memory of cuda:1, which is `device` here")
            .idea("The caller decides on the device, and the function uses the one that it is given."));
    }
    // A style may need a few more or less; on the CPU there are none.
    let launches = seen.count(CallKind::Launch);
    if !seen.computed_on_the_gpu(right) {
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
            .expected(format!("{expected}: {PARAMETERS} of the model, and 2 per batch"))
            .at(at)
    };
    // It may stay there after the last batch. Who reads several numbers of a batch has as many copies, but only back.
    let travels = PARAMETERS * (count - 1);
    if seen.count(CallKind::ToHost) >= right.count(CallKind::ToHost) + travels && copies >= expected + travels {
        return Err(counted(Diagnosis::new("model-travels", "The model goes back and forth with every batch."))
            .idea("Moving a model copies each of its parameters. Move it once, before the loop, and it stays there."));
    }
    // The predictions come back, and no kernel makes a loss of them. Who reads a few numbers of each batch has both otherwise.
    let predictions = (count * case.size * CLASSES * 4) as u64;
    let is_loss = |operation: &str| operation.contains("cross_entropy") || operation.contains("nll_loss");
    let losses_there = seen.of(CallKind::Launch).filter(|call| call.operation.as_deref().is_some_and(is_loss)).count();
    if seen.bytes(CallKind::ToHost) >= predictions && losses_there < count {
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
    let (bytes, right_bytes) = (seen.bytes(CallKind::ToDevice), right.bytes(CallKind::ToDevice));
    // The targets of a batch are the least that can be moved twice: 8 bytes a sample. A scalar or two may go there besides.
    let more = bytes >= right_bytes + 8 * case.size as u64;
    // What comes back between is no number that somebody reads: the targets are 8 bytes a sample.
    let fetched = seen.bytes(CallKind::ToHost) >= right.bytes(CallKind::ToHost) + (8 * count * case.size) as u64;
    if copies > expected && more && fetched {
        return Err(counted(Diagnosis::new("there-and-back", "A batch comes back to the host, and is moved again."))
            .idea("Once it is on the GPU, it can stay there until its turn is over."));
    }
    if copies > expected && more {
        return Err(counted(Diagnosis::new("moved-twice", "A batch is moved more than once."))
            .idea("`.to` copies whenever the tensor it is called on is elsewhere. Keep what it returns, and use that."));
    }
    if case.gpu != "none" && more {
        return Err(Diagnosis::new("twice-the-bytes", "The batches are made larger before they are moved.")
            .seen(format!("{bytes} bytes copied to the GPU"))
            .expected(format!("{right_bytes}"))
            .idea("Convert where it costs less. Moving F64 takes twice as long as moving F32; if you need F64, convert on the GPU.")
            .at(at));
    }
    // A batch is 64 floats and an i64 a sample. On the CPU the batches are all there in any case.
    let batch = (case.size * (FEATURES * 4 + 8)) as u64;
    if case.gpu != "none" && seen.peak > right.peak + 2 * batch {
        return Err(Diagnosis::new("all-at-once", "All batches are on the GPU at the same time.")
            .seen(format!("{} bytes at most", seen.peak))
            .expected(format!("about {}, with one batch at a time", right.peak))
            .idea("The GPU's memory is the scarcest there is. Move a batch when its turn comes; it is freed with its turn.")
            .at(at));
    }
    if !losses.is_near(right.value(), 1e-4) {
        return Err(Diagnosis::new("losses", "The losses are not those of this training run.")
            .seen(told(losses))
            .expected(format!("{}, one per batch, in order", told(right.value())))
            .idea("Each batch is trained on once: forward, loss, zero_grad, backward, step. Leave the options as they were."));
    }
    Ok(())
}

fn told(losses: &Value) -> String {
    match losses.list().last().and_then(Value::number) {
        Some(last) => format!("{} losses, the last of them {last:.4}", losses.list().len()),
        None => "no losses".to_owned(),
    }
}

/// Which tensor of a device mismatch is on the CPU?
fn left_behind(seen: &Seen, operand: &Operand) -> Diagnosis {
    let copies = seen.count(CallKind::ToDevice);
    if operand.learned {
        return Diagnosis::new("model-left", "The batch is on the GPU, but the model is not.")
            .seen(format!("`{}`, which is learned, is on the CPU", operand.name))
            .idea("The golden rule: all tensors of an operation live on one device. The model's tensors are its parameters.");
    }
    if operand.name == "target" {
        return Diagnosis::new("targets-left", "The inputs are on the GPU, but the targets are not.")
            .seen("the loss is to compare tensors on two devices")
            .idea("A batch is two tensors, and the loss needs both.");
    }
    // A layer has an argument of this name, too, but it is learned.
    if operand.name == "self" {
        return Diagnosis::new("prediction-left", "The targets are on the GPU, but the prediction is not.")
            .seen("the loss is to compare tensors on two devices")
            .idea("A prediction is where the model and its inputs are. Both belong on the GPU, as the targets do.");
    }
    if copies > PARAMETERS {
        return Diagnosis::new("result-dropped", "The batch is copied to the GPU, but the copy is dropped.")
            .seen(format!("{copies} copies to the GPU, {PARAMETERS} of them of the model"))
            .idea("A tensor's `.to` returns another tensor and leaves the one it was called on where it is.");
    }
    Diagnosis::new("batch-left", "The model is on the GPU, but the batch is not.")
        .seen(format!("`{}` is on the CPU", operand.name))
        .idea("Nothing moves by itself. Move each batch, just as the model was moved.")
}
