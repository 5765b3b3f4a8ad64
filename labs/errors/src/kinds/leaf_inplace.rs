use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "leaf-inplace",
    message: "a leaf Variable that requires grad is being used in an in-place operation",
    known_by: &["leaf Variable that requires grad is being used in an in-place operation", "leaf variable has been moved into the graph interior", "is a view and is being modified inplace", "is a view and its base or another view of its base has been modified inplace", "is a view of a view which was created in", "A view was created in no_grad mode", "A view was created in inference mode"],
    meaning: "A parameter, or a view, was written to where gradients are recorded. Autograd records a write to most views, but not to all: a parameter would no longer be a leaf, of several views that one call returned it cannot tell which has changed, and for a view made under `torch.no_grad()` it cannot tell whether you want the write recorded.",
    place: "Look for `+=`, `x[...] = …`, `fill_` and `clamp_` on a parameter, for a write to one of the results of `split`, `chunk` or `unbind`, and for a write to a view that was made under `torch.no_grad()` or `torch.inference_mode()`.",
    fix: &["Change parameters under `with torch.no_grad():`, as optimizers and `nn.init` do.", "Write to a `clone()` of the view, or use the operation without an underscore."],
    chapters: &[],
    run: Some(Run::Here),
    ..Kind::NEW
};
