use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "fork",
    message: "Cannot re-initialize CUDA in forked subprocess",
    known_by: &["Cannot re-initialize CUDA in forked subprocess"],
    meaning: "A process used CUDA and then forked, and the child wants to use CUDA as well. CUDA does not survive a fork. The children are usually the workers of a `DataLoader`, or those of a server or of `multiprocessing`.",
    place: "The traceback shows which line of the child touches the GPU: look in `__getitem__`, `collate_fn` and in what the dataset holds.",
    fix: &["Keep CUDA out of the dataset: let workers return CPU tensors, and move the batch in the training loop. That is the real cure, and faster too.", "Let the parent not touch CUDA before it starts its children; a server should load the model after the fork.", "Only if children must use the GPU, start them with `spawn`, under `if __name__ == '__main__':`."],
    chapters: &["09-feeding-the-gpu.md"],
    run: Some(Run::Lab { number: "09", section: "6", run: "t4", flags: "--gpu sim:t4" }),
    ..Kind::NEW
};
