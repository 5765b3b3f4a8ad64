use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "second-backward",
    message: "Trying to backward through the graph a second time",
    known_by: &["Trying to backward through the graph a second time"],
    meaning: "The first `backward()` freed what the graph had saved, and this one leads through a part of it again. In a loop, a tensor of the previous step usually takes part in this one: a hidden state, a running loss, a cached output.",
    place: "It fails in the second step, not in the first. Search the loop for a tensor that is made before it, or kept between steps, and that requires a gradient.",
    fix: &["`detach()` what goes from one step to the next: `hidden = hidden.detach()`.", "Add up numbers, not losses: `total += loss.item()`.", "Add two losses of one graph up first, and call `backward()` once. `retain_graph=True` is right only if you really want two passes: it keeps the memory, and in a loop it only moves the error."],
    chapters: &["04-memory.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
