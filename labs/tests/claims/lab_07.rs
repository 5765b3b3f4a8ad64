use super::seen::Seen;
use super::{Claim, Claims};

pub const CLAIMS: Claims = Claims {
    lab: "lab-07",
    knobs: &[&["--steps", "1"], &["--steps", "100"], &["--size", "1"], &["--size", "64"]],
    machines: usize::MAX,
    claims: &[
        Claim {
            says: "Multiplying is what takes the time on this card",
            holds: |seen| is_fastest(seen, "WINOGRAD_NONFUSED"),
        },
        Claim {
            says: "here that costs more than it saves",
            holds: |seen| is_fastest(seen, "IMPLICIT_PRECOMP_GEMM"),
        },
        Claim { says: "and takes the fastest", holds: |seen| is_fastest(seen, &seen.row("benchmark")[1]) },
        Claim {
            says: "you cannot count on two being the same",
            holds: |seen| {
                let errors = seen.texts("rounding");
                errors.iter().all(|error| ["0", "under 1", "about 300"].contains(&error.as_str()))
            },
        },
        Claim {
            says: "An error of some hundred millionths comes from TF32",
            holds: |seen| seen.texts("rounding").contains(&"about 300".to_owned()),
        },
        Claim {
            says: "the search gains nothing and is never paid back",
            holds: |seen| of_the_rule(seen, "right", |_, _, paid_back| paid_back == "never"),
        },
        Claim {
            says: "Where it was wrong, each later call is shorter",
            holds: |seen| of_the_rule(seen, "wrong", |rule, later, _| later < rule),
        },
        Claim {
            says: "the slow ones too",
            holds: |seen| {
                let (first, rule) = (seen.numbers("first_time"), seen.numbers("rule_time"));
                first.iter().zip(rule).all(|(first, rule)| *first > rule)
            },
        },
        Claim {
            says: "A smaller last batch costs one more search, once",
            holds: |seen| seen.numbers("searches")[..2] == [2.0, 0.0],
        },
        Claim {
            says: "those searches are never paid back",
            holds: |seen| {
                seen.numbers("searches")[2] == 6.0 && seen.numbers("on_time")[2] > seen.numbers("off_time")[2]
            },
        },
        Claim {
            says: "which costs less and finds nothing",
            holds: |seen| {
                let (on, off) = (seen.numbers("on_time"), seen.numbers("off_time"));
                on[4] - off[4] < on[2] - off[2] && (on[5] / off[5] - 1.0).abs() < 0.1
            },
        },
        Claim {
            says: "The search needs room for the hungriest algorithm",
            holds: |seen| {
                let peaks = seen.numbers("peak");
                peaks[1] > peaks[0] && peaks[1] > peaks[2]
            },
        },
        Claim {
            says: "another algorithm needs next to no workspace",
            holds: |seen| seen.numbers("room")[0] > 100.0 * seen.numbers("room")[1],
        },
        Claim {
            says: "which works in less memory",
            holds: |seen| seen.numbers("room")[1] < seen.numbers("room")[0],
        },
        Claim {
            says: "It is slower here",
            holds: |seen| seen.numbers("kernel_time")[1] > seen.numbers("kernel_time")[0],
        },
        Claim {
            says: "It is no slower here",
            holds: |seen| seen.numbers("kernel_time")[1] <= seen.numbers("kernel_time")[0],
        },
        Claim {
            says: "so a sum depends on the order",
            holds: |seen| seen.numbers("sum")[0] != seen.numbers("sum")[1],
        },
        Claim {
            says: "leaves out such algorithms",
            holds: |seen| seen.numbers("differing_runs")[0] > 0.0 && seen.numbers("differing_runs")[1] == 0.0,
        },
        Claim {
            says: "this crate adds in an order that is fixed",
            holds: |seen| seen.numbers("differing_runs") == [0.0, 0.0],
        },
        Claim { says: "Here a seed is enough", holds: |seen| seen.texts("differing_weights") == ["none"; 3] },
        Claim {
            says: "the printed losses agree and the weights do not",
            holds: |seen| losses_agree(seen) && seen.texts("differing_weights")[0] != "none",
        },
        Claim {
            says: "In so small a network the differences stay tiny",
            holds: |seen| seen.texts("weights_by")[0] == "under 1",
        },
        Claim { says: "Here the order costs time for", holds: |seen| slowed(seen).contains(&true) },
        Claim { says: "has enough to do either way", holds: |seen| slowed(seen).contains(&false) },
        Claim {
            says: "the product is that of the rounded matrices",
            holds: |seen| seen.texts("as_tf32").ends_with(&["yes".to_owned(), "yes".to_owned()]),
        },
        Claim {
            says: "Where the card has none, nothing happens",
            holds: |seen| seen.texts("as_tf32").len() == 3 || seen.texts("as_tf32")[..2] == ["yes"; 2],
        },
        Claim {
            says: "By default a product keeps the digits of f32",
            holds: |seen| {
                let (products, convolutions) = (seen.texts("product_error"), seen.texts("conv_error"));
                let of_the_newer = &convolutions[convolutions.len() - 2..];
                ["0", "under 1"].contains(&products[0].as_str()) && of_the_newer == ["about 300", "under 1"]
            },
        },
    ],
    by_definition: &[
        "this section shows what benchmark mode finds, what it costs",
        "this section shows which calls search, and what that costs",
        "Each later call saves only a little of that",
        "On a card that multiplies fast, its transforms cost more than they save",
        "The errors are against the same convolution in f64",
        "An algorithm may add the same products in another order",
        "a search tries fewer algorithms",
        "If your training becomes slower for no visible reason",
        "Blocks of a GPU that add to the same memory",
        "On a simulated card even the disorder is computed",
        "It makes fewer parts",
        "is another name for the same flag",
    ],
};

/// Whether this is the fastest algorithm.
fn is_fastest(seen: &Seen, name: &str) -> bool {
    let of = |name: &str| seen.row(name)[1].parse::<f64>().expect("a time");
    ["WINOGRAD_NONFUSED", "GEMM", "IMPLICIT_PRECOMP_GEMM"].iter().all(|other| of(name) <= of(other))
}

/// Whether it holds for all convolutions for which the heuristics were right, or wrong.
fn of_the_rule(seen: &Seen, was: &str, holds: fn(f64, f64, &str) -> bool) -> bool {
    let (rule, later) = (seen.numbers("rule_time"), seen.numbers("later_time"));
    let (verdicts, paid_back) = (seen.texts("rule_was"), seen.texts("paid_back"));
    let mut those = (0..verdicts.len()).filter(|index| verdicts[*index] == was).peekable();
    those.peek().is_some() && those.all(|index| holds(rule[index], later[index], &paid_back[index]))
}

/// Whether the printed first losses are equal.
fn losses_agree(seen: &Seen) -> bool {
    seen.texts("loss")[0] == seen.texts("again")[0]
}

/// For each of the two gradients, whether a fixed order takes longer.
fn slowed(seen: &Seen) -> [bool; 2] {
    let times = seen.numbers("gradient_time");
    [times[1] > 1.09 * times[0], times[3] > 1.09 * times[2]]
}
