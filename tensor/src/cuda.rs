//! `torch.cuda`: the GPUs of the machine, real or simulated.

pub use crate::gpu::*;
pub use crate::monitor::{
    device_memory_used, list_gpu_processes, memory_usage, power_draw, temperature, utilization,
};
#[doc(hidden)]
pub use crate::ops::registry::{kernel_signatures, kernel_sources};
