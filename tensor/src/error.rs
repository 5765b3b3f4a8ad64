//! Everything that can go wrong, in PyTorch's words.
//!
//! The first line of a message is PyTorch's own text, so that a search for it finds the same answers.
//! What Rust knows beyond it (the place of the call) follows on further lines.

mod device_mismatch;

pub use device_mismatch::{DeviceMismatch, Operand};
pub(crate) use todevice_gpu::error::WORKSPACE;
pub use todevice_gpu::error::{
    GpuError, LayoutError, OutOfMemory, Race, RaceKind, RacingAccess, RacingOperation, RacingWorker,
};

use std::panic::Location;
use std::sync::Arc;

use crate::kernel::Stopped;
use crate::python::python_float;
use crate::{DType, Device, DeviceType};

/// The result of every fallible call of this crate, operators included.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a tensor operation, a module, an optimizer or a data loader.
///
/// Each variant is one mistake a user can make, not one place of the source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // A variant's message says what it is, and names its fields.
pub enum Error {
    // Shapes.
    #[error("output with shape {output:?} doesn't match the broadcast shape {broadcast:?}")]
    InPlaceBroadcast { output: Vec<usize>, broadcast: Vec<usize> },
    #[error("expand({}{{{from:?}}}, size={to:?}): the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})", tensor_type(*.tensor), .to.len(), .from.len())]
    ExpandDims { tensor: (DeviceType, DType), from: Vec<usize>, to: Vec<i64> },
    #[error("t() expects a tensor with <= 2 dimensions, but self is {ndim}D")]
    TransposeDims { ndim: usize },
    #[error(
        "The expanded size of the tensor ({size}) isn't allowed in a leading, non-existing dimension {dim}"
    )]
    ExpandLeading { size: i64, dim: usize },
    #[error(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
    )]
    ViewStrides,
    #[error("dim {dim} appears multiple times in the list of dims")]
    RepeatedDim { dim: usize },
    #[error("permute(): duplicate dims are not allowed.")]
    PermuteRepeatedDim,
    #[error("Dimension specified as {dim} but tensor has no dimensions")]
    NoDimensions { dim: i64 },
    #[error("{operation}() cannot be applied to a 0-dim tensor.")]
    ViewOfNumber { operation: &'static str },
    #[error("{operation} expects at least a 1-dimensional tensor")]
    PartsOfNumber { operation: &'static str },
    #[error("split_size can only be 0 if dimension size is 0, but got dimension size of {size}")]
    SplitSize { size: usize },
    #[error("chunk expects `chunks` to be greater than 0, got: 0")]
    NoChunks,
    #[error(
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {given}"
    )]
    PermuteDims { ndim: usize, given: usize },
    #[error(
        "Sizes of tensors must match except in dimension {dim}. Expected size {expected} but got size {got} for tensor number {index} in the list."
    )]
    CatSizes { dim: usize, expected: usize, got: usize, index: usize },
    #[error("zero-dimensional tensor (at position {position}) cannot be concatenated")]
    ZeroDimCat { position: usize },
    #[error("Tensors must have same number of dimensions: got {expected} and {got}")]
    CatDims { expected: usize, got: usize },
    #[error(
        "stack expects each tensor to be equal size, but got {expected:?} at entry 0 and {got:?} at entry {index}"
    )]
    StackSizes { expected: Vec<usize>, got: Vec<usize>, index: usize },
    #[error("torch.cat(): expected a non-empty list of Tensors")]
    EmptyCat,
    #[error("{operation} expects a non-empty TensorList")]
    EmptyList { operation: &'static str },
    #[error("mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})", .a[0], .a[1], .b[0], .b[1])]
    MatmulShapes { a: [usize; 2], b: [usize; 2] },
    #[error("Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].", .expected[0], .expected[1], .got[0], .got[1])]
    BmmShapes { expected: [usize; 2], got: [usize; 2] },
    #[error(
        "inconsistent tensor size, expected tensor [{a}] and src [{b}] to have the same number of elements, but got {a} and {b} elements respectively"
    )]
    DotSizes { a: usize, b: usize },
    #[error("size mismatch, got input ({}), mat ({}x{}), vec ({vec})", .mat[0], .mat[0], .mat[1])]
    MvSizes { mat: [usize; 2], vec: usize },
    #[error("{argument} must be a matrix")]
    NotAMatrix { argument: &'static str },
    #[error("{argument} must be a 3D tensor")]
    NotABatch { argument: &'static str },
    #[error("dot : expected both vectors to have same dtype, but found {} and {}", .a.scalar_type(), .b.scalar_type())]
    DotDTypes { a: DType, b: DType },
    #[error("Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: {sizes:?}")]
    ConvInput { sizes: Vec<usize> },
    #[error("weight should have at least three dimensions")]
    ConvWeightFewDims,
    #[error(
        "expected stride to be a single integer value or a list of {} values to match the convolution dimensions, but got stride={stride:?}", .ndim - 2
    )]
    ConvWeightDims { ndim: usize, stride: [usize; 2] },
    #[error("{argument} must be a matrix, got 1-D tensor")]
    VectorForMatrix { argument: &'static str },
    #[error("non-positive {what} is not supported")]
    ConvNotPositive { what: &'static str },
    #[error("dilation should be greater than zero, but got {dilation:?}")]
    ConvDilation { dilation: [usize; 2] },
    #[error("padding='same' is not supported for strided convolutions")]
    ConvSameStride,
    #[error(
        "Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {weight:?} instead"
    )]
    ConvFewOutputs { groups: usize, weight: Vec<usize> },
    #[error(
        "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size [{weight:?}] instead"
    )]
    ConvGroups { groups: usize, weight: Vec<usize> },
    #[error("Given groups={groups}, weight of size {weight:?}, expected input{input:?} to have {} channels, but got {} channels instead", .weight[1].saturating_mul(*.groups), .input[1])]
    ConvChannels { groups: usize, weight: Vec<usize>, input: Vec<usize> },
    #[error("Given weight of size {weight:?}, expected bias to be 1-dimensional with {} elements, but got bias of size {bias:?} instead", .weight[0])]
    ConvBias { weight: Vec<usize>, bias: Vec<usize> },
    #[error("kernel size should be greater than zero, but got kernel_height: {} kernel_width: {}", .kernel[0], .kernel[1])]
    ConvEmptyKernel { kernel: [usize; 2] },
    #[error("Calculated padded input size per channel: ({} x {}). Kernel size: ({} x {}). Kernel size can't be greater than actual input size", .padded[0], .padded[1], .kernel[0], .kernel[1])]
    ConvKernel { padded: [usize; 2], kernel: [usize; 2] },
    #[error("Only zero batch or zero channel inputs are supported, but got input shape: {input:?}")]
    ConvEmptyImage { input: Vec<usize> },
    #[error("both arguments to {operation} need to be at least 1D, but they are {a}D and {b}D")]
    MatmulDims { operation: &'static str, a: usize, b: usize },

    // Windows of images.
    #[error("integer out of range\nnote: {what}; at most {} is", i32::MAX)]
    IntegerOutOfRange { what: String },
    #[error("stride should not be zero")]
    PoolStride,
    #[error("kernel size should be greater than zero, but got kH: {height} kW: {width}")]
    PoolKernel { height: usize, width: usize },
    #[error("dilation should be greater than zero, but got dilationH: {height} dilationW: {width}")]
    PoolDilation { height: usize, width: usize },
    #[error(
        "pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel} and dilation={dilation}"
    )]
    PoolPadding { padding: i64, kernel: i64, dilation: i64 },
    #[error(
        "pad should be smaller than or equal to half of kernel size, but got padW = {}, padH = {}, kW = {}, kH = {}", .padding[1], .padding[0], .kernel[1], .kernel[0]
    )]
    PoolPaddings { padding: [usize; 2], kernel: [usize; 2] },
    #[error("Given input size: ({}x{}x{}). Calculated output size: ({}x{}x{}). Output size is too small", .input[0], .input[1], .input[2], .input[0], .output[0], .output[1])]
    PoolOutput { input: [usize; 3], output: [i64; 2] },
    #[error(
        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{sizes:?}"
    )]
    PoolInput { sizes: Vec<usize> },
    #[error("non-empty 3D or 4D (batch mode) tensor expected for input")]
    MaxPoolDims,
    #[error("divisor must be not zero")]
    PoolDivisor,
    #[error("adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {sizes:?}")]
    AdaptivePoolDims { sizes: Vec<usize> },
    #[error(
        "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {sizes:?} with dimension {dim} being empty"
    )]
    AdaptivePoolEmpty { sizes: Vec<usize>, dim: usize },

    // Normalisation.
    #[error("expected {expected} input (got {got}D input)")]
    ExpectedDims { expected: &'static str, got: usize },
    #[error(
        "The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot have requires_grad True."
    )]
    NotDifferentiable { function: &'static str, argument: &'static str },
    #[error("Expected more than 1 value per channel when training, got input size torch.Size({sizes:?})")]
    BatchNormBatch { sizes: Vec<usize> },
    #[error("{name} should contain {channels} elements not {got}")]
    BatchNormChannels { name: &'static str, channels: usize, got: usize },
    #[error("running_mean must be defined in evaluation mode")]
    BatchNormEvaluation,
    #[error("running_mean and running_var must either both be None or neither be None")]
    BatchNormRunning,
    #[error("batch_norm eps must be positive, but got {}", python_float(*eps))]
    BatchNormEps { eps: f64 },
    #[error("batch_norm takes an input of at least 2 dimensions: a batch, and its channels")]
    BatchNormDims,
    #[error("mixed dtype (CPU): all inputs must share same datatype.")]
    MixedTypes,
    #[error("mixed dtype (CPU): expect parameter to have scalar type of Float")]
    MixedParameterType,
    #[error(
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []"
    )]
    LayerNormNoShape,
    #[error(
        "Given normalized_shape={normalized_shape:?}, expected input with shape [*, {}], but got input of size{input:?}",
        .normalized_shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
    )]
    LayerNormShape { normalized_shape: Vec<usize>, input: Vec<usize> },
    #[error(
        "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {got:?} and normalized_shape = {normalized_shape:?}"
    )]
    LayerNormParameter { name: &'static str, got: Vec<usize>, normalized_shape: Vec<usize> },

    // Indices.
    #[error("index {index} is out of bounds for dimension {dim} with size {size}")]
    IndexOutOfBounds { index: i64, dim: usize, size: usize },
    #[error("index is out of bounds for dimension with size 0")]
    IndexOfNothing,
    #[error("index out of range in self")]
    IndexOutOfRange { index: i64, size: usize },
    #[error("INDICES element is out of DATA bounds, id={index} axis_dim={size}")]
    IndicesOutOfData { index: i64, size: usize },
    #[error("index_select(): self indexing axis dim should be positive")]
    IndexSelectOfNothing,
    #[error("select(): index {index} out of range for tensor of size {sizes:?} at dimension {dim}")]
    SelectOutOfRange { index: i64, sizes: Vec<usize>, dim: usize },
    #[error(
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
    )]
    GetOfNumber,
    #[error("too many indices for tensor of dimension 0")]
    IndexOfNumber,
    #[error("start out of range (expected to be in range of [{}, {size}], but got {start})", -(*.size as i64))]
    NarrowStart { start: usize, size: usize },
    #[error("start ({start}) + length ({length}) exceeds dimension size ({size}).")]
    NarrowOutOfBounds { start: usize, length: usize, size: usize },
    #[error("slice step must be positive")]
    SliceStep,
    #[error("maximum size for tensor at dimension {dim} is {size} but size is {window}")]
    UnfoldTooLarge { dim: usize, size: usize, window: usize },
    #[error("index_select(): Expected dtype int32 or int64 for index")]
    IndexSelectDType,
    #[error("{operation}(): Expected dtype int32/int64 for index")]
    GatherDType { operation: &'static str },
    #[error("index_add_(): Expected dtype int32/int64 for index but got: {}", .got.scalar_type())]
    IndexAddDType { got: DType },
    #[error("tensors used as indices must be long, int, byte or bool tensors")]
    IndexDType,
    #[error("index_select(): Index is supposed to be a vector")]
    IndexNotAVector,
    #[error("index_add_(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {sizes:?}", .sizes.len(), .dtype.scalar_type())]
    IndexAddNotAVector { dtype: DType, sizes: Vec<usize> },
    #[error(
        "index_add_(): self ({}) and source ({}) must have the same scalar type", .target.scalar_type(), .source_type.scalar_type()
    )]
    IndexAddTypes { target: DType, source_type: DType },
    #[error("scatter(): Expected self.dtype to be equal to src.dtype")]
    ScatterTypes,
    #[error(
        "index_add_(): Number of indices ({indices}) should be equal to source.size(dim): ({source_size}), for dim: {dim}"
    )]
    IndexAddCount { indices: usize, source_size: usize, dim: usize },
    #[error(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {target:?} source.shape = {source_sizes:?}"
    )]
    IndexAddShape { target: Vec<usize>, source_sizes: Vec<usize> },
    #[error("Index tensor must have the same number of dimensions as {other} tensor")]
    GatherDims { other: &'static str },
    #[error(
        "Expected index {index:?} to be no larger than self {target:?} apart from dimension {dim} and to be no larger size than src {source_sizes:?}"
    )]
    ScatterSizes { index: Vec<usize>, target: Vec<usize>, dim: usize, source_sizes: Vec<usize> },
    #[error(
        "Size does not match at dimension {dim} expected index {index:?} to be no larger than self {input:?} apart from dimension {gather_dim}"
    )]
    GatherSizes { dim: usize, index: Vec<usize>, input: Vec<usize>, gather_dim: usize },
    #[error(
        "{operation}(): Expected reduction dim to be specified for input.numel() == 0.{}", if .operation.starts_with("arg") { "" } else { " Specify the reduction dim with the 'dim' argument." }
    )]
    EmptyReduction { operation: &'static str },
    #[error("{operation}(): Expected reduction dim {dim} to have non-zero size.")]
    EmptyReductionDim { operation: &'static str, dim: usize },

    // Types.
    #[error("\"{operation}\" not implemented for '{}'", .dtype.scalar_type())]
    NotImplemented { operation: &'static str, dtype: DType },
    #[error("Input type ({}) and bias type ({}) should be the same", .input.cpp_name(), .bias.cpp_name())]
    ConvBiasDType { input: DType, bias: DType },
    #[error(
        "conv2d is for floating point types, and this image and weight are {dtype}: convert both first, with .to(DType::F32)"
    )]
    ConvIntegers { dtype: DType },
    /// Types of tensors, in PyTorch's words, say where they are.
    #[error("Input type ({}) and {what} type ({}) should be the same{}", tensor_type(*.input), tensor_type(*.other), match .input.0 {
        DeviceType::Cpu => format!(" or input should be a MKLDNN tensor and {what} is a dense tensor"),
        DeviceType::Cuda => String::new(),
    })]
    ConvTypes { input: (DeviceType, DType), what: &'static str, other: (DeviceType, DType) },
    #[error("getCudnnDataTypeFromScalarType() not supported for {}", .dtype.scalar_type())]
    CudnnDType { dtype: DType },
    #[error("expected m1 and m2 to have the same dtype, but got: {} != {}", .a.cpp_name(), .b.cpp_name())]
    MatmulDTypes { a: DType, b: DType },
    #[error("{argument} and mat2 must have the same dtype, but got {} and {}", .a.scalar_type(), .b.scalar_type())]
    LinearDTypes { argument: &'static str, a: DType, b: DType },
    #[error("result type {} can't be cast to the desired output type {}", .result.scalar_type(), .output.scalar_type())]
    InPlaceCast { result: DType, output: DType },
    #[error("expected scalar type {} but found {}", .expected.scalar_type(), .got.scalar_type())]
    ExpectedDType { expected: DType, got: DType },
    #[error("{operation}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {}", .got.scalar_type())]
    NeedsFloat { operation: &'static str, got: DType },
    #[error(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
    )]
    SubtractTwoBools,
    #[error(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    )]
    SubtractBool,
    #[error(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    )]
    NegateBool,
    #[error("Boolean inputs not supported for relu")]
    ReluBool,
    #[error("where expected condition to be a boolean tensor, but got a tensor with dtype {}", .got.scalar_type())]
    WhereCondition { got: DType },
    #[error("ZeroDivisionError")]
    ZeroDivision,
    #[error("only Tensors of floating point dtype can require gradients")]
    RequiresGradDType,
    #[error("Only Tensors of floating point and complex dtype can require gradients")]
    MadeToRequireGrad,
    #[error("a Tensor with {numel} elements cannot be converted to Scalar")]
    NotAScalar { numel: usize },
    #[error("Boolean value of Tensor with {} is ambiguous", if *.numel == 0 { "no values" } else { "more than one value" })]
    AmbiguousTruth { numel: usize },
    #[error("this tensor holds {} values, which cannot be read as {}: convert it first, with .to(DType::{:?})", .held.scalar_type(), .asked.scalar_type(), .asked)]
    ReadDType { held: DType, asked: DType },
    #[error("{got} values cannot fill a tensor of shape {sizes:?}, which holds {expected}")]
    DataLength { got: usize, expected: usize, sizes: Vec<usize> },
    #[error("expected sequence of length {expected} at dim {dim} (got {got})")]
    RaggedData { expected: usize, got: usize, dim: usize },

    // In-place writes and autograd.
    #[error(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
    )]
    WriteOverlap,
    #[error(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
    )]
    BackwardTwice,
    #[error(
        "Function {function} returned an invalid gradient at index {index} - got {got:?} but expected shape compatible with {expected:?}"
    )]
    InvalidGradient { function: &'static str, index: usize, got: Vec<usize>, expected: Vec<usize> },
    #[error("indices should be either on cpu or on the same device as the indexed tensor ({device})")]
    IndexDevice { device: Device },
    #[error(
        "{}invalid gradient at index {index} - expected device {expected} but got {got}",
        .function.map(|function| format!("Function {function} returned an ")).unwrap_or_default()
    )]
    InvalidGradientDevice { function: Option<&'static str>, index: usize, got: Device, expected: Device },
    #[error("grad can be implicitly created only for scalar outputs")]
    ImplicitGradient,
    #[error("element 0 of tensors does not require grad and does not have a grad_fn")]
    NoGraph,
    #[error(
        "Mismatch in shape: grad_output[0] has a shape of torch.Size({grad:?}) and output[0] has a shape of torch.Size({output:?})."
    )]
    GradientShape { grad: Vec<usize>, output: Vec<usize> },
    #[error(
        "attempting to assign a gradient with dtype '{}' to a tensor with grad_dtype '{}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that assume they match.", .grad.cpp_name(), .tensor.scalar_type()
    )]
    AssignGradientDType { grad: DType, tensor: DType },
    #[error("{}. Please ensure that the gradient and the tensor are on the same device", match (.grad, .tensor) {
        (Device::Cuda { index: grad, .. }, Device::Cuda { index: tensor, .. }) => format!(
            "attempting to assign a gradient located on device with index '{grad}' to a tensor located on device \
             with index '{tensor}'"
        ),
        (grad, tensor) => format!(
            "attempting to assign a gradient with device type '{}' to a tensor with device type '{}'",
            grad.kind(),
            tensor.kind()
        ),
    })]
    AssignGradientDevice { grad: Device, tensor: Device },
    #[error(
        "attempting to assign a gradient of size '{grad:?}' to a tensor of size '{tensor:?}'. Please ensure that the gradient and the tensor are the same size"
    )]
    AssignGradient { grad: Vec<usize>, tensor: Vec<usize> },
    #[error("one of the variables needed for gradient computation has been modified by an inplace operation: [{} {sizes:?}]{}is at version {version}; expected version {expected} instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).\nnote: it was saved by the operation called at {place}", tensor_type(*.tensor), .output_of.map_or(" ".to_string(), |node| format!(", which is output 0 of {node}, ")))]
    ModifiedInPlace {
        tensor: (DeviceType, DType),
        sizes: Vec<usize>,
        output_of: Option<&'static str>,
        version: u64,
        expected: u64,
        place: &'static Location<'static>,
    },
    #[error("a leaf Variable that requires grad is being used in an in-place operation.")]
    LeafInPlace,
    #[error("a view of a leaf Variable that requires grad is being used in an in-place operation.")]
    LeafViewInPlace,
    #[error(
        "an in-place operation on a view is recorded by autograd, which this crate does not do: write to the whole tensor, or to the view under no_grad."
    )]
    RecordedViewInPlace,
    #[error(
        "a view is used whose base was written to by a recorded in-place operation after the view was made, which this crate does not follow: make the view again."
    )]
    StaleView,
    #[error(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
    )]
    InferenceSaved,
    #[error(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
    )]
    InferenceInPlace,
    #[error("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")]
    InferenceRequiresGrad,
    #[error("you can only change requires_grad flags of leaf variables.{}", if *.to { "" } else { " If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()." })]
    RequiresGradNonLeaf { to: bool },
    #[error(
        "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."
    )]
    UnusedInGraph,
    #[error("One of the differentiated Tensors does not require grad")]
    DoesNotRequireGrad,

    // Losses and layers.
    #[error("Expected input batch_size ({input}) to match target batch_size ({target}).")]
    LossBatch { input: usize, target: usize },
    #[error("Expected target size {expected:?}, got {got:?}")]
    LossTargetSize { expected: Vec<usize>, got: Vec<usize> },
    #[error("0D or 1D target tensor expected, multi-target not supported")]
    LossMultiTarget,
    #[error("Expected floating point type for target with class probabilities, got {}", .got.scalar_type())]
    LossProbabilities { got: DType },
    #[error("For 1D input, 1D target must have size 1, but got target size: {size}")]
    LossOneTarget { size: usize },
    #[error("only batches of spatial targets supported (3D tensors) but got targets of dimension: {ndim}")]
    LossSpatialTargets { ndim: usize },
    // PyTorch closes no bracket.
    #[error("size mismatch (got input: {input:?} , target: {target:?}")]
    LossSpatialSizes { input: Vec<usize>, target: Vec<usize> },
    #[error("weight tensor should be defined either for all or no classes")]
    LossSpatialWeight,
    #[error("Target {target} is out of bounds.")]
    TargetOutOfBounds { target: i64 },
    #[error(
        "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {weight:?}"
    )]
    LossWeight { classes: usize, weight: Vec<usize> },
    #[error("Expected 1 or more dimensions (got 0)")]
    LossInput,
    #[error("{0}")]
    ConvLayer(&'static str),
    #[error("dropout probability has to be between 0 and 1, but got {p}")]
    DropoutProbability { p: f64 },
    #[error("Error(s) in loading state_dict for {module}:\n\t{}", .problems.join("\n\t"))]
    StateDict { module: String, problems: Vec<String> },

    #[error("Found dtype {} but expected {}", .found.scalar_type(), .expected.scalar_type())]
    LossDType { found: DType, expected: DType },

    // Random numbers.
    #[error("\"{kernel}\" not implemented for '{}'", .dtype.scalar_type())]
    RandomDType { kernel: &'static str, dtype: DType },
    #[error("random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")]
    EmptyRange { low: i64, high: i64 },
    #[error("uniform_ expects to return a [from, to) range, but found from={from} > to={to}")]
    UniformRange { from: f64, to: f64 },
    #[error("normal expects std >= 0.0, but found std {std}")]
    NegativeStd { std: f64 },
    #[error("{0}")]
    GeneratorState(String),

    // Optimizers.
    #[error("optimizer got an empty parameter list")]
    NoParameters,
    #[error("Invalid {name}: {value:?}")]
    InvalidHyperparameter { name: &'static str, value: f64 },
    #[error("Nesterov momentum requires a momentum and zero dampening")]
    Nesterov,
    #[error("The growth factor must be > 1.0.")]
    GrowthFactor,
    #[error("The backoff factor must be < 1.0.")]
    BackoffFactor,
    #[error(
        "Attempted {function} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
    )]
    ScaleIsNone { function: &'static str },
    #[error("unscale_() has already been called on this optimizer since the last update().")]
    UnscaleTwice,
    #[error("unscale_() is being called after step().")]
    UnscaleAfterStep,
    #[error("step() has already been called since the last update().")]
    ScalerStepTwice,
    #[error("No inf checks were recorded for this optimizer.")]
    NoInfChecksForOptimizer,
    #[error("No inf checks were recorded prior to update.")]
    NoInfChecksForUpdate,
    #[error("Attempting to unscale FP16 gradients.")]
    UnscaleF16,
    #[error(
        "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
    )]
    EmptyScalerState,
    #[error("the state of a GradScaler has no '{key}'")]
    MissingScalerState { key: &'static str },
    #[error("the state of a GradScaler has {value:?} for '{key}', which is no count")]
    ScalerState { key: &'static str, value: f64 },
    #[error("some parameters appear in more than one parameter group")]
    RepeatedParameter,
    #[error(
        "The total norm of order {norm_type:?} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
    )]
    NonFiniteNorm { norm_type: f64 },

    // Data.
    #[error("Size mismatch between tensors")]
    DatasetSizes,
    #[error("index {index} is out of range for a dataset of {len} samples")]
    DatasetIndex { index: usize, len: usize },
    #[error("datasets should not be an empty iterable")]
    NoDatasets,
    #[error("Sum of input lengths does not equal the length of the input dataset!")]
    SplitLengths,
    #[error("Fraction at index {index} is not between 0 and 1")]
    SplitFraction { index: usize },
    #[error("Invalid rank {rank}, rank should be in the interval [0, {last}]")]
    InvalidRank { rank: usize, last: i64 },
    #[error("{option} should be a positive integer value, but got {option}={value}")]
    NotPositive { option: &'static str, value: usize },
    #[error("{0}")]
    LoaderOptions(String),
    #[error("default_collate: batch must contain at least one sample")]
    EmptyBatch,
    #[error("each element in list of batch should be of equal size")]
    CollateSizes,
    /// What went wrong in a worker, with the error itself as `cause`; of a panic, `kind` is "panic" and
    /// the cause its message.
    #[error("Caught {kind} in DataLoader worker process {worker}.\nOriginal error: {cause}")]
    Worker { worker: usize, kind: &'static str, cause: Arc<Error> },
    /// What went wrong when a batch that a worker had made was pinned.
    #[error("Caught {kind} in pin memory thread for device {device}.\nOriginal error: {cause}")]
    PinThread { kind: &'static str, device: usize, cause: Arc<Error> },
    #[error("DataLoader worker {worker} could not be started: {reason}")]
    WorkerStart { worker: usize, reason: String },
    #[error("DataLoader timed out after {seconds} seconds")]
    LoaderTimeout { seconds: f64 },

    // Devices.
    /// The golden rule: GPU0001.
    #[error("{0}")]
    DeviceMismatch(Box<DeviceMismatch>),
    #[error(
        "Could not run 'aten::record_stream' with arguments from the 'CPU' backend: the memory of the host belongs to no stream"
    )]
    RecordStreamOnHost,
    #[error("cannot pin 'torch.cuda.{}Tensor' only dense CPU tensors can be pinned", .dtype.scalar_type())]
    PinOnDevice { dtype: DType },

    /// An error of the user's own: a dataset's file, a callback's failure.
    #[error("{0}")]
    Custom(String),

    /// An error of a shape, or of the way in which a tensor lies in memory.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// An error of a GPU, of its driver or of its memory.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

/// `torch.cuda.FloatTensor`. PyTorch has no such name for some types.
fn tensor_type((device, dtype): (DeviceType, DType)) -> String {
    let scalar = dtype.scalar_type();
    match (device, dtype) {
        (_, DType::BF16 | DType::Bool) => format!("{}{scalar}Type", device.name().to_uppercase()),
        (DeviceType::Cpu, _) => format!("torch.{scalar}Tensor"),
        (DeviceType::Cuda, _) => format!("torch.cuda.{scalar}Tensor"),
    }
}

impl Error {
    /// The code under which the course explains this error, if it has one. Codes never change.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Error::DeviceMismatch(_) => Some("GPU0001"),
            Error::Gpu(error) => error.code(),
            _ => None,
        }
    }

    /// The whole story: for an error with a code, what took part in it, where that was made, and the fix; for
    /// any other, its message.
    pub fn report(&self) -> String {
        match self {
            Error::DeviceMismatch(mismatch) => mismatch.report(),
            Error::Gpu(error) => error.report(),
            other => other.to_string(),
        }
    }

    /// An error of the caller's own making, for datasets, modules and callbacks.
    pub fn custom(message: impl std::fmt::Display) -> Error {
        Error::Custom(message.to_string())
    }
}

/// Datasets read files.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::custom(error)
    }
}

/// The error of a kernel's twin, for whoever launched it on the host.
impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Error {
        match stopped {
            Stopped::OutOfHostMemory { bytes } => GpuError::OutOfHostMemory { bytes }.into(),
            // Boxed as what it was: an error of this crate, or of the one below.
            Stopped::Because(cause) => cause
                .downcast::<Error>()
                .map(|error| *error)
                .or_else(|cause| cause.downcast::<LayoutError>().map(|error| Error::Layout(*error)))
                .or_else(|cause| cause.downcast::<GpuError>().map(|error| Error::Gpu(*error)))
                .unwrap_or_else(Error::custom),
        }
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        match error {
            Error::Gpu(GpuError::OutOfHostMemory { bytes }) => Stopped::OutOfHostMemory { bytes },
            other => Stopped::Because(Box::new(other)),
        }
    }
}
