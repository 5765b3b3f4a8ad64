//! A program on a real GPU: the emulator interprets host code, NVRTC compiles device code, and the card runs it.

use std::collections::HashMap;
use std::io::Write;

use cuda_emulator::host::device::Answer;
use cuda_emulator::host::errors::{INVALID_CONFIGURATION, INVALID_SYMBOL, INVALID_VALUE};
use cuda_emulator::ir;
use cuda_emulator::run::launch::{MOST_TIME, Shape};
use cuda_emulator::{Checks, Program, Run, report};
use todevice_gpu::base::compiled::KernelId;
use todevice_gpu::contract::driver::{Driver, DriverResult, HostTarget, StreamId};
use todevice_gpu::host::time::Clock;
use todevice_gpu::nvidia::Nvidia;

use crate::Response;
use crate::device_half::for_nvrtc;
use crate::gpu::{DEVICE, Kind, Launch, OnDriver, code, launch_of};

pub struct Gpu(Nvidia);

impl Gpu {
    pub fn open() -> Result<Gpu, String> {
        Nvidia::open(Clock::real()).map(Gpu).map_err(|reason| reason.to_string())
    }

    pub fn name(&self) -> String {
        self.0.properties(DEVICE).name
    }

    /// Compiles a program's kernels for the GPU and runs the program. `print` gets the host code's output, except the
    /// end, which is in the result.
    pub fn run(&self, program: &Program, text: &str, print: &mut dyn FnMut(&str)) -> Result<Run, String> {
        if let Some(reason) = unsupported(program) {
            return Err(reason);
        }
        let card = OnCard::new(&self.0, program, &for_nvrtc(text), print).map_err(|error| {
            let detail = error.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            format!("{}{detail}", error.message)
        })?;
        let device = Box::new(OnDriver::new(card));
        program
            .run_with(program.machine(Checks::MEMORY), MOST_TIME, device)
            .ok_or_else(|| "the program has no `main`".to_owned())
    }
}

pub fn run(name: &str, text: &str, includes: &dyn Fn(&str) -> Option<String>) -> Response {
    let refused = |errors: String| Response { output: String::new(), errors, code: 2 };
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
    Response {
        output: format!("{}{findings}{note}", run.output),
        errors: String::new(),
        code: run.exit_code() as u8,
    }
}

/// Prints text at once. Later output detects a closed pipe.
fn print_now(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Returns why a real GPU cannot run the program here.
fn unsupported(program: &Program) -> Option<String> {
    if program.files.0.iter().skip(1).any(|file| file.name.ends_with(".cuh") || file.name.ends_with(".cu")) {
        return Some("a program that includes files of its own is only emulated".to_owned());
    }
    None
}

struct OnCard<'a> {
    driver: &'a Nvidia,
    kernels: HashMap<String, KernelId>,
    /// The device's addresses of its variables, by their addresses in the emulator.
    variables: HashMap<u64, u64>,
    print: &'a mut dyn FnMut(&str),
}

/// The kernel that writes the addresses of the device's variables.
const ADDRESSES: &str = "__lab_12_addresses";

impl<'a> OnCard<'a> {
    /// Compiles the program's kernels, together with one that finds its variables.
    fn new(
        driver: &'a Nvidia,
        program: &Program,
        text: &str,
        print: &'a mut dyn FnMut(&str),
    ) -> DriverResult<OnCard<'a>> {
        let variables: Vec<&ir::Global> =
            program.globals.iter().filter(|global| global.symbol.is_some()).collect();
        let text = with_addresses(text, &variables);
        let sizes = |kernel: &ir::Program| kernel.parameters.iter().map(|of| of.size as usize).collect();
        let parameters: Vec<Vec<usize>> = program.kernels.iter().map(sizes).chain([vec![8]]).collect();
        let names = program.kernels.iter().map(|kernel| kernel.name.split('(').next().unwrap_or_default());
        let sources: Vec<(&str, &[usize])> =
            names.chain([ADDRESSES]).zip(parameters.iter().map(Vec::as_slice)).collect();
        let ids = driver.compile_kernels(DEVICE, &text, &sources)?;
        let kernels = program.kernels.iter().map(|kernel| kernel.name.clone()).zip(ids.iter().copied());
        let mut card = OnCard { driver, kernels: kernels.collect(), variables: HashMap::new(), print };
        if let (false, Some(id)) = (variables.is_empty(), ids.last()) {
            card.find_variables(*id, &variables)?;
        }
        Ok(card)
    }

    fn find_variables(&mut self, addresses: KernelId, variables: &[&ir::Global]) -> DriverResult<()> {
        let (driver, stream) = (self.driver, StreamId::default_of(DEVICE));
        let mut found = vec![0; 8 * variables.len()];
        let at = driver.malloc(DEVICE, found.len())?;
        let shape = Shape { grid: [1; 3], block: [1; 3], dynamic_shared: 0 };
        driver.launch_with(stream, &launch_of(addresses, shape), &[&at.0.to_le_bytes()])?;
        let length = found.len();
        driver.copy_device_to_host(stream, HostTarget::Pageable(&mut found), at, length)?;
        driver.free(DEVICE, at)?;
        let found =
            found.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        self.variables = variables.iter().map(|variable| variable.address).zip(found).collect();
        Ok(())
    }
}

/// Adds a kernel that writes the addresses of variables. NVRTC removes a variable that no kernel uses; this one uses all.
fn with_addresses(text: &str, variables: &[&ir::Global]) -> String {
    let address = |(number, variable): (usize, &&ir::Global)| {
        let symbol = variable.symbol.as_deref().unwrap_or_default();
        format!(" at[{number}] = (unsigned long long)&{symbol};")
    };
    let all: String = variables.iter().enumerate().map(address).collect();
    format!("{text}\nextern \"C\" __global__ void {ADDRESSES}(unsigned long long *at) {{{all} }}\n")
}

impl Kind for OnCard<'_> {
    type Driver = Nvidia;
    const IS_REAL: bool = true;

    fn driver(&self) -> &Nvidia {
        self.driver
    }

    fn name(&self) -> String {
        self.driver.properties(DEVICE).name
    }

    fn variable(&mut self, variable: &ir::Global) -> Answer<u64> {
        self.variables.get(&variable.address).copied().ok_or(INVALID_SYMBOL)
    }

    fn launch(&mut self, stream: StreamId, launch: Launch) -> Answer<()> {
        let Launch { kernel, shape, parameters, .. } = launch;
        let id = *self.kernels.get(&kernel.name).ok_or(INVALID_VALUE)?;
        let bytes = |of: &ir::KernelParameter| &parameters[of.offset as usize..][..of.size as usize];
        let arguments: Vec<&[u8]> = kernel.parameters.iter().map(bytes).collect();
        let launched = self.driver.launch_with(stream, &launch_of(id, shape), &arguments);
        // The driver returns `INVALID_VALUE` here, the CUDA runtime a separate code.
        launched.map(drop).map_err(|error| match code(error) {
            INVALID_VALUE => INVALID_CONFIGURATION,
            other => other,
        })
    }

    fn print(&mut self, text: &str) {
        (self.print)(text);
    }
}
