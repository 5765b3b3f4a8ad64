//! Tensors from nothing but a shape or a range.

use super::copy::check_fits;
use super::kernels;
use crate::backends::are_deterministic_algorithms_enabled;
use crate::dtype::{DType, Scalar};
use crate::enter::enter_uncharged;
use crate::error::dtype::not_implemented;
use crate::error::{Error, Result};
use crate::ops::plain::fill;
use crate::ops::{self, Operation, operations};
use crate::options::AndOptions;
use crate::shape::Layout;
use crate::tensor::{Tensor, TensorOptions};

operations! {
    FULL: Operation::new("full");
    ARANGE: Operation::new("arange");
    LINSPACE: Operation::new("linspace");
    EYE: Operation::new("eye");
}

impl Tensor {
    /// A tensor of unspecified contents (`torch.empty`); of NaN, the largest integer or true after
    /// [`use_deterministic_algorithms`](crate::use_deterministic_algorithms).
    #[track_caller]
    pub fn empty(sizes: &[usize], options: impl Into<TensorOptions>) -> Result<Tensor> {
        let _scope = enter_uncharged("empty")?;
        let options = options.into();
        let tensor = Tensor::uninit_on(options.device, sizes, options.dtype)?;
        if are_deterministic_algorithms_enabled() {
            fill(
                &tensor,
                match options.dtype {
                    DType::Bool => Scalar::Bool(true),
                    DType::U8 => Scalar::Int(u8::MAX.into()),
                    DType::I32 => Scalar::Int(i32::MAX.into()),
                    DType::I64 => Scalar::Int(i64::MAX),
                    DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Scalar::Float(f64::NAN),
                },
            )?;
        }
        if options.requires_grad { tensor.requiring_grad() } else { Ok(tensor) }
    }

    /// All zeros: f32 on the host, or as options in a pair with the sizes say, which are a type, a device, or
    /// [`TensorOptions`].
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// let x = Tensor::zeros(&[2, 3])?;
    /// let classes = Tensor::zeros((&[2], DType::I64))?;
    /// assert_eq!((x.dtype(), classes.dtype()), (DType::F32, DType::I64));
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn zeros<'a>(sizes: impl AndOptions<&'a [usize], TensorOptions>) -> Result<Tensor> {
        let (sizes, options) = sizes.split();
        Tensor::full(sizes, 0, options)
    }

    /// All ones; options as of [`zeros`](Self::zeros).
    #[track_caller]
    pub fn ones<'a>(sizes: impl AndOptions<&'a [usize], TensorOptions>) -> Result<Tensor> {
        let (sizes, options) = sizes.split();
        Tensor::full(sizes, 1, options)
    }

    /// The older form of [`zeros`](Self::zeros) with options.
    #[deprecated(note = "write Tensor::zeros((sizes, options))")]
    #[track_caller]
    pub fn zeros_with(sizes: &[usize], options: impl Into<TensorOptions>) -> Result<Tensor> {
        Tensor::full(sizes, 0, options)
    }

    /// The older form of [`ones`](Self::ones) with options.
    #[deprecated(note = "write Tensor::ones((sizes, options))")]
    #[track_caller]
    pub fn ones_with(sizes: &[usize], options: impl Into<TensorOptions>) -> Result<Tensor> {
        Tensor::full(sizes, 1, options)
    }

    /// Every element the same; `options` is a type, a device, or [`TensorOptions`].
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// assert_eq!(Tensor::full(&[2], 7, DType::I64)?.to_vec::<i64>()?, [7, 7]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn full(
        sizes: &[usize],
        value: impl Into<Scalar>,
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let options = options.into();
        let value = value.into();
        made(&FULL, sizes, options, |out| {
            check_fits(value, options.dtype)?;
            fill(out, value)
        })
    }

    /// Zeros in the shape and type of this tensor, where it is.
    #[track_caller]
    pub fn zeros_like(&self) -> Result<Tensor> {
        self.full_like(0)
    }

    /// Ones in the shape and type of this tensor, where it is.
    #[track_caller]
    pub fn ones_like(&self) -> Result<Tensor> {
        self.full_like(1)
    }

    /// The same number everywhere, in the shape and type of this tensor, where it is (`torch.full_like`). Errors on a number
    /// that the type cannot hold.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let x = Tensor::new([[1, 2], [3, 4]])?;
    /// assert_eq!(x.full_like(7)?.to_vec::<i64>()?, [7; 4]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        self.new_full(self.sizes(), value)
    }

    /// Unspecified contents in the shape and type of this tensor, where it is (`torch.empty_like`); see
    /// [`empty`](Self::empty).
    #[track_caller]
    pub fn empty_like(&self) -> Result<Tensor> {
        Tensor::empty(self.sizes(), self)
    }

    /// The same number everywhere, in the type and on the device of this tensor (`Tensor.new_full`). For `new_zeros` and
    /// its like there is `Tensor::zeros((sizes, &x))`.
    #[track_caller]
    pub fn new_full(&self, sizes: &[usize], value: impl Into<Scalar>) -> Result<Tensor> {
        Tensor::full(sizes, value, self)
    }

    /// `start, start + step, …`, all below `end` (above it, for a negative step).
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// assert_eq!(Tensor::arange(0, 6, 2, DType::I64)?.to_vec::<i64>()?, [0, 2, 4]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn arange(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let (start, end, step) = (start.into(), end.into(), step.into());
        let options = options.into();
        if options.dtype == DType::Bool {
            return Err(not_implemented("arange_cpu", DType::Bool));
        }
        if step.to_f64() == 0.0 || step.to_f64().is_nan() {
            return Err(Error::custom("step must be nonzero"));
        }
        let span = end.to_f64() - start.to_f64();
        if !start.to_f64().is_finite() || !end.to_f64().is_finite() {
            return Err(unsupported_range(start.to_f64(), end.to_f64()));
        }
        if span * step.to_f64() < 0.0 {
            return Err(Error::custom("upper bound and lower bound inconsistent with step sign"));
        }
        let (first, whole_step) = (start.to_i64(), step.to_i64());
        if whole_step == 0 && !options.dtype.is_floating_point() {
            return Err(Error::custom("step must be a whole number for a tensor of whole numbers"));
        }
        let count = match options.dtype {
            // An f64 does not tell 2⁵³ from 2⁵³ + 1, so here the ends are whole numbers first.
            DType::I64 => {
                let (span, step) = (i128::from(end.to_i64()) - i128::from(first), i128::from(whole_step));
                let count = (span / step + i128::from(span % step != 0)).max(0);
                usize::try_from(count).unwrap_or(usize::MAX)
            }
            _ => (span / step.to_f64()).ceil() as usize,
        };
        if count > isize::MAX as usize {
            return Err(Error::custom("invalid size, possible overflow?"));
        }
        made(&ARANGE, &[count], options, |out| {
            kernels::arange(out, [first, whole_step], [start.to_f64(), step.to_f64()])
        })
    }

    /// `steps` values evenly spaced from `start` to `end`, both included.
    #[track_caller]
    pub fn linspace(start: f64, end: f64, steps: usize, options: impl Into<TensorOptions>) -> Result<Tensor> {
        made(&LINSPACE, &[steps], options.into(), |out| {
            let (dtype, ends) = (out.dtype(), [start, end].map(Scalar::Float));
            match steps {
                0 => Ok(()),
                1 => check_fits(ends[0], dtype).and_then(|()| fill(out, ends[0])),
                _ if dtype == DType::Bool => Err(not_implemented("linspace_cpu", dtype)),
                _ => {
                    ends.into_iter().try_for_each(|end| check_fits(end, dtype))?;
                    kernels::linspace(out, start, end)
                }
            }
        })
    }

    /// The identity matrix of size n × n.
    #[track_caller]
    pub fn eye(n: usize, options: impl Into<TensorOptions>) -> Result<Tensor> {
        Layout::counted(&[n, n])?;
        made(&EYE, &[n, n], options.into(), kernels::eye)
    }
}

#[cold]
#[inline(never)]
fn unsupported_range(start: f64, end: f64) -> Error {
    Error::custom(format!("unsupported range: {start} -> {end}").replace("NaN", "nan"))
}

/// A new tensor, filled where it is.
#[track_caller]
pub(crate) fn made(
    operation: &'static Operation,
    sizes: &[usize],
    options: TensorOptions,
    fill: impl FnOnce(&Tensor) -> Result<()>,
) -> Result<Tensor> {
    ops::call(operation, &[], |_| {
        let tensor = Tensor::uninit_on(options.device, sizes, options.dtype)?;
        fill(&tensor)?;
        if options.requires_grad { tensor.requiring_grad() } else { Ok(tensor) }
    })
}
