//! Returning segments to the driver: all unused ones, or oversize ones when the options limit splitting.

use super::{Allocator, Block, BlockId, DeviceDriver, FreeBlock, Pool};
use crate::contract::driver::{DevicePtr, DriverResult, StreamId};

impl Allocator {
    /// Returns all unused segments to the driver. After an error, the remaining segments are still in the cache.
    pub(super) fn release_cached_blocks(&mut self, driver: &dyn DeviceDriver) -> DriverResult<()> {
        self.synchronize_and_free_events(driver)?;
        for pool in [Pool::Large, Pool::Small] {
            let cached: Vec<FreeBlock> = self.free_blocks(pool).iter().copied().collect();
            for FreeBlock { block, .. } in cached {
                if !self.blocks[block].is_split() {
                    self.release_block(driver, block)?;
                }
            }
        }
        Ok(())
    }

    /// Returns oversize segments: the smallest sufficient one, or the largest ones. Returns whether they suffice.
    pub(super) fn release_available_cached_blocks(
        &mut self,
        driver: &dyn DeviceDriver,
        pool: Pool,
        stream: StreamId,
        size: u64,
    ) -> DriverResult<bool> {
        let Some(max_split_size) = self.settings.max_split_size else { return Ok(false) };
        let wanted = size.max(max_split_size);
        let key = FreeBlock { stream: stream.number, size: wanted, pointer: DevicePtr(0), block: 0 };
        // A segment may have been split before the limit was set.
        let is_segment = |free: &&FreeBlock| !self.blocks[free.block].is_split();
        let free_blocks = match pool {
            Pool::Large => &self.large_blocks,
            Pool::Small => &self.small_blocks,
        };
        let of_stream = |free: &&FreeBlock| free.stream == stream.number;
        if let Some(enough) = free_blocks.range(key..).take_while(of_stream).find(is_segment) {
            let block = enough.block;
            self.release_block(driver, block)?;
            return Ok(true);
        }
        let largest = free_blocks.range(..key).rev().take_while(of_stream);
        let oversize = largest.take_while(|free| free.size >= max_split_size).filter(is_segment);
        let oversize: Vec<FreeBlock> = oversize.copied().collect();
        let mut released = 0;
        for FreeBlock { block, size, .. } in oversize {
            if released >= wanted {
                break;
            }
            self.release_block(driver, block)?;
            released += size;
        }
        Ok(released >= wanted)
    }

    /// Returns a segment to the driver. It must be one free block.
    fn release_block(&mut self, driver: &dyn DeviceDriver, block: BlockId) -> DriverResult<()> {
        let Block { pointer, size, pool, .. } = self.blocks[block];
        // This comes first: after a failure, the segment and all statistics are unchanged.
        driver.free(pointer)?;
        self.stats.num_device_free += 1;
        self.stats.segment.decrease(pool, 1);
        self.stats.reserved_bytes.decrease(pool, size);
        if self.settings.is_oversize(size) {
            self.stats.oversize_segments.decrease(1);
        }
        self.remove_from_pool(block);
        self.segments.remove(&pointer);
        self.vacant.push(block);
        Ok(())
    }
}
