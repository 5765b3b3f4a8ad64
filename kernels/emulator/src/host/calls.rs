//! The host's state, and its calls and launches.

use super::device::Device;
use super::random::Random;
use super::streams::Streams;
use super::{errors, functions};
use crate::ir::{Global, Prim, Program, size_of, space};
use crate::run::amounts;
use crate::run::checks::{Finding, Severity, Site};
use crate::run::interpreter::{Environment, Stop};
use crate::run::launch::{Machine, Shape, fatal};
use crate::run::memory::{Owner, WRITTEN};
use crate::source::Span;

/// A call of a C or CUDA function.
#[derive(Clone, Copy)]
pub(super) struct Call<'o> {
    pub name: &'static str,
    pub operands: &'o [u64],
    pub span: Span,
}

impl Call<'_> {
    /// An argument, or 0 if the call has fewer.
    pub fn argument(&self, number: usize) -> u64 {
        self.operands.get(number).copied().unwrap_or(0)
    }
}

/// The host's state: errors, streams, random numbers.
pub struct Host<'a> {
    pub kernels: &'a [Program],
    pub(super) globals: &'a [Global],
    pub(super) device: Box<dyn Device + 'a>,
    pub streams: Streams,
    pub last_error: u32,
    /// A sticky error: the context is no longer usable.
    pub sticky: u32,
    pub(super) random: Random,
    texts: std::collections::HashMap<String, u64>,
    pub launches: u64,
    pub(super) has_managed: bool,
    pub fatal_call: Option<(u32, &'static str)>,
    /// Whether `main` calls functions whose results depend on the time of kernels.
    pub(super) is_timed: bool,
    /// Whether it has read the time between events.
    pub(super) reads_time: bool,
    pub(super) counterparts: super::real::Counterparts,
}

/// The number of blocks whose counters the time of a launch is modelled from, if nothing else counts.
const TIMED_BLOCKS: u64 = 64;

/// Errors after which a context is lost.
const STICKY: [u32; 6] = [700, 702, 710, 715, 716, 719];

impl<'a> Host<'a> {
    pub fn new(kernels: &'a [Program], globals: &'a [Global], device: Box<dyn Device + 'a>) -> Host<'a> {
        Host {
            kernels,
            globals,
            device,
            streams: Streams::default(),
            last_error: 0,
            sticky: 0,
            random: Random::new(1),
            texts: std::collections::HashMap::new(),
            launches: 0,
            has_managed: false,
            fatal_call: None,
            is_timed: false,
            reads_time: false,
            counterparts: super::real::Counterparts::default(),
        }
    }

    /// Whether memory and kernels are on a real device, which no page has.
    pub(super) fn is_real(&self) -> bool {
        !cfg!(target_family = "wasm") && self.device.is_real()
    }

    pub(super) fn error(&mut self, code: u32) -> u64 {
        if code != 0 && code != 600 {
            self.last_error = code;
        }
        u64::from(code)
    }

    /// Notes an error of the device. Every later call returns a sticky error.
    pub(super) fn failed(&mut self, code: u32, call: &'static str) -> u64 {
        if STICKY.contains(&code) && self.fatal_call.is_none() {
            (self.sticky, self.fatal_call) = (code, Some((code, call)));
        }
        self.error(code)
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

    pub(super) fn find(
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
        call: Call,
        at: u64,
        size: u64,
    ) -> Result<std::ops::Range<usize>, Stop> {
        match machine.heap.range(at, size).filter(|range| machine.heap.is_of_host(range)) {
            Some(range) => Ok(range),
            None => {
                let note = match machine.heap.range(at, size.max(1)) {
                    Some(_) => format!("{at:#x} is memory of the device: use `cudaMemcpy` and `cudaMemset`"),
                    None => format!("not all of {} at {at:#x} are allocated", amounts::bytes(size)),
                };
                let title = format!("`{}` goes beyond the host's memory", call.name);
                Err(self.fault(machine, call.span, title, vec![note]))
            }
        }
    }

    pub(super) fn store(&self, machine: &mut Machine, call: Call, at: u64, bytes: &[u8]) -> Result<(), Stop> {
        let range = self.host_range(machine, call, at, bytes.len() as u64)?;
        machine.heap.space.bytes[range.clone()].copy_from_slice(bytes);
        for state in &mut machine.heap.space.states[range] {
            *state |= WRITTEN;
        }
        Ok(())
    }
}

impl Host<'_> {
    /// Reports a failed CUDA call, unless another finding explains it. A sticky error is reported once.
    fn check_error(&self, machine: &mut Machine, function: u16, code: u64, span: Span) {
        let (call, _, result) = functions::NAMES[function as usize];
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
        let name = functions::NAMES[function as usize].0;
        let result = self.c_library(machine, Call { name, operands, span });
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
                "Stopped after {limit} seconds: the program loops forever, or takes too long for this emulator"
            );
            return Err(self.fault(machine, span, title, Vec::new()));
        }
        let stream = word(7);
        let arguments = &operands[8.min(operands.len())..];
        self.streams.begin(stream);
        self.launches += 1;
        machine.is_busy |= self.has_managed;
        if self.is_real() {
            let launched = self.launch_on_device(machine, (kernel, shape, stream), arguments);
            self.streams.launched(stream, 0, 0);
            if let Err(code) = launched {
                self.failed(code, "cudaLaunchKernel");
            }
            return Ok(());
        }
        self.launch_here(machine, (kernel, shape, stream), &packed(program, arguments));
        Ok(())
    }
}

impl Host<'_> {
    /// Runs a kernel in the emulator, and then queues it on the device, which models its time.
    fn launch_here(
        &mut self,
        machine: &mut Machine,
        (kernel, shape, stream): (u32, Shape, u64),
        parameters: &[u8],
    ) {
        let program = &self.kernels[kernel as usize];
        machine.order.concurrent = self.streams.concurrent(stream);
        let from = machine.next_interval;
        let before = machine.counters.take();
        machine.counters = (before.is_some() || self.is_timed).then(Vec::new);
        machine.most_counted = before.is_none().then_some(TIMED_BLOCKS);
        let result = machine.run(program, kernel, shape, parameters, None);
        let counted = std::mem::replace(&mut machine.counters, before).and_then(|mut all| all.pop());
        self.streams.launched(stream, from, machine.next_interval);
        if let Err(stop) = result {
            self.sticky = stop.code();
        } else if let Err(code) = self.device.launch(stream, program, shape, parameters, counted.as_ref()) {
            self.failed(code, "cudaLaunchKernel");
        }
        if let (Some(all), Some(counted)) = (&mut machine.counters, counted) {
            match all.iter_mut().find(|known| known.kernel == kernel) {
                Some(known) => known.add(&counted),
                None => all.push(counted),
            }
        }
    }
}

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
