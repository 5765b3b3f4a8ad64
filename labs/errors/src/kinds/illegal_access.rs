use crate::Kind;

pub const KIND: Kind = Kind {
    id: "illegal-access",
    message: "CUDA error: an illegal memory access was encountered",
    known_by: &["an illegal memory access was encountered", "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress", "CUDA error: misaligned address", "CUDA error: unspecified launch failure"],
    caused_by: &["device-assert"],
    meaning: "A kernel read or wrote memory that is not its own. PyTorch's own kernels check their indices, so look first at extensions, at Triton and CUDA code of your own, and at tensors that were freed while another stream still used them.",
    place: "The line in the traceback is where the host noticed. Run with `CUDA_LAUNCH_BLOCKING=1` for the right line, or under `compute-sanitizer python train.py`, which names the kernel and the address.",
    fix: &["Update, or leave out, the extension whose kernel the sanitizer names.", "Pass contiguous tensors of the expected type and device to your own kernels, and select the tensor's GPU first: `with torch.cuda.device_of(x)`.", "Call `record_stream` on tensors that a second stream uses.", "If it comes at random in plain PyTorch, test another GPU: overclocked or faulty memory does this too."],
    chapters: &["08-asynchronous-execution.md"],
    ..Kind::NEW
};
