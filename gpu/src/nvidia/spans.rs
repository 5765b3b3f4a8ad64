//! The spans of work: an event before and after each piece of work, while spans are recorded.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::ptr;

use cudarc::driver::sys::CUstream;

use super::events::CudaEvent;
use crate::contract::driver::{DriverResult, Engine, OpId, Span, StreamId};
use crate::host::time::Clock;

/// Work whose spans have not been taken.
#[derive(Default)]
pub(super) struct Spans {
    recording: bool,
    pending: Vec<PendingSpan>,
    devices: HashMap<usize, Timing>,
}

struct Timing {
    /// The event from which times count, and its time on the host's clock.
    base: CudaEvent,
    base_time: u64,
    idle: Vec<CudaEvent>,
}

struct PendingSpan {
    op: OpId,
    stream: StreamId,
    engine: Engine,
    /// The time of the host's call. No work begins earlier.
    asked: u64,
    start: CudaEvent,
    end: CudaEvent,
}

impl Timing {
    /// The device's context must be current.
    fn new(clock: &Clock) -> DriverResult<Timing> {
        let base = CudaEvent::new(true)?;
        // SAFETY: the default stream lives as long as its context.
        unsafe { base.record(ptr::null_mut()) }?;
        base.synchronize()?;
        Ok(Timing { base, base_time: clock.now(), idle: Vec::new() })
    }

    fn event(&mut self) -> DriverResult<CudaEvent> {
        self.idle.pop().map_or_else(|| CudaEvent::new(true), Ok)
    }

    /// Records an event on a stream.
    ///
    /// # Safety
    /// The stream must be alive.
    unsafe fn recorded(&mut self, stream: CUstream) -> DriverResult<CudaEvent> {
        let event = self.event()?;
        // SAFETY: by the contract.
        unsafe { event.record(stream) }?;
        Ok(event)
    }

    /// Nanoseconds from the base to an event, if both have happened.
    fn time_of(&self, event: &CudaEvent) -> Option<u64> {
        event.since(&self.base).ok().map(|milliseconds| (f64::from(milliseconds).max(0.0) * 1e6) as u64)
    }
}

impl Spans {
    pub(super) fn is_recording(&self) -> bool {
        self.recording
    }

    /// Each recording has a new base, because event times are floats, which lose precision as they grow.
    pub(super) fn record(&mut self, on: bool) {
        if on && !self.recording && self.pending.is_empty() {
            self.devices.clear();
        }
        self.recording = on;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Queues work between two events. The device's context must be current.
    ///
    /// # Safety
    /// The stream must be alive.
    pub(super) unsafe fn around(
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
        // SAFETY: by the contract.
        let start = unsafe { timing.recorded(raw) }?;
        let asked = clock.now();
        work()?;
        // SAFETY: by the contract.
        let end = unsafe { timing.recorded(raw) }?;
        self.pending.push(PendingSpan { op, stream, engine, asked, start, end });
        Ok(())
    }

    pub(super) fn take(&mut self) -> Vec<Span> {
        let mut spans = Vec::new();
        for work in mem::take(&mut self.pending) {
            let Some(timing) = self.devices.get_mut(&work.stream.device) else { continue };
            // An event that failed never happens, so it is not waited for.
            if work.end.query() == Ok(false) {
                self.pending.push(work);
                continue;
            }
            let PendingSpan { op, stream, engine, asked, start, end } = work;
            if let (Some(from), Some(to)) = (timing.time_of(&start), timing.time_of(&end)) {
                // On an idle stream, the first event happens before the call.
                let end = timing.base_time + to;
                let start = (timing.base_time + from).max(asked).min(end);
                spans.push(Span { op, stream, engine, start, end });
            }
            timing.idle.extend([start, end]);
        }
        spans
    }
}
