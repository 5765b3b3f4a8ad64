use super::error::ReduceError;
use super::kernels;
use super::{reduced_dims, reduced_sizes};
use crate::autograd::{Context, Function, Saved};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{self, CastPolicy, Operation, operations};
use crate::shape::signed;
use crate::tensor::Tensor;

operations! {
    static SUM: Operation = Operation::new("sum").node("SumBackward0").autocast_on_cuda(CastPolicy::Fp32);
    static SUM_DIM: Operation = Operation::new("sum").node("SumBackward1").autocast_on_cuda(CastPolicy::Fp32);
    static MEAN: Operation = Operation::new("mean").node("MeanBackward0");
    static MEAN_DIM: Operation = Operation::new("mean").node("MeanBackward1");
    static VAR: Operation = Operation::new("var").node("VarBackward0");
    static STD: Operation = Operation::new("std").node("StdBackward0");
    static NORM: Operation = Operation::new("norm").composite().autocast_on_cuda(CastPolicy::Fp32);
    static VECTOR_NORM: Operation = Operation::new("sqrt").node("LinalgVectorNormBackward0");
}

impl Tensor {
    /// Sums all elements. Integers and bools are summed as i64.
    #[track_caller]
    pub fn sum(&self) -> Result<Tensor> {
        let reduced = reduced_dims(self, &[])?;
        ops::apply(SumDims { reduced, keepdim: false, operation: &SUM }, [self])
    }

    /// Sums over the given dimensions, or all if none is given. `keepdim` keeps them with size 1.
    #[track_caller]
    pub fn sum_dims(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        let reduced = reduced_dims(self, dims)?;
        ops::apply(SumDims { reduced, keepdim, operation: &SUM_DIM }, [self])
    }

    /// Computes the mean of all elements, NaN if there are none.
    #[track_caller]
    pub fn mean(&self) -> Result<Tensor> {
        mean(self, &[], false, &MEAN)
    }

    /// Computes the mean over the given dimensions, or all if none is given. `keepdim` keeps them with size 1.
    #[track_caller]
    pub fn mean_dims(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        mean(self, dims, keepdim, &MEAN_DIM)
    }

    /// Computes the variance over the given dimensions, or all if none is given: the sum of squared deviations from the
    /// mean, divided by their number less `correction` (1, PyTorch's default, is Bessel's correction).
    #[track_caller]
    pub fn var(&self, dims: &[i64], correction: usize, keepdim: bool) -> Result<Tensor> {
        variance(self, dims, correction, keepdim, false)
    }

    /// Computes the standard deviation, the square root of [`var`](Self::var).
    #[track_caller]
    pub fn std(&self, dims: &[i64], correction: usize, keepdim: bool) -> Result<Tensor> {
        variance(self, dims, correction, keepdim, true)
    }

    /// Computes the Euclidean norm of all elements. Its gradient at 0 is 0.
    #[track_caller]
    pub fn norm(&self) -> Result<Tensor> {
        ops::call(&NORM, &[self], |operands| {
            let x = operands[0];
            if !x.dtype().is_floating_point() {
                return Err(Error::custom(format!(
                    "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
                    x.dtype().scalar_type()
                )));
            }
            let squares = in_floats(x)?.square()?.sum()?;
            ops::apply(Root { dtype: x.dtype() }, [&squares])
        })
    }
}

#[track_caller]
fn mean(x: &Tensor, dims: &[i64], keepdim: bool, operation: &'static Operation) -> Result<Tensor> {
    if !x.dtype().is_floating_point() {
        return Err(ReduceError::NeedsFloat { operation: "mean", got: x.dtype() }.into());
    }
    let reduced = reduced_dims(x, dims)?;
    ops::apply(MeanDims { reduced, keepdim, operation }, [x])
}

/// Converts half types to f32, for results that are only rounded after several steps.
fn in_floats(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_half() { x.to(DType::F32) } else { Ok(x.clone()) }
}

/// The square root of a sum of squares. At 0 its slope is infinite, but the squares' slope and the gradient are 0.
struct Root {
    /// The dtype of the result. The squares of half types are f32.
    dtype: DType,
}

impl Function<1> for Root {
    fn operation(&self) -> &'static Operation {
        &VECTOR_NORM
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_output();
        let root = x.sqrt()?;
        if self.dtype.is_half() { root.to(self.dtype) } else { Ok(root) }
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [y] = saved.tensors()?;
        let slope = grad.div(&y.mul(2.0)?)?;
        Ok([Some(y.eq(0)?.where_cond(0, &slope)?)])
    }
}

#[track_caller]
fn variance(x: &Tensor, dims: &[i64], correction: usize, keepdim: bool, root: bool) -> Result<Tensor> {
    let names_none = dims.is_empty() || x.ndim() == 0;
    ops::apply(Variance { reduced: reduced_dims(x, dims)?, names_none, correction, keepdim, root }, [x])
}

struct Variance {
    reduced: Vec<bool>,
    /// Whether no dimension was given. If the divisor is then not positive, PyTorch has another gradient.
    names_none: bool,
    correction: usize,
    keepdim: bool,
    root: bool,
}

impl Variance {
    /// The reduced dimensions. An empty list means all.
    fn dims(&self) -> Vec<i64> {
        (0..).zip(&self.reduced).filter(|(_, reduced)| **reduced).map(|(dim, _)| dim).collect()
    }

    /// The divisor of the squares. The variance replaces a negative one by 0.
    fn divisor(&self, sizes: &[usize]) -> f64 {
        let reduced = sizes.iter().zip(&self.reduced).filter(|(_, reduced)| **reduced);
        reduced.map(|(size, _)| *size as f64).product::<f64>() - self.correction as f64
    }
}

impl Function<1> for Variance {
    fn operation(&self) -> &'static Operation {
        if self.root { &STD } else { &VAR }
    }

    /// Computes in f64, as PyTorch does on the CPU: the square of an f32 may overflow even if its root does not.
    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        if !x.dtype().is_floating_point() {
            return Err(Error::custom("std and var only support floating point and complex dtypes"));
        }
        ctx.save_for_backward([x]);
        if self.root {
            ctx.save_output();
        }
        let (wide, dims) = (x.to(DType::F64)?, self.dims());
        let squares = wide.sub(&wide.mean_dims(&dims, true)?)?.square_()?;
        let variance = squares.sum_dims(&dims, self.keepdim)?.div_(self.divisor(x.sizes()).max(0.0))?;
        let variance = if self.root { variance.sqrt_()? } else { variance };
        variance.as_new().to(x.dtype())
    }

    /// The gradient is `2 (x − mean) / divisor`, for the standard deviation divided by twice the root. Where the root
    /// is 0, the gradient is 0.
    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let (x, grad) = if self.root {
            let [x, root] = saved.tensors()?;
            let slope = grad.div(&root.mul(2.0)?)?;
            (x, root.eq(0)?.where_cond(0, &slope)?)
        } else {
            let [x] = saved.tensors()?;
            (x, grad.clone())
        };
        let mean = x.mean_dims(&self.dims(), true)?;
        let grad = spread(&grad, x.sizes(), &self.reduced)?;
        let grad_x = match self.divisor(x.sizes()) {
            divisor if divisor <= 0.0 && self.names_none => {
                let [nan, infinity] =
                    [f64::NAN, f64::INFINITY].map(|slope| Tensor::full(&[], (slope, x.dtype())));
                grad.mul(&x.eq(&mean)?.where_cond(&nan?, &infinity?)?)?
            }
            divisor => grad.mul(2.0 / divisor)?.mul(&x.sub(&mean)?)?,
        };
        Ok([Some(grad_x)])
    }
}

struct SumDims {
    reduced: Vec<bool>,
    keepdim: bool,
    operation: &'static Operation,
}

impl Function<1> for SumDims {
    fn operation(&self) -> &'static Operation {
        self.operation
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let x = if x.dtype().is_floating_point() { x } else { &x.to(DType::I64)? };
        let out = x.uninit_beside(&reduced_sizes(x, &self.reduced, self.keepdim), x.dtype())?;
        kernels::reduce(kernels::SUM, x, &self.reduced, &out)?;
        Ok(out)
    }

    /// Every summand gets the gradient of the sum.
    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(spread(grad, saved.input_sizes(0), &self.reduced)?)])
    }
}

struct MeanDims {
    reduced: Vec<bool>,
    keepdim: bool,
    operation: &'static Operation,
}

impl MeanDims {
    fn count(&self, sizes: &[usize]) -> f64 {
        sizes
            .iter()
            .zip(&self.reduced)
            .filter(|(_, reduced)| **reduced)
            .map(|(size, _)| *size as f64)
            .product()
    }
}

impl Function<1> for MeanDims {
    fn operation(&self) -> &'static Operation {
        self.operation
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let sum = SumDims { reduced: self.reduced.clone(), keepdim: self.keepdim, operation: &SUM_DIM };
        let count = self.count(x.sizes());
        ops::apply(sum, [&in_floats(x)?])?.div_(count)?.as_new().to(x.dtype())
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let sizes = saved.input_sizes(0);
        Ok([Some(spread(&grad.div(self.count(sizes))?, sizes, &self.reduced)?)])
    }
}

pub(super) fn spread(grad: &Tensor, sizes: &[usize], reduced: &[bool]) -> Result<Tensor> {
    let with_ones = sizes.iter().zip(reduced).map(|(size, reduced)| if *reduced { 1 } else { *size });
    let with_ones: Vec<usize> = with_ones.filter(|_| grad.ndim() > 0).collect();
    grad.reshape(&signed(&with_ones))?.expand(&signed(sizes))
}

impl Tensor {
    /// Sums a tensor down to a shape that it was broadcast from (`Tensor.sum_to_size`).
    pub(crate) fn sum_to_size(&self, sizes: &[usize]) -> Result<Tensor> {
        if self.sizes() == sizes {
            return Ok(self.clone());
        }
        let new = self.ndim() - sizes.len();
        let repeated: Vec<i64> = (0..self.ndim())
            .filter(|dim| *dim < new || (sizes[*dim - new] == 1 && self.sizes()[*dim] != 1))
            .map(|dim| dim as i64)
            .collect();
        self.sum_dims(&repeated, true)?.reshape(&signed(sizes))
    }
}
