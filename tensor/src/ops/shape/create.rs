use super::copy::check_fits;
use super::kernels;
use crate::backends::are_deterministic_algorithms_enabled;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, not_implemented};
use crate::operation::enter_uncharged;
use crate::ops::plain::fill;
use crate::ops::{self, Operation, operations};
use crate::options::AndOptions;
use crate::shape::Layout;
use crate::tensor::Tensor;
use crate::tensor_options::TensorOptions;

operations! {
    static FULL: Operation = Operation::new("full");
    static ARANGE: Operation = Operation::new("arange");
    static LINSPACE: Operation = Operation::new("linspace");
    static EYE: Operation = Operation::new("eye");
}

impl Tensor {
    /// Creates an uninitialised tensor (`torch.empty`), filled with NaN, the largest integer or true after
    /// [`use_deterministic_algorithms`](crate::use_deterministic_algorithms).
    #[track_caller]
    pub fn empty<'a>(sizes: impl AndOptions<&'a [usize], TensorOptions>) -> Result<Tensor> {
        let (sizes, options) = sizes.split();
        unwritten(Layout::contiguous(sizes)?, options)
    }

    /// Creates zeros, f32 on the host by default. In a pair with the sizes: a dtype, a device, or [`TensorOptions`].
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
        filled(sizes, Scalar::Int(0), DType::F32, options)
    }

    /// Creates a tensor of ones, with the options of [`zeros`](Self::zeros).
    #[track_caller]
    pub fn ones<'a>(sizes: impl AndOptions<&'a [usize], TensorOptions>) -> Result<Tensor> {
        let (sizes, options) = sizes.split();
        filled(sizes, Scalar::Int(1), DType::F32, options)
    }

    /// The older form of [`zeros`](Self::zeros) with options.
    #[deprecated(note = "write Tensor::zeros((sizes, options))")]
    #[track_caller]
    pub fn zeros_with(sizes: &[usize], options: impl Into<TensorOptions>) -> Result<Tensor> {
        Tensor::zeros((sizes, options))
    }

    /// The older form of [`ones`](Self::ones) with options.
    #[deprecated(note = "write Tensor::ones((sizes, options))")]
    #[track_caller]
    pub fn ones_with(sizes: &[usize], options: impl Into<TensorOptions>) -> Result<Tensor> {
        Tensor::ones((sizes, options))
    }

    /// Creates a tensor filled with a number (`torch.full`): i64 for an integer, f32 for a float, bool for a bool.
    /// Options, in a pair with the number, are a dtype, a device, or [`TensorOptions`].
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// assert_eq!(Tensor::full(&[2], 7)?.to_vec::<i64>()?, [7, 7]);
    /// assert_eq!(Tensor::full(&[2], (7, DType::F32))?.to_vec::<f32>()?, [7.0, 7.0]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn full(sizes: &[usize], value: impl AndOptions<Scalar, TensorOptions>) -> Result<Tensor> {
        let (value, options) = value.split();
        filled(sizes, value, value.dtype(), options)
    }

    /// Creates zeros with the shape, dtype and device of this tensor.
    #[track_caller]
    pub fn zeros_like(&self) -> Result<Tensor> {
        self.full_like(0)
    }

    /// Creates ones with the shape, dtype and device of this tensor.
    #[track_caller]
    pub fn ones_like(&self) -> Result<Tensor> {
        self.full_like(1)
    }

    /// Creates a tensor filled with a number, with the shape, dtype and device of this tensor (`torch.full_like`).
    /// Errors if the dtype cannot hold the number.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let x = Tensor::new([[1, 2], [3, 4]])?;
    /// assert_eq!(x.full_like(7)?.to_vec::<i64>()?, [7; 4]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        full_in(self.layout().like()?, value.into(), self.into())
    }

    /// Creates an [`empty`](Self::empty) tensor with this tensor's shape, dtype and device (`torch.empty_like`).
    #[track_caller]
    pub fn empty_like(&self) -> Result<Tensor> {
        unwritten(self.layout().like()?, self.into())
    }

    /// Creates a tensor filled with a number, with the dtype and device of this tensor (`Tensor.new_full`). Instead of
    /// `new_zeros`, use `Tensor::zeros((sizes, &x))`.
    #[track_caller]
    pub fn new_full(&self, sizes: &[usize], value: impl Into<Scalar>) -> Result<Tensor> {
        Tensor::full(sizes, (value.into(), self))
    }

    /// Creates `start, start + step, …` up to but excluding `end` (`torch.arange`): i64 if all three are integers, else
    /// f32. Options, in a pair with the step, are a dtype, a device, or [`TensorOptions`].
    ///
    /// ```
    /// # use todevice::{DType, Tensor};
    /// assert_eq!(Tensor::arange(0, 6, 2)?.to_vec::<i64>()?, [0, 2, 4]);
    /// assert_eq!(Tensor::arange(0, 6, (2, DType::F32))?.to_vec::<f32>()?, [0.0, 2.0, 4.0]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn arange(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl AndOptions<Scalar, TensorOptions>,
    ) -> Result<Tensor> {
        let (step, options) = step.split();
        ranged([start.into(), end.into(), step], options)
    }

    /// Creates `steps` values evenly spaced from `start` to `end`, both included, f32 by default. Options, in a pair
    /// with `steps`, are a dtype, a device, or [`TensorOptions`].
    #[track_caller]
    pub fn linspace(start: f64, end: f64, steps: impl AndOptions<usize, TensorOptions>) -> Result<Tensor> {
        let (steps, options) = steps.split();
        spaced(start, end, steps, options)
    }

    /// Creates the n × n identity matrix, f32 by default, with the options of [`zeros`](Self::zeros).
    #[track_caller]
    pub fn eye(n: impl AndOptions<usize, TensorOptions>) -> Result<Tensor> {
        let (n, options) = n.split();
        made(&EYE, Layout::counted(&[n, n])?, DType::F32, options, &kernels::eye)
    }
}

#[track_caller]
fn filled(sizes: &[usize], value: Scalar, dtype: DType, options: TensorOptions) -> Result<Tensor> {
    full_in(
        Layout::contiguous(sizes)?,
        value,
        TensorOptions { dtype: options.dtype.or(Some(dtype)), ..options },
    )
}

/// The non-generic part of [`Tensor::full`] and [`Tensor::full_like`].
#[track_caller]
fn full_in(layout: Layout, value: Scalar, options: TensorOptions) -> Result<Tensor> {
    made(&FULL, layout, value.dtype(), options, &|out| {
        check_fits(value, out.dtype())?;
        fill(out, value)
    })
}

#[cold]
#[inline(never)]
fn unsupported_range(start: f64, end: f64) -> Error {
    Error::custom(format!("unsupported range: {start} -> {end}").replace("NaN", "nan"))
}

/// The non-generic part of [`Tensor::empty`].
#[track_caller]
fn unwritten(layout: Layout, options: TensorOptions) -> Result<Tensor> {
    let _scope = enter_uncharged("empty")?;
    let dtype = options.dtype.unwrap_or(DType::F32);
    let tensor = Tensor::uninit_on(options.device, layout, dtype)?;
    if are_deterministic_algorithms_enabled() {
        fill(
            &tensor,
            match dtype {
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

/// The non-generic part of [`Tensor::arange`].
#[track_caller]
fn ranged([start, end, step]: [Scalar; 3], options: TensorOptions) -> Result<Tensor> {
    let any_float = [start, end, step].iter().any(|number| matches!(number, Scalar::Float(_)));
    let dtype = options.dtype.unwrap_or(if any_float { DType::F32 } else { DType::I64 });
    if dtype == DType::Bool {
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
    if whole_step == 0 && !dtype.is_floating_point() {
        return Err(Error::custom("step must be an integer for a tensor of integers"));
    }
    let count = match dtype {
        // An f64 cannot distinguish 2⁵³ from 2⁵³ + 1, so the ends are converted to integers first.
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
    made(&ARANGE, Layout::contiguous(&[count])?, dtype, options, &|out| {
        kernels::arange(out, [first, whole_step], [start.to_f64(), step.to_f64()])
    })
}

/// The non-generic part of [`Tensor::linspace`].
#[track_caller]
fn spaced(start: f64, end: f64, steps: usize, options: TensorOptions) -> Result<Tensor> {
    made(&LINSPACE, Layout::contiguous(&[steps])?, DType::F32, options, &|out| {
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

/// Creates a tensor, of `dtype` unless the options have another, and fills it on its device.
#[track_caller]
pub(crate) fn made(
    operation: &'static Operation,
    layout: Layout,
    dtype: DType,
    options: TensorOptions,
    fill: &dyn Fn(&Tensor) -> Result<()>,
) -> Result<Tensor> {
    ops::call(operation, &[], |_| {
        let tensor = Tensor::uninit_on(options.device, layout, options.dtype.unwrap_or(dtype))?;
        fill(&tensor)?;
        if options.requires_grad { tensor.requiring_grad() } else { Ok(tensor) }
    })
}
