use crate::place::Place;

use crate::device::{Device, DeviceType};
use crate::dtype::DType;
use crate::error::{Refusal, tensor_type};

/// An error of autograd.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum AutogradError {
    #[error(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
    )]
    BackwardTwice,
    #[error("element 0 of tensors does not require grad and does not have a grad_fn")]
    NoGraph,
    #[error(
        "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\nNumber of tensors saved during forward: {first}\nNumber of tensors saved during recomputation: {again}."
    )]
    CheckpointCount { first: usize, again: usize },
    #[error(
        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass.\n{tensors}."
    )]
    CheckpointMeta { tensors: String },
    #[error("grad can be implicitly created only for scalar outputs")]
    ImplicitGradient,
    #[error(
        "Mismatch in shape: grad_output[0] has a shape of torch.Size({grad:?}) and output[0] has a shape of torch.Size({output:?})."
    )]
    GradientShape { grad: Vec<usize>, output: Vec<usize> },
    #[error(
        "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."
    )]
    UnusedInGraph,
    #[error("One of the differentiated Tensors does not require grad")]
    DoesNotRequireGrad,
    #[error(
        "The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot have requires_grad True."
    )]
    NotDifferentiable { function: &'static str, argument: &'static str },
    #[error(
        "Function {function} returned an invalid gradient at index {index} - got {got:?} but expected shape compatible with {expected:?}"
    )]
    InvalidGradient { function: &'static str, index: usize, got: Vec<usize>, expected: Vec<usize> },
    #[error(
        "{}invalid gradient at index {index} - expected device {expected} but got {got}",
        .function.map(|function| format!("Function {function} returned an ")).unwrap_or_default()
    )]
    InvalidGradientDevice { function: Option<&'static str>, index: usize, got: Device, expected: Device },
    #[error("one of the variables needed for gradient computation has been modified by an inplace operation: [{} {sizes:?}]{}is at version {version}; expected version {expected} instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).\nnote: it was saved by the operation called at {place}", tensor_type(*.tensor), .output_of.map_or(" ".to_string(), |node| format!(", which is output 0 of {}, ", cpp_name(node))))]
    ModifiedInPlace {
        tensor: (DeviceType, DType),
        sizes: Vec<usize>,
        output_of: Option<&'static str>,
        version: u64,
        expected: u64,
        place: Place,
    },
    #[error("a leaf Variable that requires grad is being used in an in-place operation.")]
    LeafInPlace,
    #[error("a view of a leaf Variable that requires grad is being used in an in-place operation.")]
    LeafViewInPlace,
    #[error("{text}")]
    ViewWritten { text: String },
    #[error(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
    )]
    InferenceInPlace,
    #[error(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
    )]
    InferenceSaved,
    #[error("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")]
    InferenceRequiresGrad,
    #[error("only Tensors of floating point dtype can require gradients")]
    RequiresGradDType,
    #[error("Only Tensors of floating point and complex dtype can require gradients")]
    MadeToRequireGrad,
    #[error("you can only change requires_grad flags of leaf variables.{}", if *.to { "" } else { " If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()." })]
    RequiresGradNonLeaf { to: bool },
    #[error(
        "attempting to assign a gradient of size '{grad:?}' to a tensor of size '{tensor:?}'. Please ensure that the gradient and the tensor are the same size"
    )]
    AssignGradient { grad: Vec<usize>, tensor: Vec<usize> },
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
}

todevice_gpu::debug_is_message!(AutogradError);

impl Refusal for AutogradError {}

/// The name of a node in C++, which PyTorch's errors print.
pub(super) fn cpp_name(node: &str) -> String {
    if node == "CopySlices" { "torch::autograd::CopySlices".to_owned() } else { node.to_owned() }
}
