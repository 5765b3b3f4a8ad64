//! Properties of a GPU.

/// The properties of a device (`torch.cuda.get_device_properties`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProperties {
    /// `Tesla T4`; the name of a simulated one is marked: `Tesla T4 (simulated)`.
    pub name: String,
    /// Compute capability: 7 of 7.5.
    pub major: u32,
    /// Compute capability: 5 of 7.5.
    pub minor: u32,
    /// Bytes of memory.
    pub total_memory: u64,
    /// Streaming multiprocessors.
    pub multi_processor_count: u32,
    /// Threads that execute in lockstep.
    pub warp_size: u32,
    /// Maximum threads per block.
    pub max_threads_per_block: u32,
    /// Maximum threads resident on a multiprocessor.
    pub max_threads_per_multi_processor: u32,
    /// Size of the L2 cache in bytes.
    pub l2_cache_size: u64,
    /// The highest clock in kHz.
    pub clock_rate: u32,
}
