//! The CUDA functions that host code calls, one by one.

use super::calls::{Call, Host};
use super::device::Answer;
use super::errors::{self, INVALID_DEVICE, INVALID_VALUE, NOT_READY};
use crate::run::interpreter::Stop;
use crate::run::launch::Machine;
use crate::run::memory::Owner;

/// The calls that return a sticky error. The others do not check for one.
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

impl Host<'_> {
    pub(super) fn cuda(&mut self, machine: &mut Machine, call: Call) -> Result<u64, Stop> {
        let name = call.name;
        if self.sticky != 0 && STICKY_IN.contains(&name) {
            if name == "cudaMemcpy" && self.fatal_call.is_none() {
                self.fatal_call = Some((self.sticky, name));
            }
            return Ok(self.error(self.sticky));
        }
        let [first, second, third] = [0, 1, 2].map(|number| call.argument(number));
        let is_real = self.is_real();
        let device = &mut self.device;
        let answer = match name {
            "cudaMalloc" | "cudaMallocAsync" if is_real => return self.malloc_on_device(machine, call),
            "cudaMalloc" | "cudaMallocAsync" => return self.allocate(machine, call, Owner::Device),
            "cudaMallocManaged" => {
                self.has_managed = true;
                return self.allocate(machine, call, Owner::Managed);
            }
            "cudaMallocHost" | "cudaHostAlloc" => return self.allocate(machine, call, Owner::Pinned),
            "cudaFree" | "cudaFreeAsync" if is_real && first != 0 && machine.heap.at(first).is_none() => {
                nothing(device.free(first))
            }
            "cudaFree" | "cudaFreeAsync" => {
                // A real device has to finish its work before managed memory moves back.
                if is_real && let Err(code) = self.wait(machine, None) {
                    return Ok(self.failed(code, name));
                }
                self.streams.wait_for_all();
                return Ok(self.free(machine, call, &[Owner::Device, Owner::Managed]));
            }
            "cudaFreeHost" => return Ok(self.free(machine, call, &[Owner::Pinned])),
            "cudaMemcpy" | "cudaMemcpyAsync" if is_real => nothing(self.copy_on_device(machine, call)),
            "cudaMemcpy" | "cudaMemcpyAsync" => {
                self.streams.begin(call.argument(4));
                let result = self.copy(machine, call)?;
                if name == "cudaMemcpy" {
                    self.streams.wait_for_stream(0);
                }
                return Ok(result);
            }
            "cudaMemset" | "cudaMemsetAsync" if is_real => nothing(self.set_on_device(machine, call)),
            "cudaMemset" | "cudaMemsetAsync" => return Ok(self.set(machine, call)),
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
            "cudaStreamQuery" | "cudaEventQuery" => nothing(self.query(machine, call)),
            "cudaStreamWaitEvent" => {
                nothing(device.wait(first, second).map(|()| self.streams.wait_event(first, second)))
            }
            "cudaEventCreate" | "cudaEventCreateWithFlags" => {
                at(first, device.create_event().map(u64::to_le_bytes))
            }
            "cudaEventDestroy" => nothing(device.destroy_event(first)),
            "cudaEventRecord" => {
                nothing(device.record(first, second).map(|()| self.streams.record(first, second)))
            }
            "cudaEventSynchronize" => nothing(device.synchronize_event(first).and_then(|()| {
                self.streams.wait_for_event(first);
                self.after_work(machine)
            })),
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
                    self.store(machine, call, at, &bytes)?;
                }
                Ok(0)
            }
            Err(code) => Ok(self.failed(code, name)),
        }
    }

    /// `cudaStreamQuery` or `cudaEventQuery`. Work that has run counts as work that the host has waited for.
    fn query(&mut self, machine: &mut Machine, call: Call) -> Answer<()> {
        let (of, is_stream) = (call.argument(0), call.name == "cudaStreamQuery");
        let device = &mut self.device;
        let has_run = if is_stream { device.stream_has_run(of)? } else { device.event_has_run(of)? };
        match (has_run, is_stream) {
            (false, _) => return Err(NOT_READY),
            (true, true) => self.streams.wait_for_stream(of),
            (true, false) => self.streams.wait_for_event(of),
        }
        self.after_work(machine)
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
