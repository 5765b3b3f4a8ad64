use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "to-scalar",
    message: "a Tensor with … elements cannot be converted to Scalar",
    known_by: &["elements cannot be converted to Scalar", "only one element tensors can be converted to Python scalars", "only integer tensors of a single element can be converted to an index", "Boolean value of Tensor with more than one value is ambiguous", "Boolean value of Tensor with no values is ambiguous"],
    meaning: "`item()`, `float(x)`, `if x:` and an index of a list want a single number, and the tensor has several, or none.",
    place: "Print the tensor's shape before the line.",
    fix: &["Reduce it first: `x.mean().item()`, `(x > 0).all()`, `x.any()`.", "For all its numbers, `x.tolist()`."],
    chapters: &[],
    run: Some(Run::Here),
    ..Kind::NEW
};
