//! Which operations autocast runs in which type: PyTorch's lists, for the operations there are.
//!
//! What is on no list runs in the types it is given: `relu`, `add`, `max_pool2d`, `batch_norm`, `gelu`, `dropout`,
//! `mean`.

use crate::device::DeviceType;

/// What autocast does with the operands of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// They are cast to the type of the region: products, which 16 bits make faster and hardly worse.
    LowerPrecision,
    /// They are cast to f32: what grows, cancels or sums up.
    Fp32,
    /// They are cast to the widest of them, be it f32.
    Promote,
}

/// The list that an operation is on.
pub(super) fn policy(operation: &str, device: DeviceType) -> Option<Policy> {
    let policy = match operation {
        "conv2d" | "linear" | "matmul" | "mm" | "addmm" | "bmm" => Policy::LowerPrecision,
        "cross_entropy" | "nll_loss" | "mse_loss" | "l1_loss" => Policy::Fp32,
        // `square` is PyTorch's `pow(x, 2)`, and `norm` its `linalg_vector_norm`.
        "exp" | "log" | "pow" | "square" | "reciprocal" | "rsqrt" | "layer_norm" | "softmax"
        | "log_softmax" | "sum" | "norm" | "softplus" | "cumsum"
            if device == DeviceType::Cuda =>
        {
            Policy::Fp32
        }
        "dot" | "scatter_add" if device == DeviceType::Cuda => Policy::Promote,
        "cat" if device == DeviceType::Cpu => Policy::Promote,
        _ => return None,
    };
    Some(policy)
}
