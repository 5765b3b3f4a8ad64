use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "optimizer-empty",
    message: "optimizer got an empty parameter list",
    known_by: &["optimizer got an empty parameter list", "can't optimize a non-leaf Tensor", "some parameters appear in more than one parameter group"],
    meaning: "The optimizer was given nothing to optimize, something that is no parameter, or the same parameter twice.",
    place: "Print `len(list(model.parameters()))` before the optimizer is made. Layers in a plain Python list or dict are not found; a generator is empty when it was used once.",
    fix: &["Keep layers in `nn.ModuleList`, `nn.ModuleDict` or as attributes, and call `super().__init__()` first.", "Pass `model.parameters()` anew for each optimizer.", "Move a parameter with its module: `x.to(device)` of a parameter is no leaf any more."],
    chapters: &["02-golden-rule.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
