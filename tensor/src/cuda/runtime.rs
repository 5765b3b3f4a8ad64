//! What stands between tensors and the driver: memory through the caching allocator, launches (`launch.rs`),
//! copies (`copy.rs`), streams and events (`streams.rs`), and a note of all of it.

mod copy;
mod launch;
mod streams;

pub(crate) use launch::launch;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use smallvec::SmallVec;

use super::DeviceProperties;
use super::allocator::{Allocation, Allocator, MallocError, Segments};
use super::driver::{DevicePtr, Driver, DriverError, DriverResult, OpId, StreamId};
use super::pinned::PinnedCache;
use super::stats::DeviceStats;
use super::stream::{self, StreamKey, StreamPool, Streams};
use super::sync_debug::SyncDebugMode;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::machine::{Machine, MachineId};
use crate::ops::scope;
use crate::random::Philox;
use crate::tensor::Tensor;
use crate::time::Clock;
use crate::trace::{EventKind, Recorder};

/// The CUDA devices of a machine.
pub(crate) struct Cuda {
    driver: Box<dyn Driver>,
    machine: MachineId,
    clock: Clock,
    devices: Vec<Gpu>,
    pinned: Mutex<PinnedCache>,
    sync_debug: Mutex<SyncDebugMode>,
    recorder: Arc<Mutex<Recorder>>,
    /// The thread that drives simulated devices: with two, the order of the work would be an accident.
    thread: OnceLock<ThreadId>,
}

struct Gpu {
    properties: DeviceProperties,
    allocator: Mutex<Allocator>,
    generator: Mutex<Philox>,
    /// What cuBLAS works in, one for each stream that has multiplied matrices.
    workspaces: Mutex<SmallVec<[(StreamId, Allocation); 1]>>,
    streams: Mutex<StreamPool>,
}

/// Memory of a device that a storage holds.
pub(crate) struct DeviceMemory {
    cuda: Arc<Cuda>,
    device: usize,
    allocation: Allocation,
    /// It was taken for work of this stream, and goes back to it.
    stream: StreamId,
    /// Other streams that use it.
    recorded: Mutex<SmallVec<[StreamId; 1]>>,
}

impl DeviceMemory {
    pub(crate) fn device(&self) -> Device {
        Device::Cuda { index: self.device, machine: self.cuda.machine }
    }

    pub(crate) fn cuda(&self) -> &Arc<Cuda> {
        &self.cuda
    }

    /// The stream that work on this memory is queued on: the thread's current one.
    pub(crate) fn current_stream(&self) -> StreamId {
        stream::current(self.cuda.machine, self.device)
    }

    /// The same, by its full name.
    pub(crate) fn current_stream_key(&self) -> StreamKey {
        StreamKey { machine: self.cuda.machine, id: self.current_stream() }
    }

    /// The current one of a snapshot.
    pub(crate) fn find_stream(&self, streams: &Streams) -> StreamKey {
        let machine = self.cuda.machine;
        StreamKey { machine, id: stream::find(streams, machine, self.device) }
    }

    /// The address of a position in it, counted in bytes.
    fn pointer(&self, offset: usize) -> DevicePtr {
        DevicePtr(self.allocation.pointer.0 + offset as u64)
    }

    /// Says that work of a stream uses it: what is queued there before it is dropped will have run before the
    /// memory is used again.
    pub(crate) fn record_stream(&self, stream: StreamId) {
        let mut recorded = lock(&self.recorded);
        if stream != self.stream && !recorded.contains(&stream) {
            recorded.push(stream);
        }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // RECORD_STREAM: the caching allocator is to keep the block back until these streams are done with it.
        // Until it can, the stream that gets the block next waits for them.
        for user in std::mem::take(&mut *lock(&self.recorded)) {
            if self.cuda.order(user, self.stream).is_err() {
                let _ = self.cuda.driver.stream_synchronize(user);
            }
        }
        self.cuda.note(self.stream, EventKind::Free { address: self.allocation.pointer.0 }, None);
        lock(&self.cuda.devices[self.device].allocator).free(self.allocation);
    }
}

/// The memory of one device, for its allocator.
struct DeviceSegments<'a> {
    cuda: &'a Cuda,
    device: usize,
}

impl Segments for DeviceSegments<'_> {
    fn malloc(&self, bytes: usize) -> DriverResult<DevicePtr> {
        let begin = self.cuda.clock.now();
        let pointer = self.cuda.driver.malloc(self.device, bytes)?;
        self.cuda.note_since(begin, self.stream(), EventKind::DriverMalloc { bytes: bytes as u64 }, None);
        Ok(pointer)
    }

    fn free(&self, pointer: DevicePtr) -> DriverResult<()> {
        let begin = self.cuda.clock.now();
        self.cuda.driver.free(self.device, pointer)?;
        self.cuda.note_since(begin, self.stream(), EventKind::DriverFree, None);
        Ok(())
    }
}

impl DeviceSegments<'_> {
    fn stream(&self) -> StreamId {
        StreamId::default_of(self.device)
    }
}

/// A panic while a lock was held left nothing half done that the next holder could not live with.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cuda {
    pub(crate) fn new(
        driver: Box<dyn Driver>,
        machine: MachineId,
        clock: Clock,
        recorder: Arc<Mutex<Recorder>>,
    ) -> Cuda {
        let gpu = |device| Gpu {
            properties: driver.properties(device),
            allocator: Mutex::default(),
            generator: Mutex::new(Philox::default()),
            workspaces: Mutex::default(),
            streams: Mutex::default(),
        };
        Cuda {
            devices: (0..driver.device_count()).map(gpu).collect(),
            pinned: Mutex::default(),
            sync_debug: Mutex::default(),
            driver,
            machine,
            clock,
            recorder,
            thread: OnceLock::new(),
        }
    }

    pub(super) fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    pub(super) fn pinned(&self) -> &Mutex<PinnedCache> {
        &self.pinned
    }

    pub(super) fn sync_debug(&self) -> &Mutex<SyncDebugMode> {
        &self.sync_debug
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.now()
    }

    pub(crate) fn machine(&self) -> MachineId {
        self.machine
    }

    pub(crate) fn device_count(&self) -> usize {
        self.devices.len()
    }

    pub(crate) fn properties(&self, device: usize) -> &DeviceProperties {
        &self.devices[device].properties
    }

    /// Refuses the threads that may not use CUDA.
    pub(crate) fn check_thread(&self) -> Result<()> {
        if Machine::in_worker() {
            return Err(Error::CudaInWorker);
        }
        if self.clock.is_virtual()
            && *self.thread.get_or_init(|| thread::current().id()) != thread::current().id()
        {
            return Err(Error::SimulatedThread);
        }
        Ok(())
    }

    pub(crate) fn manual_seed(&self, seed: u64) {
        for gpu in &self.devices {
            *lock(&gpu.generator) = Philox::new(seed);
        }
    }

    /// Takes the next `draws` numbers of a device's generator: the seed, and where they begin.
    pub(crate) fn draw(&self, device: usize, draws: u64) -> [i64; 2] {
        lock(&self.devices[device].generator).take(draws)
    }
}

/// Memory.
impl Cuda {
    pub(crate) fn allocate(self: &Arc<Cuda>, device: usize, bytes: usize) -> Result<DeviceMemory> {
        self.check_thread()?;
        let stream = stream::current(self.machine, device);
        let allocation = self.malloc(stream, bytes)?;
        Ok(DeviceMemory { cuda: self.clone(), device, allocation, stream, recorded: Mutex::default() })
    }

    /// Memory for work of a stream.
    fn malloc(&self, stream: StreamId, bytes: usize) -> Result<Allocation> {
        let (device, place) = (stream.device, scope::here());
        let begin = self.clock.now();
        let allocation = lock(&self.devices[device].allocator)
            .malloc(&DeviceSegments { cuda: self, device }, bytes, stream, place)
            .map_err(|error| self.no_memory(device, bytes, error))?;
        if bytes > 0 {
            let kind = EventKind::Allocate { address: allocation.pointer.0, bytes: bytes as u64 };
            self.note_since(begin, stream, kind, None);
        }
        Ok(allocation)
    }

    fn no_memory(&self, device: usize, bytes: usize, error: MallocError) -> Error {
        match error {
            MallocError::OutOfMemory(memory) => {
                let info = self.driver.memory_info(device);
                let (free, total) = info.map_or((0, 0), |info| (info.free, info.total));
                Error::OutOfDeviceMemory {
                    device,
                    tried: memory.requested,
                    total,
                    free,
                    allocated: memory.allocated,
                    reserved: memory.reserved,
                }
            }
            MallocError::MoreThanAnExabyte => Error::MoreThanAnExabyte { bytes: bytes as u64 },
            MallocError::Driver(error) => cuda_error(error),
        }
    }

    pub(crate) fn memory_stats(&self, device: usize) -> DeviceStats {
        *lock(&self.devices[device].allocator).stats()
    }

    pub(crate) fn reset_peak_memory_stats(&self, device: usize) {
        lock(&self.devices[device].allocator).reset_peak_memory_stats();
    }

    pub(crate) fn empty_cache(&self) -> Result<()> {
        self.check_thread()?;
        for (device, gpu) in self.devices.iter().enumerate() {
            lock(&gpu.allocator).empty_cache(&DeviceSegments { cuda: self, device }).map_err(cuda_error)?;
        }
        Ok(())
    }

    /// Bytes that are free, and all there are.
    pub(crate) fn memory_info(&self, device: usize) -> Result<(u64, u64)> {
        self.check_thread()?;
        let info = self.driver.memory_info(device).map_err(cuda_error)?;
        Ok((info.free, info.total))
    }
}

/// Work.
impl Cuda {
    /// Waits for all work of a device.
    pub(crate) fn synchronize(&self, device: usize) -> Result<()> {
        self.check_thread()?;
        let stream = StreamId::default_of(device);
        self.submit(stream, EventKind::Synchronize, |driver| driver.synchronize(device).map(|()| None))
    }
}

/// Notes.
impl Cuda {
    /// Calls the driver, and notes what it did and for whom.
    fn submit(
        &self,
        stream: StreamId,
        kind: EventKind,
        call: impl FnOnce(&dyn Driver) -> DriverResult<Option<OpId>>,
    ) -> Result<()> {
        let begin = self.clock.now();
        let op = call(&*self.driver).map_err(cuda_error)?;
        self.note_since(begin, stream, kind, op);
        Ok(())
    }

    fn note(&self, stream: StreamId, kind: EventKind, op: Option<OpId>) {
        self.note_since(self.clock.now(), stream, kind, op);
    }

    pub(super) fn note_since(&self, begin: u64, stream: StreamId, kind: EventKind, op: Option<OpId>) {
        let end = self.clock.now();
        let mut recorder = lock(&self.recorder);
        if recorder.wants_spans() {
            recorder.keep(self.driver.take_spans());
        }
        recorder.note(begin, end, stream, kind, op);
    }

    /// Gives the recordings that run what the devices have done so far.
    pub(crate) fn fetch_spans(&self) {
        lock(&self.recorder).keep(self.driver.take_spans());
    }

    /// Waits for all work that a recording has seen, and fetches when it ran.
    pub(crate) fn finish_recorded(&self) {
        for device in 0..self.devices.len() {
            // A device that was not used is left so: its first use takes long. One that has failed has its
            // spans up to then.
            if lock(&self.recorder).saw(device) {
                let _ = self.driver.synchronize(device);
            }
        }
        self.fetch_spans();
    }
}

/// The memory on a device of a tensor that is known to be there.
pub(crate) fn memory_of(tensor: &Tensor) -> Result<&DeviceMemory> {
    tensor.storage().device().ok_or_else(|| Error::custom("a tensor of the host where one of a GPU belongs"))
}

fn pointer_of(tensor: &Tensor) -> Result<DevicePtr> {
    Ok(memory_of(tensor)?.pointer(tensor.storage_offset() * tensor.dtype().size()))
}

pub(super) fn cuda_error(error: DriverError) -> Error {
    Error::Cuda { name: error.name, message: error.message, detail: error.detail }
}
