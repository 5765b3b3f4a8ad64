//! A sampler that nobody tells the epoch.

use todevice::distributed::{self as dist, Ranks};
use todevice::prelude::*;

use crate::{Case, Diagnosis, Exercise, IntoValue, Kind, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::data::{DistributedSampler, DistributedSamplerOptions};
    use todevice::distributed as dist;
    use todevice::prelude::*;
    use std::sync::Arc;

    /// The batches that this rank sees, epoch by epoch.
    pub fn epochs(dataset: TensorDataset<1>, epochs: u64) -> Result<Vec<Vec<Tensor>>> {
        let (ranks, rank) = (dist::get_world_size()?, dist::get_rank()?);
        let options = DistributedSamplerOptions::default();
        let sampler = Arc::new(DistributedSampler::new(&dataset, ranks, rank, options)?);
        let loader = DataLoader::new(
            dataset,
            DataLoaderOptions {
                batch_size: 4,
                sampler: Some(sampler.clone()),
                ..Default::default()
            },
        )?;
        let mut seen = Vec::new();
        for epoch in 0..epochs {
            sampler.set_epoch(epoch);
            let mut batches = Vec::new();
            for batch in &loader {
                let [x] = batch?;
                batches.push(x);
            }
            seen.push(batches);
        }
        Ok(seen)
    }
    // END
}

type Epochs = fn(TensorDataset<1>, u64) -> Result<Vec<Vec<Tensor>>>;

const RANKS: &str = "    let (ranks, rank) = (dist::get_world_size()?, dist::get_rank()?);\n";
const OPTIONS: &str = "    let options = DistributedSamplerOptions::default();\n";
const SAMPLER: &str = "    let sampler = Arc::new(DistributedSampler::new(&dataset, ranks, rank, options)?);\n";
const TAKES: &str = "            sampler: Some(sampler.clone()),\n";
const FOR: &str = "    for epoch in 0..epochs {\n";
const TOLD: &str = "        sampler.set_epoch(epoch);\n";

const NEVER: &[crate::Edit] = &[(FOR, "    for _ in 0..epochs {\n"), (TOLD, "")];

/// The exercise before this one in the chapter.
pub const AFTER: &str = "10-share";

pub static EXERCISE: Exercise = Exercise {
    id: "10-epochs",
    title: "Every epoch the same",
    kind: Kind::Fix,
    task: "Two ranks train for several epochs with a `DistributedSampler`. Rank 0 gets the same half of the samples in each epoch, in the \
           same order, and never meets the other half. Fix it: within an epoch each sample goes to one rank, and the epochs are shuffled \
           differently. The seed of the sampler stays the default one.",
    hints: [
        "The ranks must agree on one order without asking each other. So what is the order made from?",
        "It is made from the seed and the number of the epoch. The sampler does not count epochs: tell it.",
        "Call `sampler.set_epoch(epoch)` on every rank, with the same number, before the loop over the loader begins.",
    ],
    afterwards: "The numbers need not be consecutive, but all ranks must give the same, also when a training run is resumed.",
    source: include_str!("10-epochs.rs"),
    functions: &[("epochs", "pub fn epochs(dataset: TensorDataset<1>, epochs: u64) -> Result<Vec<Vec<Tensor>>>")],
    skeleton: NEVER,
    styles: &[
        Style {
            name: "told_by_an_iterator",
            edits: &[(FOR, "    for epoch in (0..epochs).inspect(|epoch| sampler.set_epoch(*epoch)) {\n"), (TOLD, "        let _ = epoch;\n")],
        },
        Style { name: "counted_from_elsewhere", edits: &[(TOLD, "        sampler.set_epoch(100 + epoch);\n")] },
    ],
    wrong: &[
        Wrong {
            name: "never_told",
            what: "Nobody calls `set_epoch`.",
            edits: NEVER,
            diagnosis: "same-order",
        },
        Wrong {
            name: "told_by_one_rank",
            what: "Only rank 0 calls `set_epoch`, so the ranks go by different orders.",
            edits: &[(TOLD, "        if rank == 0 {\n            sampler.set_epoch(epoch);\n        }\n")],
            diagnosis: "one-rank-told",
        },
        Wrong {
            name: "told_the_rank",
            what: "The sampler is told the number of the rank instead.",
            edits: &[(FOR, "    for _ in 0..epochs {\n"), (TOLD, "        sampler.set_epoch(rank as u64);\n")],
            diagnosis: "different-orders",
        },
        Wrong {
            name: "no_sampler",
            what: "The loader has no sampler, so every rank sees everything.",
            edits: &[(TAKES, "            shuffle: true,\n")],
            diagnosis: "everything",
        },
        Wrong {
            name: "not_shuffled",
            what: "The sampler does not shuffle at all.",
            edits: &[(OPTIONS, "    let options = DistributedSamplerOptions { shuffle: false, ..Default::default() };\n")],
            diagnosis: "not-shuffled",
        },
        Wrong {
            name: "same_rank",
            what: "Every rank takes the share of rank 0.",
            edits: &[
                (RANKS, "    let ranks = dist::get_world_size()?;\n"),
                (SAMPLER, "    let sampler = Arc::new(DistributedSampler::new(&dataset, ranks, 0, options)?);\n"),
            ],
            diagnosis: "same-share",
        },
        Wrong {
            name: "half_left_out",
            what: "The sampler assumes twice as many ranks, and half of the samples belong to nobody.",
            edits: &[(SAMPLER, "    let sampler = Arc::new(DistributedSampler::new(&dataset, 2 * ranks, rank, options)?);\n")],
            diagnosis: "left-out",
        },
        Wrong {
            name: "told_once",
            what: "`set_epoch` is called once, before the first epoch.",
            edits: &[(FOR, "    sampler.set_epoch(epochs);\n    for _ in 0..epochs {\n"), (TOLD, "")],
            diagnosis: "told-once",
        },
        Wrong {
            name: "one_epoch",
            what: "Only the first epoch is run.",
            edits: &[(FOR, "    for epoch in 0..epochs.min(1) {\n")],
            diagnosis: "epochs-missing",
        },
    ],
    places: &[
        (
            "The number of the epoch",
            &[
                &[],
                NEVER,
                &[(FOR, "    for _ in 0..epochs {\n"), (TOLD, "        sampler.set_epoch(0);\n")],
                &[(TOLD, "        if rank == 0 {\n            sampler.set_epoch(epoch);\n        }\n")],
            ],
        ),
        ("What the loader takes", &[&[], &[(TAKES, "            shuffle: true,\n")]]),
    ],
    gpus: &["sim:t4", "none"],
    sizes: &[8, 12],
    observe: |case| observe(case, solution::epochs),
    judge,
};

/// As many ranks, and epochs.
const COUNT: usize = 2;
const EPOCHS: u64 = 4;

pub fn observe(case: &Case, epochs: Epochs) -> Seen {
    case.machine().enter(|| {
        let ranks = Ranks::new(COUNT).expect("GPUs are simulated");
        ranks.run(|_| dist::init_process_group("gloo")).expect("the ranks are new");
        crate::observe(
            case,
            || {
                ranks.run(|_| {
                    let samples = Tensor::arange(0, (COUNT * case.size) as i64, (1, DType::I64))?.to(DType::F32)?;
                    epochs(TensorDataset::new([samples])?, EPOCHS)?.into_value()
                })
            },
            |_| Ok(()),
        )
    })
}

/// The samples of each epoch.
fn samples(of_rank: &Value) -> Vec<Vec<usize>> {
    let of_epoch = |epoch: &Value| {
        let batches = epoch.list().iter().flat_map(|batch| match batch {
            Value::Tensor { values, .. } => values.clone(),
            _ => Vec::new(),
        });
        batches.map(|sample| sample as usize).collect()
    };
    of_rank.list().iter().map(of_epoch).collect()
}

fn said(samples: &[usize]) -> String {
    let samples: Vec<String> = samples.iter().map(usize::to_string).collect();
    format!("`{}`", samples.join(" "))
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let all: Vec<Vec<Vec<usize>>> = seen.returned()?.list().iter().map(samples).collect();
    let first_right = samples(&right.value().list()[0]);
    let total = COUNT * case.size;
    if all.iter().any(|of_rank| of_rank.len() != EPOCHS as usize) {
        return Err(Diagnosis::new("epochs-missing", "There are not as many epochs as there should be.")
            .seen(format!("epochs: {}", all[0].len()))
            .expected(format!("{EPOCHS}"))
            .idea("Go through the loader once for each epoch."));
    }
    if all.iter().flatten().any(|epoch| epoch.len() == total) {
        return Err(Diagnosis::new("everything", "A rank sees all samples in each epoch.")
            .seen(format!("{total} samples for each rank"))
            .expected(format!("{}", case.size))
            .idea("Give the sampler to the loader: `sampler: Some(sampler.clone())`."));
    }
    let together = |epoch: usize| {
        let mut both: Vec<usize> = all.iter().flat_map(|of_rank| of_rank[epoch].clone()).collect();
        both.sort_unstable();
        both.dedup();
        both.len()
    };
    let is_whole: Vec<bool> = (0..EPOCHS as usize).map(|epoch| together(epoch) == total).collect();
    let missing = is_whole.iter().position(|whole| !whole);
    if let Some(epoch) = missing {
        let share = [&all[0][epoch], &all[1][epoch]];
        let diagnosis = if share[0] == share[1] {
            Diagnosis::new("same-share", "Both ranks have the same samples.")
                .seen(format!("{} on both", said(share[0])))
                .expected("each sample on one rank")
                .idea("The sampler has to know which rank it is for.")
        } else if share.iter().any(|share| share.len() < case.size) {
            Diagnosis::new("left-out", "Some samples belong to nobody.")
                .seen(format!("{} samples on each rank", share[0].len()))
                .expected(format!("{}", case.size))
                .idea("The sampler cuts the samples into as many shares as you say there are ranks.")
        } else if is_whole[0] {
            Diagnosis::new("one-rank-told", "After the first epoch the ranks go by different orders, and their shares overlap.")
                .seen(format!("{} and {}", said(share[0]), said(share[1])))
                .expected("each sample on one rank")
                .idea("`set_epoch` is called on every rank, with the same number.")
        } else {
            Diagnosis::new("different-orders", "The ranks go by different orders, and their shares overlap.")
                .seen(format!("{} and {}", said(share[0]), said(share[1])))
                .expected("each sample on one rank")
                .idea("The order is made from the number that you tell the sampler, so it must be the same on all ranks.")
        };
        return Err(diagnosis);
    }
    let own = &all[0];
    if own.iter().all(|epoch| *epoch == own[0]) {
        let is_sorted = own[0].is_sorted();
        let diagnosis = if is_sorted {
            Diagnosis::new("not-shuffled", "The samples come in the order in which they lie.")
        } else if own[0] == first_right[0] {
            Diagnosis::new("same-order", "Every epoch has the order of the first.")
        } else {
            Diagnosis::new("told-once", "Every epoch has the same order, though not that of epoch 0.")
        };
        return Err(diagnosis
            .seen(format!("{} in each epoch", said(&own[0])))
            .expected("another order in each epoch")
            .idea(match is_sorted {
                true => "A sampler shuffles unless its options say otherwise.",
                false => "The sampler makes its order from the number of the epoch. Tell it, each time before the loop.",
            }));
    }
    if own.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Diagnosis::new("some-alike", "Some epochs have the order of the one before.")
            .seen(format!("{} twice", said(&own[0])))
            .expected("another order in each epoch")
            .idea("Tell the sampler another number for each epoch."));
    }
    let sizes = |seen: &Seen| {
        let size = |batch: &Value| match batch {
            Value::Tensor { sizes, .. } => sizes.clone(),
            _ => Vec::new(),
        };
        let epochs = seen.value().list().iter().flat_map(|of_rank| of_rank.list());
        epochs.flat_map(|epoch| epoch.list()).map(size).collect::<Vec<_>>()
    };
    if sizes(seen) != sizes(right) {
        return Err(Diagnosis::new("another-batch-size", "The batches have another size.")
            .seen(format!("a first batch of {:?}", sizes(seen).first()))
            .expected(format!("{:?}", sizes(right).first()))
            .idea("Only the sampler has to change."));
    }
    Ok(())
}
