use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "inference-tensor",
    message: "Inference tensors cannot be saved for backward",
    known_by: &["Inference tensors cannot be saved for backward", "Inplace update to inference tensor outside InferenceMode is not allowed", "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed", "Inference tensors do not track version counter"],
    meaning: "A tensor that was made in inference mode has no version counter, so it can never take part in training.",
    place: "Look for a tensor that was computed once under `inference_mode()` and is used later in the training loop: cached features, a teacher's output, a validation batch.",
    fix: &["Make it under `no_grad()` instead.", "Or `clone()` it outside inference mode."],
    chapters: &["04-memory.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
