use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "loss-sizes",
    message: "Expected input batch_size to match target batch_size",
    known_by: &["Expected input batch_size (*) to match target batch_size", "Using a target size (*) that is different to the input size", "Expected target size *, got", "0D or 1D target tensor expected, multi-target not supported", "only batches of spatial targets supported", "weight tensor should be defined either for all", "For 1D input, 1D target must have size 1", "Expected floating point type for target with class probabilities", "size mismatch (got input:", "Target size (*) must be the same as input size ("],
    meaning: "The loss gets predictions and targets that do not belong together: another number of samples, another number of dimensions, or whole numbers where chances of the classes are expected. For MSE it is only a warning, and then the loss is silently wrong: `(64, 1)` against `(64,)` is compared in 64 × 64 pairs.",
    place: "Print both shapes before the loss. Cross-entropy takes `(batch, classes)` and class numbers of the shape `(batch,)`.",
    fix: &["Give both the same shape: `y.unsqueeze(1)`, or `prediction.squeeze(1)`.", "Turn one-hot targets into class numbers: `y.argmax(1)`.", "If the batch itself differs, look for a `view` that mixes it with other dimensions."],
    chapters: &[],
    run: Some(Run::Here),
    ..Kind::NEW
};
