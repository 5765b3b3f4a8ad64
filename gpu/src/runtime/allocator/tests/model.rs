//! A naive model of the allocator: lists of segments and blocks. It recounts all statistics after every step.

use super::driver::FakeDriver;
use crate::contract::driver::{DevicePtr, DriverResult};
use crate::runtime::allocator::{DeviceDriver, ERROR_MEMORY_ALLOCATION, NO_MEMORY};
use crate::runtime::stats::{DeviceStats, Stat};

#[derive(Default)]
pub(super) struct Model {
    segments: Vec<Segment>,
    max_split: Option<u64>,
    pub(super) allowed: Option<u64>,
    /// The streams that freed blocks wait for, in the order of the frees.
    waits: Vec<Wait>,
    stats: DeviceStats,
    /// The number and bytes of segments allocated and freed in this step: `[large, small]`.
    came: [(u64, u64); 2],
    went: [(u64, u64); 2],
    oversize_came: u64,
    oversize_went: u64,
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
    /// Whether it was freed and waits for other streams.
    waiting: bool,
}

struct Wait {
    stream: u32,
    address: u64,
    done: bool,
}

#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Address(u64),
    OutOfMemory(u64),
    DriverFailed,
}

impl Model {
    pub(super) fn new(max_split: Option<u64>) -> Model {
        Model { max_split, ..Model::default() }
    }

    pub(super) fn malloc(&mut self, driver: &FakeDriver, requested: u64, stream: u32) -> Outcome {
        if requested > 0 {
            self.look_at_streams();
        }
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
        if let Some(address) = self.take(requested, size, small, stream, None) {
            return Outcome::Address(address);
        }
        const MIB: u64 = 1024 * 1024;
        let segment_size = match size {
            _ if small => 2 * MIB,
            _ if size < 10 * MIB => 20 * MIB,
            _ => size.div_ceil(2 * MIB) * 2 * MIB,
        };
        let mut result = self.ask(driver, segment_size);
        if result.as_ref().is_err_and(|error| error.code == ERROR_MEMORY_ALLOCATION) {
            match self.release_oversize(driver, size, small, stream) {
                Ok(false) => {}
                Ok(true) => result = self.ask(driver, segment_size),
                Err(_) => return Outcome::DriverFailed,
            }
        }
        if result.as_ref().is_err_and(|error| error.code == ERROR_MEMORY_ALLOCATION) {
            if self.release(driver).is_err() {
                return Outcome::DriverFailed;
            }
            self.stats.num_alloc_retries += 1;
            result = self.ask(driver, segment_size);
        }
        match result {
            Ok(DevicePtr(address)) => {
                let blocks = vec![Block { address, size: segment_size, requested: 0, waiting: false }];
                self.segments.push(Segment { address, size: segment_size, small, stream, blocks });
                let came = &mut self.came[usize::from(small)];
                *came = (came.0 + 1, came.1 + segment_size);
                self.oversize_came += u64::from(self.oversize(segment_size));
                self.stats.num_device_alloc += 1;
                Outcome::Address(
                    self.take(requested, size, small, stream, Some(address)).expect("there is room now"),
                )
            }
            Err(error) if error.code == ERROR_MEMORY_ALLOCATION => {
                self.stats.num_ooms += 1;
                Outcome::OutOfMemory(segment_size)
            }
            Err(_) => Outcome::DriverFailed,
        }
    }

    fn ask(&self, driver: &FakeDriver, bytes: u64) -> DriverResult<DevicePtr> {
        let reserved: u64 = self.segments.iter().map(|segment| segment.size).sum();
        match self.allowed {
            Some(allowed) if reserved + bytes > allowed => Err(NO_MEMORY),
            _ => driver.malloc(bytes as usize),
        }
    }

    fn oversize(&self, size: u64) -> bool {
        self.max_split.is_some_and(|limit| size >= limit)
    }

    /// Allocates in the existing segments, if the options allow it, or in the `fresh` one.
    fn take(
        &mut self,
        requested: u64,
        size: u64,
        small: bool,
        stream: u32,
        fresh: Option<u64>,
    ) -> Option<u64> {
        let mut best: Option<(u64, u64, usize, usize)> = None;
        for (s, segment) in self.segments.iter().enumerate() {
            for (b, block) in segment.blocks.iter().enumerate() {
                let searched = fresh.is_none_or(|address| segment.address == address);
                let ours = segment.small == small && segment.stream == stream;
                let fits = searched && ours && block.size >= size;
                let better = best.is_none_or(|best| (block.size, block.address) < (best.0, best.1));
                if fits && block.requested == 0 && better {
                    best = Some((block.size, block.address, s, b));
                }
            }
        }
        let (found, address, s, b) = best?;
        let barred = match self.oversize(size) {
            false => self.oversize(found),
            true => found >= size + 20 * 1024 * 1024,
        };
        if fresh.is_none() && barred {
            return None;
        }
        let may_split = small || !self.oversize(size);
        let blocks = &mut self.segments[s].blocks;
        blocks[b].requested = requested;
        let rest = found - size;
        if may_split && ((small && rest > 0) || rest > 1024 * 1024) {
            blocks[b].size = size;
            blocks.insert(b + 1, Block { address: address + size, size: rest, requested: 0, waiting: false });
        }
        Some(address)
    }

    pub(super) fn free(&mut self, address: u64, used_on: &[u32]) {
        let waits = used_on.iter().map(|&stream| Wait { stream, address, done: false });
        self.waits.extend(waits);
        match used_on {
            [] => self.really_free(address),
            _ => self.block(address).waiting = true,
        }
        self.count();
    }

    fn block(&mut self, address: u64) -> &mut Block {
        let mut blocks = self.segments.iter_mut().flat_map(|segment| &mut segment.blocks);
        blocks.find(|block| block.address == address).expect("a block")
    }

    fn really_free(&mut self, address: u64) {
        let block = self.block(address);
        assert!(block.requested > 0);
        (block.requested, block.waiting) = (0, false);
        for segment in &mut self.segments {
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

    pub(super) fn advance(&mut self, stream: u32, count: usize) {
        let ahead = self.waits.iter_mut().filter(|wait| wait.stream == stream && !wait.done);
        ahead.take(count).for_each(|wait| wait.done = true);
    }

    /// Frees the blocks that wait for no stream.
    fn look_at_streams(&mut self) {
        let mut streams: Vec<u32> = self.waits.iter().map(|wait| wait.stream).collect();
        streams.sort_unstable();
        for stream in streams {
            while let Some(first) = self.waits.iter().position(|wait| wait.stream == stream)
                && self.waits[first].done
            {
                let address = self.waits.remove(first).address;
                if self.waits.iter().all(|wait| wait.address != address) {
                    self.really_free(address);
                    self.count();
                }
            }
        }
    }

    /// Returns oversize segments of a stream to the driver: the smallest sufficient one, else the largest.
    fn release_oversize(
        &mut self,
        driver: &FakeDriver,
        size: u64,
        small: bool,
        stream: u32,
    ) -> DriverResult<bool> {
        let Some(limit) = self.max_split else { return Ok(false) };
        let wanted = size.max(limit);
        let is_candidate = |segment: &&Segment| {
            let whole = segment.blocks.len() == 1 && segment.blocks[0].requested == 0;
            whole && segment.small == small && segment.stream == stream && segment.size >= limit
        };
        let candidates = self.segments.iter().filter(is_candidate);
        let mut candidates: Vec<(u64, u64)> =
            candidates.map(|segment| (segment.size, segment.address)).collect();
        candidates.sort_unstable();
        if let Some(enough) = candidates.iter().find(|(size, _)| *size >= wanted) {
            self.give_back(driver, enough.1)?;
            return Ok(true);
        }
        let mut released = 0;
        while let Some((size, address)) = candidates.pop().filter(|_| released < wanted) {
            self.give_back(driver, address)?;
            released += size;
        }
        Ok(released >= wanted)
    }

    fn give_back(&mut self, driver: &FakeDriver, address: u64) -> DriverResult<()> {
        driver.free(DevicePtr(address))?;
        let index = self.segments.iter().position(|segment| segment.address == address).expect("a segment");
        let segment = self.segments.remove(index);
        let went = &mut self.went[usize::from(segment.small)];
        *went = (went.0 + 1, went.1 + segment.size);
        self.oversize_went += u64::from(self.oversize(segment.size));
        self.stats.num_device_free += 1;
        Ok(())
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
        for stat in [&mut self.stats.oversize_allocations, &mut self.stats.oversize_segments] {
            stat.peak = stat.current;
        }
    }

    fn release(&mut self, driver: &FakeDriver) -> DriverResult<()> {
        self.stats.num_sync_all_streams += 1;
        self.waits.iter_mut().for_each(|wait| wait.done = true);
        self.look_at_streams();
        self.segments.sort_by_key(|segment| (segment.small, segment.stream, segment.size, segment.address));
        let mut i = 0;
        while i < self.segments.len() {
            let segment = &self.segments[i];
            if segment.blocks.len() > 1 || segment.blocks[0].requested > 0 {
                i += 1;
                continue;
            }
            self.give_back(driver, segment.address)?;
        }
        Ok(())
    }

    pub(super) fn stats(&self) -> &DeviceStats {
        &self.stats
    }

    /// Recounts everything, and updates the statistics by the differences.
    fn count(&mut self) {
        let limit = self.max_split.unwrap_or(u64::MAX);
        let Model { segments, stats, came, went, .. } = self;
        let sum = |small: bool, of: &dyn Fn(&Segment, &Block) -> u64| -> u64 {
            let ours = segments.iter().filter(|segment| segment.small == small);
            ours.flat_map(|segment| segment.blocks.iter().map(|block| of(segment, block))).sum()
        };
        let active = |_: &Segment, block: &Block| u64::from(block.requested > 0);
        let live = |_: &Segment, block: &Block| u64::from(block.requested > 0 && !block.waiting);
        let split =
            |segment: &Segment, block: &Block| u64::from(block.requested == 0 && block.size < segment.size);
        for small in [false, true] {
            let count = sum(small, &live);
            let bytes = sum(small, &|segment, block| live(segment, block) * block.size);
            let active_count = sum(small, &active);
            let active_bytes = sum(small, &|segment, block| active(segment, block) * block.size);
            let requested = sum(small, &|_, block| block.requested);
            let split_count = sum(small, &split);
            let split_bytes = sum(small, &|segment, block| split(segment, block) * block.size);
            for (counter, now) in [
                (&mut stats.allocation, count),
                (&mut stats.active, active_count),
                (&mut stats.allocated_bytes, bytes),
                (&mut stats.active_bytes, active_bytes),
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
        let oversize =
            |segment: &Segment, block: &Block| live(segment, block) * u64::from(block.size >= limit);
        let now = sum(false, &oversize) + sum(true, &oversize);
        let stat = &mut stats.oversize_allocations;
        let (more, less) = (now.saturating_sub(stat.current), stat.current.saturating_sub(now));
        book(stat, more, less);
        // Within a step, no segment is freed after one was allocated.
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
        for (segments, gone) in [(&mut self.oversize_went, true), (&mut self.oversize_came, false)] {
            let amount = std::mem::take(segments);
            let (more, less) = if gone { (0, amount) } else { (amount, 0) };
            book(&mut self.stats.oversize_segments, more, less);
        }
    }
}

fn book(stat: &mut Stat, more: u64, less: u64) {
    stat.current = stat.current + more - less;
    stat.allocated += more;
    stat.freed += less;
    stat.peak = stat.peak.max(stat.current);
}
