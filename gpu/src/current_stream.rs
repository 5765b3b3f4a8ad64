//! The streams that a thread queues its work on.

use std::cell::RefCell;

use crate::device::MachineId;
use crate::handles::StreamId;

/// A stream by its full name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKey {
    pub machine: MachineId,
    pub id: StreamId,
}

/// The current streams that are not the default ones.
pub type Streams = Vec<StreamKey>;

thread_local! {
    static CURRENT: RefCell<Streams> = const { RefCell::new(Vec::new()) };
}

/// The stream that this thread queues its work for a device on.
#[inline]
pub fn current(machine: MachineId, device: usize) -> StreamId {
    CURRENT.with_borrow(|streams| find(streams, machine, device))
}

/// The same of a snapshot.
#[inline]
pub fn find(streams: &Streams, machine: MachineId, device: usize) -> StreamId {
    let of_device = |key: &&StreamKey| key.machine == machine && key.id.device == device;
    streams.iter().find(of_device).map_or(StreamId::default_of(device), |key| key.id)
}

/// All current streams of this thread, for later.
pub fn snapshot() -> Streams {
    CURRENT.with_borrow(Clone::clone)
}

/// Makes those of a snapshot the current ones until the guard is dropped.
pub fn enter_all(streams: Streams) -> LeaveAll {
    LeaveAll(CURRENT.replace(streams))
}

/// Brings all streams before back, also when a panic passes through.
pub struct LeaveAll(Streams);

impl Drop for LeaveAll {
    fn drop(&mut self) {
        CURRENT.set(std::mem::take(&mut self.0));
    }
}

/// Makes a stream the current one of its device until the guard is dropped.
pub fn enter(key: StreamKey) -> Leave {
    Leave(StreamKey { id: replace(key), ..key })
}

/// Brings the stream before back, also when a panic passes through.
pub struct Leave(StreamKey);

impl Drop for Leave {
    fn drop(&mut self) {
        replace(self.0);
    }
}

fn replace(key: StreamKey) -> StreamId {
    CURRENT.with_borrow_mut(|streams| {
        let before = find(streams, key.machine, key.id.device);
        if before != key.id {
            streams.retain(|other| other.machine != key.machine || other.id.device != key.id.device);
            if key.id.number != 0 {
                streams.push(key);
            }
        }
        before
    })
}
