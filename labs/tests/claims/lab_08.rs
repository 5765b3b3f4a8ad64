use super::seen::Seen;
use super::{Claim, Claims};

pub const CLAIMS: Claims = Claims {
    lab: "lab-08",
    knobs: &[
        &["--steps", "1"],
        &["--gpu", "sim:t4", "--steps", "200"],
        &["--chunks", "1"],
        &["--chunks", "40"],
    ],
    machines: usize::MAX,
    claims: &[
        Claim {
            says: "The call does not wait for the product",
            holds: |seen| {
                let (calls, works) = (seen.numbers("call_time"), seen.numbers("work_time"));
                calls.iter().zip(works).all(|(call, work)| *call < work)
            },
        },
        Claim {
            says: "each call waits until its product is done",
            holds: |seen| seen.numbers("call_time").last() > seen.numbers("call_time").first(),
        },
        Claim {
            says: "still no call waits for it",
            holds: |seen| seen.number("ten_calls_time") < seen.number("ten_products_time"),
        },
        Claim {
            says: "so nothing is left to wait for",
            holds: |seen| {
                seen.device() == "cpu"
                    || seen.number("ten_products_time") < 1.1 * seen.number("ten_calls_time")
            },
        },
        Claim {
            says: "shows only the time to ask",
            holds: |seen| seen.number("returned_time") < seen.number("synchronized_time"),
        },
        Claim {
            says: "What is left of the work is charged to the next line",
            holds: |seen| {
                seen.number("returned_time") + seen.number("item_time")
                    > 0.9 * seen.number("synchronized_time")
            },
        },
        Claim {
            says: "the work is done when the call returns",
            holds: |seen| 1.2 * seen.number("returned_time") > seen.number("synchronized_time"),
        },
        Claim {
            says: "the second is done sooner",
            holds: |seen| {
                sums_agree(seen) && seen.number("ahead_loop_time") < 0.91 * seen.number("waiting_loop_time")
            },
        },
        Claim {
            says: "here they take about as long",
            holds: |seen| {
                let [waiting, ahead] = ["waiting_loop_time", "ahead_loop_time"].map(|name| seen.number(name));
                sums_agree(seen) && (0.9..=1.1).contains(&(ahead / waiting))
            },
        },
        Claim {
            says: "The second stream saves time",
            holds: |seen| seen.number("two_streams_time") < 0.96 * seen.number("one_stream_time"),
        },
        Claim {
            says: "saves hardly anything",
            holds: |seen| seen.number("two_streams_time") > 0.94 * seen.number("one_stream_time"),
        },
        Claim {
            says: "runs one kernel after the other",
            holds: |seen| {
                seen.number("chains_two_streams_time") > 0.94 * seen.number("chains_one_stream_time")
            },
        },
        Claim {
            says: "The sum was taken before the ones were there",
            holds: |seen| seen.number("stale_sum") < 1000.0 && seen.shows("race"),
        },
        Claim { says: "the sum comes out right", holds: |seen| seen.number("stale_sum") == 1000.0 },
        Claim { says: "It is a race.", holds: |seen| seen.number("lucky_races") > 0.0 },
        Claim { says: "Here the sevens were doubled", holds: |seen| seen.number("dropped_sum") == 14000.0 },
        Claim {
            says: "Here the ones were doubled all the same",
            holds: |seen| seen.number("dropped_sum") == 2000.0,
        },
        Claim {
            says: "item fails, but it did nothing wrong",
            holds: |seen| seen.answered("08-which-line", ".item(") && seen.shows("item          failed"),
        },
        Claim {
            says: "It makes programs slower",
            holds: |seen| seen.number("blocking_loop_time") > seen.number("launching_loop_time"),
        },
    ],
    by_definition: &[
        "On the CPU a call returns when its work is done",
        "except where the GPU has to wait for it",
        "Both loops add up the same losses.",         // as a table shows
        "With --gpu sim:t4 the first loop is slower", // see the first claim of that loop
        "The side stream doubles whatever is there",
        "The default stream is special only because",
        "the host is told by a later line",
        "The memory of x goes back to the stream it was made on",
        "Only the first copy and the last kernels run alone",
        "so some of the shorter work hides behind the longer",
    ],
};

/// One loop adds in the host's f64, the other in the GPU's f32.
fn sums_agree(seen: &Seen) -> bool {
    let [waiting, ahead] = ["waiting_total", "ahead_total"].map(|name| seen.number(name));
    (waiting - ahead).abs() < 1e-5 * waiting
}
