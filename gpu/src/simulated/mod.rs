//! A simulated GPU: a discrete-event simulation behind the driver contract.
//!
//! The profiles of host and device give all durations. The kernel's Rust twin applies its effect on memory at the
//! modelled time. So a program sees the same as on hardware: a buffer that is read too early is stale, a source that is
//! overwritten too early tears, two streams without an event race, and kernel errors arrive late.
//!
//! | to learn | read |
//! | --- | --- |
//! | the order of work | `schedule.rs`, `engine.rs`, `task.rs`; `together.rs`, for processes that wait for each other |
//! | effects on memory | `execute.rs`, `memory.rs`, `pinned.rs` |
//! | durations | `cost.rs`, `host_profile.rs`; the cards' figures are in `todevice-figures` |
//! | the driver's calls | this file, `copies.rs`, `launches.rs`, `compiled.rs`; `peers.rs`, for copies that arrive corrupted |
//! | data races | `races.rs` |
//! | a monitor's readings | `activity.rs` |
//!
//! One thread drives a simulated machine, and each process has a separate simulation. The lock makes calls from several
//! threads safe, but their order, and so the modelled times, would depend on the operating system's scheduler.

pub mod activity;
mod card;
mod compiled;
pub mod convolution;
mod copies;
pub mod cost;
mod engine;
mod errors;
mod events;
mod execute;
pub mod launches;
mod memory;
pub mod peers;
mod pinned;
mod races;
mod schedule;
mod shared;
mod task;
#[cfg(test)]
mod tests;
mod together;

use std::sync::{Arc, Mutex, MutexGuard};

pub use todevice_figures::profile;

use self::card::SimulatedDevice;
use self::engine::SimulationState;
use self::events::EventRecord;
use self::memory::Room;
use self::peers::P2p;
use self::profile::Profile;
use self::task::Task;
use self::together::Together;
use crate::base::collective::{Collective, CollectiveKind, CollectiveTime};
use crate::base::compiled::{CompiledLaunch, KernelId, KernelSource};
use crate::base::conv::{Conv, ConvAlgorithm};
use crate::base::error::RacingAccess;
use crate::base::figure::Figure;
use crate::base::gemm::Gemm;
use crate::base::kernel::Launch;
use crate::base::lock::lock;
use crate::base::process::Process;
use crate::base::pytorch_build::Build;
use crate::base::reading::Gpu;
use crate::contract::driver::DeviceProperties;
use crate::contract::driver::{
    DevicePtr, Driver, DriverError, DriverResult, EventId, HostSource, HostTarget, MemoryInfo, OpId,
    PinnedPtr, Span, StreamId,
};
use crate::contract::interpreter::KernelInterpreter;
use crate::contract::libraries::Libraries;
use crate::contract::others;
use crate::contract::races::RaceLog;
use crate::host::host_profile::HostProfile;
use crate::host::time::Clock;

#[derive(Clone, Copy, Debug)]
pub struct SimulatedOptions {
    pub profile: &'static Profile,
    pub host: &'static HostProfile,
    pub count: usize,
    /// In bytes, if it differs from the profile's.
    pub memory: Option<u64>,
    /// Bytes held by another process.
    pub others: u64,
    /// Varies all durations by up to a fifth.
    pub seed: Option<u64>,
    pub setup: Setup,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// The PyTorch build, whose kernels may not run on the card. `None` if kernels are compiled for the card.
    pub build: Option<Build>,
    pub p2p: P2p,
    /// `NCCL_P2P_DISABLE=1`: collectives avoid peer access.
    pub nccl_p2p_disable: bool,
    /// The program keeps the contents of all memory. Copies and memsets take their time, but move nothing.
    pub without_contents: bool,
}

impl Setup {
    fn collectives_use_p2p(&self, profile: &Profile) -> bool {
        profile.has_peers() && self.p2p != P2p::Off && !self.nccl_p2p_disable
    }
}

pub struct Simulated {
    options: SimulatedOptions,
    room: Arc<Room>,
    host: &'static HostProfile,
    clock: Clock,
    state: Arc<Mutex<SimulationState>>,
    races: Arc<RaceLog>,
}

impl Simulated {
    pub fn new(options: SimulatedOptions, clock: Clock) -> Simulated {
        Simulated::made(options, clock, Arc::default(), Arc::default(), (0, 0, Together::default()))
    }

    fn made(
        options: SimulatedOptions,
        clock: Clock,
        room: Arc<Room>,
        races: Arc<RaceLog>,
        (process, first_op, together): (usize, OpId, Together),
    ) -> Simulated {
        let total = options.memory.unwrap_or(options.profile.memory.value as u64);
        let device =
            |index| SimulatedDevice::new(index, options.profile, (total, options.others), process, &room);
        let devices = (0..options.count).map(device).collect();
        let kind = (options.seed, options.setup);
        let state = SimulationState::new(clock.clone(), kind, devices, &races, (first_op, together));
        let state = Arc::new(Mutex::new(state));
        Simulated { options, room, host: options.host, clock, state, races }
    }

    fn state(&self) -> MutexGuard<'_, SimulationState> {
        lock(&self.state)
    }

    /// Lets other processes keep these devices working while the host is blocked.
    fn drained_by(&self, others: &dyn others::Others) {
        let state = Arc::downgrade(&self.state);
        others.set_drain(Arc::new(move || {
            if let Some(state) = state.upgrade() {
                lock(&state).drain();
            }
        }));
    }

    /// Begins a call on a device: charges the host for the call, and simulates up to the host's time.
    fn enter(&self, device: usize, cost: &Figure) -> DriverResult<MutexGuard<'_, SimulationState>> {
        let mut state = self.state();
        let on = state.devices.get_mut(device).ok_or_else(errors::invalid_device)?;
        if !std::mem::replace(&mut on.used, true) {
            self.clock.advance(self.host.context.nanoseconds());
        }
        self.clock.advance(cost.nanoseconds());
        state.run_to_now();
        state.check(device)?;
        Ok(state)
    }

    /// Ends a call that may have found races. Its work is done in any case.
    fn leave<T>(&self, done: DriverResult<T>) -> DriverResult<T> {
        if self.races.report() { done.and(Err(errors::race())) } else { done }
    }

    /// Begins a call that runs code on a device, which needs code for its architecture.
    fn enter_to_compute(&self, id: StreamId) -> DriverResult<(MutexGuard<'_, SimulationState>, usize)> {
        let entered = self.enter_stream(id, &self.host.launch)?;
        let Profile { major, minor, .. } = *self.options.profile;
        match self.options.setup.build {
            Some(build) if !build.runs_on((major, minor)) => Err(errors::no_kernel_image()),
            _ => Ok(entered),
        }
    }

    fn enter_stream(
        &self,
        id: StreamId,
        cost: &Figure,
    ) -> DriverResult<(MutexGuard<'_, SimulationState>, usize)> {
        let state = self.enter(id.device, cost)?;
        let stream = state.devices[id.device].streams.get(id.number as usize).copied();
        let stream = stream.ok_or_else(errors::invalid_handle)?;
        Ok((state, stream))
    }

    fn wait_for_stream(&self, id: StreamId) -> DriverResult<(MutexGuard<'_, SimulationState>, usize)> {
        let (mut state, stream) = self.enter_stream(id, &self.host.synchronize)?;
        state.wait_until(id.device, |state| state.streams[stream].queue.is_empty())?;
        self.clock.advance_to(state.streams[stream].ended);
        state.host_waited();
        Ok((state, stream))
    }
}

/// Rejects a range of device memory that is not fully allocated, or for which the computer has no memory.
fn check_device(
    state: &mut SimulationState,
    device: usize,
    pointer: DevicePtr,
    bytes: usize,
) -> DriverResult<()> {
    let device = state.devices.get_mut(device).ok_or_else(errors::invalid_device)?;
    if !device.memory.holds(pointer.0, bytes) {
        return Err(errors::invalid_value());
    }
    if bytes > 0 && !state.setup.without_contents { device.memory.back(pointer.0) } else { Ok(()) }
}

/// Rejects a range of page-locked memory that the caller does not own.
fn check_pinned(state: &mut SimulationState, pointer: PinnedPtr, bytes: usize) -> DriverResult<()> {
    if bytes == 0 || state.pinned.is_owned(pointer.0, bytes) { Ok(()) } else { Err(errors::invalid_value()) }
}

impl Driver for Simulated {
    fn device_count(&self) -> usize {
        self.state().devices.len()
    }

    fn properties(&self, device: usize) -> DeviceProperties {
        self.state().devices[device].properties()
    }

    fn memory_info(&self, device: usize) -> DriverResult<MemoryInfo> {
        let state = self.enter(device, &self.host.memory_info)?;
        Ok(state.devices[device].memory_info())
    }

    fn malloc(&self, device: usize, bytes: usize) -> DriverResult<DevicePtr> {
        let mut state = self.enter(device, &self.host.synchronize)?;
        // No wait for collectives, because they may need work that this process has yet to queue.
        if !state.together.is_queued {
            state.wait_until(device, |state| !state.is_in_use(device))?;
            self.clock.advance_to(state.last_end(device));
        }
        let has_contents = !state.setup.without_contents;
        let on = &mut state.devices[device];
        match (bytes, on.has_room_for(bytes)) {
            (0, _) => Err(errors::invalid_value()),
            (_, false) => {
                self.clock.advance(cost::malloc(on.profile, 0)); // Nothing is mapped.
                Err(errors::out_of_memory())
            }
            // Rejected now, so that no cache holds unusable memory.
            (_, true) if has_contents && !on.memory.can_back(bytes) => Err(errors::out_of_host_memory(bytes)),
            (_, true) => {
                self.clock.advance(cost::malloc(on.profile, bytes));
                Ok(DevicePtr(on.memory.insert(bytes)))
            }
        }
    }

    fn free(&self, device: usize, pointer: DevicePtr) -> DriverResult<()> {
        // The memory is freed even if the context is dead, because no queued work will use it.
        let entered = self.enter(device, &self.host.synchronize).map(drop);
        let mut state = self.state();
        let drained = entered.and_then(|()| state.wait_until(device, |state| !state.is_in_use(device)));
        let on = state.devices.get_mut(device).ok_or_else(errors::invalid_device)?;
        self.clock.advance(on.profile.free.nanoseconds());
        let size = on.memory.size_at(pointer.0);
        on.memory.remove(pointer.0);
        state.races.forget(pointer.0, size.unwrap_or(0));
        drained?;
        if size.is_some() { Ok(()) } else { Err(errors::invalid_value()) }
    }

    fn malloc_host(&self, bytes: usize) -> DriverResult<PinnedPtr> {
        let mut state = self.state();
        for device in 0..state.devices.len() {
            state.wait_until(device, |state| !state.is_in_use(device))?;
        }
        self.clock.advance(self.host.malloc_host_time(bytes));
        Ok(PinnedPtr(state.pinned.take(bytes)?))
    }

    fn free_host(&self, pointer: PinnedPtr) -> DriverResult<()> {
        let mut state = self.state();
        self.clock.advance(self.host.free_host.nanoseconds());
        state.run_to_now();
        if let Some(bytes) = state.pinned.size_at(pointer.0) {
            state.races.host_uses(pointer.0, bytes, RacingAccess::Free);
            state.races.forget(pointer.0, bytes);
        }
        let done = state.pinned.give_back(pointer.0);
        drop(state);
        self.leave(done)
    }

    // Not a driver call: the caller charges the host.
    fn read_host(&self, from: PinnedPtr, into: &mut [u8]) -> DriverResult<()> {
        let mut state = self.state();
        state.run_to_now();
        check_pinned(&mut state, from, into.len())?;
        state.races.host_uses(from.0, into.len(), RacingAccess::Read);
        let done = state.pinned.space().read(from.0, into);
        drop(state);
        self.leave(done)
    }

    fn write_host(&self, into: PinnedPtr, from: &[u8]) -> DriverResult<()> {
        let mut state = self.state();
        state.run_to_now();
        check_pinned(&mut state, into, from.len())?;
        state.races.host_uses(into.0, from.len(), RacingAccess::Write);
        let done = state.pinned.space().write(into.0, from);
        drop(state);
        self.leave(done)
    }

    fn copy_host_to_device(
        &self,
        stream: StreamId,
        to: DevicePtr,
        from: HostSource<'_>,
        bytes: usize,
    ) -> DriverResult<OpId> {
        self.leave(self.host_to_device(stream, to, from, bytes))
    }

    fn copy_device_to_host(
        &self,
        stream: StreamId,
        to: HostTarget<'_>,
        from: DevicePtr,
        bytes: usize,
    ) -> DriverResult<OpId> {
        self.leave(self.device_to_host(stream, to, from, bytes))
    }

    fn copy_peer(
        &self,
        stream: StreamId,
        to: (usize, DevicePtr),
        from: (usize, DevicePtr),
        bytes: usize,
    ) -> DriverResult<OpId> {
        self.leave(self.across_devices(stream, to, from, bytes))
    }

    fn memset(&self, stream: StreamId, to: DevicePtr, value: u8, bytes: usize) -> DriverResult<OpId> {
        self.leave(self.queue_memset(stream, to, value, bytes))
    }

    fn stream_create(&self, device: usize, blocking: bool) -> DriverResult<StreamId> {
        Ok(self.enter(device, &self.host.stream_create)?.add_stream(device, blocking))
    }

    fn stream_query(&self, stream: StreamId) -> DriverResult<bool> {
        let device = stream.device;
        let (mut state, stream) = self.enter_stream(stream, &self.host.query)?;
        state.settle(device)?;
        let queue = &state.streams[stream];
        let has_run = queue.queue.is_empty() && queue.ended <= self.clock.now();
        if has_run {
            state.races.host_waited_for_stream(stream);
        }
        Ok(has_run)
    }

    fn stream_synchronize(&self, stream: StreamId) -> DriverResult<()> {
        let (mut state, stream) = self.wait_for_stream(stream)?;
        state.races.host_waited_for_stream(stream);
        Ok(())
    }

    fn stream_wait_event(&self, stream: StreamId, event: EventId) -> DriverResult<()> {
        let (mut state, waiting) = self.enter_stream(stream, &self.host.wait_event)?;
        let asked = self.clock.now();
        match state.events.get(event)?.record {
            Some(EventRecord { stream, op, time: None }) => {
                state.submit(waiting, None, 0, Task::Wait { stream, op, asked })?;
            }
            Some(EventRecord { stream, op, time: Some(time) }) if time > asked => {
                state.submit_not_before(time, (waiting, None), 0, Task::Wait { stream, op, asked })?;
            }
            _ => {}
        }
        // Records the order even if the event has already happened, which depends on the times.
        let SimulationState { races, streams, .. } = &mut *state;
        races.wait((waiting, &streams[waiting]), event);
        Ok(())
    }

    fn event_create(&self, device: usize, timing: bool) -> DriverResult<EventId> {
        Ok(self.enter(device, &self.host.event_create)?.events.create(device, timing))
    }

    fn event_destroy(&self, event: EventId) -> DriverResult<()> {
        let mut state = self.state();
        state.races.destroyed(event);
        state.events.destroy(event)
    }

    fn event_record(&self, event: EventId, stream: StreamId) -> DriverResult<()> {
        let device = stream.device;
        let (mut state, stream) = self.enter_stream(stream, &self.host.event_record)?;
        if state.events.get(event)?.device != device {
            return Err(errors::invalid_handle());
        }
        let op = state.submit(stream, None, 0, Task::Record(event))?;
        state.events.get_mut(event)?.record = Some(EventRecord { stream, op, time: None });
        Ok(())
    }

    fn event_query(&self, event: EventId) -> DriverResult<bool> {
        let device = self.state().events.get(event)?.device;
        let mut state = self.enter(device, &self.host.query)?;
        state.settle(device)?;
        let has_run = state.events.get(event)?.is_complete_at(self.clock.now());
        if has_run {
            state.races.host_waited_for_event(event);
        }
        Ok(has_run)
    }

    fn event_synchronize(&self, event: EventId) -> DriverResult<()> {
        let device = self.state().events.get(event)?.device;
        let mut state = self.enter(device, &self.host.synchronize)?;
        state.wait_until(device, |state| state.events.get(event).is_ok_and(|event| event.is_complete()))?;
        let reached = state.events.get(event)?.record.and_then(|record| record.time);
        self.clock.advance_to(reached.unwrap_or(0));
        state.host_waited();
        state.races.host_waited_for_event(event);
        Ok(())
    }

    fn event_elapsed(&self, start: EventId, end: EventId) -> DriverResult<f32> {
        let device = self.state().events.get(start)?.device;
        let mut state = self.enter(device, &self.host.query)?;
        state.settle(device)?;
        let (start, end) = (state.events.get(start)?, state.events.get(end)?);
        if !start.timing || !end.timing || start.device != end.device {
            return Err(errors::invalid_handle());
        }
        let (Some(start), Some(end)) = (start.record, end.record) else {
            return Err(errors::invalid_handle());
        };
        let (Some(start), Some(end)) = (start.time, end.time) else {
            return Err(errors::not_ready());
        };
        Ok((end as f64 - start as f64) as f32 / 1e6)
    }

    fn launch(&self, stream: StreamId, launch: Launch) -> DriverResult<OpId> {
        self.leave(self.queue_kernel(stream, launch))
    }

    fn synchronize_untracked(&self, stream: StreamId) -> DriverResult<()> {
        self.wait_for_stream(stream).map(drop)
    }

    fn synchronize(&self, device: usize) -> DriverResult<()> {
        let mut state = self.enter(device, &self.host.synchronize)?;
        state.wait_until(device, |state| state.devices[device].queued == 0)?;
        self.clock.advance_to(state.last_end(device));
        state.host_waited();
        state.races.host_waited_for_device(device);
        Ok(())
    }

    fn can_access_peer(&self, device: usize, peer: usize) -> DriverResult<bool> {
        let state = self.state();
        let [Some(on), Some(_)] = [device, peer].map(|device| state.devices.get(device)) else {
            return Err(errors::invalid_device());
        };
        Ok(device != peer && on.profile.has_peers() && state.setup.p2p != P2p::Off)
    }

    fn enable_peer_access(&self, device: usize, peer: usize) -> DriverResult<()> {
        if !self.can_access_peer(device, peer)? {
            return Err(errors::peer_access_unsupported());
        }
        let mut state = self.enter(device, &self.host.enable_peer_access)?;
        let peers = &mut state.devices[device].peers;
        if peers.contains(&peer) {
            return Err(errors::peer_access_already_enabled());
        }
        peers.push(peer);
        Ok(())
    }

    /// On hardware no kernel runs out of host memory, so this error is not sticky.
    fn error_returned(&self, error: &DriverError) {
        for device in &mut self.state().devices {
            device.fault.take_if(|fault| fault == error && fault.code == errors::out_of_memory().code);
        }
    }

    fn take_spans(&self) -> Vec<Span> {
        let mut state = self.state();
        state.run_to_now();
        state.spans.drain(..).collect()
    }

    fn range_reused(&self, pointer: DevicePtr, bytes: usize) {
        self.state().races.range_reused(pointer.0, bytes);
    }
}

impl Libraries for Simulated {
    // NVML answers this, so it also works for a failed device.
    fn processes(&self, device: usize) -> Vec<Process> {
        self.state().devices.get(device).map(SimulatedDevice::processes).unwrap_or_default()
    }

    // This creates no context, and its cost is negligible.
    fn monitor(&self, device: usize) -> Option<Gpu> {
        let mut state = self.state();
        state.run_to_now();
        (device < state.devices.len()).then(|| state.monitor(device))
    }

    fn gemm(&self, stream: StreamId, gemm: Gemm) -> DriverResult<OpId> {
        self.leave(self.queue_gemm(stream, gemm))
    }

    fn compile(
        &self,
        _device: usize,
        source: &KernelSource<'_>,
        interpreter: Option<&dyn KernelInterpreter>,
    ) -> DriverResult<KernelId> {
        self.compile_kernel(source, interpreter)
    }

    fn launch_compiled(&self, stream: StreamId, launch: CompiledLaunch) -> DriverResult<OpId> {
        self.leave(self.queue_compiled(stream, launch))
    }

    fn cudnn_version(&self) -> Option<usize> {
        Some(convolution::VERSION)
    }

    fn convolution_algorithms(&self, device: usize, conv: &Conv) -> DriverResult<Vec<ConvAlgorithm>> {
        let state = self.enter(device, &self.host.choose_algorithm)?;
        Ok(convolution::algorithms(state.devices[device].profile, conv))
    }

    fn convolution(
        &self,
        stream: StreamId,
        conv: &Conv,
        algorithm: &ConvAlgorithm,
        _workspace: DevicePtr,
    ) -> DriverResult<OpId> {
        self.leave(self.queue_convolution(stream, conv, algorithm))
    }

    fn fork(&self, process: others::RankProcess, clock: Clock) -> Option<Box<dyn Libraries>> {
        let others::RankProcess { number, first_op, others } = process;
        let (room, races, together) =
            (self.room.clone(), self.races.clone(), Together::with(Some(others.clone())));
        let forked = Simulated::made(self.options, clock, room, races, (number, first_op, together));
        forked.drained_by(&*others);
        Some(Box::new(forked))
    }

    fn join(&self, others: Arc<dyn others::Others>) -> bool {
        self.drained_by(&*others);
        self.state().together = Together::with(Some(others));
        true
    }

    fn collective(&self, stream: StreamId, part: Collective) -> DriverResult<OpId> {
        self.leave(self.queue_collective(stream, part))
    }

    fn collective_time(&self, kind: CollectiveKind, bytes: usize, ranks: usize) -> Option<CollectiveTime> {
        let SimulatedOptions { profile, setup, .. } = self.options;
        Some(cost::collective(profile, setup.collectives_use_p2p(profile), kind, bytes, ranks))
    }

    fn build(&self) -> Option<Build> {
        self.options.setup.build
    }

    fn race_log(&self) -> Option<&RaceLog> {
        Some(&self.races)
    }
}
