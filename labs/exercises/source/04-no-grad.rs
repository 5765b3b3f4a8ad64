//! An evaluation in the middle of a training.

use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// The mean loss over held-out batches. The training goes on afterwards.
    pub fn evaluate(
        model: &nn::Sequential,
        held_out: &[(Tensor, Tensor)],
    ) -> Result<f64> {
        let loss_fn = nn::CrossEntropyLoss::default();
        model.eval();
        let mut sum = 0.0;
        for (x, y) in held_out {
            let loss = no_grad(|| loss_fn.forward(&model.forward(x)?, y))?;
            sum += loss.item()?;
        }
        model.train();
        Ok(sum / held_out.len() as f64)
    }
    // END
}

type Evaluate = fn(&nn::Sequential, &[(Tensor, Tensor)]) -> Result<f64>;

pub static EXERCISE: Exercise = Exercise {
    id: "04-no-grad",
    title: "The exam that changed the pupil",
    kind: Kind::Fix,
    task: "`evaluate` is called in the middle of training, between two steps. Called twice on the same model, it \
           gives two different answers, and it takes more memory than it needs. Fix it: it must evaluate the whole \
           network, with nothing dropped, and keep nothing for a backward pass. When it returns, the model must be in \
           training mode and its gradients as they were, so that the training goes on as if nobody had asked.",
    hints: [
        "Two switches are set wrong here. One is for layers that behave differently in training, the other for what is recorded.",
        "`eval()` changes the model, and so somebody has to change it back. `no_grad` ends with its closure.",
        "Call `model.eval();` before the loop, put `no_grad(|| …)` around the forward pass and the loss, and call \
         `model.train();` after the loop.",
    ],
    afterwards: "With batch norm it would be worse: in training mode each evaluated batch also changes the running averages, \
                 and no switch brings those back.",
    source: include_str!("04-no-grad.rs"),
    functions: &[(
        "evaluate",
        "pub fn evaluate(model: &nn::Sequential, held_out: &[(Tensor, Tensor)]) -> Result<f64>",
    )],
    skeleton: &[(EVAL, ""), (TRAIN, ""), (LOSS, RECORDED)],
    styles: &[
        Style {
            name: "around_the_loop",
            edits: &[
                ("    let mut sum = 0.0;\n    for (x, y) in held_out {\n", "    let sum = no_grad(|| {\n        let mut sum = 0.0;\n        for (x, y) in held_out {\n"),
                (LOSS, "        let loss = loss_fn.forward(&model.forward(x)?, y)?;\n"),
                (
                    "        sum += loss.item()?;\n    }\n",
                    "            sum += loss.item()?;\n        }\n        Ok::<f64, Error>(sum)\n    });\n",
                ),
                ("Ok(sum / held_out.len() as f64)", "Ok(sum? / held_out.len() as f64)"),
            ],
        },
        Style {
            name: "inference_mode",
            edits: &[
                ("no_grad(|| loss_fn", "inference_mode(|| loss_fn"),
            ],
        },
        Style {
            name: "list_and_iterator",
            edits: &[
                (
                    "    let mut sum = 0.0;\n    for (x, y) in held_out {\n",
                    "    let loss = |(x, y): &(Tensor, Tensor)| {\n        no_grad(|| loss_fn.forward(&model.forward(x)?, y))\n    };\n    \
                     let losses: Result<Vec<Tensor>> = held_out.iter().map(loss).collect();\n",
                ),
                (LOSS, ""),
                ("        sum += loss.item()?;\n    }\n", ""),
                ("Ok(sum / held_out.len() as f64)", "Tensor::stack(&losses?, 0)?.mean()?.item()"),
            ],
        },
        Style {
            name: "frozen_and_thawed",
            edits: &[
                (EVAL, "    model.eval();\n    for parameter in model.parameters() {\n        parameter.requires_grad_(false)?;\n    }\n"),
                (LOSS, RECORDED),
                (TRAIN, "    for parameter in model.parameters() {\n        parameter.requires_grad_(true)?;\n    }\n    model.train();\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "as_in_training",
            what: "The model is evaluated as it is trained: dropout is on, and everything is recorded.",
            edits: &[(EVAL, ""), (TRAIN, ""), (LOSS, RECORDED)],
            diagnosis: "as-in-training",
        },
        Wrong {
            name: "only_eval",
            what: "Dropout is off, but the graph is still recorded.",
            edits: &[(LOSS, RECORDED)],
            diagnosis: "recorded",
        },
        Wrong {
            name: "only_no_grad",
            what: "Nothing is recorded, but dropout still drops.",
            edits: &[(EVAL, ""), (TRAIN, "")],
            diagnosis: "dropout-on",
        },
        Wrong {
            name: "never_train",
            what: "The model stays in evaluation mode.",
            edits: &[(TRAIN, "")],
            diagnosis: "left-in-eval",
        },
        Wrong {
            name: "train_too_early",
            what: "`train()` is called in the loop, after the first batch.",
            edits: &[(TRAIN, ""), ("        sum += loss.item()?;\n", "        sum += loss.item()?;\n        model.train();\n")],
            diagnosis: "train-too-early",
        },
        Wrong {
            name: "eval_too_late",
            what: "`eval()` is called in the loop, after the first pass.",
            edits: &[(EVAL, ""), ("        sum += loss.item()?;\n", "        model.eval();\n        sum += loss.item()?;\n")],
            diagnosis: "eval-too-late",
        },
        Wrong {
            name: "detached_at_the_end",
            what: "The losses are recorded and kept, and only their mean is detached.",
            edits: &[
                ("let mut sum = 0.0;", "let mut losses = Vec::new();"),
                (LOSS, RECORDED),
                ("sum += loss.item()?;", "losses.push(loss);"),
                ("Ok(sum / held_out.len() as f64)", "Tensor::stack(&losses, 0)?.mean()?.detach().item()"),
            ],
            diagnosis: "detached-at-the-end",
        },
        Wrong {
            name: "frozen",
            what: "The parameters are frozen, and stay so.",
            edits: &[
                (EVAL, "    model.eval();\n    for parameter in model.parameters() {\n        parameter.requires_grad_(false)?;\n    }\n"),
                (LOSS, RECORDED),
            ],
            diagnosis: "frozen",
        },
        Wrong {
            name: "gradients_cleared",
            what: "The gradients of the training are cleared on the way.",
            edits: &[(TRAIN, "    model.train();\n    model.zero_grad();\n")],
            diagnosis: "gradients-cleared",
        },
        Wrong {
            name: "backward",
            what: "`backward` frees the graph, and adds to the gradients.",
            edits: &[
                (LOSS, RECORDED),
                ("        sum += loss.item()?;\n", "        loss.backward()?;\n        sum += loss.item()?;\n"),
            ],
            diagnosis: "backward",
        },
        Wrong {
            name: "all_at_once",
            what: "All held-out batches are joined, and go through the model at once.",
            edits: &[
                (
                    "    let mut sum = 0.0;\n    for (x, y) in held_out {\n",
                    "    let xs: Vec<&Tensor> = held_out.iter().map(|(x, _)| x).collect();\n    \
                     let ys: Vec<&Tensor> = held_out.iter().map(|(_, y)| y).collect();\n    \
                     let (x, y) = (Tensor::cat(&xs, 0)?, Tensor::cat(&ys, 0)?);\n",
                ),
                (LOSS, "    let loss = no_grad(|| loss_fn.forward(&model.forward(&x)?, &y))?;\n"),
                ("        sum += loss.item()?;\n    }\n", ""),
                ("Ok(sum / held_out.len() as f64)", "loss.item()"),
            ],
            diagnosis: "all-at-once",
        },
        Wrong {
            name: "sum_returned",
            what: "The sum of the losses is returned instead of their mean.",
            edits: &[("Ok(sum / held_out.len() as f64)", "Ok(sum)")],
            diagnosis: "loss",
        },
    ],
    places: &[
        ("Before the loop", &[&[], &[(EVAL, "")]]),
        ("The loss of a batch", &[&[], &[(LOSS, RECORDED)]]),
        (
            "Afterwards",
            &[
                &[],
                &[(TRAIN, "")],
                &[(TRAIN, ""), ("        sum += loss.item()?;\n", "        sum += loss.item()?;\n        model.train();\n")],
                &[(TRAIN, "    model.train();\n    model.zero_grad();\n")],
            ],
        ),
    ],
    gpus: &["sim:t4", "sim:h200", "none"],
    sizes: &[128, 256],
    observe: |case| observe(case, solution::evaluate),
    judge,
};

const EVAL: &str = "    model.eval();\n";
const TRAIN: &str = "    model.train();\n";
const LOSS: &str = "        let loss = no_grad(|| loss_fn.forward(&model.forward(x)?, y))?;\n";
const RECORDED: &str = "        let loss = loss_fn.forward(&model.forward(x)?, y)?;\n";

const FEATURES: usize = 16;
const HIDDEN: usize = 64;
const CLASSES: usize = 4;

fn held_out(case: &Case) -> usize {
    4 + case.seed as usize % 2
}

/// Bytes of what one layer puts out for one batch.
fn activation(case: &Case) -> u64 {
    (case.size * HIDDEN * 4) as u64
}

/// The size of a case is that of a batch. The seed decides on their number.
pub fn observe(case: &Case, evaluate: Evaluate) -> Seen {
    case.machine().enter(|| {
        let device = case.device();
        manual_seed(case.seed);
        let given = || -> Result<_> {
            let model = nn::Sequential::new((
                nn::Linear::new(FEATURES, HIDDEN)?,
                nn::ReLU,
                nn::Dropout::new(0.5)?,
                nn::Linear::new(HIDDEN, HIDDEN)?,
                nn::ReLU,
                nn::Dropout::new(0.5)?,
                nn::Linear::new(HIDDEN, HIDDEN)?,
                nn::ReLU,
                nn::Linear::new(HIDDEN, HIDDEN)?,
                nn::ReLU,
                nn::Linear::new(HIDDEN, CLASSES)?,
            ));
            model.to(device)?;
            let batch = || -> Result<(Tensor, Tensor)> {
                let x = Tensor::randn(&[case.size, FEATURES])?.to(device)?;
                Ok((x, Tensor::randint(0, CLASSES as i64, &[case.size])?.to(device)?))
            };
            let (x, y) = batch()?;
            // A step of training is under way.
            nn::CrossEntropyLoss::default().forward(&model.forward(&x)?, &y)?.backward()?;
            let held_out: Vec<_> = (0..held_out(case)).map(|_| batch()).collect::<Result<_>>()?;
            let gradients = gradients(&model)?;
            Ok((model, held_out, gradients))
        };
        let (model, held_out, before) = given().expect("the machine is new");
        let x = &held_out[0].0;
        crate::observe(case, || evaluate(&model, &held_out), |facts| {
            let thawed = model.parameters().iter().all(|parameter| parameter.requires_grad());
            facts.insert("thawed".into(), thawed.into_value()?);
            let (once, again) = no_grad(|| Ok::<_, Error>((model.forward(x)?, model.forward(x)?)))?;
            facts.insert("drops".into(), (!once.equal(&again)?).into_value()?);
            if let (Some(before), Some(after)) = (&before, gradients(&model)?) {
                facts.insert("gradients kept".into(), before.equal(&after)?.into_value()?);
            }
            Ok(())
        })
    })
}

/// All gradients, one after the other; nothing if one is missing.
fn gradients(model: &nn::Sequential) -> Result<Option<Tensor>> {
    let all: Option<Vec<Tensor>> = model.parameters().iter().map(|parameter| parameter.grad()).collect();
    all.map(|all| {
        let flat: Result<Vec<Tensor>> = all.iter().map(|gradient| gradient.flatten(0, -1)).collect();
        Tensor::cat(&flat?, 0)?.copy()
    })
    .transpose()
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let loss = seen.returned()?;
    let batches = held_out(case);
    let one = activation(case);
    let kib = |bytes: u64| format!("{} KiB", bytes / 1024);

    let ways_back = operations(seen, "NllLossBackward0");
    if ways_back > 0 {
        return Err(Diagnosis::new("backward", "`backward` runs in the evaluation.")
            .seen(format!("{ways_back} backward passes, which added to the gradients"))
            .expected("none")
            .idea(
                "It frees the graph, but it also adds the gradients of the held-out data to those of the training. If you do not \
                 record a graph, you need not free one.",
            ));
    }
    let passes = |seen: &Seen| operations(seen, "cross_entropy");
    if passes(seen) < passes(right) && seen.peak > right.peak + one * 3 / 2 {
        return Err(
            Diagnosis::new("all-at-once", "Several batches go through the model at the same time.")
                .seen(format!("{} at most", kib(seen.peak)))
                .expected(format!("{}: one batch at a time", kib(right.peak)))
                .idea("A layer's output grows with the rows that go in. That is why data comes in batches."),
        );
    }
    // Without a graph two activations are alive at a time, and with one what each of four ReLUs puts out. A style may
    // hold one more for a while.
    let recorded = seen.peak > right.peak + one * 3 / 2;
    let drops = operations(seen, DROPOUT) / KERNELS_OF_DROPOUT;
    let all_drops = batches * DROPOUTS;
    if drops >= all_drops && recorded {
        return Err(Diagnosis::new("as-in-training", "The model is evaluated just as it is trained.")
            .seen(format!("dropout {drops} times, and {} of memory at most", kib(seen.peak)))
            .expected(format!("no dropout, and {}", kib(right.peak)))
            .idea(
                "Two things belong to training only: layers that drop at random, and the graph for the backward pass. Each \
                 has a switch of its own, and neither switch sets the other.",
            )
            .at(line_of(seen, DROPOUT)));
    }
    if drops >= all_drops {
        return Err(Diagnosis::new("dropout-on", "Dropout still drops half of the layers' outputs.")
            .seen(format!("dropout {drops} times"))
            .expected("none")
            .idea("`no_grad` decides what is recorded, and nothing else. Dropout drops as long as the model is in training mode.")
            .at(line_of(seen, DROPOUT)));
    }
    let place = |name: &str| seen.calls.iter().position(|call| call.operation.as_deref() == Some(name));
    let last = seen.calls.iter().rposition(|call| call.operation.as_deref() == Some(DROPOUT));
    let of_the_last = seen.calls.iter().rposition(|call| call.operation.as_deref() == Some("cross_entropy"));
    let is_before = |a: Option<usize>, b: Option<usize>| a.zip(b).is_some_and(|(a, b)| a < b);
    // The first batch drops, and dropout ends before the last batch begins.
    let is_late = is_before(place(DROPOUT), place("cross_entropy")) && {
        let end = of_the_last.unwrap_or(0);
        let begin = seen.calls[..end].iter().rposition(|call| call.operation.as_deref() == Some("cross_entropy"));
        is_before(last, begin)
    };
    if drops > 0 && is_late {
        return Err(Diagnosis::new("eval-too-late", "`eval()` comes too late: the first batches are evaluated in training mode.")
            .seen(format!("dropout {drops} times, in the first batches"))
            .expected("none")
            .idea("`eval()` holds from the moment it is called. Every batch before that goes through a model in training mode.")
            .at(line_of(seen, DROPOUT)));
    }
    if drops > 0 {
        return Err(Diagnosis::new("train-too-early", "Some of the batches are evaluated in training mode.")
            .seen(format!("dropout {drops} times; all in training mode, it would be {all_drops}"))
            .expected("none")
            .idea("The mode belongs to the model, and holds until it is changed. Change it back when the last batch is done.")
            .at(line_of(seen, DROPOUT)));
    }
    // A batch with its graph keeps four activations.
    if seen.peak > right.peak + one * 3 * (batches as u64 - 1) {
        return Err(Diagnosis::new("detached-at-the-end", "The graphs of all batches are alive at the same time.")
            .seen(format!("{} at most", kib(seen.peak)))
            .expected(format!("{}, however many batches there are", kib(right.peak)))
            .idea(
                "Detaching the mean cuts off only the mean. Each loss in the list still holds its graph, until the list is gone. \
                 If there is no backward pass, do not record at all.",
            ));
    }
    if recorded {
        return Err(Diagnosis::new("recorded", "The graph is still recorded.")
            .seen(format!("{} at most", kib(seen.peak)))
            .expected(format!("{}: the outputs of two layers at a time", kib(right.peak)))
            .idea(
                "`eval()` switches layers, and autograd ignores it. The outputs of the layers are kept for a backward pass that \
                 never comes.",
            ));
    }
    if *seen.fact("thawed") == Value::Flag(false) {
        return Err(Diagnosis::new("frozen", "The parameters are still frozen when the training goes on.")
            .seen("parameters that require no gradient")
            .expected("parameters as they were")
            .idea(
                "If you switch gradients off on the parameters, they stay off until somebody switches them on again. `no_grad` \
                 switches off the recording, and ends by itself.",
            ));
    }
    if *seen.fact("drops") == Value::Flag(false) {
        return Err(Diagnosis::new("left-in-eval", "The training goes on without dropout.")
            .seen("the same output twice, after the evaluation")
            .expected("a model in training mode, as it was before")
            .idea("No brace ends `eval()`. It changes the model for all code that uses it later."));
    }
    if *seen.fact("gradients kept") != Value::Flag(true) {
        return Err(Diagnosis::new("gradients-cleared", "The gradients of the training have changed.")
            .seen(match seen.fact("gradients kept") {
                Value::None => "no gradients",
                _ => "other gradients",
            })
            .expected("those that the training had computed before")
            .idea("An evaluation that records nothing makes no gradients, and has none to clear. The gradients that are there belong to the training."));
    }
    // The order in which losses are added up decides on the last digits.
    if !loss.is_near(right.value(), 1e-4) {
        return Err(Diagnosis::new("loss", "`evaluate` does not return the mean loss.")
            .seen(format!("{:.4}", loss.number().unwrap_or(f64::NAN)))
            .expected(format!("{:.4}, the mean of {batches} losses", right.value().number().unwrap_or(f64::NAN)))
            .idea("Each loss is the mean over a batch, and all batches have the same size. Divide their sum by the number of batches."));
    }
    Ok(())
}

const DROPOUT: &str = "dropout";
const DROPOUTS: usize = 2;
/// One draws, the other multiplies.
const KERNELS_OF_DROPOUT: usize = 2;

/// How many kernels an operation has.
fn operations(seen: &Seen, name: &str) -> usize {
    seen.of(CallKind::Launch).filter(|call| call.operation.as_deref() == Some(name)).count()
}

fn line_of(seen: &Seen, name: &str) -> Option<u32> {
    seen.of(CallKind::Launch).find(|call| call.operation.as_deref() == Some(name)).and_then(|call| call.line)
}
