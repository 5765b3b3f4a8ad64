use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "rng-state",
    message: "RNG state must be a torch.ByteTensor",
    known_by: &["RNG state must be a torch.ByteTensor", "expected a torch.ByteTensor, but got torch.cuda.ByteTensor"],
    meaning: "The state of a random number generator is bytes in the host's memory. It was loaded to a GPU, because `map_location` moves everything in the file.",
    place: "Print `state.device` and `state.dtype` before `set_rng_state`.",
    fix: &["Move it back: `torch.set_rng_state(state.cpu())`.", "Or load the file with `map_location='cpu'`, and move the model and the optimizer afterwards."],
    chapters: &["11-checkpoints.md"],
    run: Some(Run::Lab { number: "11", section: "6", run: "t4", flags: "--gpu sim:t4" }),
    ..Kind::NEW
};
