//! What a GPU is.

/// What a device is (`torch.cuda.get_device_properties`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProperties {
    /// `Tesla T4`; a simulated one says so: `Tesla T4 (simulated)`.
    pub name: String,
    /// Compute capability: 7 of 7.5.
    pub major: u32,
    /// Compute capability: 5 of 7.5.
    pub minor: u32,
    /// Bytes of memory.
    pub total_memory: u64,
    /// Streaming multiprocessors.
    pub multi_processor_count: u32,
    /// Threads that run in step.
    pub warp_size: u32,
    /// The most threads of a block.
    pub max_threads_per_block: u32,
    /// The most threads a multiprocessor holds at a time.
    pub max_threads_per_multi_processor: u32,
    /// Bytes of the second-level cache.
    pub l2_cache_size: u64,
    /// The highest clock in kHz.
    pub clock_rate: u32,
}
