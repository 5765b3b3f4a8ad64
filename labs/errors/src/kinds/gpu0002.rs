use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "gpu0002",
    code: Some("GPU0002"),
    message: "CUDA out of memory",
    known_by: &["out of memory. Tried to allocate", "OutOfMemoryError: CUDA out of memory", "RuntimeError: CUDA out of memory", "OutOfMemoryError: HIP out of memory", "RuntimeError: HIP out of memory", "Tried to allocate * total capacity", "CUDA error: out of memory", "CUDA driver error: out of memory", "OutOfMemoryError: Allocation on device", "cuda runtime error (2) : out of memory", "MPS backend out of memory", "CUDA_ERROR_OUT_OF_MEMORY", "[GPU0002]"],
    meaning: "Your program asked for a piece of the GPU's memory, and there was none that large left. If the message says `Tried to allocate`, it comes after a last try: by then, the allocator has given back every segment that was wholly free, so `empty_cache()` before the line does not help. A plain `CUDA error: out of memory` comes from the driver, often because another program has filled the GPU before yours begins.",
    place: "The line that failed is where the last straw was added, and often not where the memory went. Print `memory_allocated()` after each step: if it grows from step to step, something is kept that should not be; if the first step fails, the batch or the model is too large.",
    fix: &["Halve the batch, and add up the gradients of several batches if you need the larger one.", "Evaluate under `no_grad`, and keep `loss.item()` instead of the loss.", "Use mixed precision or checkpointing for what the backward pass keeps.", "Look for other programs on the same GPU: with `nvidia-smi`, or in Activity Monitor on a Mac."],
    chapters: &["04a-when-memory-is-full.md"],
    run: Some(Run::Lab { number: "04", section: "6", run: "small", flags: "--gpu sim:t4,mem=512MiB" }),
    read: Some(crate::memory::sentences),
    ..Kind::NEW
};
