//! The driver calls that copy memory.

use super::engine::SimulationState;
use super::task::{CopyTask, End, Task};
use super::{Simulated, check_device, check_pinned, cost, errors};
use crate::contract::driver::{DevicePtr, DriverResult, Engine, HostSource, HostTarget, OpId, StreamId};

/// Pageable copies to the device up to this size go through the command buffer, without waiting for the stream.
const SMALL_PAGEABLE: usize = 64 << 10;

impl Simulated {
    /// Reads page-locked memory when the copy runs, and pageable memory before the call returns.
    pub(super) fn host_to_device(
        &self,
        stream: StreamId,
        to: DevicePtr,
        from: HostSource<'_>,
        bytes: usize,
    ) -> DriverResult<OpId> {
        let device = stream.device;
        let (mut state, stream) = self.enter_stream(stream, &self.host.copy)?;
        check_device(&mut state, device, to, bytes)?;
        let profile = state.devices[device].profile;
        let engine = (device, Engine::HostToDevice, 0);
        let to = End::Device { device, address: to.0 };
        let source = match from {
            HostSource::Pinned(source) => {
                check_pinned(&mut state, source, bytes)?;
                let duration = cost::copy(profile, Engine::HostToDevice, bytes);
                let from = End::Pinned(source.0);
                return submit_copy(&mut state, stream, engine, duration, CopyTask { from, to, bytes });
            }
            HostSource::Pageable(source) => source.get(..bytes).ok_or_else(errors::invalid_value)?,
        };

        // From here on, the driver's staging buffer is the source.
        let small = bytes <= SMALL_PAGEABLE;
        let duration = if small {
            self.clock.advance(self.host.staging.time_of(bytes as u64) as u64);
            cost::copy(profile, Engine::HostToDevice, bytes)
        } else {
            state.wait_until(device, |state| state.streams[stream].queue.is_empty())?;
            self.clock.advance_to(state.streams[stream].ended);
            state.host_waited();
            state.races.host_waited_for_stream(stream);
            cost::pageable_copy(profile, Engine::HostToDevice, bytes)
        };
        let block = state.pinned.take_staging(bytes)?;
        if !state.setup.without_contents {
            state.pinned.space().write(block, source)?;
        }
        let copy = CopyTask { from: End::Pinned(block), to, bytes };
        let submitted = submit_copy(&mut state, stream, engine, duration, copy);
        state.pinned.give_back(block)?;
        if !small {
            // The engine follows the host piece by piece, and finishes shortly after it.
            self.clock.advance(duration - profile.copy_latency.nanoseconds());
        }
        submitted
    }

    /// Writes page-locked memory when the copy runs, and pageable memory before the call returns.
    pub(super) fn device_to_host(
        &self,
        stream: StreamId,
        to: HostTarget<'_>,
        from: DevicePtr,
        bytes: usize,
    ) -> DriverResult<OpId> {
        let device = stream.device;
        let (mut state, stream) = self.enter_stream(stream, &self.host.copy)?;
        check_device(&mut state, device, from, bytes)?;
        let profile = state.devices[device].profile;
        let engine = (device, Engine::DeviceToHost, 0);
        let from = End::Device { device, address: from.0 };
        let target = match to {
            HostTarget::Pinned(target) => {
                check_pinned(&mut state, target, bytes)?;
                let duration = cost::copy(profile, Engine::DeviceToHost, bytes);
                let to = End::Pinned(target.0);
                return submit_copy(&mut state, stream, engine, duration, CopyTask { from, to, bytes });
            }
            HostTarget::Pageable(target) => target.get_mut(..bytes).ok_or_else(errors::invalid_value)?,
        };

        let block = state.pinned.take_staging(bytes)?;
        let duration = cost::pageable_copy(profile, Engine::DeviceToHost, bytes);
        let copy = CopyTask { from, to: End::Pinned(block), bytes };
        let done = submit_copy(&mut state, stream, engine, duration, copy).and_then(|op| {
            state.wait_until(device, |state| state.streams[stream].has_run(op))?;
            state.host_waited();
            state.races.host_waited_for_stream(stream);
            if !state.setup.without_contents {
                state.pinned.space().read(block, target)?;
            }
            Ok(op)
        });
        state.pinned.give_back(block)?;
        done
    }

    /// Copies within a device, on the multiprocessors.
    pub(super) fn within_device(
        &self,
        stream: StreamId,
        to: DevicePtr,
        from: DevicePtr,
        bytes: usize,
    ) -> DriverResult<OpId> {
        let device = stream.device;
        let (mut state, stream) = self.enter_stream(stream, &self.host.copy)?;
        check_device(&mut state, device, to, bytes)?;
        check_device(&mut state, device, from, bytes)?;
        let duration = cost::copy_within(state.devices[device].profile, bytes);
        let place = |pointer: DevicePtr| End::Device { device, address: pointer.0 };
        let copy = CopyTask { from: place(from), to: place(to), bytes };
        submit_copy(&mut state, stream, (device, Engine::Compute, 0), duration, copy)
    }

    /// Copies over the link if one device may access the other's memory, else through the host.
    pub(super) fn across_devices(
        &self,
        stream: StreamId,
        (to_device, to): (usize, DevicePtr),
        (from_device, from): (usize, DevicePtr),
        bytes: usize,
    ) -> DriverResult<OpId> {
        if to_device == from_device && stream.device == to_device {
            return self.within_device(stream, to, from, bytes);
        }
        if stream.device != to_device && stream.device != from_device {
            return Err(errors::invalid_value());
        }
        let (mut state, stream) = self.enter_stream(stream, &self.host.copy)?;
        check_device(&mut state, to_device, to, bytes)?;
        check_device(&mut state, from_device, from, bytes)?;
        state.check(to_device)?;
        state.check(from_device)?;
        let profile = state.devices[from_device].profile;
        let to = End::Device { device: to_device, address: to.0 };
        let from = End::Device { device: from_device, address: from.0 };
        let peers = |a: usize, b: usize| state.devices[a].peers.contains(&b);
        if peers(to_device, from_device) || peers(from_device, to_device) {
            let duration = cost::copy(profile, Engine::Peer, bytes);
            let link = (from_device, Engine::Peer, to_device);
            return submit_copy(&mut state, stream, link, duration, CopyTask { from, to, bytes });
        }

        // Down from one device, and up to the other.
        let block = state.pinned.take_staging(bytes)?;
        let down = CopyTask { from, to: End::Pinned(block), bytes };
        let up = CopyTask { from: End::Pinned(block), to, bytes };
        let time_down = cost::copy(profile, Engine::DeviceToHost, bytes);
        let time_up = cost::copy(profile, Engine::HostToDevice, bytes);
        let down_and_up = |state: &mut SimulationState| {
            let half = submit_copy(state, stream, (from_device, Engine::DeviceToHost, 0), time_down, down)?;
            state.first_halves.push(half);
            submit_copy(state, stream, (to_device, Engine::HostToDevice, 0), time_up, up)
        };
        let submitted = down_and_up(&mut state);
        state.pinned.give_back(block)?;
        submitted
    }
}

/// `duration` is the engine's time.
fn submit_copy(
    state: &mut SimulationState,
    stream: usize,
    (device, engine, peer): (usize, Engine, usize),
    duration: u64,
    copy: CopyTask,
) -> DriverResult<OpId> {
    let engine = state.engine(device, engine, peer);
    state.submit(stream, Some(engine), duration, Task::Copy(copy))
}
