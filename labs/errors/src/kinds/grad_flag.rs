use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "grad-flag",
    message: "you can only change requires_grad flags of leaf variables",
    known_by: &["you can only change requires_grad flags of leaf variables", "tensors of floating point dtype can require gradients", "Tensors of floating point and complex dtype can require gradients"],
    meaning: "Only a tensor that was made directly, and holds floating point or complex numbers, can be told whether it requires a gradient.",
    place: "The tensor is the result of an operation, which includes `.to(device)`, or it holds whole numbers.",
    fix: &["Use `detach()` to cut it out of the graph.", "Move a tensor first, and call `requires_grad_()` then.", "Turn whole numbers into floats: `x.float()`."],
    chapters: &[],
    run: Some(Run::Here),
    ..Kind::NEW
};
