//! The gradient of a large batch, from small parts.

use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Edit, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// One step of training on a large batch, of which at most `rows` rows go through the
    /// model at a time. Returns the mean loss of the large batch.
    pub fn step(
        model: &nn::Sequential,
        optimizer: &mut optim::SGD,
        x: &Tensor,
        y: &Tensor,
        rows: usize,
    ) -> Result<f64> {
        let loss_fn = nn::CrossEntropyLoss::default();
        let all = x.size(0)? as f64;
        let parts = x.split(rows, 0)?.into_iter().zip(y.split(rows, 0)?);

        let mut mean = 0.0;
        optimizer.zero_grad();
        for (x, y) in parts {
            // The last part may be smaller than the others.
            let share = x.size(0)? as f64 / all;
            let loss = (loss_fn.forward(&model.forward(&x)?, &y)? * share)?;
            loss.backward()?;
            mean += loss.item()?;
        }
        optimizer.step()?;
        Ok(mean)
    }
    // END
}

type Step = fn(&nn::Sequential, &mut optim::SGD, &Tensor, &Tensor, usize) -> Result<f64>;

/// The exercise before this one in the chapter.
pub const AFTER: &str = "04-no-grad";

pub static EXERCISE: Exercise = Exercise {
    id: "04-accumulate",
    title: "A large batch on a small card",
    kind: Kind::Write,
    task: "A batch is too large: what its forward pass keeps does not fit in memory. Write `step` so that it sends the batch \
           through the model in parts of `rows` rows, of which only the last may be smaller, and takes *one* step with the \
           gradient of the whole batch. The weights after the step and the mean loss that it returns must be those of the \
           whole batch, but the memory peak must be that of one part.",
    hints: [
        "`backward` does not replace the gradients, it adds to them. What clears them, and what uses them? When should each \
         happen?",
        "The loss of a part is a mean over the part. In the mean over the batch, a part of 10 rows out of 40 counts for a \
         quarter. So does its gradient.",
        "Multiply each loss by `x.size(0)? as f64 / all` and call `backward` on it at once. Call `zero_grad` before the \
         loop, and `step` after it.",
    ],
    afterwards: "Layers that look across a batch, such as batch norm, see only one part at a time. With them the gradient is not the same.",
    source: include_str!("04-accumulate.rs"),
    functions: &[(
        "step",
        "pub fn step(model: &nn::Sequential, optimizer: &mut optim::SGD, x: &Tensor, y: &Tensor, rows: usize) -> Result<f64>",
    )],
    skeleton: UNWRITTEN,
    styles: &[
        Style {
            name: "narrowed",
            edits: &[
                ("    let parts = x.split(rows, 0)?.into_iter().zip(y.split(rows, 0)?);\n", "    let count = x.size(0)?;\n"),
                (
                    "    for (x, y) in parts {\n",
                    "    for start in (0..count).step_by(rows) {\n        let length = rows.min(count - start);\n        \
                     let (x, y) = (x.narrow(0, start, length)?, y.narrow(0, start, length)?);\n",
                ),
            ],
        },
        Style {
            name: "summed_and_divided",
            edits: &[
                (
                    "    let loss_fn = nn::CrossEntropyLoss::default();\n",
                    "    let options = CrossEntropyOptions { reduction: Reduction::Sum, ..Default::default() };\n",
                ),
                ("        // The last part may be smaller than the others.\n        let share = x.size(0)? as f64 / all;\n", ""),
                (
                    "(loss_fn.forward(&model.forward(&x)?, &y)? * share)?;",
                    "(model.forward(&x)?.cross_entropy((&y, options.clone()))? / all)?;",
                ),
            ],
        },
        Style {
            name: "gradients_scaled",
            edits: &[
                ("let loss = (loss_fn.forward(&model.forward(&x)?, &y)? * share)?;", "let loss = loss_fn.forward(&model.forward(&x)?, &y)?;"),
                ("        loss.backward()?;\n        mean += loss.item()?;\n", "        (&loss * x.size(0)? as f64)?.backward()?;\n        mean += loss.item()? * share;\n"),
                (
                    "    optimizer.step()?;\n",
                    "    for parameter in model.parameters() {\n        \
                     let mean = parameter.grad().map(|grad| grad / all).transpose()?;\n        \
                     parameter.set_grad(mean)?;\n    }\n    optimizer.step()?;\n",
                ),
            ],
        },
        Style {
            name: "cleared_at_the_end",
            edits: &[
                ("    optimizer.zero_grad();\n", "    model.zero_grad();\n    let mut losses = Vec::new();\n"),
                ("        mean += loss.item()?;\n", "        losses.push(loss.detach());\n"),
                ("    optimizer.step()?;\n", "    optimizer.step()?;\n    optimizer.zero_grad();\n    for loss in losses {\n        mean += loss.item()?;\n    }\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "unwritten",
            what: "Nothing has been written yet.",
            edits: UNWRITTEN,
            diagnosis: "todo",
        },
        Wrong {
            name: "not_divided",
            what: "The losses of the parts are added up as they are.",
            edits: &[
                ("(loss_fn.forward(&model.forward(&x)?, &y)? * share)?;", "loss_fn.forward(&model.forward(&x)?, &y)?;"),
                ("mean += loss.item()?;", "mean += loss.item()? * share;"),
            ],
            diagnosis: "not-divided",
        },
        Wrong {
            name: "parts_alike",
            what: "Each loss is divided by the number of parts, although the last part is smaller.",
            edits: &[
                ("    let parts = x", "    let count = x.size(0)?.div_ceil(rows) as f64;\n    let parts = x"),
                ("let share = x.size(0)? as f64 / all;", "let share = (all / all) / count;"),
            ],
            diagnosis: "parts-alike",
        },
        Wrong {
            name: "cleared_in_the_loop",
            what: "The gradients are cleared before each part.",
            edits: &[("    optimizer.zero_grad();\n    for (x, y) in parts {\n", "    for (x, y) in parts {\n        optimizer.zero_grad();\n")],
            diagnosis: "cleared-in-the-loop",
        },
        Wrong {
            name: "never_cleared",
            what: "The gradients are never cleared.",
            edits: &[("    optimizer.zero_grad();\n", "")],
            diagnosis: "never-cleared",
        },
        Wrong {
            name: "step_in_the_loop",
            what: "A step is taken after each part.",
            edits: &[("    }\n    optimizer.step()?;\n", "        optimizer.step()?;\n    }\n")],
            diagnosis: "step-in-the-loop",
        },
        Wrong {
            name: "two_steps",
            what: "The step is taken twice.",
            edits: &[("    optimizer.step()?;\n", "    optimizer.step()?;\n    optimizer.step()?;\n")],
            diagnosis: "more-steps",
        },
        Wrong {
            name: "no_step",
            what: "No step is taken.",
            edits: &[("    optimizer.step()?;\n", "")],
            diagnosis: "no-step",
        },
        Wrong {
            name: "rows_scaled",
            what: "Each part's rows are multiplied by its share, instead of its loss.",
            edits: &[("(loss_fn.forward(&model.forward(&x)?, &y)? * share)?;", "(loss_fn.forward(&model.forward(&(&x * share)?)?, &y)? * 1.0)?;")],
            diagnosis: "gradient",
        },
        Wrong {
            name: "backward_at_the_end",
            what: "The losses are added up, and `backward` is called on the sum.",
            edits: &[
                ("    let mut mean = 0.0;\n", "    let mut losses = Vec::new();\n"),
                ("        loss.backward()?;\n        mean += loss.item()?;\n", "        losses.push(loss);\n"),
                ("    optimizer.step()?;\n    Ok(mean)\n", "    let sum = Tensor::stack(&losses, 0)?.sum()?;\n    sum.backward()?;\n    optimizer.step()?;\n    sum.item()\n"),
            ],
            diagnosis: "backward-at-the-end",
        },
        Wrong {
            name: "whole_batch",
            what: "The whole batch goes through the model at once.",
            edits: &[("let parts = x.split(rows, 0)?.into_iter().zip(y.split(rows, 0)?);", "let parts = [(x.clone(), y.clone())];\n    let _ = rows;")],
            diagnosis: "whole-batch",
        },
        Wrong {
            name: "row_by_row",
            what: "The rows go through the model one by one.",
            edits: &[("let parts = x.split(rows, 0)?.into_iter().zip(y.split(rows, 0)?);", "let parts = x.split(1, 0)?.into_iter().zip(y.split(1, 0)?);\n    let _ = rows;")],
            diagnosis: "row-by-row",
        },
        Wrong {
            name: "rest_dropped",
            what: "The last part is left out, because it is smaller.",
            edits: &[("for (x, y) in parts {", "for (x, y) in parts.take(all as usize / rows) {")],
            diagnosis: "rest-dropped",
        },
        Wrong {
            name: "loss_of_the_last",
            what: "The loss of the last part is returned.",
            edits: &[("mean += loss.item()?;", "mean = loss.item()? / share;")],
            diagnosis: "loss",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "sim:h200", "none"],
    sizes: &[256, 448],
    observe: |case| observe(case, solution::step),
    judge,
};

const UNWRITTEN: &[Edit] = &[
    ("    let all = x.size(0)? as f64;\n", ""),
    ("    let mut mean = 0.0;\n    optimizer.zero_grad();\n", ""),
    (
        "        // The last part may be smaller than the others.\n        let share = x.size(0)? as f64 / all;\n        \
         let loss = (loss_fn.forward(&model.forward(&x)?, &y)? * share)?;\n        loss.backward()?;\n        \
         mean += loss.item()?;\n",
        "        let loss = loss_fn.forward(&model.forward(&x)?, &y)?;\n        \
         // What becomes of it? Mind that the last part may be smaller than the others.\n        \
         todo!(\"its part in the gradient, and in the mean\")\n",
    ),
    (
        "    optimizer.step()?;\n    Ok(mean)\n",
        "    // Where does the optimizer come in, with `zero_grad` and with `step`?\n    \
         todo!(\"one step, and the mean loss\")\n",
    ),
];

const FEATURES: usize = 16;
const HIDDEN: usize = 64;
const CLASSES: usize = 4;
const PARAMETERS: usize = 4;
/// Large batches, one after the other.
const STEPS: usize = 2;

/// The parts that a batch has: all of one size but the last, which is about half as large.
fn parts(case: &Case) -> usize {
    5 + case.seed as usize % 3
}

/// Rows of a part, at most.
fn rows(case: &Case) -> usize {
    case.size * 2 / (2 * parts(case) - 1)
}

/// Rows of the large batch.
fn all(case: &Case) -> usize {
    rows(case) * (parts(case) - 1) + rows(case) / 2
}

/// The size of a case is about that of the large batch. The seed decides on the number of parts.
pub fn observe(case: &Case, step: Step) -> Seen {
    case.machine().enter(|| {
        let device = case.device();
        manual_seed(case.seed);
        let given = || -> Result<_> {
            let layers = (nn::Linear::new(FEATURES, HIDDEN)?, nn::ReLU, nn::Linear::new(HIDDEN, CLASSES)?);
            let model = nn::Sequential::new(layers);
            model.to(device)?;
            let options = SGDOptions { lr: 0.5, ..Default::default() };
            let optimizer = optim::SGD::new(model.parameters(), options)?;
            let mut batches = Vec::new();
            for _ in 0..STEPS {
                let x = Tensor::randn(&[all(case), FEATURES])?;
                // Something to learn, and something else in the last rows than in the first.
                let y = x.narrow(1, 0, CLASSES)?.argmax(1, false)?;
                let last = all(case) / 2;
                x.narrow(0, last, all(case) - last)?.mul_(&Tensor::full(&[], (3.0, DType::F32))?)?;
                batches.push((x.to(device)?, y.to(device)?));
            }
            // Takes the workspace for products.
            no_grad(|| model.forward(&batches[0].0))?;
            Ok((model, optimizer, batches))
        };
        let (model, mut optimizer, batches) = given().expect("the machine is new");
        let mut weights = vec![flat(&model).expect("it fits")];
        let mut seen = crate::observe(
            case,
            || {
                let mut losses = Vec::new();
                for (x, y) in &batches {
                    losses.push(step(&model, &mut optimizer, x, y, rows(case))?);
                    weights.push(flat(&model)?);
                }
                Ok(losses)
            },
            |_| Ok(()),
        );
        let moved: Result<Vec<Tensor>> = weights.windows(2).map(|pair| &pair[1] - &pair[0]).collect();
        if let Ok(moved) = moved.and_then(IntoValue::into_value) {
            seen.facts.insert("moved".into(), moved);
        }
        seen
    })
}

/// All weights, one after the other, on the CPU.
fn flat(model: &nn::Sequential) -> Result<Tensor> {
    let weights: Result<Vec<Tensor>> =
        model.parameters().iter().map(|weight| weight.tensor().detach().cpu()?.copy()?.flatten(0, -1)).collect();
    Tensor::cat(&weights?, 0)
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let losses = seen.returned()?;
    let (parts, rows, all) = (parts(case), rows(case), all(case));
    let on_gpu = case.gpu != "none";

    let passes = |seen: &Seen| operations(seen, "relu");
    let of_passes = |id: &str, says: &str| {
        Diagnosis::new(id, says)
            .seen(format!("{} forward passes for {STEPS} batches of {all} rows", passes(seen)))
            .expected(format!("{}: {parts} parts for each batch, of {rows} rows each and {} in the last", passes(right), rows / 2))
    };
    let kib = |bytes: u64| format!("{} KiB at most", bytes / 1024);
    if on_gpu && passes(seen) <= STEPS {
        return Err(of_passes("whole-batch", "The whole batch goes through the model at once.")
            .seen(format!("{} forward passes for {STEPS} batches, and {}", passes(seen), kib(seen.peak)))
            .idea("What the layers keep for the backward pass grows with the rows of a pass. On a smaller card it would not fit."));
    }
    if passes(seen) > 2 * passes(right) {
        return Err(of_passes("row-by-row", "The batch goes through the model in more parts than it has to.").idea(
            "Each pass launches the same kernels, for few rows or for many. Send `rows` rows at a time.",
        ));
    }
    let steps = operations(seen, "_fused_sgd_") / PARAMETERS;
    if steps > STEPS && steps < STEPS * parts {
        return Err(Diagnosis::new("more-steps", "More than one step is taken for a batch.")
            .seen(format!("{steps} steps for {STEPS} batches"))
            .expected(format!("{STEPS}: one a batch"))
            .idea("Together the parts give one gradient, and you take one step with it. A second step goes too far.")
            .at(line_of(seen, "_fused_sgd_")));
    }
    if steps > STEPS {
        return Err(Diagnosis::new("step-in-the-loop", "The optimizer takes a step for each part.")
            .seen(format!("{steps} steps for {STEPS} batches"))
            .expected(format!("{STEPS}: one a batch"))
            .idea(
                "A step changes the weights, so the next part's gradient is that of another model. That is training \
                 with small batches. Collect first, then step.",
            ));
    }
    if passes(seen) < passes(right) {
        return Err(of_passes("rest-dropped", "Some of the rows never go through the model.")
            .idea("A batch need not divide evenly into parts. The last part is what is left, and it counts, too."));
    }
    // What ReLU puts out for a part. The peak of other styles differs from the solution's by a few blocks of 512 bytes, and
    // by one such result if it dies late; the graphs of all parts are four of them at least.
    let one = (rows * HIDDEN * 4) as u64;
    if seen.peak > right.peak + one * 3 / 2 {
        return Err(Diagnosis::new("backward-at-the-end", "The graphs of all parts are alive at the same time.")
            .seen(kib(seen.peak))
            .expected(format!("{}, which is what one part takes", kib(right.peak)))
            .idea(
                "Only `backward` frees what a forward pass has kept. If you call it on the sum of all losses, every part has been \
                 kept by then, as for the whole batch. The gradients add up by themselves: call `backward` for each part.",
            ));
    }

    // Sums in another order differ by some 1e-7. What a part counts too much shows in the second digit.
    let ratios = ratios(seen, right);
    let is_right = |[along, aside]: &[f64; 2]| (along - 1.0).abs() < 1e-3 && *aside < 1e-3;
    let [Some(first), Some(second)] = [ratios.first(), ratios.get(1)] else {
        return Err(Diagnosis::new("weights", "The weights cannot be compared.").expected("two steps"));
    };
    let of_weights = |id: &str, says: &str| {
        Diagnosis::new(id, says)
            .seen(format!("the first step is {:.2} times as long as it should be", first[0].hypot(first[1])))
            .expected("the step of the whole batch")
    };
    if ratios.iter().all(|[along, aside]| *along == 0.0 && *aside == 0.0) {
        return Err(Diagnosis::new("no-step", "No step is taken.")
            .seen("weights that have not changed")
            .expected(format!("{STEPS} steps: one a batch"))
            .idea("`backward` collects gradients, and changes no weight. The optimizer's step does that, once for each large batch."));
    }
    if is_right(first) && !is_right(second) {
        return Err(of_weights("never-cleared", "The second batch adds its gradients to those of the first.")
            .seen("one right step, and a wrong one after it")
            .idea("`backward` adds to the gradients that are there. Call `zero_grad` to begin a new sum, once for each large batch."));
    }
    // From the second part on, the gradient of each parameter is added to what is there.
    if !is_right(first) && on_gpu && operations(seen, "add") < STEPS * (parts - 1) * PARAMETERS {
        return Err(of_weights("cleared-in-the-loop", "The model learns only from the last part.").idea(
            "`zero_grad` throws away what the earlier parts have collected. Call it before the first part.",
        ));
    }
    // As many means as there are parts, one of them over half as many rows, which adds up to a little more or less.
    let sum_of_means = (0.7..1.4).contains(&(first[0] / parts as f64));
    if !is_right(first) && sum_of_means {
        return Err(of_weights("not-divided", "The gradient is the sum over the parts, but should be the mean over the rows.")
            .idea("Each loss is already the mean over its part. In the mean over the batch it counts only by its share of the rows, and so does its gradient."));
    }
    // A part of half as many rows that counts as much as others turns the step by a few degrees.
    let angle = first[1].atan2(first[0]).to_degrees();
    let told_of_the_first = format!(
        "a first step that is {:.2} times as long as it should be, in a direction that is {angle:.1}° off",
        first[0].hypot(first[1])
    );
    if !is_right(first) && (0.7..1.4).contains(&first[0]) && angle < 20.0 {
        return Err(of_weights("parts-alike", "Nearly right, but some rows count more than others.")
            .seen(told_of_the_first)
            .idea(format!(
                "A batch of {all} rows cannot be cut into equal parts of {rows}. With equal shares, a row of a smaller part counts \
                 more than others. Let each part count by the number of its rows."
            )));
    }
    if !is_right(first) || !is_right(second) {
        return Err(of_weights("gradient", "The step is not that of the whole batch.")
            .seen(told_of_the_first)
            .idea("Each row's loss has the same share in the mean over the batch. What is the share of a part?"));
    }
    if !losses.is_near(right.value(), 1e-4) {
        let told = |value: &Value| match value.list().first().and_then(Value::number) {
            Some(loss) => format!("{loss:.4}"),
            None => "none".to_owned(),
        };
        return Err(Diagnosis::new("loss", "The step is right, but the loss that is returned is not.")
            .seen(told(losses))
            .expected(format!("{}, the mean over all {all} rows of the first batch", told(right.value())))
            .idea("The loss of the batch is put together in the same way as its gradient: each part counts by its share."));
    }
    Ok(())
}

fn operations(seen: &Seen, name: &str) -> usize {
    seen.of(CallKind::Launch).filter(|call| call.operation.as_deref() == Some(name)).count()
}

fn line_of(seen: &Seen, name: &str) -> Option<u32> {
    seen.of(CallKind::Launch).find(|call| call.operation.as_deref() == Some(name)).and_then(|call| call.line)
}

/// How far each step has gone in the right direction, and aside, compared with what is right.
fn ratios(seen: &Seen, right: &Seen) -> Vec<[f64; 2]> {
    let pairs = seen.fact("moved").list().iter().zip(right.fact("moved").list());
    pairs
        .map(|(seen, right)| {
            let (seen, right) = (numbers(seen), numbers(right));
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let square = dot(right, right);
            let along = dot(seen, right) / square;
            let aside = (dot(seen, seen) / square - along * along).max(0.0).sqrt();
            [along, aside]
        })
        .collect()
}

fn numbers(value: &Value) -> &[f64] {
    match value {
        Value::Tensor { values, .. } => values,
        _ => &[],
    }
}
