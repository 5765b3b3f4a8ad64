//! The emulator's device on a driver of `todevice-gpu`: memory, streams and events are the same calls for the simulated
//! GPU ([`simulated`]) and for a real one ([`real`](crate::real)).

pub mod simulated;

use std::collections::HashMap;

use cuda_emulator::host::device::{Answer, Card, Device};
use cuda_emulator::host::errors::{INVALID_HANDLE, OUT_OF_MEMORY};
use cuda_emulator::ir;
use cuda_emulator::run::counters::Counters;
use cuda_emulator::run::launch::Shape;
use todevice_gpu::base::compiled::{CompiledLaunch, KernelId};
use todevice_gpu::contract::driver::{
    DevicePtr, Driver, DriverError, DriverResult, EventId, HostSource, HostTarget, PinnedPtr, StreamId,
};

pub const DEVICE: usize = 0;

/// A launch of a kernel of the program.
pub struct Launch<'a> {
    pub kernel: &'a ir::Program,
    pub shape: Shape,
    pub parameters: &'a [u8],
    pub counters: Option<&'a Counters>,
}

/// The calls that differ between the simulated GPU and a real one.
pub trait Kind {
    type Driver: Driver;
    const IS_REAL: bool;
    fn driver(&self) -> &Self::Driver;
    fn name(&self) -> String;
    /// The address of a variable in the device's memory.
    fn variable(&mut self, variable: &ir::Global) -> Answer<u64>;
    fn launch(&mut self, stream: StreamId, launch: Launch) -> Answer<()>;
    fn print(&mut self, _text: &str) {}
}

pub struct OnDriver<K: Kind> {
    kind: K,
    /// The number of handles. A handle is never reused, and none is both a stream's and an event's.
    handles: u64,
    streams: HashMap<u64, StreamId>,
    events: HashMap<u64, EventId>,
}

impl<K: Kind> OnDriver<K> {
    pub fn new(kind: K) -> OnDriver<K> {
        let streams = HashMap::from([(0, StreamId::default_of(DEVICE))]);
        OnDriver { kind, handles: 0, streams, events: HashMap::new() }
    }

    fn stream(&self, handle: u64) -> Answer<StreamId> {
        self.streams.get(&handle).copied().ok_or(INVALID_HANDLE)
    }

    fn event(&self, handle: u64) -> Answer<EventId> {
        self.events.get(&handle).copied().ok_or(INVALID_HANDLE)
    }

    fn handle(&mut self) -> u64 {
        self.handles += 1;
        self.handles
    }
}

pub fn code(error: DriverError) -> u32 {
    error.code
}

fn done<T>(result: DriverResult<T>) -> Answer<()> {
    result.map(drop).map_err(code)
}

impl<K: Kind> Device for OnDriver<K> {
    fn is_real(&self) -> bool {
        K::IS_REAL
    }

    fn card(&self) -> Card {
        let of = self.kind.driver().properties(DEVICE);
        Card {
            name: self.kind.name(),
            memory: of.total_memory,
            major: of.major,
            minor: of.minor,
            multiprocessors: of.multi_processor_count,
            threads_of_multiprocessor: of.max_threads_per_multi_processor,
        }
    }

    fn memory(&self) -> Answer<(u64, u64)> {
        self.kind.driver().memory_info(DEVICE).map(|info| (info.free, info.total)).map_err(code)
    }

    fn malloc(&mut self, bytes: u64) -> Answer<u64> {
        // In a page, a `usize` is too small for a card's memory.
        let bytes = match usize::try_from(bytes) {
            Ok(bytes) => bytes,
            Err(_) if bytes <= self.memory()?.0 => usize::MAX,
            Err(_) => return Err(OUT_OF_MEMORY),
        };
        self.kind.driver().malloc(DEVICE, bytes).map(|pointer| pointer.0).map_err(code)
    }

    fn free(&mut self, at: u64) -> Answer<()> {
        done(self.kind.driver().free(DEVICE, DevicePtr(at)))
    }

    fn malloc_host(&mut self, bytes: u64) -> Answer<u64> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.kind.driver().malloc_host(bytes).map(|pointer| pointer.0).map_err(code)
    }

    fn free_host(&mut self, at: u64) -> Answer<()> {
        done(self.kind.driver().free_host(PinnedPtr(at)))
    }

    fn write_host(&mut self, at: u64, bytes: &[u8]) -> Answer<()> {
        done(self.kind.driver().write_host(PinnedPtr(at), bytes))
    }

    fn read_host(&mut self, at: u64, bytes: &mut [u8]) -> Answer<()> {
        done(self.kind.driver().read_host(PinnedPtr(at), bytes))
    }

    fn variable(&mut self, variable: &ir::Global) -> Answer<u64> {
        self.kind.variable(variable)
    }

    fn write(&mut self, stream: u64, to: u64, bytes: &[u8], pinned: Option<u64>) -> Answer<()> {
        let (stream, driver) = (self.stream(stream)?, self.kind.driver());
        let from = match pinned {
            Some(at) => {
                if K::IS_REAL {
                    driver.write_host(PinnedPtr(at), bytes).map_err(code)?;
                }
                HostSource::Pinned(PinnedPtr(at))
            }
            None => HostSource::Pageable(bytes),
        };
        done(driver.copy_host_to_device(stream, DevicePtr(to), from, bytes.len()))
    }

    fn read(&mut self, stream: u64, from: u64, bytes: &mut [u8], pinned: Option<u64>) -> Answer<()> {
        let length = bytes.len();
        let to = pinned.map_or(HostTarget::Pageable(bytes), |at| HostTarget::Pinned(PinnedPtr(at)));
        done(self.kind.driver().copy_device_to_host(self.stream(stream)?, to, DevicePtr(from), length))
    }

    fn copy(&mut self, stream: u64, to: u64, from: u64, bytes: u64) -> Answer<()> {
        let [to, from] = [to, from].map(|at| (DEVICE, DevicePtr(at)));
        done(self.kind.driver().copy_peer(self.stream(stream)?, to, from, bytes as usize))
    }

    fn set(&mut self, stream: u64, at: u64, value: u8, bytes: u64) -> Answer<()> {
        done(self.kind.driver().memset(self.stream(stream)?, DevicePtr(at), value, bytes as usize))
    }

    fn launch(
        &mut self,
        stream: u64,
        kernel: &ir::Program,
        shape: Shape,
        parameters: &[u8],
        counters: Option<&Counters>,
    ) -> Answer<()> {
        let stream = self.stream(stream)?;
        self.kind.launch(stream, Launch { kernel, shape, parameters, counters })
    }

    fn synchronize(&mut self, stream: Option<u64>) -> Answer<()> {
        done(match stream {
            Some(stream) => self.kind.driver().stream_synchronize(self.stream(stream)?),
            None => self.kind.driver().synchronize(DEVICE),
        })
    }

    fn create_stream(&mut self, is_blocking: bool) -> Answer<u64> {
        let stream = self.kind.driver().stream_create(DEVICE, is_blocking).map_err(code)?;
        let handle = self.handle();
        self.streams.insert(handle, stream);
        Ok(handle)
    }

    // The stream's work continues, as in CUDA. The driver keeps the stream.
    fn destroy_stream(&mut self, stream: u64) -> Answer<()> {
        if stream == 0 {
            return Err(INVALID_HANDLE);
        }
        self.streams.remove(&stream).map(drop).ok_or(INVALID_HANDLE)
    }

    fn stream_has_run(&mut self, stream: u64) -> Answer<bool> {
        self.kind.driver().stream_query(self.stream(stream)?).map_err(code)
    }

    fn create_event(&mut self) -> Answer<u64> {
        let event = self.kind.driver().event_create(DEVICE, true).map_err(code)?;
        let handle = self.handle();
        self.events.insert(handle, event);
        Ok(handle)
    }

    fn destroy_event(&mut self, event: u64) -> Answer<()> {
        let event = self.events.remove(&event).ok_or(INVALID_HANDLE)?;
        done(self.kind.driver().event_destroy(event))
    }

    fn record(&mut self, event: u64, stream: u64) -> Answer<()> {
        done(self.kind.driver().event_record(self.event(event)?, self.stream(stream)?))
    }

    fn wait(&mut self, stream: u64, event: u64) -> Answer<()> {
        done(self.kind.driver().stream_wait_event(self.stream(stream)?, self.event(event)?))
    }

    fn synchronize_event(&mut self, event: u64) -> Answer<()> {
        done(self.kind.driver().event_synchronize(self.event(event)?))
    }

    fn event_has_run(&mut self, event: u64) -> Answer<bool> {
        self.kind.driver().event_query(self.event(event)?).map_err(code)
    }

    fn elapsed(&mut self, start: u64, end: u64) -> Answer<f32> {
        self.kind.driver().event_elapsed(self.event(start)?, self.event(end)?).map_err(code)
    }

    fn print(&mut self, text: &str) {
        self.kind.print(text);
    }
}

/// A launch without arguments.
pub fn launch_of(kernel: KernelId, shape: Shape) -> CompiledLaunch {
    CompiledLaunch {
        kernel,
        name: "a kernel of the program",
        grid: shape.grid,
        block: shape.block,
        // No GPU has more shared memory than a `u32` can count: the driver refuses the launch.
        shared_mem: u32::try_from(shape.dynamic_shared).unwrap_or(u32::MAX),
        arguments: Default::default(),
    }
}
