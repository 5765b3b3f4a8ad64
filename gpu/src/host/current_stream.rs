//! The current streams of a thread.

use crate::base::device::MachineId;
use crate::base::handles::StreamId;
use crate::host::thread::{OfThread, Part, Restore, ThreadContext};

/// A stream's identity across machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKey {
    pub machine: MachineId,
    pub id: StreamId,
}

/// The current streams that are not default streams.
pub type Streams = Vec<StreamKey>;

#[inline]
pub fn current(machine: MachineId, device: usize) -> StreamId {
    ThreadContext::read(|context| find(&context.streams, machine, device))
}

#[inline]
pub fn find(streams: &Streams, machine: MachineId, device: usize) -> StreamId {
    let of_device = |key: &&StreamKey| key.machine == machine && key.id.device == device;
    streams.iter().find(of_device).map_or(StreamId::default_of(device), |key| key.id)
}

pub fn snapshot() -> Streams {
    ThreadContext::read(|context| context.streams.clone())
}

/// Makes a stream current until the guard is dropped.
pub fn enter(key: StreamKey) -> Restore<Streams> {
    let mut streams = snapshot();
    streams.retain(|other| other.machine != key.machine || other.id.device != key.id.device);
    if key.id.number != 0 {
        streams.push(key);
    }
    streams.enter()
}
