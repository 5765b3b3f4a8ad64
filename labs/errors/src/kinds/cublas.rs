use crate::Kind;

pub const KIND: Kind = Kind {
    id: "cublas",
    message: "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    known_by: &["CUBLAS_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED", "CUBLAS_STATUS_EXECUTION_FAILED", "CUBLAS_STATUS_INTERNAL_ERROR", "CUBLAS_STATUS_INVALID_VALUE", "CUBLAS_STATUS_NOT_SUPPORTED"],
    caused_by: &["device-assert", "illegal-access"],
    meaning: "cuBLAS, which multiplies matrices, could not do its work. With `ALLOC_FAILED` or `NOT_INITIALIZED` the GPU's memory is usually full. With `EXECUTION_FAILED` or `INTERNAL_ERROR`, an earlier kernel usually went wrong, such as an index out of range, and this is the first call that notices. `INVALID_VALUE` means that cuBLAS refuses an argument, usually because another version of cuBLAS is loaded than the one PyTorch brings, or, in older versions of PyTorch, because the sizes of the matrices do not fit. `NOT_SUPPORTED` means that this card or this cuBLAS has no such product, as a rule in bfloat16 or float8 on an older card.",
    place: "Run it once on the CPU, where a bad index is reported at its own line, or with `CUDA_LAUNCH_BLOCKING=1`. Check that labels are below the number of classes and token numbers below the size of the embedding.",
    fix: &["Use a smaller batch: if that helps, it was the memory.", "Correct the index that the run on the CPU names.", "If every matrix product fails, take other CUDA folders out of `LD_LIBRARY_PATH`, and update the driver."],
    chapters: &["04-memory.md", "08-asynchronous-execution.md"],
    ..Kind::NEW
};
