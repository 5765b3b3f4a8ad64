//! Events: markers in streams. A destroyed event's handle is never reused.

use super::errors;
use crate::contract::driver::{DriverResult, EventId, OpId};

#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedEvent {
    pub(super) device: usize,
    pub(super) timing: bool,
    pub(super) record: Option<EventRecord>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct EventRecord {
    pub(super) stream: usize,
    pub(super) op: OpId,
    /// The end of the work before it.
    pub(super) time: Option<u64>,
}

impl SimulatedEvent {
    /// Whether the work before its last record has run.
    pub(super) fn is_complete(&self) -> bool {
        self.record.is_none_or(|record| record.time.is_some())
    }

    /// The same at the host's time `now`, because devices may be ahead.
    pub(super) fn is_complete_at(&self, now: u64) -> bool {
        self.record.is_none_or(|record| record.time.is_some_and(|time| time <= now))
    }
}

#[derive(Default)]
pub(super) struct SimulatedEvents {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

struct Slot {
    generation: u32,
    event: Option<SimulatedEvent>,
}

impl SimulatedEvents {
    pub(super) fn create(&mut self, device: usize, timing: bool) -> EventId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, event: None });
            self.slots.len() - 1
        });
        let slot = &mut self.slots[index];
        slot.generation += 1;
        slot.event = Some(SimulatedEvent { device, timing, record: None });
        EventId(u64::from(slot.generation) << 32 | index as u64)
    }

    pub(super) fn destroy(&mut self, id: EventId) -> DriverResult<()> {
        self.get_mut(id)?;
        let index = id.0 as u32 as usize;
        self.slots[index].event = None;
        self.free.push(index);
        Ok(())
    }

    pub(super) fn get(&self, id: EventId) -> DriverResult<SimulatedEvent> {
        let slot = self.slots.get(id.0 as u32 as usize);
        let slot = slot.filter(|slot| u64::from(slot.generation) == id.0 >> 32);
        slot.and_then(|slot| slot.event).ok_or_else(errors::invalid_handle)
    }

    pub(super) fn get_mut(&mut self, id: EventId) -> DriverResult<&mut SimulatedEvent> {
        let slot = self.slots.get_mut(id.0 as u32 as usize);
        let slot = slot.filter(|slot| u64::from(slot.generation) == id.0 >> 32);
        slot.and_then(|slot| slot.event.as_mut()).ok_or_else(errors::invalid_handle)
    }

    /// Called when a record is reached. The event may have been recorded again, or destroyed.
    pub(super) fn reached(&mut self, id: EventId, op: OpId, time: u64) {
        let Ok(event) = self.get_mut(id) else { return };
        if let Some(record) = event.record.as_mut().filter(|record| record.op == op) {
            record.time = Some(time);
        }
    }
}
