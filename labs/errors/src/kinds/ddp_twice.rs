use crate::Kind;

pub const KIND: Kind = Kind {
    id: "ddp-twice",
    message: "Expected to mark a variable ready only once",
    known_by: &["Expected to mark a variable ready only once"],
    meaning: "In one backward pass, DDP got the gradient of a parameter twice. Checkpointing with a shared layer, or a second forward pass before `backward()`, does that.",
    place: "`TORCH_DISTRIBUTED_DEBUG=DETAIL` names the parameter. See where it is used twice.",
    fix: &["Use checkpointing with `use_reentrant=False`.", "Take `find_unused_parameters=True` out if every parameter is used; or say `static_graph=True` if each step takes the same path.", "Run all forward passes through the wrapped model, and not through `model.module`."],
    chapters: &["10-many-gpus.md"],
    ..Kind::NEW
};
