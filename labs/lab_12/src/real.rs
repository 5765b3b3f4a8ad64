//! A program on a real GPU: its host code is interpreted, its device code compiled by NVRTC and run on the card.

use std::collections::HashMap;
use std::io::Write;

use cuda_emulator::host::device::{Answer, Card, Device};
use cuda_emulator::ir;
use cuda_emulator::run::launch::Shape;
use cuda_emulator::{Checks, Program, Run, report};
use todevice_gpu::base::compiled::{CompiledLaunch, KernelId, KernelSource, Passed};
use todevice_gpu::contract::driver::{
    DevicePtr, Driver, DriverError, DriverResult, EventId, HostSource, HostTarget, StreamId,
};
use todevice_gpu::contract::libraries::Libraries;
use todevice_gpu::host::time::Clock;
use todevice_gpu::nvidia::Nvidia;

use crate::Said;
use crate::device_half::for_nvrtc;

/// The device that programs run on.
const DEVICE: usize = 0;

/// The first GPU of this computer.
pub struct Gpu(Nvidia);

impl Gpu {
    pub fn open() -> Result<Gpu, String> {
        Nvidia::open(Clock::real()).map(Gpu).map_err(|reason| reason.to_string())
    }

    pub fn name(&self) -> String {
        self.0.properties(DEVICE).name
    }

    /// Compiles a program's kernels for the GPU and runs the program. `print` gets the output of its host code, except
    /// for the end, which is in the result.
    pub fn run(&self, program: &Program, text: &str, print: &mut dyn FnMut(&str)) -> Result<Run, String> {
        if let Some(reason) = unsupported(program) {
            return Err(reason);
        }
        let card = OnCard::new(&self.0, program, &for_nvrtc(text), print).map_err(|error| {
            let detail = error.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            format!("{}{detail}", error.message)
        })?;
        program.run_on_device(Box::new(card)).ok_or_else(|| "the program has no `main`".to_owned())
    }
}

/// Compiles and runs a program on the first GPU of this computer.
pub fn run(name: &str, text: &str, includes: &dyn Fn(&str) -> Option<String>) -> Said {
    let refused = |errors: String| Said { output: String::new(), errors, code: 2 };
    let refused_here = |reason: String| refused(format!("error: --gpu real: {reason}\n"));
    let program = match Program::checked(name, text, includes) {
        Ok(program) => program,
        Err(rejected) => return refused(rejected.text()),
    };
    if program.main.is_none() {
        return refused(crate::without_main(name));
    }
    if let Some(reason) = unsupported(&program) {
        return refused_here(reason);
    }
    let gpu = match Gpu::open() {
        Ok(gpu) => gpu,
        Err(reason) => {
            return refused_here(format!("{reason} (without the flag, the program is emulated)"));
        }
    };
    let run = match gpu.run(&program, text, &mut print_now) {
        Ok(run) => run,
        Err(reason) => return refused_here(reason),
    };
    let findings = match run.exit_code() {
        0 => String::new(),
        _ => report::text(&program.files, &run, Checks::MEMORY).replace("(emulated)", "(host code only)"),
    };
    let gpu = gpu.name();
    let note = format!("on {gpu}, where nothing checks the kernels: without --gpu real the emulator does\n");
    Said {
        output: format!("{}{findings}{note}", run.output),
        errors: String::new(),
        code: run.exit_code() as u8,
    }
}

/// Prints text at once. A closed pipe is found when the rest is printed.
fn print_now(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// What of the program a real GPU cannot run here, if anything.
fn unsupported(program: &Program) -> Option<String> {
    if program.files.0.iter().skip(1).any(|file| file.name.ends_with(".cuh") || file.name.ends_with(".cu")) {
        return Some("a program that includes files of its own is only emulated".to_owned());
    }
    if let Some(global) =
        program.globals.iter().find(|global| global.on_device && !global.name.starts_with('<'))
    {
        return Some(format!(
            "a program with variables of the device, such as `{}`, is only emulated",
            global.name
        ));
    }
    let is_large = |kernel: &&ir::Program| kernel.parameters.iter().any(|parameter| parameter.size > 8);
    let kernel = program.kernels.iter().find(is_large)?;
    Some(format!("a kernel that takes a struct, as {} does, is only emulated", kernel.name))
}

/// The first GPU, for a program.
struct OnCard<'a> {
    driver: &'a Nvidia,
    kernels: HashMap<String, KernelId>,
    streams: HashMap<u64, StreamId>,
    events: HashMap<u64, EventId>,
    print: &'a mut dyn FnMut(&str),
}

impl<'a> OnCard<'a> {
    fn new(
        driver: &'a Nvidia,
        program: &Program,
        text: &str,
        print: &'a mut dyn FnMut(&str),
    ) -> DriverResult<OnCard<'a>> {
        let mut kernels = HashMap::new();
        for kernel in &program.kernels {
            let name = kernel.name.split('(').next().unwrap_or_default();
            let parameters: Vec<usize> =
                kernel.parameters.iter().map(|parameter| parameter.size as usize).collect();
            let source = KernelSource { text, name, parameters: &parameters };
            kernels.insert(kernel.name.clone(), driver.compile(DEVICE, &source, None)?);
        }
        let streams = HashMap::from([(0, StreamId::default_of(DEVICE))]);
        Ok(OnCard { driver, kernels, streams, events: HashMap::new(), print })
    }

    fn stream(&self, handle: u64) -> Answer<StreamId> {
        self.streams.get(&handle).copied().ok_or(INVALID_HANDLE)
    }

    fn event(&self, handle: u64) -> Answer<EventId> {
        self.events.get(&handle).copied().ok_or(INVALID_HANDLE)
    }
}

const INVALID_VALUE: u32 = 1;
const INVALID_CONFIGURATION: u32 = 9;
const INVALID_HANDLE: u32 = 400;

fn code(error: DriverError) -> u32 {
    error.code
}

impl Device for OnCard<'_> {
    fn card(&self) -> Card {
        let of = self.driver.properties(DEVICE);
        Card {
            name: of.name,
            memory: of.total_memory,
            major: of.major,
            minor: of.minor,
            multiprocessors: of.multi_processor_count,
            threads_of_multiprocessor: of.max_threads_per_multi_processor,
        }
    }

    fn memory(&self) -> Answer<(u64, u64)> {
        self.driver.memory_info(DEVICE).map(|info| (info.free, info.total)).map_err(code)
    }

    fn malloc(&mut self, bytes: u64) -> Answer<u64> {
        self.driver.malloc(DEVICE, bytes as usize).map(|pointer| pointer.0).map_err(code)
    }

    fn free(&mut self, at: u64) -> Answer<()> {
        self.driver.free(DEVICE, DevicePtr(at)).map_err(code)
    }

    fn write(&mut self, stream: u64, at: u64, bytes: &[u8]) -> Answer<()> {
        let from = HostSource::Pageable(bytes);
        let copied = self.driver.copy_host_to_device(self.stream(stream)?, DevicePtr(at), from, bytes.len());
        copied.map(drop).map_err(code)
    }

    fn read(&mut self, stream: u64, at: u64, bytes: &mut [u8]) -> Answer<()> {
        let length = bytes.len();
        let to = HostTarget::Pageable(bytes);
        let copied = self.driver.copy_device_to_host(self.stream(stream)?, to, DevicePtr(at), length);
        copied.map(drop).map_err(code)
    }

    fn copy(&mut self, stream: u64, to: u64, from: u64, bytes: u64) -> Answer<()> {
        let [to, from] = [to, from].map(|at| (DEVICE, DevicePtr(at)));
        self.driver.copy_peer(self.stream(stream)?, to, from, bytes as usize).map(drop).map_err(code)
    }

    fn set(&mut self, stream: u64, at: u64, value: u8, bytes: u64) -> Answer<()> {
        self.driver.memset(self.stream(stream)?, DevicePtr(at), value, bytes as usize).map(drop).map_err(code)
    }

    fn launch(&mut self, stream: u64, kernel: &ir::Program, shape: Shape, parameters: &[u8]) -> Answer<()> {
        let id = *self.kernels.get(&kernel.name).ok_or(INVALID_VALUE)?;
        let number = |parameter: &ir::KernelParameter| {
            let (start, size) = (parameter.offset as usize, parameter.size as usize);
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&parameters[start..start + size]);
            Passed::Number(bytes)
        };
        let launch = CompiledLaunch {
            kernel: id,
            name: "a kernel of the program",
            grid: shape.grid,
            block: shape.block,
            shared_mem: u32::try_from(shape.dynamic_shared).map_err(|_| INVALID_VALUE)?,
            arguments: kernel.parameters.iter().map(number).collect(),
        };
        let launched = self.driver.launch_compiled(self.stream(stream)?, launch).map(drop).map_err(code);
        // CUDA's runtime has a number of its own for what its driver calls an invalid value.
        launched.map_err(|code| if code == INVALID_VALUE { INVALID_CONFIGURATION } else { code })
    }

    fn synchronize(&mut self, stream: Option<u64>) -> Answer<()> {
        match stream {
            Some(stream) => self.driver.stream_synchronize(self.stream(stream)?).map_err(code),
            None => self.driver.synchronize(DEVICE).map_err(code),
        }
    }

    fn create_stream(&mut self, is_blocking: bool) -> Answer<u64> {
        let stream = self.driver.stream_create(DEVICE, is_blocking).map_err(code)?;
        let handle = self.streams.len() as u64;
        self.streams.insert(handle, stream);
        Ok(handle)
    }

    fn stream_has_run(&mut self, stream: u64) -> Answer<bool> {
        self.driver.stream_query(self.stream(stream)?).map_err(code)
    }

    fn create_event(&mut self) -> Answer<u64> {
        let event = self.driver.event_create(DEVICE, true).map_err(code)?;
        let handle = self.events.len() as u64 + 1;
        self.events.insert(handle, event);
        Ok(handle)
    }

    fn record(&mut self, event: u64, stream: u64) -> Answer<()> {
        self.driver.event_record(self.event(event)?, self.stream(stream)?).map_err(code)
    }

    fn wait(&mut self, stream: u64, event: u64) -> Answer<()> {
        self.driver.stream_wait_event(self.stream(stream)?, self.event(event)?).map_err(code)
    }

    fn synchronize_event(&mut self, event: u64) -> Answer<()> {
        self.driver.event_synchronize(self.event(event)?).map_err(code)
    }

    fn event_has_run(&mut self, event: u64) -> Answer<bool> {
        self.driver.event_query(self.event(event)?).map_err(code)
    }

    fn elapsed(&mut self, start: u64, end: u64) -> Answer<f32> {
        self.driver.event_elapsed(self.event(start)?, self.event(end)?).map_err(code)
    }

    fn print(&mut self, text: &str) {
        (self.print)(text);
    }
}
