//! Interpreters of kernels. Simulated devices have no compiler, so the program provides one.

use std::sync::Arc;

use crate::base::compiled::{CompiledLaunch, KernelSource};
use crate::contract::driver::DriverResult;

pub trait KernelInterpreter: Send + Sync {
    /// Compiles a kernel, or returns the compiler's log.
    fn compile(&self, source: &KernelSource<'_>) -> Result<Arc<dyn InterpretedKernel>, String>;
}

pub trait InterpretedKernel: Send + Sync {
    /// Returns the reason why no device would accept the launch, if there is one.
    fn refuses(&self, launch: &CompiledLaunch) -> Option<String>;

    /// Runs the kernel. `memory` contains all tensors of the launch, without overlap. Any other address is illegal.
    fn run(&self, launch: &CompiledLaunch, memory: &mut [Region]) -> DriverResult<RunCost>;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCost {
    pub nanoseconds: u64,
    /// Bytes read and written in device memory.
    pub bytes: u64,
}

pub struct Region {
    pub address: u64,
    pub bytes: Vec<u8>,
}
