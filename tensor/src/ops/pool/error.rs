use crate::error::Refusal;

/// An error of pooling.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum PoolError {
    #[error(
        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{sizes:?}"
    )]
    Input { sizes: Vec<usize> },
    #[error("non-empty 3D or 4D (batch mode) tensor expected for input")]
    MaxDims,
    #[error("kernel size should be greater than zero, but got kH: {height} kW: {width}")]
    Kernel { height: usize, width: usize },
    #[error("stride should not be zero")]
    Stride,
    #[error("dilation should be greater than zero, but got dilationH: {height} dilationW: {width}")]
    Dilation { height: usize, width: usize },
    #[error(
        "pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel} and dilation={dilation}"
    )]
    Padding { padding: i64, kernel: i64, dilation: i64 },
    #[error(
        "pad should be smaller than or equal to half of kernel size, but got padW = {}, padH = {}, kW = {}, kH = {}", .padding[1], .padding[0], .kernel[1], .kernel[0]
    )]
    Paddings { padding: [usize; 2], kernel: [usize; 2] },
    #[error("Given input size: ({}x{}x{}). Calculated output size: ({}x{}x{}). Output size is too small", .input[0], .input[1], .input[2], .input[0], .output[0], .output[1])]
    Output { input: [usize; 3], output: [i64; 2] },
    #[error("divisor must be not zero")]
    Divisor,
    #[error("adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {sizes:?}")]
    AdaptiveDims { sizes: Vec<usize> },
    #[error(
        "adaptive_avg_pool2d{}(): Expected {} to have non-zero size for non-batch dimensions, but {} has sizes {sizes:?} with dimension {dim} being empty", .of[0], .of[1], .of[1]
    )]
    AdaptiveEmpty { of: [&'static str; 2], sizes: Vec<usize>, dim: usize },
    #[error("integer out of range\nnote: {what}; at most {} is", i32::MAX)]
    IntegerOutOfRange { what: String },
}

todevice_gpu::debug_is_message!(PoolError);

impl Refusal for PoolError {}
