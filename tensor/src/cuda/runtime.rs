//! What stands between tensors and the driver: memory through the caching allocator, launches, copies, and a
//! note of all of it.

mod memory;

pub(crate) use memory::DeviceMemory;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use smallvec::SmallVec;

use super::DeviceProperties;
use super::allocator::{Allocation, Allocator};
use super::driver::{
    DevicePtr, Driver, DriverError, DriverResult, Gemm, HostSource, HostTarget, OpId, StreamId,
};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::{Machine, MachineId, RaceLog};
use crate::ops::kernel::{self, Argument, Geometry, KernelDef, Launch, Parameter};
use crate::random::Philox;
use crate::storage::{self, Source};
use crate::tensor::Tensor;
use crate::time::Clock;
use crate::trace::{CopyKind, EventKind, Recorder};

/// Threads of a block, where nothing else is asked for.
const BLOCK: u32 = 256;

/// Threads that run in step.
const WARP: u32 = 32;

/// The most blocks of a grid; from there on each thread takes several elements.
const MOST_BLOCKS: u64 = 65_535;

/// The CUDA devices of a machine.
pub(crate) struct Cuda {
    driver: Box<dyn Driver>,
    machine: MachineId,
    clock: Clock,
    devices: Vec<Gpu>,
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
}

/// A panic while a lock was held left nothing half done that the next holder could not live with.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
        };
        Cuda {
            devices: (0..driver.device_count()).map(gpu).collect(),
            driver,
            machine,
            clock,
            recorder,
            thread: OnceLock::new(),
        }
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

/// Work.
impl Cuda {
    /// Waits for all work of a device.
    pub(crate) fn synchronize(&self, device: usize) -> Result<()> {
        self.check_thread()?;
        let stream = StreamId::default_of(device);
        self.submit(stream, EventKind::Synchronize, |driver| driver.synchronize(device).map(|()| None))
    }

    /// Copies host memory, which may be overwritten as soon as this returns, to a device.
    pub(crate) fn upload(&self, to: &DeviceMemory, from: &[u8]) -> Result<()> {
        self.check_thread()?;
        let kind = EventKind::Copy { kind: CopyKind::HostToDevice, bytes: from.len() as u64 };
        self.submit(to.stream(), kind, |driver| {
            let source = HostSource::Pageable(from);
            driver.copy_host_to_device(to.stream(), to.pointer(0), source, from.len()).map(Some)
        })
    }

    /// Copies memory of a device, from a byte on, to the host, and waits for it.
    pub(crate) fn download(&self, to: &mut [u8], from: &DeviceMemory, offset: usize) -> Result<()> {
        self.check_thread()?;
        let bytes = to.len();
        let kind = EventKind::Copy { kind: CopyKind::DeviceToHost, bytes: bytes as u64 };
        self.submit(from.stream(), kind, |driver| {
            let target = HostTarget::Pageable(to);
            driver.copy_device_to_host(from.stream(), target, from.pointer(offset), bytes).map(Some)
        })
    }

    /// Copies from one device of the machine to another.
    pub(crate) fn copy_peer(
        &self,
        to: &DeviceMemory,
        from: &DeviceMemory,
        offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.check_thread()?;
        let kind = EventKind::Copy { kind: CopyKind::Peer, bytes: bytes as u64 };
        self.submit(from.stream(), kind, |driver| {
            if driver.can_access_peer(from.device, to.device)? {
                match driver.enable_peer_access(from.device, to.device) {
                    Err(error) if error.name == "cudaErrorPeerAccessAlreadyEnabled" => {}
                    enabled => enabled?,
                }
            }
            // What each of the two devices was asked to do before comes first, and what comes after waits.
            let (source, target) = (from.stream(), to.stream());
            self.order(target, source)?;
            let to = (to.device, to.pointer(0));
            let op = driver.copy_peer(source, to, (from.device, from.pointer(offset)), bytes)?;
            self.order(source, target)?;
            Ok(Some(op))
        })
    }

    /// Makes later work of one stream wait for the earlier work of another.
    fn order(&self, earlier: StreamId, later: StreamId) -> DriverResult<()> {
        let event = self.driver.event_create(earlier.device, false)?;
        self.driver.event_record(event, earlier)?;
        self.driver.stream_wait_event(later, event)?;
        self.driver.event_destroy(event)
    }

    /// Queues a batch of matrix products: `c = a·b`, or `c += a·b`.
    pub(crate) fn gemm(&self, a: &Tensor, b: &Tensor, c: &Tensor, gemm: Gemm) -> Result<()> {
        self.check_thread()?;
        if gemm.batch * gemm.m * gemm.n == 0 {
            return Ok(());
        }
        let target = memory_of(c)?;
        self.take_workspace(target.stream())?;
        let gemm = Gemm { a: pointer_of(a)?, b: pointer_of(b)?, c: pointer_of(c)?, ..gemm };
        self.submit(target.stream(), EventKind::Gemm, |driver| driver.gemm(target.stream(), gemm).map(Some))
    }

    /// The first product on a stream takes the memory that cuBLAS works in, through the caching allocator: it
    /// is part of what a program uses.
    fn take_workspace(&self, stream: StreamId) -> Result<()> {
        let gpu = &self.devices[stream.device];
        if lock(&gpu.workspaces).iter().any(|(taken, _)| *taken == stream) {
            return Ok(());
        }
        // cuBLAS's defaults: 32 MiB on compute capability 9.0, else two of 4 MiB and eight of 16 KiB.
        let bytes = if (gpu.properties.major, gpu.properties.minor) == (9, 0) { 32 << 20 } else { 8_519_680 };
        let allocation = self.malloc(stream, bytes)?;
        lock(&gpu.workspaces).push((stream, allocation));
        Ok(())
    }

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

    fn note_since(&self, begin: u64, stream: StreamId, kind: EventKind, op: Option<OpId>) {
        let end = self.clock.now();
        let mut recorder = lock(&self.recorder);
        if recorder.wants_spans() {
            recorder.keep(self.driver.take_spans());
        }
        recorder.note(begin, end, stream, kind, op);
    }

    pub(crate) fn race_log(&self) -> Option<&RaceLog> {
        self.driver.race_log()
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

/// Queues a kernel on the device of its outputs.
pub(crate) fn launch(
    kernel: &'static KernelDef,
    reads: &[&Tensor],
    writes: &[&Tensor],
    ints: &[i64],
    floats: &[f64],
) -> Result<()> {
    let target = memory_of(writes[0])?;
    let cuda = target.cuda();
    cuda.check_thread()?;
    if writes.iter().all(|write| write.numel() == 0) {
        return Ok(());
    }
    let copies = storage::sources(reads, writes)?;
    let reads = reads.iter().zip(&copies).map(|(read, source)| match source {
        Source::Copy(copy) => copy,
        Source::Itself | Source::Output => *read,
    });
    let mut tensors = reads.chain(writes.iter().copied());
    let work = kernel::work(kernel, tensors.clone());
    let (mut ints, mut floats) = (ints.iter(), floats.iter());
    let mut arguments: SmallVec<[Argument; 4]> = SmallVec::new();
    for parameter in kernel.parameters {
        arguments.push(match parameter {
            Parameter::In(dtype) | Parameter::Out(dtype) => {
                let fits = |tensor: &&Tensor| stored_alike(tensor.dtype(), *dtype);
                argument(tensors.next().filter(fits).ok_or_else(|| wrong_arguments(kernel))?)?
            }
            Parameter::Int => Argument::Int(*ints.next().ok_or_else(|| wrong_arguments(kernel))?),
            Parameter::Float => Argument::Float(*floats.next().ok_or_else(|| wrong_arguments(kernel))?),
        });
    }
    if tensors.next().is_some() || ints.next().is_some() || floats.next().is_some() {
        return Err(wrong_arguments(kernel));
    }
    let results = writes[0].numel() as u64;
    let blocks = match kernel.geometry {
        Geometry::Elements => results.div_ceil(u64::from(BLOCK)),
        Geometry::Rows => results,
        Geometry::Warps => results.div_ceil(u64::from(BLOCK / WARP)),
    };
    let grid = blocks.clamp(1, MOST_BLOCKS) as u32;
    let launch = Launch { kernel, grid, block: BLOCK, shared: 0, arguments, work };
    let stream = target.stream();
    cuda.submit(stream, EventKind::Launch { kernel }, |driver| driver.launch(stream, launch).map(Some))
}

fn wrong_arguments(kernel: &KernelDef) -> Error {
    Error::custom(format!("{} is not launched with what it takes", kernel.symbol()))
}

/// Whether kernels cannot tell two types apart: a truth is a byte.
fn stored_alike(a: DType, b: DType) -> bool {
    let stored = |dtype| if dtype == DType::Bool { DType::U8 } else { dtype };
    stored(a) == stored(b)
}

/// A tensor as a kernel takes it: where it is, or, for a number on the host, its value.
fn argument(tensor: &Tensor) -> Result<Argument> {
    match tensor.storage().device() {
        Some(memory) => {
            let offset = tensor.storage_offset() * tensor.dtype().size();
            Ok(Argument::Tensor { pointer: memory.pointer(offset), view: tensor.layout().at_start() })
        }
        None if tensor.ndim() > 0 => Err(Error::custom("a tensor of the host where one of a GPU belongs")),
        None => storage::access([tensor], [], |[input], []| {
            let mut value = [0; 8];
            let size = tensor.dtype().size();
            let start = input.layout.offset * size;
            value[..size].copy_from_slice(&input.values::<u8>()[start..start + size]);
            Argument::Value(value)
        }),
    }
}

/// The memory on a device of a tensor that is known to be there.
pub(crate) fn memory_of(tensor: &Tensor) -> Result<&DeviceMemory> {
    tensor.storage().device().ok_or_else(|| Error::custom("a tensor of the host where one of a GPU belongs"))
}

fn pointer_of(tensor: &Tensor) -> Result<DevicePtr> {
    Ok(memory_of(tensor)?.pointer(tensor.storage_offset() * tensor.dtype().size()))
}

fn cuda_error(error: DriverError) -> Error {
    if let Some(race) = Machine::race_behind(&error) {
        return Error::Race(Box::new(race));
    }
    Error::Cuda { name: error.name, message: error.message, detail: error.detail }
}
