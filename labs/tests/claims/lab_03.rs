use super::{Claim, Claims};

pub const CLAIMS: Claims = Claims {
    lab: "lab-03",
    knobs: &[
        &["--batch-size", "8"],
        &["--batch-size", "1024"],
        &["--batch-size", "65536"],
        &["--target", "linear", "--epochs", "5"],
        &["--epochs", "1", "--pin-memory", "false"],
    ],
    machines: usize::MAX,
    claims: &[
        Claim {
            says: "Each step copies twice to the GPU",
            holds: |seen| seen.number("copies_to_device") == 2.0 * seen.number("steps"),
        },
        Claim {
            says: "about where the loss starts",
            holds: |seen| (seen.number("cross_entropy") - seen.number("chance_loss")).abs() < 0.25,
        },
        Claim {
            says: "and then two numbers come back",
            holds: |seen| {
                let epochs = seen.numbers_of_the_run("last_loss").len() as f64;
                seen.number("copies_to_host") == 2.0 * epochs
            },
        },
        Claim {
            says: "takes longer to launch the kernels than the GPU takes to run them",
            holds: |seen| {
                let computed = seen.number("compute_share") / 100.0 * seen.number("step_done_time");
                seen.number("queued_time") - seen.number("moved_time") > 1.8 * computed
            },
        },
        Claim {
            says: "again and again for the host to launch the next kernel",
            holds: |seen| {
                seen.number("compute_share") < 90.0
                    && seen.number("queued_time") > 0.75 * seen.number("step_done_time")
            },
        },
        Claim {
            says: "the host has queued everything long before the GPU is done",
            holds: |seen| seen.number("queued_time") < 0.76 * seen.number("step_done_time"),
        },
        Claim {
            says: "so the first clock shows only the time to ask",
            holds: |seen| seen.number("returned_time") < seen.number("synchronized_time"),
        },
        Claim {
            says: "so every launch waits and all three clocks show the work",
            holds: |seen| seen.number("returned_time") > 0.8 * seen.number("synchronized_time"),
        },
        Claim {
            says: "A gradient and Adam's two averages are as large as their parameter",
            holds: |seen| seen.number("times_the_model") == 4.0,
        },
        Claim { says: "The targets are random numbers", holds: |seen| !seen.answered("03-zero", "network") },
        Claim {
            says: "The same one is faster with both.",
            holds: |seen| !seen.answered("03-crossover", "cpu, gpu"),
        },
        Claim { says: "so there is something to learn", holds: |seen| seen.answered("03-zero", "network") },
    ],
    by_definition: &[
        "The step is bound by launches.", // the sentences before it have claims
        "The step is bound by the GPU's own work.",
        "The GPU waits for its batch, and then it is busy",
        "The backward pass launches more than the forward pass",
        "A network soon learns to answer about 0",
        "A step with few samples is bound by its launches, and the CPU has none.",
        "the GPU has no more launches than before, while the CPU has 16 times as much work",
        "what would a model get that always answers 0?",
        "With 16 times as many samples a step takes", // the figures themselves
    ],
};
