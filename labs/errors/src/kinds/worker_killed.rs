use crate::Kind;

pub const KIND: Kind = Kind {
    id: "worker-killed",
    message: "DataLoader worker is killed by signal: Killed",
    known_by: &["DataLoader worker (pid*is killed by signal: Killed", "DataLoader worker (pid*exited unexpectedly", "DataLoader worker (pid*is killed by signal: Segmentation fault", "DataLoader worker (pid*is killed by signal: Aborted", "DataLoader worker (pid*is killed by signal: Terminated"],
    meaning: "A worker process is gone, and could say nothing. `Killed` means that the system ended it, nearly always because the host's memory ran out, or the limit of the container or of the job. That is not the GPU's memory.",
    place: "`sudo dmesg | grep -i 'killed process'` confirms it. Watch the memory in `top` over an epoch. With `num_workers=0` a crash in your own code shows its traceback.",
    fix: &["Use fewer workers: each one has a copy of what it changes in the dataset, and batches of its own in advance.", "Keep large data in NumPy arrays, tensors or files, and not in Python lists: counting references copies their pages into each worker.", "Raise the memory limit of the container or the job.", "For a segmentation fault, look at the libraries that decode; `cv2.setNumThreads(0)` helps with OpenCV."],
    chapters: &["09-feeding-the-gpu.md"],
    ..Kind::NEW
};
