use super::{Claim, Claims};

pub const CLAIMS: Claims = Claims {
    lab: "lab-13",
    knobs: &[&["--build", "cu130"], &["--ranks", "8"], &["--gpu", "sim:t4x2", "--device", "cuda:1"]],
    machines: usize::MAX,
    claims: &[
        // 1
        Claim {
            says: "The loss falls on the CPU",
            holds: |seen| seen.number("last_loss") < seen.number("first_loss"),
        },
        // 4
        Claim {
            says: "the GPU is faster for the first time",
            holds: |seen| {
                let speedups = seen.numbers("speedup");
                let first = speedups.iter().position(|speedup| *speedup > 1.0);
                first.is_some_and(|first| first > 0 || speedups[0] > 1.0)
            },
        },
        Claim {
            says: "takes the host longer than the arithmetic would take the CPU",
            holds: |seen| seen.numbers("speedup")[0] < 1.0,
        },
        Claim {
            says: "that takes longer than so little arithmetic",
            holds: |seen| seen.numbers("speedup")[0] < 1.0,
        },
        Claim {
            says: "The GPU is faster with none of these batches",
            holds: |seen| seen.numbers("speedup").iter().all(|speedup| *speedup <= 1.0),
        },
        // 5
        Claim { says: "so a faster loader gains little", holds: |seen| seen.numbers("busy")[0] >= 49.5 },
        Claim {
            says: "so it sets the pace",
            holds: |seen| {
                let (epochs, loading) = (seen.numbers("epoch_time"), seen.numbers("loading_time"));
                loading[0] > 0.5 * epochs[0] && epochs[1] <= epochs[0]
            },
        },
        Claim {
            says: "and workers make it longer here",
            holds: |seen| {
                let (epochs, loading) = (seen.numbers("epoch_time"), seen.numbers("loading_time"));
                loading[0] > 0.5 * epochs[0] && epochs[1] >= epochs[0]
            },
        },
        // 9
        Claim {
            says: "with a context of its own",
            holds: |seen| {
                seen.numbers("processes")[0] > 1.0 && seen.numbers("in_use")[0] > seen.numbers("in_use")[1]
            },
        },
    ],
    by_definition: &[
        "That makes the CPU slower", // the effect of a wrong cure
        "with a smaller batch at one that is later still",
        "Then the GPU would compute for most of the epoch",
    ],
};
