use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::options::in_pair;
use crate::tensor::Tensor;

/// The keyword arguments of `torch.zeros(..., dtype=, device=, requires_grad=)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TensorOptions {
    /// The dtype. Default: f32, but [`Tensor::full`](crate::Tensor::full) and [`Tensor::arange`](crate::Tensor::arange)
    /// infer it from their numbers.
    pub dtype: Option<DType>,
    /// The device of the tensor.
    pub device: Device,
    /// Whether autograd records operations on the tensor.
    pub requires_grad: bool,
}

in_pair! {
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

/// Takes the dtype and device of an existing tensor.
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

/// The destination of [`Tensor::to`](crate::Tensor::to): a device, a dtype, or both. A default changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToOptions {
    /// The device to copy to.
    pub device: Option<Device>,
    /// The dtype to convert to.
    pub dtype: Option<DType>,
    /// Whether to copy even if nothing changes.
    pub copy: bool,
    /// Whether to skip the wait for copies that the GPU makes alone: from pinned memory
    /// ([`Tensor::pin_memory`](crate::Tensor::pin_memory)) to the GPU, and from the GPU to the host, where the result
    /// is in pinned memory. Before the next synchronization, do not write to the source or read the result.
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
