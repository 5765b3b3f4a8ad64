//! A real device in place of the emulated one: host code is interpreted, and asks a driver for memory, copies and
//! launches.
//!
//! Addresses of device memory are the device's own. They lie outside the memory that host code can access here, so a
//! dereference of one by host code is found as usual. Nothing else is checked.

use super::calls::Host;
pub use super::dispatch::Card;
use super::dispatch::properties;
use super::functions;
use crate::ir::{Program, space};
use crate::run::interpreter::Stop;
use crate::run::launch::{Machine, Shape};
use crate::run::memory::{MOST_MEMORY, Owner, WRITTEN};
use crate::source::Span;

/// A result of the device, or the number of a CUDA error.
pub type Answer<T> = Result<T, u32>;

/// A device with its driver. Streams and events are handles that it has given out; stream 0 is the default stream.
pub trait Device {
    fn card(&self) -> Card;
    /// Free and total bytes.
    fn memory(&self) -> Answer<(u64, u64)>;
    fn malloc(&mut self, bytes: u64) -> Answer<u64>;
    fn free(&mut self, at: u64) -> Answer<()>;
    fn write(&mut self, stream: u64, at: u64, bytes: &[u8]) -> Answer<()>;
    fn read(&mut self, stream: u64, at: u64, bytes: &mut [u8]) -> Answer<()>;
    fn copy(&mut self, stream: u64, to: u64, from: u64, bytes: u64) -> Answer<()>;
    fn set(&mut self, stream: u64, at: u64, value: u8, bytes: u64) -> Answer<()>;
    fn launch(&mut self, stream: u64, kernel: &Program, shape: Shape, parameters: &[u8]) -> Answer<()>;
    /// Waits for a stream, or for all work.
    fn synchronize(&mut self, stream: Option<u64>) -> Answer<()>;
    fn create_stream(&mut self, is_blocking: bool) -> Answer<u64>;
    /// Whether all work of a stream has run.
    fn stream_has_run(&mut self, stream: u64) -> Answer<bool>;
    fn create_event(&mut self) -> Answer<u64>;
    fn record(&mut self, event: u64, stream: u64) -> Answer<()>;
    fn wait(&mut self, stream: u64, event: u64) -> Answer<()>;
    fn synchronize_event(&mut self, event: u64) -> Answer<()>;
    fn event_has_run(&mut self, event: u64) -> Answer<bool>;
    /// Milliseconds from one event to another.
    fn elapsed(&mut self, start: u64, end: u64) -> Answer<f32>;
    /// Prints what the program has printed so far, before work of the device prints.
    fn print(&mut self, text: &str);
}

const INVALID_VALUE: u32 = 1;
const NOT_READY: u32 = 600;
/// Errors after which a context is lost.
const STICKY: [u32; 6] = [700, 702, 710, 715, 716, 719];

/// Allocates memory of the device at addresses that are none of the host's here.
fn malloc(device: &mut dyn Device, bytes: u64) -> Answer<u64> {
    loop {
        let at = device.malloc(bytes)?;
        if at >= space::HEAP + MOST_MEMORY || at.saturating_add(bytes) <= space::HEAP {
            return Ok(at);
        }
        // Kept until the program ends, or the driver would give it again.
    }
}

/// What a call stores in the program's memory.
type Stored = Vec<(u64, Vec<u8>)>;

fn nothing(answer: Answer<()>) -> Answer<Stored> {
    answer.map(|()| Vec::new())
}

fn at<const N: usize>(pointer: u64, answer: Answer<[u8; N]>) -> Answer<Stored> {
    answer.map(|bytes| vec![(pointer, bytes.to_vec())])
}

/// Whether work has run, as a query answers it.
fn ready(has_run: Answer<bool>) -> Answer<Stored> {
    has_run.and_then(|has| if has { Ok(Vec::new()) } else { Err(NOT_READY) })
}

impl Host<'_> {
    /// Does on the device what a function asks of it. Returns `None` if the function asks nothing of a device.
    pub(super) fn call_device(
        &mut self,
        device: &mut dyn Device,
        machine: &mut Machine,
        function: u16,
        operands: &[u64],
        span: Span,
    ) -> Option<Result<u64, Stop>> {
        let name = functions::NAMES[function as usize].0;
        let argument = |i: usize| operands.get(i).copied().unwrap_or(0);
        let (first, second, third) = (argument(0), argument(1), argument(2));
        let answer = match name {
            "cudaMalloc" | "cudaMallocAsync" if second == 0 => at(first, Ok([0; 8])),
            "cudaMalloc" | "cudaMallocAsync" => at(first, malloc(device, second).map(u64::to_le_bytes)),
            "cudaFree" | "cudaFreeAsync" if first == 0 => Ok(Vec::new()),
            "cudaFree" | "cudaFreeAsync" => match self.managed.remove(first) {
                None => nothing(device.free(first)),
                Some(on_device) => {
                    self.release(machine, first, &[Owner::Managed], name, span);
                    nothing(device.free(on_device))
                }
            },
            "cudaMallocManaged" => return Some(self.malloc_managed(device, machine, [first, second], span)),
            "cudaMemPrefetchAsync" | "cudaMemAdvise" => Ok(Vec::new()),
            "cudaMemcpy" | "cudaMemcpyAsync" => {
                device.print(&std::mem::take(&mut machine.output));
                nothing(self.copy_on_device(device, machine, name, operands))
            }
            "cudaMemset" | "cudaMemsetAsync" if self.managed.contains(first) => {
                nothing(self.set_managed(device, machine, [first, second, third]))
            }
            "cudaMemset" => nothing(device.set(0, first, second as u8, third)),
            "cudaMemsetAsync" => nothing(device.set(argument(3), first, second as u8, third)),
            "cudaDeviceSynchronize" | "cudaThreadSynchronize" | "cudaStreamSynchronize" => {
                let stream = (name == "cudaStreamSynchronize").then_some(first);
                nothing(self.wait(device, machine, stream))
            }
            "cudaStreamCreate" | "cudaStreamCreateWithFlags" => {
                let is_blocking = second & 1 == 0;
                let created = device.create_stream(is_blocking);
                if let Ok(handle) = created {
                    self.streams.known.insert(handle, !is_blocking);
                }
                at(first, created.map(u64::to_le_bytes))
            }
            "cudaStreamQuery" => ready(device.stream_has_run(first)),
            "cudaStreamWaitEvent" => {
                self.streams.wait_event(first, second);
                nothing(device.wait(first, second))
            }
            "cudaEventCreate" | "cudaEventCreateWithFlags" => {
                at(first, device.create_event().map(u64::to_le_bytes))
            }
            "cudaEventRecord" => {
                self.streams.record(first, second);
                nothing(device.record(first, second))
            }
            "cudaEventSynchronize" => {
                self.streams.wait_for_event(first);
                nothing(device.synchronize_event(first).and_then(|()| self.after_work(device, machine)))
            }
            "cudaEventQuery" => ready(device.event_has_run(first)),
            "cudaEventElapsedTime" => at(first, device.elapsed(second, third).map(f32::to_le_bytes)),
            "cudaGetDeviceProperties" => Ok(vec![(first, properties(&device.card()))]),
            "cudaMemGetInfo" => device.memory().map(|(free, total)| {
                vec![(first, free.to_le_bytes().to_vec()), (second, total.to_le_bytes().to_vec())]
            }),
            "cudaDeviceGetAttribute" => {
                let title = format!("`{name}` is not part of what `--gpu real` runs");
                return Some(Err(self.fault(machine, span, title, Vec::new())));
            }
            _ => return None,
        };
        let stored = answer.map(|stored| {
            stored.iter().try_for_each(|(at, bytes)| self.store(machine, *at, bytes, name, span))
        });
        Some(match stored {
            Ok(Err(stop)) => Err(stop),
            Ok(Ok(())) => Ok(0),
            Err(code) => Ok(self.failed(code, name)),
        })
    }

    /// `cudaMallocManaged`: memory of the program and a copy on the device.
    fn malloc_managed(
        &mut self,
        device: &mut dyn Device,
        machine: &mut Machine,
        [pointer, bytes]: [u64; 2],
        span: Span,
    ) -> Result<u64, Stop> {
        let name = "cudaMallocManaged";
        let on_device = match malloc(device, bytes.max(1)) {
            Ok(on_device) => on_device,
            Err(code) => return Ok(self.failed(code, name)),
        };
        let code = self.allocate(machine, pointer, bytes, Owner::Managed, name, span)?;
        let allocated = machine.heap.allocations.last().filter(|_| code == 0 && bytes > 0);
        if let Some(allocated) = allocated {
            self.has_managed = true;
            self.managed.add(space::HEAP + allocated.offset, on_device, bytes);
        }
        Ok(code)
    }

    /// Sets managed memory, where it is after all work.
    fn set_managed(
        &mut self,
        device: &mut dyn Device,
        machine: &mut Machine,
        [at, value, bytes]: [u64; 3],
    ) -> Answer<()> {
        self.wait(device, machine, None)?;
        let range = machine.heap.range(at, bytes).ok_or(INVALID_VALUE)?;
        machine.heap.space.bytes[range.clone()].fill(value as u8);
        machine.heap.space.states[range].iter_mut().for_each(|state| *state |= WRITTEN);
        Ok(())
    }

    /// Copies memory. With managed memory, it waits for all work first.
    fn copy_on_device(
        &mut self,
        device: &mut dyn Device,
        machine: &mut Machine,
        name: &str,
        operands: &[u64],
    ) -> Answer<()> {
        let is_managed = operands.iter().take(2).any(|at| self.managed.contains(*at));
        if is_managed {
            self.wait(device, machine, None)?;
        }
        copy(device, machine, operands, is_managed)?;
        if name == "cudaMemcpy" {
            self.streams.begin(0);
            self.streams.wait_for_stream(0);
        }
        self.after_work(device, machine)
    }

    /// Waits for a stream, or for all work.
    fn wait(&mut self, device: &mut dyn Device, machine: &mut Machine, stream: Option<u64>) -> Answer<()> {
        device.print(&std::mem::take(&mut machine.output));
        device.synchronize(stream)?;
        match stream {
            Some(stream) => self.streams.wait_for_stream(stream),
            None => self.streams.wait_for_all(),
        }
        self.after_work(device, machine)
    }

    fn after_work(&mut self, device: &mut dyn Device, machine: &mut Machine) -> Answer<()> {
        match self.streams.is_busy() {
            true => Ok(()),
            false => self.managed.after_work(device, &mut machine.heap),
        }
    }

    /// Launches a kernel on the device.
    pub(super) fn launch_on_device(
        &mut self,
        device: &mut dyn Device,
        machine: &mut Machine,
        (kernel, shape, stream): (u32, Shape, u64),
        mut parameters: Vec<u8>,
    ) {
        self.launches += 1;
        let kernel = &self.kernels[kernel as usize];
        let prepared = self.managed.before_launch(device, &machine.heap, kernel, &mut parameters);
        let launched = prepared.and_then(|()| device.launch(stream, kernel, shape, &parameters));
        self.streams.launched(stream, 0, 0);
        machine.is_busy |= self.has_managed;
        if let Err(code) = launched {
            self.failed(code, "cudaLaunchKernel");
        }
    }

    /// Notes an error of a call. One of a kernel is the answer to every later call.
    fn failed(&mut self, code: u32, call: &'static str) -> u64 {
        if STICKY.contains(&code) && self.fatal_call.is_none() {
            (self.sticky, self.fatal_call) = (code, Some((code, call)));
        }
        self.error(code)
    }
}

/// `cudaMemcpy(to, from, bytes, kind)`, on a stream if there is one. Managed memory goes with every kind.
fn copy(device: &mut dyn Device, machine: &mut Machine, operands: &[u64], is_managed: bool) -> Answer<()> {
    let [to, from, bytes, kind, ..] = *operands else { return Err(INVALID_VALUE) };
    let kind = if is_managed && kind < 4 { 4 } else { kind };
    let stream = operands.get(4).copied().unwrap_or(0);
    if bytes == 0 {
        return Ok(());
    }
    let of_host = |at| machine.heap.range(at, bytes).filter(|range| machine.heap.is_of_host(range));
    match (of_host(to), of_host(from), kind) {
        (None, Some(from), 1 | 4) => device.write(stream, to, &machine.heap.space.bytes[from]),
        (Some(to), None, 2 | 4) => {
            device.read(stream, from, &mut machine.heap.space.bytes[to.clone()])?;
            machine.heap.space.states[to].iter_mut().for_each(|state| *state |= WRITTEN);
            Ok(())
        }
        (None, None, 3 | 4) => device.copy(stream, to, from, bytes),
        (Some(to), Some(from), 0 | 4) => {
            machine.heap.space.bytes.copy_within(from, to.start);
            Ok(())
        }
        _ if kind > 4 => Err(21),
        // A direction that does not fit its pointers, or host memory that is not all there.
        _ => Err(INVALID_VALUE),
    }
}
