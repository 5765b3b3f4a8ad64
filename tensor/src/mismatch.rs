//! GPU0001, operands on two devices: PyTorch's message and the origin of both operands.

use crate::device::Device;
use crate::error::{DeviceMismatch, Error, GpuError, MismatchedTensor};
use crate::host_context::HostContext;
use crate::moves;
use crate::operation::ArgumentNames;
use crate::scope;
use crate::tensor::Tensor;

#[cold]
pub(crate) fn mismatch(
    name: &'static str,
    arguments: Option<ArgumentNames>,
    inputs: &[&Tensor],
    pair: [usize; 2],
) -> Error {
    let [a, b] = pair.map(|i| inputs[i].device());
    // Devices of two machines may share a name: "cuda:0 and cuda:0" would explain nothing.
    if let (Device::Cuda { machine, .. }, Device::Cuda { machine: other, .. }) = (a, b)
        && machine != other
    {
        let here = other == HostContext::current_id();
        return GpuError::OtherMachine { device: if here { a } else { b } }.into();
    }
    let called = |i: usize| match arguments {
        Some(ArgumentNames { names, .. }) => names[i.min(names.len() - 1)].to_string(),
        None => ["self", "other"].get(i).map_or(format!("argument {i}"), |name| name.to_string()),
    };
    let sentence = match arguments {
        Some(ArgumentNames { method, .. }) => format!(
            "Expected all tensors to be on the same device, but got {} is on {b}, different from other tensors on \
             {a} (when checking argument in method {method})",
            called(pair[1])
        ),
        None => {
            // PyTorch names the GPU first.
            let (a, b) = if a.is_cuda() { (a, b) } else { (b, a) };
            format!(
                "Expected all tensors to be on the same device, but found at least two devices, {a} and {b}!"
            )
        }
    };
    let operands = pair.map(|i| operand(called(i), inputs[i]));
    let behind = if b.is_cuda() && !a.is_cuda() { pair[0] } else { pair[1] };
    let unlisted = moves::unlisted(inputs[behind], if behind == pair[0] { b } else { a });
    Error::DeviceMismatch(Box::new(DeviceMismatch {
        sentence,
        operation: name,
        place: scope::here(),
        operands,
        fix: None,
        unlisted,
    }))
}

fn operand(name: String, tensor: &Tensor) -> MismatchedTensor {
    MismatchedTensor {
        name,
        sizes: tensor.sizes().to_vec(),
        device: tensor.device(),
        made: tensor.place(),
        moved: tensor.moved(),
        learned: tensor.is_leaf() && tensor.requires_grad(),
    }
}
