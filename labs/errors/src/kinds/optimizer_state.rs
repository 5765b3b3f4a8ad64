use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "optimizer-state",
    message: "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
    known_by: &["loaded state dict contains a parameter group that doesn't match the size of optimizer's group", "loaded state dict has a different number of parameter groups", "copying a state with shape", "loaded state dict has no", "lr must have the same length as optimizer.param_groups"],
    meaning: "The optimizer's state was saved for other parameters. It goes by their order, not by their names.",
    place: "Compare `[len(g['params']) for g in optimizer.param_groups]` with that of the file.",
    fix: &["Make the model and the optimizer as they were when the state was saved: the same layers frozen, the same groups, in the same order.", "If the model has changed on purpose, begin with a new optimizer state."],
    chapters: &["11-checkpoints.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
