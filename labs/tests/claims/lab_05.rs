use super::{Claim, Claims};

pub const CLAIMS: Claims = Claims {
    lab: "lab-05",
    // Section 4 needs memory that another program holds.
    knobs: &[&["--gpu", "sim:t4,others=1GiB"], &["--gpu", "sim:h200,others=100GiB"], &["--watch"]],
    machines: usize::MAX,
    claims: &[
        Claim {
            says: "The allocator took 2 MiB for it",
            holds: |seen| {
                let memory = seen.numbers("memory_used");
                memory[1] - memory[0] == 2.0 + seen.number("context") / f64::from(1 << 20)
            },
        },
        Claim {
            says: "GPU-Util and power still describe the moments before",
            holds: |seen| {
                let (busy, power) = (seen.numbers("moment_utilization"), seen.numbers("moment_power"));
                (busy[3] - busy[2]).abs() < 3.0 && (power[3] - power[2]).abs() < 3.0
            },
        },
        Claim {
            says: "A while later both are down",
            holds: |seen| {
                let (busy, power) = (seen.numbers("moment_utilization"), seen.numbers("moment_power"));
                busy[4] == 0.0 && power[4] < power[2]
            },
        },
        Claim {
            says: "the allocator keeps what was dropped until empty_cache()",
            holds: |seen| {
                let memory = seen.numbers("moment_memory");
                memory[4] == memory[2] && memory[5] < memory[4] && memory[5] >= memory[0]
            },
        },
        Claim {
            says: "All of them are right",
            holds: |seen| {
                let [tensors, kept, reserved] =
                    ["allocated", "kept", "reserved"].map(|name| seen.number(name));
                let [context, this] = ["context", "this_process"].map(|name| seen.number(name));
                let [others, all] = ["other_processes", "memory_usage"].map(|name| seen.number(name));
                tensors + kept == reserved && reserved + context == this && this + others == all
            },
        },
        Claim {
            says: "It fails when it asks for more than is left",
            holds: |seen| {
                seen.number("asked_for") > seen.number("free_memory") && seen.shows("CUDA out of memory.")
            },
        },
        Claim {
            says: "the error names them by their numbers",
            holds: |seen| seen.shows("Process 2112 has ") && seen.shows("process       2112 uses"),
        },
        Claim {
            says: "The large products show more",
            holds: |seen| seen.numbers("host_cpu")[1] > 100.0, // more than one thread can use
        },
        Claim {
            says: "The thread that waits for the GPU asks again and again",
            holds: |seen| seen.numbers("host_cpu")[3] == 100.0,
        },
        Claim {
            // Without a GPU, the usage of the whole process is measured, including other tests.
            says: "Its row shows what the workers use",
            holds: |seen| seen.device() == "cpu" || (150.0..=210.0).contains(&seen.numbers("host_cpu")[4]),
        },
    ],
    by_definition: &[
        "A card that does nothing draws less",
        "On Linux, memory that others hold costs no time",
        "It asks the GPU again and again",
        "Windows may spill memory into the host's", // according to NVIDIA's pages
        "Close that program",                       // is advice
    ],
};
