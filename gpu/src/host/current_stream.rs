//! The current streams of a thread.

use crate::base::device::{MachineId, StreamId};
use crate::host::thread::{OfThread, Part, Restore, ThreadContext};

/// The full name of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKey {
    pub machine: MachineId,
    pub id: StreamId,
}

/// The current streams that are not default streams.
pub type Streams = Vec<StreamKey>;

/// This thread's current stream on a device.
#[inline]
pub fn current(machine: MachineId, device: usize) -> StreamId {
    ThreadContext::read(|context| find(&context.streams, machine, device))
}

/// The current stream of a snapshot.
#[inline]
pub fn find(streams: &Streams, machine: MachineId, device: usize) -> StreamId {
    let of_device = |key: &&StreamKey| key.machine == machine && key.id.device == device;
    streams.iter().find(of_device).map_or(StreamId::default_of(device), |key| key.id)
}

/// All current streams of this thread.
pub fn snapshot() -> Streams {
    ThreadContext::read(|context| context.streams.clone())
}

/// Makes a stream the current one of its device until the guard is dropped.
pub fn enter(key: StreamKey) -> Restore<Streams> {
    let mut streams = snapshot();
    streams.retain(|other| other.machine != key.machine || other.id.device != key.id.device);
    if key.id.number != 0 {
        streams.push(key);
    }
    streams.enter()
}

/// Makes the streams of a snapshot the current ones until the guard is dropped.
pub fn enter_all(streams: Streams) -> Restore<Streams> {
    streams.enter()
}
