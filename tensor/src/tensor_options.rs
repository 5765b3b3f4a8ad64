//! The keyword arguments of `torch.zeros`.

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
