//! Selection along one dimension, with broadcasting along the others.

use super::error::IndexError;
use super::kernels::REMAINDER;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::launch::launch;
use crate::ops::plain::number;
use crate::ops::{self, Operation, operations};
use crate::shape::{broadcast, signed};
use crate::tensor::Tensor;

operations! {
    TAKE_ALONG_DIM: Operation::new("take_along_dim").composite();
    REMAINDER_OF_SIZE: Operation::new("remainder");
}

impl Tensor {
    /// Like [`gather`](Self::gather), but the tensors broadcast in all dimensions except `dim`, and indices wrap
    /// around: −1 is the last entry. Without `dim`, both are flattened, and nothing wraps (`torch.take_along_dim`).
    ///
    /// The positions can come from [`argmax`](Self::argmax):
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let x = Tensor::new([[3.0, 9.0, 4.0], [8.0, 1.0, 2.0]])?;
    /// let largest = x.take_along_dim(&x.argmax(1, true)?, 1)?;
    /// assert_eq!(largest.to_vec::<f32>()?, [9.0, 8.0]);
    /// assert_eq!(largest.sizes(), [2, 1]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn take_along_dim(&self, indices: &Tensor, dim: impl Into<Option<i64>>) -> Result<Tensor> {
        let dim = dim.into();
        ops::call(&TAKE_ALONG_DIM, &[self, indices], |_| {
            if indices.device() != self.device() {
                return Err(IndexError::TakeDevice { device: self.device(), got: indices.device() }.into());
            }
            match dim {
                Some(dim) => take_along(self, indices, dim),
                None => self.view(&[-1])?.gather(0, &indices.view(&[-1])?),
            }
        })
    }
}

fn take_along(x: &Tensor, indices: &Tensor, dim: i64) -> Result<Tensor> {
    if x.ndim() != indices.ndim() {
        return Err(IndexError::TakeDims { input: x.ndim(), indices: indices.ndim() }.into());
    }
    if indices.dtype() != DType::I64 {
        return Err(IndexError::TakeDType { got: indices.dtype() }.into());
    }
    let dim = x.layout().dim(dim)?;
    let (size, taken) = (x.size(dim as i64)?, indices.size(dim as i64)?);
    let with = |sizes: &[usize], size: usize| {
        let mut sizes = sizes.to_vec();
        sizes[dim] = size;
        sizes
    };
    let indices_sizes = broadcast(&with(x.sizes(), taken), indices.sizes())?;
    let x_sizes = broadcast(&with(indices.sizes(), size), x.sizes())?;
    let indices = remainder(&indices.expand(&signed(&indices_sizes))?, size)?;
    x.expand(&signed(&x_sizes))?.gather(dim as i64, &indices)
}

/// Reduces indices to the range from 0 up to the size.
fn remainder(indices: &Tensor, size: usize) -> Result<Tensor> {
    if size == 0 && indices.numel() > 0 {
        return Err(Error::custom("ZeroDivisionError"));
    }
    ops::call(&REMAINDER_OF_SIZE, &[indices], |_| {
        let out = indices.uninit_beside(indices.sizes(), DType::I64)?;
        launch(
            REMAINDER.only(),
            [indices, &number(Scalar::Int(size as i64), DType::I64)?],
            [&out],
            &[],
            &[],
        )?;
        Ok(out)
    })
}
