use crate::Kind;

pub const KIND: Kind = Kind {
    id: "overlapping-write",
    message: "more than one element of the written-to tensor refers to a single memory location",
    known_by: &["more than one element of the written-to tensor refers to a single memory location", "some elements of the input tensor and the written-to tensor refer to a single memory location"],
    meaning: "The write would depend on the order of the elements, so it is refused. Either the target is an expanded tensor, which shows the same memory several times, or the source lies partly in the memory of the target, as in `x[1:].copy_(x[:-1])` or `x -= x[0]`.",
    place: "Look for `expand`, `broadcast_to` or an overlapping `as_strided` before the write, and for a step of 0 in `x.stride()`. If the message names the input tensor, look for a slice, a row or a transpose of the target on the right-hand side.",
    fix: &["`clone()` the expanded tensor, or use `repeat` instead of `expand`. `clone()` the source if that is a part of the target: `x -= x[0].clone()`.", "Or write to the tensor before it is expanded."],
    chapters: &[],
    ..Kind::NEW
};
