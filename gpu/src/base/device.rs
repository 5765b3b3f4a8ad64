//! Devices, and the handles of their memory, streams, events and work.

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

/// An address in the memory of a device (`CUdeviceptr`). 0 is the null address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevicePtr(pub u64);

/// An address in page-locked host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PinnedPtr(pub u64);

/// A queue of work on a device (`CUstream`). Number 0 is the device's legacy default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    pub device: usize,
    pub number: u32,
}

impl StreamId {
    #[inline]
    pub const fn default_of(device: usize) -> StreamId {
        StreamId { device, number: 0 }
    }

    /// Returns the current stream of a device.
    #[inline]
    pub fn current_in(streams: &Streams, machine: MachineId, device: usize) -> StreamId {
        let of_device = |key: &&StreamKey| key.machine == machine && key.id.device == device;
        streams.iter().find(of_device).map_or(StreamId::default_of(device), |key| key.id)
    }
}

/// A stream's identity across machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKey {
    pub machine: MachineId,
    pub id: StreamId,
}

/// The current streams of a thread that are not default streams.
pub type Streams = Vec<StreamKey>;

/// A point in a stream (`CUevent`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId(pub u64);

/// The number of a piece of work, in the order of queuing, from 0 or from a rank's first number. Spans refer to it.
pub type OpId = u64;
