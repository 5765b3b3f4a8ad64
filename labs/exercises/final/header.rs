//! The comment at the top of a student's file.

use super::SEEDS;

/// The first lines of a student's file.
pub fn header(seed: u64) -> String {
    debug_assert!(seed < SEEDS);
    format!("// The final assessment of To Device: the program of seed {seed}.\n{RULES}")
}

const RULES: &str = "//
// Twelve faults are planted in it: five make it wrong, two waste memory, three waste
// time, and two are data races. No two are in the same function, and none is in `fit`.
// Each function has to do what the comment above it says, and besides:
//
// - It works on the device that it is given, also where that is not the first GPU, and
//   leaves what it returns there, unless its comment says otherwise.
// - Arguments stay as they are, unless it is the function's work to change them.
// - Learning has dropout, and everything else has not: the comment says where a part of a
//   network has none. Nothing keeps a graph longer than it is used.
// - Networks compute in float16 under autocast, everything else in float32.
// - Rows come from the host a batch at a time, each once, and are dropped after use.
// - Nothing in a loop waits for the GPU but what it cannot do without: `scaler.step`, or
//   a result that goes to the host. A copy from pinned memory need not be waited for.
// - Work that a comment puts on a stream runs there, at the same time as other work.
// - A file may come from a machine with other GPUs. What is missing in it is an error, and
//   loading takes no more of the GPU's memory than the model already does.
//
//   cargo course final              what the GPU was asked for, function by function
//   cargo course final train        one function: errors, races, memory, timeline
//   cargo course check final        your points
//
// Last act: `fit` works, but it is twenty times slower than it has to be (modelled time,
// on a T4, for 256 rows). It may take four times the memory. Rewrite it as you like: a
// network from `network`, which learns on the device, has to be right for nine of ten rows
// that it has never seen. The rules on float16 and dropout do not bind in `fit`. The new
// rows come as they are, just like those that it learns from.
//
";

/// The rules for all functions, each as a paragraph.
pub fn rules() -> Vec<String> {
    let (_, rules) = RULES.split_once("\n// - ").expect("there are rules");
    let (rules, _) = rules.split_once("\n//\n").expect("more follows");
    let one = |rule: &str| {
        rule.lines().map(|line| line.trim_start_matches(['/', ' '])).collect::<Vec<_>>().join(" ")
    };
    rules.split("\n// - ").map(one).collect()
}
