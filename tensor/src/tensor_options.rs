//! The keyword arguments of `torch.zeros` and of `Tensor.to`.

use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::options::impl_and_options_for_pairs;
use crate::tensor::Tensor;

/// The keyword arguments of `torch.zeros(..., dtype=, device=, requires_grad=)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TensorOptions {
    /// The dtype. By default [`Tensor::full`](crate::Tensor::full) and [`Tensor::arange`](crate::Tensor::arange) infer
    /// it from their numbers; everything else is f32.
    pub dtype: Option<DType>,
    /// The device to create the tensor on.
    pub device: Device,
    /// Whether to record operations on the tensor and accumulate its gradient.
    pub requires_grad: bool,
}

impl_and_options_for_pairs! {
    ['a,] &'a [usize], TensorOptions;
    [] usize, TensorOptions;
    [] Scalar, TensorOptions;
}

impl From<DType> for TensorOptions {
    fn from(dtype: DType) -> TensorOptions {
        TensorOptions { dtype: Some(dtype), ..Default::default() }
    }
}

impl From<Device> for TensorOptions {
    fn from(device: Device) -> TensorOptions {
        TensorOptions { device, ..Default::default() }
    }
}

/// The dtype and device of an existing tensor, to create another one like it.
impl From<&Tensor> for TensorOptions {
    fn from(like: &Tensor) -> TensorOptions {
        (like.device(), like.dtype()).into()
    }
}

impl From<(Device, DType)> for TensorOptions {
    fn from((device, dtype): (Device, DType)) -> TensorOptions {
        TensorOptions { device, dtype: Some(dtype), ..Default::default() }
    }
}

/// The destination of [`Tensor::to`](crate::Tensor::to): a device, a dtype, or both. Anything not given stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToOptions {
    /// The device to move to.
    pub device: Option<Device>,
    /// The dtype to convert to.
    pub dtype: Option<DType>,
    /// Copies even when nothing changes.
    pub copy: bool,
    /// Does not wait for copies between host and GPU that the GPU can make by itself: those from pinned memory
    /// ([`Tensor::pin_memory`](crate::Tensor::pin_memory)), and all copies to the host, whose result is in pinned memory.
    /// Until a synchronization shows that the copy is done, do not write to its source or read its result.
    pub non_blocking: bool,
}

impl From<Device> for ToOptions {
    fn from(device: Device) -> ToOptions {
        ToOptions { device: Some(device), ..Default::default() }
    }
}

impl From<DType> for ToOptions {
    fn from(dtype: DType) -> ToOptions {
        ToOptions { dtype: Some(dtype), ..Default::default() }
    }
}

impl From<(Device, DType)> for ToOptions {
    fn from((device, dtype): (Device, DType)) -> ToOptions {
        ToOptions { device: Some(device), dtype: Some(dtype), ..Default::default() }
    }
}
