//! Errors of GPUs, in PyTorch's and CUDA's words.

use crate::base::place::Place;

use super::{MeetingError, OutOfMemory, Race};
use crate::base::device::Device;
use crate::base::kernel::TwinError;

#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The message of a variant describes it and its fields.
pub enum GpuError {
    #[error(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate {bytes} bytes. Error code 12 (Cannot allocate memory)"
    )]
    OutOfHostMemory { bytes: usize },
    #[error(
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: {0}"
    )]
    DeviceType(String),
    #[error("Invalid device string: '{0}'")]
    DeviceString(String),
    #[error("Device string must not be empty")]
    NoDeviceString,
    #[error("Could not parse device index '{index}' in device string '{text}'")]
    UnreadableIndex { index: String, text: String },
    #[error("this crate supports cpu and cuda devices, not {0} devices")]
    OtherDeviceType(String),
    #[error(
        "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx"
    )]
    NoDriver,
    #[error("No CUDA GPUs are available")]
    NoGpus,
    #[error(
        "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?\n{}",
        cuda_advice(true)
    )]
    InvalidDevice,
    #[error("Invalid device argument {index}: did you call init?")]
    NoMemoryStats { index: usize },
    #[error("Allocator not initialized for device {index}: did you call init?")]
    NoAllocator { index: usize },
    #[error("Device index value {index} is out of index range [0, {count})")]
    DeviceIndex { index: usize, count: usize },
    #[error("Invalid device id")]
    InvalidDeviceId,
    #[error("Invalid peer device id")]
    InvalidPeerDeviceId,
    #[error("Expected a cuda device, but got: {device}")]
    NotCuda { device: Device },
    #[error("called a synchronizing CUDA operation{}", match (.operation, .place, .printed) {
        (Some(operation), Some(place), _) => format!("\nnote: {operation}, at {place}"),
        (_, None, Some(made)) => format!("\nnote: printing a tensor made at {made}"),
        _ => String::new(),
    })]
    Synchronizing {
        operation: Option<&'static str>,
        place: Option<Place>,
        /// The line that created the tensor, if it was being printed. Formatting does not receive the user's line.
        printed: Option<Place>,
    },
    #[error("invalid value of debug_mode, expected one of `default`, `warn`, `error`")]
    SyncDebugMode,
    #[error("Event device {event} does not match recording stream's device {stream}.")]
    EventDevice { event: usize, stream: usize },
    #[error("Both events must be created with argument 'enable_timing=True'.")]
    EventTiming,
    #[error("Both events must be recorded before calculating elapsed time.")]
    EventNotRecorded,
    #[error("Both events must be completed before calculating elapsed time.")]
    EventNotCompleted,
    #[error("{device} does not belong to the machine entered here")]
    OtherMachine { device: Device },
    #[error(
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method"
    )]
    CudaInWorker,
    #[error("a simulated GPU can be used only by the thread that used it first")]
    SimulatedThread,
    #[error(
        "CUDA error: {message}{}\nSearch for `{name}' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.\n{}",
        .detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default(),
        cuda_advice(*.late)
    )]
    Cuda {
        name: &'static str,
        message: &'static str,
        detail: Option<String>,
        /// Whether an earlier call may have caused the error.
        late: bool,
    },
    #[error("{0}")]
    OutOfDeviceMemory(Box<OutOfMemory>),
    #[error("{0}")]
    AllocatorOption(String),
    #[error("{0}")]
    GeneratorState(String),
    #[error("CUDA out of memory. Tried to allocate more than 1EB memory.")]
    MoreThanAnExabyte { bytes: u64 },
    /// GPU0003, returned only under [`RaceCheck::Error`](crate::contract::races::RaceCheck::Error).
    #[error("{0}")]
    Race(Box<Race>),
    #[error("{0}")]
    Meeting(Box<MeetingError>),
    #[error("{0}")]
    Custom(String),
}

crate::debug_is_message!(GpuError);

/// PyTorch's addition to every CUDA error. Errors that may be late get another paragraph.
fn cuda_advice(late: bool) -> String {
    const LATE: &str = "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n";
    let late = if late { LATE } else { "" };
    format!("{late}Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.")
}

impl GpuError {
    pub fn code(&self) -> Option<&'static str> {
        match self {
            GpuError::OutOfDeviceMemory(_) => Some("GPU0002"),
            GpuError::Race(_) => Some("GPU0003"),
            _ => None,
        }
    }

    /// The full report, as `Error::report` prints it.
    pub fn report(&self) -> String {
        match self {
            GpuError::OutOfDeviceMemory(memory) => memory.report(),
            GpuError::Race(race) => race.report(),
            other => other.to_string(),
        }
    }

    pub fn custom(message: impl std::fmt::Display) -> GpuError {
        GpuError::Custom(message.to_string())
    }
}

impl From<GpuError> for TwinError {
    fn from(error: GpuError) -> TwinError {
        match error {
            GpuError::OutOfHostMemory { bytes } => TwinError::OutOfHostMemory { bytes },
            other => TwinError::Other(Box::new(other)),
        }
    }
}
