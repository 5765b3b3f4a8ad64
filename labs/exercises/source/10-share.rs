//! The whole batch on every rank.

use todevice::cuda;
use todevice::distributed::{self as dist, Ranks};
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Ended, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::distributed as dist;
    use todevice::prelude::*;

    /// The rows of a batch that this rank trains on, on its device. The batch is on the
    /// CPU, and its rows divide evenly among the ranks.
    pub fn share(batch: &Tensor, device: Device) -> Result<Tensor> {
        let (rank, ranks) = (dist::get_rank()?, dist::get_world_size()?);
        let rows = batch.sizes()[0] / ranks;
        let own = batch.narrow(0, rank * rows, rows)?;
        own.to(device)
    }
    // END
}

type Share = fn(&Tensor, Device) -> Result<Tensor>;

const RANKS: &str = "    let (rank, ranks) = (dist::get_rank()?, dist::get_world_size()?);\n";
const ROWS: &str = "    let rows = batch.sizes()[0] / ranks;\n";
const OWN: &str = "    let own = batch.narrow(0, rank * rows, rows)?;\n";
const TO: &str = "    own.to(device)\n";

/// Nothing is asked of the ranks.
const ALL: &[crate::Edit] = &[
    ("use todevice::distributed as dist;\n", ""),
    (RANKS, ""),
    (ROWS, ""),
    (OWN, "    let own = batch;\n"),
];

pub static EXERCISE: Exercise = Exercise {
    id: "10-share",
    title: "The same work, many times",
    kind: Kind::Fix,
    task: "Four GPUs train with `DistributedDataParallel`, and an epoch takes as long as on one. No wonder: every rank trains on the \
           whole batch. Give each rank its own share: the same number of rows for all, and each row to one rank, in any order. Copy only \
           the share, and copy it to the rank's own GPU.",
    hints: [
        "Two things tell a rank which part is its own: its number, and how many ranks there are.",
        "`dist::get_rank()` and `dist::get_world_size()` say both. `narrow(0, start, length)` is a view of some rows, and copies nothing.",
        "A share has `batch.sizes()[0] / ranks` rows, and begins at row `rank * rows`. Move the view with `.to(device)`.",
    ],
    afterwards: "In a training program a `DistributedSampler` does this for a loader, so that a rank does not even load the rows of the \
                 others.",
    source: include_str!("10-share.rs"),
    functions: &[("share", "pub fn share(batch: &Tensor, device: Device) -> Result<Tensor>")],
    skeleton: ALL,
    styles: &[
        Style {
            name: "chunk",
            edits: &[
                (ROWS, ""),
                (OWN, "    let parts = batch.chunk(ranks, 0)?;\n"),
                (TO, "    parts[rank].to(device)\n"),
            ],
        },
        Style {
            name: "every_other_row",
            edits: &[
                (
                    OWN,
                    "    let own: Vec<Tensor> = (0..rows)\n        \
                     .map(|row| batch.narrow(0, row * ranks + rank, 1))\n        \
                     .collect::<Result<_>>()?;\n",
                ),
                (TO, "    let own: Vec<&Tensor> = own.iter().collect();\n    Tensor::cat(&own, 0)?.to(device)\n"),
            ],
        },
    ],
    wrong: &[
        Wrong { name: "whole", what: "Every rank takes the whole batch.", edits: ALL, diagnosis: "whole-batch" },
        Wrong {
            name: "first_part",
            what: "Every rank takes the first part.",
            edits: &[
                (RANKS, "    let ranks = dist::get_world_size()?;\n"),
                (OWN, "    let own = batch.narrow(0, 0, rows)?;\n"),
            ],
            diagnosis: "same-part",
        },
        Wrong {
            name: "overlapping",
            what: "Each share begins one row after the one before.",
            edits: &[(OWN, "    let own = batch.narrow(0, rank, rows)?;\n")],
            diagnosis: "overlap",
        },
        Wrong {
            name: "one_too_far",
            what: "Ranks are counted from one, so the last share lies behind the end.",
            edits: &[(OWN, "    let own = batch.narrow(0, (rank + 1) * rows, rows)?;\n")],
            diagnosis: "past-the-end",
        },
        Wrong {
            name: "row_missing",
            what: "Each share lacks its last row.",
            edits: &[(OWN, "    let own = batch.narrow(0, rank * rows, rows - 1)?;\n")],
            diagnosis: "rows-lost",
        },
        Wrong {
            name: "columns",
            what: "The features are shared out instead of the rows.",
            edits: &[
                (ROWS, "    let rows = batch.sizes()[1] / ranks;\n"),
                (OWN, "    let own = batch.narrow(1, rank * rows, rows)?;\n"),
            ],
            diagnosis: "columns",
        },
        Wrong {
            name: "moved_first",
            what: "The whole batch is copied to every GPU, and cut there.",
            edits: &[
                (OWN, "    let own = batch.to(device)?.narrow(0, rank * rows, rows)?;\n"),
                (TO, "    own.copy()\n"),
            ],
            diagnosis: "copied-whole",
        },
        Wrong {
            name: "on_the_cpu",
            what: "The share stays on the CPU.",
            edits: &[
                ("share(batch: &Tensor, device: Device)", "share(batch: &Tensor, _device: Device)"),
                (TO, "    own.copy()\n"),
            ],
            diagnosis: "on-the-cpu",
        },
        Wrong {
            name: "all_on_the_first",
            what: "Every rank uses `cuda:0`.",
            edits: &[
                ("share(batch: &Tensor, device: Device)", "share(batch: &Tensor, _device: Device)"),
                (TO, "    own.to(Device::cuda(0))\n"),
            ],
            diagnosis: "wrong-gpu",
        },
    ],
    places: &[
        (
            "The rows",
            &[
                &[],
                &[(OWN, "    let own = batch.narrow(0, rank, rows)?;\n")],
                &[(OWN, "    let own = batch.narrow(0, (rank + 1) * rows, rows)?;\n")],
                ALL,
            ],
        ),
        ("Where they go", &[&[], &[(TO, "    own.to(Device::cuda(0))\n")]]),
    ],
    gpus: &["sim:t4x2", "sim:h200x4"],
    sizes: &[6, 16],
    observe: |case| observe(case, solution::share),
    judge,
};

const FEATURES: usize = 8;

pub fn observe(case: &Case, share: Share) -> Seen {
    case.machine().enter(|| {
        let count = cuda::device_count();
        let ranks = Ranks::new(count).expect("GPUs are simulated");
        let batch = Tensor::arange(0, (case.size * count * FEATURES) as i64, (1, DType::I64))
            .and_then(|numbers| numbers.to(DType::F32)?.reshape(&[-1, FEATURES as i64]))
            .expect("it is small");
        ranks
            .run(|rank| {
                cuda::set_device(rank)?;
                dist::init_process_group("nccl")
            })
            .expect("the ranks are new");
        crate::observe(
            case,
            || {
                let mut shares = ranks.run(|rank| share(&batch, Device::cuda(rank)))?;
                ranks.run_each(&mut shares, |_, share| (&*share).into_value())
            },
            |_| Ok(()),
        )
    })
}

/// The first number of each row, which says which row it is, and where the share is.
fn rows(share: &Value) -> (Vec<usize>, &str, &[usize]) {
    match share {
        Value::Tensor { device, sizes, values, .. } => {
            let width = sizes.get(1).copied().unwrap_or(1).max(1);
            let first = values.chunks(width).map(|row| row.first().map_or(0, |number| *number as usize / FEATURES));
            (first.collect(), device, sizes)
        }
        _ => (Vec::new(), "", &[]),
    }
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    if let Ended::Failed { message, .. } = &seen.ended
        && message.contains("exceeds dimension size")
    {
        return Err(Diagnosis::new("past-the-end", "A share lies behind the end of the batch.")
            .seen(message)
            .expected("shares that begin at the first row and end with the last")
            .idea("Ranks are counted from 0, so the first share begins at row 0.")
            .report(seen));
    }
    let shares = seen.returned()?.list();
    let count = right.value().list().len();
    let all: Vec<_> = shares.iter().map(rows).collect();
    if all.iter().any(|(_, _, sizes)| sizes.get(1) != Some(&FEATURES)) {
        return Err(Diagnosis::new("columns", "Each rank has all rows, and only a part of their numbers.")
            .seen(format!("a share of the sizes {:?}", all[0].2))
            .expected(format!("rows of {FEATURES} numbers"))
            .idea("The first dimension is that of the batch: share that one out."));
    }
    let lengths: Vec<usize> = all.iter().map(|(rows, ..)| rows.len()).collect();
    let said = |lengths: &[usize]| {
        let lengths: Vec<String> = lengths.iter().map(usize::to_string).collect();
        format!("rows: {}", lengths.join(", "))
    };
    if lengths.iter().all(|length| *length == case.size * count) {
        return Err(Diagnosis::new("whole-batch", "Every rank has the whole batch.")
            .seen(said(&lengths))
            .expected(said(&vec![case.size; count]))
            .idea("All ranks then compute the same gradients, and their average is what one of them has. Cut the batch."));
    }
    if all.iter().any(|(_, device, _)| *device == "cpu") {
        return Err(Diagnosis::new("on-the-cpu", "A share is still on the CPU.")
            .seen("a share on the CPU")
            .expected("each share on the GPU of its rank")
            .idea("`.to(device)` returns the tensor that is there."));
    }
    if let Some(rank) = (0..all.len()).find(|rank| all[*rank].1 != format!("cuda:{rank}")) {
        return Err(Diagnosis::new("wrong-gpu", "A rank has its share on the GPU of another.")
            .seen(format!("the share of rank {rank} on {}", all[rank].1))
            .expected(format!("cuda:{rank}"))
            .idea("A rank is told its device. A number that stands in the code is the same for all ranks."));
    }
    let mut every: Vec<usize> = all.iter().flat_map(|(rows, ..)| rows.iter().copied()).collect();
    every.sort_unstable();
    let total = every.len();
    every.dedup();
    if all.iter().all(|(rows, ..)| *rows == all[0].0) {
        return Err(Diagnosis::new("same-part", "All ranks have the same rows.")
            .seen("one part of the batch, once for each rank")
            .expected("another part for each")
            .idea("Where a share begins has to depend on the number of the rank."));
    }
    if every.len() < total {
        return Err(Diagnosis::new("overlap", "Some rows belong to several ranks.")
            .seen(format!("{total} rows, {} of them different", every.len()))
            .expected("each row once")
            .idea("If a share has `rows` rows, the next one begins `rows` rows further on."));
    }
    if total < case.size * count {
        return Err(Diagnosis::new("rows-lost", "Some rows belong to nobody.")
            .seen(said(&lengths))
            .expected(said(&vec![case.size; count]))
            .idea("All ranks together have all rows."));
    }
    if lengths.iter().any(|length| *length != case.size) {
        return Err(Diagnosis::new("uneven", "The shares are not of one size.")
            .seen(said(&lengths))
            .expected(said(&vec![case.size; count]))
            .idea("The average of the ranks' gradients is that of the batch only if all have the same number of rows."));
    }
    let [sent, needed] = [seen, right].map(|seen| seen.bytes(CallKind::ToDevice));
    if sent > needed {
        return Err(Diagnosis::new("copied-whole", "More is copied to the GPUs than their shares.")
            .seen(format!("{sent} bytes to all GPUs together"))
            .expected(format!("{needed} bytes"))
            .idea("Cut first, and then move: `narrow` copies nothing.")
            .at(seen.line(CallKind::ToDevice)));
    }
    Ok(())
}
