//! `torch.cuda`: the GPUs of the machine, real or simulated.

pub use crate::gpu::*;
pub use crate::monitor::{
    device_memory_used, list_gpu_processes, memory_usage, power_draw, temperature, utilization,
};
pub use crate::ops::compiled::{
    CompiledKernel, Dim3, KernelArgument, KernelArguments, compile_kernel, set_kernel_interpreter,
};
#[doc(hidden)]
pub use crate::ops::registry::{kernel_signatures, kernel_sources, operations};
pub use crate::rng_state::{
    cuda_manual_seed as manual_seed, cuda_manual_seed_all as manual_seed_all,
    get_cuda_rng_state as get_rng_state, get_rng_state_all, set_cuda_rng_state as set_rng_state,
    set_rng_state_all,
};
