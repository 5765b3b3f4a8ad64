use crate::{Kind, Pasted};

pub const KIND: Kind = Kind {
    id: "duplicate-gpu",
    message: "Duplicate GPU detected",
    known_by: &["Duplicate GPU detected"],
    meaning: "Two ranks want to use the same GPU, and NCCL refuses that.",
    place: "The message names both ranks. Print `LOCAL_RANK` and `torch.cuda.current_device()` in each.",
    fix: &["Select the rank's own GPU before anything else: `torch.cuda.set_device(int(os.environ['LOCAL_RANK']))`.", "Start no more ranks than there are GPUs."],
    chapters: &["10-many-gpus.md"],
    read: Some(ranks),
    ..Kind::NEW
};

fn ranks(pasted: &Pasted) -> Vec<String> {
    match (pasted.number("detected : rank "), pasted.number("and rank ")) {
        (Some(one), Some(other)) => vec![format!("Ranks {one} and {other} use the same GPU.")],
        _ => Vec::new(),
    }
}
