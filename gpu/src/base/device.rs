//! Devices: the CPU, and the GPUs of a machine.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MachineId(u32);

impl MachineId {
    pub fn next() -> MachineId {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        MachineId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The CPU or one CUDA device (`torch.device`). CUDA devices are equal if machine and index are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Device {
    #[default]
    Cpu,
    /// An NVIDIA GPU, real or simulated.
    Cuda {
        /// Counted from 0, within its machine.
        index: usize,
        machine: MachineId,
    },
}

/// A kind of device (`device.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceType {
    Cpu,
    Cuda,
}

impl DeviceType {
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
    #[inline]
    pub const fn is_cuda(self) -> bool {
        matches!(self, Device::Cuda { .. })
    }

    #[inline]
    pub const fn device_type(self) -> DeviceType {
        if self.is_cuda() { DeviceType::Cuda } else { DeviceType::Cpu }
    }

    /// The name without the index.
    pub const fn kind(self) -> &'static str {
        self.device_type().name()
    }

    /// The index among devices of its kind. 0 for the CPU.
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
