use crate::Kind;

pub const KIND: Kind = Kind {
    id: "safetensors",
    message: "Some tensors share memory, this will lead to duplicate memory on disk",
    known_by: &["Some tensors share memory, this will lead to duplicate memory on disk", "You are trying to save a non contiguous tensor"],
    meaning: "A safetensors file holds each tensor by itself. Tied weights, such as an embedding that is also the last layer, and views cannot be said in it.",
    place: "The message names the tensors.",
    fix: &["Save one of the names, and tie the weights again after loading: `safetensors.torch.save_model` does both.", "For a view, pass `x.contiguous()`, or a `clone()`."],
    chapters: &["11-checkpoints.md"],
    ..Kind::NEW
};
