//! The CUDA functions that host code calls, one by one.

use super::calls::Host;
use super::device::Answer;
use super::errors;
use crate::run::interpreter::Stop;
use crate::run::launch::Machine;
use crate::run::memory::Owner;
use crate::source::Span;

const INVALID_VALUE: u32 = 1;
const INVALID_DEVICE: u32 = 101;
const NOT_READY: u32 = 600;

/// The calls that return a sticky error. Others do not ask the context.
const STICKY_IN: [&str; 16] = [
    "cudaMalloc",
    "cudaMallocAsync",
    "cudaMallocManaged",
    "cudaMallocHost",
    "cudaHostAlloc",
    "cudaMemPrefetchAsync",
    "cudaMemAdvise",
    "cudaFree",
    "cudaFreeAsync",
    "cudaMemcpy",
    "cudaMemcpyAsync",
    "cudaMemset",
    "cudaMemsetAsync",
    "cudaStreamQuery",
    "cudaEventQuery",
    "cudaEventSynchronize",
];

/// The calls whose results depend on the time of kernels.
pub const TIMED: [&str; 3] = ["cudaEventElapsedTime", "cudaStreamQuery", "cudaEventQuery"];

/// Bytes that a call writes to the program's memory, by address.
type Stored = Vec<(u64, Vec<u8>)>;

fn nothing(answer: Answer<()>) -> Answer<Stored> {
    answer.map(|()| Vec::new())
}

fn at<const N: usize>(pointer: u64, answer: Answer<[u8; N]>) -> Answer<Stored> {
    answer.map(|bytes| vec![(pointer, bytes.to_vec())])
}

/// The result of `cudaStreamQuery` or `cudaEventQuery`.
fn ready(has_run: Answer<bool>) -> Answer<Stored> {
    has_run.and_then(|has| if has { Ok(Vec::new()) } else { Err(NOT_READY) })
}

impl Host<'_> {
    pub(super) fn cuda(
        &mut self,
        machine: &mut Machine,
        name: &'static str,
        operands: &[u64],
        span: Span,
    ) -> Result<u64, Stop> {
        if self.sticky != 0 && STICKY_IN.contains(&name) {
            if name == "cudaMemcpy" && self.fatal_call.is_none() {
                self.fatal_call = Some((self.sticky, name));
            }
            return Ok(self.error(self.sticky));
        }
        let argument = |i: usize| operands.get(i).copied().unwrap_or(0);
        let (first, second, third) = (argument(0), argument(1), argument(2));
        let device = &mut self.device;
        let answer = match name {
            "cudaMalloc" | "cudaMallocAsync" => {
                return self.malloc(machine, [first, second], name, span);
            }
            "cudaMallocManaged" => {
                self.has_managed = true;
                return self.allocate(machine, [first, second], Owner::Managed, name, span);
            }
            "cudaMallocHost" | "cudaHostAlloc" => {
                return self.allocate(machine, [first, second], Owner::Pinned, name, span);
            }
            "cudaFree" | "cudaFreeAsync" => return self.cuda_free(machine, first, name, span),
            "cudaFreeHost" => return Ok(self.free(machine, first, &[Owner::Pinned], name, span)),
            "cudaMemcpy" | "cudaMemcpyAsync" => return self.cuda_copy(machine, operands, name, span),
            "cudaMemset" | "cudaMemsetAsync" => return self.cuda_set(machine, operands, name, span),
            "cudaDeviceSynchronize" | "cudaThreadSynchronize" => {
                return Ok(self.synchronise(machine, None, "cudaDeviceSynchronize"));
            }
            "cudaStreamSynchronize" => return Ok(self.synchronise(machine, Some(first), name)),
            "cudaGetLastError" | "cudaPeekAtLastError" => {
                let code = self.last_error.max(self.sticky);
                if name == "cudaGetLastError" && self.sticky == 0 {
                    self.last_error = 0;
                }
                return Ok(u64::from(code));
            }
            "cudaGetErrorString" => return Ok(self.text(machine, errors::of(first as u32).1)),
            "cudaGetErrorName" => return Ok(self.text(machine, errors::of(first as u32).0)),
            "cudaSetDevice" => nothing(if first == 0 { Ok(()) } else { Err(INVALID_DEVICE) }),
            "cudaGetDevice" => at(first, Ok(0u32.to_le_bytes())),
            "cudaGetDeviceCount" => at(first, Ok(1u32.to_le_bytes())),
            "cudaGetDeviceProperties" => Ok(vec![(first, device.card().properties())]),
            "cudaDeviceGetAttribute" => {
                at(first, device.card().attribute(second).map(u32::to_le_bytes).ok_or(INVALID_VALUE))
            }
            "cudaMemGetInfo" => device.memory().map(|(free, total)| {
                vec![(first, free.to_le_bytes().to_vec()), (second, total.to_le_bytes().to_vec())]
            }),
            "cudaStreamCreate" | "cudaStreamCreateWithFlags" => {
                let is_blocking = second & 1 == 0;
                let created = device.create_stream(is_blocking);
                if let Ok(handle) = created {
                    self.streams.known.insert(handle, !is_blocking);
                }
                at(first, created.map(u64::to_le_bytes))
            }
            "cudaStreamDestroy" => nothing(device.destroy_stream(first)),
            "cudaStreamQuery" => {
                let has_run = device.stream_has_run(first);
                if has_run == Ok(true) {
                    self.streams.wait_for_stream(first);
                }
                ready(has_run)
            }
            "cudaStreamWaitEvent" => {
                self.streams.wait_event(first, second);
                nothing(device.wait(first, second))
            }
            "cudaEventCreate" | "cudaEventCreateWithFlags" => {
                at(first, device.create_event().map(u64::to_le_bytes))
            }
            "cudaEventDestroy" => nothing(device.destroy_event(first)),
            "cudaEventRecord" => {
                let recorded = device.record(first, second);
                if recorded.is_ok() {
                    self.streams.record(first, second);
                }
                nothing(recorded)
            }
            "cudaEventSynchronize" => {
                let waited = device.synchronize_event(first);
                self.streams.wait_for_event(first);
                nothing(waited.and_then(|()| self.after_work(machine)))
            }
            "cudaEventQuery" => {
                let has_run = device.event_has_run(first);
                if has_run == Ok(true) {
                    self.streams.wait_for_event(first);
                }
                ready(has_run)
            }
            "cudaEventElapsedTime" => {
                self.reads_time = true;
                at(first, device.elapsed(second, third).map(f32::to_le_bytes))
            }
            // Hints, and functions without an effect here.
            _ => Ok(Vec::new()),
        };
        match answer {
            Ok(stored) => {
                for (at, bytes) in stored {
                    self.store(machine, at, &bytes, name, span)?;
                }
                Ok(0)
            }
            Err(code) => Ok(self.failed(code, name)),
        }
    }

    fn malloc(
        &mut self,
        machine: &mut Machine,
        operands: [u64; 2],
        name: &'static str,
        span: Span,
    ) -> Result<u64, Stop> {
        if self.is_real() {
            return self.malloc_on_device(machine, operands, name, span);
        }
        self.allocate(machine, operands, Owner::Device, name, span)
    }

    fn cuda_free(
        &mut self,
        machine: &mut Machine,
        pointer: u64,
        name: &'static str,
        span: Span,
    ) -> Result<u64, Stop> {
        if self.is_real() && pointer != 0 && machine.heap.at(pointer).is_none() {
            let freed = self.device.free(pointer);
            return Ok(freed.map_or_else(|code| self.failed(code, name), |()| 0));
        }
        self.streams.wait_for_all();
        Ok(self.free(machine, pointer, &[Owner::Device, Owner::Managed], name, span))
    }

    fn cuda_copy(
        &mut self,
        machine: &mut Machine,
        operands: &[u64],
        name: &'static str,
        span: Span,
    ) -> Result<u64, Stop> {
        if self.is_real() {
            let copied = self.copy_on_device(machine, name, operands);
            return Ok(copied.map_or_else(|code| self.failed(code, name), |()| 0));
        }
        self.streams.begin(operands.get(4).copied().unwrap_or(0));
        let result = self.copy(machine, operands, name, span)?;
        if name == "cudaMemcpy" {
            self.streams.wait_for_stream(0);
        }
        Ok(result)
    }

    fn cuda_set(
        &mut self,
        machine: &mut Machine,
        operands: &[u64],
        name: &'static str,
        span: Span,
    ) -> Result<u64, Stop> {
        if self.is_real() {
            let set = self.set_on_device(machine, operands);
            return Ok(set.map_or_else(|code| self.failed(code, name), |()| 0));
        }
        Ok(self.set(machine, operands, name, span))
    }

    /// Waits for a stream, or for all work.
    fn synchronise(&mut self, machine: &mut Machine, stream: Option<u64>, name: &'static str) -> u64 {
        let waited = if self.sticky == 0 { self.wait(machine, stream) } else { Ok(()) };
        if self.sticky != 0 && self.fatal_call.is_none() {
            self.fatal_call = Some((self.sticky, name));
        }
        let code = waited.err().unwrap_or(self.sticky);
        self.failed(code, name)
    }

    pub(super) fn wait(&mut self, machine: &mut Machine, stream: Option<u64>) -> Answer<()> {
        self.print_on_device(machine);
        self.device.synchronize(stream)?;
        match stream {
            Some(stream) => self.streams.wait_for_stream(stream),
            None => self.streams.wait_for_all(),
        }
        self.after_work(machine)
    }
}
