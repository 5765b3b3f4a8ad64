//! The emulator as the compiler of simulated GPUs: runs the reader's kernels on their tensors.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use cuda_emulator::host::errors;
use cuda_emulator::ir::{self, space};
use cuda_emulator::run::launch::{MOST_TIME, Machine, Shape};
use cuda_emulator::run::memory::Owner;
use cuda_emulator::{Checks, Program, Span};
use todevice::profiles::{PROFILES, Profile};
use todevice::{Error, GpuSpec, cuda};
use todevice_gpu::base::compiled::{CompiledLaunch, KernelSource, Passed};
use todevice_gpu::contract::driver::{DriverError, DriverResult};
use todevice_gpu::contract::interpreter::{InterpretedKernel, KernelInterpreter, Region, RunCost};

use crate::model;

pub struct Emulator {
    /// For messages.
    pub file: String,
    pub folder: PathBuf,
    /// The card that times are modelled on.
    pub profile: &'static Profile,
}

/// Enters a machine whose simulated GPUs compile and run kernels with the emulator. `file` and `folder` are for
/// messages and includes.
pub fn with<T>(
    gpu: &GpuSpec,
    file: &str,
    folder: PathBuf,
    body: impl FnOnce(&todevice::Machine) -> todevice::Result<T>,
) -> todevice::Result<T> {
    let machine = gpu.machine()?;
    machine.on_warning(|warning| eprintln!("warning: {warning}"));
    let profile = match gpu {
        GpuSpec::Simulated(gpus) => gpus.card(),
        _ => PROFILES[0],
    };
    machine.enter(|| {
        if !cuda::is_available() {
            return Err(Error::custom("a kernel needs a GPU: --gpu sim:t4 simulates one"));
        }
        cuda::set_kernel_interpreter(Arc::new(Emulator { file: file.to_owned(), folder, profile }))?;
        body(&machine)
    })
}

impl KernelInterpreter for Emulator {
    fn compile(&self, source: &KernelSource<'_>) -> Result<Arc<dyn InterpretedKernel>, String> {
        let includes = |header: &str| std::fs::read_to_string(self.folder.join(header)).ok();
        let program = Program::checked(&self.file, source.text, &includes).map_err(|errors| errors.text())?;
        let (number, kernel) =
            program.kernel(source.name).ok_or(format!("{}: no kernel `{}`", self.file, source.name))?;
        let sizes: Vec<usize> = kernel.parameters.iter().map(|parameter| parameter.size as usize).collect();
        if sizes != source.parameters {
            let (name, read) = (&kernel.name, source.parameters);
            return Err(format!("the parameters of {name} have {sizes:?} bytes, but {read:?} in the source"));
        }
        Ok(Arc::new(Emulated { program, number, profile: self.profile, globals: Mutex::default() }))
    }
}

struct Emulated {
    program: Program,
    number: u32,
    profile: &'static Profile,
    /// The device's variables after the last launch.
    globals: Mutex<Option<Vec<u8>>>,
}

impl Emulated {
    fn kernel(&self) -> &ir::Program {
        &self.program.kernels[self.number as usize]
    }

    /// Packs the kernel's parameters. `place` maps a device address to its place in the emulator.
    fn parameters(&self, launch: &CompiledLaunch, place: impl Fn(u64) -> u64) -> Vec<u8> {
        let mut bytes = vec![0; self.kernel().parameter_bytes as usize];
        for (parameter, argument) in self.kernel().parameters.iter().zip(&launch.arguments) {
            let value = match argument {
                Passed::Memory { pointer, .. } => place(pointer.0).to_le_bytes(),
                Passed::Number(bytes) => *bytes,
            };
            let (start, size) = (parameter.offset as usize, parameter.size as usize);
            bytes[start..start + size].copy_from_slice(&value[..size]);
        }
        bytes
    }

    fn error(&self, machine: &Machine, code: u32) -> DriverError {
        let (name, message) = errors::of(code);
        let finding = machine.findings.all.iter().find(|finding| finding.is_fatal);
        let detail = finding.map(|finding| {
            let mut text = finding.title.clone();
            for site in &finding.sites {
                if let Some(span) = site.span {
                    text += &format!(" at {}", self.program.files.place(span));
                }
                if let Some(by) = site.thread {
                    let list = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
                    text += &format!(" by thread {} in block {}", list(by.thread), list(by.block));
                }
            }
            text
        });
        DriverError { code, name, message, detail }
    }
}

impl InterpretedKernel for Emulated {
    fn refuses(&self, launch: &CompiledLaunch) -> Option<String> {
        Some(Machine::refuses(self.kernel(), &shape(launch))?.1)
    }

    fn run(&self, launch: &CompiledLaunch, memory: &mut [Region]) -> DriverResult<RunCost> {
        let mut machine = self.program.machine(Checks::MEMORY);
        machine.counters = Some(Vec::new());
        (machine.began, machine.most_time) = (Some(Instant::now()), MOST_TIME);
        let mut globals = self.globals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(globals) = &*globals {
            machine.heap.space.bytes[..globals.len()].copy_from_slice(globals);
        }
        let end_of_globals = machine.heap.used as usize;
        let mut places = Vec::new();
        for region in memory.iter() {
            places.push(placed(&mut machine, region).ok_or_else(|| out_of_memory(region))?);
        }
        let place = |address: u64| {
            let inside = |region: &Region| address.wrapping_sub(region.address) < region.bytes.len() as u64;
            // An address outside all tensors belongs to an empty tensor.
            memory.iter().position(inside).map_or(0, |at| places[at] + (address - memory[at].address))
        };
        let parameters = self.parameters(launch, place);
        let ran = machine.run(self.kernel(), self.number, shape(launch), &parameters, None);
        print!("{}", machine.output);
        ran.map_err(|stop| self.error(&machine, stop.code()))?;
        for (region, place) in memory.iter_mut().zip(places) {
            let (start, size) = ((place - space::HEAP) as usize, region.bytes.len());
            region.bytes.copy_from_slice(&machine.heap.space.bytes[start..start + size]);
        }
        *globals = Some(machine.heap.space.bytes[..end_of_globals].to_vec());
        Ok(self.cost(&machine))
    }
}

/// Copies a tensor's memory to the emulator, aligned as on the device. Returns its place there.
fn placed(machine: &mut Machine, region: &Region) -> Option<u64> {
    const ALIGNMENT: u64 = 256;
    let (size, before) = (region.bytes.len() as u64, region.address % ALIGNMENT);
    let at = machine.heap.allocate(before + size, Owner::Device, "a tensor", Span::default())? + before;
    let start = (at - space::HEAP) as usize;
    let space = &mut machine.heap.space;
    space.bytes[start..start + region.bytes.len()].copy_from_slice(&region.bytes);
    space.mark(start as u64 - before, before, 0);
    Some(at)
}

fn out_of_memory(region: &Region) -> DriverError {
    let (name, message) = errors::of(2);
    let detail = format!("the emulator has no room for a tensor of {} bytes", region.bytes.len());
    DriverError { code: 2, name, message, detail: Some(detail) }
}

impl Emulated {
    fn cost(&self, machine: &Machine) -> RunCost {
        let Some(counters) = machine.counters.as_ref().and_then(|all| all.first()) else {
            return RunCost::default();
        };
        let modelled = model::time(self.profile, counters, self.kernel(), None);
        modelled.map_or_else(RunCost::default, |modelled| RunCost {
            nanoseconds: (modelled.microseconds * 1e3) as u64,
            bytes: modelled.bytes as u64,
        })
    }
}

fn shape(launch: &CompiledLaunch) -> Shape {
    Shape { grid: launch.grid, block: launch.block, dynamic_shared: launch.shared_mem.into() }
}
