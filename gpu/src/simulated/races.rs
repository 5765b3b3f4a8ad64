//! Finds data races: two unordered uses of the same memory, at least one of them a write.
//!
//! The order depends on the program alone, not on times:
//!
//! * Work of a stream comes after all earlier work of that stream.
//! * Work after a wait comes after the work that the event had recorded at the call of the wait.
//! * Work of the default stream comes after all earlier work of the device's blocking streams, and their work after its
//!   earlier work.
//! * All work comes after the host's earlier uses and waits at the time of its queuing.
//! * The host's uses come after the work that it has waited for, or whose end it has queried.
//!
//! The waits of `cudaMalloc` and similar calls do not count, because the caching allocator calls them only
//! occasionally. Nor do the waits of `set_launch_blocking`, which hide a race but do not fix it.
//!
//! Each stream has a *vector clock* ([`VectorClock`]): the work of every stream that comes before its next work. Two
//! uses race if the second one's clock does not include the first. The [`Shadow`] of the memory contains the uses to
//! compare with, without the gaps of a view (`stripes.rs`). The host's uses are not kept: later work comes after them.
//!
//! With one stream, uses are only listed, and the list is cleared when the host has waited for all of them. The first
//! use by a second stream enters them into the shadow.

mod accesses;
mod clock;
mod shadow;
mod stripes;

use std::collections::HashMap;
use std::sync::Arc;

use self::clock::VectorClock;
use self::shadow::{Shadow, Site, Use};
use super::card;
use super::engine::Queue;
use super::pinned::PinnedSpace;
use super::task::Task;
use crate::base::error::{Race, RacingAccess, RacingOperation, RacingWorker};
use crate::contract::driver::{EventId, OpId, StreamId};
use crate::contract::races::RaceLog;
use crate::host::scope;

/// The maximum number of listed uses. More are entered into the shadow.
const MOST_RECENT: usize = 1024;

/// Above this number of pieces, the shadow is searched for uses to forget.
const FEW_PIECES: usize = 1024;

/// Above this number, only the latest work is kept. Only a program that never waits for its streams reaches it.
const MOST_PIECES: usize = 1 << 16;

pub(super) struct Races {
    log: Arc<RaceLog>,
    /// The streams with work, ...
    actors: Vec<Actor>,
    /// ... and the index of each stream among them.
    actor_of: Vec<Option<usize>>,
    /// The work that the host has waited for, and the number of its waits for new work.
    host: VectorClock,
    host_waits: u64,
    /// The work before the last record of each event.
    events: HashMap<u64, VectorClock>,
    users: Users,
    /// Uses by the only stream that are not in the shadow.
    recent: Vec<Use>,
    shadow: Shadow,
    limit: usize,
    /// Every race, as the numbers of both pieces of work. `None` for the host.
    #[cfg(test)]
    pub(super) pairs: Vec<(OpId, Option<OpId>)>,
}

struct Actor {
    stream: StreamId,
    blocking: bool,
    /// The work before its next piece of work.
    before: VectorClock,
    /// The number of the host's waits that this includes.
    host_waits: u64,
}

/// The streams with uses that the host has not waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Users {
    Nobody,
    One(usize),
    Several,
}

impl Races {
    pub(super) fn new(log: Arc<RaceLog>) -> Races {
        Races {
            log,
            actors: Vec::new(),
            actor_of: Vec::new(),
            host: VectorClock::default(),
            host_waits: 0,
            events: HashMap::new(),
            users: Users::Nobody,
            recent: Vec::new(),
            shadow: Shadow::default(),
            limit: FEW_PIECES,
            #[cfg(test)]
            pairs: Vec::new(),
        }
    }

    pub(super) fn queue(
        &mut self,
        (index, stream): (usize, &Queue),
        op: OpId,
        task: &Task,
        pinned: &PinnedSpace,
    ) {
        if matches!(task, Task::Wait { .. }) {
            return; // Whether a wait is queued depends on the time. See `wait`.
        }
        let actor = self.actor(index, stream);
        self.catch_up(actor);
        let site = Site::here(accesses::name_of(task));
        accesses::each_of(task, pinned, |access, stripes| {
            if access.bytes > 0 {
                let (start, end) = (access.address, access.address + access.bytes as u64);
                self.used(Use { actor, op, write: access.write, start, end, stripes, site, is_past: false });
            }
        });
        self.actors[actor].before.advance(actor, op + 1);
        if let Task::Record(event) = task {
            self.events.insert(event.0, self.actors[actor].before.clone());
        }
    }

    /// Orders later work of a stream after an event, if it was recorded.
    pub(super) fn wait(&mut self, (index, stream): (usize, &Queue), event: EventId) {
        let actor = self.actor(index, stream);
        if let Some(recorded) = self.events.get(&event.0) {
            self.actors[actor].before.join(recorded);
        }
    }

    pub(super) fn destroyed(&mut self, event: EventId) {
        self.events.remove(&event.0);
    }

    /// Called when all work of a stream has run, to the host's knowledge.
    pub(super) fn host_waited_for_stream(&mut self, index: usize) {
        if let Some(actor) = self.actor_of.get(index).copied().flatten() {
            let is_new = self.host.join(&self.actors[actor].before);
            self.host_knows(is_new);
        }
    }

    pub(super) fn host_waited_for_device(&mut self, device: usize) {
        let mut is_new = false;
        for actor in self.actors.iter().filter(|actor| actor.stream.device == device) {
            is_new |= self.host.join(&actor.before);
        }
        self.host_knows(is_new);
    }

    pub(super) fn host_waited_for_event(&mut self, event: EventId) {
        let is_new = self.events.get(&event.0).is_some_and(|recorded| self.host.join(recorded));
        self.host_knows(is_new);
    }

    pub(super) fn host_uses(&mut self, address: u64, bytes: usize, access: RacingAccess) {
        self.enter_recent();
        let name = match access {
            RacingAccess::Read => "read",
            RacingAccess::Write => "write",
            RacingAccess::Free => "free",
        };
        let (start, end, site) = (address, address + bytes as u64, Site::here(name));
        for used in self.shadow.uses(start, end) {
            let is_before = used.op < self.host.of(used.actor);
            if !is_before && (used.write || access != RacingAccess::Read) {
                let second = racing(site, RacingWorker::Host, access, bytes as u64);
                report(&self.log, &self.actors, used, second, (start, end));
                #[cfg(test)]
                self.pairs.push((used.op, None));
            }
        }
    }

    /// Forgets a freed range that no queued work uses.
    pub(super) fn forget(&mut self, address: u64, bytes: usize) {
        self.enter_recent();
        self.shadow.forget(address, address + bytes as u64);
    }

    /// Called when a range is reused for another tensor.
    pub(super) fn range_reused(&mut self, address: u64, bytes: usize) {
        // With one stream, all uses are in order.
        if self.actors.len() > 1 {
            self.enter_recent();
            let uses = self.shadow.uses(address, address + bytes as u64);
            uses.for_each(|used| used.is_past = true);
        }
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.recent.len() + self.shadow.len()
    }

    fn actor(&mut self, index: usize, stream: &Queue) -> usize {
        if let Some(Some(actor)) = self.actor_of.get(index) {
            return *actor;
        }
        if self.actor_of.len() <= index {
            self.actor_of.resize(index + 1, None);
        }
        let Queue { id, blocking, .. } = *stream;
        self.actors.push(Actor {
            stream: id,
            blocking,
            before: self.host.clone(),
            host_waits: self.host_waits,
        });
        *self.actor_of[index].insert(self.actors.len() - 1)
    }

    /// Orders a stream's next work after the host's waits, and after other streams by the default stream's rule.
    fn catch_up(&mut self, index: usize) {
        let actor = &mut self.actors[index];
        if actor.host_waits != self.host_waits {
            actor.host_waits = self.host_waits;
            actor.before.join(&self.host);
        }
        if self.actors.len() == 1 || !self.actors[index].blocking {
            return;
        }
        let stream = self.actors[index].stream;
        let mut before = std::mem::take(&mut self.actors[index].before);
        for other in &self.actors {
            let one_is_default = (stream.number == 0) != (other.stream.number == 0);
            if other.stream.device == stream.device && other.blocking && one_is_default {
                before.join(&other.before);
            }
        }
        self.actors[index].before = before;
    }

    fn used(&mut self, new: Use) {
        match self.users {
            Users::Several => return self.enter(new),
            Users::One(actor) if actor != new.actor => {
                self.enter_recent();
                self.users = Users::Several;
                return self.enter(new);
            }
            Users::One(_) => {}
            Users::Nobody => self.users = Users::One(new.actor),
        }
        self.recent.push(new);
        if self.recent.len() == MOST_RECENT {
            self.enter_recent();
        }
    }

    fn enter_recent(&mut self) {
        let mut recent = std::mem::take(&mut self.recent);
        recent.drain(..).for_each(|used| self.enter(used));
        self.recent = recent; // Reuses its memory.
    }

    fn enter(&mut self, new: Use) {
        let actor = &self.actors[new.actor];
        self.shadow.add(new, &actor.before, |used| {
            let worker = RacingWorker::from(actor.stream);
            let access = if new.write { RacingAccess::Write } else { RacingAccess::Read };
            let second = racing(new.site, worker, access, new.end - new.start);
            report(&self.log, &self.actors, used, second, (new.start, new.end));
            #[cfg(test)]
            self.pairs.push((used.op, Some(new.op)));
        });
        if self.shadow.len() > self.limit {
            let too_many = self.shadow.len() > MOST_PIECES;
            let oldest = if too_many { new.op.saturating_sub(MOST_PIECES as OpId) } else { 0 };
            self.shadow.prune(&self.host, oldest);
            self.limit = FEW_PIECES.max(2 * self.shadow.len());
        }
    }

    /// Called when the host has waited. If it has waited for all work, no remaining use can race.
    fn host_knows(&mut self, is_new: bool) {
        self.host_waits += u64::from(is_new);
        if self.users != Users::Nobody
            && self
                .actors
                .iter()
                .enumerate()
                .all(|(index, actor)| actor.before.of(index) <= self.host.of(index))
        {
            self.users = Users::Nobody;
            self.recent.clear();
            self.shadow.clear();
        }
    }
}

impl Site {
    /// The user's line and the current operation, else `name`.
    fn here(name: &'static str) -> Site {
        Site { operation: scope::current_operation().unwrap_or(name), place: scope::current_place() }
    }
}

impl From<StreamId> for RacingWorker {
    fn from(StreamId { device, number }: StreamId) -> RacingWorker {
        RacingWorker::Stream { device, number }
    }
}

fn racing(site: Site, worker: RacingWorker, access: RacingAccess, bytes: u64) -> RacingOperation {
    RacingOperation { operation: site.operation, place: site.place, worker, access, bytes }
}

fn report(log: &RaceLog, actors: &[Actor], used: &Use, second: RacingOperation, (start, end): (u64, u64)) {
    let stream = actors[used.actor].stream;
    let access = if used.write { RacingAccess::Write } else { RacingAccess::Read };
    let memory = card::index_of(start);
    log.add(Race {
        device: memory.unwrap_or(stream.device),
        pinned: memory.is_none(),
        operations: [racing(used.site, stream.into(), access, used.end - used.start), second],
        bytes: used.end.min(end) - used.start.max(start),
        reused: used.is_past,
    });
}
