use super::{Claim, Claims};

pub const CLAIMS: Claims = Claims {
    lab: "lab-11",
    knobs: &[
        &["--epochs", "2"],
        &["--gpu", "sim:t4x2", "--device", "cuda:1", "--epochs", "7"],
        &["--gpu", "sim:t4", "--device", "cpu"],
    ],
    machines: usize::MAX,
    claims: &[
        // 1
        Claim {
            says: "which stay on the CPU until .to(device) moves them",
            holds: |seen| seen.texts("is_cuda") == ["true", "true", "false", "true"],
        },
        // 2
        Claim {
            says: "that it was saved from, and that must be there",
            holds: |seen| seen.row("None")[1..] == ["cuda:1", "error", "error"],
        },
        Claim {
            says: "so map_location=cpu works on all three",
            holds: |seen| seen.row("cpu")[1..] == ["cpu"; 3],
        },
        // 3
        Claim {
            says: "that memory is saved",
            holds: |seen| seen.number("row_size") > 10.0 * seen.number("copy_size"),
        },
        // 4
        Claim {
            says: "Moving the model later leaves the state behind",
            holds: |seen| {
                seen.texts("next_step") == ["error GPU0001", "runs", "runs"]
                    && seen.row("create, load, move")[2] == "cpu"
            },
        },
        Claim { says: "nowhere to be left behind", holds: |seen| seen.texts("next_step") == ["runs"; 3] },
        // 5
        Claim {
            says: "the host asks for it, and waits",
            holds: |seen| {
                let reads = seen.numbers("hidden_reads");
                reads[1] > reads[0]
            },
        },
        Claim {
            says: "the five steps take longer",
            holds: |seen| {
                let times = seen.numbers("five_steps_time");
                times[1] > times[0]
            },
        },
        Claim {
            says: "leaves step where it is",
            holds: |seen| {
                let reads = seen.numbers("hidden_reads");
                reads[3] == reads[0] && seen.row("loaded from itself")[1] == "cpu"
            },
        },
        // 6
        Claim {
            says: "and the peak is higher",
            holds: |seen| {
                let peaks = seen.numbers("loading_peak");
                peaks[0] > peaks[1]
            },
        },
        Claim {
            says: "empty_cache() does not lower the peak",
            holds: |seen| {
                let peaks = seen.numbers("loading_peak");
                peaks[2] == peaks[1]
            },
        },
        Claim {
            says: "for which the driver has to be asked again",
            holds: |seen| {
                let asked = seen.numbers("driver_asked");
                asked[2] > asked[1]
            },
        },
        // 7
        Claim {
            says: "Adam's moments are lost, too, if nobody saves them",
            holds: |seen| seen.row("without optimizer")[2] == "no",
        },
        Claim {
            says: "The CPU draws other numbers than a GPU",
            holds: |seen| seen.texts("same_bits").last().is_some_and(|same| same == "no"),
        },
        Claim {
            says: "The CPU draws the numbers that the first run drew",
            holds: |seen| seen.texts("same_bits").last().is_some_and(|same| same == "yes"),
        },
    ],
    by_definition: &[],
};
