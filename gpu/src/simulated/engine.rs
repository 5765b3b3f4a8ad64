//! The state of the simulation: streams, engines and their work. This file queues and runs work, `schedule.rs` orders
//! it, and `together.rs` handles work of several processes.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Setup;
use super::activity;
use super::card::SimulatedDevice;
use super::convolution;
use super::cost;
use super::errors;
use super::events::SimulatedEvents;
use super::execute;
use super::peers::{P2p, lose_packets};
use super::pinned::PinnedSpace;
use super::races::Races;
use super::task::{End, Task};
use super::together::Together;
use crate::base::random::mix;
use crate::base::reading::Gpu;
use crate::contract::driver::{DriverError, DriverResult, Engine, OpId, Span, StreamId};
use crate::contract::interpreter::InterpretedKernel;
use crate::contract::races::RaceLog;
use crate::host::time::Clock;

/// The maximum number of pieces of work queued on a device. The host waits for room.
pub(super) const LAUNCH_QUEUE: usize = 1024;

/// The maximum number of spans. The latest are kept.
const MOST_SPANS: usize = 1 << 18;

/// The engines of every device: those of [`Engine`] except the links to peers.
const OWN_ENGINES: usize = 3;

pub(super) struct SimulationState {
    pub(super) clock: Clock,
    pub(super) seed: Option<u64>,
    pub(super) setup: Setup,
    pub(super) devices: Vec<SimulatedDevice>,
    pub(super) streams: Vec<Queue>,
    pub(super) pinned: PinnedSpace,
    pub(super) events: SimulatedEvents,
    pub(super) races: Races,
    pub(super) active: Vec<usize>,
    pub(super) engines: Vec<EngineState>,
    next_op: OpId,
    pub(super) spans: VecDeque<Span>,
    /// Copies whose second half is the next piece of work. Both halves belong to one call.
    pub(super) first_halves: Vec<OpId>,
    pub(super) together: Together,
    pub(super) compiled: Vec<Arc<dyn InterpretedKernel>>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct EngineState {
    pub(super) busy: bool,
    /// The earliest start of its next work.
    pub(super) free_at: u64,
}

pub(super) struct Queue {
    pub(super) id: StreamId,
    /// Whether it is ordered with the default stream.
    pub(super) blocking: bool,
    pub(super) queue: VecDeque<Op>,
    pub(super) head: Head,
    pub(super) ended: u64,
}

/// The progress of a queue's first piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// It waits for other streams, or there is no work.
    Waiting,
    /// An engine may take it from this time on.
    Ready(u64),
    /// It has reached a collective at this time, and other processes may not have.
    Arrived(u64),
    /// `slices` slices are done. The next is due at `next`.
    Running { start: u64, slices: usize, next: u64 },
}

/// A piece of work in a stream. It refers to memory by address, and sees the contents at the time when it runs.
pub(super) struct Op {
    pub(super) id: OpId,
    /// The earliest start: a launch takes time to reach the device.
    pub(super) earliest: u64,
    pub(super) duration: u64,
    /// `None` for markers in the stream, which take no time.
    pub(super) engine: Option<usize>,
    pub(super) task: Task,
}

impl SimulationState {
    pub(super) fn new(
        clock: Clock,
        (seed, setup): (Option<u64>, Setup),
        devices: Vec<SimulatedDevice>,
        races: &Arc<RaceLog>,
        (first_op, together): (OpId, Together),
    ) -> SimulationState {
        let engines = vec![EngineState::default(); devices.len() * (OWN_ENGINES + devices.len())];
        let mut state = SimulationState {
            clock,
            seed,
            setup,
            devices,
            streams: Vec::new(),
            pinned: PinnedSpace::new(!setup.without_contents),
            events: SimulatedEvents::default(),
            races: Races::new(races.clone()),
            active: Vec::new(),
            engines,
            next_op: first_op,
            spans: VecDeque::new(),
            first_halves: Vec::new(),
            together,
            compiled: Vec::new(),
        };
        for device in 0..state.devices.len() {
            state.add_stream(device, true); // The default stream.
        }
        state
    }

    pub(super) fn add_stream(&mut self, device: usize, blocking: bool) -> StreamId {
        let numbers = &mut self.devices[device].streams;
        let id = StreamId { device, number: numbers.len() as u32 };
        numbers.push(self.streams.len());
        self.streams.push(Queue::new(id, blocking));
        id
    }

    /// The index of a device's engine. `peer` selects the link.
    pub(super) fn engine(&self, device: usize, engine: Engine, peer: usize) -> usize {
        let own = match engine {
            Engine::Compute => 0,
            Engine::HostToDevice => 1,
            Engine::DeviceToHost => 2,
            Engine::Peer => OWN_ENGINES + peer,
        };
        device * (OWN_ENGINES + self.devices.len()) + own
    }

    pub(super) fn engine_kind(&self, engine: usize) -> Engine {
        match engine % (OWN_ENGINES + self.devices.len()) {
            0 => Engine::Compute,
            1 => Engine::HostToDevice,
            2 => Engine::DeviceToHost,
            _ => Engine::Peer,
        }
    }

    /// Queues a piece of work. The host may have to wait for room.
    pub(super) fn submit(
        &mut self,
        stream: usize,
        engine: Option<usize>,
        duration: u64,
        task: Task,
    ) -> DriverResult<OpId> {
        self.submit_not_before(0, (stream, engine), duration, task)
    }

    /// The same, with the earliest start `then`.
    pub(super) fn submit_not_before(
        &mut self,
        then: u64,
        (stream, engine): (usize, Option<usize>),
        duration: u64,
        task: Task,
    ) -> DriverResult<OpId> {
        let device = self.streams[stream].id.device;
        if self.devices[device].queued >= LAUNCH_QUEUE {
            self.wait_until(device, |state| state.devices[device].queued < LAUNCH_QUEUE)?;
        }
        if let Task::Copy(copy) = &task {
            self.for_pinned(copy.places(), PinnedSpace::hold);
        }
        self.together.queued(&task);
        let id = self.next_op;
        self.next_op += 1;
        self.races.queue((stream, &self.streams[stream]), id, &task, &self.pinned);
        let earliest = self.clock.now() + self.devices[device].profile.launch_latency.nanoseconds();
        let earliest = earliest.max(then);
        let duration = cost::jitter(duration, id, self.seed);
        self.devices[device].queued += 1;
        let queue = &mut self.streams[stream].queue;
        queue.push_back(Op { id, earliest, duration, engine, task });
        if queue.len() == 1 {
            self.active.push(stream);
            // The stream's last work may have ended after the host's time.
            self.stamp(stream, self.streams[stream].ended);
        }
        Ok(id)
    }

    pub(super) fn last_end(&self, device: usize) -> u64 {
        let streams = self.devices[device].streams.iter().map(|stream| &self.streams[*stream]);
        streams.map(|stream| stream.ended).max().unwrap_or(0)
    }

    /// Returns the error that killed a device's context, if one did.
    pub(super) fn check(&self, device: usize) -> DriverResult<()> {
        self.devices[device].fault.clone().map_or(Ok(()), Err)
    }

    /// Whether queued work of any device uses this device's memory.
    pub(super) fn is_in_use(&self, device: usize) -> bool {
        self.devices[device].queued > 0
            || self.active.iter().any(|stream| {
                let queue = &self.streams[*stream].queue;
                queue.iter().any(|op| matches!(&op.task, Task::Copy(copy) if copy.touches(device)))
            })
    }

    pub(super) fn monitor(&self, device: usize) -> Gpu {
        let running = self.devices[device].streams.iter().filter_map(|stream| {
            let Queue { head: Head::Running { start, .. }, queue, .. } = &self.streams[*stream] else {
                return None;
            };
            let op = queue.front()?;
            Some((&op.task, self.engine_kind(op.engine?), (*start, start + op.duration)))
        });
        activity::monitor((device, &self.devices[device]), self.clock.now(), running)
    }

    pub(super) fn deadlock(&self, device: usize) -> DriverError {
        errors::deadlock(self.describe_waiting(device))
    }

    fn describe_waiting(&self, device: usize) -> String {
        let waiting = self.active.iter().map(|stream| &self.streams[*stream]);
        match waiting.filter_map(|stream| Some((stream.id, stream.queue.front()?.id))).min() {
            Some((stream, op)) => format!(
                "the first work of stream {} of device {}, number {op}, waits for work that will never run",
                stream.number, stream.device
            ),
            None => format!("device {device} has no work that could end the wait"),
        }
    }

    /// Interprets a compiled kernel when it begins, which determines its duration.
    pub(super) fn begin(&mut self, stream: usize) {
        let Queue { id, queue, .. } = &mut self.streams[stream];
        if let Some(Op { id: op, duration, task: Task::Compiled(task), .. }) = queue.front_mut() {
            *duration = cost::jitter(task.begin(&mut self.devices[id.device].memory), *op, self.seed);
        }
    }

    /// Applies one slice of a stream's first piece of work.
    pub(super) fn execute(&mut self, stream: usize, slice: usize) -> DriverResult<()> {
        let Queue { id, queue, .. } = &self.streams[stream];
        let Some(op) = queue.front() else { return Ok(()) };
        let seed = self.seed.unwrap_or(0);
        let memory = &mut self.devices[id.device].memory;
        match &op.task {
            Task::Kernel(launch) => execute::kernel(memory, launch),
            Task::Compiled(task) => task.end(memory),
            Task::Gemm(gemm) => execute::gemm(memory, gemm),
            Task::Convolution(task) => convolution::execute(memory, task, op.id ^ seed.rotate_left(32)),
            Task::Copy(_) | Task::Memset { .. } if self.setup.without_contents => Ok(()),
            Task::Memset { to, value, bytes } => execute::memset(memory, *to, *value, *bytes),
            Task::Copy(copy) => {
                let part = copy.slice(slice);
                execute::copy(&mut self.devices, &mut self.pinned, copy, part)?;
                let is_direct = op.engine.is_some_and(|engine| self.engine_kind(engine) == Engine::Peer);
                match copy.to.offset(part.0) {
                    End::Device { device, address } if is_direct && self.setup.p2p == P2p::Broken => {
                        lose_packets(&mut self.devices[device].memory, seed, address, part)
                    }
                    _ => Ok(()),
                }
            }
            Task::Collective(part) => {
                self.together.take(part, memory, (self.setup, mix(seed ^ id.device as u64)))
            }
            Task::Record(_) | Task::Wait { .. } => Ok(()),
        }
    }

    pub(super) fn complete(&mut self, stream: usize, start: u64, end: u64) {
        let id = self.streams[stream].id;
        let Some(op) = self.streams[stream].queue.pop_front() else { return };
        self.together.ended(&op, end);
        if let Some(engine) = op.engine {
            let kind = self.engine_kind(engine);
            let profile = self.devices[id.device].profile;
            let gap = if kind == Engine::Compute { profile.kernel_gap.nanoseconds() } else { 0 };
            self.engines[engine] = EngineState { busy: false, free_at: end + gap };
            if self.spans.len() == MOST_SPANS {
                self.spans.pop_front();
            }
            let first_half = self.first_halves.iter().position(|half| *half == op.id);
            let call = first_half.map_or(op.id, |half| self.first_halves.swap_remove(half) + 1);
            self.spans.push_back(Span { op: call, stream: id, engine: kind, start, end });
            self.devices[id.device].activity.note(profile, kind, &op.task, (start, end));
        }
        match op.task {
            Task::Record(event) => self.events.reached(event, op.id, end),
            Task::Copy(copy) => self.for_pinned(copy.places(), PinnedSpace::release),
            _ => {}
        }
        self.devices[id.device].queued -= 1;
        self.streams[stream].ended = end;
        self.streams[stream].head = Head::Waiting;
        if self.streams[stream].queue.is_empty() {
            self.active.retain(|active| *active != stream);
        }
        self.stamp_all(end);
    }

    /// Kills a device's context after a fault. Its queued work will not run.
    pub(super) fn kill(&mut self, device: usize, fault: DriverError, time: u64) {
        self.devices[device].fault = Some(fault);
        self.devices[device].queued = 0;
        for stream in self.devices[device].streams.clone() {
            let running = matches!(self.streams[stream].head, Head::Running { .. } | Head::Arrived(_));
            self.together.gave_up(self.streams[stream].head);
            for (index, op) in std::mem::take(&mut self.streams[stream].queue).into_iter().enumerate() {
                if let (0, true, Some(engine)) = (index, running, op.engine) {
                    self.engines[engine] = EngineState { busy: false, free_at: time };
                }
                match op.task {
                    // If the context recovers, nothing may wait for this event forever.
                    Task::Record(event) => self.events.reached(event, op.id, time),
                    Task::Copy(copy) => self.for_pinned(copy.places(), PinnedSpace::release),
                    _ => {}
                }
            }
            self.streams[stream].head = Head::Waiting;
        }
        let streams = &self.streams;
        self.active.retain(|stream| !streams[*stream].queue.is_empty());
        self.stamp_all(time);
    }

    fn for_pinned(&mut self, places: [End; 2], action: fn(&mut PinnedSpace, u64)) {
        for place in places {
            if let End::Pinned(address) = place {
                action(&mut self.pinned, address);
            }
        }
    }
}

impl Queue {
    pub(super) fn new(id: StreamId, blocking: bool) -> Queue {
        let queue = VecDeque::new();
        Queue { id, blocking, queue, head: Head::Waiting, ended: 0 }
    }

    /// Whether its work up to and including `op` has run.
    pub(super) fn has_run(&self, op: OpId) -> bool {
        self.queue.front().is_none_or(|front| front.id > op)
    }
}
