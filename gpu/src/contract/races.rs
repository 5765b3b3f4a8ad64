//! Data races: the log of those that a driver finds, and how they are reported.

use std::collections::HashSet;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::base::error::Race;
use crate::base::lock::lock;
use crate::host::host_context::HostContext;

/// The reaction to a data race (GPU0003), similar to the modes of PyTorch's `torch.cuda.set_sync_debug_mode`. In every
/// mode the work goes on as it does on hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RaceCheck {
    /// The machine warns with the report, once for each pair of lines.
    #[default]
    Warn,
    /// The call that races returns [`GpuError::Race`](crate::GpuError::Race).
    Error,
    /// Nothing happens; `Machine::races` lists the race all the same.
    Ignore,
}

/// The name of the error that a driver returns for a race; no CUDA driver uses it.
pub const RACE: &str = "GPU0003";

/// The log of the races that a driver finds.
#[derive(Default)]
pub struct RaceLog {
    inner: Mutex<RaceLogState>,
    /// Whether the current driver call has found a race that is not reported yet.
    is_untold: AtomicBool,
}

#[derive(Default)]
struct RaceLogState {
    check: RaceCheck,
    races: Vec<Race>,
    /// The identity of the races found so far: the operations and their lines.
    seen: HashSet<[(&'static str, Option<&'static Location<'static>>); 2]>,
    /// The number of races that have been reported.
    told: usize,
    /// The first race that the current call has found, even if the same race was found before.
    latest: Option<Race>,
}

impl RaceLog {
    fn inner(&self) -> MutexGuard<'_, RaceLogState> {
        lock(&self.inner)
    }

    pub fn add(&self, race: Race) {
        let mut inner = self.inner();
        if inner.seen.insert(race.operations.map(|racing| (racing.operation, racing.place))) {
            inner.races.push(race);
        }
        if !self.is_untold.swap(true, Ordering::Relaxed) {
            inner.latest = Some(race);
        }
    }

    /// Called at the end of each driver call. Reports the races that the call has found, and returns whether the call
    /// must fail because of them. The driver must not hold a lock here, because the handler of warnings may use the
    /// machine.
    pub fn report(&self) -> bool {
        // The common case.
        if !self.is_untold.load(Ordering::Relaxed) {
            return false;
        }
        self.is_untold.store(false, Ordering::Relaxed);
        let (check, new) = {
            let mut inner = self.inner();
            let new = inner.races[inner.told..].to_vec();
            inner.told = inner.races.len();
            (inner.check, new)
        };
        if check == RaceCheck::Warn {
            new.iter().for_each(|race| HostContext::warn(&race.report()));
        }
        check == RaceCheck::Error
    }

    pub fn races(&self) -> Vec<Race> {
        self.inner().races.clone()
    }

    pub fn check(&self) -> RaceCheck {
        self.inner().check
    }

    pub fn set_check(&self, check: RaceCheck) {
        self.inner().check = check;
    }

    /// The race that the error of the current call stands for.
    pub fn latest(&self) -> Option<Race> {
        self.inner().latest
    }
}
