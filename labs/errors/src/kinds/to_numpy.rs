use crate::Kind;

pub const KIND: Kind = Kind {
    id: "to-numpy",
    message: "can't convert cuda:0 device type tensor to numpy",
    known_by: &["can't convert * device type tensor to numpy", "can't convert CUDA tensor to numpy"],
    meaning: "NumPy works in the host's memory, and the tensor is on a GPU. PyTorch does not copy it for you, because such a copy waits for the GPU.",
    place: "The traceback ends where NumPy was asked: `x.numpy()`, `np.array(x)`, `np.mean(losses)`, a plot, or a metric of scikit-learn. A list of GPU tensors counts too.",
    fix: &["Copy it first: `x.detach().cpu().numpy()`.", "For a single number, `x.item()`.", "In a training loop, collect results on the GPU and copy once at the end."],
    chapters: &["01-devices.md", "08-asynchronous-execution.md"],
    ..Kind::NEW
};
