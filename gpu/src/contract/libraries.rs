//! What a GPU offers besides its driver: cuBLAS, cuDNN, NCCL, NVRTC and NVML, and the race check of a simulated one.

use crate::base::collective::{Collective, CollectiveKind, CollectiveTime};
use crate::base::compiled::{CompiledLaunch, KernelId, KernelSource};
use crate::base::conv::{Conv, ConvAlgorithm};
use crate::base::gemm::Gemm;
use crate::base::handles::{DevicePtr, OpId, StreamId};
use crate::base::process::Process;
use crate::base::pytorch_build::Build;
use crate::base::reading::Gpu;
use crate::contract::driver::{Driver, DriverError, DriverResult};
use crate::contract::interpreter::KernelInterpreter;
use crate::contract::others;
use crate::contract::races::RaceLog;
use crate::host::time::Clock;

/// The libraries that come with CUDA, for the devices of a [`Driver`].
pub trait Libraries: Send + Sync {
    /// The processes that hold memory of a device; empty if unknown.
    fn processes(&self, device: usize) -> Vec<Process>;
    /// A monitor's readings of a device; `None` where they come from NVML, which is not part of CUDA.
    fn monitor(&self, _device: usize) -> Option<Gpu> {
        None
    }
    /// The PCI address, `00000000:01:00.0`, by which NVML knows the device. (NVML's indices differ from CUDA's.)
    fn pci_bus_id(&self, _device: usize) -> Option<String> {
        None
    }

    /// The build of PyTorch that the program emulates; `None` if kernels are compiled for the card.
    fn build(&self) -> Option<Build> {
        None
    }

    fn gemm(&self, stream: StreamId, gemm: Gemm) -> DriverResult<OpId>;

    /// Compiles a kernel for a device (`nvrtcCompileProgram`, `cuModuleLoadData`). A driver without a compiler uses the
    /// interpreter.
    fn compile(
        &self,
        _device: usize,
        _source: &KernelSource<'_>,
        _interpreter: Option<&dyn KernelInterpreter>,
    ) -> DriverResult<KernelId> {
        Err(DriverError::of_compiler("this driver cannot compile kernels", None))
    }
    /// Queues a compiled kernel of the stream's device.
    fn launch_compiled(&self, _stream: StreamId, _launch: CompiledLaunch) -> DriverResult<OpId> {
        Err(DriverError::of_compiler("this driver cannot compile kernels", None))
    }

    /// The version of cuDNN, 91900 for 9.19.0; `None` if convolutions are not available.
    fn cudnn_version(&self) -> Option<usize>;
    /// The algorithms for a convolution, starting with the one that a heuristic expects to be the fastest
    /// (`cudnnGetConvolutionForwardAlgorithm_v7`).
    fn convolution_algorithms(&self, device: usize, conv: &Conv) -> DriverResult<Vec<ConvAlgorithm>>;
    /// Tries out the algorithms in a workspace and waits for them (`cudnnFindConvolutionForwardAlgorithmEx`). Returns
    /// each that ran with its milliseconds. `None`: the caller can time [`convolution`](Self::convolution) itself.
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

    /// The same devices as seen by another process: with streams, memory and a clock of its own. `None` if the driver
    /// does not support it.
    fn fork(&self, _process: others::Process, _clock: Clock) -> Option<Box<dyn Driver>> {
        None
    }
    /// Takes part in a collective (`ncclAllReduce` and its siblings), which begins when all processes have reached it.
    fn collective(&self, _stream: StreamId, _part: Collective) -> DriverResult<OpId> {
        let message = "collectives between real GPUs need NCCL, which this crate does not support yet";
        Err(DriverError { code: 0, name: "NCCL", message, detail: None })
    }
    /// The duration of a collective between `_processes` processes, each with an input of `_bytes` bytes, if it is
    /// known in advance.
    fn collective_time(
        &self,
        _kind: CollectiveKind,
        _bytes: usize,
        _processes: usize,
    ) -> Option<CollectiveTime> {
        None
    }

    /// The log for the data races it finds, if it looks for them.
    fn race_log(&self) -> Option<&RaceLog> {
        None
    }
}
