use super::{Claim, Claims};
use labs::prediction::Key;

pub const CLAIMS: Claims = Claims {
    lab: "lab-01",
    knobs: &[&["--max-size", "16"], &["--max-size", "64"]],
    machines: usize::MAX,
    claims: &[
        Claim {
            says: "the times below leave it out",
            holds: |seen| seen.number("first_use_time") > seen.number("second_use_time"),
        },
        Claim {
            says: "Each of the three operations launches a kernel of its own",
            holds: |seen| seen.number("launches") == 3.0,
        },
        Claim {
            says: "Hardly any of that is arithmetic",
            holds: |seen| seen.number("larger_gpu_time") < 2.0 * seen.number("smallest_gpu_time"),
        },
        Claim {
            says: "this GPU also feels the arithmetic from the start",
            holds: |seen| seen.number("larger_gpu_time") >= 2.0 * seen.number("smallest_gpu_time"),
        },
        Claim {
            says: "is the first at which the GPU wins",
            holds: |seen| {
                let pairs: Vec<(f64, f64)> =
                    seen.numbers("cpu_time").into_iter().zip(seen.numbers("gpu_time")).collect();
                let first = pairs.iter().position(|(cpu, gpu)| gpu < cpu);
                first.is_some_and(|first| 16 << first == seen.number("crossover") as usize)
            },
        },
        // The first is slower, the last is faster.
        Claim {
            says: "Many small operations can be slower on a GPU than on the CPU",
            holds: |seen| {
                let speedups = seen.numbers("speedup");
                speedups[0] < 1.0 && speedups[speedups.len() - 1] > 1.0
            },
        },
        Claim {
            says: "The GPU does not win at any of these sizes",
            holds: |seen| seen.numbers("speedup").iter().all(|speedup| *speedup <= 1.0),
        },
        Claim {
            says: "The CPU is done with the smallest product before the GPU is",
            holds: |seen| seen.number("speedup") < 1.0,
        },
        Claim {
            says: "At its first use the driver has to set the GPU up",
            holds: |seen| seen.number("first_use_time") > 2.0 * seen.number("second_use_time"),
        },
        Claim {
            says: "If device and type are right already, .to returns the same tensor",
            holds: |seen| matches!(seen.answer("01-six-calls"), Key::Number(_)),
        },
        Claim {
            says: "moves twice the bytes",
            holds: |seen| seen.numbers("bytes_to_device")[5] == 2.0 * seen.numbers("bytes_to_device")[1],
        },
        Claim {
            says: "The first way makes them with the few cores of the CPU",
            holds: |seen| seen.numbers("copies_to_device") == [1.0, 0.0],
        },
    ],
    by_definition: &[
        "A GPU does thousands of these operations at once",
        "CPU / GPU says how many times as long the CPU takes",
        "Try a larger --max-size",
        "and these take the same time for every size",
        "it always answers",
        "At some size the arithmetic outweighs the launch",
        "and the launch costs no more",
        "On the CPU both ways come to the same thing",
    ],
};
