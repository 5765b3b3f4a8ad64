//! The simulated GPU of `todevice-gpu` under host code: it decides how much memory there is, orders streams and events,
//! and gives all copies and kernels their modelled time. The emulator keeps the contents of memory, runs the kernels and
//! checks them.

use std::collections::HashMap;
use std::sync::Arc;

use cuda_emulator::host::device::Answer;
use cuda_emulator::ir;
use cuda_emulator::run::launch::{MOST_TIME, Machine};
use cuda_emulator::{Program, Run};
use todevice_figures::profile::Profile;
use todevice_gpu::base::compiled::{CompiledLaunch, KernelId, KernelSource, Passed};
use todevice_gpu::contract::driver::{Driver, DriverResult, StreamId};
use todevice_gpu::contract::interpreter::{InterpretedKernel, KernelInterpreter, Region, RunCost};
use todevice_gpu::contract::libraries::Libraries;
use todevice_gpu::contract::races::RaceCheck;
use todevice_gpu::host::host_profile::LAPTOP_8_CORES;
use todevice_gpu::simulated::{Setup, Simulated, SimulatedOptions};

use super::{DEVICE, Kind, Launch, OnDriver, code, launch_of};
use crate::model;

/// The number of registers of a thread of a kernel, if known.
pub type Registers<'a> = &'a dyn Fn(&ir::Program) -> Option<u32>;

/// Runs a program on a machine of the emulator, with a simulated GPU under its host code.
pub fn run(program: &Program, machine: Machine, card: &'static Profile, registers: Registers) -> Option<Run> {
    let gpu = OnSimulated::new(card, registers);
    program.run_with(machine, MOST_TIME, Box::new(OnDriver::new(gpu)))
}

struct OnSimulated<'a> {
    driver: Simulated,
    card: &'static Profile,
    kernel: KernelId,
    registers: Registers<'a>,
    /// The device's addresses of the variables that host code has used, by their addresses in the emulator.
    variables: HashMap<u64, u64>,
}

impl<'a> OnSimulated<'a> {
    fn new(card: &'static Profile, registers: Registers<'a>) -> OnSimulated<'a> {
        let driver = Simulated::new(
            SimulatedOptions {
                profile: card,
                host: &LAPTOP_8_CORES,
                count: 1,
                memory: None,
                others: 0,
                seed: None,
                setup: Setup { without_contents: true, ..Setup::default() },
            },
            Default::default(),
        );
        // The emulator checks for races itself: it knows the kernels' accesses as well.
        if let Some(log) = driver.race_log() {
            log.set_check(RaceCheck::Ignore);
        }
        let source = KernelSource { text: "", name: "", parameters: &[] };
        let kernel = driver.compile(DEVICE, &source, Some(&HasRun)).unwrap_or(KernelId(0));
        OnSimulated { driver, card, kernel, registers, variables: HashMap::new() }
    }
}

impl Kind for OnSimulated<'_> {
    type Driver = Simulated;
    const IS_REAL: bool = false;

    fn driver(&self) -> &Simulated {
        &self.driver
    }

    fn name(&self) -> String {
        format!("{} (emulated)", self.card.name)
    }

    /// Allocates the variable at its first use.
    fn variable(&mut self, variable: &ir::Global) -> Answer<u64> {
        if let Some(at) = self.variables.get(&variable.address) {
            return Ok(*at);
        }
        let at = self.driver.malloc(DEVICE, variable.size.max(1) as usize).map_err(code)?.0;
        self.variables.insert(variable.address, at);
        Ok(at)
    }

    fn launch(&mut self, stream: StreamId, launch: Launch) -> Answer<()> {
        let Launch { kernel, shape, counters, .. } = launch;
        let modelled =
            counters.and_then(|counters| model::time(self.card, counters, kernel, (self.registers)(kernel)));
        let cost = modelled.map_or([0; 2], |of| [(of.microseconds * 1e3) as u64, of.bytes as u64]);
        let arguments = cost.map(|number| Passed::Number(number.to_le_bytes()));
        let launch =
            CompiledLaunch { arguments: arguments.into_iter().collect(), ..launch_of(self.kernel, shape) };
        self.driver.launch_compiled(stream, launch).map(drop).map_err(code)
    }
}

/// A kernel that the emulator has run. Its arguments are its modelled time in nanoseconds, and its memory
/// traffic in bytes.
struct HasRun;

impl KernelInterpreter for HasRun {
    fn compile(&self, _source: &KernelSource<'_>) -> Result<Arc<dyn InterpretedKernel>, String> {
        Ok(Arc::new(HasRun))
    }
}

impl InterpretedKernel for HasRun {
    fn refuses(&self, _launch: &CompiledLaunch) -> Option<String> {
        None
    }

    fn run(&self, launch: &CompiledLaunch, _memory: &mut [Region]) -> DriverResult<RunCost> {
        let argument = |number: usize| match launch.arguments.get(number) {
            Some(Passed::Number(bytes)) => u64::from_le_bytes(*bytes),
            _ => 0,
        };
        Ok(RunCost { nanoseconds: argument(0), bytes: argument(1) })
    }
}
