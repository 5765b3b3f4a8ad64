//! Readings of a GPU monitor.

/// A monitor's readings of a GPU (`monitor::gpu` of `todevice`). Values that the card, its driver or the operating
/// system does not report are `None`, where `nvidia-smi` prints `N/A`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gpu {
    /// CUDA's index. That of `nvidia-smi` may differ: it follows the order on the PCI bus.
    pub index: usize,
    /// `Tesla T4`; the name of a simulated one is marked: `Tesla T4 (simulated)`.
    pub name: String,
    /// The address on the PCI bus; `None` for a simulated GPU.
    pub bus_id: Option<String>,
    /// Target fan speed in percent of the maximum; `None` for a card without a fan.
    pub fan_speed: Option<u32>,
    /// In degrees Celsius; `None` for a simulated GPU.
    pub temperature: Option<u32>,
    /// From 0, the fastest, to 12, the slowest: the 8 of P8.
    pub performance_state: Option<u32>,
    /// In milliwatts.
    pub power_draw: Option<u32>,
    /// The power limit in milliwatts.
    pub power_limit: Option<u32>,
    /// Bytes in use, by any process.
    pub memory_used: u64,
    /// Total bytes.
    pub memory_total: u64,
    /// Percent of the last sample period during which at least one kernel ran, however little of the GPU it used.
    pub utilization: Option<u32>,
    /// Percent of the last sample period during which the GPU's memory was read or written, however full it is.
    pub memory_utilization: Option<u32>,
    /// Bytes per second from the host, over the PCI bus.
    pub pcie_to_device: Option<u64>,
    /// Bytes per second to the host.
    pub pcie_to_host: Option<u64>,
    /// Percent of the multiprocessors that had work, averaged over the sample period: `SM_ACTIVE` of NVIDIA's DCGM.
    /// `nvidia-smi`'s table does not show it, and here only a simulated GPU reports it.
    pub sm_active: Option<u32>,
    /// Resident threads in percent of the GPU's maximum, averaged over the sample period: `SM_OCCUPANCY` of DCGM.
    pub sm_occupancy: Option<u32>,
    /// Whether the driver stays loaded while nobody uses the GPU, which is available on Linux only.
    pub persistence_mode: Option<bool>,
    /// Whether a display shows its output.
    pub display_active: Option<bool>,
    /// Uncorrectable memory errors since the driver was loaded. `None` for a card without error correction.
    pub ecc_errors: Option<u64>,
    /// Which programs may use it.
    pub compute_mode: Option<ComputeMode>,
    /// Whether it may be partitioned into several GPUs (Multi-Instance GPU).
    pub mig_mode: Option<bool>,
    /// The processes that hold its memory.
    pub processes: Vec<GpuProcess>,
}

/// The versions that `nvidia-smi` prints above its table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Versions {
    /// The version of NVML, which is also that of `nvidia-smi`.
    pub nvml: Option<String>,
    /// The version of the kernel driver.
    pub driver: Option<String>,
    /// The newest version of CUDA that the driver supports.
    pub cuda: Option<String>,
}

/// Which programs may use a GPU: `nvidia-smi`'s column `Compute M.`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeMode {
    /// Any program.
    Default,
    /// A single thread; long deprecated.
    ExclusiveThread,
    /// No program.
    Prohibited,
    /// One program.
    ExclusiveProcess,
}

impl ComputeMode {
    /// As `nvidia-smi` writes it.
    pub fn words(self) -> &'static str {
        match self {
            ComputeMode::Default => "Default",
            ComputeMode::ExclusiveThread => "E. Thread",
            ComputeMode::Prohibited => "Prohibited",
            ComputeMode::ExclusiveProcess => "E. Process",
        }
    }
}

/// A process that holds memory of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuProcess {
    /// The operating system's process id. (Within a container it may differ from NVML's.)
    pub pid: u32,
    /// Its executable, if known.
    pub name: String,
    /// What it uses the GPU for.
    pub kind: ProcessKind,
    /// Bytes; `None` on Windows, where the operating system manages the memory.
    pub used_memory: Option<u64>,
    /// Whether it is this program.
    pub is_this: bool,
}

/// How a process uses a GPU: `nvidia-smi`'s column `Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessKind {
    /// `C`
    Compute,
    /// `G`
    Graphics,
    /// `C+G`
    Both,
}

impl ProcessKind {
    /// As `nvidia-smi` writes it.
    pub fn letters(self) -> &'static str {
        match self {
            ProcessKind::Compute => "C",
            ProcessKind::Graphics => "G",
            ProcessKind::Both => "C+G",
        }
    }
}
