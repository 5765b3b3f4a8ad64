//! Statistics of the caching allocator (`torch.cuda.memory_stats`).
//!
//! Each counter exists for all memory and for each of the two pools. It has four numbers: the current value, the peak,
//! and the sums of all increases and of all decreases.

use std::collections::BTreeMap;

use crate::runtime::allocator::Pool;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    pub current: u64,
    /// The maximum of `current` since the last reset.
    pub peak: u64,
    /// The sum of all increases since the last reset.
    pub allocated: u64,
    /// The sum of all decreases since the last reset.
    pub freed: u64,
}

impl Stat {
    pub(crate) fn increase(&mut self, amount: u64) {
        self.current += amount;
        self.peak = self.peak.max(self.current);
        self.allocated += amount;
    }

    pub(crate) fn decrease(&mut self, amount: u64) {
        self.current -= amount;
        self.freed += amount;
    }

    /// Restarts at a new value because the definition of the counter has changed.
    pub(crate) fn restart_at(&mut self, current: u64) {
        self.current = current;
        self.peak = current;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatArray {
    pub all: Stat,
    pub large_pool: Stat,
    pub small_pool: Stat,
}

impl StatArray {
    pub(crate) fn increase(&mut self, pool: Pool, amount: u64) {
        self.all.increase(amount);
        self.of(pool).increase(amount);
    }

    pub(crate) fn decrease(&mut self, pool: Pool, amount: u64) {
        self.all.decrease(amount);
        self.of(pool).decrease(amount);
    }

    /// Counts the change from `old` to `new` as one change, not as a decrease and an increase.
    pub(crate) fn replace(&mut self, pool: Pool, old: u64, new: u64) {
        if new >= old {
            self.increase(pool, new - old);
        } else {
            self.decrease(pool, old - new);
        }
    }

    fn of(&mut self, pool: Pool) -> &mut Stat {
        match pool {
            Pool::Large => &mut self.large_pool,
            Pool::Small => &mut self.small_pool,
        }
    }

    fn stats(&mut self) -> [&mut Stat; 3] {
        [&mut self.all, &mut self.large_pool, &mut self.small_pool]
    }
}

/// All counters of a device. Bytes are those of whole blocks, except in `requested_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    pub allocation: StatArray,
    /// Segments allocated from the driver.
    pub segment: StatArray,
    /// Blocks that are not free for reuse.
    pub active: StatArray,
    /// Free blocks of split segments: the summary's "non-releasable memory".
    pub inactive_split: StatArray,
    /// `memory_allocated()`.
    pub allocated_bytes: StatArray,
    /// `memory_reserved()`.
    pub reserved_bytes: StatArray,
    pub active_bytes: StatArray,
    pub inactive_split_bytes: StatArray,
    /// Bytes requested in active blocks, before rounding.
    pub requested_bytes: StatArray,
    /// Allocated blocks of at least `max_split_size`.
    pub oversize_allocations: Stat,
    pub oversize_segments: Stat,
    /// Times `cudaMalloc` failed and was retried with an emptied cache.
    pub num_alloc_retries: u64,
    /// Times the retry failed.
    pub num_ooms: u64,
    /// Times the allocator waited for all streams that use freed blocks.
    pub num_sync_all_streams: u64,
    pub num_device_alloc: u64,
    pub num_device_free: u64,
}

impl DeviceStats {
    pub fn counters(&mut self) -> [(&'static str, &mut StatArray); 9] {
        [
            ("active", &mut self.active),
            ("active_bytes", &mut self.active_bytes),
            ("allocated_bytes", &mut self.allocated_bytes),
            ("allocation", &mut self.allocation),
            ("inactive_split", &mut self.inactive_split),
            ("inactive_split_bytes", &mut self.inactive_split_bytes),
            ("requested_bytes", &mut self.requested_bytes),
            ("reserved_bytes", &mut self.reserved_bytes),
            ("segment", &mut self.segment),
        ]
    }

    /// All numbers by their names in `memory_stats()`, except the option `max_split_size`.
    pub fn by_name(mut self) -> BTreeMap<String, i64> {
        let mut numbers = BTreeMap::new();
        let mut insert = |name: &str, stat: Stat| {
            for (what, number) in [
                ("current", stat.current),
                ("peak", stat.peak),
                ("allocated", stat.allocated),
                ("freed", stat.freed),
            ] {
                numbers.insert(format!("{name}.{what}"), number as i64);
            }
        };
        for (name, StatArray { all, large_pool, small_pool }) in self.counters() {
            insert(&format!("{name}.all"), *all);
            insert(&format!("{name}.large_pool"), *large_pool);
            insert(&format!("{name}.small_pool"), *small_pool);
        }
        insert("oversize_allocations", self.oversize_allocations);
        insert("oversize_segments", self.oversize_segments);
        for (name, number) in [
            ("num_alloc_retries", self.num_alloc_retries),
            ("num_ooms", self.num_ooms),
            ("num_sync_all_streams", self.num_sync_all_streams),
            ("num_device_alloc", self.num_device_alloc),
            ("num_device_free", self.num_device_free),
        ] {
            numbers.insert(name.to_string(), number as i64);
        }
        numbers
    }

    fn each_stat(&mut self, mut change: impl FnMut(&mut Stat)) {
        for (_, counter) in self.counters() {
            counter.stats().into_iter().for_each(&mut change);
        }
        change(&mut self.oversize_allocations);
        change(&mut self.oversize_segments);
    }

    /// Sets every peak to the current value (`reset_peak_memory_stats`).
    pub(crate) fn reset_peak(&mut self) {
        self.each_stat(|stat| stat.peak = stat.current);
    }

    /// Sets the accumulated sums to 0 (`reset_accumulated_memory_stats`).
    pub(crate) fn reset_accumulated(&mut self) {
        self.each_stat(|stat| (stat.allocated, stat.freed) = (0, 0));
        self.num_alloc_retries = 0;
        self.num_ooms = 0;
        self.num_sync_all_streams = 0;
        self.num_device_alloc = 0;
        self.num_device_free = 0;
    }
}
