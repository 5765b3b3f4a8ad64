//! The effects of the host functions.

use super::errors;
use super::random::Random;
use super::streams::Streams;
use crate::ir::{Prim, Program, size_of, space};
use crate::run::checks::{Finding, Severity, Site};
use crate::run::interpreter::{Environment, Stop};
use crate::run::launch::{Machine, Shape, fatal};
use crate::run::memory::{Owner, WRITTEN};
use crate::source::Span;

/// The host's state: errors, streams, random numbers.
pub struct Host<'a> {
    pub kernels: &'a [Program],
    pub streams: Streams,
    pub last_error: u32,
    /// A sticky error: the context is no longer usable.
    pub sticky: u32,
    pub(super) random: Random,
    texts: std::collections::HashMap<String, u64>,
    pub launches: u64,
    pub(super) has_managed: bool,
    pub fatal_call: Option<(u32, &'static str)>,
    /// The device, if it is not emulated. A page has no other.
    #[cfg(not(target_family = "wasm"))]
    pub device: Option<Box<dyn super::device::Device + 'a>>,
    #[cfg(not(target_family = "wasm"))]
    pub(super) managed: super::managed::Managed,
}

pub(super) const DEVICE_MEMORY: u64 = 15_828_320_256;

impl<'a> Host<'a> {
    pub fn new(kernels: &'a [Program]) -> Host<'a> {
        Host {
            kernels,
            streams: Streams::default(),
            last_error: 0,
            sticky: 0,
            random: Random::new(1),
            texts: std::collections::HashMap::new(),
            launches: 0,
            has_managed: false,
            fatal_call: None,
            #[cfg(not(target_family = "wasm"))]
            device: None,
            #[cfg(not(target_family = "wasm"))]
            managed: super::managed::Managed::default(),
        }
    }

    pub(super) fn error(&mut self, code: u32) -> u64 {
        if code != 0 && code != 600 {
            self.last_error = code;
        }
        u64::from(code)
    }

    pub(super) fn text(&mut self, machine: &mut Machine, text: &str) -> u64 {
        if let Some(at) = self.texts.get(text) {
            return *at;
        }
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        let Some(at) = machine.heap.allocate(bytes.len() as u64, Owner::Pinned, "", Span::default()) else {
            return 0;
        };
        let start = (at - space::HEAP) as usize;
        machine.heap.space.bytes[start..start + bytes.len()].copy_from_slice(&bytes);
        if let Some(last) = machine.heap.allocations.last_mut() {
            last.owner = Owner::Global;
        }
        self.texts.insert(text.to_owned(), at);
        at
    }

    pub(super) fn fault(&self, machine: &mut Machine, span: Span, title: String, notes: Vec<String>) -> Stop {
        let site = Site { text: "at".to_owned(), span: Some(span), thread: None };
        machine.findings.add(fatal("host", title, "main", vec![site], notes));
        Stop::HostFault
    }

    pub(super) fn misuse(&self, machine: &mut Machine, span: Span, title: String, notes: Vec<String>) {
        self.find("memcheck", machine, span, title, notes);
    }

    fn find(
        &self,
        check: &'static str,
        machine: &mut Machine,
        span: Span,
        title: String,
        notes: Vec<String>,
    ) {
        let site = Site { text: "at".to_owned(), span: Some(span), thread: None };
        machine.findings.add(Finding {
            check,
            severity: Severity::Error,
            title,
            function: "main".to_owned(),
            sites: vec![site],
            notes,
            count: 1,
            is_fatal: false,
        });
    }

    /// Returns a range of host memory that a C function accesses.
    pub(super) fn host_range(
        &self,
        machine: &mut Machine,
        at: u64,
        size: u64,
        name: &str,
        span: Span,
    ) -> Result<std::ops::Range<usize>, Stop> {
        match machine.heap.range(at, size).filter(|range| machine.heap.is_of_host(range)) {
            Some(range) => Ok(range),
            None => {
                let note = match machine.heap.range(at, size.max(1)) {
                    Some(_) => format!("{at:#x} is memory of the device: use `cudaMemcpy` and `cudaMemset`"),
                    None => {
                        format!("not all of {} at {at:#x} are allocated", crate::run::access::bytes(size))
                    }
                };
                Err(self.fault(machine, span, format!("`{name}` goes beyond the host's memory"), vec![note]))
            }
        }
    }

    pub(super) fn store(
        &self,
        machine: &mut Machine,
        at: u64,
        bytes: &[u8],
        name: &str,
        span: Span,
    ) -> Result<(), Stop> {
        let range = self.host_range(machine, at, bytes.len() as u64, name, span)?;
        machine.heap.space.bytes[range.clone()].copy_from_slice(bytes);
        for state in &mut machine.heap.space.states[range] {
            *state |= WRITTEN;
        }
        Ok(())
    }

    pub(super) fn allocate(
        &mut self,
        machine: &mut Machine,
        pointer: u64,
        size: u64,
        owner: Owner,
        name: &str,
        span: Span,
    ) -> Result<u64, Stop> {
        if self.sticky != 0 {
            return Ok(self.error(self.sticky));
        }
        if pointer == 0 {
            return Ok(self.error(1));
        }
        let at = match size {
            0 => Some(0),
            _ => machine.heap.allocate(size, owner, name, span),
        };
        match at {
            Some(at) => {
                self.store(machine, pointer, &at.to_le_bytes(), name, span)?;
                Ok(0)
            }
            None => Ok(self.error(2)),
        }
    }

    pub(super) fn release(
        &mut self,
        machine: &mut Machine,
        at: u64,
        owners: &[Owner],
        name: &str,
        span: Span,
    ) -> u64 {
        if at == 0 {
            return 0;
        }
        let found = machine.heap.at(at);
        match found {
            Some(number)
                if owners.contains(&machine.heap.allocations[number].owner)
                    && !machine.heap.allocations[number].is_freed =>
            {
                let known = &mut machine.heap.allocations[number];
                known.is_freed = true;
                let (offset, size) = (known.offset, known.size);
                machine.heap.space.mark(offset, size, 0);
                0
            }
            Some(number) if machine.heap.allocations[number].is_freed => {
                self.misuse(machine, span, format!("`{name}` of memory that was freed before"), Vec::new());
                1
            }
            _ => {
                self.misuse(
                    machine,
                    span,
                    format!("`{name}` of {at:#x}, which is not the start of such memory"),
                    Vec::new(),
                );
                1
            }
        }
    }

    /// Copies memory, with CUDA's checks and some more.
    pub(super) fn copy(&mut self, machine: &mut Machine, operands: &[u64], span: Span) -> Result<u64, Stop> {
        let [to, from, size, kind, ..] = *operands else { return Ok(0) };
        if self.sticky != 0 {
            return Ok(self.error(self.sticky));
        }
        if size == 0 {
            return Ok(0);
        }
        if kind > 4 {
            return Ok(self.error(21));
        }
        let sides = [("source", from, matches!(kind, 0 | 1)), ("destination", to, matches!(kind, 0 | 2))];
        let mut ranges = Vec::new();
        for (name, at, is_host) in sides {
            let Some(range) = machine.heap.range(at, size) else {
                let notes =
                    vec![format!("not all of {} at {at:#x} are allocated", crate::run::access::bytes(size))];
                self.misuse(machine, span, format!("the {name} of `cudaMemcpy` is out of bounds"), notes);
                return Ok(self.error(1));
            };
            let wrong = kind != 4
                && if is_host {
                    !machine.heap.is_of_host(&range)
                } else {
                    !machine.heap.is_of_device(&range)
                };
            if wrong {
                let (is, wanted) =
                    if is_host { ("the device", "the host") } else { ("the host", "the device") };
                let notes =
                    vec![format!("its direction says memory of {wanted}, and {at:#x} is memory of {is}")];
                self.misuse(machine, span, format!("the {name} of `cudaMemcpy` is on the wrong side"), notes);
                return Ok(self.error(1));
            }
            ranges.push(range);
        }
        if machine.sample.is_some()
            && machine.heap.is_of_host(&ranges[1])
            && !machine.heap.is_of_host(&ranges[0])
        {
            return Err(Stop::Exit(0));
        }
        if machine.checks().init
            && machine.heap.is_of_device(&ranges[0])
            && machine.heap.is_of_host(&ranges[1])
        {
            self.check_source(machine, from, &ranges[0], span);
        }
        let (from, to) = (ranges[0].clone(), ranges[1].clone());
        // A byte that was uninitialised before the copy remains so after it.
        let states: Vec<u8> =
            machine.heap.space.states[from.clone()].iter().map(|state| state & WRITTEN).collect();
        machine.heap.space.bytes.copy_within(from, to.start);
        for (state, written) in machine.heap.space.states[to].iter_mut().zip(states) {
            *state = *state & !WRITTEN | written;
        }
        Ok(0)
    }

    /// Reports the first byte that the host copies although nothing was written there.
    fn check_source(&self, machine: &mut Machine, at: u64, range: &std::ops::Range<usize>, span: Span) {
        let states = &machine.heap.space.states[range.clone()];
        let Some(first) = states.iter().position(|state| state & WRITTEN == 0) else { return };
        let size = crate::run::access::bytes(range.len() as u64);
        let title = format!("Host API memory access error at host access to {at:#x} of size {size}");
        let first = at + first as u64;
        let note = format!("Uninitialized access at {first:#x} on access by cudaMemcpy source");
        self.find("initcheck", machine, span, title, vec![note]);
    }

    pub(super) fn set(&mut self, machine: &mut Machine, operands: &[u64], span: Span) -> Result<u64, Stop> {
        let [at, value, size, ..] = *operands else { return Ok(0) };
        if self.sticky != 0 {
            return Ok(self.error(self.sticky));
        }
        match machine.heap.range(at, size).filter(|range| machine.heap.is_of_device(range)) {
            Some(range) => {
                machine.heap.space.bytes[range.clone()].fill(value as u8);
                machine.heap.space.states[range].iter_mut().for_each(|state| *state |= WRITTEN);
                Ok(0)
            }
            None => {
                let notes = vec![format!(
                    "not all of {} at {at:#x} are memory of the device",
                    crate::run::access::bytes(size)
                )];
                self.misuse(
                    machine,
                    span,
                    "the destination of `cudaMemset` is out of bounds".to_owned(),
                    notes,
                );
                Ok(self.error(1))
            }
        }
    }

    pub(super) fn synchronise(&mut self, stream: Option<u64>, name: &'static str) -> u64 {
        match stream {
            Some(stream) => self.streams.wait_for_stream(stream),
            None => self.streams.wait_for_all(),
        }
        if self.sticky != 0 && self.fatal_call.is_none() {
            self.fatal_call = Some((self.sticky, name));
        }
        let code = self.sticky;
        self.error(code)
    }
}

impl Host<'_> {
    /// Reports a failed CUDA call, unless another finding explains it. A sticky error is reported once.
    fn check_error(&self, machine: &mut Machine, function: u16, code: u64, span: Span) {
        let (call, _, result) = super::functions::NAMES[function as usize];
        let asks = ["cudaGetLastError", "cudaPeekAtLastError"].contains(&call);
        if call.starts_with("cuda") && result == "i" && !asks && ![0, 600].contains(&code) && self.sticky == 0
        {
            self.misuse(machine, span, errors::report(code as u32, call), Vec::new());
        }
    }
}

impl Environment for Host<'_> {
    fn call(
        &mut self,
        machine: &mut Machine,
        function: u16,
        operands: &[u64],
        span: Span,
    ) -> Result<u64, Stop> {
        let before = machine.findings.all.len() as u64 + machine.findings.left_out;
        let result = self.call_function(machine, function, operands, span);
        machine.is_busy = machine.is_busy && self.streams.is_busy();
        if let Ok(code) = result
            && machine.findings.all.len() as u64 + machine.findings.left_out == before
        {
            self.check_error(machine, function, code, span);
        }
        result
    }

    fn launch(
        &mut self,
        machine: &mut Machine,
        kernel: u32,
        operands: &[(Prim, u64)],
        span: Span,
    ) -> Result<(), Stop> {
        let _ = span;
        if self.sticky != 0 {
            self.last_error = self.sticky;
            return Ok(());
        }
        let program = &self.kernels[kernel as usize];
        let word = |i: usize| operands.get(i).map_or(0, |operand| operand.1);
        let shape = Shape {
            grid: [word(0) as u32, word(1) as u32, word(2) as u32],
            block: [word(3) as u32, word(4) as u32, word(5) as u32],
            dynamic_shared: word(6),
        };
        if let Some((code, why)) = Machine::refuses(program, &shape) {
            self.last_error = code;
            let title = format!("the launch has an invalid configuration ({})", errors::of(code).0);
            self.misuse(machine, span, title, vec![why]);
            return Ok(());
        }
        if machine.is_late() {
            let limit = machine.most_time.as_secs();
            let title = format!(
                "Stopped after {limit} seconds: the program loops for ever, or is too long for this emulator"
            );
            return Err(self.fault(machine, span, title, Vec::new()));
        }
        let stream = word(7);
        let parameters = packed(program, &operands[8.min(operands.len())..]);
        self.streams.begin(stream);
        #[cfg(not(target_family = "wasm"))]
        if let Some(mut device) = self.device.take() {
            self.launch_on_device(&mut *device, machine, (kernel, shape, stream), parameters);
            self.device = Some(device);
            return Ok(());
        }
        machine.order.concurrent = self.streams.concurrent(stream);
        self.launches += 1;
        let from = machine.next_interval;
        let result = machine.run(program, kernel, shape, &parameters, None);
        let to = machine.next_interval;
        self.streams.launched(stream, from, to);
        machine.is_busy |= self.has_managed;
        if let Err(stop) = result {
            self.sticky = stop.code();
        }
        Ok(())
    }
}

/// Packs the parameters into bytes, from their parts in order.
pub fn packed(program: &Program, parts: &[(Prim, u64)]) -> Vec<u8> {
    let mut bytes = vec![0u8; program.parameter_bytes as usize];
    for ((ty, bits), offset) in parts.iter().zip(&program.parameter_parts) {
        let size = size_of(*ty) as usize;
        let at = *offset as usize;
        if let Some(place) = bytes.get_mut(at..at + size) {
            place.copy_from_slice(&bits.to_le_bytes()[..size]);
        }
    }
    bytes
}
