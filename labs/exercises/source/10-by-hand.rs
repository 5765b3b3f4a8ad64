//! The gradient of the whole batch.

use todevice::cuda;
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::prelude::*;

    /// The gradient of each parameter for a batch on the CPU, computed by two GPUs. Each
    /// of the two networks is on its GPU, and they have the same weights. The loss of the
    /// batch is the mean over its rows, and the gradients are on the first GPU.
    pub fn gradients(
        nets: &[nn::Linear; 2],
        x: &Tensor,
        y: &Tensor,
    ) -> Result<Vec<Tensor>> {
        let (xs, ys) = (x.chunk(2, 0)?, y.chunk(2, 0)?);
        for (index, net) in nets.iter().enumerate() {
            let device = Device::cuda(index);
            let (part_x, part_y) = (xs[index].to(device)?, ys[index].to(device)?);
            let share = part_x.size(0)? as f64 / x.size(0)? as f64;
            let loss = net.forward(&part_x)?.mse_loss(&part_y, Reduction::Mean)?;
            (loss * share)?.backward()?;
        }
        let mut sums = Vec::new();
        for (first, second) in nets[0].parameters().iter().zip(nets[1].parameters()) {
            let missing = || Error::custom("there was no backward pass");
            let first = first.grad().ok_or_else(missing)?;
            let second = second.grad().ok_or_else(missing)?;
            sums.push((&first + second.to(first.device())?)?);
        }
        Ok(sums)
    }
    // END
}

type Gradients = fn(&[nn::Linear; 2], &Tensor, &Tensor) -> Result<Vec<Tensor>>;

const PARTS: &str = "    let (xs, ys) = (x.chunk(2, 0)?, y.chunk(2, 0)?);\n";
const MOVE: &str = "        let (part_x, part_y) = (xs[index].to(device)?, ys[index].to(device)?);\n";
const SHARE: &str = "        let share = part_x.size(0)? as f64 / x.size(0)? as f64;\n";
const LOSS: &str = "        let loss = net.forward(&part_x)?.mse_loss(&part_y, Reduction::Mean)?;\n";
const BACKWARD: &str = "        (loss * share)?.backward()?;\n";
const SUM: &str = "        sums.push((&first + second.to(first.device())?)?);\n";
const GRADIENTS: &str =
    "        let first = first.grad().ok_or_else(missing)?;\n        let second = second.grad().ok_or_else(missing)?;\n";

/// The exercise before this one in the chapter.
pub const AFTER: &str = "10-everyone";

pub static EXERCISE: Exercise = Exercise {
    id: "10-by-hand",
    title: "The gradient of the whole batch",
    kind: Kind::Write,
    task: "Write the middle of `gradients`. `chunk` has cut the batch into two parts, and if the number of rows is odd, the parts differ. \
           Each GPU computes the gradients of its part, at the same time as the other. Bring them together on the first GPU, so that they \
           are the gradients of the mean over all rows. Only gradients travel between the GPUs, without passing through the host.",
    hints: [
        "The mean over 7 rows is not the mean of a mean over 4 and a mean over 3. By how much does each count?",
        "Multiply each part's loss by its share of the rows before `backward`. Then the gradient of the batch is the sum of the two.",
        "`(loss * share)?.backward()?` on each GPU, and at the end `(&first + second.to(first.device())?)?`.",
    ],
    afterwards: "`DistributedDataParallel` takes the mean of the ranks' gradients. Its sampler gives each rank the same number of rows, so \
                 that this is right.",
    source: include_str!("10-by-hand.rs"),
    functions: &[("gradients", "pub fn gradients(nets: &[nn::Linear; 2], x: &Tensor, y: &Tensor) -> Result<Vec<Tensor>>")],
    skeleton: &[
        (SHARE, ""),
        (LOSS, "        // The loss of this part, weighed, and its gradients.\n"),
        (BACKWARD, "        let _ = (net, part_x, part_y);\n        todo!()\n"),
        (SUM, "        // Bring the two together.\n        sums.push(todo!());\n"),
        (GRADIENTS, "        let _first = first.grad().ok_or_else(missing)?;\n        let _second = second.grad().ok_or_else(missing)?;\n"),
        ("    let mut sums = Vec::new();\n", "    let mut sums: Vec<Tensor> = Vec::new();\n"),
    ],
    styles: &[
        Style {
            name: "sums_of_rows",
            edits: &[
                (SHARE, ""),
                (LOSS, "        let loss = net.forward(&part_x)?.mse_loss(&part_y, Reduction::Sum)?;\n"),
                (BACKWARD, "        (loss / y.numel() as f64)?.backward()?;\n"),
            ],
        },
        Style {
            name: "weighed_later",
            edits: &[
                (SHARE, ""),
                (BACKWARD, "        loss.backward()?;\n"),
                (
                    SUM,
                    "        let share = xs[0].size(0)? as f64 / x.size(0)? as f64;\n        let second = (second * (1.0 - share))?;\n        \
                     sums.push(((&first * share)? + second.to(first.device())?)?);\n",
                ),
            ],
        },
        Style {
            name: "split",
            edits: &[(
                PARTS,
                "    let half = x.size(0)?.div_ceil(2);\n    let (xs, ys) = (x.split(half, 0)?, y.split(half, 0)?);\n",
            )],
        },
    ],
    wrong: &[
        Wrong {
            name: "sum_of_means",
            what: "The gradients are added, and each is that of a mean.",
            edits: &[(SHARE, ""), (BACKWARD, "        loss.backward()?;\n")],
            diagnosis: "sum-of-means",
        },
        Wrong {
            name: "mean_of_means",
            what: "The mean of the two is taken, as if the parts had the same number of rows.",
            edits: &[(SHARE, "        let share = 0.5;\n")],
            diagnosis: "mean-of-means",
        },
        Wrong {
            name: "sum_of_rows",
            what: "The loss is a sum over the rows.",
            edits: &[
                (SHARE, ""),
                (LOSS, "        let loss = net.forward(&part_x)?.mse_loss(&part_y, Reduction::Sum)?;\n"),
                (BACKWARD, "        loss.backward()?;\n"),
            ],
            diagnosis: "sum-of-rows",
        },
        Wrong {
            name: "first_half_only",
            what: "The second GPU's gradients are forgotten.",
            edits: &[(SUM, "        let _ = second;\n        sums.push(first);\n")],
            diagnosis: "first-only",
        },
        Wrong {
            name: "whole_batch_twice",
            what: "Each GPU gets the whole batch.",
            edits: &[
                (PARTS, ""),
                (MOVE, "        let (part_x, part_y) = (x.to(device)?, y.to(device)?);\n"),
                (SHARE, "        let share = 0.5;\n"),
            ],
            diagnosis: "whole-batch-twice",
        },
        Wrong {
            name: "through_the_host",
            what: "Gradients go from one GPU to the other by way of the CPU.",
            edits: &[(SUM, "        sums.push((&first + second.cpu()?.to(first.device())?)?);\n")],
            diagnosis: "through-the-host",
        },
        Wrong {
            name: "added_on_the_cpu",
            what: "Gradients are added on the CPU, and stay there.",
            edits: &[(SUM, "        sums.push((first.cpu()? + second.cpu()?)?);\n")],
            diagnosis: "on-the-cpu",
        },
        Wrong {
            name: "on_the_second",
            what: "The sum is on the second GPU.",
            edits: &[(SUM, "        sums.push((first.to(second.device())? + &second)?);\n")],
            diagnosis: "on-the-second",
        },
        Wrong {
            name: "not_moved",
            what: "Gradients of two GPUs are added as they are.",
            edits: &[(SUM, "        sums.push((&first + &second)?);\n")],
            diagnosis: "not-moved",
        },
        Wrong {
            name: "waits_between",
            what: "The host reads the first loss before it gives the second GPU its part.",
            edits: &[(BACKWARD, "        (&loss * share)?.backward()?;\n        println!(\"loss {}\", loss.item()?);\n")],
            diagnosis: "waits-between",
        },
    ],
    places: &[],
    gpus: &["sim:t4x2", "sim:h200x4"],
    sizes: &[7, 32],
    observe: |case| observe(case, solution::gradients),
    judge,
};

const WIDTH: usize = 16;

/// The size of a case is the number of rows.
pub fn observe(case: &Case, gradients: Gradients) -> Seen {
    case.machine().enter(|| {
        let (nets, x, y) = given(case).expect("they are small");
        cuda::device(1, cuda::synchronize).expect("there is a second GPU").expect("the second GPU is new");
        crate::observe(case, || gradients(&nets, &x, &y), |_| Ok(()))
    })
}

fn given(case: &Case) -> Result<([nn::Linear; 2], Tensor, Tensor)> {
    let net = |index: usize| -> Result<nn::Linear> {
        manual_seed(case.seed);
        let net = nn::Linear::new(WIDTH, 4)?;
        net.to(Device::cuda(index))?;
        Ok(net)
    };
    let nets = [net(0)?, net(1)?];
    let x = Tensor::randn(&[case.size, WIDTH])?;
    // The rows of the second part are larger, so that it matters how much each part counts.
    let sizes: Vec<f32> = (0..case.size).map(|row| 1.0 + row as f32 / case.size as f32).collect();
    let x = (x * Tensor::from_slice(&sizes, &[case.size, 1])?)?;
    let y = Tensor::randn(&[case.size, 4])?;
    Ok((nets, x, y))
}

/// The first number of each gradient, as a part of the batch gives it.
fn of_part(case: &Case, part: usize) -> Result<Vec<f64>> {
    case.machine().enter(|| {
        let (nets, x, y) = given(case)?;
        let device = Device::cuda(part);
        let (x, y) = (x.chunk(2, 0)?[part].to(device)?, y.chunk(2, 0)?[part].to(device)?);
        nets[part].forward(&x)?.mse_loss(&y, Reduction::Mean)?.backward()?;
        let first = |parameter: nn::Parameter| {
            let gradient = parameter.grad().ok_or_else(|| Error::custom("there was a backward pass"))?;
            Ok(gradient.cpu()?.to(DType::F64)?.reshape(&[-1])?.to_vec::<f64>()?[0])
        };
        nets[part].parameters().into_iter().map(first).collect()
    })
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if let Ended::Failed { operands, .. } = &seen.ended
        && operands.iter().any(|operand| operand.device == "cuda:1")
    {
        return Err(Diagnosis::new("not-moved", "Tensors of two GPUs meet in one operation.")
            .seen("one on cuda:0, one on cuda:1")
            .expected("both on the first")
            .idea("Two GPUs are two devices. Move the second gradient to the device of the first.")
            .report(seen));
    }
    let value = seen.returned()?;
    let (own, wanted) = (value.list(), right.value().list());
    let to_device = [seen, right].map(|seen| seen.bytes(CallKind::ToDevice));
    let device = own.first().and_then(Value::device).unwrap_or("no device");
    match device {
        "cpu" => {
            return Err(Diagnosis::new("on-the-cpu", "The gradients are on the CPU.")
                .seen(device)
                .expected("cuda:0")
                .idea("The GPUs can copy to each other. The optimizer steps on the first, and wants the gradients there."));
        }
        "cuda:1" => {
            return Err(Diagnosis::new("on-the-second", "The gradients are on the second GPU.")
                .seen(device)
                .expected("cuda:0")
                .idea("`second.to(first.device())` moves the second to the first."));
        }
        _ => {}
    }
    if to_device[0] as f64 > 1.5 * to_device[1] as f64 && seen.count(CallKind::ToHost) == 0 {
        return Err(Diagnosis::new("whole-batch-twice", "Both GPUs get the whole batch.")
            .seen(format!("{} bytes to the GPUs", to_device[0]))
            .expected(to_device[1].to_string())
            .idea("Two GPUs that do the same work are as slow as one. Give each its part.")
            .at(seen.line(CallKind::ToDevice)));
    }
    if !value.is_near(right.value(), 1e-3) {
        return Err(wrong_gradients(case, own, wanted));
    }
    let peers = seen.count(CallKind::BetweenDevices);
    if peers < wanted.len() {
        return Err(Diagnosis::new("through-the-host", "Gradients pass through the host.")
            .seen(format!("{} copies to the host, {peers} between the GPUs", seen.count(CallKind::ToHost)))
            .expected(format!("{} between the GPUs", wanted.len()))
            .idea("`.to` of another GPU copies directly, if the cards can. By way of the host each byte crosses the bus twice.")
            .at(seen.line(CallKind::ToHost)));
    }
    if seen.bytes(CallKind::BetweenDevices) > right.bytes(CallKind::BetweenDevices) {
        return Err(Diagnosis::new("more-than-gradients", "More than gradients travels between the GPUs.")
            .seen(format!("{} bytes", seen.bytes(CallKind::BetweenDevices)))
            .expected(right.bytes(CallKind::BetweenDevices).to_string())
            .idea("The parts of the batch come from the host, each to its GPU."));
    }
    let reads = seen.count(CallKind::ToHost) + seen.count(CallKind::Wait);
    if reads > 0 {
        let kind = if seen.count(CallKind::ToHost) > 0 { CallKind::ToHost } else { CallKind::Wait };
        return Err(Diagnosis::new("waits-between", "The host waits for a GPU.")
            .seen(format!("{reads} waits"))
            .expected("none")
            .idea("While the host waits for the first GPU, the second has no work. Ask both, and read nothing.")
            .at(seen.line(kind))
            .timelines(seen, right));
    }
    Ok(())
}

fn wrong_gradients(case: &Case, own: &[Value], wanted: &[Value]) -> Diagnosis {
    let first = |value: &Value| match value {
        Value::Tensor { values, .. } => values.first().copied().unwrap_or(f64::NAN),
        _ => f64::NAN,
    };
    let [own, wanted]: [Vec<f64>; 2] = [own, wanted].map(|list| list.iter().map(first).collect());
    let parts = [0, 1].map(|part| of_part(case, part).unwrap_or_default());
    let is = |value: &dyn Fn(f64, f64) -> f64| {
        own.len() == parts[0].len()
            && own.iter().enumerate().all(|(at, own)| {
                let expected = value(parts[0][at], parts[1][at]);
                (own - expected).abs() <= 1e-3 * expected.abs().max(1e-3)
            })
    };
    let rows = case.size.div_ceil(2) as f64;
    let share = rows / case.size as f64;
    let (id, says, idea) = if is(&|a, b| a + b) {
        (
            "sum-of-means",
            "The gradients are about twice as large as those of the batch.",
            "Each part's loss is a mean. Before you add two means, weigh them.",
        )
    } else if is(&|a, b| (a + b) / 2.0) {
        (
            "mean-of-means",
            "Both parts count the same, and one has a row more.",
            "A part counts by its share of the rows.",
        )
    } else if is(&|a, _| share * a) || is(&|a, _| a) {
        ("first-only", "The second part of the batch is missing.", "Add the second GPU's gradients.")
    } else if is(&|a, b| 4.0 * (rows * a + (case.size as f64 - rows) * b)) {
        ("sum-of-rows", "The gradients grow with the batch.", "The loss of the batch is a mean. Divide the sums by the number of all numbers.")
    } else {
        ("other-gradients", "The gradients are not those of the whole batch.", "Weigh the loss of each part by its share of the rows, and add up.")
    };
    let shown = |list: &[f64]| list.iter().map(|number| format!("{number:.5}")).collect::<Vec<_>>().join(" and ");
    Diagnosis::new(id, says)
        .seen(format!("gradients that begin with {}", shown(&own)))
        .expected(shown(&wanted))
        .idea(idea)
}
