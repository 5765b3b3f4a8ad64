//! NVIDIA's GPUs, through their driver.
//!
//! | to learn | read |
//! | --- | --- |
//! | installed drivers, GPUs and libraries | `probe.rs`, `libraries.rs` |
//! | the called functions | `api.rs` |
//! | compilation of kernels | `compile.rs`, `cache.rs`, `kernels/` |
//! | launches | `arguments.rs`, `Nvidia::launch`; `compiled.rs`, for kernels compiled by the program |
//! | matrix products | `blas.rs` |
//! | convolutions | `dnn.rs` |
//! | checks of handles | `events.rs`, `pinned.rs`, `Nvidia::enter_stream` |
//! | times of work | `spans.rs` |
//!
//! Each method of the [`Driver`] is one or two calls of libcuda.
//!
//! Safe code can make up pinned addresses, events and streams, which are plain numbers, and libcuda would use them
//! unchecked. So each is looked up first. Device addresses are not: libcuda rejects a copy outside its allocations, and
//! a kernel with an invalid address faults on the device, not in this process. (Except on a GPU with access to all host
//! memory, as with heterogeneous memory management.)
#![allow(unsafe_code)] // Every call of libcuda is unsafe.

mod api;
mod arguments;
mod blas;
mod cache;
mod compile;
mod compiled;
mod dnn;
mod errors;
mod events;
mod libraries;
pub mod nvml;
mod pinned;
mod probe;
pub mod reading;
mod spans;

pub use probe::{Finding, INSTALL, Probe, probe};

use std::collections::{HashMap, VecDeque};
use std::ffi::{CString, c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};

use cudarc::driver::sys::{
    CUdevice_attribute as Attribute, CUfunction, CUmodule, CUresult, CUstream, CUstream_flags,
};

use crate::base::compiled::{CompiledLaunch, KernelId, KernelSource};
use crate::base::conv::{Conv, ConvAlgorithm};
use crate::base::gemm::Gemm;
use crate::base::kernel::{KernelDef, Launch};
use crate::base::lock::{lock, read, write};
use crate::base::process::Process;
use crate::contract::driver::DeviceProperties;
use crate::contract::driver::{
    DevicePtr, Driver, DriverError, DriverResult, Engine, EventId, HostSource, HostTarget, MemoryInfo, OpId,
    PinnedPtr, Span, StreamId,
};
use crate::contract::interpreter::KernelInterpreter;
use crate::contract::libraries::Libraries;
use crate::host::scope::{self, Place};
use crate::host::time::Clock;
use api::driver::*;
use arguments::KernelParams;
use blas::Blas;
use compiled::LoadedKernel;
use dnn::Dnn;
use errors::{check, has_run};
use events::{CudaEvent, CudaEvents};
use pinned::PinnedBlocks;
use spans::Spans;

/// A pointer from the driver. Any thread may use its target, because the driver is thread-safe.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Handle<T>(*mut T);

// SAFETY: see above.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: see above.
unsafe impl<T> Sync for Handle<T> {}

type CuContext = Handle<cudarc::driver::sys::CUctx_st>;
type CuStream = Handle<cudarc::driver::sys::CUstream_st>;
type CuFunction = Handle<cudarc::driver::sys::CUfunc_st>;
type CuModule = Handle<cudarc::driver::sys::CUmod_st>;

pub struct Nvidia {
    devices: Vec<NvidiaDevice>,
    pinned: PinnedBlocks,
    events: CudaEvents,
    operations: AtomicU64,
    /// Kernels compiled by the program, by number.
    compiled: RwLock<Vec<LoadedKernel>>,
    spans: Mutex<Spans>,
    clock: Clock,
}

struct NvidiaDevice {
    /// `CUdevice`
    device: c_int,
    properties: DeviceProperties,
    /// The primary context, created at the first use of the GPU, because it takes time and memory.
    context: Mutex<Option<CuContext>>,
    /// By stream number, from the default stream on.
    streams: RwLock<Vec<CuStream>>,
    modules: Mutex<Vec<CuModule>>,
    /// Modules of kernels compiled by the program.
    modules_of_program: Mutex<Vec<CuModule>>,
    functions: RwLock<HashMap<*const KernelDef, CuFunction>>,
    blas: Mutex<Option<Blas>>,
    dnn: Mutex<Option<Dnn>>,
    /// The latest launches without a later wait.
    launched: Mutex<VecDeque<Launched>>,
}

// SAFETY: the addresses of kernel definitions are only keys, and the definitions live as long as the program.
unsafe impl Send for NvidiaDevice {}
// SAFETY: see above.
unsafe impl Sync for NvidiaDevice {}

/// A launch that may have failed.
struct Launched {
    stream: StreamId,
    kernel: Option<Symbol>,
    place: Option<Place>,
}

#[derive(Clone, Copy)]
enum Symbol {
    Of(&'static KernelDef),
    OfProgram(&'static str),
}

impl Symbol {
    fn name(self) -> String {
        match self {
            Symbol::Of(kernel) => kernel.symbol(),
            Symbol::OfProgram(name) => name.to_owned(),
        }
    }
}

const REMEMBERED: usize = 64;
/// The maximum number of launches in an error message.
const TOLD: usize = 4;

impl Nvidia {
    /// Opens the GPUs of this computer. The error is a one-line reason.
    pub fn open(clock: Clock) -> Result<Nvidia, String> {
        let probe = probe();
        if let Some(obstacle) = probe.obstacle() {
            return Err(obstacle);
        }
        let gpu = |(index, properties): (usize, &DeviceProperties)| {
            let mut device = 0;
            // SAFETY: there is room for the answer.
            check(unsafe { cuDeviceGet(&mut device, index as c_int) })?;
            Ok(NvidiaDevice {
                device,
                properties: properties.clone(),
                context: Mutex::default(),
                streams: RwLock::new(vec![Handle(ptr::null_mut())]),
                modules: Mutex::default(),
                modules_of_program: Mutex::default(),
                functions: RwLock::default(),
                blas: Mutex::default(),
                dnn: Mutex::default(),
                launched: Mutex::default(),
            })
        };
        let devices: DriverResult<_> = probe.devices.iter().enumerate().map(gpu).collect();
        let devices = devices.map_err(|error| error.message)?;
        Ok(Nvidia {
            devices,
            pinned: PinnedBlocks::default(),
            events: CudaEvents::default(),
            operations: AtomicU64::new(0),
            compiled: RwLock::default(),
            spans: Mutex::default(),
            clock,
        })
    }

    fn gpu(&self, device: usize) -> DriverResult<&NvidiaDevice> {
        self.devices.get(device).ok_or_else(|| errors::invalid(101, "invalid device ordinal"))
    }

    /// Makes a device's context current on this thread.
    fn enter(&self, device: usize) -> DriverResult<&NvidiaDevice> {
        let gpu = self.gpu(device)?;
        let context = gpu.context()?;
        // SAFETY: the context is retained until `self` is dropped.
        check(unsafe { cuCtxSetCurrent(context.0) })?;
        Ok(gpu)
    }

    /// For calls about events, which need any current context.
    fn enter_any(&self) -> DriverResult<&NvidiaDevice> {
        self.enter(self.devices.iter().position(NvidiaDevice::is_used).unwrap_or(0))
    }

    fn enter_stream(&self, stream: StreamId) -> DriverResult<(&NvidiaDevice, CUstream)> {
        let gpu = self.enter(stream.device)?;
        let raw = read(&gpu.streams).get(stream.number as usize).copied();
        Ok((gpu, raw.ok_or_else(errors::invalid_handle)?.0))
    }

    /// Queues work, and times it if spans are recorded.
    fn queue(
        &self,
        engine: Engine,
        (gpu, stream, raw): (&NvidiaDevice, StreamId, CUstream),
        work: impl FnOnce() -> DriverResult<()>,
    ) -> DriverResult<OpId> {
        let op = self.operations.fetch_add(1, Ordering::Relaxed);
        let mut spans = lock(&self.spans);
        let queued = if spans.is_recording() {
            // SAFETY: no stream is ever destroyed.
            unsafe { spans.around((op, engine), (stream, raw), &self.clock, work) }
        } else {
            drop(spans);
            work()
        };
        gpu.with_suspects(queued).map(|()| op)
    }
}

impl NvidiaDevice {
    fn dnn<R>(&self, call: impl FnOnce(&Dnn) -> DriverResult<R>) -> DriverResult<R> {
        match &mut *lock(&self.dnn) {
            Some(dnn) => call(dnn),
            none => call(none.insert(Dnn::new()?)),
        }
    }

    /// A failure is not cached, because there may be enough memory later.
    fn context(&self) -> DriverResult<CuContext> {
        let mut known = lock(&self.context);
        if let Some(context) = *known {
            return Ok(context);
        }
        let mut context = ptr::null_mut();
        // SAFETY: there is room for the answer.
        check(unsafe { cuDevicePrimaryCtxRetain(&mut context, self.device) })?;
        Ok(*known.insert(Handle(context)))
    }

    fn is_used(&self) -> bool {
        lock(&self.context).is_some()
    }

    /// Returns a kernel's `__global__` function. The first call compiles or loads all. Needs a current context.
    fn function(&self, kernel: &'static KernelDef) -> DriverResult<CUfunction> {
        let known = read(&self.functions);
        if let Some(function) = known.get(&ptr::from_ref(kernel)) {
            return Ok(function.0);
        }
        drop(known);
        let mut modules = lock(&self.modules);
        if modules.is_empty() {
            *modules = self.load()?;
        }
        let symbol = kernel.symbol();
        let name = CString::new(symbol.as_str()).unwrap_or_default();
        let function = modules.iter().find_map(|module| {
            let mut function = ptr::null_mut();
            // SAFETY: the module is loaded, and the name ends with a zero.
            let found = unsafe { cuModuleGetFunction(&mut function, module.0, name.as_ptr()) };
            (found == CUresult::CUDA_SUCCESS).then_some(Handle(function))
        });
        let function = function.ok_or_else(|| errors::library("CUDA", "there is no such kernel", symbol))?;
        let mut functions = write(&self.functions);
        functions.insert(ptr::from_ref(kernel), function);
        Ok(function.0)
    }

    fn load(&self) -> DriverResult<Vec<CuModule>> {
        let images = compile::images(10 * self.properties.major + self.properties.minor)?;
        let load = |mut image: Vec<u8>| {
            image.push(0); // PTX is a C string.
            let mut module: CUmodule = ptr::null_mut();
            // SAFETY: the image is the complete output of NVIDIA's compiler.
            check(unsafe { cuModuleLoadData(&mut module, image.as_ptr().cast()) })?;
            Ok(Handle(module))
        };
        let mut modules = Vec::new();
        for image in images {
            match load(image) {
                Ok(module) => modules.push(module),
                Err(error) => {
                    // SAFETY: no function of these modules is in use yet.
                    modules.iter().for_each(|module: &CuModule| _ = unsafe { cuModuleUnload(module.0) });
                    return Err(error);
                }
            }
        }
        Ok(modules)
    }

    fn remember(&self, stream: StreamId, kernel: Option<Symbol>) {
        let mut launched = lock(&self.launched);
        if launched.len() == REMEMBERED {
            launched.pop_front();
        }
        launched.push_back(Launched { stream, kernel, place: scope::current_place() });
    }

    /// Forgets the launches on streams whose work has run without errors.
    fn forget(&self, ran: impl Fn(StreamId) -> bool) {
        lock(&self.launched).retain(|launched| !ran(launched.stream));
    }

    /// Adds the launches that may have caused the error, because a kernel's error surfaces in a later call.
    fn with_suspects<T>(&self, result: DriverResult<T>) -> DriverResult<T> {
        result.map_err(|error| match errors::sticks(&error) {
            true => DriverError { detail: self.suspects().or(error.detail), ..error },
            false => error,
        })
    }

    fn suspects(&self) -> Option<String> {
        let launched = lock(&self.launched);
        let name = |launched: &Launched| {
            let kernel = launched.kernel.map_or_else(|| "gemm".to_owned(), Symbol::name);
            match launched.place {
                Some(place) => format!("{kernel} at {}:{}", place.file(), place.line()),
                None => kernel,
            }
        };
        let told: Vec<String> = launched.iter().rev().take(TOLD).map(name).collect();
        let more = launched.len().saturating_sub(TOLD);
        let more = if more > 0 { format!(" and {more} before them") } else { String::new() };
        (!told.is_empty())
            .then(|| format!("launched and not yet synchronized, latest first: {}{more}", told.join(", ")))
    }
}

fn properties(device: c_int) -> DriverResult<DeviceProperties> {
    let mut name = [0; 256];
    let mut total_memory = 0;
    // SAFETY: there is room for the answers.
    let name = unsafe {
        check(cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int, device))?;
        check(cuDeviceTotalMem_v2(&mut total_memory, device))?;
        std::ffi::CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
    };
    let attribute = |which| probe::attribute(device, which);
    Ok(DeviceProperties {
        name,
        major: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        minor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        total_memory: total_memory as u64,
        multi_processor_count: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        warp_size: attribute(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
        max_threads_per_block: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_threads_per_multi_processor: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        )?,
        l2_cache_size: u64::from(attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        clock_rate: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
    })
}

impl Driver for Nvidia {
    fn device_count(&self) -> usize {
        self.devices.len()
    }

    fn properties(&self, device: usize) -> DeviceProperties {
        self.devices[device].properties.clone()
    }

    fn memory_info(&self, device: usize) -> DriverResult<MemoryInfo> {
        let gpu = self.enter(device)?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: there is room for the answers.
        gpu.with_suspects(check(unsafe { cuMemGetInfo_v2(&mut free, &mut total) }))?;
        Ok(MemoryInfo { free: free as u64, total: total as u64 })
    }

    fn malloc(&self, device: usize, bytes: usize) -> DriverResult<DevicePtr> {
        let gpu = self.enter(device)?;
        let mut pointer = 0;
        // SAFETY: there is room for the answer.
        gpu.with_suspects(check(unsafe { cuMemAlloc_v2(&mut pointer, bytes) }))?;
        Ok(DevicePtr(pointer))
    }

    fn free(&self, device: usize, pointer: DevicePtr) -> DriverResult<()> {
        let gpu = self.enter(device)?;
        // SAFETY: the caller no longer uses the memory, and the driver waits for the device.
        gpu.with_suspects(check(unsafe { cuMemFree_v2(pointer.0) }))
    }

    fn malloc_host(&self, bytes: usize) -> DriverResult<PinnedPtr> {
        const PORTABLE: u32 = 1; // Pinned for all devices. Not write-combined: reading that is slow.
        self.enter(0)?;
        let mut pointer = ptr::null_mut();
        // SAFETY: there is room for the answer.
        check(unsafe { cuMemHostAlloc(&mut pointer, bytes, PORTABLE) })?;
        // SAFETY: the block is new and of that size. It is zeroed because Rust must not read uninitialized memory.
        unsafe { ptr::write_bytes(pointer.cast::<u8>(), 0, bytes) };
        let pointer = PinnedPtr(pointer as u64);
        self.pinned.insert(pointer, bytes);
        Ok(pointer)
    }

    fn free_host(&self, pointer: PinnedPtr) -> DriverResult<()> {
        self.pinned.remove(pointer)?;
        for device in 0..self.devices.len() {
            if self.devices[device].is_used() {
                // A failed device does not use the block.
                let _ = self.synchronize(device);
            }
        }
        self.enter(0)?;
        // SAFETY: it is our block, no call can refer to it, and no copy is in progress.
        check(unsafe { cuMemFreeHost(pointer.0 as *mut c_void) })
    }

    fn read_host(&self, from: PinnedPtr, into: &mut [u8]) -> DriverResult<()> {
        self.pinned.access(from, into.len(), |from| {
            // SAFETY: the block has that many bytes. A device may be writing them, but no reference to them exists.
            unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), into.as_mut_ptr(), into.len()) };
            Ok(())
        })
    }

    fn write_host(&self, into: PinnedPtr, from: &[u8]) -> DriverResult<()> {
        self.pinned.access(into, from.len(), |into| {
            // SAFETY: as above.
            unsafe { ptr::copy_nonoverlapping(from.as_ptr(), into.cast::<u8>(), from.len()) };
            Ok(())
        })
    }

    fn copy_host_to_device(
        &self,
        stream: StreamId,
        to: DevicePtr,
        from: HostSource<'_>,
        bytes: usize,
    ) -> DriverResult<OpId> {
        let (gpu, raw) = self.enter_stream(stream)?;
        let copy = |source: *const c_void| {
            self.queue(Engine::HostToDevice, (gpu, stream, raw), || {
                // SAFETY: the source has that size. Pinned memory lives until the copy has run, and borrowed memory
                // until after the wait below. The driver checks the device's range.
                check(unsafe { cuMemcpyHtoDAsync_v2(to.0, source, bytes, raw) })
            })
        };
        match from {
            HostSource::Pageable(from) => {
                let from = from.get(..bytes).ok_or_else(errors::invalid_value)?;
                self.wait_for_borrowed(stream, copy(from.as_ptr().cast()))
            }
            HostSource::Pinned(from) => self.pinned.access(from, bytes, |from| copy(from.cast_const())),
        }
    }

    fn copy_device_to_host(
        &self,
        stream: StreamId,
        to: HostTarget<'_>,
        from: DevicePtr,
        bytes: usize,
    ) -> DriverResult<OpId> {
        let (gpu, raw) = self.enter_stream(stream)?;
        let copy = |target: *mut c_void| {
            self.queue(Engine::DeviceToHost, (gpu, stream, raw), || {
                // SAFETY: as for copies in the other direction.
                check(unsafe { cuMemcpyDtoHAsync_v2(target, from.0, bytes, raw) })
            })
        };
        match to {
            HostTarget::Pageable(to) => {
                let to = to.get_mut(..bytes).ok_or_else(errors::invalid_value)?;
                self.wait_for_borrowed(stream, copy(to.as_mut_ptr().cast()))
            }
            HostTarget::Pinned(to) => self.pinned.access(to, bytes, copy),
        }
    }

    fn copy_peer(
        &self,
        stream: StreamId,
        to: (usize, DevicePtr),
        from: (usize, DevicePtr),
        bytes: usize,
    ) -> DriverResult<OpId> {
        let (to_context, from_context) = (self.gpu(to.0)?.context()?, self.gpu(from.0)?.context()?);
        let (gpu, raw) = self.enter_stream(stream)?;
        self.queue(Engine::Peer, (gpu, stream, raw), || {
            // SAFETY: the ranges are in memory of these devices.
            check(unsafe { cuMemcpyPeerAsync(to.1.0, to_context.0, from.1.0, from_context.0, bytes, raw) })
        })
    }

    fn memset(&self, stream: StreamId, to: DevicePtr, value: u8, bytes: usize) -> DriverResult<OpId> {
        let (gpu, raw) = self.enter_stream(stream)?;
        self.queue(Engine::Compute, (gpu, stream, raw), || {
            // SAFETY: the range is in memory of the device.
            check(unsafe { cuMemsetD8Async(to.0, value, bytes, raw) })
        })
    }

    fn stream_create(&self, device: usize, blocking: bool) -> DriverResult<StreamId> {
        let gpu = self.enter(device)?;
        let flags =
            if blocking { CUstream_flags::CU_STREAM_DEFAULT } else { CUstream_flags::CU_STREAM_NON_BLOCKING };
        let mut stream = ptr::null_mut();
        // SAFETY: there is room for the answer.
        gpu.with_suspects(check(unsafe { cuStreamCreate(&mut stream, flags as u32) }))?;
        let mut streams = write(&gpu.streams);
        streams.push(Handle(stream));
        Ok(StreamId { device, number: streams.len() as u32 - 1 })
    }

    fn stream_query(&self, stream: StreamId) -> DriverResult<bool> {
        let (gpu, raw) = self.enter_stream(stream)?;
        // SAFETY: the stream is alive.
        gpu.with_suspects(has_run(unsafe { cuStreamQuery(raw) }))
    }

    fn stream_synchronize(&self, stream: StreamId) -> DriverResult<()> {
        let (gpu, raw) = self.enter_stream(stream)?;
        // SAFETY: the stream is alive.
        gpu.with_suspects(check(unsafe { cuStreamSynchronize(raw) }))?;
        gpu.forget(|other| other == stream);
        Ok(())
    }

    fn stream_wait_event(&self, stream: StreamId, event: EventId) -> DriverResult<()> {
        let event = self.events.get(event)?;
        let (gpu, raw) = self.enter_stream(stream)?;
        // SAFETY: no stream is ever destroyed.
        gpu.with_suspects(unsafe { event.hold_up(raw) })
    }

    fn event_create(&self, device: usize, timing: bool) -> DriverResult<EventId> {
        let event = self.enter(device)?.with_suspects(CudaEvent::new(timing))?;
        Ok(self.events.insert(event))
    }

    fn event_destroy(&self, event: EventId) -> DriverResult<()> {
        self.enter_any()?.with_suspects(self.events.destroy(event))
    }

    fn event_record(&self, event: EventId, stream: StreamId) -> DriverResult<()> {
        let event = self.events.get(event)?;
        let (gpu, raw) = self.enter_stream(stream)?;
        // SAFETY: no stream is ever destroyed.
        gpu.with_suspects(unsafe { event.record(raw) })
    }

    fn event_query(&self, event: EventId) -> DriverResult<bool> {
        let event = self.events.get(event)?;
        self.enter_any()?.with_suspects(event.query())
    }

    fn event_synchronize(&self, event: EventId) -> DriverResult<()> {
        let event = self.events.get(event)?;
        self.enter_any()?.with_suspects(event.synchronize())
    }

    fn event_elapsed(&self, start: EventId, end: EventId) -> DriverResult<f32> {
        let (start, end) = (self.events.get(start)?, self.events.get(end)?);
        self.enter_any()?.with_suspects(end.since(&start))
    }

    fn launch(&self, stream: StreamId, launch: Launch) -> DriverResult<OpId> {
        let (gpu, raw) = self.enter_stream(stream)?;
        let function = gpu.function(launch.kernel)?;
        let mut arguments = KernelParams::of(&launch);
        let mut pointers = arguments.pointers();
        gpu.remember(stream, Some(Symbol::Of(launch.kernel)));
        self.queue(Engine::Compute, (gpu, stream, raw), || {
            // SAFETY: the arguments match the parameters (tested in `kernels`), and are copied before this returns.
            check(unsafe {
                cuLaunchKernel(
                    function,
                    launch.grid,
                    1,
                    1,
                    launch.block,
                    1,
                    1,
                    0, // No kernel asks for more shared memory than it declares.
                    raw,
                    pointers.as_mut_ptr(),
                    ptr::null_mut(),
                )
            })
        })
    }

    fn synchronize(&self, device: usize) -> DriverResult<()> {
        let gpu = self.enter(device)?;
        // SAFETY: the device's context is current.
        gpu.with_suspects(check(unsafe { cuCtxSynchronize() }))?;
        gpu.forget(|_| true);
        Ok(())
    }

    fn can_access_peer(&self, device: usize, peer: usize) -> DriverResult<bool> {
        let (gpu, peer) = (self.gpu(device)?, self.gpu(peer)?);
        let mut can = 0;
        // SAFETY: there is room for the answer.
        check(unsafe { cuDeviceCanAccessPeer(&mut can, gpu.device, peer.device) })?;
        Ok(can != 0)
    }

    fn enable_peer_access(&self, device: usize, peer: usize) -> DriverResult<()> {
        let peer = self.gpu(peer)?.context()?;
        self.enter(device)?;
        // SAFETY: both contexts are retained.
        check(unsafe { cuCtxEnablePeerAccess(peer.0, 0) })
    }

    fn record_spans(&self, on: bool) {
        lock(&self.spans).record(on);
    }

    fn take_spans(&self) -> Vec<Span> {
        let mut spans = lock(&self.spans);
        // Events cannot be queried without a context.
        if spans.is_empty() || self.enter_any().is_err() {
            return Vec::new();
        }
        spans.take()
    }
}

impl Libraries for Nvidia {
    fn processes(&self, device: usize) -> Vec<Process> {
        self.pci_bus_id(device).map(|bus_id| reading::processes(&bus_id)).unwrap_or_default()
    }

    fn pci_bus_id(&self, device: usize) -> Option<String> {
        let gpu = self.devices.get(device)?;
        let part = |which| probe::attribute(gpu.device, which).ok();
        let domain = part(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
        let bus = part(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
        let slot = part(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
        Some(format!("{domain:08X}:{bus:02X}:{slot:02X}.0"))
    }

    fn gemm(&self, stream: StreamId, gemm: Gemm) -> DriverResult<OpId> {
        let (gpu, raw) = self.enter_stream(stream)?;
        let mut blas = lock(&gpu.blas);
        let blas = match &mut *blas {
            Some(blas) => blas,
            none => none.insert(Blas::new()?),
        };
        gpu.remember(stream, None);
        self.queue(Engine::Compute, (gpu, stream, raw), || blas.gemm(raw, &gemm))
    }

    fn compile(
        &self,
        device: usize,
        source: &KernelSource<'_>,
        _interpreter: Option<&dyn KernelInterpreter>,
    ) -> DriverResult<KernelId> {
        self.compile_kernel(device, source)
    }

    fn launch_compiled(&self, stream: StreamId, launch: CompiledLaunch) -> DriverResult<OpId> {
        self.queue_compiled(stream, launch)
    }

    fn cudnn_version(&self) -> Option<usize> {
        // SAFETY: the library was found, with all called functions.
        probe().cudnn.is_found().then(|| unsafe { api::cudnn::cudnnGetVersion() })
    }

    fn convolution_algorithms(&self, device: usize, conv: &Conv) -> DriverResult<Vec<ConvAlgorithm>> {
        self.enter(device)?.dnn(|dnn| dnn.algorithms(conv))
    }

    fn find_convolution(
        &self,
        stream: StreamId,
        conv: &Conv,
        workspace: (DevicePtr, usize),
    ) -> DriverResult<Option<Vec<(ConvAlgorithm, f32)>>> {
        let (gpu, raw) = self.enter_stream(stream)?;
        gpu.with_suspects(gpu.dnn(|dnn| dnn.find(raw, conv, workspace))).map(Some)
    }

    fn convolution(
        &self,
        stream: StreamId,
        conv: &Conv,
        algorithm: &ConvAlgorithm,
        workspace: DevicePtr,
    ) -> DriverResult<OpId> {
        let (gpu, raw) = self.enter_stream(stream)?;
        gpu.remember(stream, None);
        self.queue(Engine::Compute, (gpu, stream, raw), || {
            gpu.dnn(|dnn| dnn.run(raw, conv, algorithm, workspace))
        })
    }
}

impl Nvidia {
    /// Always waits for a copy from or to borrowed memory, because the copy must not outlive the borrow.
    fn wait_for_borrowed(&self, stream: StreamId, op: DriverResult<OpId>) -> DriverResult<OpId> {
        let waited = self.stream_synchronize(stream);
        if waited.is_err() {
            // The copy may still be in progress, unless the context is dead. Then this fails as well.
            let _ = self.synchronize(stream.device);
        }
        let op = op?;
        waited.map(|()| op)
    }
}

/// Releases everything. `drop` cannot return errors.
impl Drop for Nvidia {
    fn drop(&mut self) {
        // An event is destroyed before its context, or not at all.
        let events = (mem::take(&mut *lock(&self.spans)), mem::take(&mut self.events));
        if self.devices.iter().any(NvidiaDevice::is_used) && self.enter_any().is_err() {
            mem::forget(events);
        } else {
            drop(events);
        }
        for (device, gpu) in self.devices.iter().enumerate() {
            if !gpu.is_used() {
                continue;
            }
            let _ = self.synchronize(device);
            if let Some(blas) = lock(&gpu.blas).take() {
                blas.destroy();
            }
            if let Some(dnn) = lock(&gpu.dnn).take() {
                dnn.destroy();
            }
            let mut modules = std::mem::take(&mut *lock(&gpu.modules));
            modules.append(&mut lock(&gpu.modules_of_program));
            // SAFETY: nothing runs, and none of this is used again.
            unsafe {
                modules.iter().for_each(|module| _ = cuModuleUnload(module.0));
                cuDevicePrimaryCtxRelease_v2(gpu.device);
            }
        }
    }
}
