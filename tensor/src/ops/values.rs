//! Conversion between tensors and Rust values, and printing.

use std::fmt;

use half::{bf16, f16};

use crate::cpu::reserve::collect;
use crate::dtype::{DType, Element, Memory, Scalar, with_dtype};
use crate::error::{DTypeError, Result, TensorError};
use crate::host_context::HostContext;
use crate::kernel::Cost;
use crate::operation::enter_uncharged;
use crate::ops::access::access;
use crate::ops::launch::work_on;
use crate::ops::plain::contiguous;
use crate::ops::transfer::to_host;
use crate::print;
use crate::scope;
use crate::shape::Layout;
use crate::tensor::Tensor;

impl Tensor {
    /// Creates a tensor from `data` in row-major order, with its dtype, f64 and i32 included (`torch.from_numpy`).
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// assert_eq!(Tensor::from_slice(&[0.1, 0.2], &[2])?.dtype(), DType::F64);
    /// assert_eq!(Tensor::from_slice(&[1, 2], &[2])?.dtype(), DType::I32);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn from_slice<T: Element>(data: &[T], sizes: &[usize]) -> Result<Tensor> {
        let tensor = room_for(data.len(), sizes, T::DTYPE)?;
        access([], [&tensor], |[], [out]| {
            for (out, value) in out.elements::<T::Stored>().iter_mut().zip(data) {
                *out = value.store();
            }
        })?;
        Ok(tensor)
    }

    /// Creates a tensor from nested arrays, slices or vectors, or from one number (`torch.tensor`).
    ///
    /// Literals get PyTorch's dtypes: `1.0`, an f64 in Rust, makes an f32 tensor, and `1`, an i32, an i64 tensor.
    /// Numbers of other types keep their type. Only [`Tensor::from_slice`] keeps all digits of an f64.
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// let x = Tensor::new([[1.0, 2.0], [3.0, 4.0]])?;
    /// assert_eq!((x.sizes(), x.dtype()), (&[2, 2][..], DType::F32));
    /// assert_eq!(Tensor::new([1, 2])?.dtype(), DType::I64);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn new<D: NestedData>(data: D) -> Result<Tensor> {
        let mut sizes = Vec::new();
        data.sizes(&mut sizes);
        let mut values = Vec::new();
        data.flatten(&sizes, 0, &mut values)?;
        Tensor::from_slice(&values, &sizes)
    }
}

/// Allocates a tensor for `got` values. Unlike [`Tensor::from_slice`], it is not generic.
#[track_caller]
fn room_for(got: usize, sizes: &[usize], dtype: DType) -> Result<Tensor> {
    let _scope = enter_uncharged("tensor")?;
    let expected: usize = Layout::contiguous(sizes)?.numel();
    if got != expected {
        return Err(TensorError::DataLength { got, expected, sizes: sizes.to_vec() }.into());
    }
    let tensor = Tensor::uninit(sizes, dtype)?;
    HostContext::charge(|host| host.kernel_time(&work_on(&tensor, Cost::Cheap)));
    Ok(tensor)
}

impl Tensor {
    /// Returns all values in row-major order. On a GPU, this copies them to the host, after all queued work.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let _scope = enter_uncharged("tolist")?;
        if T::DTYPE != self.dtype() {
            return Err(DTypeError::Read { held: self.dtype(), asked: T::DTYPE }.into());
        }
        let values = contiguous(&to_host(self)?)?;
        HostContext::charge(|host| host.kernel_time(&work_on(&values, Cost::Cheap)));
        access([&values], [], |[input], []| {
            let values: &[T::Stored] = input.elements();
            collect(values.iter().map(|value| T::load(*value)), values.len())
        })?
    }

    /// Returns the value of a one-element tensor as f64 (`Tensor.item`). On a GPU, this copies it to the host, after
    /// all queued work. An f32 loss prints as `2.3025851249694824`, the f64 equal to it.
    ///
    /// Errors unless there is one element, and for an integer beyond 2⁵³ that no f64 equals; `to_vec::<i64>` reads it.
    #[track_caller]
    pub fn item(&self) -> Result<f64> {
        match self.scalar()? {
            Scalar::Int(value) if value as f64 as i128 != i128::from(value) => {
                Err(TensorError::NoF64 { value }.into())
            }
            value => Ok(value.to_f64()),
        }
    }

    #[track_caller]
    pub(crate) fn scalar(&self) -> Result<Scalar> {
        let _scope = enter_uncharged("item")?;
        if self.numel() != 1 {
            return Err(TensorError::NotAScalar { numel: self.numel() }.into());
        }
        let is_whole = matches!(self.dtype(), DType::U8 | DType::I32 | DType::I64);
        access([&to_host(self)?], [], |[input], []| {
            Ok(with_dtype!(self.dtype(), T => {
                let value = input.values::<T>()[input.layout.offset].widen();
                match self.dtype() {
                    #[allow(clippy::unnecessary_cast)] // Needed for f64.
                    DType::Bool => Scalar::Bool(value as f64 != 0.0),
                    #[allow(clippy::unnecessary_cast)] // Needed for i64.
                    _ if is_whole => Scalar::Int(value as i64),
                    #[allow(clippy::unnecessary_cast)] // Needed for f64.
                    _ => Scalar::Float(value as f64),
                }
            }))
        })?
    }

    /// Returns whether a one-element tensor is nonzero.
    #[track_caller]
    pub fn is_nonzero(&self) -> Result<bool> {
        if self.numel() != 1 {
            return Err(TensorError::AmbiguousTruth { numel: self.numel() }.into());
        }
        Ok(match self.scalar()? {
            Scalar::Int(value) => value != 0,
            value => value.to_f64() != 0.0,
        })
    }
}

impl Tensor {
    pub(crate) fn values(&self) -> Result<print::Values> {
        // Widened on the host, so the GPU only copies bytes.
        let plain = to_host(&self.detach())?;
        Ok(match self.dtype() {
            DType::Bool => print::Values::Bool(plain.to_vec()?),
            DType::U8 | DType::I32 | DType::I64 => print::Values::Int(plain.to(DType::I64)?.to_vec()?),
            _ => print::Values::Float(plain.to(DType::F64)?.to_vec()?),
        })
    }
}

/// Prints like PyTorch: `tensor([1., 2.], requires_grad=True)`.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (device, dtype) = (self.device().to_string(), self.dtype().to_string());
        let gradient = match (self.grad_fn(), self.requires_grad()) {
            _ if self.check_history().is_err() => Some("grad_fn=<Invalid>".to_string()),
            (Some(node), _) => Some(format!("grad_fn=<{node}>")),
            (None, true) => Some("requires_grad=True".to_string()),
            (None, false) => None,
        };
        let facts = print::Facts {
            device: self.is_cuda().then_some(&device),
            dtype: &dtype,
            gradient: gradient.as_deref(),
        };
        let _scope = scope::printing(self.place());
        match self.values() {
            Ok(values) => f.write_str(&print::tensor(&values, self.sizes(), &facts)),
            // `to_string` would panic if this returned an error.
            Err(error) => write!(f, "tensor(<values cannot be read: {error}>)"),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Data for [`Tensor::new`]: numbers, and arrays, slices and vectors of such data.
pub trait NestedData {
    /// The element type of the tensor.
    type Item: Element;
    /// Appends the size of each level, taken from its first element.
    #[doc(hidden)]
    fn sizes(&self, sizes: &mut Vec<usize>);
    /// Appends the values. Refuses ragged data.
    #[doc(hidden)]
    fn flatten(&self, sizes: &[usize], dim: usize, values: &mut Vec<Self::Item>) -> Result<()>;
}

macro_rules! impl_nested_data_for_numbers {
    ($($type:ty => $Item:ty: $convert:expr),*) => {$(
        impl NestedData for $type {
            type Item = $Item;

            fn sizes(&self, _: &mut Vec<usize>) {}

            fn flatten(&self, _: &[usize], _: usize, values: &mut Vec<$Item>) -> Result<()> {
                values.push($convert(*self));
                Ok(())
            }
        }
    )*};
    ($($type:ty),*) => { impl_nested_data_for_numbers!($($type => $type: std::convert::identity),*); };
}
impl_nested_data_for_numbers!(f64 => f32: |value: f64| value as f32, i32 => i64: i64::from);
impl_nested_data_for_numbers!(f32, f16, bf16, i64, u8, bool);

impl<D: NestedData> NestedData for [D] {
    type Item = D::Item;

    fn sizes(&self, sizes: &mut Vec<usize>) {
        sizes.push(self.len());
        if let Some(first) = self.first() {
            first.sizes(sizes);
        }
    }

    fn flatten(&self, sizes: &[usize], dim: usize, values: &mut Vec<D::Item>) -> Result<()> {
        if self.len() != sizes[dim] {
            return Err(TensorError::RaggedData { expected: sizes[dim], got: self.len(), dim }.into());
        }
        self.iter().try_for_each(|inner| inner.flatten(sizes, dim + 1, values))
    }
}

macro_rules! impl_nested_data_as_slice {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<D: NestedData, $($generics)*> NestedData for $type {
            type Item = D::Item;

            fn sizes(&self, sizes: &mut Vec<usize>) {
                self[..].sizes(sizes);
            }

            fn flatten(&self, sizes: &[usize], dim: usize, values: &mut Vec<D::Item>) -> Result<()> {
                self[..].flatten(sizes, dim, values)
            }
        }
    )*};
}
impl_nested_data_as_slice!([const N: usize] [D; N], [] Vec<D>, [] &[D], [const N: usize] &[D; N]);
