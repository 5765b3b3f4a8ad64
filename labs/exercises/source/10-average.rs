//! A loss averaged twice.

use todevice::cuda;
use todevice::distributed::{self as dist, DistributedDataParallel, Ranks};
use todevice::optim::SGD;
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::distributed::DistributedDataParallel;
    use todevice::optim::SGD;
    use todevice::prelude::*;

    /// A rank's training step on its share of a batch. The mean over the whole batch is
    /// what the ranks learn from, and all shares have the same number of rows.
    pub fn train_step(
        model: &DistributedDataParallel<nn::Linear>,
        optimizer: &mut SGD,
        x: &Tensor,
        y: &Tensor,
    ) -> Result<()> {
        let loss = model.forward(x)?.mse_loss(y, Reduction::Mean)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()
    }
    // END
}

type TrainStep = fn(&DistributedDataParallel<nn::Linear>, &mut SGD, &Tensor, &Tensor) -> Result<()>;

const USES: &str = "use todevice::distributed::DistributedDataParallel;\n";
const LOSS: &str = "    let loss = model.forward(x)?.mse_loss(y, Reduction::Mean)?;\n";
const CLEAR: &str = "    optimizer.zero_grad();\n";
const BACKWARD: &str = "    loss.backward()?;\n";
const STEP: &str = "    optimizer.step()\n";

const WITH_DIST: crate::Edit = (USES, "use todevice::distributed::{self as dist, DistributedDataParallel};\n");
const WITH_OP: crate::Edit = (USES, "use todevice::distributed::{self as dist, DistributedDataParallel, ReduceOp};\n");
const TWICE: &[crate::Edit] = &[
    WITH_DIST,
    (BACKWARD, "    let loss = (loss / dist::get_world_size()? as f64)?;\n    loss.backward()?;\n"),
];

/// The exercise before this one in the chapter.
pub const AFTER: &str = "10-epochs";

pub static EXERCISE: Exercise = Exercise {
    id: "10-average",
    title: "An average of averages",
    kind: Kind::Fix,
    task: "A network trains on four GPUs with `DistributedDataParallel`, and learns four times as slowly as on one, with the same batch \
           and the same learning rate. Fix the step, so that it is the step of the whole batch on one GPU. Each gradient may be averaged only once.",
    hints: [
        "Who divides by the number of ranks? Count.",
        "The gradients that `backward` leaves are averages already: `DistributedDataParallel` has divided.",
        "Take the loss as it is, the mean over the rank's own rows, and call `backward` on it.",
    ],
    afterwards: "To print the loss of the whole batch, average a detached copy of it, and call `backward` on your own.",
    source: include_str!("10-average.rs"),
    functions: &[(
        "train_step",
        "pub fn train_step(model: &DistributedDataParallel<nn::Linear>, optimizer: &mut SGD, x: &Tensor, y: &Tensor) -> Result<()>",
    )],
    skeleton: TWICE,
    styles: &[
        Style {
            name: "squares",
            edits: &[(LOSS, "    let loss = (model.forward(x)? - y)?.square()?.mean()?;\n")],
        },
        Style {
            name: "cleared_first",
            edits: &[
                (CLEAR, ""),
                (LOSS, "    optimizer.zero_grad();\n    let loss = model.forward(x)?.mse_loss(y, Reduction::Mean)?;\n"),
            ],
        },
    ],
    wrong: &[
        Wrong {
            name: "loss_divided",
            what: "The loss is divided by the number of ranks, and the gradients are averages already.",
            edits: TWICE,
            diagnosis: "divided-twice",
        },
        Wrong {
            name: "loss_multiplied",
            what: "The loss is multiplied by the number of ranks, as if the average had to be undone.",
            edits: &[
                WITH_DIST,
                (BACKWARD, "    let loss = (loss * dist::get_world_size()? as f64)?;\n    loss.backward()?;\n"),
            ],
            diagnosis: "step-too-long",
        },
        Wrong {
            name: "averaged_again",
            what: "The gradients are averaged by hand as well. They stay the same, and travel twice.",
            edits: &[
                WITH_OP,
                (
                    BACKWARD,
                    "    loss.backward()?;\n    for parameter in model.parameters() {\n        \
                     if let Some(gradient) = parameter.grad() {\n            \
                     dist::all_reduce(&gradient, ReduceOp::Avg)?;\n        }\n    }\n",
                ),
            ],
            diagnosis: "averaged-again",
        },
        Wrong {
            name: "sum_of_squares",
            what: "The loss is a sum, so it grows with the share.",
            edits: &[(LOSS, "    let loss = model.forward(x)?.mse_loss(y, Reduction::Sum)?;\n")],
            diagnosis: "sum-over-rows",
        },
        Wrong {
            name: "around_it",
            what: "The network inside is called, and nothing is averaged.",
            edits: &[(LOSS, "    let loss = model.module().forward(x)?.mse_loss(y, Reduction::Mean)?;\n")],
            diagnosis: "not-averaged",
        },
        Wrong {
            name: "not_cleared",
            what: "The gradients of earlier steps stay.",
            edits: &[(CLEAR, "")],
            diagnosis: "not-cleared",
        },
        Wrong {
            name: "no_step",
            what: "No step is taken.",
            edits: &[(STEP, "    Ok(())\n"), (CLEAR, "    optimizer.zero_grad();\n    let _ = &optimizer;\n")],
            diagnosis: "no-step",
        },
        Wrong {
            name: "one_rank_steps",
            what: "Only rank 0 takes the step.",
            edits: &[WITH_DIST, (STEP, "    if dist::get_rank()? == 0 { optimizer.step() } else { Ok(()) }\n")],
            diagnosis: "ranks-differ",
        },
        Wrong {
            name: "one_rank_learns",
            what: "Only rank 0 makes a backward pass, and waits for the others' gradients.",
            edits: &[WITH_DIST, (BACKWARD, "    if dist::get_rank()? == 0 {\n        loss.backward()?;\n    }\n")],
            diagnosis: "skipped",
        },
    ],
    places: &[
        (
            "The loss",
            &[
                &[],
                TWICE,
                &[(LOSS, "    let loss = model.forward(x)?.mse_loss(y, Reduction::Sum)?;\n")],
                &[(LOSS, "    let loss = model.module().forward(x)?.mse_loss(y, Reduction::Mean)?;\n")],
            ],
        ),
        ("The gradients of the step before", &[&[], &[(CLEAR, "")]]),
    ],
    gpus: &["sim:t4x2", "sim:h200x4"],
    sizes: &[4, 8],
    observe: |case| observe(case, solution::train_step),
    judge,
};

const STEPS: usize = 3;

pub fn observe(case: &Case, train_step: TrainStep) -> Seen {
    case.machine().enter(|| {
        let count = cuda::device_count();
        let ranks = Ranks::new(count).expect("GPUs are simulated");
        manual_seed(case.seed);
        let [x, y] = [6, 2].map(|width| Tensor::randn(&[count * case.size, width]).expect("it is small"));
        let mut replicas = ranks
            .run(|rank| {
                let device = Device::cuda(rank);
                cuda::set_device(rank)?;
                dist::init_process_group("nccl")?;
                let share = |whole: &Tensor| whole.narrow(0, rank * case.size, case.size)?.to(device);
                let (x, y) = (share(&x)?, share(&y)?);
                manual_seed(case.seed);
                let net = nn::Linear::new(6, 2)?;
                net.to(device)?;
                let model = DistributedDataParallel::new(net)?;
                let optimizer = SGD::new(model.parameters(), SGDOptions { lr: 0.1, ..Default::default() })?;
                Ok((model, optimizer, x, y))
            })
            .expect("the ranks are new");
        ranks.run(|_| cuda::synchronize()).expect("the model has been broadcast");
        crate::observe(
            case,
            || {
                // The weights after each step, on each rank.
                let mut after = Vec::new();
                for _ in 0..STEPS {
                    ranks.run_each(&mut replicas, |_, (model, optimizer, x, y)| train_step(model, optimizer, x, y))?;
                    after.push(ranks.run_each(&mut replicas, |_, (model, ..)| {
                        model.module().weight.tensor().detach().into_value()
                    })?);
                }
                Ok(after)
            },
            |_| Ok(()),
        )
    })
}

/// The weights of a rank after a step.
fn weights(value: &Value, step: usize, rank: usize) -> Vec<f64> {
    match value.list().get(step).and_then(|step| step.list().get(rank)) {
        Some(Value::Tensor { values, .. }) => values.clone(),
        _ => Vec::new(),
    }
}

fn near(one: &[f64], other: &[f64]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-5)
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if let Ended::Failed { message, .. } = &seen.ended
        && (message.contains("without calling a collective") || message.contains("has not begun this phase"))
    {
        return Err(Diagnosis::new("skipped", "A rank waits for gradients that the others never send.")
            .seen("a backward pass on rank 0 alone")
            .expected("one on every rank")
            .idea("The average is a collective: all ranks make the backward pass.")
            .report(seen));
    }
    let own = seen.returned()?;
    let count = right.value().list().first().map_or(0, |step| step.list().len());
    let [first, wanted] = [own, right.value()].map(|value| weights(value, 0, 0));
    let other = weights(own, 0, 1);
    let sent = [seen, right].map(|seen| seen.count(CallKind::BetweenDevices));
    if !near(&first, &other) {
        let (id, says, idea) = match sent[0] < sent[1] {
            true => (
                "not-averaged",
                "Each rank learns from its own rows alone, and the models drift apart.",
                "Call the wrapper, `model.forward(x)`: it prepares the averages of the backward pass.",
            ),
            false => (
                "ranks-differ",
                "The ranks have the same gradients, and not the same weights.",
                "Every rank takes the step, with its own optimizer. Nobody sends weights around.",
            ),
        };
        return Err(Diagnosis::new(id, says)
            .seen("other weights on rank 1 than on rank 0")
            .expected("the same on all ranks")
            .idea(idea));
    }
    // How far the first step has gone, compared with that of the solution.
    manual_seed(case.seed);
    let start: Vec<f64> = nn::Linear::new(6, 2)
        .and_then(|net| net.weight.tensor().detach().to(DType::F64)?.reshape(&[-1])?.to_vec())
        .unwrap_or_default();
    let length = |to: &[f64]| to.iter().zip(&start).map(|(to, from)| (to - from).powi(2)).sum::<f64>().sqrt();
    let share = length(&first) / length(&wanted);
    let says = |share: f64| format!("a first step {share:.2} times as long as that of the whole batch");
    if share < 1e-6 {
        return Err(Diagnosis::new("no-step", "The weights do not change.")
            .seen("the weights of the beginning")
            .expected("a step")
            .idea("The optimizer takes the step, after the backward pass."));
    }
    let is = |factor: f64| (share - factor).abs() < 0.02 * factor;
    let expected = "one as long as that of the whole batch";
    if share < 0.98 {
        return Err(Diagnosis::new("divided-twice", "The step is too short: the gradients are divided twice.")
            .seen(says(share))
            .expected(expected)
            .idea("`DistributedDataParallel` leaves averages. The loss of a rank is the mean over its own rows, and no more."));
    }
    if is(count as f64) && !is((2 * case.size) as f64) {
        return Err(Diagnosis::new("step-too-long", "The step is too long by the number of ranks.")
            .seen(says(share))
            .expected(expected)
            .idea("Nothing has to be undone: the mean of the ranks' means is the mean of the batch."));
    }
    if share > 1.02 {
        return Err(Diagnosis::new("sum-over-rows", "The step grows with the rows of a share.")
            .seen(says(share))
            .expected(expected)
            .idea("The loss is a mean over the rows, and not their sum."));
    }
    if !near(&weights(own, STEPS - 1, 0), &weights(right.value(), STEPS - 1, 0)) {
        return Err(Diagnosis::new("not-cleared", "The first step is right, and the next ones are not.")
            .seen("other weights after some steps")
            .expected("those of one GPU with the whole batch")
            .idea("Gradients add up until somebody clears them."));
    }
    if sent[0] > sent[1] {
        return Err(Diagnosis::new("averaged-again", "The gradients are sent twice.")
            .seen(format!("{} collectives on all ranks together", sent[0]))
            .expected(format!("{}", sent[1]))
            .idea("They are averages when `backward` returns. To average them again changes nothing, and takes time.")
            .at(seen.line(CallKind::BetweenDevices)));
    }
    Ok(())
}
