//! A scaler that is asked in the wrong order.

use todevice::amp::GradScalerOptions;
use todevice::prelude::*;

use crate::{Call, CallKind, Case, Diagnosis, Ended, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::amp::{self, AutocastOptions, GradScaler, GradScalerOptions};
    use todevice::nn::utils::{ClipGradNormOptions, clip_grad_norm_};
    use todevice::prelude::*;

    /// Trains on each batch once, in float16, with the gradients clipped to a norm of
    /// 0.5. Returns the scale at the end.
    pub fn train(
        model: &nn::Sequential,
        batches: &[(Tensor, Tensor)],
        scaling: GradScalerOptions,
    ) -> Result<f64> {
        let half =
            AutocastOptions { dtype: Some(DType::F16), ..scaling.device.into() };
        let options = SGDOptions { lr: 0.1, ..Default::default() };
        let mut optimizer = optim::SGD::new(model.parameters(), options)?;
        let mut scaler = GradScaler::new(scaling)?;

        for (x, y) in batches {
            optimizer.zero_grad();
            let loss = amp::autocast(half, || {
                nn::CrossEntropyLoss::default().forward(&model.forward(x)?, y)
            })?;
            scaler.scale(&loss)?.backward()?;
            scaler.unscale_(&optimizer)?;
            clip_grad_norm_(&model.parameters(), 0.5, ClipGradNormOptions::default())?;
            scaler.step(&mut optimizer)?;
            scaler.update()?;
        }
        scaler.get_scale()
    }
    // END
}

type Train = fn(&nn::Sequential, &[(Tensor, Tensor)], GradScalerOptions) -> Result<f64>;

pub static EXERCISE: Exercise = Exercise {
    id: "06-scaler",
    title: "A step too small to see",
    kind: Kind::Fix,
    task: "The model is trained in float16 with a scaler, and its gradients are clipped. There is no error and \
           no NaN, but the weights hardly move. Fix `train`: each step that is taken has to use gradients clipped to \
           a norm of 0.5, a step whose gradients are infinite has to be skipped, and the scale has to be updated. \
           Without a GPU the scaler does the same on the CPU.",
    hints: [
        "How large is the norm that `clip_grad_norm_` finds, compared with that of the gradients that the optimizer is to see?",
        "Until somebody divides them, the gradients are too large by the factor of the scale. `step` divides them \
         too, but it does so after you have clipped.",
        "After `backward`, and before the clipping, there has to be a `scaler.unscale_(&optimizer)?;`.",
    ],
    afterwards: "`step` does not divide again what `unscale_` has divided: the scaler keeps a record for each optimizer, until \
                 `update`.",
    source: include_str!("06-scaler.rs"),
    functions: &[(
        "train",
        "pub fn train(model: &nn::Sequential, batches: &[(Tensor, Tensor)], scaling: GradScalerOptions) -> Result<f64>",
    )],
    skeleton: &[(UNSCALE, "")],
    styles: &[
        Style {
            name: "limit_scaled",
            edits: &[
                (UNSCALE, "        let limit = 0.5 * scaler.get_scale()?;\n"),
                ("clip_grad_norm_(&model.parameters(), 0.5, ", "clip_grad_norm_(&model.parameters(), limit, "),
            ],
        },
        Style {
            name: "zeroed_at_the_end",
            edits: &[
                (ZERO, ""),
                (UPDATE, "        scaler.update()?;\n        optimizer.zero_grad();\n"),
                ("scaler.scale(&loss)?.backward()?;", "let scaled = scaler.scale(&loss)?;\n        scaled.backward()?;"),
            ],
        },
        Style {
            name: "clipped_by_hand",
            edits: &[(
                CLIP,
                "        let gradients: Vec<Tensor> =\n            \
                 model.parameters().iter().filter_map(|p| p.grad()).collect();\n        \
                 let norms: Result<Vec<Tensor>> = gradients.iter().map(|g| g.norm()).collect();\n        \
                 let norm = Tensor::stack(&norms?, 0)?.norm()?.item()?;\n        \
                 if norm > 0.5 && norm.is_finite() {\n            \
                 for gradient in &gradients {\n                \
                 gradient.copy_(&(gradient * (0.5 / norm))?)?;\n            }\n        }\n",
            )],
        },
    ],
    wrong: &[
        Wrong {
            name: "clipped_too_early",
            what: "The gradients are clipped while they are still scaled.",
            edits: &[(UNSCALE, "")],
            diagnosis: "clipped-too-early",
        },
        Wrong {
            name: "clipped_too_late",
            what: "The gradients are clipped after the optimizer has used them.",
            edits: &[
                (CLIP, ""),
                (
                    UPDATE,
                    "        scaler.update()?;\n        clip_grad_norm_(&model.parameters(), 0.5, ClipGradNormOptions::default())?;\n",
                ),
            ],
            diagnosis: "clipped-too-late",
        },
        Wrong {
            name: "not_clipped",
            what: "The clipping is left out.",
            edits: &[(CLIP, "        let _ = (clip_grad_norm_, ClipGradNormOptions::default());\n")],
            diagnosis: "not-clipped",
        },
        Wrong {
            name: "no_update",
            what: "`update` is left out.",
            edits: &[(UPDATE, "")],
            diagnosis: "no-update",
        },
        Wrong {
            name: "optimizer_steps",
            what: "The optimizer takes its step, and the scaler is not asked.",
            edits: &[("scaler.step(&mut optimizer)?;", "optimizer.step()?;")],
            diagnosis: "optimizer-steps",
        },
        Wrong {
            name: "stepped_twice",
            what: "The scaler takes a step, and the optimizer takes it again.",
            edits: &[("scaler.step(&mut optimizer)?;", "scaler.step(&mut optimizer)?;\n        optimizer.step()?;")],
            diagnosis: "stepped-twice",
        },
        Wrong {
            name: "unscaled_twice",
            what: "`unscale_` is called before and after the clipping.",
            edits: &[(
                "        scaler.step(&mut optimizer)?;\n",
                "        scaler.unscale_(&optimizer)?;\n        scaler.step(&mut optimizer)?;\n",
            )],
            diagnosis: "unscaled-twice",
        },
        Wrong {
            name: "never_scaled",
            what: "`backward` is called on the loss, and `scale` is never called.",
            edits: &[("scaler.scale(&loss)?.backward()?;", "loss.backward()?;")],
            diagnosis: "never-scaled",
        },
        Wrong {
            name: "scaled_loss_dropped",
            what: "The scaled loss is dropped, and `backward` is called on the loss that was not scaled.",
            edits: &[("scaler.scale(&loss)?.backward()?;", "scaler.scale(&loss)?;\n        loss.backward()?;")],
            diagnosis: "scaled-loss-dropped",
        },
        Wrong {
            name: "updated_too_early",
            what: "`update` is called before `step`.",
            edits: &[
                (UPDATE, ""),
                (
                    "        scaler.step(&mut optimizer)?;\n",
                    "        scaler.update()?;\n        scaler.step(&mut optimizer)?;\n",
                ),
            ],
            diagnosis: "updated-too-early",
        },
        Wrong {
            name: "new_scaler",
            what: "Each batch gets a new scaler, which starts from the first scale.",
            edits: &[
                (ZERO, "        scaler = GradScaler::new(scaling)?;\n        optimizer.zero_grad();\n"),
            ],
            diagnosis: "new-scaler",
        },
        Wrong {
            name: "no_autocast",
            what: "There is no autocast region.",
            edits: &[
                (HALF, ""),
                ("{self, AutocastOptions, GradScaler", "{GradScaler"),
                (LOSS, "        let loss = nn::CrossEntropyLoss::default().forward(&model.forward(x)?, y)?;\n"),
            ],
            diagnosis: "float32",
        },
        Wrong {
            name: "in_bfloat16",
            what: "The products run in bfloat16.",
            edits: &[("DType::F16", "DType::BF16")],
            diagnosis: "bfloat16",
        },
        Wrong {
            name: "unscaled_before_backward",
            what: "`unscale_` comes before `backward`.",
            edits: &[
                (UNSCALE, ""),
                ("        scaler.scale(&loss)?.backward()?;\n", "        let scaled = scaler.scale(&loss)?;\n        scaler.unscale_(&optimizer)?;\n        scaled.backward()?;\n"),
            ],
            diagnosis: "unscaled-too-early",
        },
        Wrong {
            name: "never_cleared",
            what: "The gradients are never cleared.",
            edits: &[(ZERO, "")],
            diagnosis: "gradients-add-up",
        },
        Wrong {
            name: "first_scale",
            what: "The scale is read before the loop instead of after it.",
            edits: &[
                ("    for (x, y) in batches {\n", "    let first = scaler.get_scale();\n    for (x, y) in batches {\n"),
                ("    scaler.get_scale()\n", "    first\n"),
            ],
            diagnosis: "scale",
        },
        Wrong {
            name: "gradients_cleared",
            what: "`zero_grad` comes between `backward` and the scaler.",
            edits: &[
                (ZERO, ""),
                (UNSCALE, "        optimizer.zero_grad();\n        scaler.unscale_(&optimizer)?;\n"),
            ],
            diagnosis: "gradients-cleared",
        },
    ],
    places: &[
        (
            "The lines after the loss, in their order",
            &[
                &[],
                &[(UNSCALE, "")],
                &[(UNSCALE, ""), (CLIP, "        clip_grad_norm_(&model.parameters(), 0.5, ClipGradNormOptions::default())?;\n        scaler.unscale_(&optimizer)?;\n")],
                &[
                    (CLIP, ""),
                    (
                        UPDATE,
                        "        scaler.update()?;\n        clip_grad_norm_(&model.parameters(), 0.5, ClipGradNormOptions::default())?;\n",
                    ),
                ],
                &[("scaler.step(&mut optimizer)?;", "optimizer.step()?;")],
                &[
                    (UNSCALE, ""),
                    ("        scaler.scale(&loss)?.backward()?;\n", "        let scaled = scaler.scale(&loss)?;\n        scaler.unscale_(&optimizer)?;\n        scaled.backward()?;\n"),
                ],
                &[
                    (UPDATE, ""),
                    (
                        "        scaler.step(&mut optimizer)?;\n",
                        "        scaler.update()?;\n        scaler.step(&mut optimizer)?;\n",
                    ),
                ],
            ],
        ),
    ],
    gpus: &["sim:t4", "sim:h200", "none"],
    sizes: &[32, 64],
    observe: |case| observe(case, solution::train),
    judge,
};

const HALF: &str = "    let half =
        AutocastOptions { dtype: Some(DType::F16), ..scaling.device.into() };
";
const LOSS: &str = "        let loss = amp::autocast(half, || {
            nn::CrossEntropyLoss::default().forward(&model.forward(x)?, y)
        })?;
";
const ZERO: &str = "        optimizer.zero_grad();\n";
const UNSCALE: &str = "        scaler.unscale_(&optimizer)?;\n";
const CLIP: &str = "        clip_grad_norm_(&model.parameters(), 0.5, ClipGradNormOptions::default())?;\n";
const UPDATE: &str = "        scaler.update()?;\n";

const FEATURES: usize = 16;
const CLASSES: usize = 4;
/// 2^18
const FIRST_SCALE: f64 = 262144.0;

fn batches(case: &Case) -> usize {
    8 + case.seed as usize % 3
}

/// The size of a case is that of a batch. The first scale is so large that the first steps overflow, and the scaler tries
/// a larger one soon.
pub fn observe(case: &Case, train: Train) -> Seen {
    case.machine().enter(|| {
        let device = case.device();
        manual_seed(case.seed);
        let given = || -> Result<_> {
            let layers = (nn::Linear::new(FEATURES, 32)?, nn::ReLU, nn::Linear::new(32, CLASSES)?);
            let model = nn::Sequential::new(layers);
            model.to(device)?;
            let mut batches_given = Vec::new();
            for _ in 0..batches(case) {
                // Larger than usual, so that there is something to clip.
                let x = (Tensor::randn(&[case.size, FEATURES])? * 4.0)?.to(device)?;
                batches_given.push((x, Tensor::randint(0, CLASSES as i64, &[case.size])?.to(device)?));
            }
            let first = flat(&model)?;
            Ok((model, batches_given, first))
        };
        let (model, batches, first) = given().expect("the machine is new");
        let scaling = GradScalerOptions {
            device: device.device_type(),
            init_scale: FIRST_SCALE,
            growth_interval: 3,
            ..Default::default()
        };
        crate::observe(case, || train(&model, &batches, scaling), |facts| {
            let moved = no_grad(|| flat(&model)? - &first)?;
            facts.insert("moved".into(), crate::IntoValue::into_value(moved)?);
            Ok(())
        })
    })
}

/// All weights, one after the other.
fn flat(model: &nn::Sequential) -> Result<Tensor> {
    let weights: Result<Vec<Tensor>> =
        model.parameters().iter().map(|weight| weight.tensor().detach().flatten(0, -1)).collect();
    Tensor::cat(&weights?, 0)
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let steps = |seen: &Seen| operations(seen, "_fused_sgd_") / PARAMETERS;
    let updates = operations(seen, UPDATE_SCALE);
    if let Ended::Failed { message, .. } = &seen.ended
        && let Some(diagnosis) = refused(message, steps(seen), updates, clips_after_backward(seen))
    {
        return Err(diagnosis.seen(message));
    }
    let scale = seen.returned()?;

    // Without a GPU nobody says what runs in which type.
    let products = |kind: &str| {
        let is_of = |call: &&Call| call.name.contains("gemm") && call.types.iter().any(|of| of == kind);
        seen.of(CallKind::Launch).filter(is_of).count()
    };
    let halves = products("torch.float16");
    for kind in ["float32", "bfloat16"] {
        let others = products(&format!("torch.{kind}"));
        if others > halves {
            return Err(Diagnosis::new(kind, format!("The products run in {kind}."))
                .seen(format!("{others} products in {kind}, {halves} in float16"))
                .expected("products in float16, forward and back")
                .idea("The type is that of the `autocast` region around the forward pass. Leave it float16: that is what the scaler is for."));
        }
    }

    let (moved, expected) = (numbers(seen.fact("moved")), numbers(right.fact("moved")));
    let off = norm(moved.iter().zip(expected).map(|(a, b)| a - b)) / norm(expected.iter().copied());
    // Another order of the same arithmetic may round an activation the other way in float16, by 2^-11, and there are 10 steps
    // at most: 0.5 %.
    let is_right = off < 0.02;
    if is_right && scale == right.value() {
        return Ok(());
    }

    let batches = batches(case);
    let share = norm(moved.iter().copied()) / norm(expected.iter().copied());
    let of_weights = |id: &str, says: &str| {
        Diagnosis::new(id, says)
            .seen(match share {
                0.0 => "weights that do not move".to_owned(),
                _ => format!("the weights move {} as far as they should", times(share)),
            })
            .expected(format!("{} steps of gradients clipped to 0.5", steps(right)))
    };
    let of_steps = |id: &str, says: &str| {
        Diagnosis::new(id, says)
            .seen(format!("{} steps of the optimizer for {batches} batches", steps(seen)))
            .expected(format!("{}: a batch whose gradients are infinite takes none", steps(right)))
    };
    let is_finite = share.is_finite();
    if steps(seen) > batches || !is_finite && has_asked_before_each_step(seen) {
        return Err(of_steps("stepped-twice", "The optimizer takes a second step after the one that the scaler has taken or skipped.").idea(
            "`scaler.step` takes the optimizer's step, or skips it if a gradient is infinite. If the optimizer is called, too, \
             each step is taken twice, and one that was skipped makes the weights NaN.",
        ));
    }
    if !is_finite {
        return Err(of_steps("optimizer-steps", "A step is taken with gradients that are infinite, and the weights are NaN.")
            .idea(
                "The scaler finds out whether a gradient is infinite, and `scaler.step` skips such a step. The optimizer's \
                 own `step` knows nothing of it.",
            ));
    }
    if seen.of(CallKind::Launch).filter(|call| call.name == NEW_SCALER).count() > 1 {
        return Err(Diagnosis::new("new-scaler", "Each batch has a scaler of its own.")
            .seen(format!("{batches} scalers, each with the first scale of {}", FIRST_SCALE))
            .expected("one, whose scale goes from batch to batch")
            .idea("A scaler looks for its scale over many steps. One that is new each time tries the same scale each time."));
    }
    let first = |name: &str| seen.calls.iter().position(|call| call.operation.as_deref() == Some(name));
    let (clipped, unscaled) = (first(CLIP_NORM), first(UNSCALE_ALL));
    if steps(seen) == batches && steps(right) < batches && share < 0.01 {
        return Err(of_weights("scaled-loss-dropped", "The gradients are divided by the scale, and were never multiplied by it.")
            .idea(
                "`scale` returns a tensor, the loss times the scale, and changes nothing. `backward` has to start from \
                 what it returns.",
            ));
    }
    if clipped.is_some() && unscaled.is_some() && clipped < unscaled && share < 0.01 {
        return Err(of_weights("clipped-too-early", "The gradients are clipped while they are multiplied by the scale.")
            .idea(
                "Scaled gradients are tens of thousands of times too large. Clipped to 0.5 and then divided by the scale, \
                 next to nothing is left of them. Clip between the division and the step.",
            )
            .at(unscaled.and_then(|_| line_of(seen, CLIP_NORM))));
    }
    if clipped.is_none() && case.gpu != "none" && share > 1.0 {
        return Err(of_weights("not-clipped", "The gradients are not clipped.")
            .idea("Clipping is part of the task: gradients with a norm above 0.5 are to be shrunk to 0.5."));
    }
    if has_step_before_clipping(seen) && !is_right {
        return Err(of_weights("clipped-too-late", "The gradients are clipped after the optimizer has taken its step.")
            .idea("Changing a gradient after the step has no effect: the next `zero_grad` forgets it.")
            .at(line_of(seen, CLIP_NORM)));
    }
    if !is_right && adds_up(seen) {
        return Err(of_weights("gradients-add-up", "Each batch adds its gradients to those of the batches before.")
            .idea("`backward` adds to the gradients that are there. Somebody has to clear them, once for each batch. What has \
                  been infinite stays infinite in the sum, and all later steps are skipped.")
            .at(backward(seen).and_then(|call| call.line)));
    }
    if !is_right {
        return Err(of_weights("weights", "The steps are not those of clipped gradients.")
            .idea("Follow one gradient: cleared, multiplied by the scale, divided by it, clipped, used once."));
    }
    Err(Diagnosis::new("scale", "The weights are right, but the scale is not.")
        .seen(format!("a scale of {}", scale.number().unwrap_or(f64::NAN)))
        .expected(format!("{}", right.value().number().unwrap_or(f64::NAN)))
        .idea("Call `update` once after each step, even a skipped one. `get_scale` returns the scale after the last."))
}

/// What an error of the scaler means here. It has told what it was called for, and not why that was wrong.
fn refused(message: &str, steps: usize, updates: usize, clips_after_backward: bool) -> Option<Diagnosis> {
    let says = |words: &str| message.contains(words);
    if says("is being called after step()") && updates > 0 {
        return Some(Diagnosis::new("updated-too-early", "`update` comes before `step`.")
            .expected("the step, and then the update")
            .idea(
                "`update` ends an iteration: the scaler forgets that it has divided the gradients. `step` then divides \
                 them again, and the next iteration finds a step without an update after it.",
            ));
    }
    let no_step_forgotten = says("called after step()") || says("step() has already been called");
    if no_step_forgotten || (says("unscale_() has already been called") && steps > 0) {
        return Some(Diagnosis::new("no-update", "The second batch finds a scaler that has not been updated.")
            .expected("an update after each step")
            .idea(
                "`update` adjusts the scale, and makes the scaler ready for the next batch. Without it an overflow would \
                 come again and again.",
            ));
    }
    if says("unscale_() has already been called") {
        return Some(Diagnosis::new("unscaled-twice", "The gradients are to be divided by the scale a second time.")
            .expected("one division for each step")
            .idea("Divided once, they are what they would be without a scaler. `step` knows, and leaves them as they are."));
    }
    if says("_scale is None") {
        return Some(Diagnosis::new("never-scaled", "The scaler is to divide, and has never multiplied.")
            .expected("a loss that is scaled before `backward`")
            .idea("The scale makes the gradients of the backward pass large enough for float16. That begins with the loss."));
    }
    // There were gradients, but only after the division.
    if says("recorded for this optimizer") && clips_after_backward {
        return Some(Diagnosis::new("unscaled-too-early", "`unscale_` comes before `backward`.")
            .expected("a backward pass, and then the division")
            .idea("`unscale_` divides gradients, and it is `backward` that makes them."));
    }
    if says("recorded for this optimizer") {
        return Some(Diagnosis::new("gradients-cleared", "There are no gradients when the scaler looks for them.")
            .expected("the gradients that `backward` has left")
            .idea("`backward` makes the gradients, and `zero_grad` forgets them. The scaler has to look between the two."));
    }
    if says("recorded prior to update") {
        return Some(match steps {
            0 => Diagnosis::new("updated-too-early", "`update` comes before `step`.")
                .expected("the step, and then the update")
                .idea("`update` looks at what `step`, or `unscale_`, has found, and there is nothing yet."),
            _ => Diagnosis::new("optimizer-steps", "The optimizer takes its step, and the scaler is not asked.")
                .expected("`scaler.step`, which divides, looks for infinite gradients, and steps or skips")
                .idea("`update` has nothing to go by: nobody has looked whether a gradient is infinite."),
        });
    }
    None
}

const PARAMETERS: usize = 4;
const CLIP_NORM: &str = "clip_grad_norm_";
const UNSCALE_ALL: &str = "_amp_foreach_non_finite_check_and_unscale_";
const UPDATE_SCALE: &str = "_amp_update_scale_";
/// The kernel that makes a scaler's counter.
const NEW_SCALER: &str = "fill_i32";

fn operations(seen: &Seen, name: &str) -> usize {
    seen.of(CallKind::Launch).filter(|call| call.operation.as_deref() == Some(name)).count()
}

fn line_of(seen: &Seen, name: &str) -> Option<u32> {
    seen.of(CallKind::Launch).find(|call| call.operation.as_deref() == Some(name)).and_then(|call| call.line)
}

/// The first kernel of a backward pass.
fn backward(seen: &Seen) -> Option<&Call> {
    let is_back = |call: &&Call| call.operation.as_deref().is_some_and(|name| name.ends_with("Backward0"));
    seen.of(CallKind::Launch).find(is_back)
}

/// Whether there is something to clip after a backward pass. Without a GPU nobody sees it.
fn clips_after_backward(seen: &Seen) -> bool {
    let names = seen.of(CallKind::Launch).filter_map(|call| call.operation.as_deref());
    names.skip_while(|name| !name.ends_with("Backward0")).any(|name| name == CLIP_NORM)
}

/// Whether `backward` adds to gradients of most parameters.
fn adds_up(seen: &Seen) -> bool {
    let line = backward(seen).and_then(|call| call.line);
    let is_added = |call: &&Call| call.operation.as_deref() == Some("add") && call.line == line;
    line.is_some() && seen.of(CallKind::Launch).filter(is_added).count() >= PARAMETERS
}

/// Whether there is a step of gradients that were not clipped after they were unscaled.
fn has_step_before_clipping(seen: &Seen) -> bool {
    let mut clipped = true;
    seen.of(CallKind::Launch).any(|call| match call.operation.as_deref() {
        Some(UNSCALE_ALL) => {
            clipped = false;
            false
        }
        Some(CLIP_NORM) => {
            clipped = true;
            false
        }
        Some("_fused_sgd_") => !clipped,
        _ => false,
    })
}

/// Whether the host has fetched something between unscaling and each step, as `scaler.step` does.
fn has_asked_before_each_step(seen: &Seen) -> bool {
    let mut asked = true;
    seen.calls.iter().all(|call| {
        match call.operation.as_deref() {
            Some(UNSCALE_ALL) => asked = false,
            Some("_fused_sgd_") => return asked,
            _ => asked |= call.kind == CallKind::ToHost,
        }
        true
    })
}

fn times(share: f64) -> String {
    match share {
        0.01.. => format!("{share:.1} times"),
        _ => format!("1/{:.0}000", 1e-3 / share),
    }
}

fn numbers(value: &Value) -> &[f64] {
    match value {
        Value::Tensor { values, .. } => values,
        _ => &[],
    }
}

fn norm(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|x| x * x).sum::<f64>().sqrt()
}
