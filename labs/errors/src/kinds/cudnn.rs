use crate::Kind;

pub const KIND: Kind = Kind {
    id: "cudnn",
    message: "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
    known_by: &["CUDNN_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_INTERNAL_ERROR", "CUDNN_STATUS_EXECUTION_FAILED", "CUDNN_STATUS_ALLOC_FAILED"],
    caused_by: &["device-assert", "illegal-access"],
    meaning: "cuDNN could not start or could not finish its work. Most often the GPU's memory is full: cuDNN needs some that is not PyTorch's. Otherwise an earlier kernel has failed, or two versions of cuDNN are in the way of each other.",
    place: "Look at `nvidia-smi` just before the line. Run once with `CUDA_LAUNCH_BLOCKING=1`: if another line fails then, that one is to blame. Run once with `torch.backends.cudnn.enabled = False`: if it works, it is cuDNN.",
    fix: &["Use a smaller batch, or end other programs on the GPU.", "Take a cuDNN of your own out of `LD_LIBRARY_PATH`; PyTorch brings its own.", "Update the driver if it is older than PyTorch's CUDA."],
    chapters: &["07-cudnn.md", "04a-when-memory-is-full.md"],
    ..Kind::NEW
};
