//! Handles of a driver's memory, streams, events and work.

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
}

/// A point in a stream (`CUevent`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId(pub u64);

/// The number of a piece of work, in the order of queuing, from 0 or from a rank's first number. Spans refer to it.
pub type OpId = u64;
