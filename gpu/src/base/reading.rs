//! What a monitor reads off a GPU.

/// What a monitor says of a GPU (`monitor::gpu` of `todevice`). What the card, its driver or the operating system does not
/// tell is `None`, where `nvidia-smi` prints `N/A`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gpu {
    /// CUDA's number of it. `nvidia-smi` may have another: it counts by the place on the PCI bus.
    pub index: usize,
    /// `Tesla T4`; a simulated one says so: `Tesla T4 (simulated)`.
    pub name: String,
    /// The place on the PCI bus; a simulated GPU has none.
    pub bus_id: Option<String>,
    /// Percent of the highest speed that the fan is meant to have; a card without a fan has none.
    pub fan_speed: Option<u32>,
    /// In degrees Celsius; a simulated GPU has none.
    pub temperature: Option<u32>,
    /// From 0, the fastest, to 12, the slowest: the 8 of P8.
    pub performance_state: Option<u32>,
    /// In milliwatts.
    pub power_draw: Option<u32>,
    /// The most it may draw, in milliwatts.
    pub power_limit: Option<u32>,
    /// Bytes in use, whoever uses them.
    pub memory_used: u64,
    /// Bytes there are.
    pub memory_total: u64,
    /// Percent of the last sample period in which at least one kernel ran. (How much of the GPU it kept busy counts
    /// for nothing.)
    pub utilization: Option<u32>,
    /// Percent of the last sample period in which the GPU's memory was read or written. (How full the memory is counts
    /// for nothing.)
    pub memory_utilization: Option<u32>,
    /// Bytes a second that came from the host, over the PCI bus.
    pub pcie_to_device: Option<u64>,
    /// Bytes a second that went to the host.
    pub pcie_to_host: Option<u64>,
    /// Percent of the multiprocessors that had work, averaged over the sample period: `SM_ACTIVE` of NVIDIA's DCGM.
    /// `nvidia-smi`'s table does not have it, and here only a simulated GPU does.
    pub sm_active: Option<u32>,
    /// Percent of the threads that the GPU can hold that it held, averaged over the sample period: `SM_OCCUPANCY` of
    /// DCGM.
    pub sm_occupancy: Option<u32>,
    /// Whether its driver stays loaded while nobody uses it, which only Linux can be asked for.
    pub persistence_mode: Option<bool>,
    /// Whether a screen shows what it draws.
    pub display_active: Option<bool>,
    /// Memory errors since the driver was loaded that could not be corrected. A card that corrects none counts none.
    pub ecc_errors: Option<u64>,
    /// Who may use it.
    pub compute_mode: Option<ComputeMode>,
    /// Whether it may be divided into several (Multi-Instance GPU).
    pub mig_mode: Option<bool>,
    /// Who holds memory of it.
    pub processes: Vec<GpuProcess>,
}

/// The versions that `nvidia-smi` prints above its table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Versions {
    /// Of NVML, which is also that of `nvidia-smi`.
    pub nvml: Option<String>,
    /// Of the driver in the kernel.
    pub driver: Option<String>,
    /// The newest CUDA that the driver can run.
    pub cuda: Option<String>,
}

/// Who may use a GPU: `nvidia-smi`'s column `Compute M.`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeMode {
    /// Any program.
    Default,
    /// One thread; long out of use.
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
    /// The operating system's number of it. (Within a container that may be another one than NVML's.)
    pub pid: u32,
    /// Its program, where that may be known.
    pub name: String,
    /// What it uses the GPU for.
    pub kind: ProcessKind,
    /// Bytes; unknown on Windows, where the operating system has the memory in hand.
    pub used_memory: Option<u64>,
    /// Whether it is this program.
    pub is_this: bool,
}

/// What a process uses a GPU for: `nvidia-smi`'s column `Type`.
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
