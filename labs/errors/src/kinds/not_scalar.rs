use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "not-scalar",
    message: "grad can be implicitly created only for scalar outputs",
    known_by: &["grad can be implicitly created only for scalar outputs"],
    meaning: "`backward()` starts from one number, and this tensor has several. Often the loss was made with `reduction='none'`, or `DataParallel` returned a loss for each GPU.",
    place: "Print the loss's shape before `backward()`.",
    fix: &["Call `loss.mean().backward()`, or `sum()`.", "Only if you want a weighted sum of gradients, pass the weights: `backward(gradient=…)`."],
    chapters: &["03-training-loop.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
