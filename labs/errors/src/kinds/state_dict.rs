use crate::numbers::is_shape;
use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "state-dict",
    message: "Error(s) in loading state_dict: Missing key(s), Unexpected key(s), size mismatch",
    known_by: &["Error(s) in loading state_dict for", "Error(s) in reparametrizing for", "Missing key(s) in state_dict:", "Unexpected key(s) in state_dict:", "copying a param with shape", "While copying the parameter named * expected torch.Tensor", "Expected state_dict to be dict-like"],
    meaning: "The names or sizes in the file are not those of the model: it was saved from another model, from another version of it, or with a wrapper around it. `Expected state_dict to be dict-like` means that it is no state dict at all.",
    place: "Compare `list(state)[:5]` with `list(model.state_dict())[:5]`. A prefix that all names share comes from a wrapper: `module.` from DataParallel and DDP, `_orig_mod.` from `torch.compile`.",
    fix: &["Take the prefix off: `{k.removeprefix('module.'): v for k, v in state.items()}`; or save `model.module.state_dict()`.", "If the file holds several things, load the right one: `load_state_dict(checkpoint['model'])`. If it is a whole model, load `model.state_dict()`.", "Make the model with the sizes that it was saved with.", "`strict=False` leaves missing weights as they were at first: print what it returns, and use it only if that is what you want."],
    chapters: &["11-checkpoints.md"],
    run: Some(Run::Lab { number: "11", section: "3", run: "none", flags: "--gpu none" }),
    read: Some(keys),
    ..Kind::NEW
};

fn keys(pasted: &Pasted) -> Vec<String> {
    let mut said = Vec::new();
    for (prefix, whose) in [("module.", "DataParallel or DDP"), ("_orig_mod.", "`torch.compile`")] {
        let has = |part: &str| pasted.squeezed.contains(&format!("{part}key(s)instate_dict:{prefix}"));
        if has("unexpected") {
            said.push(format!("The names in the file begin with `{prefix}`: it was saved with {whose} around the model. Take the prefix off."));
        } else if has("missing") && pasted.says("Unexpected key(s)") {
            said.push(format!("Your model has {whose} around it, and the file was saved without: load it into the model inside, before you wrap it."));
        }
    }
    if let (Some(file), Some(model)) =
        (pasted.between("param with shape torch.Size(", ") from checkpoint"), pasted.between("shape in current model is torch.Size(", ")"))
        && is_shape(file)
        && is_shape(model)
    {
        said.push(format!("In the file, a tensor has the shape {file}, and in the model {model}."));
    }
    said
}
