use crate::Kind;

pub const KIND: Kind = Kind {
    id: "overlapping-write",
    message: "more than one element of the written-to tensor refers to a single memory location",
    known_by: &["more than one element of the written-to tensor refers to a single memory location"],
    meaning: "An expanded tensor shows the same memory several times. A write to it would change several of its elements at once, so it is refused.",
    place: "Look for `expand`, `broadcast_to` or an overlapping `as_strided` before the write, and for a step of 0 in `x.stride()`.",
    fix: &["`clone()` the expanded tensor, or use `repeat` instead of `expand`.", "Or write to the tensor before it is expanded."],
    chapters: &["03-training-loop.md"],
    ..Kind::NEW
};
