use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "events",
    message: "Both events must be recorded before calculating elapsed time",
    known_by: &["Both events must be created with argument", "Both events must be recorded before calculating elapsed time", "Both events must be completed before calculating elapsed time", "does not match recording stream's device"],
    meaning: "The time between two events is known only when both were made for timing, were recorded, and have been reached by the GPU.",
    place: "Look at the two events before `elapsed_time`.",
    fix: &["Make them with `torch.cuda.Event(enable_timing=True)`.", "Record both, then call `end.synchronize()` before `start.elapsed_time(end)`."],
    chapters: &["08-asynchronous-execution.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
