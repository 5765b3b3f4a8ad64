//! A fake driver with nothing but addresses and events.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::contract::driver::{DevicePtr, DriverError, DriverResult, EventId, StreamId};
use crate::runtime::allocator::snapshot::BlockState;
use crate::runtime::allocator::{Allocator, DeviceDriver, ERROR_MEMORY_ALLOCATION};

const BASE: u64 = 0x7000_0000_0000;

pub(super) struct FakeDriver {
    capacity: u64,
    /// Whether freed memory is reused, at the lowest address. Otherwise addresses only grow.
    reuse: bool,
    state: RefCell<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Call {
    Malloc,
    Free,
    CreateEvent,
    RecordEvent,
    QueryEvent,
    SynchronizeEvent,
}

pub(super) const CALLS: [Call; 6] = [
    Call::Malloc,
    Call::Free,
    Call::CreateEvent,
    Call::RecordEvent,
    Call::QueryEvent,
    Call::SynchronizeEvent,
];

#[derive(Default)]
struct State {
    segments: BTreeMap<u64, u64>,
    end: u64,
    calls: BTreeMap<Call, usize>,
    failing: BTreeMap<(Call, usize), DriverError>,
    /// The last record of each event: the stream, and whether the stream has reached it.
    events: Vec<Option<(StreamId, bool)>>,
    /// The events that each stream has not reached, in order.
    queued: BTreeMap<StreamId, Vec<EventId>>,
}

impl State {
    fn call(&mut self, call: Call) -> DriverResult<()> {
        let count = self.calls.entry(call).or_default();
        let failure = self.failing.remove(&(call, *count));
        *count += 1;
        failure.map_or(Ok(()), Err)
    }

    fn reach(&mut self, event: EventId) {
        self.events[event.0 as usize].as_mut().expect("a record").1 = true;
    }
}

impl Default for FakeDriver {
    fn default() -> FakeDriver {
        FakeDriver::with_capacity(u64::MAX)
    }
}

impl FakeDriver {
    pub(super) fn with_capacity(capacity: u64) -> FakeDriver {
        FakeDriver { capacity, reuse: true, state: RefCell::default() }
    }

    pub(super) fn with_growing_addresses(capacity: u64) -> FakeDriver {
        FakeDriver { reuse: false, ..FakeDriver::with_capacity(capacity) }
    }

    /// Makes a call fail. Numbers count from 0, from the start.
    pub(super) fn fail(&self, call: Call, number: usize, error: DriverError) {
        self.state.borrow_mut().failing.insert((call, number), error);
    }

    pub(super) fn calls(&self, call: Call) -> usize {
        self.state.borrow().calls.get(&call).copied().unwrap_or(0)
    }

    /// Lets a stream reach its next `events` events.
    pub(super) fn advance(&self, stream: StreamId, events: usize) {
        let state = &mut *self.state.borrow_mut();
        let queued = state.queued.entry(stream).or_default();
        let reached: Vec<EventId> = queued.drain(..events.min(queued.len())).collect();
        reached.into_iter().for_each(|event| state.reach(event));
    }

    /// The number of created events, and of those that are recorded but not reached.
    pub(super) fn events(&self) -> (usize, usize) {
        let state = self.state.borrow();
        (state.events.len(), state.queued.values().map(Vec::len).sum())
    }

    pub(super) fn in_use(&self) -> u64 {
        self.state.borrow().segments.values().sum()
    }

    /// Checks that the allocator has exactly this driver's segments, without gaps, and that its statistics are right.
    pub(super) fn check(&self, allocator: &Allocator) {
        let segments: Vec<_> = allocator.snapshot().collect();
        let ours: Vec<(u64, u64)> =
            self.state.borrow().segments.iter().map(|(&at, &size)| (at, size)).collect();
        let theirs: Vec<(u64, u64)> =
            segments.iter().map(|segment| (segment.pointer.0, segment.size)).collect();
        assert_eq!(ours, theirs);
        let (mut allocated, mut active, mut split) = (0, 0, 0);
        for segment in &segments {
            assert!(segment.size.is_multiple_of(2 << 20), "a segment of {} bytes", segment.size);
            let mut at = segment.pointer.0;
            let mut before_is_free = false;
            for block in &segment.blocks {
                assert_eq!(block.pointer.0, at);
                let is_free = block.state == BlockState::Inactive;
                assert!(block.size > 0 && !(is_free && before_is_free), "free blocks are merged");
                at += block.size;
                before_is_free = is_free;
                match block.state {
                    BlockState::ActiveAllocated => allocated += block.size,
                    BlockState::ActiveAwaitingFree => active += block.size,
                    BlockState::Inactive if segment.blocks.len() > 1 => split += block.size,
                    BlockState::Inactive => {}
                }
            }
        }
        let stats = allocator.stats();
        assert_eq!(stats.allocated_bytes.all.current, allocated);
        assert_eq!(stats.active_bytes.all.current, allocated + active);
        assert_eq!(stats.inactive_split_bytes.all.current, split);
        assert_eq!(stats.reserved_bytes.all.current, self.in_use());
        assert_eq!(stats.segment.all.current, segments.len() as u64);
        assert_eq!(stats.num_device_alloc - stats.num_device_free, segments.len() as u64);
        let waited_for = allocator.uses.pending.values().flatten().filter(|pending| pending.event.is_some());
        assert_eq!(self.events().0, waited_for.count() + allocator.uses.spare.len());
    }
}

impl DeviceDriver for FakeDriver {
    fn malloc(&self, bytes: usize) -> DriverResult<DevicePtr> {
        let in_use = self.in_use();
        let state = &mut *self.state.borrow_mut();
        state.call(Call::Malloc)?;
        let bytes = bytes as u64;
        assert!(bytes > 0);
        if self.capacity - in_use < bytes {
            return Err(out_of_memory());
        }
        let mut address = BASE;
        if self.reuse {
            for (&start, &size) in &state.segments {
                if address + bytes <= start {
                    break;
                }
                address = start + size;
            }
        } else {
            address += state.end;
            state.end += bytes;
        }
        state.segments.insert(address, bytes);
        Ok(DevicePtr(address))
    }

    fn free(&self, pointer: DevicePtr) -> DriverResult<()> {
        let state = &mut *self.state.borrow_mut();
        state.call(Call::Free)?;
        state.segments.remove(&pointer.0).expect("a segment that was given");
        Ok(())
    }

    fn is_of_this_thread(&self) -> bool {
        true
    }

    fn create_event(&self, _device: usize) -> DriverResult<EventId> {
        let state = &mut *self.state.borrow_mut();
        state.call(Call::CreateEvent)?;
        state.events.push(None);
        Ok(EventId(state.events.len() as u64 - 1))
    }

    fn record_event(&self, event: EventId, stream: StreamId) -> DriverResult<()> {
        let state = &mut *self.state.borrow_mut();
        state.call(Call::RecordEvent)?;
        let last = state.events[event.0 as usize].replace((stream, false));
        assert!(last.is_none_or(|(_, reached)| reached), "an event that is waited for is recorded anew");
        state.queued.entry(stream).or_default().push(event);
        Ok(())
    }

    fn query_event(&self, event: EventId) -> DriverResult<bool> {
        let state = &mut *self.state.borrow_mut();
        state.call(Call::QueryEvent)?;
        Ok(state.events[event.0 as usize].expect("a record").1)
    }

    fn synchronize_event(&self, event: EventId) -> DriverResult<()> {
        let stream = {
            let state = &mut *self.state.borrow_mut();
            state.call(Call::SynchronizeEvent)?;
            state.events[event.0 as usize].expect("a record").0
        };
        let queued = self.state.borrow().queued.get(&stream).cloned().unwrap_or_default();
        let before = queued.iter().position(|queued| *queued == event).map_or(0, |position| position + 1);
        self.advance(stream, before);
        Ok(())
    }
}

pub(super) fn out_of_memory() -> DriverError {
    DriverError {
        code: ERROR_MEMORY_ALLOCATION,
        name: "cudaErrorMemoryAllocation",
        message: "out of memory",
        detail: None,
    }
}

pub(super) fn launch_failure() -> DriverError {
    DriverError {
        code: 719,
        name: "cudaErrorLaunchFailure",
        message: "unspecified launch failure",
        detail: None,
    }
}
