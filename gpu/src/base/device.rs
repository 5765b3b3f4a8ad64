//! Where a tensor lives.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// Tells machines apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MachineId(u32);

impl MachineId {
    /// One that no machine had before.
    pub fn next() -> MachineId {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        MachineId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The CPU or one CUDA device (`torch.device`).
///
/// Two CUDA devices are equal when they are of one machine and have the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// The host.
    #[default]
    Cpu,
    /// An NVIDIA GPU, real or simulated.
    Cuda {
        /// Which one of its machine, counted from 0.
        index: usize,
        /// The machine it belongs to.
        machine: MachineId,
    },
}

/// A sort of devices (`device.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceType {
    /// The host.
    Cpu,
    /// NVIDIA GPUs.
    Cuda,
}

impl DeviceType {
    /// What PyTorch calls it.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceType::Cpu => "cpu",
            DeviceType::Cuda => "cuda",
        }
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Device {
    /// Whether this is a CUDA device (`device.type == "cuda"`).
    #[inline]
    pub const fn is_cuda(self) -> bool {
        matches!(self, Device::Cuda { .. })
    }

    /// What sort of device it is (`device.type`).
    #[inline]
    pub const fn device_type(self) -> DeviceType {
        if self.is_cuda() { DeviceType::Cuda } else { DeviceType::Cpu }
    }

    /// What it is called without its index.
    pub const fn kind(self) -> &'static str {
        self.device_type().name()
    }

    /// Which one of its kind it is; the CPU is one.
    pub const fn index(self) -> usize {
        match self {
            Device::Cpu => 0,
            Device::Cuda { index, .. } => index,
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda { index, .. } => write!(f, "cuda:{index}"),
        }
    }
}
