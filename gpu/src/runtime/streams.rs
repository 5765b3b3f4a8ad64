//! Streams and events of the driver.

use super::{Cuda, Result};
use crate::base::lock::lock;
use crate::contract::driver::{DriverResult, EventId, StreamId};
use crate::contract::events::{Awaited, EventKind};
use crate::contract::libraries::Libraries;

impl Cuda {
    pub fn stream_from_pool(&self, device: usize) -> Result<StreamId> {
        self.check_thread()?;
        let mut pool = lock(&self.devices[device].streams);
        pool.next(|| self.driver.stream_create(device, false)).map_err(|error| self.error(error))
    }

    pub fn stream_query(&self, stream: StreamId) -> Result<bool> {
        self.check_thread()?;
        self.driver.stream_query(stream).map_err(|error| self.error(error))
    }

    pub fn stream_synchronize(&self, stream: StreamId) -> Result<()> {
        self.check_thread()?;
        self.check_sync()?;
        let wait = |driver: &dyn Libraries| driver.stream_synchronize(stream).map(|()| None);
        self.submit(stream, EventKind::StreamSynchronize, wait)
    }

    pub fn event_create(&self, device: usize, timing: bool) -> Result<EventId> {
        self.check_thread()?;
        self.driver.event_create(device, timing).map_err(|error| self.error(error))
    }

    /// Ignores errors: after a failure to destroy an event, the next call returns the reason.
    pub fn event_destroy(&self, event: EventId) {
        let _ = self.driver.event_destroy(event);
    }

    pub fn event_record(&self, event: EventId, stream: StreamId) -> Result<()> {
        self.check_thread()?;
        let record = |driver: &dyn Libraries| driver.event_record(event, stream).map(|()| None);
        self.submit(stream, EventKind::EventRecord { event }, record)
    }

    pub fn stream_wait_event(&self, stream: StreamId, event: EventId) -> Result<()> {
        self.check_thread()?;
        let wait = |driver: &dyn Libraries| driver.stream_wait_event(stream, event).map(|()| None);
        self.submit(stream, EventKind::StreamWaitEvent { on: Awaited::Event(event) }, wait)
    }

    pub fn event_query(&self, event: EventId) -> Result<bool> {
        self.check_thread()?;
        self.driver.event_query(event).map_err(|error| self.error(error))
    }

    pub fn event_synchronize(&self, device: usize, event: EventId) -> Result<()> {
        self.check_thread()?;
        let wait = |driver: &dyn Libraries| driver.event_synchronize(event).map(|()| None);
        self.submit(StreamId::default_of(device), EventKind::EventSynchronize { event }, wait)
    }

    pub fn event_elapsed(&self, start: EventId, end: EventId) -> Result<f32> {
        self.check_thread()?;
        self.driver.event_elapsed(start, end).map_err(|error| self.error(error))
    }

    /// Makes later work of one stream wait for earlier work of another.
    pub(super) fn order(&self, earlier: StreamId, later: StreamId) -> DriverResult<()> {
        let event = self.driver.event_create(earlier.device, false)?;
        let recorded = self.driver.event_record(event, earlier);
        let ordered = recorded.and_then(|()| self.driver.stream_wait_event(later, event));
        // The later stream waits for the work, not for the event object.
        let destroyed = self.driver.event_destroy(event);
        ordered.and(destroyed)
    }

    /// Like `order`, for callers outside a driver call.
    pub fn wait_stream(&self, later: StreamId, earlier: StreamId) -> Result<()> {
        self.check_thread()?;
        if later == earlier {
            return Ok(()); // The work of a stream is in order anyway.
        }
        let kind = EventKind::StreamWaitEvent { on: Awaited::Stream(earlier) };
        self.submit(later, kind, |_| self.order(earlier, later).map(|()| None))
    }
}

const POOL: usize = 32;

#[derive(Default)]
pub struct StreamPool {
    /// Created on first use.
    streams: Vec<StreamId>,
    handed_out: usize,
}

impl StreamPool {
    pub(super) fn next(&mut self, create: impl FnOnce() -> DriverResult<StreamId>) -> DriverResult<StreamId> {
        let place = self.handed_out % POOL;
        if place == self.streams.len() {
            self.streams.push(create()?);
        }
        self.handed_out += 1;
        Ok(self.streams[place])
    }
}
