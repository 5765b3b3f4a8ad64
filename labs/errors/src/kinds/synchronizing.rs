use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "synchronizing",
    message: "called a synchronizing CUDA operation",
    known_by: &["called a synchronizing CUDA operation"],
    meaning: "This is no fault of the GPU: the program asked to be told, with `set_sync_debug_mode`, when something makes the host wait.",
    place: "The traceback ends at the line that waits: `item()`, `print`, `cpu()`, a mask as an index.",
    fix: &["Move it out of the loop, or do it every hundred steps.", "Where you do want to wait, set the mode back to `default` first."],
    chapters: &["08-asynchronous-execution.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
