//! The layer between tensors and the driver: caching allocator, launches, copies, streams, events, and their record.

pub mod allocator;
mod collective;
mod compiled;
mod convolution;
mod copy;
mod launch;
mod memory;
pub mod pinned;
pub mod stats;
mod streams;
mod waits;

pub use convolution::Choice;
pub use memory::DeviceMemory;
use streams::StreamPool;
pub use waits::SyncDebugMode;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use smallvec::SmallVec;

use crate::base::device::MachineId;
use crate::base::error::GpuError;
use crate::base::lock::lock;
use crate::base::pytorch_build::Build;
use crate::base::random::Philox;
use crate::contract::driver::{CopyKind, DeviceProperties, DriverError, DriverResult, OpId, StreamId};
use crate::contract::events::{EventKind, Recorder};
use crate::contract::interpreter::KernelInterpreter;
use crate::contract::libraries::Libraries;
use crate::contract::others::{MEETING, Others};
use crate::contract::races::{RACE, RaceLog};
use crate::host::host_context::HostContext;
use crate::host::thread;
use crate::host::time::Clock;
use crate::runtime::allocator::{Allocation, Allocator};
use crate::runtime::pinned::PinnedCache;

pub type Result<T, E = GpuError> = std::result::Result<T, E>;

pub struct Cuda {
    driver: Box<dyn Libraries>,
    machine: MachineId,
    clock: Clock,
    devices: Vec<PerDevice>,
    pinned: Mutex<PinnedCache>,
    sync_debug: Mutex<SyncDebugMode>,
    launch_blocking: AtomicBool,
    /// The pairs of devices with peer access. The driver call is slow, and one is enough.
    peers: Mutex<Vec<(usize, usize)>>,
    recorder: Arc<Mutex<Recorder>>,
    /// The only thread that may drive simulated devices, because their order of work must not be random. 0 before use.
    thread: AtomicU64,
    /// The number of the process that owns the devices, if it was forked.
    process: Option<usize>,
    others: Mutex<Option<Arc<dyn Others>>>,
    build: Option<Build>,
    interpreter: Mutex<Option<Arc<dyn KernelInterpreter>>>,
}

struct PerDevice {
    properties: DeviceProperties,
    allocator: Mutex<Allocator>,
    generator: Mutex<Philox>,
    /// The cuBLAS workspaces, one for each stream with matrix products.
    workspaces: Mutex<SmallVec<[(StreamId, Allocation); 1]>>,
    streams: Mutex<StreamPool>,
    chosen: Mutex<convolution::Chosen>,
}

impl Cuda {
    pub fn new(
        driver: Box<dyn Libraries>,
        machine: MachineId,
        clock: Clock,
        recorder: Arc<Mutex<Recorder>>,
    ) -> Cuda {
        let gpu = |device| PerDevice {
            properties: driver.properties(device),
            allocator: Mutex::default(),
            generator: Mutex::new(Philox::default()),
            workspaces: Mutex::default(),
            streams: Mutex::default(),
            chosen: Mutex::default(),
        };
        Cuda {
            devices: (0..driver.device_count()).map(gpu).collect(),
            pinned: Mutex::default(),
            sync_debug: Mutex::default(),
            launch_blocking: AtomicBool::default(),
            peers: Mutex::default(),
            build: driver.build(),
            driver,
            machine,
            clock,
            recorder,
            thread: AtomicU64::new(0),
            process: None,
            others: Mutex::default(),
            interpreter: Mutex::default(),
        }
    }

    pub(crate) fn driver(&self) -> &dyn Libraries {
        &*self.driver
    }

    pub(crate) fn pinned(&self) -> &Mutex<PinnedCache> {
        &self.pinned
    }

    pub fn sync_debug(&self) -> &Mutex<SyncDebugMode> {
        &self.sync_debug
    }

    pub fn launch_blocking(&self) -> bool {
        self.launch_blocking.load(Ordering::Relaxed)
    }

    pub fn set_launch_blocking(&self, blocking: bool) {
        self.launch_blocking.store(blocking, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    pub fn machine(&self) -> MachineId {
        self.machine
    }

    /// Returns a monitor's readings of a device, unless they come from NVML.
    pub fn monitor(&self, device: usize) -> Option<crate::base::reading::Gpu> {
        self.driver.monitor(device)
    }

    #[cfg(not(target_family = "wasm"))]
    pub fn pci_bus_id(&self, device: usize) -> Option<String> {
        self.driver.pci_bus_id(device)
    }

    pub fn device_count(&self) -> usize {
        self.devices.len()
    }

    pub fn properties(&self, device: usize) -> &DeviceProperties {
        &self.devices[device].properties
    }

    pub fn build(&self) -> Option<Build> {
        self.build
    }

    /// Warns once, in PyTorch's words, about the devices for which the build has no kernels.
    pub fn warn_of_build(&self) {
        let Some(build) = self.build else { return };
        let (mut checked, mut of_cubins) = (Vec::new(), Vec::new());
        for (index, gpu) in self.devices.iter().enumerate() {
            let DeviceProperties { name, major, minor, .. } = &gpu.properties;
            if !build.runs_on((*major, *minor)) {
                let [first, second] = build.warnings(index, name, (*major, *minor));
                checked.push(first);
                of_cubins.push(second);
            }
        }
        let mut warnings = checked.into_iter().chain(of_cubins);
        let (Some(first), mut is_new) = (warnings.next(), false) else { return };
        HostContext::warn_once("build", || {
            is_new = true;
            first
        });
        if is_new {
            warnings.for_each(|warning| HostContext::warn(&warning));
        }
    }

    /// Returns an error on threads that may not use CUDA.
    pub fn check_thread(&self) -> Result<()> {
        if HostContext::in_worker() {
            return Err(GpuError::CudaInWorker);
        }
        if self.clock.is_virtual() && self.thread.load(Ordering::Relaxed) != thread::number() {
            let first =
                self.thread.compare_exchange(0, thread::number(), Ordering::Relaxed, Ordering::Relaxed);
            first.map_err(|_| GpuError::SimulatedThread)?;
        }
        Ok(())
    }

    pub fn manual_seed(&self, seed: u64) {
        for gpu in &self.devices {
            *lock(&gpu.generator) = Philox::new(seed);
        }
    }

    /// Reserves `draws` numbers of a device's generator. Returns the seed and the position of the first.
    pub fn draw(&self, device: usize, draws: u64) -> [i64; 2] {
        self.generator(device).take(draws)
    }

    pub fn generator(&self, device: usize) -> MutexGuard<'_, Philox> {
        lock(&self.devices[device].generator)
    }
}

impl Cuda {
    pub fn synchronize(&self, device: usize) -> Result<()> {
        self.check_thread()?;
        let stream = StreamId::default_of(device);
        self.submit(stream, EventKind::Synchronize, |driver| driver.synchronize(device).map(|()| None))
    }
}

impl Cuda {
    /// Calls the driver, and records the call. With blocking launches, the queued work has run on return.
    fn submit(
        &self,
        stream: StreamId,
        kind: EventKind,
        call: impl FnOnce(&dyn Libraries) -> DriverResult<Option<OpId>>,
    ) -> Result<()> {
        let begin = self.clock.now();
        let op = call(&*self.driver).map_err(|error| self.error(error))?;
        if op.is_some() && self.launch_blocking() {
            self.driver.synchronize_untracked(stream).map_err(|error| self.error(error))?;
        }
        self.note_since(begin, stream, kind, op);
        Ok(())
    }

    /// Queues a copy, and records it with its size in bytes.
    fn submit_copy(
        &self,
        stream: StreamId,
        (kind, bytes): (CopyKind, usize),
        call: impl FnOnce(&dyn Libraries) -> DriverResult<OpId>,
    ) -> Result<()> {
        self.submit(stream, EventKind::Copy { kind, bytes: bytes as u64 }, |driver| call(driver).map(Some))
    }

    fn note(&self, stream: StreamId, kind: EventKind, op: Option<OpId>) {
        self.note_since(self.clock.now(), stream, kind, op);
    }

    pub(crate) fn note_since(&self, begin: u64, stream: StreamId, kind: EventKind, op: Option<OpId>) {
        let end = self.clock.now();
        let mut recorder = lock(&self.recorder);
        if recorder.wants_spans() {
            recorder.keep(self.driver.take_spans());
        }
        recorder.note(begin, end, stream, kind, op);
    }

    pub fn race_log(&self) -> Option<&RaceLog> {
        self.driver.race_log()
    }

    /// Called when a recording starts, and when the last one has ended.
    pub fn record_spans(&self, on: bool) {
        self.driver.record_spans(on);
    }

    /// Adds the devices' work so far to the running recordings.
    pub fn fetch_spans(&self) {
        lock(&self.recorder).keep(self.driver.take_spans());
    }

    /// Waits for all work that a recording has seen, and fetches its spans.
    pub fn finish_recorded(&self) {
        for device in 0..self.devices.len() {
            // The first use of a device is slow, so unused ones stay untouched. A failed device has its earlier spans.
            if lock(&self.recorder).saw(device, self.process) {
                let _ = self.driver.synchronize(device);
            }
        }
        self.fetch_spans();
    }
}

impl Cuda {
    pub fn error(&self, error: DriverError) -> GpuError {
        if error.name == RACE
            && let Some(race) = self.race_log().and_then(RaceLog::latest)
        {
            return GpuError::Race(Box::new(race));
        }
        if error.name == MEETING
            && let Some(trouble) = lock(&self.others).as_ref().and_then(|others| others.trouble())
        {
            return GpuError::Meeting(Box::new(trouble));
        }
        if error.code == 0 {
            let detail = error.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            return GpuError::custom(format!("{}: {}{detail}", error.name, error.message));
        }
        self.driver.error_returned(&error);
        // With blocking launches, the error belongs to the current call.
        let late = !self.launch_blocking();
        GpuError::Cuda { name: error.name, message: error.message, detail: error.detail, late }
    }
}
