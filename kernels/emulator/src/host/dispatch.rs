//! The C and CUDA functions that host code calls, one by one.

use super::calls::{DEVICE_MEMORY, Host};
use super::random::Random;
use super::{errors, functions};
use crate::ir::space;
use crate::run::interpreter::Stop;
use crate::run::launch::Machine;
use crate::run::memory::{ALLOCATED, Owner, WRITTEN};
use crate::source::Span;

impl Host<'_> {
    /// Calls a function: on a real device if there is one and the function involves it, else emulated.
    pub(super) fn call_function(
        &mut self,
        machine: &mut Machine,
        function: u16,
        operands: &[u64],
        span: Span,
    ) -> Result<u64, Stop> {
        #[cfg(not(target_family = "wasm"))]
        if let Some(mut device) = self.device.take() {
            let called = self.call_device(&mut *device, machine, function, operands, span);
            self.device = Some(device);
            if let Some(called) = called {
                return called;
            }
        }
        self.call_emulated(machine, function, operands, span)
    }

    fn call_emulated(
        &mut self,
        machine: &mut Machine,
        function: u16,
        operands: &[u64],
        span: Span,
    ) -> Result<u64, Stop> {
        let name = functions::NAMES[function as usize].0;
        let argument = |i: usize| operands.get(i).copied().unwrap_or(0);
        Ok(match name {
            "malloc" | "calloc" => {
                let size =
                    if name == "malloc" { argument(0) } else { argument(0).saturating_mul(argument(1)) };
                let Some(at) = machine.heap.allocate(size.max(1), Owner::Host, name, span) else {
                    return Ok(0);
                };
                if name == "calloc" {
                    let offset = at - space::HEAP;
                    machine.heap.space.mark(offset, size, ALLOCATED | WRITTEN | crate::run::memory::OF_HOST);
                }
                at
            }
            "realloc" => self.reallocated(machine, argument(0), argument(1), span)?,
            "free" => {
                self.release(machine, argument(0), &[Owner::Host], name, span);
                0
            }
            "memset" => {
                let range = self.host_range(machine, argument(0), argument(2), name, span)?;
                machine.heap.space.bytes[range.clone()].fill(argument(1) as u8);
                machine.heap.space.states[range].iter_mut().for_each(|state| *state |= WRITTEN);
                argument(0)
            }
            "memcpy" | "memmove" => {
                let from = self.host_range(machine, argument(1), argument(2), name, span)?;
                let to = self.host_range(machine, argument(0), argument(2), name, span)?;
                machine.heap.space.bytes.copy_within(from, to.start);
                machine.heap.space.states[to].iter_mut().for_each(|state| *state |= WRITTEN);
                argument(0)
            }
            "exit" => return Err(Stop::Exit(argument(0) as i32)),
            "abort" => {
                return Err(self.fault(machine, span, "The program called `abort`".to_owned(), Vec::new()));
            }
            "rand" => u64::from(self.random.number()),
            "srand" => {
                self.random = Random::new(argument(0) as u32);
                0
            }
            // A fixed time, so that a program gives the same result every time.
            "time" => 1_700_000_000,
            "strcmp" => {
                let (a, b) = (machine.heap.text(argument(0)), machine.heap.text(argument(1)));
                match a.cmp(&b) {
                    std::cmp::Ordering::Less => u64::MAX,
                    std::cmp::Ordering::Equal => 0,
                    std::cmp::Ordering::Greater => 1,
                }
            }
            "strlen" => machine.heap.text(argument(0)).map_or(0, |text| text.len() as u64),
            "atoi" => {
                leading_number(&machine.heap.text(argument(0)).unwrap_or_default()) as i32 as u32 as u64
            }
            "atol" | "atoll" => leading_number(&machine.heap.text(argument(0)).unwrap_or_default()) as u64,
            "atof" => leading_float(&machine.heap.text(argument(0)).unwrap_or_default()).to_bits(),
            "puts" => {
                let text = machine.heap.text(argument(0)).unwrap_or_default();
                machine.print(&text);
                machine.print("\n");
                0
            }
            "putchar" => {
                machine.print(&((argument(0) as u8) as char).to_string());
                argument(0)
            }
            name if name.starts_with("__emulator_put_") => {
                let text = match name {
                    "__emulator_put_text" => machine.heap.text(argument(0)).unwrap_or_default(),
                    _ => super::output::shown(name, operands),
                };
                let last = operands.len().saturating_sub(3);
                machine.print(&super::output::padded(&text, &operands[last..]));
                0
            }
            "fflush" | "getenv" => 0,
            "__emulator_out_of_range" => {
                let title = format!("`at({})` of a vector of {} elements", argument(0), argument(1));
                return Err(self.fault(machine, span, title, Vec::new()));
            }
            "cudaMalloc" | "cudaMallocAsync" => {
                self.allocate(machine, argument(0), argument(1), Owner::Device, name, span)?
            }
            "cudaMallocManaged" => {
                self.has_managed = true;
                self.allocate(machine, argument(0), argument(1), Owner::Managed, name, span)?
            }
            "cudaMemPrefetchAsync" | "cudaMemAdvise" => u64::from(self.sticky),
            "cudaMallocHost" | "cudaHostAlloc" => {
                self.allocate(machine, argument(0), argument(1), Owner::Pinned, name, span)?
            }
            "cudaFree" | "cudaFreeAsync" => {
                self.streams.wait_for_all();
                if self.sticky != 0 {
                    return Ok(self.error(self.sticky));
                }
                let owners = [Owner::Device, Owner::Managed];
                let code = self.release(machine, argument(0), &owners, name, span);
                self.error(code as u32)
            }
            "cudaFreeHost" => {
                let code = self.release(machine, argument(0), &[Owner::Pinned], name, span);
                self.error(code as u32)
            }
            "cudaMemcpy" => {
                self.streams.begin(0);
                let result = self.copy(machine, operands, span)?;
                self.streams.wait_for_stream(0);
                if self.sticky != 0 && self.fatal_call.is_none() {
                    self.fatal_call = Some((self.sticky, "cudaMemcpy"));
                }
                result
            }
            "cudaMemcpyAsync" => {
                self.streams.begin(argument(4));
                self.copy(machine, operands, span)?
            }
            "cudaMemset" | "cudaMemsetAsync" => self.set(machine, operands, span)?,
            "cudaDeviceSynchronize" | "cudaThreadSynchronize" => {
                self.synchronise(None, "cudaDeviceSynchronize")
            }
            "cudaDeviceReset" => 0,
            "cudaGetLastError" | "cudaPeekAtLastError" => {
                let code = self.last_error.max(self.sticky);
                if name == "cudaGetLastError" && self.sticky == 0 {
                    self.last_error = 0;
                }
                u64::from(code)
            }
            "cudaGetErrorString" => self.text(machine, errors::of(argument(0) as u32).1),
            "cudaGetErrorName" => self.text(machine, errors::of(argument(0) as u32).0),
            "cudaSetDevice" => self.error(if argument(0) == 0 { 0 } else { 101 }),
            "cudaGetDevice" => {
                self.store(machine, argument(0), &0u32.to_le_bytes(), name, span)?;
                0
            }
            "cudaGetDeviceCount" => {
                self.store(machine, argument(0), &1u32.to_le_bytes(), name, span)?;
                0
            }
            "cudaGetDeviceProperties" => {
                self.store(machine, argument(0), &properties(&Card::t4()), name, span)?;
                0
            }
            "cudaDeviceGetAttribute" => {
                let value: u32 = match argument(1) {
                    1 => 1024,
                    8 => 49152,
                    10 => 32,
                    16 => 40,
                    _ => return Ok(self.error(1)),
                };
                self.store(machine, argument(0), &value.to_le_bytes(), name, span)?;
                0
            }
            "cudaMemGetInfo" => {
                let used: u64 = machine
                    .heap
                    .allocations
                    .iter()
                    .filter(|known| known.owner == Owner::Device && !known.is_freed)
                    .map(|known| known.size)
                    .sum();
                self.store(machine, argument(0), &(DEVICE_MEMORY - used).to_le_bytes(), name, span)?;
                self.store(machine, argument(1), &DEVICE_MEMORY.to_le_bytes(), name, span)?;
                0
            }
            "cudaStreamCreate" | "cudaStreamCreateWithFlags" => {
                let handle = self.streams.handle();
                self.streams.known.insert(handle, argument(1) & 1 != 0);
                self.store(machine, argument(0), &handle.to_le_bytes(), name, span)?;
                0
            }
            "cudaEventCreate" | "cudaEventCreateWithFlags" => {
                let handle = self.streams.handle();
                self.streams.events.insert(handle, None);
                self.store(machine, argument(0), &handle.to_le_bytes(), name, span)?;
                0
            }
            "cudaStreamDestroy" => 0,
            "cudaEventDestroy" => 0,
            "cudaStreamSynchronize" => self.synchronise(Some(argument(0)), "cudaStreamSynchronize"),
            "cudaStreamQuery" | "cudaEventQuery" => u64::from(self.sticky),
            "cudaStreamWaitEvent" => {
                self.streams.wait_event(argument(0), argument(1));
                0
            }
            "cudaEventRecord" => {
                if !self.streams.events.contains_key(&argument(0)) {
                    return Ok(self.error(400));
                }
                self.streams.record(argument(0), argument(1));
                0
            }
            "cudaEventSynchronize" => {
                self.streams.wait_for_event(argument(0));
                u64::from(self.sticky)
            }
            "cudaEventElapsedTime" => {
                // Nothing here measures or models time, so it is reported as 0.
                self.store(machine, argument(0), &0f32.to_le_bytes(), name, span)?;
                0
            }
            _ => 0,
        })
    }

    /// Moves an allocation: the old memory is never used again, so that later accesses to it are found.
    fn reallocated(&mut self, machine: &mut Machine, old: u64, size: u64, span: Span) -> Result<u64, Stop> {
        let known = machine.heap.at(old).map(|number| &machine.heap.allocations[number]);
        let kept =
            known.filter(|known| known.owner == Owner::Host && !known.is_freed).map(|known| known.size);
        if old != 0 && kept.is_none() {
            self.release(machine, old, &[Owner::Host], "realloc", span);
            return Ok(0);
        }
        let Some(new) = machine.heap.allocate(size.max(1), Owner::Host, "realloc", span) else {
            return Ok(0);
        };
        if let Some(kept) = kept {
            let (from, to) = ((old - space::HEAP) as usize, (new - space::HEAP) as usize);
            let range = from..from + kept.min(size) as usize;
            machine.heap.space.bytes.copy_within(range.clone(), to);
            machine.heap.space.states.copy_within(range, to);
            self.release(machine, old, &[Owner::Host], "realloc", span);
        }
        Ok(new)
    }
}

/// The number at the start of a string, as `atoi` reads it.
fn leading_number(text: &str) -> i64 {
    let text = text.trim_start();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number = digits[..end].parse().unwrap_or(0);
    if text.starts_with('-') { -number } else { number }
}

/// The number at the start of a string, as `atof` reads it.
fn leading_float(text: &str) -> f64 {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(text.len());
    (1..=end.min(400)).rev().find_map(|end| text[..end].parse().ok()).unwrap_or(0.0)
}

/// The fields of `cudaGetDeviceProperties` that differ between cards.
pub struct Card {
    pub name: String,
    /// Bytes of memory.
    pub memory: u64,
    pub major: u32,
    pub minor: u32,
    pub multiprocessors: u32,
    pub threads_of_multiprocessor: u32,
}

impl Card {
    fn t4() -> Card {
        let (name, memory) = ("Tesla T4 (emulated)".to_owned(), DEVICE_MEMORY);
        Card { name, memory, major: 7, minor: 5, multiprocessors: 40, threads_of_multiprocessor: 1024 }
    }
}

/// The `cudaDeviceProp` of a card. Fields that [`Card`] lacks have the values of all cards since Volta.
pub(super) fn properties(card: &Card) -> Vec<u8> {
    let mut bytes = vec![0u8; 256];
    let name = card.name.as_bytes();
    let length = name.len().min(255);
    bytes[..length].copy_from_slice(&name[..length]);
    bytes.extend(card.memory.to_le_bytes());
    bytes.extend(49152u64.to_le_bytes());
    let Card { major, minor, multiprocessors, threads_of_multiprocessor, .. } = *card;
    let sizes = [65536u32, 32, 1024, 1024, 1024, 64, 2_147_483_647, 65535, 65535];
    let of_card = [major, minor, multiprocessors, threads_of_multiprocessor, 65536];
    for value in sizes.into_iter().chain(of_card) {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(65536u64.to_le_bytes());
    bytes
}
