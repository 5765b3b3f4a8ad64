use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "gpu0003",
    code: Some("GPU0003"),
    message: "Data race on cuda:0",
    known_by: &["Data race on cuda", "[GPU0003]"],
    meaning: "Two pieces of work use the same memory, at least one of them changes it, and nothing says which comes first. A simulated GPU reports this; a real one goes on with whatever it read.",
    place: "The report names both lines. The arrow points at the later one.",
    fix: &["Let the second stream wait for the first: `s.wait_stream(&t)?`.", "Before you read a tensor that a `non_blocking` copy brings to the CPU, synchronize.", "Call `record_stream` on a tensor that another stream still uses when you drop it."],
    chapters: &["08-asynchronous-execution.md"],
    run: Some(Run::Lab { number: "08", section: "5", run: "t4", flags: "--gpu sim:t4" }),
    ..Kind::NEW
};
