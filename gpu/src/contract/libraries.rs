//! The interface to cuBLAS, cuDNN, NCCL, NVRTC and NVML, and to the race check of a simulated GPU.

use std::sync::Arc;

use crate::base::collective::{Collective, CollectiveKind, CollectiveTime};
use crate::base::compiled::{CompiledLaunch, KernelId, KernelSource};
use crate::base::conv::{Conv, ConvAlgorithm};
use crate::base::device::{DevicePtr, OpId, StreamId};
use crate::base::gemm::Gemm;
use crate::base::process::Process;
use crate::base::pytorch_build::Build;
use crate::base::reading::Gpu;
use crate::contract::driver::{Driver, DriverError, DriverResult};
use crate::contract::interpreter::KernelInterpreter;
use crate::contract::others;
use crate::contract::races::RaceLog;
use crate::host::time::Clock;

/// A [`Driver`] with the libraries that come with CUDA.
pub trait Libraries: Driver {
    /// Lists the processes that hold memory of a device. Empty if unknown.
    fn processes(&self, device: usize) -> Vec<Process>;
    /// Returns a monitor's readings of a device. `None` if they come from NVML, which is not part of CUDA.
    fn monitor(&self, _device: usize) -> Option<Gpu> {
        None
    }
    /// Returns the PCI address, `00000000:01:00.0`, by which NVML identifies the device.
    fn pci_bus_id(&self, _device: usize) -> Option<String> {
        None
    }

    /// Returns the PyTorch build that the program emulates. `None` if kernels are compiled for the card.
    fn build(&self) -> Option<Build> {
        None
    }

    fn gemm(&self, stream: StreamId, gemm: Gemm) -> DriverResult<OpId>;

    /// Compiles a kernel (`nvrtcCompileProgram`, `cuModuleLoadData`). A driver without a compiler uses the interpreter.
    fn compile(
        &self,
        _device: usize,
        _source: &KernelSource<'_>,
        _interpreter: Option<&dyn KernelInterpreter>,
    ) -> DriverResult<KernelId> {
        Err(DriverError::of_compiler("this driver cannot compile kernels", None))
    }
    /// Queues a kernel that was compiled for the stream's device.
    fn launch_compiled(&self, _stream: StreamId, _launch: CompiledLaunch) -> DriverResult<OpId> {
        Err(DriverError::of_compiler("this driver cannot compile kernels", None))
    }

    /// Returns cuDNN's version, 91900 for 9.19.0. `None` without convolutions.
    fn cudnn_version(&self) -> Option<usize>;
    /// Lists the algorithms for a convolution, the expected fastest first (`cudnnGetConvolutionForwardAlgorithm_v7`).
    fn convolution_algorithms(&self, device: usize, conv: &Conv) -> DriverResult<Vec<ConvAlgorithm>>;
    /// Times the algorithms in a workspace (`cudnnFindConvolutionForwardAlgorithmEx`), and returns the milliseconds of
    /// each one that ran. With `None`, the caller can time [`convolution`](Self::convolution).
    fn find_convolution(
        &self,
        _stream: StreamId,
        _conv: &Conv,
        _workspace: (DevicePtr, usize),
    ) -> DriverResult<Option<Vec<(ConvAlgorithm, f32)>>> {
        Ok(None)
    }
    /// Computes a convolution in a workspace of the algorithm's size.
    fn convolution(
        &self,
        stream: StreamId,
        conv: &Conv,
        algorithm: &ConvAlgorithm,
        workspace: DevicePtr,
    ) -> DriverResult<OpId>;

    /// Opens the same devices for another process, with separate streams, memory and clock, if the driver supports it.
    fn fork(&self, _process: others::RankProcess, _clock: Clock) -> Option<Box<dyn Libraries>> {
        None
    }
    /// Lets this process take part in collectives with others. Returns whether the driver supports it.
    fn join(&self, _others: Arc<dyn others::Others>) -> bool {
        false
    }
    /// Takes part in a collective (`ncclAllReduce` and others), which begins when all processes have reached it.
    fn collective(&self, _stream: StreamId, _part: Collective) -> DriverResult<OpId> {
        let message = "collectives between real GPUs need NCCL, which this crate does not support yet";
        Err(DriverError { code: 0, name: "NCCL", message, detail: None })
    }
    /// Returns the duration of a collective with `_bytes` bytes of input per process, if it is known in advance.
    fn collective_time(
        &self,
        _kind: CollectiveKind,
        _bytes: usize,
        _processes: usize,
    ) -> Option<CollectiveTime> {
        None
    }

    fn race_log(&self) -> Option<&RaceLog> {
        None
    }
}
