//! Devices shared by several processes, and their collectives.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::{Cuda, Result};
use crate::base::collective::{Collective, CollectiveKind, CollectiveTime};
use crate::base::device::MachineId;
use crate::base::lock::lock;
use crate::contract::driver::StreamId;
use crate::contract::events::EventKind;
use crate::contract::others::{Others, RankProcess};
use crate::host::thread;
use crate::host::time::Clock;

impl Cuda {
    /// Opens the same devices for another process, with separate memory, streams and clock. The recorder is shared.
    pub fn fork(&self, process: RankProcess, machine: MachineId, clock: Clock) -> Option<Arc<Cuda>> {
        let (number, others) = (process.number, process.others.clone());
        let driver = self.driver.fork(process, clock.clone())?;
        let cuda = Cuda::new(driver, machine, clock, self.recorder.clone());
        let interpreter = Mutex::new(lock(&self.interpreter).clone());
        Some(Arc::new(Cuda { process: Some(number), others: Mutex::new(Some(others)), interpreter, ..cuda }))
    }

    /// Lets this process take part in collectives with others. Returns whether the driver supports it.
    pub fn join(&self, others: Arc<dyn Others>) -> bool {
        *lock(&self.others) = Some(others.clone());
        self.driver.join(others)
    }

    /// Makes the current thread the one that drives the devices.
    pub fn drive(&self) {
        self.thread.store(thread::number(), Ordering::Relaxed);
    }

    pub fn collective(&self, stream: StreamId, part: Collective) -> Result<()> {
        self.check_thread()?;
        let kind = part.fingerprint.kind;
        let kind = EventKind::Collective { kind, bytes: part.fingerprint.bytes() as u64 };
        self.submit(stream, kind, |driver| driver.collective(stream, part).map(Some))
    }

    pub fn collective_time(
        &self,
        kind: CollectiveKind,
        bytes: usize,
        ranks: usize,
    ) -> Option<CollectiveTime> {
        self.driver.collective_time(kind, bytes, ranks)
    }
}
