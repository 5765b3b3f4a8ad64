use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "load-without-gpu",
    message: "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False",
    known_by: &["Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"],
    follows: true,
    meaning: "The file was saved from a GPU, and this program sees none. Without `map_location`, tensors go back to where they came from.",
    place: "It is the `torch.load` in the traceback, which may be in a library. If there should be a GPU, find out first why `is_available()` is False.",
    fix: &["Load to the CPU, and move the model afterwards: `torch.load(path, map_location='cpu')`.", "Or save a state that was moved to the CPU."],
    chapters: &["11-checkpoints.md"],
    run: Some(Run::Lab { number: "11", section: "2", run: "none", flags: "--gpu none" }),
    ..Kind::NEW
};
