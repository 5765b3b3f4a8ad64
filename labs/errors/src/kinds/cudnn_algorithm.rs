use crate::Kind;

pub const KIND: Kind = Kind {
    id: "cudnn-algorithm",
    message: "Unable to find a valid cuDNN algorithm to run convolution",
    known_by: &["Unable to find a valid cuDNN algorithm to run convolution", "unable to find an engine to execute this computation", "No execution plans support the graph"],
    meaning: "cuDNN tried its algorithms for this convolution, and none could run. As a rule each of them wanted more memory than was free. It can also be a type that the card does not support, such as bfloat16 on an old one.",
    place: "Print the input's size and type at the convolution, and `memory_allocated()`. If half the batch works, it is the memory.",
    fix: &["Halve the batch.", "Turn `torch.backends.cudnn.benchmark` off while you look for the cause: it tries algorithms that need much memory.", "Check that input and weight have the same type, and that the card supports it."],
    chapters: &["07-cudnn.md", "04a-when-memory-is-full.md"],
    ..Kind::NEW
};
