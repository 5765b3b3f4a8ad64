use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "leaf-inplace",
    message: "a leaf Variable that requires grad is being used in an in-place operation",
    known_by: &["leaf Variable that requires grad is being used in an in-place operation", "leaf variable has been moved into the graph interior", "is a view and is being modified inplace", "autograd does not record in-place operations on views in this crate", "a recorded in-place operation wrote to the base of this view"],
    meaning: "A parameter, or a view that autograd watches, was written to where gradients are recorded. Autograd does not follow such a write: a parameter would no longer be a leaf, and of several views that one call returned it cannot tell which has changed.",
    place: "Look for `+=`, `x[...] = …`, `fill_` and `clamp_` on a parameter, or for a write to one of the results of `split`, `chunk` or `unbind`.",
    fix: &["Change parameters under `with torch.no_grad():`, as optimizers and `nn.init` do.", "Write to a `clone()` of the view, or use the operation without an underscore."],
    chapters: &[],
    run: Some(Run::Here),
    ..Kind::NEW
};
