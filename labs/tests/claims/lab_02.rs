use super::{Claim, Claims};

pub const CLAIMS: Claims = Claims {
    lab: "lab-02",
    knobs: &[&["--batch-size", "8"], &["--batch-size", "1024", "--steps", "1"]],
    machines: usize::MAX,
    claims: &[
        Claim {
            says: "and reaches the same loss",
            holds: |seen| {
                let [first, last] = ["first_loss", "last_loss"].map(|name| seen.numbers(name));
                first == [first[0]; 2] && last == [last[0]; 2] && last[0] < first[0]
            },
        },
        Claim { says: "the program fails at once", holds: |seen| seen.shows("error GPU0001") },
        Claim {
            says: "blames mat1, the data, both times",
            holds: |seen| seen.shows("Model on cpu, data on cuda:0:") && !seen.shows("got mat2 is on"),
        },
        Claim {
            says: "the losses are the same",
            holds: |seen| seen.numbers("loss_after") == seen.numbers("loss_before"),
        },
        Claim {
            says: "With one device the four placements are one and the same",
            holds: |seen| seen.device() == "cpu",
        },
    ],
    by_definition: &[],
};
