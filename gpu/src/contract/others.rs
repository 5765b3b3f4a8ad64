//! Work that several processes do together on shared devices, as seen by the driver of one of them. Who the others are,
//! and when they run, is not known here.

use std::ops::Range;
use std::sync::Arc;

use crate::base::collective::{Collective, Key};
use crate::base::device::OpId;
use crate::base::error::MeetingError;

/// One of several processes.
pub struct Process {
    pub number: usize,
    /// The first operation number of its devices. A recording holds the work of all processes, and distinguishes it by
    /// these numbers.
    pub first_op: OpId,
    pub others: Arc<dyn Others>,
}

/// The other processes.
pub trait Others: Send + Sync {
    /// A stream has reached such work at this time, with this input. The work takes `duration` once all processes have
    /// arrived.
    fn arrive(&self, part: &Collective, time: u64, duration: u64, input: &[u8]);

    /// The end time of the work, known once all have arrived.
    fn end(&self, key: Key) -> Option<Result<u64, MeetingError>>;

    /// The work has ended: shows the combined result, and the part of it that belongs to this process.
    fn take(&self, key: Key, show: &mut dyn FnMut(&Arc<Vec<u8>>, Range<usize>));

    /// The host waits for the end of one of these, and lets the others run. `can_go_on` says that its devices have work
    /// that was deferred only because one of these might end before it.
    fn wait(&self, keys: &[Key], can_go_on: bool) -> Result<Waited, MeetingError>;

    /// Whether they can run now: a host that only queries the progress of work lets them run.
    fn can_run(&self) -> bool;

    /// Sets how the devices of this process continue while its host is blocked.
    fn set_drain(&self, drain: Drain);

    /// Stores why this process gave up its devices, for the error that its program gets.
    fn note_trouble(&self, error: MeetingError);

    fn trouble(&self) -> Option<MeetingError>;
}

/// Lets the devices of a process work until they reach other shared work, or have nothing more to do.
pub type Drain = Arc<dyn Fn() + Send + Sync>;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The end of one of the pieces of work is known.
    Met,
    /// No other process can continue: work that does not depend on them must be done first.
    GoOn,
}

/// The name of the error that a driver returns when processes did not meet; no CUDA driver uses it.
pub const MEETING: &str = "meeting";
