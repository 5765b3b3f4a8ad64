//! The state that stayed behind.

use todevice::nn::StateDict;
use todevice::prelude::*;
use todevice::serialize::{self, Dict, Value as Saved};

use crate::{CallKind, Case, Diagnosis, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::nn::StateDict;
    use todevice::prelude::*;
    use todevice::serialize::Dict;

    /// Resumes a training run from a checkpoint that was loaded to the CPU. Trains on the
    /// device, and returns the loss of each batch.
    pub fn resume(
        checkpoint: &Dict,
        net: &nn::Sequential,
        batches: &[(Tensor, Tensor)],
        device: Device,
    ) -> Result<Vec<f64>> {
        let options = AdamOptions { lr: 0.05, ..Default::default() };
        let mut optimizer = optim::Adam::new(net.parameters(), options)?;
        net.load_state_dict(&StateDict::try_from(checkpoint.at("model")?)?, true)?;
        net.to(device)?;
        optimizer.load_state_dict(checkpoint.at("optimizer")?.as_dict()?)?;

        let loss_fn = nn::MSELoss::default();
        let mut losses = Vec::new();
        for (x, y) in batches {
            let (x, y) = (x.to(device)?, y.to(device)?);
            let loss = loss_fn.forward(&net.forward(&x)?, &y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            losses.push(loss.item()?);
        }
        Ok(losses)
    }
    // END
}

type Resume = fn(&Dict, &nn::Sequential, &[(Tensor, Tensor)], Device) -> Result<Vec<f64>>;

const MAKE: &str = "    let options = AdamOptions { lr: 0.05, ..Default::default() };\n    let mut optimizer = optim::Adam::new(net.parameters(), options)?;\n";
const WEIGHTS: &str = "    net.load_state_dict(&StateDict::try_from(checkpoint.at(\"model\")?)?, true)?;\n";
const MOVE: &str = "    net.to(device)?;\n";
const STATE: &str = "    optimizer.load_state_dict(checkpoint.at(\"optimizer\")?.as_dict()?)?;\n";
const BATCH: &str = "        let (x, y) = (x.to(device)?, y.to(device)?);\n";
const ZERO: &str = "        optimizer.zero_grad();\n";
const STEP: &str = "        optimizer.step()?;\n";
const LOADED_EARLY: &str =
    "    optimizer.load_state_dict(checkpoint.at(\"optimizer\")?.as_dict()?)?;\n    net.to(device)?;\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "11-map";

pub static EXERCISE: Exercise = Exercise {
    id: "11-optimizer",
    title: "The state that stayed behind",
    kind: Kind::Fix,
    task: "`resume` goes on with a training run on a GPU. The checkpoint is on the CPU. The forward pass runs, the backward pass runs, \
           and the optimizer's step fails. Fix that, so that the losses are those of a run that was not interrupted, and so that \
           the host reads nothing from the GPU but the losses.",
    hints: [
        "The report names two tensors. Which of them did nobody move, and to whom does it belong?",
        "`optimizer.load_state_dict` puts each tensor where its parameter is at that moment. Where are the parameters then?",
        "Swap two lines: `net.to(device)?` comes first, `optimizer.load_state_dict(…)?` after it. (`optimizer_to` would also move \
         `step`, which Adam reads on the host.)",
    ],
    afterwards: "It does not matter when the optimizer is made: it holds the parameters, wherever they are. Only what it keeps of them \
                 has a place of its own.",
    source: include_str!("11-optimizer.rs"),
    functions: &[(
        "resume",
        "pub fn resume(checkpoint: &Dict, net: &nn::Sequential, batches: &[(Tensor, Tensor)], device: Device) -> Result<Vec<f64>>",
    )],
    skeleton: &[(STATE, ""), (MOVE, LOADED_EARLY)],
    styles: &[
        Style {
            name: "made_after_the_move",
            edits: &[
                (MAKE, ""),
                (
                    MOVE,
                    "    net.to(device)?;\n    let options = AdamOptions { lr: 0.05, ..Default::default() };\n    \
                     let mut optimizer = optim::Adam::new(net.parameters(), options)?;\n",
                ),
            ],
        },
        Style {
            name: "loaded_from_itself",
            edits: &[
                (STATE, ""),
                (
                    MOVE,
                    "    optimizer.load_state_dict(checkpoint.at(\"optimizer\")?.as_dict()?)?;\n    net.to(device)?;\n    \
                     let state = optimizer.state_dict();\n    optimizer.load_state_dict(&state)?;\n",
                ),
            ],
        },
        Style {
            name: "all_but_step",
            edits: &[
                (STATE, ""),
                (
                    MOVE,
                    "    optimizer.load_state_dict(checkpoint.at(\"optimizer\")?.as_dict()?)?;\n    net.to(device)?;\n    \
                     optimizer.map_state(&mut |kept| match kept.sizes() {\n        [] => Ok(kept.clone()),\n        \
                     _ => kept.to(device),\n    })?;\n",
                ),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "loaded_before_the_move",
            what: "The optimizer's state is loaded before the network moves, and stays on the CPU.",
            edits: &[(STATE, ""), (MOVE, LOADED_EARLY)],
            diagnosis: "state-left",
        },
        Wrong {
            name: "step_moved",
            what: "`optimizer_to` moves `step` as well, and Adam reads it back in each step.",
            edits: &[
                ("use todevice::prelude::*;\n", "use todevice::optim::optimizer_to;\nuse todevice::prelude::*;\n"),
                (STATE, ""),
                (
                    MOVE,
                    "    optimizer.load_state_dict(checkpoint.at(\"optimizer\")?.as_dict()?)?;\n    net.to(device)?;\n    \
                     optimizer_to(&mut optimizer, device)?;\n",
                ),
            ],
            diagnosis: "step-moved",
        },
        Wrong {
            name: "state_forgotten",
            what: "The optimizer's state is not loaded: its moments begin at zero.",
            edits: &[(STATE, "")],
            diagnosis: "state-forgotten",
        },
        Wrong {
            name: "weights_forgotten",
            what: "The network's state is not loaded: it begins with random numbers.",
            edits: &[(WEIGHTS, ""), ("use todevice::nn::StateDict;\n", "")],
            diagnosis: "weights-forgotten",
        },
        Wrong {
            name: "loaded_for_each_batch",
            what: "The optimizer's state is loaded for each batch, so each step begins with the old moments.",
            edits: &[(STATE, ""), (ZERO, "        optimizer.zero_grad();\n        optimizer.load_state_dict(checkpoint.at(\"optimizer\")?.as_dict()?)?;\n")],
            diagnosis: "loaded-for-each-batch",
        },
        Wrong {
            name: "network_left",
            what: "The network stays on the CPU.",
            edits: &[(MOVE, "")],
            diagnosis: "network-left",
        },
        Wrong {
            name: "targets_left",
            what: "The targets of each batch stay on the CPU.",
            edits: &[(BATCH, "        let x = x.to(device)?;\n")],
            diagnosis: "batch-left",
        },
        Wrong {
            name: "on_the_cpu",
            what: "Everything stays on the CPU.",
            edits: &[(MAKE, "    let _ = Tensor::ones((&[1], device))?;\n    let device = Device::Cpu;\n    let options = AdamOptions { lr: 0.05, ..Default::default() };\n    let mut optimizer = optim::Adam::new(net.parameters(), options)?;\n")],
            diagnosis: "on-the-cpu",
        },
        Wrong {
            name: "gradients_add_up",
            what: "The gradients are never cleared.",
            edits: &[(ZERO, "")],
            diagnosis: "gradients-add-up",
        },
        Wrong {
            name: "no_step",
            what: "No step is taken: nothing fails any more, and nothing learns.",
            edits: &[(STEP, "")],
            diagnosis: "no-step",
        },
    ],
    places: &[
        (
            "When the state is loaded, and when the network moves",
            &[
                &[],
                &[(STATE, ""), (MOVE, LOADED_EARLY)],
                &[
                    ("use todevice::prelude::*;\n", "use todevice::optim::optimizer_to;\nuse todevice::prelude::*;\n"),
                    (STATE, ""),
                    (
                        MOVE,
                        "    optimizer.load_state_dict(checkpoint.at(\"optimizer\")?.as_dict()?)?;\n    net.to(device)?;\n    \
                         optimizer_to(&mut optimizer, device)?;\n",
                    ),
                ],
                &[(STATE, "")],
                &[(MOVE, "")],
                &[
                    (STATE, ""),
                    (
                        MOVE,
                        "    optimizer.load_state_dict(checkpoint.at(\"optimizer\")?.as_dict()?)?;\n    net.to(device)?;\n    \
                         let state = optimizer.state_dict();\n    optimizer.load_state_dict(&state)?;\n",
                    ),
                ],
            ],
        ),
    ],
    gpus: &["sim:t4", "sim:h200", "none", "sim:rtx4090"],
    sizes: &[8, 16],
    observe: |case| observe(case, solution::resume),
    judge,
};

/// The size of a case is that of a batch. How many batches there are depends on the seed.
pub fn observe(case: &Case, resume: Resume) -> Seen {
    case.machine().enter(|| {
        let Given { checkpoint, net, batches } = given(case).expect("the machine is new");
        crate::observe(case, || resume(&checkpoint, &net, &batches, case.device()), |_| Ok(()))
    })
}

struct Given {
    checkpoint: Dict,
    net: nn::Sequential,
    batches: Vec<(Tensor, Tensor)>,
}

fn network() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new((nn::Linear::new(12, 24)?, nn::ReLU, nn::Linear::new(24, 1)?)))
}

fn adam(net: &nn::Sequential) -> Result<optim::Adam> {
    optim::Adam::new(net.parameters(), AdamOptions { lr: 0.05, ..Default::default() })
}

fn batch(size: usize) -> Result<(Tensor, Tensor)> {
    let x = Tensor::randn(&[size, 12])?;
    let y = x.sum_dims(&[1], true)?;
    Ok((x, y))
}

/// A checkpoint of some steps, a network that has not been trained, and the batches that follow.
fn given(case: &Case) -> Result<Given> {
    manual_seed(case.seed);
    let net = network()?;
    let mut optimizer = adam(&net)?;
    for _ in 0..4 {
        let (x, y) = batch(case.size)?;
        optimizer.zero_grad();
        nn::MSELoss::default().forward(&net.forward(&x)?, &y)?.backward()?;
        optimizer.step()?;
    }
    let checkpoint =
        Dict::from_iter([("model", Saved::from(net.state_dict())), ("optimizer", optimizer.state_dict().into())]);
    // As from a file: tensors that nobody else has.
    let loaded = serialize::from_bytes(&serialize::to_bytes(checkpoint)?, Device::Cpu)?;
    let net = network()?;
    let batches = (0..5 + case.seed % 3).map(|_| batch(case.size)).collect::<Result<_>>()?;
    Ok(Given { checkpoint: loaded.as_dict()?.clone(), net, batches })
}

/// What can be left out of the training.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    State,
    Weights,
    Clearing,
    Step,
}

/// The losses of such a training run, to be compared with a student's.
fn losses(case: &Case, without: Without) -> Result<Value> {
    case.machine().enter(|| {
        let Given { checkpoint, net, batches } = given(case)?;
        let device = case.device();
        if without != Without::Weights {
            net.load_state_dict(&StateDict::try_from(checkpoint.at("model")?)?, true)?;
        }
        net.to(device)?;
        let mut optimizer = adam(&net)?;
        if without != Without::State {
            optimizer.load_state_dict(checkpoint.at("optimizer")?.as_dict()?)?;
        }
        let mut losses = Vec::new();
        for (x, y) in batches {
            let loss = nn::MSELoss::default().forward(&net.forward(&x.to(device)?)?, &y.to(device)?)?;
            if without != Without::Clearing {
                optimizer.zero_grad();
            }
            loss.backward()?;
            if without != Without::Step {
                optimizer.step()?;
            }
            losses.push(Value::Number(loss.item()?));
        }
        Ok(Value::List(losses))
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if let Some(operand) = seen.left_behind() {
        let (id, says, idea) = if operand.name.starts_with("exp_avg") {
            (
                "state-left",
                "The optimizer's state is on the CPU, and its parameter is not.",
                "`load_state_dict` puts the state where the parameters are at that moment. What moves later leaves it behind.",
            )
        } else if operand.learned {
            ("network-left", "The network is on the CPU.", "Move the network once, before the loop.")
        } else {
            ("batch-left", "A part of the batch is on the CPU.", "A batch is two tensors, `x` and `y`. Move both.")
        };
        return Err(Diagnosis::new(id, says)
            .seen(format!("`{}` is on the CPU", operand.name))
            .idea(idea)
            .report(seen));
    }
    let losses_seen = seen.returned()?;
    if !seen.computed_on_the_gpu(right) {
        return Err(Diagnosis::new("on-the-cpu", "It trains, but on the CPU.")
            .seen(format!("kernels on the GPU: {}", seen.count(CallKind::Launch)))
            .expected(right.count(CallKind::Launch).to_string())
            .idea("Network, optimizer state and batches all belong on `device`."));
    }
    let told = |diagnosis: Diagnosis| {
        diagnosis.seen(first_and_last(losses_seen)).expected(first_and_last(right.value()))
    };
    let is = |without| losses(case, without).is_ok_and(|other| losses_seen.is_near(&other, 1e-4));
    let is_right = losses_seen.is_near(right.value(), 1e-4);
    let batches = right.value().list().len();
    if !is_right && seen.count(CallKind::ToDevice) >= right.count(CallKind::ToDevice) + 2 * batches {
        return Err(told(Diagnosis::new("loaded-for-each-batch", "The optimizer's state is loaded again and again."))
            .idea("Adam goes on from the moments that its last step has left. Load the old ones once, before the loop.")
            .at(seen.line(CallKind::ToDevice)));
    }
    if !is_right && is(Without::State) {
        return Err(told(Diagnosis::new("state-forgotten", "The optimizer begins anew."))
            .idea("Its moments are in the checkpoint. Without them the first steps go elsewhere."));
    }
    if !is_right && is(Without::Weights) {
        return Err(told(Diagnosis::new("weights-forgotten", "The network begins anew."))
            .idea("The optimizer's state has no weights. Those are in the checkpoint under `model`."));
    }
    if !is_right && is(Without::Clearing) {
        return Err(told(Diagnosis::new("gradients-add-up", "It learns from all gradients so far, added up."))
            .idea("`optimizer.zero_grad()` before each backward pass."));
    }
    if !is_right && is(Without::Step) {
        return Err(told(Diagnosis::new("no-step", "The network does not change."))
            .idea("Without `optimizer.step()` nothing fails, and nothing is learned."));
    }
    if !is_right {
        return Err(told(Diagnosis::new("losses", "The losses are not those of a run that was not interrupted."))
            .idea("The order of the lines before the loop was wrong. The loop was right."));
    }
    let reads = |seen: &Seen| seen.count(CallKind::ToHost);
    if reads(seen) > reads(right) {
        return Err(Diagnosis::new("step-moved", "Adam reads `step` back from the GPU.")
            .seen(format!("{} copies to the host", reads(seen)))
            .expected(format!("{}: one for each loss", reads(right)))
            .idea("`step` is best left on the CPU, where the correction of the moments is computed. `load_state_dict` leaves it there."));
    }
    Ok(())
}

fn first_and_last(losses: &Value) -> String {
    let list = losses.list();
    let of = |loss: Option<&Value>| loss.and_then(Value::number).unwrap_or(f64::NAN);
    format!("{} losses, from {:.4} to {:.4}", list.len(), of(list.first()), of(list.last()))
}
