use super::seen::Seen;
use super::{Claim, Claims};

pub const CLAIMS: Claims = Claims {
    lab: "lab-10",
    knobs: &[
        &["--gpu", "sim:t4x2", "--batch-size", "16"],
        &["--gpu", "sim:h200x8", "--batch-size", "64"],
        &["--gpu", "sim:rtx4090x3"],
    ],
    // Other seeds, and less memory, do not change the text.
    machines: 9,
    claims: &[
        // 1
        Claim { says: "This machine has one GPU", holds: |seen| seen.texts("name").len() == 8 },
        Claim { says: "This machine has no GPU", holds: |seen| seen.texts("name").len() == 8 },
        // 2
        Claim {
            says: "These two are peers",
            holds: |seen| {
                seen.texts("peers")[0].ends_with("other GPUs") || seen.texts("peers")[0] == "one other GPU"
            },
        },
        Claim { says: "These two are not peers", holds: |seen| seen.texts("peers")[0] == "no other GPU" },
        Claim {
            says: "The detour through a tensor on the CPU takes longer",
            holds: |seen| last(seen, "detour_time") > last(seen, "direct_time"),
        },
        Claim {
            says: "Two GPUs are done sooner",
            holds: |seen| seen.number("on_two_time") < seen.number("on_one_time"),
        },
        Claim { says: "You need not synchronize", holds: |seen| seen.number("mean_of_copy") == 512.0 },
        // 3
        Claim {
            says: "The sum is twice the gradient",
            holds: |seen| {
                let gradients = seen.numbers("gradient");
                (gradients[3] - 2.0 * gradients[0]).abs() < 1e-4 * gradients[3].abs()
            },
        },
        Claim {
            says: "the mean of the means of two equal halves",
            holds: |seen| seen.texts("is_same") == ["yes", "no", "no", "no", "yes"],
        },
        // 4
        Claim {
            says: "ten rows run out before the GPUs do",
            holds: |seen| parts_of_ten(seen) < seen.texts("name").len(),
        },
        Claim {
            says: "Ten rows are enough for a part on each",
            holds: |seen| parts_of_ten(seen) == seen.texts("name").len(),
        },
        Claim {
            says: "The first GPU needs the most",
            holds: |seen| {
                let peaks = seen.numbers("parallel_peak");
                peaks[1..].iter().all(|other| *other < peaks[0])
            },
        },
        Claim {
            says: "Here DataParallel makes the step longer",
            holds: |seen| seen.number("parallel_step_time") > seen.number("alone_step_time"),
        },
        Claim {
            says: "Here DataParallel makes the step shorter",
            holds: |seen| seen.number("parallel_step_time") < seen.number("alone_step_time"),
        },
        // 5
        Claim {
            says: "All parameters of the two are the same",
            holds: |seen| {
                let (made, trained) = (seen.numbers("made_with"), seen.numbers("trained_to"));
                made[0] != made[1] && trained[0] == trained[1]
            },
        },
        Claim {
            says: "The losses are not",
            holds: |seen| {
                let losses = seen.numbers("last_loss");
                losses[0] != losses[1]
            },
        },
        // 6
        Claim {
            says: "the first begins before the backward pass has ended",
            holds: |seen| seen.answered("10-leaves", "beside"),
        },
        Claim {
            says: "Several buckets are faster here",
            holds: |seen| seen.numbers("step_time")[0] < seen.numbers("step_time")[1],
        },
        Claim {
            says: "Several buckets are no faster here",
            holds: |seen| seen.numbers("step_time")[0] >= seen.numbers("step_time")[1],
        },
        Claim {
            says: "costs more than it hides",
            holds: |seen| seen.numbers("step_time")[0] >= seen.numbers("step_time")[1],
        },
        // 7
        Claim {
            says: "The same batch on all of them is slower than on one",
            holds: |seen| last(seen, "strong_rate") < seen.number("strong_rate"),
        },
        Claim { says: "A larger batch for each of them gains more", holds: weak_gains_more },
        Claim { says: "To share a batch gains less", holds: weak_gains_more },
        // 8
        Claim {
            says: "sees at once that nobody can go on",
            holds: |seen| {
                seen.texts("waits_in") == ["ALLREDUCE number 4"] && seen.answered("10-shorter", "waits")
            },
        },
    ],
    by_definition: &[
        "the bytes are copied twice",
        "Each comes from the half that its GPU has seen",
        "An average goes from GPU to GPU in steps",
        "Where latency rules, a smaller network gains little",
    ],
};

fn last(seen: &Seen, name: &str) -> f64 {
    seen.numbers(name).last().copied().unwrap_or(f64::NAN)
}

/// The number of parts that ten rows are divided into.
fn parts_of_ten(seen: &Seen) -> usize {
    seen.texts("parts")[0].split(", ").count()
}

fn weak_gains_more(seen: &Seen) -> bool {
    let gain = |name: &str| last(seen, name) / seen.number(name);
    gain("weak_rate") > gain("strong_rate")
}
