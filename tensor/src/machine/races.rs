//! The data races of a machine: what its simulated GPUs found, and whom to tell.

use std::collections::HashSet;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Machine;
use crate::cuda::driver::DriverError;
use crate::error::Race;

/// What is done about a data race (GPU0003), like the modes of PyTorch's `torch.cuda.set_sync_debug_mode`. Whatever
/// it is, the work goes on as it does on hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RaceCheck {
    /// Its report is a warning of the machine, once for each two lines of the program.
    #[default]
    Warn,
    /// The call that races returns [`Error::Race`](crate::Error::Race).
    Error,
    /// Nothing; [`Machine::races`] has it all the same.
    Ignore,
}

/// The name of the error that a driver gives for a race; no CUDA driver knows one.
pub(crate) const RACE: &str = "GPU0003";

/// Where a driver puts the races it finds.
#[derive(Default)]
pub(crate) struct RaceLog {
    inner: Mutex<Inner>,
    /// Whether there is something in it that the call under way has not told yet.
    is_untold: AtomicBool,
}

#[derive(Default)]
struct Inner {
    check: RaceCheck,
    races: Vec<Race>,
    /// What makes two races the same: where the work stands in the program.
    seen: HashSet<[(&'static str, Option<&'static Location<'static>>); 2]>,
    /// How many of the races have been told.
    told: usize,
    /// The first one of the call under way, also if it is an old one.
    latest: Option<Race>,
}

impl RaceLog {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, race: Race) {
        let mut inner = self.inner();
        if inner.seen.insert(race.operations.map(|racing| (racing.operation, racing.place))) {
            inner.races.push(race);
        }
        if !self.is_untold.swap(true, Ordering::Relaxed) {
            inner.latest = Some(race);
        }
    }

    /// Ends a call of the driver. What it found is told, and true means that it is an error. The driver holds no
    /// lock then: who is warned may use the machine.
    pub(crate) fn tell(&self) -> bool {
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
            new.iter().for_each(|race| Machine::warn(&race.report()));
        }
        check == RaceCheck::Error
    }

    pub(crate) fn races(&self) -> Vec<Race> {
        self.inner().races.clone()
    }

    pub(crate) fn check(&self) -> RaceCheck {
        self.inner().check
    }

    pub(crate) fn set_check(&self, check: RaceCheck) {
        self.inner().check = check;
    }
}

impl Machine {
    /// The data races that its simulated GPUs have found so far, each two lines of the program once.
    ///
    /// They are found whatever the modelled times are, even where the numbers happen to come out right. Real GPUs
    /// do not look for them.
    pub fn races(&self) -> Vec<Race> {
        self.race_log(RaceLog::races).unwrap_or_default()
    }

    /// What is done about a data race.
    pub fn race_check(&self) -> RaceCheck {
        self.race_log(RaceLog::check).unwrap_or_default()
    }

    /// Changes what is done about a data race from now on.
    pub fn set_race_check(&self, check: RaceCheck) {
        self.race_log(|log| log.set_check(check));
    }

    fn race_log<T>(&self, read: impl FnOnce(&RaceLog) -> T) -> Option<T> {
        self.cuda()?.race_log().map(read)
    }

    /// The race that a driver's error stands for, if it does.
    pub(crate) fn race_behind(error: &DriverError) -> Option<Race> {
        if error.name != RACE {
            return None;
        }
        Machine::current().race_log(|log| log.inner().latest)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, RacingAccess, RacingOperation, RacingWorker};

    fn race(operation: &'static str) -> Race {
        let worker = RacingWorker::Stream { device: 0, number: 1 };
        let first = RacingOperation { operation, place: None, worker, access: RacingAccess::Write, bytes: 8 };
        let second = RacingOperation { worker: RacingWorker::Host, access: RacingAccess::Read, ..first };
        Race { device: 0, pinned: true, operations: [first, second], bytes: 4, reused: false }
    }

    #[test]
    fn races_are_told_once_and_an_error_stands_for_the_latest() {
        let machine: Machine = "sim:t4".parse().unwrap();
        let log = machine.cuda().unwrap().race_log().unwrap();
        assert!(!log.tell());
        log.add(race("copy"));
        log.add(race("copy"));
        assert!(!log.tell(), "to warn is no error");
        machine.set_race_check(RaceCheck::Error);
        log.add(race("copy"));
        log.add(race("copy_"));
        assert!(log.tell() && !log.tell());
        log.add(race("copy_"));
        assert!(log.tell());
        assert_eq!(machine.races(), [race("copy"), race("copy_")]);
        assert_eq!((machine.race_check(), Machine::new().race_check()), (RaceCheck::Error, RaceCheck::Warn));

        let code = |name| DriverError { code: 999, name, message: "data race", detail: None };
        machine.enter(|| {
            assert_eq!(Machine::race_behind(&code("cudaErrorUnknown")), None);
            let error = Error::Race(Box::new(Machine::race_behind(&code(RACE)).unwrap()));
            let sentence = "Data race on cuda:0: the host reads pinned memory that `copy_` on stream 1 may still be writing";
            assert_eq!((error.code(), error.to_string()), (Some("GPU0003"), sentence.to_string()));
            assert!(error.report().starts_with(&format!("error[GPU0003]: {sentence}\n   = copy_  writes 8 bytes on stream 1\n")));
        });
    }

    /// A handler may use the machine, also the GPU that the race was found on.
    #[test]
    fn who_is_warned_may_ask_for_the_races() {
        let machine: Machine = "sim:t4".parse().unwrap();
        let (asked, found) = (machine.clone(), std::sync::Arc::<Mutex<usize>>::default());
        let sink = found.clone();
        machine.on_warning(move |_| *sink.lock().unwrap() = asked.races().len());
        machine.enter(|| {
            let log = machine.cuda().unwrap().race_log().unwrap();
            log.add(race("copy"));
            log.tell();
        });
        assert_eq!(*found.lock().unwrap(), 1);
    }
}
