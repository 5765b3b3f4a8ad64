//! The allocator again, as naively as it can be said: a list of segments, each a list of blocks, searched
//! from one end to the other. No figure is kept up to date; all are counted anew after every step.

use super::driver::FakeDriver;
use crate::cuda::allocator::{ERROR_MEMORY_ALLOCATION, Segments};
use crate::cuda::driver::{DevicePtr, DriverResult};
use crate::cuda::stats::{DeviceStats, Stat};

#[derive(Default)]
pub(super) struct Model {
    segments: Vec<Segment>,
    stats: DeviceStats,
    /// Segments and their bytes that came and went in this step: `[large, small]`.
    came: [(u64, u64); 2],
    went: [(u64, u64); 2],
}

struct Segment {
    address: u64,
    size: u64,
    small: bool,
    stream: u32,
    blocks: Vec<Block>,
}

#[derive(Clone, Copy)]
struct Block {
    address: u64,
    size: u64,
    /// 0 if it is free.
    requested: u64,
}

#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Address(u64),
    /// What was tried.
    OutOfMemory(u64),
    DriverFailed,
}

impl Model {
    pub(super) fn malloc(&mut self, driver: &FakeDriver, requested: u64, stream: u32) -> Outcome {
        let outcome = self.find(driver, requested, stream);
        self.count();
        outcome
    }

    fn find(&mut self, driver: &FakeDriver, requested: u64, stream: u32) -> Outcome {
        if requested == 0 {
            return Outcome::Address(0);
        }
        let size = requested.div_ceil(512) * 512;
        let small = size <= 1024 * 1024;
        if let Some(address) = self.take(requested, size, small, stream) {
            return Outcome::Address(address);
        }
        const MIB: u64 = 1024 * 1024;
        let segment_size = match size {
            _ if small => 2 * MIB,
            _ if size < 10 * MIB => 20 * MIB,
            _ => size.div_ceil(2 * MIB) * 2 * MIB,
        };
        let mut result = driver.malloc(segment_size as usize);
        if result.as_ref().is_err_and(|error| error.code == ERROR_MEMORY_ALLOCATION) {
            if self.release(driver).is_err() {
                return Outcome::DriverFailed;
            }
            self.stats.num_alloc_retries += 1;
            result = driver.malloc(segment_size as usize);
        }
        match result {
            Ok(DevicePtr(address)) => {
                let blocks = vec![Block { address, size: segment_size, requested: 0 }];
                self.segments.push(Segment { address, size: segment_size, small, stream, blocks });
                let came = &mut self.came[usize::from(small)];
                *came = (came.0 + 1, came.1 + segment_size);
                self.stats.num_device_alloc += 1;
                Outcome::Address(self.take(requested, size, small, stream).expect("there is room now"))
            }
            Err(error) if error.code == ERROR_MEMORY_ALLOCATION => {
                self.stats.num_ooms += 1;
                Outcome::OutOfMemory(segment_size)
            }
            Err(_) => Outcome::DriverFailed,
        }
    }

    /// Allocates in the segments that there are.
    fn take(&mut self, requested: u64, size: u64, small: bool, stream: u32) -> Option<u64> {
        let mut best: Option<(u64, u64, usize, usize)> = None;
        for (s, segment) in self.segments.iter().enumerate() {
            for (b, block) in segment.blocks.iter().enumerate() {
                let fits = segment.small == small && segment.stream == stream && block.size >= size;
                let better = best.is_none_or(|best| (block.size, block.address) < (best.0, best.1));
                if fits && block.requested == 0 && better {
                    best = Some((block.size, block.address, s, b));
                }
            }
        }
        let (found, address, s, b) = best?;
        let blocks = &mut self.segments[s].blocks;
        blocks[b].requested = requested;
        let rest = found - size;
        if (small && rest > 0) || rest > 1024 * 1024 {
            blocks[b].size = size;
            blocks.insert(b + 1, Block { address: address + size, size: rest, requested: 0 });
        }
        Some(address)
    }

    pub(super) fn free(&mut self, address: u64) {
        for segment in &mut self.segments {
            if let Some(block) = segment.blocks.iter_mut().find(|block| block.address == address) {
                assert!(block.requested > 0);
                block.requested = 0;
                let mut merged: Vec<Block> = Vec::new();
                for block in &segment.blocks {
                    match merged.last_mut() {
                        Some(last) if last.requested == 0 && block.requested == 0 => last.size += block.size,
                        _ => merged.push(*block),
                    }
                }
                segment.blocks = merged;
            }
        }
        self.count();
    }

    pub(super) fn empty_cache(&mut self, driver: &FakeDriver) -> DriverResult<()> {
        let result = self.release(driver);
        self.count();
        result
    }

    pub(super) fn reset_peak(&mut self) {
        for (_, counter) in self.stats.counters() {
            for stat in [&mut counter.all, &mut counter.large_pool, &mut counter.small_pool] {
                stat.peak = stat.current;
            }
        }
    }

    fn release(&mut self, driver: &FakeDriver) -> DriverResult<()> {
        self.stats.num_sync_all_streams += 1;
        self.segments.sort_by_key(|segment| (segment.small, segment.stream, segment.size, segment.address));
        let mut i = 0;
        while i < self.segments.len() {
            let segment = &self.segments[i];
            if segment.blocks.len() > 1 || segment.blocks[0].requested > 0 {
                i += 1;
                continue;
            }
            driver.free(DevicePtr(segment.address))?;
            let went = &mut self.went[usize::from(segment.small)];
            *went = (went.0 + 1, went.1 + segment.size);
            self.stats.num_device_free += 1;
            self.segments.remove(i);
        }
        Ok(())
    }

    pub(super) fn stats(&self) -> &DeviceStats {
        &self.stats
    }

    /// Counts everything and books the differences.
    fn count(&mut self) {
        let Model { segments, stats, came, went } = self;
        let sum = |small: bool, of: &dyn Fn(&Segment, &Block) -> u64| -> u64 {
            let ours = segments.iter().filter(|segment| segment.small == small);
            ours.flat_map(|segment| segment.blocks.iter().map(|block| of(segment, block))).sum()
        };
        let live = |_: &Segment, block: &Block| u64::from(block.requested > 0);
        let split =
            |segment: &Segment, block: &Block| u64::from(block.requested == 0 && block.size < segment.size);
        for small in [false, true] {
            let count = sum(small, &live);
            let bytes = sum(small, &|segment, block| live(segment, block) * block.size);
            let requested = sum(small, &|_, block| block.requested);
            let split_count = sum(small, &split);
            let split_bytes = sum(small, &|segment, block| split(segment, block) * block.size);
            for (counter, now) in [
                (&mut stats.allocation, count),
                (&mut stats.active, count),
                (&mut stats.allocated_bytes, bytes),
                (&mut stats.active_bytes, bytes),
                (&mut stats.requested_bytes, requested),
                (&mut stats.inactive_split, split_count),
                (&mut stats.inactive_split_bytes, split_bytes),
            ] {
                let stat = if small { &mut counter.small_pool } else { &mut counter.large_pool };
                let (more, less) = (now.saturating_sub(stat.current), stat.current.saturating_sub(now));
                book(stat, more, less);
                book(&mut counter.all, more, less);
            }
        }
        // Nothing goes back to the driver after something came from it in the same step.
        for (segments, gone) in [(went, true), (came, false)] {
            for (small, (count, bytes)) in [false, true].into_iter().zip(std::mem::take(segments)) {
                for (counter, amount) in [(&mut stats.segment, count), (&mut stats.reserved_bytes, bytes)] {
                    let stat = if small { &mut counter.small_pool } else { &mut counter.large_pool };
                    let (more, less) = if gone { (0, amount) } else { (amount, 0) };
                    book(stat, more, less);
                    book(&mut counter.all, more, less);
                }
            }
        }
    }
}

fn book(stat: &mut Stat, more: u64, less: u64) {
    stat.current = stat.current + more - less;
    stat.allocated += more;
    stat.freed += less;
    stat.peak = stat.peak.max(stat.current);
}
