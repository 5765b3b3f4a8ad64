use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "no-graph",
    message: "element 0 of tensors does not require grad and does not have a grad_fn",
    known_by: &["does not require grad and does not have a grad_fn"],
    meaning: "`backward()` was called on something that no graph leads to, so there is nothing to compute gradients for.",
    place: "Print `requires_grad` and `grad_fn` at each step, from the loss back to the parameters. The first tensor without a `grad_fn` is where the graph broke.",
    fix: &["Compute the loss outside `no_grad()` and `inference_mode()`.", "Do not use `item()`, `detach()`, `.data`, `numpy()` or `torch.tensor(loss)` between the model and the loss.", "Check that some parameter requires a gradient: a model that is frozen as a whole has none.", "`argmax`, `round` and comparisons have no gradient."],
    chapters: &["04a-when-memory-is-full.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
