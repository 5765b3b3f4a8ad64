//! Collectives: work that begins when other ranks have come to it, each in a simulation of its own.
//!
//! A stream that has reached a collective waits there ([`Head::Arrived`]). The end of the collective is known
//! once all ranks have reached it. Meanwhile the host may go on and queue more work, but the simulation does
//! not go past the [horizon](State::horizon), the earliest time at which the collective could end. So the
//! result does not depend on which rank ran first. A host that needs to know what happens after the horizon
//! hands the baton to another rank (`ranks.rs`). Two collectives of different groups may run at the same time
//! and do not slow each other down.

use super::engine::State;
use super::errors;
use super::memory::AddressSpace;
use super::op::{Head, Task};
use super::shared::Shared;
use crate::collective::{Collective, Key};
use crate::driver::DriverResult;
use crate::error::MeetingError;
use crate::ranks::{Arrival, Member, Outcome, Waited};
use crate::scope;

impl State {
    /// A stream has come to a collective, with what it brings.
    pub(super) fn arrive(&mut self, stream: usize, time: u64) {
        let device = self.streams[stream].id.device;
        let Some(op) = self.streams[stream].queue.front() else { return };
        let (Task::Collective(part), Some(member)) = (&op.task, &self.member) else { return };
        let memory = &mut self.devices[device].memory;
        let input = match memory.bytes(part.input.0, part.reads()) {
            Ok(bytes) => bytes,
            Err(fault) => return self.kill(device, fault, time),
        };
        let arrival = Arrival::new(time, op.duration, part.reduce);
        member.world.arrive(member.rank, part.key, arrival, input);
        self.streams[stream].head = Head::Arrived(time);
        self.arrived += 1;
        self.meet();
    }

    /// Finds which of the collectives that this rank has come to have all ranks now.
    pub(super) fn meet(&mut self) {
        if self.arrived == 0 {
            return;
        }
        let Some(Member { world, .. }) = self.member.clone() else { return };
        for (stream, arrived, key) in self.arrivals() {
            if self.streams[stream].head != Head::Arrived(arrived) {
                continue; // Its device is gone: another collective has failed.
            }
            match world.outcome(key) {
                Some(Ok(Outcome { end, .. })) => {
                    self.streams[stream].head = Head::Running { start: arrived, slices: 0, next: end };
                    self.arrived -= 1;
                }
                Some(Err(error)) => self.give_up(self.streams[stream].id.device, error),
                None => {}
            }
        }
    }

    /// The streams that have come to a collective, when that was, and which it is.
    fn arrivals(&self) -> Vec<(usize, u64, Key)> {
        let of = |stream: &usize| match (self.streams[*stream].head, self.streams[*stream].queue.front()?) {
            (Head::Arrived(time), op) => match &op.task {
                Task::Collective(part) => Some((*stream, time, part.key)),
                _ => None,
            },
            _ => None,
        };
        self.active.iter().filter_map(of).collect()
    }

    /// The earliest time at which a collective could end that some rank may not have reached yet.
    pub(super) fn horizon(&self) -> u64 {
        let end = |stream: &usize| match (self.streams[*stream].head, self.streams[*stream].queue.front()?) {
            (Head::Arrived(time), op) => Some(time + op.duration),
            _ => None,
        };
        self.active.iter().filter_map(end).min().unwrap_or(u64::MAX)
    }

    /// Makes the host wait for other ranks, which run meanwhile. If no other rank can run, the next event
    /// that was held back at the horizon is simulated instead, and its time is returned.
    pub(super) fn wait_for_others(&mut self, device: usize) -> Option<u64> {
        let Member { rank, world, .. } = self.member.clone()?;
        let keys: Vec<Key> = self.arrivals().into_iter().map(|(_, _, key)| key).collect();
        let next = self.next();
        match world.wait(rank, &keys, scope::current_place(), next.is_some()) {
            Ok(Waited::Met) => self.meet(),
            Ok(Waited::GoOn) => {
                let next = next?;
                self.happen(next);
                return Some(next.time);
            }
            Err(error) => self.give_up(device, error),
        }
        None
    }

    /// Simulates everything up to the host's current time, for calls that ask about work without waiting for
    /// it (`cudaEventQuery`).
    pub(super) fn settle(&mut self, device: usize) -> DriverResult<()> {
        let threads = self.member.as_ref().is_some_and(|member| member.world.has_threads());
        while threads && self.arrived > 0 && self.horizon() <= self.clock.now() {
            self.wait_for_others(device);
            self.run_to_now();
        }
        self.check(device)
    }

    /// Simulates the queued work of a rank whose host is idle, until the rank reaches another collective.
    pub(super) fn drain(&mut self) {
        self.meet();
        let arrived = self.arrived;
        while let Some(next) = self.next() {
            self.happen(next);
            if self.arrived > arrived {
                return;
            }
        }
    }

    /// The host has waited. Collectives that are over do not count any more.
    pub(super) fn host_waited(&mut self) {
        let mut queued = self.active.iter().flat_map(|stream| &self.streams[*stream].queue);
        self.meets = self.meets && queued.any(|op| matches!(op.task, Task::Collective(_)));
    }

    /// Ranks did not come together. As in PyTorch, nothing of the device can be used any more.
    fn give_up(&mut self, device: usize, error: MeetingError) {
        let Some(Member { rank, world, .. }) = self.member.clone() else { return };
        if let MeetingError::Timeout(late) = &error {
            let first = self.arrivals().into_iter().map(|(_, time, _)| time).min().unwrap_or(0);
            self.clock.advance_to(first + late.timeout * 1_000_000);
        }
        world.note_trouble(rank, error);
        self.kill(device, errors::meeting(), self.clock.now());
    }
}

/// Writes what this rank gets.
pub(super) fn take(
    member: Option<&Member>,
    part: &Collective,
    memory: &mut AddressSpace,
) -> DriverResult<()> {
    let Some(Member { rank, world, .. }) = member else { return Ok(()) };
    let mut written = Ok(());
    world.take(*rank, part.key, |result, its_part| {
        if part.writes() > 0 {
            written = memory.share(part.output.0, Shared::new(result.clone(), its_part));
        }
    });
    written
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::collective::{CollectiveKind, Fingerprint, ReduceOp};
    use crate::dtype::DType;
    use crate::handles::DevicePtr;
    use crate::ranks::{Call, World};

    const BYTES: usize = 64 << 10;

    /// Both ranks read the same memory of the computer, though each has an address for it on a device of its own.
    #[test]
    fn ranks_share_what_a_collective_comes_to() {
        let (world, key) = (World::new(2, true).unwrap(), Key { group: 0, pair: None, number: 1 });
        let kind = CollectiveKind::AllReduce(ReduceOp::Sum);
        let fingerprint = Fingerprint { kind, sizes: [BYTES].into_iter().collect(), dtype: DType::U8 };
        let reduce = |_, _, first: &mut [u8], others: &[&[u8]]| {
            first.iter_mut().zip(others[0]).for_each(|(sum, other)| *sum += other);
        };
        let members: Arc<[usize]> = Arc::new([0, 1]);
        for rank in 0..2 {
            let (fingerprint, members) = (fingerprint.clone(), members.clone());
            let call = Call { key, fingerprint, members, device: Some(rank), timeout: 1, place: None };
            world.call(rank, call).unwrap();
            world.arrive(rank, key, Arrival::new(0, 1, reduce), &[rank as u8 + 1; BYTES]);
        }
        let places = [0, 1].map(|rank| {
            let mut memory = AddressSpace::new(1 << 40, 1 << 21, Arc::default());
            let output = DevicePtr(memory.insert(BYTES));
            let fingerprint = Arc::new(fingerprint.clone());
            let part = Collective { key, fingerprint, place: rank, of: 2, input: output, output, reduce };
            take(Some(&Member { rank, first_op: 0, world: world.clone() }), &part, &mut memory).unwrap();
            let bytes = memory.bytes(output.0, BYTES).unwrap();
            assert_eq!(bytes, [3; BYTES]);
            (bytes.as_ptr(), memory)
        });
        assert_eq!(places[0].0, places[1].0);
    }
}
