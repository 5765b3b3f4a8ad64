use super::seen::Seen;
use super::{Claim, Claims};

pub const CLAIMS: Claims = Claims {
    lab: "lab-06",
    knobs: &[
        &["--batches", "1", "--batch-size", "512", "--images", "64"],
        &["--batches", "1048576", "--steps", "12", "--epochs", "2"],
    ],
    // A run takes two seconds: a CPU, the three cards that the course knows, and a slow one.
    machines: 5,
    claims: &[
        Claim {
            says: "float16 comes closer to 0.1",
            holds: |seen| {
                let off = |row: &str| (seen.row(row)[2].parse::<f64>().unwrap() - 0.1).abs();
                off("float16") < off("bfloat16")
            },
        },
        Claim { says: "float16 cannot hold 70000", holds: |seen| seen.row("70000")[4] == "inf" },
        Claim {
            says: "In bfloat16 these numbers keep their size",
            holds: |seen| {
                let near = |number: &str| {
                    let held: f64 = seen.row(number)[3].parse().unwrap();
                    (held / number.parse::<f64>().unwrap() - 1.0).abs() < 0.01
                };
                ["3.14159265", "2049", "70000", "1e-8"].iter().all(|number| near(number))
            },
        },
        Claim {
            says: "None of the three shorter types can count to 2049",
            holds: |seen| {
                seen.row("2049")[1] == "2049" && !seen.row("2049")[2..].contains(&"2049".to_owned())
            },
        },
        Claim {
            says: "each sum of 1.0001 is rounded back to 1",
            holds: |seen| seen.numbers("weight")[2] == 1.0,
        },
        Claim {
            says: "Fewer bits alone do not make a product faster",
            // A type that is not faster has half the bits.
            holds: |seen| seen.device() == "cpu" || gains(seen, "here", 3) || !gains(seen, "here", 2),
        },
        Claim { says: "Here the product is", holds: |seen| names_the_gains(seen, "here", "Here") },
        Claim { says: "4090 the product is", holds: |seen| names_the_gains(seen, "there", "On the ") },
        Claim { says: "it is faster in", holds: |seen| names_the_gains(seen, "there", "On the ") },
        Claim {
            says: "on a simulated card at the pace of float32",
            holds: |seen| {
                let at_its_pace = |column: &str| seen.numbers(column)[2] == seen.numbers(column)[0];
                at_its_pace("here") || at_its_pace("there")
            },
        },
        Claim {
            says: "moves half as many bytes in half the time",
            holds: |seen| (0.4..0.6).contains(&relu(seen)),
        },
        Claim {
            says: "Half as many bytes take less time, though not half",
            holds: |seen| (0.6..0.95).contains(&relu(seen)),
        },
        Claim {
            says: "with 1023 the product takes longer than with 1024",
            holds: |seen| seen.numbers("here")[4] > seen.numbers("here")[3],
        },
        Claim {
            says: "Products run in 16 bits",
            holds: |seen| {
                let half = "float16";
                seen.texts("type") == ["float32", half, half, half, "float32", "float32", "float32"]
            },
        },
        Claim { says: "They are converted once", holds: |seen| launches(seen) == 2.0 },
        Claim {
            says: "lie below half of float16's smallest number",
            holds: |seen| (seen.number("lost_share") > 5.0) == more_zeros(seen),
        },
        Claim {
            says: "lie where float16 has fewer digits",
            holds: |seen| seen.number("lost_share") + seen.number("worn_share") < 100.5,
        },
        Claim {
            says: "bfloat16 has the range of float32.",
            holds: |seen| {
                let (float32, bfloat16) = (seen.numbers("float32_zeros"), seen.numbers("bfloat16_zeros"));
                float32.iter().zip(bfloat16).all(|(one, other)| (one - other).abs() < 1.0)
            },
        },
        Claim { says: "They vanish first in the first layer", holds: |seen| more_zeros(seen) },
        Claim {
            says: "smaller with each layer of the backward pass",
            holds: |seen| {
                let exponent = |size: &String| size.trim_start_matches("2^").parse::<i32>().unwrap();
                let sizes: Vec<i32> = seen.texts("usual_size").iter().map(exponent).collect();
                sizes.is_sorted_by(|one, next| one < next)
            },
        },
        Claim { says: "with so few batches the gradients are large enough", holds: |seen| !more_zeros(seen) },
        Claim {
            says: "next to nothing arrives in the first three layers",
            holds: |seen| seen.numbers("float16_zeros")[..3].iter().all(|share| *share > 99.0),
        },
        Claim { says: "It never goes down", holds: |seen| seen.number("skipped") == 0.0 },
        Claim {
            says: "It goes down until no gradient is infinite",
            holds: |seen| seen.number("skipped") > 0.0 && changes(seen, |change| change == -1),
        },
        Claim {
            says: "After ten good steps it goes up again, until the next overflow",
            holds: |seen| changes(seen, |change| change == 1),
        },
        Claim {
            says: "a scale that was good before",
            holds: |seen| {
                let row = seen.row(&seen.number("too_much_in_step").to_string());
                row[2] == "skipped" && row[1] == seen.texts("once_good_scale")[0]
            },
        },
        Claim { says: "A skipped step changes no weight", holds: |seen| seen.texts("moved") == ["no"] },
        Claim {
            says: "Before unscale_ the gradients are 65536 times as large",
            holds: |seen| {
                let scaled = seen.texts("scaled_norm")[0].replace(" thousand", "").parse::<f64>().unwrap();
                (0.9..1.1).contains(&(1000.0 * scaled / 65536.0 / seen.number("norm")))
            },
        },
        Claim {
            says: "clipping them to 0.1 would leave hardly anything",
            holds: |seen| (seen.number("clipped_norm") - 0.1).abs() < 1e-3 && seen.number("norm") < 100.0,
        },
        Claim {
            says: "In float16 alone the gradients of the first layers are 0",
            holds: |seen| {
                let right = seen.numbers("accuracy");
                more_zeros(seen) && right[1] < 0.9 && [0, 2, 3].iter().all(|way| right[*way] >= 0.9)
            },
        },
        Claim {
            says: "All four have learned the rings",
            holds: |seen| seen.numbers("accuracy").iter().all(|right| *right >= 0.9),
        },
        Claim {
            says: "With more --steps more of them learn the rings",
            holds: |seen| seen.numbers("accuracy").iter().filter(|right| **right < 0.9).count() > 1,
        },
        Claim { says: "So small a network waits for its launches", holds: |seen| fastest(seen, 0) },
        Claim {
            says: "there are more of them, and it is launching them that takes the time",
            holds: |seen| fastest(seen, 0),
        },
        Claim {
            says: "Here the work on the card takes longer than its launches",
            holds: |seen| !fastest(seen, 0),
        },
        Claim {
            says: "Here the work itself takes longer than its launches",
            holds: |seen| !fastest(seen, 0),
        },
        Claim { says: "Another of the four takes less time here", holds: |seen| !fastest(seen, 0) },
        Claim {
            says: "The scaler adds work",
            holds: |seen| seen.numbers("step_time")[2] > seen.numbers("step_time")[1],
        },
        Claim {
            says: "16 bits take less memory",
            holds: |seen| {
                let memory = seen.numbers("peak_memory");
                memory[1..].iter().all(|half| *half < 0.6 * memory[0])
            },
        },
        Claim {
            says: "But a step takes longer!",
            holds: |seen| seen.numbers("step_time")[1] > seen.numbers("step_time")[0],
        },
        Claim {
            says: "And a step is shorter, because",
            holds: |seen| seen.numbers("step_time")[1] < seen.numbers("step_time")[0],
        },
        Claim {
            says: "pays for neither the smallest network nor the last",
            holds: |seen| !pays(seen, 0) && !pays(seen, 2),
        },
        Claim {
            says: "pays for the last network, where the work on the card sets the pace",
            holds: |seen| !pays(seen, 0) && pays(seen, 2),
        },
        Claim {
            says: "its time is that of the launches, and mixed precision has more of them",
            holds: |seen| !pays(seen, 0),
        },
        Claim { says: "pays even for the smallest network", holds: |seen| pays(seen, 0) },
        Claim {
            says: "Mixed precision saves some where activations outweigh weights",
            holds: |seen| seen.numbers("step_memory")[5] < seen.numbers("step_memory")[4],
        },
        Claim {
            says: "Where weights outweigh activations it takes more",
            holds: |seen| seen.numbers("step_memory")[3] > seen.numbers("step_memory")[2],
        },
        Claim {
            // Each of these results takes 256 KiB.
            says: "beside layers of 1024 x 1024 those of 64 rows are small",
            holds: |seen| seen.numbers("step_memory")[2] > 20.0 * 256.0,
        },
        Claim {
            says: "Most of the memory is for weights",
            holds: |seen| {
                // Three matrices and their gradients, in KiB.
                let weights = 2.0 * f64::from(2 * 1024 * 1024 + 16 * 1024) * 4.0 / 1024.0;
                weights > 0.9 * seen.numbers("step_memory")[2] && seen.answered("06-memory", "mixed")
            },
        },
        Claim {
            says: "the work on the card sets the pace, and float16 shortens it",
            holds: |seen| seen.numbers("image_step")[1] < seen.numbers("image_step")[0],
        },
        Claim {
            says: "and with float16 there are more of them",
            holds: |seen| seen.numbers("image_step")[1] > seen.numbers("image_step")[0],
        },
        Claim {
            says: "Activations are most of the memory, and most of them halve",
            holds: |seen| {
                let memory = seen.numbers("image_memory");
                memory[1..].iter().all(|half| (0.5..0.75).contains(&(half / memory[0])))
            },
        },
    ],
    by_definition: &[
        "At least one gets fewer than 90 % of the points right", // if the answer is not that none fails
        // Arithmetic.
        "The exponent says how large or small a number can be",
        "the gap between two numbers doubles with each power of two",
        "In float16 the next number after 1 is 1.00098",
        "at the price of a smaller range",
        "whatever is less than 2^-25 is rounded to 0",
        // It gives the reason; another claim checks where.
        "A type gains where the card has tensor cores for it",
        "A real T4 may be slower at that",
        "so it may even take longer with them",
        "If the optimizer had taken it, an infinite gradient would have made a weight NaN",
        "With --gpu sim:t4 the same network gains", // see the claims on that card
        "Try a larger --batch-size",                // is advice
    ],
};

/// Whether a row of section 2 is faster than the first.
fn gains(seen: &Seen, column: &str, row: usize) -> bool {
    let times = seen.numbers(column);
    times[row] < 0.95 * times[0]
}

/// Whether the sentence with this beginning names the types that the product gains from before the others.
fn names_the_gains(seen: &Seen, column: &str, begins: &str) -> bool {
    let said = seen.sentence(begins);
    let gain = said.split(", and no faster in").next().unwrap_or_default();
    let faster = gain.contains("faster in") && !gain.contains("no faster in");
    [("TF32", 1), ("bfloat16", 2), (" float16", 3)]
        .iter()
        .all(|(name, row)| (faster && gain.contains(name)) == gains(seen, column, *row))
}

/// The time of ReLU in 16 bits, relative to 32.
fn relu(seen: &Seen) -> f64 {
    seen.numbers("here")[6] / seen.numbers("here")[5]
}

/// The launches that the cache saves.
fn launches(seen: &Seen) -> f64 {
    let launches = seen.numbers("launches");
    launches[1] - launches[0]
}

/// Whether float16 has more zeros than float32.
fn more_zeros(seen: &Seen) -> bool {
    let (float32, float16) = (seen.numbers("float32_zeros"), seen.numbers("float16_zeros"));
    float32.iter().zip(float16).any(|(one, other)| other > one + 1.0)
}

/// Whether the exponent of a scale changed this way in any row of the walk.
fn changes(seen: &Seen, by: fn(i32) -> bool) -> bool {
    let exponents = |name| -> Vec<i32> {
        seen.texts(name).iter().map(|scale| scale.trim_start_matches("2^").parse().unwrap()).collect()
    };
    exponents("scale").iter().zip(exponents("new_scale")).any(|(old, new)| by(new - old))
}

/// Whether this way of training has the shortest step.
fn fastest(seen: &Seen, way: usize) -> bool {
    let times = seen.numbers("step_time");
    times.iter().all(|time| times[way] <= *time)
}

/// Whether mixed precision is faster in a pair of section 7: on the device, or on the other card for a CPU.
fn pays(seen: &Seen, pair: usize) -> bool {
    let times = seen.numbers(if seen.device() == "cpu" { "step_there" } else { "step_here" });
    times[2 * pair + 1] < 0.95 * times[2 * pair]
}
