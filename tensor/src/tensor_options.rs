//! The keyword arguments of `torch.zeros`.

use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::options::impl_and_options_for_pairs;
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
