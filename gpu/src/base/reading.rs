//! Readings of a GPU monitor.

/// A monitor's readings of a GPU (`monitor::gpu` of `todevice`). Unreported values are `None`, `N/A` in `nvidia-smi`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gpu {
    /// CUDA's index. `nvidia-smi` may have another one, in the order of the PCI bus.
    pub index: usize,
    pub name: String,
    /// The address on the PCI bus. `None` for a simulated GPU.
    pub bus_id: Option<String>,
    /// Target speed in percent of the maximum. `None` without a fan.
    pub fan_speed: Option<u32>,
    /// In degrees Celsius. `None` for a simulated GPU.
    pub temperature: Option<u32>,
    /// From 0 (fastest) to 12 (slowest): the 8 of P8.
    pub performance_state: Option<u32>,
    /// In milliwatts.
    pub power_draw: Option<u32>,
    /// In milliwatts.
    pub power_limit: Option<u32>,
    pub memory_used: u64,
    pub memory_total: u64,
    /// Percent of the last sample period with at least one running kernel, however small.
    pub utilization: Option<u32>,
    /// Percent of the last sample period with reads or writes of the GPU's memory.
    pub memory_utilization: Option<u32>,
    /// Bytes per second over the PCI bus.
    pub pcie_to_device: Option<u64>,
    pub pcie_to_host: Option<u64>,
    /// Percent of multiprocessors with work, averaged over the sample period: DCGM's `SM_ACTIVE`. Simulated GPUs only.
    pub sm_active: Option<u32>,
    /// Resident threads in percent of the maximum, averaged over the sample period: DCGM's `SM_OCCUPANCY`.
    pub sm_occupancy: Option<u32>,
    /// Whether the driver stays loaded while the GPU is unused. Linux only.
    pub persistence_mode: Option<bool>,
    /// Whether a display shows its output.
    pub display_active: Option<bool>,
    /// Uncorrectable memory errors since the driver was loaded. `None` without error correction.
    pub ecc_errors: Option<u64>,
    pub compute_mode: Option<ComputeMode>,
    /// Whether it may be partitioned (Multi-Instance GPU).
    pub mig_mode: Option<bool>,
    pub processes: Vec<GpuProcess>,
}

/// The versions above `nvidia-smi`'s table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Versions {
    /// The version of NVML and `nvidia-smi`.
    pub nvml: Option<String>,
    /// The kernel driver's version.
    pub driver: Option<String>,
    /// The newest CUDA version that the driver supports.
    pub cuda: Option<String>,
}

/// The programs that may use a GPU: `nvidia-smi`'s column `Compute M.`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeMode {
    /// Any program.
    Default,
    /// A single thread. Deprecated.
    ExclusiveThread,
    /// No program.
    Prohibited,
    /// One program.
    ExclusiveProcess,
}

impl ComputeMode {
    pub fn words(self) -> &'static str {
        match self {
            ComputeMode::Default => "Default",
            ComputeMode::ExclusiveThread => "E. Thread",
            ComputeMode::Prohibited => "Prohibited",
            ComputeMode::ExclusiveProcess => "E. Process",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuProcess {
    /// In a container, it may differ from NVML's.
    pub pid: u32,
    /// The executable, if known.
    pub name: String,
    pub kind: ProcessKind,
    /// Bytes. `None` on Windows, where the operating system manages the memory.
    pub used_memory: Option<u64>,
    pub is_this: bool,
}

/// A process's use of a GPU: `nvidia-smi`'s column `Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessKind {
    Compute,
    Graphics,
    Both,
}

impl ProcessKind {
    pub fn letters(self) -> &'static str {
        match self {
            ProcessKind::Compute => "C",
            ProcessKind::Graphics => "G",
            ProcessKind::Both => "C+G",
        }
    }
}
