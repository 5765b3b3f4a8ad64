//! An optimizer of something else.

use todevice::cuda;
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// Trains a new head on a backbone that stays as it is, on the device. Returns the
    /// loss of each batch.
    pub fn fine_tune(
        backbone: &nn::Sequential,
        head: &nn::Linear,
        batches: &[(Tensor, Tensor)],
        device: Device,
    ) -> Result<Vec<f64>> {
        backbone.to(device)?;
        head.to(device)?;
        for parameter in backbone.parameters() {
            parameter.requires_grad_(false)?;
        }
        let loss_fn = nn::CrossEntropyLoss::default();
        let options = SGDOptions { lr: 0.2, momentum: 0.5, ..Default::default() };
        let mut optimizer = optim::SGD::new(head.parameters(), options)?;

        let mut losses = Vec::new();
        for (x, y) in batches {
            let (x, y) = (x.to(device)?, y.to(device)?);
            let features = backbone.forward(&x)?;
            let loss = loss_fn.forward(&head.forward(&features)?, &y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            losses.push(loss.item()?);
        }
        Ok(losses)
    }
    // END
}

type FineTune =
    fn(&nn::Sequential, &nn::Linear, &[(Tensor, Tensor)], Device) -> Result<Vec<f64>>;

const MOVE: &str = "    head.to(device)?;\n";
const FREEZE: &str = "    for parameter in backbone.parameters() {\n        parameter.requires_grad_(false)?;\n    }\n";
const MAKE: &str = "    let mut optimizer = optim::SGD::new(head.parameters(), options)?;\n";
const BATCH: &str = "        let (x, y) = (x.to(device)?, y.to(device)?);\n";
const FEATURES_OF: &str = "        let features = backbone.forward(&x)?;\n";
const LOSS: &str = "        let loss = loss_fn.forward(&head.forward(&features)?, &y)?;\n";
const ZERO: &str = "        optimizer.zero_grad();\n";
const KEEP: &str = "        losses.push(loss.item()?);\n";
const OPTIONS: &str = "    let options = SGDOptions { lr: 0.2, momentum: 0.5, ..Default::default() };\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "03-item";

pub static EXERCISE: Exercise = Exercise {
    id: "03-optimizer",
    title: "Head and backbone",
    kind: Kind::Fix,
    task: "`fine_tune` gets a backbone that has been trained before, and a new head. The backbone is meant to \
           stay exactly as it is, with no gradient computed for it, and the head is meant to learn. The program runs without \
           an error, but the head learns nothing. Make it learn. It has to be the head that was passed to the function, because the \
           caller goes on using it.",
    hints: [
        "Three things happen to a parameter in a step: its gradient is forgotten, computed, and used. Which of them happen to \
         the head's gradients?",
        "An optimizer changes the parameters that it was made with, and no others. It passes over those without a gradient, and \
         says nothing.",
        "The backbone's parameters are frozen, so the optimizer needs the others: `optim::SGD::new(head.parameters(), options)?`.",
    ],
    afterwards: "An optimizer knows no model, only a list of parameters. If you replace a layer, make the optimizer afterwards.",
    source: include_str!("03-optimizer.rs"),
    functions: &[(
        "fine_tune",
        "pub fn fine_tune(backbone: &nn::Sequential, head: &nn::Linear, batches: &[(Tensor, Tensor)], device: Device) -> \
         Result<Vec<f64>>",
    )],
    skeleton: &[(MAKE, MAKE_OF_BACKBONE)],
    styles: &[
        Style {
            name: "no_grad",
            edits: &[
                (FREEZE, ""),
                (FEATURES_OF, "        let features = no_grad(|| backbone.forward(&x))?;\n"),
            ],
        },
        Style {
            name: "detached",
            edits: &[
                (FREEZE, ""),
                (FEATURES_OF, "        let features = backbone.forward(&x)?.detach();\n"),
            ],
        },
        Style {
            name: "all_that_learn",
            edits: &[(
                MAKE,
                "    let all = [backbone.parameters(), head.parameters()].concat();\n    \
                 let learn = all.into_iter().filter(|parameter| parameter.requires_grad());\n    \
                 let mut optimizer = optim::SGD::new(learn.collect(), options)?;\n",
            )],
        },
        Style {
            name: "both_with_one_frozen",
            edits: &[
                (MOVE, ""),
                (
                    MAKE,
                    "    let mut all = head.parameters();\n    all.extend(backbone.parameters());\n    \
                     let mut optimizer = optim::SGD::new(all, options)?;\n    head.to(device)?;\n",
                ),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "of_the_backbone",
            what: "The optimizer has the parameters of the frozen backbone.",
            edits: &[(MAKE, MAKE_OF_BACKBONE)],
            diagnosis: "other-parameters",
        },
        Wrong {
            name: "of_another_head",
            what: "The function makes a head of its own, trains it, and forgets it.",
            edits: &[(MOVE, "    let head = nn::Linear::new(head.parameters()[0].tensor().size(1)?, 4)?;\n    head.to(device)?;\n")],
            diagnosis: "another-head",
        },
        Wrong {
            name: "weight_only",
            what: "The optimizer has the weight of the head, but not its bias.",
            edits: &[(
                MAKE,
                "    let first = head.parameters()[..1].to_vec();\n    let mut optimizer = optim::SGD::new(first, options)?;\n",
            )],
            diagnosis: "a-part-of-the-head",
        },
        Wrong {
            name: "not_frozen",
            what: "The backbone is not frozen, and the optimizer has all parameters.",
            edits: &[
                (FREEZE, ""),
                (
                    MAKE,
                    "    let all = [backbone.parameters(), head.parameters()].concat();\n    \
                     let mut optimizer = optim::SGD::new(all, options)?;\n",
                ),
            ],
            diagnosis: "backbone-changed",
        },
        Wrong {
            name: "gradients_for_nothing",
            what: "The optimizer is right, but the backbone's gradients are computed for nothing.",
            edits: &[(FREEZE, "")],
            diagnosis: "gradients-for-nothing",
        },
        Wrong {
            name: "gradients_forgotten",
            what: "The backbone's gradients are computed, and then forgotten after each step.",
            edits: &[(FREEZE, ""), (KEEP, "        losses.push(loss.item()?);\n        backbone.parameters().iter().for_each(|parameter| parameter.zero_grad());\n")],
            diagnosis: "gradients-forgotten",
        },
        Wrong {
            name: "all_frozen",
            what: "The head is frozen, too.",
            edits: &[(
                FREEZE,
                "    for parameter in [backbone.parameters(), head.parameters()].concat() {\n        \
                 parameter.requires_grad_(false)?;\n    }\n",
            )],
            diagnosis: "all-frozen",
        },
        Wrong {
            name: "head_in_no_grad",
            what: "The features are detached, and then the prediction is, too.",
            edits: &[(LOSS, "        let prediction = no_grad(|| head.forward(&features))?;\n        let loss = loss_fn.forward(&prediction, &y)?;\n")],
            diagnosis: "no-graph",
        },
        Wrong {
            name: "zeroed_elsewhere",
            what: "The gradients of the backbone are set to zero, but the head's add up.",
            edits: &[(ZERO, "        backbone.parameters().iter().for_each(|parameter| parameter.zero_grad());\n")],
            diagnosis: "gradients-add-up",
        },
        Wrong {
            name: "new_optimizer",
            what: "Each batch makes a new optimizer, and the momentum is lost.",
            edits: &[(MAKE, ""), (BATCH, "        let (x, y) = (x.to(device)?, y.to(device)?);\n        let mut optimizer = optim::SGD::new(head.parameters(), options)?;\n")],
            diagnosis: "new-optimizer",
        },
        Wrong {
            name: "head_left",
            what: "The head stays on the CPU.",
            edits: &[(MOVE, "")],
            diagnosis: "head-left",
        },
        Wrong {
            name: "on_the_cpu",
            what: "Everything stays on the CPU.",
            edits: &[("    backbone.to(device)?;\n", "    let _ = Tensor::ones((&[1], device))?;\n    let device = Device::Cpu;\n")],
            diagnosis: "on-the-cpu",
        },
        Wrong {
            name: "another_device",
            what: "The GPU is chosen by the function, whatever `device` says.",
            edits: &[("    backbone.to(device)?;\n", "    let _ = device;\n    let device = Device::cuda_if_available();\n    backbone.to(device)?;\n")],
            diagnosis: "another-device",
        },
        Wrong {
            name: "other_options",
            what: "The options are changed until the loss falls.",
            edits: &[(OPTIONS, "    let options = SGDOptions { lr: 0.5, ..Default::default() };\n")],
            diagnosis: "losses",
        },
    ],
    places: &[
        (
            "The frozen parameters",
            &[
                &[],
                &[(FREEZE, "")],
                &[(
                    FREEZE,
                    "    for parameter in [backbone.parameters(), head.parameters()].concat() {\n        \
                     parameter.requires_grad_(false)?;\n    }\n",
                )],
            ],
        ),
        (
            "The parameters that the optimizer gets",
            &[
                &[],
                &[(MAKE, MAKE_OF_BACKBONE)],
                &[(
                    MAKE,
                    "    let first = head.parameters()[..1].to_vec();\n    let mut optimizer = optim::SGD::new(first, options)?;\n",
                )],
                &[(
                    MAKE,
                    "    let all = [backbone.parameters(), head.parameters()].concat();\n    \
                     let mut optimizer = optim::SGD::new(all, options)?;\n",
                )],
            ],
        ),
        (
            "The features",
            &[&[], &[(FEATURES_OF, "        let features = no_grad(|| backbone.forward(&x))?;\n")]],
        ),
    ],
    gpus: &["sim:t4", "sim:h200", "none", "sim:t4x2"],
    sizes: &[8, 16],
    observe: |case| observe(case, solution::fine_tune),
    judge,
};

const MAKE_OF_BACKBONE: &str = "    let mut optimizer = optim::SGD::new(backbone.parameters(), options)?;\n";

/// The size of a case is that of a batch. How many batches there are depends on the seed.
pub fn observe(case: &Case, fine_tune: FineTune) -> Seen {
    case.machine().enter(|| {
        let Given { backbone, head, batches } = given(case).expect("the machine is new");
        let before = [weights(&backbone), weights(&head)].map(|weights| weights.expect("they are numbers"));
        let mut seen = crate::observe(
            case,
            || fine_tune(&backbone, &head, &batches, device(case)),
            |facts| {
                let elsewhere = case.gpu == TWO && cuda::device(0, cuda::max_memory_allocated)? > 0;
                facts.insert("elsewhere".to_owned(), Value::Flag(elsewhere));
                let mut fact = |name: &str, holds: bool| facts.insert(name.to_owned(), Value::Flag(holds));
                let has_gradient = |module: &dyn Module| module.parameters().iter().any(|parameter| parameter.grad().is_some());
                fact("backbone changed", weights(&backbone)? != before[0]);
                fact("backbone has gradients", has_gradient(&backbone));
                fact("head has gradients", has_gradient(&head));
                let changed = weights(&head)?.iter().zip(&before[1]).filter(|(now, before)| now != before).count();
                facts.insert("head changed".to_owned(), Value::Number(changed as f64));
                Ok(())
            },
        );
        // Of code that failed, too.
        let is_frozen = head.parameters().iter().all(|parameter| !parameter.requires_grad());
        seen.facts.insert("head is frozen".to_owned(), Value::Flag(is_frozen));
        seen
    })
}

/// A machine where `device` is the GPU that nobody takes unless told to.
const TWO: &str = "sim:t4x2";

fn device(case: &Case) -> Device {
    if case.gpu == TWO { Device::cuda(1) } else { case.device() }
}

const PIXELS: usize = 24;
const CLASSES: usize = 4;

fn batches(case: &Case) -> usize {
    8 + case.seed as usize % 3
}

struct Given {
    backbone: nn::Sequential,
    head: nn::Linear,
    batches: Vec<(Tensor, Tensor)>,
}

fn given(case: &Case) -> Result<Given> {
    manual_seed(case.seed);
    let layers = (nn::Linear::new(PIXELS, 32)?, nn::ReLU, nn::Linear::new(32, 16)?, nn::ReLU);
    let backbone = nn::Sequential::new(layers);
    let head = nn::Linear::new(16, CLASSES)?;
    // Each class has its own place, and its samples are near it.
    let places = (Tensor::randn(&[CLASSES, PIXELS])? * 4.0)?;
    let mut all = Vec::new();
    for _ in 0..batches(case) {
        let y = Tensor::randint(0, CLASSES as i64, &[case.size])?;
        let noise = (Tensor::randn(&[case.size, PIXELS])? * 0.3)?;
        all.push(((places.index_select(0, &y)? + noise)?, y));
    }
    Ok(Given { backbone, head, batches: all })
}

fn weights(module: &dyn Module) -> Result<Vec<Vec<f32>>> {
    module.parameters().iter().map(|parameter| parameter.tensor().detach().cpu()?.to_vec()).collect()
}

/// The losses with a mistake in the training, to be compared with a student's.
fn losses(case: &Case, adds_up: bool, makes_anew: bool) -> Result<Value> {
    case.machine().enter(|| {
        let Given { backbone, head, batches } = given(case)?;
        let device = case.device();
        backbone.to(device)?;
        head.to(device)?;
        let options = SGDOptions { lr: 0.2, momentum: 0.5, ..Default::default() };
        let mut optimizer = optim::SGD::new(head.parameters(), options)?;
        let mut losses = Vec::new();
        for (x, y) in batches {
            if makes_anew {
                optimizer = optim::SGD::new(head.parameters(), options)?;
            }
            let features = no_grad(|| backbone.forward(&x.to(device)?))?;
            let loss = nn::CrossEntropyLoss::default().forward(&head.forward(&features)?, &y.to(device)?)?;
            if !adds_up {
                optimizer.zero_grad();
            }
            loss.backward()?;
            optimizer.step()?;
            losses.push(Value::Number(loss.item()?));
        }
        Ok(Value::List(losses))
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if let Some(operand) = seen.left_behind() {
        let says = match operand.learned {
            true => "A part of the network is on the CPU.",
            false => "A part of the batch is on the CPU.",
        };
        let id = if operand.learned { "head-left" } else { "batch-left" };
        return Err(Diagnosis::new(id, says)
            .seen(format!("`{}` is on the CPU", operand.name))
            .idea("A model's `.to` moves the parameters within it. Backbone and head are two modules: move both.")
            .report(seen));
    }
    if let Ended::Failed { message, .. } = &seen.ended
        && message.contains("does not require grad")
    {
        return Err(no_graph(seen));
    }
    let losses_seen = seen.returned()?;
    if seen.fact("elsewhere") == &Value::Flag(true) {
        return Err(Diagnosis::new("another-device", "The training runs on another GPU, not on the one that `device` names.")
            .seen("memory of cuda:0 is used")
            .expected("memory of cuda:1, which is `device` here")
            .idea("The caller decides on the device, and the function uses the one that it is given."));
    }
    if !seen.computed_on_the_gpu(right) {
        let launches = seen.count(CallKind::Launch);
        return Err(Diagnosis::new("on-the-cpu", "It trains, but on the CPU.")
            .seen(format!("kernels on the GPU: {launches}"))
            .expected(right.count(CallKind::Launch).to_string())
            .idea("Backbone, head and batches all belong on `device`."));
    }
    let holds = |name: &str| seen.fact(name) == &Value::Flag(true);
    let head_changed = seen.fact("head changed").number().unwrap_or_default() as usize;
    if holds("backbone changed") {
        return Err(Diagnosis::new("backbone-changed", "The backbone is trained, too.")
            .seen("its parameters are not what they were")
            .expected("the same numbers as before")
            .idea("A frozen parameter has no gradient, and an optimizer passes over it. Or leave it out of the optimizer's list."));
    }
    let from_to = first_and_last(losses_seen);
    if head_changed == 0 && holds("head has gradients") {
        return Err(Diagnosis::new("other-parameters", "The head has gradients, but nothing uses them.")
            .seen(from_to)
            .expected("a weight and a bias of the head that change with each step")
            .idea("An optimizer changes the parameters it was made with. It passes over those without a gradient, and says nothing."));
    }
    if head_changed == 0 {
        return Err(Diagnosis::new("another-head", "The head that was given takes no part in the training.")
            .seen("it has no gradient, and it has not changed")
            .expected("the head of the caller, trained")
            .idea("A new layer has parameters of its own. Whatever they have learned is lost with them."));
    }
    if head_changed == 1 {
        return Err(Diagnosis::new("a-part-of-the-head", "One parameter of the head is trained, but the other is not.")
            .seen("1 parameter that has changed")
            .expected("2: the weight and the bias")
            .idea("`parameters()` of a layer is a list. The optimizer needs all of it."));
    }
    if holds("backbone has gradients") {
        return Err(Diagnosis::new("gradients-for-nothing", "The backbone stays as it is, and has gradients all the same.")
            .seen(format!("gradients of the backbone, and {} kernels", seen.count(CallKind::Launch)))
            .expected(format!("none, and {} kernels", right.count(CallKind::Launch)))
            .idea(
                "The backward pass goes through everything that requires a gradient, and keeps activations for it. Leaving a \
                 parameter out of the optimizer does not tell it to stop.",
            ));
    }
    // The backward pass of the head is one product a batch. Through the backbone it is several.
    let products = |seen: &Seen| {
        let is_backward = |operation: &str| operation.contains("Backward");
        let calls = seen.of(CallKind::Launch).filter(|call| call.name == "gemm");
        calls.filter(|call| call.operation.as_deref().is_some_and(is_backward)).count()
    };
    if products(seen) >= 2 * products(right) && products(right) > 0 {
        return Err(Diagnosis::new("gradients-forgotten", "Gradients of the backbone are computed, and then forgotten.")
            .seen(format!("{} matrix products in all backward passes", products(seen)))
            .expected(format!("{}: one a batch, for the weight of the head", products(right)))
            .idea(
                "Forgetting them does not undo the work. The backward pass goes through everything that requires a gradient: \
                 tell the backbone's parameters that they do not.",
            ));
    }
    // The solution computes the same operations in the same order. Others may add in another order: some 1e-6 after a few steps.
    if losses_seen.is_near(right.value(), 1e-4) {
        return Ok(());
    }
    let is = |adds_up, makes_anew| losses(case, adds_up, makes_anew).is_ok_and(|other| losses_seen.is_near(&other, 1e-4));
    let told = |diagnosis: Diagnosis| {
        diagnosis.seen(from_to.clone()).expected(first_and_last(right.value()))
    };
    if is(true, false) {
        return Err(told(Diagnosis::new("gradients-add-up", "The head learns from all gradients so far, added up."))
            .idea("The gradients to be forgotten are those of the parameters that learn. `optimizer.zero_grad()` knows which."));
    }
    if is(false, true) {
        return Err(told(Diagnosis::new("new-optimizer", "Each batch makes a new optimizer, and the momentum is lost."))
            .idea("Momentum is a memory of the steps before. Make the optimizer once, before the loop."));
    }
    Err(told(Diagnosis::new("losses", "The head learns, but not as the options say."))
        .idea("Only the choice of parameters was wrong. The options were right, and so were the parts of a step."))
}

/// `backward` was called on a loss that depends on no parameter that learns.
fn no_graph(seen: &Seen) -> Diagnosis {
    let diagnosis = match seen.fact("head is frozen") == &Value::Flag(true) {
        true => Diagnosis::new("all-frozen", "The head is frozen, too: nothing is left that could learn.")
            .idea("`requires_grad_(false)` takes a parameter out of every gradient. It is for those of the backbone."),
        false => Diagnosis::new("no-graph", "The loss does not know how it was computed from the head.")
            .idea("Within `no_grad`, and after `detach()`, nothing is remembered for `backward`. That is right for the backbone, and not for the head."),
    };
    diagnosis
        .seen("`backward` on a loss that depends on no parameter with a gradient")
        .expected("a loss that depends on the weight and the bias of the head")
}

fn first_and_last(losses: &Value) -> String {
    let list = losses.list();
    let of = |loss: Option<&Value>| loss.and_then(Value::number).unwrap_or(f64::NAN);
    format!("{} losses, from {:.4} to {:.4}", list.len(), of(list.first()), of(list.last()))
}
