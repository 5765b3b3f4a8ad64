use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "grad-shape",
    message: "attempting to assign a gradient of a different size to a tensor",
    known_by: &["attempting to assign a gradient of size", "attempting to assign a gradient with dtype", "Mismatch in shape: grad_output", "returned an invalid gradient at index"],
    meaning: "A gradient must have the shape and the type of its tensor.",
    place: "Print both shapes. In a `Function` of your own, `backward` returns one gradient for each input of `forward`, in its shape.",
    fix: &["Sum the gradient over the dimensions that were broadcast.", "Set `grad` to None before you change a parameter's size."],
    chapters: &[],
    run: Some(Run::Here),
    ..Kind::NEW
};
