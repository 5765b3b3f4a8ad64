use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "unused-input",
    message: "One of the differentiated Tensors appears to not have been used in the graph",
    known_by: &["One of the differentiated Tensors appears to not have been used in the graph", "One of the differentiated Tensors does not require grad"],
    meaning: "You asked for the gradient with respect to a tensor on which the output does not depend, or which requires none.",
    place: "Follow the tensor from where it is made to the output. Often a copy was used instead: `x.to(device)`, `x.detach()` or `torch.tensor(x)` makes another tensor.",
    fix: &["Pass the very tensor that the model used.", "Call `requires_grad_()` on it before the forward pass.", "If it is right that it is not used, say `allow_unused=True`, and expect None."],
    chapters: &[],
    run: Some(Run::Here),
    ..Kind::NEW
};
