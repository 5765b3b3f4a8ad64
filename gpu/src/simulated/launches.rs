//! The driver calls that launch kernels and similar work.

use super::compiled::{Compiled, accesses};
use super::convolution::Convolution;
use super::task::Task;
use super::{Simulated, check_device, cost, errors, execute};
use crate::base::collective::Collective;
use crate::base::compiled::{CompiledLaunch, KernelId, KernelSource};
use crate::base::conv::{Conv, ConvAlgorithm};
use crate::base::gemm::Gemm;
use crate::base::kernel::{Argument, Launch};
use crate::contract::driver::{DevicePtr, DriverError, DriverResult, Engine, OpId, StreamId};
use crate::contract::interpreter::KernelInterpreter;

impl Simulated {
    pub(super) fn queue_kernel(&self, stream: StreamId, launch: Launch) -> DriverResult<OpId> {
        let device = stream.device;
        let (mut state, stream) = self.enter_to_compute(stream)?;
        if !execute::arguments_fit(&launch) {
            return Err(errors::invalid_value());
        }
        for argument in &launch.arguments {
            if let Argument::Tensor { pointer, .. } = argument {
                state.devices[device].memory.back(pointer.0)?;
            }
        }
        let profile = state.devices[device].profile;
        let duration = cost::kernel(profile, &launch.work, launch.grid, launch.block);
        let engine = state.engine(device, Engine::Compute, 0);
        state.submit(stream, Some(engine), duration, Task::Kernel(launch))
    }

    /// Compiles a kernel of the program with the interpreter.
    pub(super) fn compile_kernel(
        &self,
        source: &KernelSource<'_>,
        interpreter: Option<&dyn KernelInterpreter>,
    ) -> DriverResult<KernelId> {
        let Some(interpreter) = interpreter else {
            let message =
                "a simulated GPU has no compiler; lab-12 includes one, and --gpu real uses NVIDIA's";
            return Err(DriverError::of_compiler(message, None));
        };
        let refused = |log| DriverError::of_compiler("Kernel compilation failed", Some(log));
        let kernel = interpreter.compile(source).map_err(refused)?;
        let kernels = &mut self.state().compiled;
        kernels.push(kernel);
        Ok(KernelId(kernels.len() as u64 - 1))
    }

    pub(super) fn queue_compiled(&self, stream: StreamId, launch: CompiledLaunch) -> DriverResult<OpId> {
        let device = stream.device;
        let (mut state, stream) = self.enter_to_compute(stream)?;
        let kernel = state.compiled.get(launch.kernel.0 as usize).cloned();
        let kernel = kernel.ok_or_else(errors::invalid_handle)?;
        if let Some(reason) = kernel.refuses(&launch) {
            return Err(DriverError { detail: Some(reason), ..errors::invalid_value() });
        }
        for access in accesses(&launch) {
            state.devices[device].memory.back(access.address)?;
        }
        let engine = state.engine(device, Engine::Compute, 0);
        // The duration is known when it begins.
        state.submit(stream, Some(engine), 0, Task::Compiled(Box::new(Compiled::new(launch, kernel))))
    }

    pub(super) fn queue_gemm(&self, stream: StreamId, mut gemm: Gemm) -> DriverResult<OpId> {
        let device = stream.device;
        let (mut state, stream) = self.enter_to_compute(stream)?;
        for pointer in [gemm.a, gemm.b, gemm.c] {
            state.devices[device].memory.back(pointer.0)?;
        }
        gemm.tf32 &= cost::has_tf32(state.devices[device].profile);
        let duration = cost::gemm(state.devices[device].profile, &gemm);
        let engine = state.engine(device, Engine::Compute, 0);
        state.submit(stream, Some(engine), duration, Task::Gemm(gemm))
    }

    pub(super) fn queue_convolution(
        &self,
        stream: StreamId,
        conv: &Conv,
        algorithm: &ConvAlgorithm,
    ) -> DriverResult<OpId> {
        let device = stream.device;
        let (mut state, stream) = self.enter_to_compute(stream)?;
        let profile = state.devices[device].profile;
        let task = Convolution::new(profile, conv, algorithm)?;
        for access in task.accesses() {
            state.devices[device].memory.back(access.address)?;
        }
        let duration = cost::convolution(profile, &task);
        let engine = state.engine(device, Engine::Compute, 0);
        state.submit(stream, Some(engine), duration, Task::Convolution(task))
    }

    pub(super) fn queue_memset(
        &self,
        stream: StreamId,
        to: DevicePtr,
        value: u8,
        bytes: usize,
    ) -> DriverResult<OpId> {
        let device = stream.device;
        let (mut state, stream) = self.enter_stream(stream, &self.host.memset)?;
        check_device(&mut state, device, to, bytes)?;
        let duration = cost::memset(state.devices[device].profile, bytes);
        let engine = state.engine(device, Engine::Compute, 0);
        state.submit(stream, Some(engine), duration, Task::Memset { to, value, bytes })
    }

    /// Queues a collective. It stays on the link until all processes have arrived, and during the transfer.
    pub(super) fn queue_collective(&self, stream: StreamId, part: Collective) -> DriverResult<OpId> {
        let device = stream.device;
        let (mut state, stream) = self.enter_to_compute(stream)?;
        if state.together.others.is_none() {
            return Err(errors::invalid_value());
        }
        check_device(&mut state, device, part.input, part.reads())?;
        check_device(&mut state, device, part.output, part.writes())?;
        let profile = state.devices[device].profile;
        let (kind, bytes) = (part.fingerprint.kind, part.fingerprint.bytes());
        let duration =
            cost::collective(profile, state.setup.collectives_use_p2p(profile), kind, bytes, part.of).total();
        let engine = state.engine(device, Engine::Peer, device);
        state.submit(stream, Some(engine), duration, Task::Collective(Box::new(part)))
    }
}
