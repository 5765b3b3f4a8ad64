use crate::Kind;

pub const KIND: Kind = Kind {
    id: "recomputation",
    message: "torch.utils.checkpoint: Recomputed values have different metadata than during the forward pass",
    known_by: &["torch.utils.checkpoint: Recomputed values for the following tensors have different metadata", "A different number of tensors was saved during the original forward and recomputation"],
    meaning: "Checkpointing runs a part of the forward pass again during the backward pass, and it went another way the second time: another type, another size, or other operations.",
    place: "Look in the checkpointed function for what differs between two calls: autocast, a random choice, a cache, or a counter that it changes.",
    fix: &["Make the function depend on its inputs only.", "Enter `autocast` around the whole model, and not within the part that is recomputed.", "Leave `preserve_rng_state` on if it draws random numbers."],
    chapters: &["04a-when-memory-is-full.md"],
    ..Kind::NEW
};
