//! When work ran: an event before and one after each piece of it, while something is recorded.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::ptr;

use cudarc::driver::sys::{CUevent, CUevent_flags, CUresult, CUstream};

use super::api;
use super::api::driver::*;
use super::errors::check;
use crate::driver::{DriverResult, Engine, OpId, Span, StreamId};
use crate::time::Clock;

/// Work that has not been told of yet.
#[derive(Default)]
pub(super) struct Spans {
    recording: bool,
    pending: Vec<Pending>,
    devices: HashMap<usize, Timing>,
}

/// The events of one device; none is of use on another.
struct Timing {
    /// What times count from, and when that was on the host's clock.
    base: Event,
    base_time: u64,
    /// Events to be used again.
    idle: Vec<Event>,
}

struct Pending {
    op: OpId,
    stream: StreamId,
    engine: Engine,
    /// When the host asked for it: no work is earlier.
    asked: u64,
    start: Event,
    end: Event,
}

struct Event(CUevent);

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it was created, and nothing names it any more. Its context lives: the driver drops these first.
        unsafe { cuEventDestroy_v2(self.0) };
    }
}

// SAFETY: an event may be used from any thread.
unsafe impl Send for Event {}

impl Event {
    fn new() -> DriverResult<Event> {
        let mut event = ptr::null_mut();
        // SAFETY: there is room for the answer; the device's context is current.
        check(unsafe { cuEventCreate(&mut event, CUevent_flags::CU_EVENT_DEFAULT as u32) })?;
        Ok(Event(event))
    }

    fn record(self, stream: CUstream) -> DriverResult<Event> {
        // SAFETY: both live, in the context that is current.
        check(unsafe { cuEventRecord(self.0, stream) })?;
        Ok(self)
    }

    fn has_happened(&self) -> bool {
        // SAFETY: it lives. One that failed will never happen, and is not waited for.
        unsafe { cuEventQuery(self.0) != CUresult::CUDA_ERROR_NOT_READY }
    }

    /// Nanoseconds from another one.
    fn since(&self, base: &Event) -> Option<u64> {
        let mut milliseconds = 0.0;
        // SAFETY: both live and have happened.
        let result = unsafe { api::event_elapsed(&mut milliseconds, base.0, self.0) };
        check(result).is_ok().then(|| (f64::from(milliseconds).max(0.0) * 1e6) as u64)
    }
}

impl Timing {
    /// The device's context is current.
    fn new(clock: &Clock) -> DriverResult<Timing> {
        let base = Event::new()?.record(ptr::null_mut())?;
        // SAFETY: it lives.
        check(unsafe { cuEventSynchronize(base.0) })?;
        Ok(Timing { base, base_time: clock.now(), idle: Vec::new() })
    }

    fn event(&mut self) -> DriverResult<Event> {
        self.idle.pop().map_or_else(Event::new, Ok)
    }
}

impl Spans {
    pub(super) fn is_recording(&self) -> bool {
        self.recording
    }

    /// Times are counted anew with each recording: an event's time is a float, which grows coarse.
    pub(super) fn record(&mut self, on: bool) {
        if on && !self.recording && self.pending.is_empty() {
            self.devices.clear();
        }
        self.recording = on;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Queues work between two events. The device's context is current.
    pub(super) fn around(
        &mut self,
        (op, engine): (OpId, Engine),
        (stream, raw): (StreamId, CUstream),
        clock: &Clock,
        work: impl FnOnce() -> DriverResult<()>,
    ) -> DriverResult<()> {
        let timing = match self.devices.entry(stream.device) {
            Entry::Occupied(timing) => timing.into_mut(),
            Entry::Vacant(none) => none.insert(Timing::new(clock)?),
        };
        let start = timing.event()?.record(raw)?;
        let asked = clock.now();
        work()?;
        let end = timing.event()?.record(raw)?;
        self.pending.push(Pending { op, stream, engine, asked, start, end });
        Ok(())
    }

    /// The spans of the work that has run.
    pub(super) fn take(&mut self) -> Vec<Span> {
        let mut spans = Vec::new();
        for work in mem::take(&mut self.pending) {
            let Some(timing) = self.devices.get_mut(&work.stream.device) else { continue };
            if !work.end.has_happened() {
                self.pending.push(work);
                continue;
            }
            let Pending { op, stream, engine, asked, start, end } = work;
            if let (Some(from), Some(to)) = (start.since(&timing.base), end.since(&timing.base)) {
                // On an idle stream the first event happens before the work is asked for.
                let end = timing.base_time + to;
                let start = (timing.base_time + from).max(asked).min(end);
                spans.push(Span { op, stream, engine, start, end });
            }
            timing.idle.extend([start, end]);
        }
        spans
    }
}
