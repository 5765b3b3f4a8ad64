use crate::text::BREAK;
use crate::{Kind, Pasted};

pub const KIND: Kind = Kind {
    id: "ddp-unused",
    message: "Expected to have finished reduction in the prior iteration before starting a new one",
    known_by: &["Expected to have finished reduction in the prior iteration before starting a new one"],
    meaning: "DDP waits until every parameter has a gradient, and in the last step some had none: the loss did not use them.",
    place: "The message lists the numbers of the parameters. `TORCH_DISTRIBUTED_DEBUG=DETAIL` adds their names. Look for branches in `forward` and for outputs that the loss leaves out.",
    fix: &["Let every output that is computed take part in the loss, or do not compute it.", "Freeze layers that are never trained before you wrap the model.", "If the path really differs from step to step, say `find_unused_parameters=True`: it costs a walk through the graph in each step."],
    chapters: &["10-many-gpus.md"],
    read: Some(indices),
    ..Kind::NEW
};

fn indices(pasted: &Pasted) -> Vec<String> {
    let rank = pasted.number("did not receive grad for rank ");
    let list = pasted.words.rsplit_once("did not receive grad for rank ").and_then(|(_, rest)| rest.split_once(": ")).map_or("", |(_, list)| list);
    let end = list.find(|letter: char| !letter.is_ascii_digit() && letter != ' ').unwrap_or(list.len());
    // Digits after a line break may belong to the same number, and digits after `-` or `:` to a log's date.
    if list[end..].strip_prefix([BREAK, '-', ':']).is_some_and(|next| next.starts_with(|letter: char| letter.is_ascii_digit())) {
        return Vec::new();
    }
    let numbers: Vec<&str> = list[..end].split_whitespace().collect();
    match (rank, numbers.len()) {
        (Some(rank), 1..) => vec![format!(
            "On rank {rank}, {} had no gradient. They are counted in `[name for name, p in model.named_parameters() if p.requires_grad]`.",
            if numbers.len() == 1 { format!("parameter {}", numbers[0]) } else { format!("parameters {}", crate::and(&numbers)) }
        )],
        _ => Vec::new(),
    }
}
