//! Work that several processes do together on devices that they share, as the driver of one of them sees it. Who the others
//! are, and when they run, is not known here.

use std::ops::Range;
use std::sync::Arc;

use crate::base::collective::{Collective, Key};
use crate::base::error::MeetingError;
use crate::base::handles::OpId;

/// One of several processes.
pub struct Process {
    pub number: usize,
    /// Where the numbers of its devices' work begin. A recording has the work of all processes, and tells it apart by them.
    pub first_op: OpId,
    pub others: Arc<dyn Others>,
}

/// The other processes.
pub trait Others: Send + Sync {
    /// A stream has come to such work at that time, with what it brings. It takes so long once all have come.
    fn arrive(&self, part: &Collective, time: u64, duration: u64, input: &[u8]);

    /// When the work ends. That is known once all have come.
    fn end(&self, key: Key) -> Option<Result<u64, MeetingError>>;

    /// The work has ended: shows what all get, and which part of that is this process's.
    fn take(&self, key: Key, show: &mut dyn FnMut(&Arc<Vec<u8>>, Range<usize>));

    /// The host waits for the end of one of these, and lets the others run. `can_go_on` says that its devices have work that
    /// was only put off because one of them might end before it.
    fn wait(&self, keys: &[Key], can_go_on: bool) -> Result<Waited, MeetingError>;

    /// Whether they can run now: a host that only asks how far work is lets them.
    fn can_run(&self) -> bool;

    /// How the devices of this process go on while its host stands still.
    fn set_drain(&self, drain: Drain);

    /// Keeps why this process gave up its devices, for the error that its program gets.
    fn note_trouble(&self, error: MeetingError);

    fn trouble(&self) -> Option<MeetingError>;
}

/// Lets the devices of a process work until it has come to other work of several, or there is nothing more to do.
pub type Drain = Arc<dyn Fn() + Send + Sync>;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The end of one of the works is known.
    Met,
    /// Nobody else can go on: what does not depend on them is to be done first.
    GoOn,
}

/// The name of the error that a driver gives where processes did not come together; no CUDA driver knows one.
pub const MEETING: &str = "meeting";
