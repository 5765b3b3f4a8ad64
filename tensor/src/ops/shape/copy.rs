use half::{bf16, f16};

use crate::autograd::{Context, Function, Saved};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::elementwise::error::ElementwiseError;
use crate::ops::plain::{copy_in, fill, write};
use crate::ops::transfer::copy_over;
use crate::ops::{self, NewValues, Operation, operations};
use crate::shape::MemoryFormat;
use crate::shape::broadcast;
use crate::tensor::Tensor;

/// The options of [`Tensor::copy_with_`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyOptions {
    /// Whether a copy between pinned host memory and a GPU returns at once. Until the copy has run, the host must
    /// neither write to its source nor read its target.
    pub non_blocking: bool,
}

operations! {
    static CLONE: Operation = Operation::new("clone").node("CloneBackward0");
    static COPY: Operation = Operation::new("copy_").node("CopyBackwards");
    static FILL: Operation = Operation::new("fill_").node("FillBackward2");
    static ZERO: Operation = Operation::new("zero_").node("ZeroBackward0");
}

impl Tensor {
    /// Copies the tensor to new memory, recorded by autograd (`Tensor.clone`; in Rust, `clone` copies the handle).
    #[track_caller]
    pub fn copy(&self) -> Result<Tensor> {
        self.copy_in_format(MemoryFormat::Preserve)
    }

    /// Like [`copy`](Self::copy), in a memory format (`Tensor.clone(memory_format=)`).
    #[track_caller]
    pub(in crate::ops) fn copy_in_format(&self, format: MemoryFormat) -> Result<Tensor> {
        ops::apply(Copy { format }, [self])
    }

    /// Returns this tensor if it is contiguous, else a contiguous copy.
    #[track_caller]
    pub fn contiguous(&self) -> Result<Tensor> {
        self.contiguous_in(MemoryFormat::Contiguous)
    }

    /// Returns this tensor if its elements lie in the order of a memory format, else a copy in that format
    /// (`Tensor.contiguous(memory_format=)`).
    ///
    /// ```
    /// # use todevice::{MemoryFormat, Tensor};
    /// let images = Tensor::zeros(&[8, 3, 32, 32])?.contiguous_in(MemoryFormat::ChannelsLast)?;
    /// assert_eq!(images.sizes(), [8, 3, 32, 32]);
    /// assert_eq!(images.strides(), [3072, 1, 96, 3]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    ///
    /// Errors for channels-last unless there are four dimensions.
    #[track_caller]
    pub fn contiguous_in(&self, format: MemoryFormat) -> Result<Tensor> {
        match self.is_contiguous_in(format) {
            true => Ok(self.clone()),
            false => self.copy_in_format(format),
        }
    }

    /// Overwrites this tensor with `source`, broadcast and converted, from any device (`Tensor.copy_`).
    #[track_caller]
    pub fn copy_(&self, source: &Tensor) -> Result<Tensor> {
        self.copy_with_(source, CopyOptions::default())
    }

    /// Like [`copy_`](Self::copy_), with options (`Tensor.copy_(source, non_blocking=True)`).
    ///
    /// Between host and GPU, the bytes are copied directly to this tensor if it is contiguous or has no gaps and the
    /// source's strides, and, on the host, has the source's dtype. Reusing a buffer this way allocates no memory.
    ///
    /// ```
    /// use todevice::{CopyOptions, Device, Machine, Tensor};
    ///
    /// let machine: Machine = "sim:t4".parse()?;
    /// machine.enter(|| {
    ///     let batch = Tensor::ones(&[1000])?.pin_memory()?;
    ///     let buffer = Tensor::zeros((&[1000], Device::cuda(0)))?;
    ///     buffer.copy_with_(&batch, CopyOptions { non_blocking: true })?; // Returns at once.
    ///     assert_eq!(buffer.sum()?.item()?, 1000.0); // The sum comes after the copy, and this waits for it.
    ///     Ok::<(), todevice::Error>(())
    /// })?;
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn copy_with_(&self, source: &Tensor, options: CopyOptions) -> Result<Tensor> {
        let CopyOptions { non_blocking } = options;
        let refused = |error: Error| ops::refused(&COPY, self, error);
        let shape = broadcast(self.sizes(), source.sizes()).map_err(|error| refused(error.into()))?;
        if *shape != *self.sizes() {
            let output = self.sizes().to_vec();
            return Err(refused(
                ElementwiseError::InPlaceBroadcast { output, broadcast: shape.to_vec() }.into(),
            ));
        }
        let device = self.device();
        ops::update(&COPY, self, NewValues::Instead { source: Some(source) }, || {
            match source.device() == device {
                true => write(self, &source.detach().to(self.dtype())?),
                false => copy_over(self, &source.detach(), non_blocking),
            }
        })
    }

    /// Sets every element to `value`.
    #[track_caller]
    pub fn fill_(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        let value = value.into();
        check_fits(value, self.dtype())?;
        ops::update(&FILL, self, NewValues::Constant, || fill(self, value))
    }

    /// Sets every element to zero.
    #[track_caller]
    pub fn zero_(&self) -> Result<Tensor> {
        ops::update(&ZERO, self, NewValues::Constant, || fill(self, Scalar::Int(0)))
    }
}

/// The operation of `copy` and `contiguous`.
struct Copy {
    format: MemoryFormat,
}

impl Function<1> for Copy {
    fn operation(&self) -> &'static Operation {
        &CLONE
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        copy_in(x.layout().in_format(self.format)?, x)
    }

    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.clone())])
    }
}

/// Refuses a number that the dtype cannot hold.
pub(crate) fn check_fits(value: Scalar, dtype: DType) -> Result<()> {
    let number = value.to_f64();
    let fits = match (dtype, value) {
        // A negative integer wraps around, as in C++.
        (DType::U8, Scalar::Int(value)) => (-255..256).contains(&value),
        (DType::U8, _) => (0.0..=255.0).contains(&number),
        (DType::I32, _) => (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number),
        (DType::I64, Scalar::Float(value)) => (i64::MIN as f64..2f64.powi(63)).contains(&value),
        (DType::F32, _) => !number.is_finite() || number.abs() <= f64::from(f32::MAX),
        (DType::F16, _) => !number.is_finite() || number.abs() <= f64::from(f16::MAX),
        (DType::BF16, _) => !number.is_finite() || number.abs() <= f64::from(bf16::MAX),
        _ => true,
    };
    let name = match dtype {
        DType::U8 => "uint8_t",
        DType::I64 => "int64_t",
        other => other.cpp_name(),
    };
    if fits {
        Ok(())
    } else {
        Err(Error::custom(format!("value cannot be converted to type {name} without overflow")))
    }
}
