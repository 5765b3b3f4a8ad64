use crate::device::DeviceType;
use crate::dtype::DType;
use crate::error::Refusal;
use crate::error::tensor::tensor_type;

/// An error of a convolution.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum ConvError {
    #[error("Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: {sizes:?}")]
    Input { sizes: Vec<usize> },
    #[error("weight should have at least three dimensions")]
    WeightFewDims,
    #[error(
        "expected stride to be a single integer value or a list of {} values to match the convolution dimensions, but got stride={stride:?}", .ndim - 2
    )]
    WeightDims { ndim: usize, stride: [usize; 2] },
    #[error("non-positive {what} is not supported")]
    NotPositive { what: &'static str },
    #[error("dilation should be greater than zero, but got {dilation:?}")]
    Dilation { dilation: [usize; 2] },
    #[error("padding='same' is not supported for strided convolutions")]
    SameStride,
    #[error(
        "Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {weight:?} instead"
    )]
    FewOutputs { groups: usize, weight: Vec<usize> },
    #[error(
        "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size [{weight:?}] instead"
    )]
    Groups { groups: usize, weight: Vec<usize> },
    #[error("Given groups={groups}, weight of size {weight:?}, expected input{input:?} to have {} channels, but got {} channels instead", .weight[1].saturating_mul(*.groups), .input[1])]
    Channels { groups: usize, weight: Vec<usize>, input: Vec<usize> },
    #[error("Given weight of size {weight:?}, expected bias to be 1-dimensional with {} elements, but got bias of size {bias:?} instead", .weight[0])]
    Bias { weight: Vec<usize>, bias: Vec<usize> },
    #[error("kernel size should be greater than zero, but got kernel_height: {} kernel_width: {}", .kernel[0], .kernel[1])]
    EmptyKernel { kernel: [usize; 2] },
    #[error("Calculated padded input size per channel: ({} x {}). Kernel size: ({} x {}). Kernel size can't be greater than actual input size", .padded[0], .padded[1], .kernel[0], .kernel[1])]
    Kernel { padded: [usize; 2], kernel: [usize; 2] },
    #[error("Only zero batch or zero channel inputs are supported, but got input shape: {input:?}")]
    EmptyImage { input: Vec<usize> },
    /// PyTorch's tensor type includes the device.
    #[error("Input type ({}) and {what} type ({}) should be the same{}", tensor_type(*.input), tensor_type(*.other), match .input.0 {
        DeviceType::Cpu => format!(" or input should be a MKLDNN tensor and {what} is a dense tensor"),
        DeviceType::Cuda => String::new(),
    })]
    Types { input: (DeviceType, DType), what: &'static str, other: (DeviceType, DType) },
    #[error("Input type ({}) and bias type ({}) should be the same", .input.cpp_name(), .bias.cpp_name())]
    BiasDType { input: DType, bias: DType },
    #[error(
        "conv2d is for floating point types, and this image and weight are {dtype}: convert both first, with .to(DType::F32)"
    )]
    Integers { dtype: DType },
    #[error(
        "conv2d takes its weight and its bias as they are: the option `{option}` is for nn::Conv2d, which makes them"
    )]
    OptionOfLayer { option: &'static str },
    #[error("getCudnnDataTypeFromScalarType() not supported for {}", .dtype.scalar_type())]
    CudnnDType { dtype: DType },
}

todevice_gpu::debug_is_message!(ConvError);

impl Refusal for ConvError {
    fn kind(&self) -> &'static str {
        match self {
            ConvError::OptionOfLayer { .. } => "TypeError",
            _ => "RuntimeError",
        }
    }
}
