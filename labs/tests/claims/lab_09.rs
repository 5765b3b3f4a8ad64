use super::seen::Seen;
use super::{Claim, Claims};

pub const CLAIMS: Claims = Claims {
    lab: "lab-09",
    knobs: &[&["--gpu", "sim:t4", "--batch-size", "1"], &["--batch-size", "512"], &["--num-workers", "1"]],
    machines: usize::MAX,
    claims: &[
        // 1
        Claim {
            says: "Taking pinned memory from the driver costs time",
            holds: |seen| seen.number("first_pin_time") > 1.1 * seen.number("second_pin_time"),
        },
        Claim {
            says: "For a single copy pinning does not pay",
            holds: |seen| {
                seen.number("first_pin_time") + seen.number("pinned_copy_time")
                    > seen.number("pageable_copy_time")
            },
        },
        Claim {
            says: "pinning and copying together take less than the pageable copy",
            holds: |seen| {
                seen.number("second_pin_time") + seen.number("pinned_copy_time")
                    < seen.number("pageable_copy_time")
            },
        },
        Claim {
            says: "even if the pinned memory is reused",
            holds: |seen| {
                seen.number("second_pin_time") + seen.number("pinned_copy_time")
                    > seen.number("pageable_copy_time")
            },
        },
        // 2
        Claim { says: "non_blocking frees the host, but only from pinned memory", holds: frees_from_pinned },
        Claim { says: "only `non_blocking` lets the host go", holds: frees_from_pinned },
        Claim { says: "They free the host, but on the stream", holds: frees_from_pinned },
        Claim { says: "Another stream lets the copy run beside the work", holds: overlaps_on_another_stream },
        Claim {
            says: "then any copy on another stream runs beside it",
            holds: |seen| overlaps_on_another_stream(seen) && seen.answered("09-overlap", "stream"),
        },
        Claim {
            says: "Only pinned memory with non_blocking on another stream has both",
            holds: |seen| frees_from_pinned(seen) && overlaps_on_another_stream(seen),
        },
        Claim {
            says: "none returns at once, and nothing runs beside anything else",
            holds: |seen| {
                let calls = seen.numbers("call_time");
                seen.texts("overlap").iter().all(|overlaps| overlaps == "no") && calls[6] > 0.5 * calls[4]
            },
        },
        // 3
        Claim {
            says: "You read the second result before the copy had run",
            holds: |seen| seen.number("early_loss") != seen.number("late_loss"),
        },
        Claim {
            says: "a plausible number that is one step old",
            holds: |seen| seen.number("early_loss") == seen.number("first_loss"),
        },
        Claim {
            says: "which holds the old number until the copy has run",
            holds: |seen| seen.answered("09-loss-reads", "first"),
        },
        Claim {
            says: "and you read the right number",
            holds: |seen| seen.number("early_loss") == seen.number("late_loss"),
        },
        Claim { says: "so the copy had run before the host wrote", holds: |seen| seen.number("twos") == 0.0 },
        Claim {
            says: "By luck the copy had finished before the host wrote",
            holds: |seen| seen.number("twos") == 0.0,
        },
        Claim {
            says: "The host was done before the copy had begun",
            holds: |seen| seen.number("ones") == 0.0,
        },
        Claim {
            says: "and so some of each arrive",
            holds: |seen| seen.number("ones") > 0.0 && seen.number("twos") > 0.0,
        },
        Claim {
            says: "The race is there in any case",
            holds: |seen| {
                seen.shows("the host reads pinned memory") && seen.shows("the host writes pinned memory")
            },
        },
        // 4
        Claim {
            says: "What makes the copies cheaper changes little",
            holds: |seen| ratio(seen, 3, 0) > 0.89,
        },
        Claim {
            says: "What makes the copies cheaper saves something",
            holds: |seen| ratio(seen, 3, 0) < 0.91,
        },
        Claim { says: "Workers change much", holds: |seen| ratio(seen, 5, 3) < 0.76 },
        Claim {
            says: "what set the pace was the CPU",
            holds: |seen| seen.numbers("compute_share")[3] < 50.0,
        },
        Claim { says: "Workers change little", holds: |seen| ratio(seen, 5, 3) > 0.74 },
        Claim {
            says: "because here the GPU sets the pace",
            holds: |seen| seen.numbers("compute_share")[5] > 79.0,
        },
        Claim { says: "it is busy most of the time", holds: |seen| seen.numbers("compute_share")[5] > 79.0 },
        Claim {
            says: "because the host sets the pace",
            holds: |seen| seen.numbers("compute_share")[5] < 81.0 && share_of_copies(seen, 5) < 0.5,
        },
        Claim {
            says: "From pageable memory the copies take most of the epoch",
            holds: |seen| share_of_copies(seen, 8) > 0.49,
        },
        Claim {
            says: "Here the copies are not what takes the time",
            holds: |seen| share_of_copies(seen, 8) < 0.51,
        },
        Claim {
            says: "Pinned memory makes each of them shorter",
            holds: |seen| {
                let copies = seen.numbers("copy_time");
                copies[9] < copies[8] && ratio(seen, 9, 8) < 0.96
            },
        },
        Claim { says: "Pinned memory gains nothing", holds: |seen| ratio(seen, 9, 8) > 0.94 },
        Claim { says: "cannot gain more than this asking takes", holds: |seen| ratio(seen, 10, 9) > 0.8 },
        Claim { says: "and that saves time", holds: |seen| ratio(seen, 11, 10) < 0.96 },
        Claim {
            says: "so short that this saves hardly anything",
            holds: |seen| (0.94..=1.0).contains(&ratio(seen, 11, 10)),
        },
        Claim { says: "A stream of its own gains nothing", holds: |seen| ratio(seen, 11, 10) > 0.99 },
        Claim {
            says: "here the host sets the pace",
            holds: |seen| seen.numbers("compute_share")[11] < 50.0 && share_of_copies(seen, 11) < 0.5,
        },
        Claim {
            says: "only the time of the copies themselves can change",
            holds: |seen| (ratio(seen, 11, 9) - 1.0).abs() < 0.03,
        },
        // 5
        Claim {
            says: "The pictures are a lot of work, so they gain",
            holds: |seen| best_of_pictures(seen) < 0.9,
        },
        Claim { says: "The pictures gain nothing", holds: |seen| best_of_pictures(seen) >= 0.9 },
        Claim {
            says: "sharing the work costs more than it saves",
            holds: |seen| best(&seen.numbers("rows_epoch_time")) >= 1.0,
        },
        Claim {
            says: "The rows are little work, and yet they gain",
            holds: |seen| best(&seen.numbers("rows_epoch_time")) < 0.95,
        },
        Claim {
            says: "and gain next to nothing",
            holds: |seen| (0.95..1.0).contains(&best(&seen.numbers("rows_epoch_time"))),
        },
        Claim {
            says: "a little more than what it costs to start them",
            holds: |seen| best(&seen.numbers("rows_epoch_time")) < 1.0,
        },
        // 6
        Claim {
            says: "a tensor takes memory in both places for a while",
            holds: |seen| seen.numbers("host_bytes")[1] > 0.0 && seen.numbers("device_bytes")[1] > 0.0,
        },
        Claim {
            says: "Made on the GPU it takes memory there only",
            holds: |seen| seen.numbers("host_bytes")[4] == 0.0 && seen.numbers("device_bytes")[4] > 0.0,
        },
        Claim { says: "it is there already", holds: |seen| seen.number("host_bytes") == 4194304.0 },
        // 7
        Claim {
            says: "so the host launches each kernel only when",
            holds: |seen| seen.number("fed_utilization") < 85.0,
        },
        Claim {
            says: "The GPU is busy nearly all the time.",
            holds: |seen| seen.number("fed_utilization") >= 85.0,
        },
        Claim {
            says: "The GPU is idle for a good part of the time",
            holds: |seen| seen.number("fed_utilization") < 85.0,
        },
        Claim {
            says: "What is left are the short pauses",
            holds: |seen| seen.number("fed_utilization") >= 85.0,
        },
        Claim { says: "The host is at 100 %", holds: |seen| seen.number("fed_cpu") == 100.0 },
        Claim {
            says: "one loop keeps it busier than a single thread can",
            holds: |seen| {
                let cpu = seen.numbers("starved_cpu");
                (0..4).all(|index| (cpu[index] > 150.0) == (index == LOADER) && cpu[index] > 99.0)
            },
        },
        Claim {
            says: "one has batches coming over the bus",
            holds: |seen| {
                let bus = seen.numbers("starved_from_host");
                bus[PAGEABLE] > 100.0 && bus[TINY] == 0.0 && bus[WAITS] == 0.0
            },
        },
        Claim {
            says: "one runs kernels that few of the multiprocessors take part in",
            holds: tiny_fill_less,
        },
        Claim { says: "tiny kernels in SM active", holds: tiny_fill_less },
        Claim { says: "it shows that A draws less power than D", holds: power_tells },
        Claim {
            says: "its other columns do not tell A from D for certain",
            holds: |seen| !power_tells(seen),
        },
        // 8
        Claim {
            says: "GPU-Util asks whether any kernel ran",
            holds: |seen| {
                let busy = seen.numbers("rows_utilization");
                busy[0] >= 85.0 && (busy[0] - busy[2]).abs() <= 2.0
            },
        },
        Claim { says: "the others stand idle", holds: |seen| seen.numbers("rows_sm_active")[0] < 4.0 },
        Claim {
            says: "More rows find room beside it",
            holds: |seen| {
                let rate = seen.numbers("rows_per_millisecond");
                seen.numbers("rows_sm_active")[2] > 50.0 && rate[2] > 50.0 * rate[0]
            },
        },
        Claim {
            says: "With nvidia-smi alone, look at the power",
            holds: |seen| seen.numbers("rows_power")[2] > 2.0 * seen.numbers("rows_power")[0],
        },
    ],
    by_definition: &[
        "Speeding up the slowest part of the epoch saves most",
        "With --gpu sim:t4 this section shows a busy GPU",
        "With --gpu sim:t4 you see how fast copies to a GPU are",
        "\"copies\" is the time of all copies to the GPU",
        "what it saves goes into pinning",
        "it launches, and waits where the queue is full",
        "A wants larger batches",
        "D wants its numbers read less often",
        "It can pay where somebody else does it",
        "CUDA_LAUNCH_BLOCKING=1 is set, so every call waits until its work is done",
        "The loader is the same in all rows",
        "Each worker has to be started in every epoch",
        "So they pay where there is much work to share",
        "more than there are cores only take turns",
        "and costs far more",
        "add workers while the epoch gets shorter",
        "C wants more workers, or less work for each sample",
    ],
};

const TINY: usize = 0;
const PAGEABLE: usize = 1;
const LOADER: usize = 2;
const WAITS: usize = 3;

/// Whether a call with `non_blocking` takes less than half the time, but only from pinned memory.
fn frees_from_pinned(seen: &Seen) -> bool {
    let calls = seen.numbers("call_time");
    [2, 3, 6, 7].into_iter().all(|index| (calls[index] < 0.5 * calls[index - 2]) == (index >= 6))
}

fn overlaps_on_another_stream(seen: &Seen) -> bool {
    seen.texts("overlap") == ["no", "yes"].repeat(4)
}

/// The time of an epoch of section 4, relative to another's.
fn ratio(seen: &Seen, one: usize, other: usize) -> f64 {
    let times = seen.numbers("epoch_time");
    times[one] / times[other]
}

/// The copies of an epoch of section 4, as a share of its time.
fn share_of_copies(seen: &Seen, index: usize) -> f64 {
    seen.numbers("copy_time")[index] / seen.numbers("epoch_time")[index]
}

/// The shortest time with workers, relative to that without.
fn best(times: &[f64]) -> f64 {
    times[1..].iter().fold(f64::INFINITY, |least, time| least.min(time / times[0]))
}

fn best_of_pictures(seen: &Seen) -> f64 {
    best(&seen.numbers("pictures_epoch_time"))
}

/// Whether fewer multiprocessors have work in the loop with tiny batches, while kernels run.
fn tiny_fill_less(seen: &Seen) -> bool {
    let (active, busy) = (seen.numbers("starved_sm_active"), seen.numbers("starved_utilization"));
    active[TINY] / busy[TINY] < 0.7 * active[WAITS] / busy[WAITS]
}

fn power_tells(seen: &Seen) -> bool {
    let (power, busy) = (seen.numbers("starved_power"), seen.numbers("starved_utilization"));
    power[TINY] < power[WAITS] && busy[TINY] >= busy[WAITS]
}
