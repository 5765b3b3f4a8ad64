//! Blocks that several streams use (`Tensor.record_stream`).
//!
//! A freed block is reusable at once by its own stream, because the work of the next owner is queued behind. For other
//! streams the allocator records an event when the block is freed, and the block stays *active*, though not allocated,
//! until all its events have completed. Events are checked only when memory is allocated.

use std::collections::{HashMap, VecDeque};

use smallvec::SmallVec;

use super::{Allocation, Allocator, BlockId, DeviceDriver};
use crate::base::sort;
use crate::contract::driver::{DriverResult, EventId, StreamId};

#[derive(Default)]
pub(super) struct StreamUses {
    /// The other streams that use an allocated block.
    recorded: HashMap<BlockId, SmallVec<[StreamId; 2]>>,
    /// The pending events of freed blocks, for each stream in the order of the frees.
    pub(super) pending: HashMap<StreamId, VecDeque<PendingFree>>,
    /// Unused events, with their devices.
    pub(super) spare: Vec<(usize, EventId)>,
}

pub(super) struct PendingFree {
    /// `None` if recording failed, or if the freeing thread may not call the driver. The event is then recorded later,
    /// so the block is reusable late, but never too early.
    pub(super) event: Option<EventId>,
    block: BlockId,
}

impl Allocator {
    /// Marks a block as used by a stream. It is reused only after work that was queued there before the free has run.
    pub fn record_stream(&mut self, allocation: Allocation, stream: StreamId) {
        let Some(block) = allocation.block.filter(|block| self.blocks[*block].stream != stream) else {
            return;
        };
        let streams = self.uses.recorded.entry(block).or_default();
        if !streams.contains(&stream) {
            streams.push(stream);
        }
    }

    /// Records an event on every other stream that uses a newly freed block. Returns the number of events.
    pub(super) fn insert_events(&mut self, driver: &dyn DeviceDriver, block: BlockId) -> u32 {
        if self.uses.recorded.is_empty() {
            return 0;
        }
        let streams = self.uses.recorded.remove(&block).unwrap_or_default();
        for &stream in &streams {
            let event =
                driver.is_of_this_thread().then(|| self.uses.record_event(driver, stream).ok()).flatten();
            self.uses.pending.entry(stream).or_default().push_back(PendingFree { event, block });
        }
        streams.len() as u32
    }

    /// Frees the blocks whose events have completed. On each stream, the first incomplete event ends the search.
    pub(super) fn process_events(&mut self, driver: &dyn DeviceDriver) -> DriverResult<()> {
        self.take_events(driver, |driver, event| driver.query_event(event))
    }

    pub(super) fn synchronize_and_free_events(&mut self, driver: &dyn DeviceDriver) -> DriverResult<()> {
        self.stats.num_sync_all_streams += 1;
        self.take_events(driver, |driver, event| driver.synchronize_event(event).map(|()| true))
    }

    fn take_events(
        &mut self,
        driver: &dyn DeviceDriver,
        has_completed: impl Fn(&dyn DeviceDriver, EventId) -> DriverResult<bool>,
    ) -> DriverResult<()> {
        if self.uses.pending.is_empty() {
            return Ok(());
        }
        let mut streams: SmallVec<[StreamId; 4]> = self.uses.pending.keys().copied().collect();
        sort::few(&mut streams, |stream| *stream);
        for stream in streams {
            while let Some(event) = self.uses.first_event(driver, stream)? {
                if !has_completed(driver, event)? {
                    break;
                }
                let block = self.uses.pop_first(stream);
                self.uses.spare.push((stream.device, event));
                self.event_completed(driver, block);
            }
        }
        Ok(())
    }
}

impl StreamUses {
    fn record_event(&mut self, driver: &dyn DeviceDriver, stream: StreamId) -> DriverResult<EventId> {
        let spare = self.spare.iter().rposition(|(device, _)| *device == stream.device);
        let event = match spare {
            Some(index) => self.spare.swap_remove(index).1,
            None => driver.create_event(stream.device)?,
        };
        if let Err(error) = driver.record_event(event, stream) {
            self.spare.push((stream.device, event));
            return Err(error);
        }
        Ok(event)
    }

    fn first_event(&mut self, driver: &dyn DeviceDriver, stream: StreamId) -> DriverResult<Option<EventId>> {
        let Some(first) = self.pending.get(&stream).and_then(VecDeque::front) else { return Ok(None) };
        if first.event.is_some() {
            return Ok(first.event);
        }
        let event = self.record_event(driver, stream)?;
        if let Some(first) = self.pending.get_mut(&stream).and_then(VecDeque::front_mut) {
            first.event = Some(event);
        }
        Ok(Some(event))
    }

    /// Removes the stream's first pending event, which must exist. Returns its block.
    fn pop_first(&mut self, stream: StreamId) -> BlockId {
        let queue = self.pending.get_mut(&stream);
        let first = queue.and_then(VecDeque::pop_front).expect("an event has completed");
        if self.pending[&stream].is_empty() {
            self.pending.remove(&stream);
        }
        first.block
    }
}
