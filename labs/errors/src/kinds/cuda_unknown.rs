use crate::Kind;

pub const KIND: Kind = Kind {
    id: "cuda-unknown",
    message: "CUDA initialization: CUDA unknown error",
    known_by: &["CUDA initialization: CUDA unknown error", "CUDA unknown error - this may be due to an incorrectly set up environment", "CUDA driver error: unknown error", "CUDA error: unknown error", "CUDA_ERROR_UNKNOWN"],
    meaning: "The driver could not be started, and gives no reason. After a laptop has slept it is usually the module `nvidia_uvm`, which did not wake up again.",
    place: "If `nvidia-smi` works and every CUDA program fails, it is the system. If only yours fails, look for code that changes `CUDA_VISIBLE_DEVICES` after the first use of the GPU.",
    fix: &["Load the module again, `sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm`, or restart the computer.", "Set `CUDA_VISIBLE_DEVICES` before Python starts, or before the first `import torch`.", "In a container or a notebook, restart it."],
    chapters: &["00-setup.md"],
    ..Kind::NEW
};
