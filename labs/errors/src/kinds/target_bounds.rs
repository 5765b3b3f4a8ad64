use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "target-bounds",
    message: "IndexError: Target is out of bounds",
    known_by: &["IndexError: Target * is out of bounds", "Target * is out of bounds."],
    meaning: "A label is negative, or not below the number of classes of the model's output. Labels begin with 0. On a GPU the same mistake is a device-side assert.",
    place: "Print `y.min()`, `y.max()` and the last size of the model's output.",
    fix: &["Subtract 1 if your labels begin with 1.", "Make the last layer as wide as there are classes.", "Use `ignore_index=255` if 255 stands for \"no label\"."],
    chapters: &["08-asynchronous-execution.md"],
    run: Some(Run::Here),
    read: Some(target),
    ..Kind::NEW
};

fn target(pasted: &Pasted) -> Vec<String> {
    pasted.number("Target ").map_or(Vec::new(), |label| {
        vec![format!("A label is {label}. If that is a class, the last layer needs at least {} outputs.", label.saturating_add(1))]
    })
}
