use crate::numbers::is_shape;
use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "inplace",
    message: "one of the variables needed for gradient computation has been modified by an inplace operation",
    known_by: &["one of the variables needed for gradient computation has been modified by an inplace operation"],
    meaning: "The backward pass needs a value as it was in the forward pass, and something has overwritten it since: `+=`, an operation with an underscore, a write to `x[...]`, or an optimizer's step between forward and backward.",
    place: "The message names the type and size of the tensor, and the operation that made it. `torch.autograd.set_detect_anomaly(True)` adds the traceback of the forward line that needed the value. The line that overwrote it comes after that one.",
    fix: &["Use the version that makes a new tensor: `x = x + 1`, not `x += 1`; `relu(x)`, not `relu_(x)`; `nn.ReLU()` without `inplace=True`.", "Call all `backward()` before the optimizer's `step()`: with two optimizers, as in a GAN, this is the usual cause.", "`clone()` the tensor before you write to it."],
    chapters: &[],
    run: Some(Run::Here),
    read: Some(overwritten),
    ..Kind::NEW
};

fn overwritten(pasted: &Pasted) -> Vec<String> {
    let Some(what) = pasted.between("inplace operation: [", "] is at version").or_else(|| pasted.between("inplace operation: [", "], which is")) else {
        return Vec::new();
    };
    let (kind, shape) = what.split_once(' ').unwrap_or((what, ""));
    if !is_shape(shape) {
        return Vec::new();
    }
    let place = if kind.contains("cuda") { "a GPU" } else { "the CPU" };
    let made = match pasted.between("which is output ", ", is at version").and_then(|made| made.split_once(" of ")) {
        // The backward pass of a layer sees its weight through a view.
        Some((_, "TBackward0" | "AsStridedBackward0")) => " It is a view of another tensor, often of a layer's weight.".to_owned(),
        Some((_, function)) => format!(" It is the result of `{}`.", function.trim_end_matches("Backward0")),
        None if pasted.says("]] is at version") => " It is a parameter or another leaf.".to_owned(),
        None => String::new(),
    };
    let versions = match (pasted.number("is at version "), pasted.number("expected version ")) {
        (Some(now), Some(then)) if now > then => {
            let times = if now - then == 1 { "once".to_owned() } else { format!("{} times", now - then) };
            format!(" It was overwritten {times} since the forward pass used it.")
        }
        _ => String::new(),
    };
    vec![format!("The tensor has the size {shape} and the type `{kind}`, and is on {place}.{made}{versions}")]
}
