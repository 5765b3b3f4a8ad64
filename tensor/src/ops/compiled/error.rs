use crate::device::Device;
use crate::dtype::DType;
use crate::error::Refusal;

/// An error in compiling or launching a kernel with [`cuda::compile_kernel`](crate::cuda::compile_kernel).
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum KernelError {
    #[error("named symbol not found: the text has no __global__ function `{name}`{}", match &.others[..] {
        [] => ", and no other".to_string(),
        others => format!("; it has `{}`", others.join("`, `")),
    })]
    NoSuchKernel { name: String, others: Vec<String> },
    #[error(
        "the text has several __global__ functions `{name}` with different parameters, or one that is a template: compile_kernel needs one function, with types that are written out"
    )]
    Ambiguous { name: String },
    #[error(
        "`{parameter}`, parameter {index} of the kernel {kernel}, is neither a pointer nor a number of a built-in type"
    )]
    ParameterType { kernel: String, index: usize, parameter: String },
    #[error("{kernel}() takes {expected} argument{} but {given} {} given", plural(*.expected), if *.given == 1 { "was" } else { "were" })]
    ArgumentCount { kernel: &'static str, expected: usize, given: usize },
    #[error(
        "Unsupported argument type: argument {index} of {kernel}() is {given}, and its parameter is `{parameter}`"
    )]
    ArgumentType { kernel: &'static str, index: usize, parameter: String, given: String },
    #[error(
        "All tensor arguments must be CUDA tensors: argument {index} of {kernel}(), `{parameter}`, is on {device}"
    )]
    NotCuda { kernel: &'static str, index: usize, parameter: String, device: &'static str },
    #[error(
        "expected scalar type {} but found {}: argument {index} of {kernel}(), `{parameter}`",
        .expected.scalar_type(),
        .found.scalar_type()
    )]
    ScalarType { kernel: &'static str, index: usize, parameter: String, expected: DType, found: DType },
    #[error(
        "input is not contiguous: argument {index} of {kernel}(), `{parameter}`, is a view with gaps or in another order, and a pointer shows neither; pass x.contiguous()?"
    )]
    NotContiguous { kernel: &'static str, index: usize, parameter: String },
    #[error(
        "Expected all tensors to be on the same device as their kernel: {kernel}() was compiled for {compiled}, and its argument {index}, `{parameter}`, is on {device}"
    )]
    OtherDevice { kernel: &'static str, index: usize, parameter: String, compiled: Device, device: Device },
    #[error(
        "value cannot be converted to type {parameter} without overflow: argument {index} of {kernel}() is {value}"
    )]
    Overflow { kernel: &'static str, index: usize, parameter: String, value: i128 },
    #[error(
        "Kernel requires {bytes} bytes of shared memory, and a block of {kernel}() can have {most}: larger ones have to be configured, which this crate does not do"
    )]
    SharedMemory { kernel: &'static str, bytes: usize, most: usize },
}

todevice_gpu::debug_is_message!(KernelError);

impl Refusal for KernelError {
    fn kind(&self) -> &'static str {
        match self {
            KernelError::NotCuda { .. } => "ValueError",
            KernelError::ArgumentCount { .. } | KernelError::ArgumentType { .. } => "TypeError",
            _ => "RuntimeError",
        }
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
