//! Kernels compiled by the program.

use std::sync::Arc;

use super::{Cuda, Result};
use crate::base::compiled::{CompiledLaunch, KernelId, KernelSource};
use crate::base::lock::lock;
use crate::contract::driver::StreamId;
use crate::contract::events::EventKind;
use crate::contract::interpreter::KernelInterpreter;

impl Cuda {
    pub fn set_interpreter(&self, interpreter: Arc<dyn KernelInterpreter>) {
        *lock(&self.interpreter) = Some(interpreter);
    }

    pub fn compile(&self, device: usize, source: &KernelSource<'_>) -> Result<KernelId> {
        self.check_thread()?;
        let interpreter = lock(&self.interpreter).clone();
        self.driver.compile(device, source, interpreter.as_deref()).map_err(|error| self.error(error))
    }

    pub fn launch_compiled(&self, stream: StreamId, launch: CompiledLaunch) -> Result<()> {
        self.check_thread()?;
        let kind = EventKind::CompiledLaunch { name: launch.name };
        self.submit(stream, kind, |driver| driver.launch_compiled(stream, launch).map(Some))
    }
}
