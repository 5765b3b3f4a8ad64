use crate::Kind;

pub const KIND: Kind = Kind {
    id: "worker-error",
    message: "Caught an exception in a DataLoader worker process",
    known_by: &["Caught * in DataLoader worker process", "Caught * in replica * on device", "Caught * in pin memory thread for device"],
    follows: true,
    meaning: "An exception in a worker, or in the replica of a model, was handed on to the main process. The error itself is the one below `Original Traceback`.",
    place: "Read the last lines of the message, below `Original Traceback` or `Original error`: they name the line in the dataset or the model.",
    fix: &["Explain that error: paste the part below `Original Traceback`.", "Run once with `num_workers=0`: the exception then comes straight from its line, and a debugger stops there."],
    chapters: &["09-feeding-the-gpu.md"],
    ..Kind::NEW
};
