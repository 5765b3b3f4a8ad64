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
    let list = pasted.words.rsplit_once("did not receive grad for rank ").and_then(|(_, rest)| rest.split_once(": ")).map(|(_, list)| list);
    let numbers: Vec<&str> = list.map_or(Vec::new(), |list| list.split(' ').map_while(|word| word.parse::<u32>().ok().map(|_| word)).collect());
    match (rank, numbers.len()) {
        (Some(rank), 1..) => vec![format!(
            "On rank {rank}, {} had no gradient. They are counted as in `list(model.named_parameters())`.",
            if numbers.len() == 1 { format!("parameter {}", numbers[0]) } else { format!("parameters {}", crate::and(&numbers)) }
        )],
        _ => Vec::new(),
    }
}
