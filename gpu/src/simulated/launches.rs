//! The driver calls that launch kernels and similar work.

use super::convolution::Convolution;
use super::op::Task;
use super::{Simulated, check_device, cost, errors, execute};
use crate::base::collective::Collective;
use crate::base::kernel::{Argument, Launch};
use crate::contract::driver::{Conv, ConvAlgorithm, DevicePtr, DriverResult, Engine, Gemm, OpId, StreamId};

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

    /// Queues a collective. It stays on the link until all processes have arrived, and then for the duration of the
    /// transfer.
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
