//! Collectives of several processes, each with a separate simulation.
//!
//! A stream that has reached a collective waits there ([`Head::Arrived`]) until all processes have reached it. The host
//! may queue more work, but the simulation does not pass the [horizon](SimulationState::horizon), the earliest possible
//! end of the collective. So the result does not depend on the process that ran first. A host that needs the state
//! after the horizon lets the [others](Others) run. Collectives of different groups may run at the same time, without
//! slowing each other down.

use std::collections::HashMap;
use std::sync::Arc;

use super::Setup;
use super::engine::{Head, Op, SimulationState};
use super::errors;
use super::memory::AddressSpace;
use super::peers::{P2p, lose_packets};
use super::shared::Shared;
use super::task::Task;
use crate::base::collective::{Collective, CollectiveKey};
use crate::base::error::MeetingError;
use crate::contract::driver::{DriverResult, OpId};
use crate::contract::others::{Others, Waited};

#[derive(Default)]
pub(super) struct Together {
    pub(super) others: Option<Arc<dyn Others>>,
    /// Collectives that it has reached and whose end is unknown.
    arrived: usize,
    /// Whether a queued collective may be unfinished. Updated when the host waits.
    pub(super) is_queued: bool,
    /// For work that other streams wait for: the number of waits, and its end, if it has ended.
    awaited: HashMap<OpId, (usize, Option<u64>)>,
}

impl Together {
    pub(super) fn with(others: Option<Arc<dyn Others>>) -> Together {
        Together { others, ..Together::default() }
    }

    pub(super) fn queued(&mut self, task: &Task) {
        match task {
            Task::Collective(_) => self.is_queued = true,
            Task::Wait { op, .. } if self.others.is_some() => self.awaited.entry(*op).or_default().0 += 1,
            _ => {}
        }
    }

    pub(super) fn ended(&mut self, op: &Op, end: u64) {
        if let Some(awaited) = self.awaited.get_mut(&op.id) {
            awaited.1 = Some(end);
        }
        if let Task::Wait { op, .. } = &op.task
            && let Some((waits, _)) = self.awaited.get_mut(op)
        {
            *waits -= 1;
            if *waits == 0 {
                self.awaited.remove(op);
            }
        }
    }

    /// Called when the work at the head of a stream is dropped.
    pub(super) fn gave_up(&mut self, head: Head) {
        self.arrived -= usize::from(matches!(head, Head::Arrived(_)));
    }

    /// Whether a task waits for work that had ended at the call, when the end was not yet known.
    pub(super) fn was_over(&self, task: &Task) -> bool {
        let Task::Wait { op, asked, .. } = task else { return false };
        self.awaited.get(op).is_some_and(|(_, end)| end.is_some_and(|end| end <= *asked))
    }

    pub(super) fn take(
        &self,
        part: &Collective,
        memory: &mut AddressSpace,
        (setup, seed): (Setup, u64),
    ) -> DriverResult<()> {
        let Some(others) = &self.others else { return Ok(()) };
        let mut written = Ok(());
        others.take(part.key, &mut |result, its_part| {
            if part.writes() > 0 {
                written = memory.share(part.output.0, Shared::new(result.clone(), its_part));
            }
        });
        written?;
        let is_broken = setup.p2p == P2p::Broken && !setup.nccl_p2p_disable && part.of > 1;
        match part.writes() {
            // Each process loses different packets.
            bytes if is_broken && bytes > 0 => lose_packets(memory, seed, part.output.0, (0, bytes)),
            _ => Ok(()),
        }
    }
}

impl SimulationState {
    /// Called when a stream has reached a collective. Passes on its input.
    pub(super) fn arrive(&mut self, stream: usize, time: u64) {
        let device = self.streams[stream].id.device;
        let Some(op) = self.streams[stream].queue.front() else { return };
        let (Task::Collective(part), Some(others)) = (&op.task, &self.together.others) else { return };
        let memory = &mut self.devices[device].memory;
        let input = match memory.bytes(part.input.0, part.reads()) {
            Ok(bytes) => bytes,
            Err(fault) => return self.kill(device, fault, time),
        };
        others.arrive(part, time, op.duration, input);
        self.streams[stream].head = Head::Arrived(time);
        self.together.arrived += 1;
        self.meet();
    }

    /// Updates the collectives that all processes have now reached.
    pub(super) fn meet(&mut self) {
        if self.together.arrived == 0 {
            return;
        }
        let Some(others) = self.together.others.clone() else { return };
        for (stream, arrived, key) in self.arrivals() {
            if self.streams[stream].head != Head::Arrived(arrived) {
                continue; // Its device is dead: another collective has failed.
            }
            match others.end(key) {
                Some(Ok(end)) => {
                    self.streams[stream].head = Head::Running { start: arrived, slices: 0, next: end };
                    self.together.arrived -= 1;
                }
                Some(Err(error)) => self.give_up(self.streams[stream].id.device, error),
                None => {}
            }
        }
    }

    /// The streams that have reached a collective, with time and key.
    fn arrivals(&self) -> Vec<(usize, u64, CollectiveKey)> {
        let of = |stream: &usize| match (self.streams[*stream].head, self.streams[*stream].queue.front()?) {
            (Head::Arrived(time), op) => match &op.task {
                Task::Collective(part) => Some((*stream, time, part.key)),
                _ => None,
            },
            _ => None,
        };
        self.active.iter().filter_map(of).collect()
    }

    /// The earliest possible end of a collective that another process may not have reached.
    pub(super) fn horizon(&self) -> u64 {
        if self.together.arrived == 0 {
            return u64::MAX;
        }
        let end = |stream: &usize| match (self.streams[*stream].head, self.streams[*stream].queue.front()?) {
            (Head::Arrived(time), op) => Some(time + op.duration),
            _ => None,
        };
        self.active.iter().filter_map(end).min().unwrap_or(u64::MAX)
    }

    /// Makes the host wait for other processes, if the next event is deferred for them. If none of them can run, the
    /// event is simulated, and its time may end the host's wait. Returns false if nothing was deferred.
    pub(super) fn wait_for_others(&mut self, device: usize, done: impl Fn(&SimulationState) -> bool) -> bool {
        if self.together.arrived == 0 {
            return false;
        }
        if let Some(time) = self.let_others_run(device)
            && done(self)
        {
            self.clock.advance_to(time);
        }
        true
    }

    fn let_others_run(&mut self, device: usize) -> Option<u64> {
        let others = self.together.others.clone()?;
        let keys: Vec<CollectiveKey> = self.arrivals().into_iter().map(|(_, _, key)| key).collect();
        let next = self.next();
        match others.wait(&keys, next.is_some()) {
            Ok(Waited::Met) => self.meet(),
            Ok(Waited::GoOn) => {
                let next = next?;
                self.process(next);
                return Some(next.time);
            }
            Err(error) => self.give_up(device, error),
        }
        None
    }

    /// Simulates up to the host's time, for calls that query work without waiting (`cudaEventQuery`).
    pub(super) fn settle(&mut self, device: usize) -> DriverResult<()> {
        let can_run = self.together.others.as_ref().is_some_and(|others| others.can_run());
        while can_run && self.together.arrived > 0 && self.horizon() <= self.clock.now() {
            self.let_others_run(device);
            self.run_to_now();
        }
        self.check(device)
    }

    /// Simulates the queued work of a process with an idle host, until it reaches another collective.
    pub(super) fn drain(&mut self) {
        self.meet();
        let arrived = self.together.arrived;
        while let Some(next) = self.next() {
            self.process(next);
            if self.together.arrived > arrived {
                return;
            }
        }
    }

    /// Called when the host has waited: finished collectives no longer count.
    pub(super) fn host_waited(&mut self) {
        let mut queued = self.active.iter().flat_map(|stream| &self.streams[*stream].queue);
        self.together.is_queued =
            self.together.is_queued && queued.any(|op| matches!(op.task, Task::Collective(_)));
    }

    /// Handles processes that did not meet. As in PyTorch, the device becomes unusable.
    fn give_up(&mut self, device: usize, error: MeetingError) {
        let Some(others) = self.together.others.clone() else { return };
        if let MeetingError::Timeout(late) = &error {
            let first = self.arrivals().into_iter().map(|(_, time, _)| time).min().unwrap_or(0);
            self.clock.advance_to(first + late.timeout * 1_000_000);
        }
        others.note_trouble(error);
        self.kill(device, errors::meeting(), self.clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::collective::{CollectiveKind, Fingerprint, ReduceOp};
    use crate::base::device::DevicePtr;
    use crate::base::dtype::DType;
    use crate::ranks::{Arrival, CollectiveCall, Member, World};

    const BYTES: usize = 64 << 10;

    /// Both ranks read the same memory of the computer, at an address on each device.
    #[test]
    fn ranks_share_what_a_collective_comes_to() {
        let (world, key) = (World::new(2, true).unwrap(), CollectiveKey { group: 0, pair: None, number: 1 });
        let kind = CollectiveKind::AllReduce(ReduceOp::Sum);
        let fingerprint = Fingerprint { kind, sizes: [BYTES].into_iter().collect(), dtype: DType::U8 };
        let reduce = |_, _, first: &mut [u8], others: &[&[u8]]| {
            first.iter_mut().zip(others[0]).for_each(|(sum, other)| *sum += other);
        };
        let members: Arc<[usize]> = Arc::new([0, 1]);
        for rank in 0..2 {
            let (fingerprint, members) = (fingerprint.clone(), members.clone());
            let call =
                CollectiveCall { key, fingerprint, members, device: Some(rank), timeout: 1, place: None };
            world.call(rank, call).unwrap();
            world.arrive(rank, key, Arrival::new(0, 1, reduce), &[rank as u8 + 1; BYTES]);
        }
        let places = [0, 1].map(|rank| {
            let mut memory = AddressSpace::new(1 << 40, 1 << 21, Arc::default());
            let output = DevicePtr(memory.insert(BYTES));
            let fingerprint = Arc::new(fingerprint.clone());
            let part = Collective { key, fingerprint, place: rank, of: 2, input: output, output, reduce };
            let together = Together::with(Some(Arc::new(Member { rank, world: world.clone() })));
            together.take(&part, &mut memory, (Setup::default(), 0)).unwrap();
            let bytes = memory.bytes(output.0, BYTES).unwrap();
            assert_eq!(bytes, [3; BYTES]);
            (bytes.as_ptr(), memory)
        });
        assert_eq!(places[0].0, places[1].0);
    }
}
