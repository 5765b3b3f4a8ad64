use crate::device::DeviceType;
use crate::dtype::DType;
use crate::error::Refusal;

/// An error of a tensor: of its dimensions, its values or its memory.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum TensorError {
    #[error("Dimension specified as {dim} but tensor has no dimensions")]
    NoDimensions { dim: i64 },
    #[error("a Tensor with {numel} elements cannot be converted to Scalar")]
    NotAScalar { numel: usize },
    #[error("item() gives an f64, and no f64 is equal to {value}: read it with to_vec::<i64>()")]
    NoF64 { value: i64 },
    #[error("Boolean value of Tensor with {} is ambiguous", if *.numel == 0 { "no values" } else { "more than one value" })]
    AmbiguousTruth { numel: usize },
    #[error("{got} values cannot fill a tensor of shape {sizes:?}, which holds {expected}")]
    DataLength { got: usize, expected: usize, sizes: Vec<usize> },
    #[error("expected sequence of length {expected} at dim {dim} (got {got})")]
    RaggedData { expected: usize, got: usize, dim: usize },
    #[error(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
    )]
    WriteOverlap,
    #[error(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
    )]
    SourceOverlap,
    #[error("cannot pin 'torch.cuda.{}Tensor' only dense CPU tensors can be pinned", .dtype.scalar_type())]
    PinOnDevice { dtype: DType },
    #[error(
        "Could not run 'aten::record_stream' with arguments from the 'CPU' backend: the memory of the host belongs to no stream"
    )]
    RecordStreamOnHost,
    #[error("{operation}: this machine was given a number of operations, and they are used up")]
    NoMoreOperations { operation: &'static str },
}

todevice_gpu::debug_is_message!(TensorError);

impl Refusal for TensorError {
    fn kind(&self) -> &'static str {
        match self {
            TensorError::NoDimensions { .. } => "IndexError",
            _ => "RuntimeError",
        }
    }
}

/// PyTorch's name of a tensor type, such as `torch.cuda.FloatTensor`. Some dtypes have no such name.
pub(crate) fn tensor_type((device, dtype): (DeviceType, DType)) -> String {
    let scalar = dtype.scalar_type();
    match (device, dtype) {
        (_, DType::BF16 | DType::Bool) => format!("{}{scalar}Type", device.name().to_ascii_uppercase()),
        (DeviceType::Cpu, _) => format!("torch.{scalar}Tensor"),
        (DeviceType::Cuda, _) => format!("torch.cuda.{scalar}Tensor"),
    }
}
