//! Autocast around the wrong things.

use todevice::prelude::*;

use crate::{Call, CallKind, Case, Diagnosis, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::amp::{self, AutocastOptions};
    use todevice::prelude::*;

    /// Trains on each batch once, with products in bfloat16. Returns the losses.
    pub fn train(
        model: &nn::Sequential,
        batches: &[(Tensor, Tensor)],
        device: Device,
    ) -> Result<Vec<f64>> {
        let short = AutocastOptions { dtype: Some(DType::BF16), ..device.into() };
        let loss_fn = nn::CrossEntropyLoss::default();
        let options = SGDOptions { lr: 0.5, ..Default::default() };
        let mut optimizer = optim::SGD::new(model.parameters(), options)?;

        let mut losses = Vec::new();
        for (x, y) in batches {
            let loss = amp::autocast(short, || loss_fn.forward(&model.forward(x)?, y))?;
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

/// The exercise before this one in the chapter.
pub const AFTER: &str = "06-scaler";

pub static EXERCISE: Exercise = Exercise {
    id: "06-autocast",
    title: "Training with yesterday's weights",
    kind: Kind::Fix,
    task: "The whole training run is in one `autocast` region. It runs without an error, and its products are in \
           bfloat16, but for each batch it uses the weights that the model had at the very beginning. Fix `train` so \
           that products run in bfloat16, the loss and the weights are float32, each batch uses the weights from the \
           step before it, and the region is over when a backward pass begins.",
    hints: [
        "Autocast converts a weight once in a region, and keeps the copy. When does it look at the weight again?",
        "A region ends with its closure. Only what autocast should choose types for belongs inside: the forward pass \
         and the loss of one batch.",
        "The loop comes out of the closure, and `let loss = amp::autocast(short, || …)?;` is a line in it.",
    ],
    afterwards: "The backward pass of an operation runs in the type of its forward pass. That is why it does not need a region.",
    source: include_str!("06-autocast.rs"),
    functions: &[(
        "train",
        "pub fn train(model: &nn::Sequential, batches: &[(Tensor, Tensor)], device: Device) -> Result<Vec<f64>>",
    )],
    skeleton: &[(LOOP, IN_ONE_REGION)],
    styles: &[
        Style {
            name: "loss_in_float32",
            edits: &[(
                LOSS,
                "        let scores = amp::autocast(short, || model.forward(x))?;\n        \
                 let loss = loss_fn.forward(&scores.to(DType::F32)?, y)?;\n",
            )],
        },
        Style {
            name: "two_regions",
            edits: &[(
                LOSS,
                "        let scores = amp::autocast(short, || model.forward(x))?;\n        \
                 let loss = amp::autocast(short, || loss_fn.forward(&scores, y))?;\n",
            )],
        },
        Style {
            name: "losses_kept",
            edits: &[
                ("        losses.push(loss.item()?);\n", "        losses.push(loss);\n"),
                ("    Ok(losses)\n", "    losses.iter().map(|loss| loss.item()).collect()\n"),
            ],
        },
        Style {
            name: "losses_detached",
            edits: &[
                ("        losses.push(loss.item()?);\n", "        losses.push(loss.detach());\n"),
                ("    Ok(losses)\n", "    losses.iter().map(Tensor::item).collect()\n"),
            ],
        },
        Style {
            name: "in_a_closure",
            edits: &[
                ("    let mut losses = Vec::new();\n", "    let forward = |x: &Tensor, y: &Tensor| -> Result<Tensor> {\n        let scores = model.forward(x)?;\n        loss_fn.forward(&scores, y)\n    };\n    let mut losses = Vec::new();\n"),
                (LOSS, "        optimizer.zero_grad();\n        let loss = amp::autocast(short, || forward(x, y))?;\n"),
                ("        optimizer.zero_grad();\n        loss.backward()?;\n", "        loss.backward()?;\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "loop_inside",
            what: "The whole loop is in one region.",
            edits: &[(LOOP, IN_ONE_REGION)],
            diagnosis: "stale-weights",
        },
        Wrong {
            name: "step_inside",
            what: "Each batch has a region, and the backward pass and the step are in it.",
            edits: &[(
                LOOP,
                "    for (x, y) in batches {\n        amp::autocast(short, || {\n            \
                 let loss = loss_fn.forward(&model.forward(x)?, y)?;\n            optimizer.zero_grad();\n            \
                 loss.backward()?;\n            optimizer.step()?;\n            losses.push(loss.item()?);\n            \
                 Ok::<(), Error>(())\n        })?;\n    }\n    Ok(losses)\n",
            )],
            diagnosis: "step-inside",
        },
        Wrong {
            name: "backward_inside",
            what: "The backward pass is in the region.",
            edits: &[(
                LOOP,
                "    for (x, y) in batches {\n        optimizer.zero_grad();\n        \
                 let loss = amp::autocast(short, || {\n            \
                 let loss = loss_fn.forward(&model.forward(x)?, y)?;\n            \
                 loss.backward()?;\n            Ok::<Tensor, Error>(loss)\n        })?;\n        optimizer.step()?;\n        \
                 losses.push(loss.item()?);\n    }\n    Ok(losses)\n",
            )],
            diagnosis: "backward-inside",
        },
        Wrong {
            name: "loss_outside",
            what: "The loss is computed outside, from scores in bfloat16.",
            edits: &[(
                LOSS,
                "        let scores = amp::autocast(short, || model.forward(x))?;\n        \
                 let loss = loss_fn.forward(&scores, y)?;\n",
            )],
            diagnosis: "loss-outside",
        },
        Wrong {
            name: "model_converted",
            what: "The model and the batch are converted, and nothing is left for autocast.",
            edits: &[
                (SHORT, "    model.to((device, DType::BF16))?;\n"),
                ("{self, AutocastOptions}", "{}"),
                (LOSS, "        let loss = loss_fn.forward(&model.forward(&x.to(DType::BF16)?)?, y)?;\n"),
            ],
            diagnosis: "model-converted",
        },
        Wrong {
            name: "there_and_back",
            what: "The model is converted for each forward pass, and back for the step.",
            edits: &[
                (SHORT, "    let _ = device;\n"),
                ("{self, AutocastOptions}", "{}"),
                (
                    LOSS,
                    "        model.to(DType::BF16)?;\n        let scores = model.forward(&x.to(DType::BF16)?)?;\n        \
                     let loss = loss_fn.forward(&scores.to(DType::F32)?, y)?;\n",
                ),
                ("        optimizer.step()?;\n", "        model.to(DType::F32)?;\n        optimizer.step()?;\n"),
            ],
            diagnosis: "there-and-back",
        },
        Wrong {
            name: "no_type_named",
            what: "No type is named, and on a GPU autocast takes float16.",
            edits: &[(SHORT, "    let short = AutocastOptions { enabled: true, ..device.into() };\n")],
            diagnosis: "float16",
        },
        Wrong {
            name: "other_device_type",
            what: "The region is for the CPU, and the model is on the GPU.",
            edits: &[(
                SHORT,
                "    let _ = device;\n    let cpu = todevice::DeviceType::Cpu;\n    \
                 let short = AutocastOptions { dtype: Some(DType::BF16), ..cpu.into() };\n",
            )],
            diagnosis: "nothing-short",
        },
        Wrong {
            name: "layer_by_layer",
            what: "Each layer has a region, and its result is converted back.",
            edits: &[(
                LOSS,
                "        let mut scores = x.clone();\n        for (_, layer) in model.children() {\n            \
                 scores = amp::autocast(short, || layer.forward(&scores))?.to(DType::F32)?;\n        }\n        \
                 let loss = loss_fn.forward(&scores, y)?;\n",
            )],
            diagnosis: "layer-by-layer",
        },
    ],
    places: &[
        (
            "The type that is named",
            &[&[], &[(SHORT, "    let short = AutocastOptions { enabled: true, ..device.into() };\n")]],
        ),
        (
            "Where the region begins and ends",
            &[
                &[],
                &[(LOOP, IN_ONE_REGION)],
                &[(
                    LOOP,
                    "    for (x, y) in batches {\n        amp::autocast(short, || {\n            \
                     let loss = loss_fn.forward(&model.forward(x)?, y)?;\n            optimizer.zero_grad();\n            \
                     loss.backward()?;\n            optimizer.step()?;\n            losses.push(loss.item()?);\n            \
                     Ok::<(), Error>(())\n        })?;\n    }\n    Ok(losses)\n",
                )],
                &[(
                    LOOP,
                    "    for (x, y) in batches {\n        optimizer.zero_grad();\n        \
                     let loss = amp::autocast(short, || {\n            \
                     let loss = loss_fn.forward(&model.forward(x)?, y)?;\n            \
                     loss.backward()?;\n            Ok::<Tensor, Error>(loss)\n        })?;\n        optimizer.step()?;\n        \
                     losses.push(loss.item()?);\n    }\n    Ok(losses)\n",
                )],
                &[(
                    LOSS,
                    "        let scores = amp::autocast(short, || model.forward(x))?;\n        \
                     let loss = loss_fn.forward(&scores, y)?;\n",
                )],
            ],
        ),
    ],
    gpus: &["sim:h200", "sim:rtx4090", "none"],
    sizes: &[64, 128],
    observe: |case| observe(case, solution::train),
    judge,
};

const SHORT: &str = "    let short = AutocastOptions { dtype: Some(DType::BF16), ..device.into() };\n";
const LOSS: &str = "        let loss = amp::autocast(short, || loss_fn.forward(&model.forward(x)?, y))?;\n";
const LOOP: &str = "    for (x, y) in batches {
        let loss = amp::autocast(short, || loss_fn.forward(&model.forward(x)?, y))?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        losses.push(loss.item()?);
    }
    Ok(losses)
";
const IN_ONE_REGION: &str = "    amp::autocast(short, || {
        for (x, y) in batches {
            let loss = loss_fn.forward(&model.forward(x)?, y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            losses.push(loss.item()?);
        }
        Ok(losses)
    })
";

const FEATURES: usize = 16;
const HIDDEN: usize = 64;
const CLASSES: usize = 4;
/// Of four layers.
const PARAMETERS: usize = 8;

fn batches(case: &Case) -> usize {
    5 + case.seed as usize % 3
}

/// The size of a case is that of a batch. The seed decides on their number.
pub fn observe(case: &Case, train: Train) -> Seen {
    case.machine().enter(|| {
        let device = case.device();
        manual_seed(case.seed);
        let given = || -> Result<_> {
            let model = nn::Sequential::new((
                nn::Linear::new(FEATURES, HIDDEN)?,
                nn::ReLU,
                nn::Linear::new(HIDDEN, HIDDEN)?,
                nn::ReLU,
                nn::Linear::new(HIDDEN, HIDDEN)?,
                nn::ReLU,
                nn::Linear::new(HIDDEN, CLASSES)?,
            ));
            model.to(device)?;
            let mut batches_given = Vec::new();
            for _ in 0..batches(case) {
                let x = (Tensor::randn(&[case.size, FEATURES])? * 2.0)?;
                let y = x.narrow(1, 0, CLASSES)?.argmax(1, false)?;
                batches_given.push((x.to(device)?, y.to(device)?));
            }
            // Takes the workspace for products.
            no_grad(|| model.forward(&batches_given[0].0))?;
            let first = flat(&model)?;
            Ok((model, batches_given, first))
        };
        let (model, batches, first) = given().expect("the machine is new");
        crate::observe(case, || train(&model, &batches, device), |facts| {
            let types = model.parameters().into_iter().map(|weight| Value::Text(weight.tensor().dtype().to_string()));
            facts.insert("types".into(), Value::List(types.collect()));
            let moved = no_grad(|| flat(&model)? - &first)?;
            facts.insert("moved".into(), moved.into_value()?);
            Ok(())
        })
    })
}

/// All weights, one after the other.
fn flat(model: &nn::Sequential) -> Result<Tensor> {
    let flat = |weight: &nn::Parameter| weight.tensor().detach().to(DType::F32)?.copy()?.flatten(0, -1);
    let weights: Result<Vec<Tensor>> = model.parameters().iter().map(flat).collect();
    Tensor::cat(&weights?, 0)
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let losses = seen.returned()?;
    let batches = batches(case);
    let types = seen.fact("types").list();
    let other = |kind: &&Value| !matches!(kind, Value::Text(kind) if kind == FLOAT32);
    if let Some(Value::Text(kind)) = types.iter().find(other) {
        return Err(Diagnosis::new("model-converted", "The weights themselves are no longer float32.")
            .seen(format!("weights of type {}", without_torch(kind)))
            .expected("weights in float32, and copies of them in bfloat16 for the products")
            .idea(
                "A step changes a weight by a little. Next to a weight with three digits, a little is nothing, and is rounded \
                 away. Autocast converts copies, and leaves the weights alone.",
            ));
    }

    // Without a GPU nobody says what runs in which type: there, only the results count.
    if case.gpu != "none" {
        types_and_memory(seen, right, batches)?;
    }

    // bfloat16 rounds by up to 2^-9, which is 0.2 %. Another order of the same arithmetic may round some numbers the other way.
    let is_same = losses.is_near(right.value(), 0.01) && off(seen, right) <= 0.02;
    if !is_same {
        let told = |value: &Value| match value.list().last().and_then(Value::number) {
            Some(loss) => format!("{} losses, the last of them {loss:.4}", value.list().len()),
            None => "no losses".to_owned(),
        };
        return Err(Diagnosis::new("result", "It is not the same training run.")
            .seen(told(losses))
            .expected(told(right.value()))
            .idea("Each batch is trained on once: forward and loss in a region, zero_grad, backward, step."));
    }
    Ok(())
}

fn types_and_memory(seen: &Seen, right: &Seen, batches: usize) -> Result<(), Diagnosis> {
    let products = |seen: &Seen, kind: &str| {
        let is_of = |call: &&Call| call.name == "gemm" && call.types.iter().any(|of| of == kind);
        seen.of(CallKind::Launch).filter(is_of).count()
    };
    let expected = products(right, BFLOAT16);
    let of_products = |id: &str, says: &str| {
        Diagnosis::new(id, says)
            .seen(format!(
                "{} products in bfloat16, {} in float16, {} in float32",
                products(seen, BFLOAT16),
                products(seen, FLOAT16),
                products(seen, FLOAT32)
            ))
            .expected(format!("{expected} in bfloat16: three for each layer and batch, and two for the first layer"))
    };
    if products(seen, FLOAT16) > 0 {
        return Err(of_products("float16", "The products run in float16.").idea(
            "On a GPU, float16 is what autocast takes if you name no type. It has less range, and would need a scaler.",
        ));
    }
    if products(seen, BFLOAT16) < expected {
        return Err(of_products("nothing-short", "Products run in float32.").idea(
            "A region is for one type of device, and for the operations within its closure. Others run as if there were \
             none, and nothing warns you.",
        ));
    }

    let casts = |seen: &Seen, operation: &str, name: &str| {
        let is_cast = |call: &&Call| call.name.starts_with(name) && call.operation.as_deref() == Some(operation);
        seen.of(CallKind::Launch).filter(is_cast).count()
    };
    let copied = casts(seen, "_to_copy", "cast_f32_bf16");
    if copied >= batches * PARAMETERS {
        return Err(Diagnosis::new("there-and-back", "The weights lose their last digits before every batch.")
            .seen(format!("{copied} tensors converted to bfloat16, weights among them, and back again"))
            .expected("copies in bfloat16, and weights that stay as they are")
            .idea(
                "What is converted to bfloat16 and back has the digits of bfloat16. A small step is rounded away before the \
                 next batch. Autocast keeps the originals.",
            ));
    }
    let (converted, expected) = (casts(seen, "linear", "cast_f32_bf16"), casts(right, "linear", "cast_f32_bf16"));
    if converted + (batches - 1) * PARAMETERS / 2 <= expected {
        return Err(Diagnosis::new("stale-weights", "The batches are computed with copies of the weights that are out of date.")
            .seen(format!("{converted} weights and inputs converted to bfloat16, for {batches} batches"))
            .expected(format!("{expected}: {PARAMETERS} weights and an input for each batch"))
            .idea(
                "In a region a weight is converted once, and the copy is used until the outermost region ends. The optimizer \
                 changes the weights, and the copies know nothing of it. End the region before the step.",
            ));
    }
    let is_short_loss =
        |call: &&Call| call.name.starts_with("cross_entropy") && call.types.iter().any(|kind| kind == BFLOAT16);
    if let Some(call) = seen.of(CallKind::Launch).find(is_short_loss) {
        return Err(Diagnosis::new("loss-outside", "The loss is computed in bfloat16.")
            .seen("`cross_entropy` with scores and a result in bfloat16")
            .expected("a loss in float32")
            .idea(
                "The scores come out of the region in bfloat16. Within it, autocast converts them to float32 for a loss, \
                 which adds up exponentials. Outside it nobody does.",
            )
            .at(call.line));
    }
    let all_casts = |seen: &Seen| seen.of(CallKind::Launch).filter(|call| call.name.starts_with("cast_")).count();
    // Three results of hidden layers, there and back again, are twelve conversions a batch. One of a style's own is two.
    if all_casts(seen) > all_casts(right) + 4 * batches {
        return Err(Diagnosis::new("layer-by-layer", "The outputs of the layers are converted to float32 and back.")
            .seen(format!("{} conversions, and {} KiB of memory at most", all_casts(seen), seen.peak / 1024))
            .expected(format!("{} conversions, and about {} KiB", all_casts(right), right.peak / 1024))
            .idea(
                "Memory is saved because results stay in bfloat16 from layer to layer. Each conversion is a kernel, and makes \
                 a copy. Let autocast convert what has to be converted.",
            ));
    }
    // Within the region the copies of all weights are held. A style may hold two or three tensors of its own longer, and
    // losses of the batches before: so only the first batch is looked at.
    let (at_step, at_backward) = ("_fused_sgd_", "ReluBackward0");
    let extra = |name: &str| held_at(seen, name) - held_at(right, name);
    if extra(at_step) >= PARAMETERS as i64 / 2 {
        return Err(Diagnosis::new("step-inside", "The region is still open when the optimizer takes its step.")
            .seen(format!("{} blocks of memory more than needed, held during the step", extra(at_step)))
            .expected("no copies of the weights by then")
            .idea(
                "The copies of the weights are kept until the region ends, and from the step on they are out of date. One more \
                 forward pass in this region would use the old copies.",
            ));
    }
    if extra(at_backward) >= PARAMETERS as i64 / 2 {
        return Err(Diagnosis::new("backward-inside", "The region is still open during the backward pass.")
            .seen(format!("{} blocks of memory more than needed, held until its end", extra(at_backward)))
            .expected("copies of the weights that are freed as the backward pass gets to them")
            .idea(
                "The backward pass of an operation runs in the type of its forward pass, with a region or without. The region only holds on to \
                 the copies. (In PyTorch it can change the types, too.)",
            ));
    }
    Ok(())
}

const FLOAT32: &str = "torch.float32";
const FLOAT16: &str = "torch.float16";
const BFLOAT16: &str = "torch.bfloat16";

fn without_torch(kind: &str) -> &str {
    kind.trim_start_matches("torch.")
}

/// Blocks of memory that are held when the first batch's last kernel of an operation is launched, beyond those held at first.
fn held_at(seen: &Seen, name: &str) -> i64 {
    let is_of = |name: &str, call: &Call| call.operation.as_deref() == Some(name);
    let is_step = |call: &&Call| is_of("_fused_sgd_", call);
    let before = seen.calls.iter().take_while(|call| !is_step(call)).count();
    let steps = seen.calls[before..].iter().take_while(is_step).count();
    let end = seen.calls[..before + steps].iter().rposition(|call| is_of(name, call)).unwrap_or(0);
    let change = |call: &Call| match call.kind {
        CallKind::Allocate => 1,
        CallKind::Free => -1,
        _ => 0,
    };
    seen.calls[..end].iter().map(change).sum()
}

/// How far the weights are from where they should be, compared with how far they should have moved.
fn off(seen: &Seen, right: &Seen) -> f64 {
    let numbers = |seen: &Seen| match seen.fact("moved") {
        Value::Tensor { values, .. } => values.clone(),
        _ => Vec::new(),
    };
    let (seen, right) = (numbers(seen), numbers(right));
    let square = |x: f64| x * x;
    let off: f64 = seen.iter().zip(&right).map(|(a, b)| square(a - b)).sum();
    (off / right.iter().copied().map(square).sum::<f64>()).sqrt()
}
