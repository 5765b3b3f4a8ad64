use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "reshape",
    message: "view size is not compatible with input tensor's size and stride",
    known_by: &["view size is not compatible with input tensor's size and stride", "is invalid for input of size", "only one dimension can be inferred", "cannot reshape tensor of 0 elements into shape", "input is not contiguous", "duplicate dims are not allowed", "invalid shape dimension", "number of dimensions in the tensor input does not match", "t() expects a tensor with", "cannot be applied to a 0-dim tensor", "split_size can only be 0 if", "chunk expects `chunks` to be greater than 0", "slice step must be positive", "maximum size for tensor at dimension * is", "a tensor has at most * dimensions", "integer multiplication overflow", "Storage size calculation overflowed", "Stride calculation overflowed", "Trying to create tensor with negative dimension", "expects at least a 1-dimensional tensor", "values cannot fill a tensor of shape", "expected sequence of length * at dim", "step must be greater than zero"],
    meaning: "`view` gives the same memory another shape. Either the numbers do not lie one after the other any more, as after `transpose` or `permute`, or the new shape holds another number of them. Other messages of this kind are about a shape or a dimension that cannot be: a list whose rows differ in length is no tensor, and a slice has a step of 1 or more.",
    place: "Print `x.shape`, `x.stride()` and `x.is_contiguous()` before the line.",
    fix: &["If the message is about the stride, use `reshape`, which copies when it must, or call `contiguous()` first.", "If it is about the size, check the product of the new sizes; let one of them be -1, and the first the batch: `x.reshape(x.shape[0], -1)`.", "For a list of rows that differ in length, pad the rows first; to go backwards, use `flip` instead of a negative step.", "Do not reshape where you mean to exchange dimensions: use `transpose` or `permute`."],
    chapters: &[],
    run: Some(Run::Here),
    ..Kind::NEW
};
