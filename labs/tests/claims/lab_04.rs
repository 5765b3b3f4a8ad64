use super::seen::Seen;
use super::{Claim, Claims};

pub const CLAIMS: Claims = Claims {
    lab: "lab-04",
    knobs: &[
        &["--batch-size", "1"],
        &["--gpu", "sim:h200", "--batch-size", "4096"],
        &["--limit", "48"],
        &["--gpu", "sim:t4", "--limit", "256"],
        &["--device", "cpu"],
    ],
    // The claims are about memory: a CPU, and the three cards that the course knows.
    machines: 4,
    claims: &[
        Claim {
            says: "a block is a multiple of 512 bytes",
            holds: |seen| {
                let blocks = ["of_one_float", "of_a_cube", "of_a_model"].map(|name| seen.number(name));
                blocks.iter().all(|bytes| *bytes > 0.0 && bytes % 512.0 == 0.0)
            },
        },
        Claim {
            says: "makes cuBLAS take a workspace",
            holds: |seen| seen.number("of_the_first_product") > 0.0,
        },
        Claim {
            says: "they show 0, and that is no error",
            holds: |seen| {
                ["at_first", "of_one_float", "of_the_first_product", "of_a_cube", "of_a_model"]
                    .iter()
                    .all(|name| seen.number(name) == 0.0)
            },
        },
        Claim {
            says: "A gradient has as many floats as its parameter",
            holds: |seen| {
                ["gradients_bytes", "exp_avg_bytes", "exp_avg_sq_bytes"].iter().all(|owner| {
                    let most = seen.numbers(owner).into_iter().fold(0.0, f64::max);
                    (1.0..1.1).contains(&(most / seen.number("parameters_bytes")))
                })
            },
        },
        Claim {
            says: "come with the first step and stay",
            holds: |seen| {
                let moments = seen.numbers("exp_avg_bytes");
                moments[..4].iter().all(|kib| *kib == 0.0) && moments[4..].iter().all(|kib| *kib > 0.0)
            },
        },
        Claim {
            says: "it frees them as it goes",
            holds: |seen| {
                let activations = seen.numbers("activations_bytes");
                activations[3] < activations[2]
            },
        },
        Claim {
            says: "Only the batch and the activations grow",
            holds: |seen| {
                // Parameters, gradients, two moments, batch, activations, workspace.
                let (once, doubled) = (seen.numbers("bytes_once"), seen.numbers("bytes_doubled"));
                let grown: Vec<bool> =
                    once.iter().zip(&doubled).map(|(once, doubled)| doubled > once).collect();
                // A batch of one sample fills no block, nor does one of two.
                grown == [false, false, false, false, true, true, false]
            },
        },
        Claim {
            says: "that other value is made first",
            holds: |seen| seen.number("peak_let") == 1.0 && seen.number("peak_mut") == 2.0,
        },
        Claim { says: "all three batches die at the end", holds: |seen| seen.number("peak_shadow") == 3.0 },
        Claim { says: "The first peak is lower", holds: first_peak_is_lower },
        Claim { says: "From the second step on", holds: first_peak_is_lower },
        Claim {
            says: "The steps do the same work, but the first begins without the moments",
            holds: |seen| !seen.answered("04-three-steps", "same"),
        },
        Claim {
            says: "What the first step sets up stays",
            holds: |seen| !seen.answered("04-three-steps", "higher"),
        },
        Claim {
            says: "makes outputs repeatable, and it still keeps",
            holds: |seen| {
                let kept = seen.numbers("bytes_kept");
                seen.texts("same_output") == ["no", "no", "no", "yes", "yes", "yes"] && kept[3] > kept[4]
            },
        },
        Claim {
            says: "no_grad keeps nothing but the output",
            holds: |seen| {
                let kept = seen.numbers("bytes_kept");
                kept[1] == 524_288.0 && kept[4] == 524_288.0
            },
        },
        Claim {
            says: "The times are alike because this model charges",
            holds: |seen| {
                seen.numbers("recorded_time")
                    .iter()
                    .zip(seen.numbers("no_grad_time"))
                    .all(|(recorded, without)| (0.9..1.1).contains(&(recorded / without)))
            },
        },
        Claim {
            says: "keeps only what the formula of a gradient asks for",
            holds: |seen| seen.numbers("tensors_kept") == [0.0, 0.0, 0.0, 2.0, 1.0, 1.0, 1.0],
        },
        Claim {
            says: "the program gets it and goes on",
            holds: |seen| seen.shows("error[GPU0002]") && seen.has("found_batch"),
        },
        Claim {
            says: "so there is room for a smaller one",
            holds: |seen| seen.number("found_batch") < seen.number("too_large_batch"),
        },
        Claim {
            says: "less fits than predicted",
            holds: |seen| seen.number("found_batch") < seen.number("predicted_batch"),
        },
        Claim {
            says: "Neither changes the gradients",
            holds: |seen| {
                seen.texts("remedy_gradients")[1].starts_with("equal")
                    && seen.texts("remedy_gradients")[2] == "equal bit for bit"
            },
        },
        Claim {
            says: "Both need less memory",
            holds: |seen| {
                let peaks = seen.numbers("remedy_peak");
                peaks[1] < 0.6 * peaks[0] && peaks[2] < 0.8 * peaks[0]
            },
        },
        Claim { says: "Both cost time here", holds: |seen| dearer(seen) == [true, true] },
        Claim {
            says: "every batch stays",
            holds: |seen| {
                // Row by row: the loss, after backward, detached, as a number.
                let held = seen.numbers("bytes_held");
                (0..3).all(|batch| (held[4 * batch] / held[0] - (batch as f64 + 1.0)).abs() < 0.01)
                    && held[9] < 0.01 * held[8]
            },
        },
        Claim {
            says: "give you the number alone",
            holds: |seen| {
                let held = seen.numbers("bytes_held");
                held[10] < 0.01 * held[8] && held[11] == 0.0
            },
        },
        Claim { says: "gives back to the GPU what it can", holds: |seen| falls(seen, "reserved", 3) },
        Claim {
            says: "You always find allocated ≤ reserved ≤ in use",
            holds: |seen| {
                let counts = ["allocated", "reserved", "in_use"].map(|name| seen.numbers(name));
                (0..4).all(|row| counts[0][row] <= counts[1][row] && counts[1][row] <= counts[2][row])
            },
        },
        Claim {
            says: "One tensor of 512 bytes holds a segment of 2 MiB",
            holds: |seen| {
                let reserved = seen.numbers("reserved");
                reserved[6] - reserved[4] == 2_097_152.0 && reserved[7] == reserved[4]
            },
        },
        Claim {
            says: "each in a different segment of 20 MiB, hold 80 MiB",
            holds: |seen| {
                let (allocated, reserved) = (seen.numbers("allocated"), seen.numbers("reserved"));
                allocated[10] - allocated[4] == 8_388_608.0 && reserved[10] >= 83_886_080.0
            },
        },
        Claim {
            says: "Both calls to the driver wait here",
            holds: |seen| waits(seen) == [true, false, true],
        },
        Claim { says: "Nothing waits for the product here", holds: |seen| waits(seen) == [false; 3] },
        Claim {
            says: "does not ask the driver once",
            holds: |seen| {
                let (asked, made) = (seen.numbers("driver_asked"), seen.numbers("allocations"));
                asked[0] > 0.0 && asked[1] == 0.0 && made[1] > 10.0
            },
        },
        Claim {
            says: "H gets all of its segment",
            holds: |seen| {
                let (block, segment) = (seen.numbers("block"), seen.numbers("segment"));
                block[7] == segment[7]
            },
        },
        Claim {
            says: "The driver is asked only if no free block is large enough",
            holds: |seen| seen.numbers("segment").contains(&0.0),
        },
        Claim {
            says: "More is free than you ask for",
            holds: |seen| {
                seen.number("free_in_segments") > 12_582_912.0 && seen.shows("Tried to allocate 12.00 MiB.")
            },
        },
        Claim {
            says: "the block of 64 MiB is whole when you want it again",
            holds: |seen| {
                seen.number("reserved_with_max_split_size") == 79_691_776.0
                    && seen.number("reserved_by_default") > 79_691_776.0
            },
        },
        Claim {
            says: "forgets the instant at which both tensors were alive",
            holds: |seen| {
                let shown = seen.numbers("notebook");
                seen.number("true_peak") == 2.0 * shown[2]
            },
        },
    ],
    by_definition: &[
        "An allocation needs its bytes in one piece", // the allocator's answer
        "The smallest block that the allocator gives out",
        "it makes the new batch while the old one is still there",
        "The last row is what memory_allocated() shows",
        "Section 6 finds out how good such an estimate is",
        "A gradient is a sum over samples",
        "this section shows error GPU0002, and the largest batch that fits",
        "You see it where launches set the pace",
        "In truth recording costs the host",
        "because another step has run since the third",
        "larger network from \"Whose bytes?\"",
        "Each later step has twice as many",
        "A checkpoint costs a second forward pass",
        "a checkpoint costs a second forward pass",
        "Parts do the same work in smaller pieces",
        "in the large pool only if it is more than 1 MiB",
    ],
};

fn first_peak_is_lower(seen: &Seen) -> bool {
    let peaks = seen.numbers("iteration_peak");
    peaks[0] < peaks[1] && peaks[1] == peaks[2] && seen.answered("04-three-steps", "lower")
}

/// Whether parts, and checkpoints, take over a tenth longer than all at once.
fn dearer(seen: &Seen) -> [bool; 2] {
    let times = seen.numbers("remedy_time");
    [1, 2].map(|way| times[way] > 1.1 * times[0])
}

/// Whether each of the three calls waits for the product.
fn waits(seen: &Seen) -> [bool; 3] {
    let (idle, busy) = (seen.numbers("call_idle"), seen.numbers("call_busy"));
    let product = seen.number("product_time");
    [0, 1, 2].map(|call| busy[call] - idle[call] > 0.3 * product)
}

/// Whether a count is lower in a row than in the previous one.
fn falls(seen: &Seen, name: &str, row: usize) -> bool {
    let counts = seen.numbers(name);
    counts[row] < counts[row - 1]
}
