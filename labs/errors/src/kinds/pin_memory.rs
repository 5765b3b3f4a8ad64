use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "pin-memory",
    message: "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned",
    known_by: &["cannot pin * only dense CPU tensors can be pinned"],
    meaning: "Pinning keeps a piece of the host's memory where the GPU can fetch it. A tensor on a GPU has none. `torch.cuda.FloatTensor` is PyTorch's old name for the type \"float32 on a GPU\", so the message says that the tensor is there already.",
    place: "With `pin_memory=True` the loader pins each batch: look for `.to(device)` or `.cuda()` in `__getitem__` and `collate_fn`.",
    fix: &["Let the dataset return CPU tensors, and move the batch in the loop.", "If the whole dataset is on the GPU, leave `pin_memory` out.", "Turn a sparse tensor into a dense one first."],
    chapters: &["09-feeding-the-gpu.md"],
    run: Some(Run::Lab { number: "09", section: "6", run: "t4", flags: "--gpu sim:t4" }),
    ..Kind::NEW
};
