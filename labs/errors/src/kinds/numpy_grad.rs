use crate::Kind;

pub const KIND: Kind = Kind {
    id: "numpy-grad",
    message: "Can't call numpy() on Tensor that requires grad",
    known_by: &["Can't call numpy() on Tensor that requires grad", "Can't call numpy() on Variable that requires grad"],
    meaning: "The tensor belongs to a graph. NumPy shares its memory and knows nothing of gradients, so PyTorch refuses.",
    place: "It is the output of a model, or a parameter. The traceback ends at `numpy()`, or in the plotting function that calls it.",
    fix: &["Use `x.detach().numpy()`, and `x.detach().cpu().numpy()` if it is on a GPU.", "Run what only evaluates under `torch.no_grad()`."],
    chapters: &[],
    ..Kind::NEW
};
