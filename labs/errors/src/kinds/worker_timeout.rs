use crate::Kind;

pub const KIND: Kind = Kind {
    id: "worker-timeout",
    message: "DataLoader timed out after … seconds",
    known_by: &["DataLoader timed out after"],
    meaning: "No batch came within the `timeout` that the loader was given. The workers are slow, or they wait for something that never comes.",
    place: "Time one `dataset[0]` in the main process. If that is fast, a worker hangs: a lock that was held during the fork, a file system that does not answer, or threads of OpenCV.",
    fix: &["Raise `timeout`, or use more workers, if a batch is only slow.", "Open files and connections in the worker, not before it starts.", "Try `cv2.setNumThreads(0)`, or `multiprocessing_context='spawn'`."],
    chapters: &["09-feeding-the-gpu.md"],
    ..Kind::NEW
};
