//! The order of events on a simulated GPU: which piece of work begins or ends next, and when. (These are steps of the
//! simulation, not CUDA events.)
//!
//! The rule is that **nothing later than the host's `now` has happened**. `now` is the time of the simulated host's
//! clock, which advances by modelled amounts and never by wall time. Work is queued at the host's time and begins later
//! than that. So every decision up to `now` is made with full knowledge and is final: nothing is ever rolled back, and
//! the same program always runs the same way. A kernel's twin runs, and its effect lands in memory, when the simulation
//! reaches the kernel's end; a long copy lands in a few slices. A program that reads earlier, without a wait, reads the
//! old bytes.
//!
//! The work of a stream runs in order. The work at the head of a stream's queue is ready when the work it waits for has
//! run. A free engine takes the work that has been ready longest, and among equals the work that was queued first.
//!
//! Several ranks (processes) can meet in a collective, which ends after the last of them has arrived. Then an event is
//! final only before the `horizon`: the earliest possible end of a collective that another rank may not have reached.
//!
//! Not here: queuing and executing work, in `engine.rs`, and its duration, in `cost.rs`. This is the bottom of the
//! stack. Next in the spine: `ops/mod.rs` of the tensor crate, where operations begin.

use super::engine::{EngineState, Head, Op, Queue, SimulationState};
use crate::contract::driver::{DriverResult, OpId, StreamId};

/// A candidate for the next event. The smallest is processed next: the earliest; at the same time, ends before
/// beginnings; then the work that has been ready longest; then the work that was queued first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Next {
    pub(super) time: u64,
    begins: bool,
    ready: u64,
    op: OpId,
    stream: usize,
}

impl SimulationState {
    /// Simulates all events up to the host's time.
    // ANCHOR: run_to_now
    pub(super) fn run_to_now(&mut self) {
        let now = self.clock.now();
        self.meet();
        while let Some(next) = self.next_final().filter(|next| next.time <= now) {
            self.process(next);
        }
    }
    // ANCHOR_END: run_to_now

    /// Makes the host wait until `done` holds.
    pub(super) fn wait_until(
        &mut self,
        device: usize,
        done: impl Fn(&SimulationState) -> bool,
    ) -> DriverResult<()> {
        self.run_to_now();
        while self.devices[device].fault.is_none() && !done(self) {
            match self.next_final() {
                Some(next) => {
                    self.clock.advance_to(next.time);
                    self.process(next);
                }
                None if self.wait_for_others(device, &done) => {}
                None => return Err(self.deadlock(device)),
            }
        }
        self.check(device)
    }

    /// The next event, if no other rank can still change it.
    fn next_final(&self) -> Option<Next> {
        self.next().filter(|next| next.time < self.horizon())
    }

    pub(super) fn next(&self) -> Option<Next> {
        self.active.iter().filter_map(|stream| self.next_of(*stream)).min()
    }

    fn next_of(&self, stream: usize) -> Option<Next> {
        let op = self.streams[stream].queue.front()?;
        match self.streams[stream].head {
            Head::Waiting | Head::Arrived(_) => None,
            Head::Running { start, next, .. } => {
                Some(Next { time: next, begins: false, ready: start, op: op.id, stream })
            }
            Head::Ready(ready) => {
                let engine = op.engine.filter(|_| !op.task.shares_its_engine());
                let engine = engine.map_or(EngineState::default(), |engine| self.engines[engine]);
                let time = ready.max(engine.free_at);
                (!engine.busy).then_some(Next { time, begins: true, ready, op: op.id, stream })
            }
        }
    }

    pub(super) fn process(&mut self, next: Next) {
        let Next { time, stream, begins, .. } = next;
        if begins {
            self.begin(stream);
        }
        let Queue { id: StreamId { device, .. }, head, queue, .. } = &self.streams[stream];
        let (device, head) = (*device, *head);
        let Some(op) = queue.front() else { return };
        let (engine, slices) = (op.engine, op.task.slices());
        match (head, engine) {
            (Head::Ready(_), Some(engine)) => {
                if op.task.shares_its_engine() {
                    return self.arrive(stream, time);
                }
                self.engines[engine].busy = true;
                let next = time + op.duration / slices as u64;
                self.streams[stream].head = Head::Running { start: time, slices: 0, next };
            }
            (Head::Running { start, slices: done, .. }, _) => {
                let (done, duration) = (done + 1, op.duration);
                if let Err(fault) = self.execute(stream, done - 1) {
                    return self.kill(device, fault, time);
                }
                if done == slices {
                    return self.complete(stream, start, time);
                }
                let next = start + duration * (done as u64 + 1) / slices as u64;
                self.streams[stream].head = Head::Running { start, slices: done, next };
            }
            // A marker: an event recorded or waited for.
            _ => self.complete(stream, time, time),
        }
    }

    /// Finds the work that has become ready because other work ended at `time`.
    pub(super) fn stamp_all(&mut self, time: u64) {
        for index in 0..self.active.len() {
            self.stamp(self.active[index], time);
        }
    }

    pub(super) fn stamp(&mut self, stream: usize, time: u64) {
        let Queue { head, queue, .. } = &self.streams[stream];
        let Some(op) = queue.front() else { return };
        if *head == Head::Waiting && self.may_run(stream, op) {
            let was_over = self.together.was_over(&op.task);
            let ready = if was_over { self.streams[stream].ended } else { op.earliest.max(time) };
            self.streams[stream].head = Head::Ready(ready);
        }
    }

    /// Whether a stream's first piece of work does not wait for another stream.
    fn may_run(&self, stream: usize, op: &Op) -> bool {
        if op.task.waits_for().is_some_and(|(stream, op)| !self.streams[stream].has_run(op)) {
            return false;
        }
        let Queue { id, blocking, .. } = self.streams[stream];
        let default = self.devices[id.device].streams[0];
        match (stream == default, blocking) {
            // The legacy default stream waits for all blocking streams, and they wait for it.
            (true, _) => self.active.iter().map(|stream| &self.streams[*stream]).all(|other| {
                other.id.device != id.device || other.id == id || !other.blocking || other.has_run(op.id)
            }),
            (false, true) => self.streams[default].has_run(op.id),
            (false, false) => true,
        }
    }
}
