//! A rank that skips a collective.

use todevice::cuda;
use todevice::distributed::{self as dist, Ranks};
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::distributed::{self as dist, ReduceOp};
    use todevice::prelude::*;

    /// What rank 0 is to print: the mean of the losses of all ranks. The others print
    /// nothing. The loss itself stays as it is.
    pub fn printed(loss: &Tensor) -> Result<Option<Tensor>> {
        let rank = dist::get_rank()?;
        let mean = loss.copy()?;
        dist::all_reduce(&mean, ReduceOp::Avg)?;
        if rank == 0 { Ok(Some(mean)) } else { Ok(None) }
    }
    // END
}

type Printed = fn(&Tensor) -> Result<Option<Tensor>>;

const MEAN: &str = "    let mean = loss.copy()?;\n";
const REDUCE: &str = "    dist::all_reduce(&mean, ReduceOp::Avg)?;\n";
const PRINT: &str = "    if rank == 0 { Ok(Some(mean)) } else { Ok(None) }\n";

/// Those who print nothing call nothing.
const ALONE: &[crate::Edit] =
    &[(REDUCE, "    if rank == 0 {\n        dist::all_reduce(&mean, ReduceOp::Avg)?;\n    }\n")];
/// Another collective than that of rank 0.
const BARRIER: &[crate::Edit] = &[(
    REDUCE,
    "    if rank == 0 {\n        dist::all_reduce(&mean, ReduceOp::Avg)?;\n    } else {\n        dist::barrier()?;\n    }\n",
)];
const OF_RANK_1: &[crate::Edit] = &[(PRINT, "    if rank == 1 { Ok(Some(mean)) } else { Ok(None) }\n")];

/// The exercise before this one in the chapter.
pub const AFTER: &str = "10-average";

pub static EXERCISE: Exercise = Exercise {
    id: "10-everyone",
    title: "Only rank 0 prints",
    kind: Kind::Fix,
    task: "Somebody wanted one line of output instead of four, and since then the training run hangs whenever it prints. Rank 0 should \
           return the mean of all losses and the others `None`, and nobody should wait forever. The tensor that the function gets is \
           needed again: leave it as it is. Nothing is read on the host.",
    hints: [
        "Read the report. Who waits, in which collective, and who never called it?",
        "A collective is for all ranks, also for those that do not need its result.",
        "Make the copy and call `all_reduce` on every rank. Only then look at the number of the rank.",
    ],
    afterwards: "`torch.distributed.reduce` gives the result to one rank only. It too is called by all.",
    source: include_str!("10-everyone.rs"),
    functions: &[("printed", "pub fn printed(loss: &Tensor) -> Result<Option<Tensor>>")],
    skeleton: ALONE,
    styles: &[
        Style {
            name: "gathered",
            edits: &[
                ("use todevice::distributed::{self as dist, ReduceOp};\n", "use todevice::distributed as dist;\n"),
                (MEAN, "    let all = dist::all_gather(loss)?;\n"),
                (REDUCE, "    let all: Vec<&Tensor> = all.iter().collect();\n    let mean = Tensor::stack(&all, 0)?.mean()?;\n"),
            ],
        },
        Style { name: "then_some", edits: &[(PRINT, "    Ok((rank == 0).then_some(mean))\n")] },
    ],
    wrong: &[
        Wrong { name: "alone", what: "Only rank 0 calls the collective.", edits: ALONE, diagnosis: "skipped" },
        Wrong {
            name: "others_wait",
            what: "The others call a barrier instead.",
            edits: BARRIER,
            diagnosis: "other-collective",
        },
        Wrong {
            name: "no_collective",
            what: "There is no collective any more, and rank 0 prints its own loss.",
            edits: &[
                ("use todevice::distributed::{self as dist, ReduceOp};\n", "use todevice::distributed as dist;\n"),
                (REDUCE, ""),
            ],
            diagnosis: "own-loss",
        },
        Wrong {
            name: "sum",
            what: "The losses are summed.",
            edits: &[(REDUCE, "    dist::all_reduce(&mean, ReduceOp::Sum)?;\n")],
            diagnosis: "sum",
        },
        Wrong {
            name: "divided_again",
            what: "The mean is divided by the number of ranks once more.",
            edits: &[(PRINT, "    let mean = (mean / dist::get_world_size()? as f64)?;\n    if rank == 0 { Ok(Some(mean)) } else { Ok(None) }\n")],
            diagnosis: "divided-again",
        },
        Wrong {
            name: "in_place",
            what: "The loss itself is averaged, so every rank loses its own.",
            edits: &[
                (MEAN, ""),
                (REDUCE, "    dist::all_reduce(loss, ReduceOp::Avg)?;\n"),
                (PRINT, "    if rank == 0 { Ok(Some(loss.copy()?)) } else { Ok(None) }\n"),
            ],
            diagnosis: "loss-changed",
        },
        Wrong {
            name: "all_print",
            what: "Every rank prints.",
            edits: &[("    let rank = dist::get_rank()?;\n", ""), (PRINT, "    Ok(Some(mean))\n")],
            diagnosis: "all-print",
        },
        Wrong {
            name: "nobody_prints",
            what: "Ranks are counted from one, so the wrong one prints.",
            edits: OF_RANK_1,
            diagnosis: "wrong-rank",
        },
        Wrong {
            name: "largest",
            what: "The largest loss is taken for the mean.",
            edits: &[(REDUCE, "    dist::all_reduce(&mean, ReduceOp::Max)?;\n")],
            diagnosis: "no-mean",
        },
        Wrong {
            name: "read",
            what: "The mean is read on the host, which waits, and a new tensor is made of it.",
            edits: &[(PRINT, "    let mean = Tensor::new(mean.item()?)?.to(mean.device())?;\n    if rank == 0 { Ok(Some(mean)) } else { Ok(None) }\n")],
            diagnosis: "read",
        },
    ],
    places: &[
        (
            "The collective",
            &[
                &[],
                ALONE,
                BARRIER,
                &[(REDUCE, "    dist::all_reduce(&mean, ReduceOp::Sum)?;\n")],
            ],
        ),
        ("What is returned", &[&[], &[(PRINT, "    Ok(Some(mean))\n")], OF_RANK_1]),
    ],
    gpus: &["sim:t4x2", "sim:h200x4"],
    sizes: &[1, 2],
    observe: |case| observe(case, solution::printed),
    judge,
};

pub fn observe(case: &Case, printed: Printed) -> Seen {
    case.machine().enter(|| {
        let ranks = Ranks::new(cuda::device_count()).expect("GPUs are simulated");
        let loss_of = |rank: usize| case.seed as f64 / 8.0 + (case.size * (rank + 1)) as f64;
        let mut losses = ranks
            .run(|rank| {
                cuda::set_device(rank)?;
                dist::init_process_group("nccl")?;
                let loss = Tensor::full(&[], (loss_of(rank), Device::cuda(rank)))?;
                cuda::synchronize()?;
                Ok(loss)
            })
            .expect("the ranks are new");
        let mut waits = 0;
        let mut seen = crate::observe(
            case,
            || {
                let before = todevice::Machine::current().counters().copies_to_host;
                let mut all = ranks.run_each(&mut losses, |_, loss| printed(loss))?;
                waits = todevice::Machine::current().counters().copies_to_host - before;
                ranks.run_each(&mut all, |_, printed| printed.take().into_value())
            },
            |_| Ok(()),
        );
        let now = ranks.run_each(&mut losses, |_, loss| loss.item()).unwrap_or_default();
        let kept = now.iter().enumerate().all(|(rank, now)| *now == loss_of(rank));
        seen.facts.insert("kept".to_owned(), Value::Flag(kept || now.is_empty()));
        seen.facts.insert("read".to_owned(), Value::Number(waits as f64));
        seen
    })
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Tensor { values, .. } => values.first().copied(),
        _ => None,
    }
}

fn judge(_case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if let Ended::Failed { message, .. } = &seen.ended {
        if message.contains("Detected mismatch between collectives") {
            return Err(Diagnosis::new("other-collective", "The ranks call different collectives.")
                .seen("a barrier on one rank, and an all-reduce on another")
                .expected("the same call on all ranks")
                .idea("What one rank calls first belongs to what the others call first, whatever it is.")
                .report(seen));
        }
        if message.contains("without calling a collective") || message.contains("has not begun this phase") {
            // Without the report: where there are no threads, it tells of phases, of which the reader knows nothing.
            return Err(Diagnosis::new("skipped", "A rank waits for others that never call the collective.")
                .seen("an all-reduce on rank 0 alone")
                .expected("the same call on all ranks")
                .idea("Let all ranks average, and one of them print."));
        }
    }
    let all: Vec<Option<f64>> = seen.returned()?.list().iter().map(number).collect();
    let wanted: Vec<Option<f64>> = right.value().list().iter().map(number).collect();
    let count = wanted.len() as f64;
    let mean = wanted[0].unwrap_or_default();
    if seen.fact("kept") == &Value::Flag(false) {
        return Err(Diagnosis::new("loss-changed", "The ranks have lost their own losses.")
            .seen("the mean in the tensor that the function was given")
            .expected("each rank's loss as it was")
            .idea("`all_reduce` writes into the tensor that it is given. Give it a copy."));
    }
    if all.iter().flatten().count() > 1 {
        return Err(Diagnosis::new("all-print", "More than one rank prints.")
            .seen(format!("{} results", all.iter().flatten().count()))
            .expected("one, on rank 0")
            .idea("All ranks call the collective. Only rank 0 returns what came of it."));
    }
    let Some(printed) = all[0] else {
        return Err(Diagnosis::new("wrong-rank", "Rank 0 prints nothing.")
            .seen("`None` on rank 0")
            .expected("the mean of the losses")
            .idea("Ranks are counted from 0."));
    };
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-4 * b.abs();
    if !near(printed, mean) {
        let diagnosis = if near(printed, mean * count) {
            Diagnosis::new("sum", "The losses are summed.")
                .idea("`ReduceOp::Avg` divides by the number of ranks.")
        } else if near(printed, mean / count) {
            Diagnosis::new("divided-again", "The mean is divided by the number of ranks once more.")
                .idea("`ReduceOp::Avg` has divided already.")
        } else if seen.count(CallKind::BetweenDevices) == 0 {
            Diagnosis::new("own-loss", "Rank 0 prints its own loss.")
                .idea("The others have losses, too. Average them first.")
        } else {
            Diagnosis::new("no-mean", "What is printed is not the mean.")
                .idea("`ReduceOp::Avg` is the mean.")
        };
        return Err(diagnosis.seen(format!("{printed}")).expected(format!("{mean}")));
    }
    if seen.fact("read").number() > right.fact("read").number() {
        return Err(Diagnosis::new("read", "The host waits for a number that it does not need.")
            .seen("a copy to the host")
            .expected("a result that stays on the GPU")
            .idea("Return the tensor. It is read where it is printed.")
            .at(seen.line(CallKind::ToHost)));
    }
    Ok(())
}
