//! The log of the data races that a driver finds.

use crate::base::place::Place;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::base::error::Race;
use crate::base::lock::lock;
use crate::host::host_context::HostContext;

/// The reaction to a data race (GPU0003). In every mode the work continues, as on hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RaceCheck {
    /// The machine warns once for each pair of lines.
    #[default]
    Warn,
    /// The racing call returns [`GpuError::Race`](crate::GpuError::Race).
    Error,
    /// No reaction. `Machine::races` still lists the race.
    Ignore,
}

/// The name of the driver error for a race. No CUDA error has this name.
pub const RACE: &str = "GPU0003";

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
    /// The operations and lines of all races.
    seen: HashSet<[(&'static str, Option<Place>); 2]>,
    told: usize,
    /// The first race that the current call found, even if it was found before.
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

    /// Called at the end of each driver call. Reports new races, and returns whether the call must fail. The driver
    /// must not hold a lock here, because a warning handler may use the machine.
    pub fn report(&self) -> bool {
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

    pub fn latest(&self) -> Option<Race> {
        self.inner().latest
    }
}
