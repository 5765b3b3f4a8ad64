//! Device memory from the caching allocators.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Cuda, PerDevice, Result};
use crate::base::device::{Device, StreamKey, Streams};
use crate::base::error::{GpuError, MemoryHolder, OutOfMemory};
use crate::base::lock::lock;
use crate::base::sort;
use crate::contract::driver::{DevicePtr, DriverResult, EventId, StreamId};
use crate::contract::events::EventKind;
use crate::host::host_context::HostContext;
use crate::host::scope::{self, Place};
use crate::runtime::allocator::settings::{Settings, check_fraction};
use crate::runtime::allocator::snapshot::{BlockState, SegmentInfo};
use crate::runtime::allocator::{Allocation, DeviceDriver, MallocError};
use crate::runtime::stats::DeviceStats;

/// Device memory held by a storage.
pub struct DeviceMemory {
    cuda: Arc<Cuda>,
    pub(super) device: usize,
    allocation: Allocation,
    stream: StreamId,
}

impl DeviceMemory {
    pub fn device(&self) -> Device {
        Device::Cuda { index: self.device, machine: self.cuda.machine }
    }

    pub fn cuda(&self) -> &Arc<Cuda> {
        &self.cuda
    }

    /// The thread's current stream, on which work on this memory is queued.
    pub fn current_stream(&self) -> StreamId {
        HostContext::current_stream(self.cuda.machine, self.device)
    }

    pub fn current_stream_key(&self) -> StreamKey {
        StreamKey { machine: self.cuda.machine, id: self.current_stream() }
    }

    pub fn find_stream(&self, streams: &Streams) -> StreamKey {
        let machine = self.cuda.machine;
        StreamKey { machine, id: StreamId::current_in(streams, machine, self.device) }
    }

    pub fn pointer(&self, offset: usize) -> DevicePtr {
        DevicePtr(self.allocation.pointer.0 + offset as u64)
    }

    pub fn address(&self) -> u64 {
        self.allocation.pointer.0
    }

    /// Marks the memory as used by a stream (`Tensor.record_stream`). Reuse waits for the stream's work up to the drop.
    pub fn record_stream(&self, stream: StreamId) {
        lock(&self.cuda.devices[self.device].allocator).record_stream(self.allocation, stream);
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.cuda.free(self.device, self.allocation, self.stream);
    }
}

struct OfDevice<'a> {
    cuda: &'a Cuda,
    device: usize,
}

impl DeviceDriver for OfDevice<'_> {
    fn malloc(&self, bytes: usize) -> DriverResult<DevicePtr> {
        let begin = self.cuda.clock.now();
        let pointer = self.cuda.driver.malloc(self.device, bytes)?;
        let stream = StreamId::default_of(self.device);
        let kind = EventKind::DriverMalloc { address: pointer.0, bytes: bytes as u64 };
        self.cuda.note_since(begin, stream, kind, None);
        Ok(pointer)
    }

    fn free(&self, pointer: DevicePtr) -> DriverResult<()> {
        let begin = self.cuda.clock.now();
        self.cuda.driver.free(self.device, pointer)?;
        let kind = EventKind::DriverFree { address: pointer.0 };
        self.cuda.note_since(begin, StreamId::default_of(self.device), kind, None);
        Ok(())
    }

    fn completed(&self, pointer: DevicePtr, stream: StreamId) {
        self.cuda.note(stream, EventKind::FreeCompleted { address: pointer.0 }, None);
    }

    fn is_of_this_thread(&self) -> bool {
        self.cuda.check_thread().is_ok()
    }

    fn create_event(&self, device: usize) -> DriverResult<EventId> {
        self.cuda.driver.event_create(device, false)
    }

    fn record_event(&self, event: EventId, stream: StreamId) -> DriverResult<()> {
        self.cuda.driver.event_record(event, stream)
    }

    fn query_event(&self, event: EventId) -> DriverResult<bool> {
        self.cuda.driver.event_query(event)
    }

    fn synchronize_event(&self, event: EventId) -> DriverResult<()> {
        self.cuda.driver.event_synchronize(event)
    }
}

impl Cuda {
    #[track_caller]
    pub fn allocate(self: &Arc<Cuda>, device: usize, bytes: usize) -> Result<DeviceMemory> {
        self.check_thread()?;
        let stream = HostContext::current_stream(self.machine, device);
        let allocation = self.malloc(stream, bytes)?;
        Ok(DeviceMemory { cuda: self.clone(), device, allocation, stream })
    }

    #[track_caller]
    pub(super) fn malloc(&self, stream: StreamId, bytes: usize) -> Result<Allocation> {
        let place = scope::here();
        let allocated = self.try_malloc(stream, bytes, place);
        allocated.map_err(|error| self.no_memory(stream.device, bytes, place, error))
    }

    /// Like [`malloc`](Self::malloc), but without the error report, which reads the list of workspaces: the caller may
    /// hold its lock. After unlocking it, the caller passes the error to [`no_memory`](Self::no_memory).
    pub(super) fn try_malloc(
        &self,
        stream: StreamId,
        bytes: usize,
        place: Place,
    ) -> std::result::Result<Allocation, MallocError> {
        let device = stream.device;
        let begin = self.clock.now();
        let mut allocator = lock(&self.devices[device].allocator);
        let allocation = allocator.malloc(&OfDevice { cuda: self, device }, bytes, stream, place)?;
        let block = allocator.size_of(allocation);
        drop(allocator);
        self.driver.range_reused(allocation.pointer, bytes);
        if bytes > 0 {
            let kind = EventKind::Allocate { address: allocation.pointer.0, bytes: bytes as u64, block };
            self.note_since(begin, stream, kind, None);
        }
        Ok(allocation)
    }

    fn free(&self, device: usize, allocation: Allocation, stream: StreamId) {
        // Recorded under the lock, before the memory can be allocated again.
        let mut allocator = lock(&self.devices[device].allocator);
        allocator.free(&OfDevice { cuda: self, device }, allocation);
        let kind = EventKind::Free { address: allocation.pointer.0, waits: allocator.waits(allocation) };
        self.note(stream, kind, None);
    }

    pub(super) fn no_memory(
        &self,
        device: usize,
        bytes: usize,
        place: Place,
        error: MallocError,
    ) -> GpuError {
        let memory = match error {
            MallocError::OutOfMemory(memory) => memory,
            MallocError::MoreThanAnExabyte => return GpuError::MoreThanAnExabyte { bytes: bytes as u64 },
            MallocError::Driver(error) => return self.error(error),
        };
        let info = self.driver.memory_info(device);
        let (free, total) = info.map_or((0, 0), |info| (info.free, info.total));
        GpuError::OutOfDeviceMemory(Box::new(OutOfMemory {
            device,
            tried: memory.requested,
            total,
            free,
            processes: self.driver.processes(device),
            allowed: memory.allowed,
            allocated: memory.allocated,
            reserved: memory.reserved,
            operation: scope::current_operation(),
            place,
            holders: self.holders(device),
        }))
    }

    /// The lines that hold memory of a device, largest first.
    fn holders(&self, device: usize) -> Vec<MemoryHolder> {
        let workspaces = self.workspaces(device);
        let mut by_line = BTreeMap::new();
        for block in self.memory_snapshot(device).into_iter().flat_map(|segment| segment.blocks) {
            if let (Some(place), BlockState::ActiveAllocated) = (block.place, block.state) {
                let place = (!workspaces.contains(&block.pointer.0)).then_some(place);
                let line = place.map(|place| (place.file(), place.line()));
                let holder =
                    by_line.entry(line).or_insert_with(|| MemoryHolder { place, blocks: 0, bytes: 0 });
                holder.blocks += 1;
                holder.bytes += block.size;
            }
        }
        let mut holders: Vec<MemoryHolder> = by_line.into_values().collect();
        sort::by_key(&mut holders, |holder| std::cmp::Reverse(holder.bytes));
        holders
    }

    pub fn memory_stats(&self, device: usize) -> DeviceStats {
        *lock(&self.devices[device].allocator).stats()
    }

    pub fn memory_stats_by_name(&self, device: usize) -> BTreeMap<String, i64> {
        let allocator = lock(&self.devices[device].allocator);
        let mut numbers = allocator.stats().by_name();
        let max_split_size = allocator.settings().max_split_size.map_or(-1, |bytes| bytes as i64);
        numbers.insert("max_split_size".to_string(), max_split_size);
        numbers
    }

    pub fn memory_snapshot(&self, device: usize) -> Vec<SegmentInfo> {
        lock(&self.devices[device].allocator).snapshot().collect()
    }

    /// The start addresses of the cuBLAS workspaces.
    pub fn workspaces(&self, device: usize) -> Vec<u64> {
        let workspaces = lock(&self.devices[device].workspaces);
        workspaces.iter().map(|(_, allocation)| allocation.pointer.0).collect()
    }

    /// Frees the cuBLAS workspaces of all devices. The next product on a stream allocates another.
    pub fn clear_workspaces(&self) {
        for (device, gpu) in self.devices.iter().enumerate() {
            let workspaces = std::mem::take(&mut *lock(&gpu.workspaces));
            workspaces.into_iter().for_each(|(stream, taken)| self.free(device, taken, stream));
        }
    }

    pub fn reset_peak_memory_stats(&self, device: usize) {
        lock(&self.devices[device].allocator).reset_peak_memory_stats();
    }

    pub fn reset_accumulated_memory_stats(&self, device: usize) {
        lock(&self.devices[device].allocator).reset_accumulated_memory_stats();
    }

    /// Empties the caches of all devices, even if one fails. Returns the first error.
    pub fn empty_cache(&self) -> Result<()> {
        self.check_thread()?;
        let mut result = Ok(());
        for (device, gpu) in self.devices.iter().enumerate() {
            let emptied = lock(&gpu.allocator).empty_cache(&OfDevice { cuda: self, device });
            result = result.and(emptied);
        }
        result.map_err(|error| self.error(error))
    }

    pub fn memory_info(&self, device: usize) -> Result<(u64, u64)> {
        self.check_thread()?;
        let info = self.driver.memory_info(device).map_err(|error| self.error(error))?;
        Ok((info.free, info.total))
    }

    pub fn can_access_peer(&self, device: usize, peer: usize) -> Result<bool> {
        self.check_thread()?;
        self.driver.can_access_peer(device, peer).map_err(|error| self.error(error))
    }

    pub fn set_memory_fraction(&self, device: usize, fraction: f64) -> Result<()> {
        check_fraction(fraction).map_err(GpuError::AllocatorOption)?;
        self.devices[device].limit_memory(fraction);
        Ok(())
    }

    pub fn memory_fraction(&self, device: usize) -> f64 {
        let gpu = &self.devices[device];
        let allowed = lock(&gpu.allocator).allowed();
        allowed.map_or(1.0, |allowed| allowed as f64 / gpu.properties.total_memory as f64)
    }

    pub fn caching_allocator_enable(&self, value: bool) {
        for gpu in &self.devices {
            lock(&gpu.allocator).enable(value);
        }
    }

    pub fn set_allocator_settings(&self, settings: Settings) {
        for gpu in &self.devices {
            lock(&gpu.allocator).set_settings(settings);
            if let Some(fraction) = settings.memory_fraction {
                gpu.limit_memory(fraction);
            }
        }
    }
}

impl PerDevice {
    fn limit_memory(&self, fraction: f64) {
        let allowed = (fraction * self.properties.total_memory as f64) as u64;
        lock(&self.allocator).set_allowed(allowed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::host::host_context::HostContext;
    use crate::host::host_profile::LAPTOP_8_CORES;
    use crate::host::time::Clock;
    use crate::runtime::Cuda;
    use crate::simulated::profile::T4;
    use crate::simulated::{Simulated, SimulatedOptions};

    #[test]
    fn memory_that_another_stream_uses_is_not_given_out_before_it_has() {
        let clock = Clock::default();
        let host = HostContext::new(clock.clone());
        let options = SimulatedOptions {
            profile: &T4,
            host: &LAPTOP_8_CORES,
            count: 1,
            memory: None,
            others: 0,
            seed: None,
            setup: Default::default(),
        };
        let driver = Box::new(Simulated::new(options, clock.clone()));
        let cuda = Arc::new(Cuda::new(driver, host.id(), clock, Arc::default()));
        host.enter(|| {
            let other = cuda.driver.stream_create(0, false).unwrap();
            let bytes = 64 << 20;
            let memory = cuda.allocate(0, bytes).unwrap();
            let address = memory.pointer(0);
            cuda.driver.memset(other, address, 1, bytes).unwrap();
            memory.record_stream(other);
            memory.record_stream(memory.stream);
            drop(memory);
            let figures = || {
                let stats = cuda.memory_stats(0);
                [stats.allocated_bytes, stats.active_bytes].map(|stat| stat.all.current)
            };
            assert_eq!(figures(), [0, bytes as u64]);
            // The driver's allocation waits for the device. The next allocation sees that the stream has finished.
            let small = cuda.allocate(0, 1).unwrap();
            assert!(cuda.driver.stream_query(other).unwrap());
            let again = cuda.allocate(0, bytes).unwrap();
            assert_eq!((again.pointer(0), figures()), (address, [bytes as u64 + 512; 2]));
            // While the stream is busy, its block is not reused.
            let spare = cuda.allocate(0, bytes).unwrap();
            drop(spare);
            cuda.driver.memset(other, address, 2, bytes).unwrap();
            again.record_stream(other);
            drop((again, small));
            assert_ne!(cuda.allocate(0, bytes).unwrap().pointer(0), address);
            cuda.driver.stream_synchronize(other).unwrap();
            assert_eq!(cuda.allocate(0, bytes).unwrap().pointer(0), address);
            cuda.empty_cache().unwrap();
            assert_eq!(cuda.memory_stats(0).reserved_bytes.all.current, 0);
        });
    }
}
