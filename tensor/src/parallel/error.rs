use std::sync::Arc;

use crate::device::Device;
use crate::error::{Error, Refusal};

/// An error of `DataParallel` or of one of its parts.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum ParallelError {
    #[error("no available devices were found")]
    NoDevices,
    #[error(
        "module must have its parameters and buffers on device {first} (device_ids[0]) but found one of them on device: {found}"
    )]
    NotOnFirstDevice { first: Device, found: Device },
    #[error("Caught {kind} in replica {replica} on device {device}.\nOriginal error: {cause}")]
    InReplica { kind: &'static str, replica: usize, device: usize, cause: Arc<Error> },
    #[error("The number of modules {modules} is not equal to the number of inputs {inputs}")]
    ModulesAndInputs { modules: usize, inputs: usize },
    #[error("Expected at least one device to scatter to")]
    ScatterToNone,
    #[error("Expected at least one tensor to gather from")]
    GatherFromNone,
    #[error("Gather function not implemented for CPU tensors")]
    GatherFromHost,
    #[error(
        "Expected all input tensors to have the same number of dimensions, but got tensor at index {index} with {got} dimensions, (expected {expected})"
    )]
    GatherDims { index: usize, got: usize, expected: usize },
    #[error("Input tensor at index {index} has invalid shape {got:?}, but expected {expected:?}")]
    GatherSizes { index: usize, got: Vec<usize>, expected: Vec<usize> },
}

todevice_gpu::debug_is_message!(ParallelError);

impl Refusal for ParallelError {
    fn kind(&self) -> &'static str {
        match self {
            ParallelError::InReplica { kind, .. } => kind,
            ParallelError::ModulesAndInputs { .. } | ParallelError::GatherFromHost => "AssertionError",
            _ => "RuntimeError",
        }
    }

    fn inner(&self) -> Option<&Error> {
        match self {
            ParallelError::InReplica { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
