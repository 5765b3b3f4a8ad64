//! One process's interface to the collectives of several. `ranks/` schedules the processes.

use std::ops::Range;
use std::sync::Arc;

use crate::base::collective::{Collective, CollectiveKey};
use crate::base::device::OpId;
use crate::base::error::MeetingError;

pub struct RankProcess {
    pub number: usize,
    /// The first [`OpId`] of its devices. Each process has a separate range, because all share one recording.
    pub first_op: OpId,
    pub others: Arc<dyn Others>,
}

pub trait Others: Send + Sync {
    /// Reports that a stream has reached a collective, which takes `duration` once all processes have arrived.
    fn arrive(&self, part: &Collective, time: u64, duration: u64, input: &[u8]);

    /// Returns the end time of a collective, once all processes have arrived.
    fn end(&self, key: CollectiveKey) -> Option<Result<u64, MeetingError>>;

    /// Called after the end. Passes the combined result, and this process's part of it, to `show`.
    fn take(&self, key: CollectiveKey, show: &mut dyn FnMut(&Arc<Vec<u8>>, Range<usize>));

    /// Blocks the host until the end of a collective is known, and lets the other processes run. `can_go_on`: the
    /// devices have work that was deferred only because a collective might end before it.
    fn wait(&self, keys: &[CollectiveKey], can_go_on: bool) -> Result<Waited, MeetingError>;

    /// Whether the other processes can run now. A host that only queries the progress of work lets them run.
    fn can_run(&self) -> bool;

    /// Sets the function that keeps this process's devices working while its host is blocked.
    fn set_drain(&self, drain: Drain);

    /// Stores the reason why this process gave up its devices, for its program's error.
    fn note_trouble(&self, error: MeetingError);

    fn trouble(&self) -> Option<MeetingError>;
}

/// Lets the devices of a process work until they reach another collective or run out of work.
pub type Drain = Arc<dyn Fn() + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    Met,
    /// No other process can continue. Work that does not depend on them must run first.
    GoOn,
}

/// The name of the driver error for processes that did not meet. No CUDA error has this name.
pub const MEETING: &str = "meeting";
