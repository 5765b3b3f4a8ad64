//! The data races found by a machine's simulated GPUs.

use super::Machine;
use crate::error::Race;
use crate::races::{RaceCheck, RaceLog};

impl Machine {
    /// The data races that the simulated GPUs have found, with each pair of program lines listed once. They depend
    /// neither on modelled times nor on results. Real GPUs do not check for races.
    pub fn races(&self) -> Vec<Race> {
        self.race_log(RaceLog::races).unwrap_or_default()
    }

    /// The reaction to a data race.
    pub fn race_check(&self) -> RaceCheck {
        self.race_log(RaceLog::check).unwrap_or_default()
    }

    /// Sets the reaction to later data races.
    pub fn set_race_check(&self, check: RaceCheck) {
        self.race_log(|log| log.set_check(check));
    }

    fn race_log<T>(&self, read: impl FnOnce(&RaceLog) -> T) -> Option<T> {
        self.cuda()?.race_log().map(read)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::error::{GpuError, RacingAccess, RacingOperation, RacingWorker};
    use crate::gpu::driver::DriverError;
    use crate::races::RACE;

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
        assert!(!log.report());
        log.add(race("copy"));
        log.add(race("copy"));
        assert!(!log.report(), "to warn is no error");
        machine.set_race_check(RaceCheck::Error);
        log.add(race("copy"));
        log.add(race("copy_"));
        assert!(log.report() && !log.report());
        log.add(race("copy_"));
        assert!(log.report());
        assert_eq!(machine.races(), [race("copy"), race("copy_")]);
        assert_eq!((machine.race_check(), Machine::new().race_check()), (RaceCheck::Error, RaceCheck::Warn));

        let code = |name| DriverError { code: 999, name, message: "data race", detail: None };
        machine.enter(|| {
            let cuda = machine.cuda().unwrap();
            assert!(matches!(cuda.error(code("cudaErrorUnknown")), GpuError::Cuda { .. }));
            let error = cuda.error(code(RACE));
            let sentence = "Data race on cuda:0: the host reads pinned memory that `copy_` on stream 1 may still be writing";
            assert_eq!((error.code(), error.to_string()), (Some("GPU0003"), sentence.to_string()));
            assert!(error.report().starts_with(&format!("error[GPU0003]: {sentence}\n   = copy_  writes 8 bytes on stream 1\n")));
        });
    }

    /// A handler may use the machine, including the GPU on which the race was found.
    #[test]
    fn who_is_warned_may_ask_for_the_races() {
        let machine: Machine = "sim:t4".parse().unwrap();
        let (asked, found) = (machine.clone(), std::sync::Arc::<Mutex<usize>>::default());
        let sink = found.clone();
        machine.on_warning(move |_| *sink.lock().unwrap() = asked.races().len());
        machine.enter(|| {
            let log = machine.cuda().unwrap().race_log().unwrap();
            log.add(race("copy"));
            log.report();
        });
        assert_eq!(*found.lock().unwrap(), 1);
    }
}
