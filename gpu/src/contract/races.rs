//! Data races: where a driver puts those it finds, and whom to tell.

use std::collections::HashSet;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::base::error::Race;
use crate::base::lock::lock;
use crate::host::ambient::Ambient;

/// What is done about a data race (GPU0003), like the modes of PyTorch's `torch.cuda.set_sync_debug_mode`. Whatever
/// it is, the work goes on as it does on hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RaceCheck {
    /// Its report is a warning of the machine, once for each two lines of the program.
    #[default]
    Warn,
    /// The call that races returns [`GpuError::Race`](crate::GpuError::Race).
    Error,
    /// Nothing; `Machine::races` has it all the same.
    Ignore,
}

/// The name of the error that a driver gives for a race; no CUDA driver knows one.
pub const RACE: &str = "GPU0003";

/// Where a driver puts the races it finds.
#[derive(Default)]
pub struct RaceLog {
    inner: Mutex<Inner>,
    /// Whether the current call of the driver has found a race that it has not reported yet.
    is_untold: AtomicBool,
}

#[derive(Default)]
struct Inner {
    check: RaceCheck,
    races: Vec<Race>,
    /// What makes two races the same: where the work stands in the program.
    seen: HashSet<[(&'static str, Option<&'static Location<'static>>); 2]>,
    /// How many of the races have been reported.
    told: usize,
    /// The first race that the current call has found, even if the same race was found before.
    latest: Option<Race>,
}

impl RaceLog {
    fn inner(&self) -> MutexGuard<'_, Inner> {
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

    /// Called at the end of each call of the driver. Reports the races that the call has found, and returns
    /// whether the call is to fail because of them. The driver must hold no lock here, because the handler of
    /// warnings may use the machine.
    pub fn tell(&self) -> bool {
        // Nearly always.
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
            new.iter().for_each(|race| Ambient::warn(&race.report()));
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

    /// The one that the error of the call under way stands for.
    pub fn latest(&self) -> Option<Race> {
        self.inner().latest
    }
}
