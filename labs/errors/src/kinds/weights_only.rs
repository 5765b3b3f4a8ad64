use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "weights-only",
    message: "Weights only load failed",
    known_by: &["Weights only load failed", "WeightsUnpickler error", "which this crate does not support: convert it in PyTorch"],
    meaning: "Since PyTorch 2.6, `torch.load` reads tensors and plain values only, because a pickle can run any code. The file has something else in it: a whole model, a configuration object, or it is damaged or no checkpoint at all.",
    place: "The end of the message names the class, after `GLOBAL`. `Unsupported operand` often means that the file is not what it seems: look at its size, and at its first bytes. A web page or a Git LFS pointer is a common one. `Unsupported operand 149` is a pickle of protocol 4 or later: the file may be sound, but was not written with the defaults of `torch.save`.",
    fix: &["If you trust the file and the class is yours, allow it: `torch.serialization.add_safe_globals([TheClass])`.", "Save `model.state_dict()` from now on, not the model.", "`weights_only=False` runs whatever is in the file: only for files that you made or trust.", "Download a damaged file again."],
    chapters: &["11-checkpoints.md"],
    run: Some(Run::Lab { number: "11", section: "3", run: "none", flags: "--gpu none" }),
    read: Some(global),
    ..Kind::NEW
};

fn global(pasted: &Pasted) -> Vec<String> {
    let name = pasted.word("GLOBAL ", " was not an allowed global").or_else(|| pasted.between("Unsupported class ", ""));
    match name {
        Some(name) => vec![format!("The file names `{name}`, which is not on the list of what may be loaded.")],
        None if pasted.says("Unsupported operand 149") => {
            vec!["The file has a pickle of protocol 4 or later, which `weights_only=True` does not read. If `torch.save` wrote it, `weights_only=False` does; if Python's `pickle` wrote it, `pickle.load` does. Both run whatever is in the file.".to_owned()]
        }
        None if pasted.number("Unsupported operand ").is_some() => {
            vec!["The file is probably no pickle of tensors: it is damaged, or something else under that name.".to_owned()]
        }
        None => Vec::new(),
    }
}
