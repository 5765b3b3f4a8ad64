//! Interpreters of kernels: simulated devices have no compiler, so the program hands one over.

use std::sync::Arc;

use crate::base::compiled::{CompiledLaunch, KernelSource};
use crate::contract::driver::DriverResult;

/// Compiles CUDA C++ for simulated devices.
pub trait KernelInterpreter: Send + Sync {
    /// Compiles a kernel, or returns the compiler's log.
    fn compile(&self, source: &KernelSource<'_>) -> Result<Arc<dyn InterpretedKernel>, String>;
}

/// A kernel that an interpreter has compiled.
pub trait InterpretedKernel: Send + Sync {
    /// Returns the reason why no device would launch it so, if there is one.
    fn refuses(&self, launch: &CompiledLaunch) -> Option<String>;

    /// Runs it, and returns its cost. All tensors of the launch lie in `memory`, in regions that do not overlap; any
    /// other address is an illegal one.
    fn run(&self, launch: &CompiledLaunch, memory: &mut [Region]) -> DriverResult<Cost>;
}

/// The modelled cost of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub nanoseconds: u64,
    /// Bytes read from the device's memory and written to it.
    pub bytes: u64,
}

/// A range of a device's memory.
pub struct Region {
    pub address: u64,
    pub bytes: Vec<u8>,
}
