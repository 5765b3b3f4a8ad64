use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "broadcast",
    message: "The size of tensor a must match the size of tensor b at non-singleton dimension",
    known_by: &["The size of tensor a (*) must match the size of tensor b (*) at non-singleton dimension", "must match the existing size (*) at non-singleton dimension", "doesn't match the broadcast shape", "Sizes of tensors must match except in dimension", "Tensors must have same number of dimensions: got", "zero-dimensional tensor (at position *) cannot be concatenated", "isn't allowed in a leading, non-existing dimension", "Expected all input tensors to have the same number of dimensions, but got tensor at index", "Index tensor must have the same number of dimensions as", "to be no larger than self * apart from dimension", "the number of sizes provided (*) must be greater or equal to the number of dimensions in the tensor", "expects a non-empty TensorList", "expected a non-empty list of Tensors", "source tensor shape must match self tensor shape", "input and indices should have the same number of dimensions", "should be equal to source.size(dim)", "has invalid shape *, but expected", "does not match the shape of the indexed tensor", "cannot be broadcast to indexing result of shape", "which does not broadcast with previously seen size", "indexing tensors could not be broadcast together with shapes"],
    meaning: "Two tensors cannot be laid over each other, or put one after the other. Sizes are compared from the last dimension backwards: each pair must be equal, or one of the two must be 1. In `cat`, all sizes but that of the joined dimension must be equal, and the list must not be empty.",
    place: "Print both shapes before the line, and write them below each other, aligned at the right. The dimension in the message is where they differ.",
    fix: &["Bring one of them into shape: `unsqueeze`, `transpose`, or a slice.", "If the last batch is smaller, do not compute with the batch size as a constant; or use `drop_last=True`.", "For a list of different lengths, pad them first."],
    chapters: &[],
    run: Some(Run::Here),
    read: Some(sizes),
    ..Kind::NEW
};

fn sizes(pasted: &Pasted) -> Vec<String> {
    match (pasted.number("size of tensor a ("), pasted.number("size of tensor b ("), pasted.number("non-singleton dimension ")) {
        (Some(a), Some(b), Some(dim)) => {
            vec![format!("In dimension {dim}, counted from 0, the first tensor has the size {a} and the second {b}.")]
        }
        _ => Vec::new(),
    }
}
