//! Maximum and minimum, their positions, and the reductions `all` and `any`.

use super::error::ReduceError;
use super::kernels;
use super::sum::spread;
use super::{reduced_dims, reduced_sizes};
use crate::autograd::{Context, Function, Saved};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::index::gather;
use crate::ops::plain::{contiguous, copy_of, fill, reshaped};
use crate::ops::{self, Operation, operations};
use crate::tensor::Tensor;

operations! {
    static MAX: Operation = Operation::new("max").node("MaxBackward1");
    static MIN: Operation = Operation::new("min").node("MinBackward1");
    static AMAX: Operation = Operation::new("amax").node("AmaxBackward0");
    static AMIN: Operation = Operation::new("amin").node("AminBackward0");
    static MAX_DIM: Operation = Operation::new("max").node("MaxBackward0");
    static MIN_DIM: Operation = Operation::new("min").node("MinBackward0");
    static ARGMAX: Operation = Operation::new("argmax");
    static ARGMIN: Operation = Operation::new("argmin");
    static ALL: Operation = Operation::new("all");
    static ANY: Operation = Operation::new("any");
}

impl Tensor {
    /// Returns the largest element, or NaN if there is one. Equal elements share the gradient.
    #[track_caller]
    pub fn max(&self) -> Result<Tensor> {
        extreme(self, &MAX, Which::Largest, &[], false)
    }

    /// Returns the smallest element, or NaN if there is one. Equal elements share the gradient.
    #[track_caller]
    pub fn min(&self) -> Result<Tensor> {
        extreme(self, &MIN, Which::Smallest, &[], false)
    }

    /// Returns the largest elements over some dimensions (`torch.amax`). Equal elements share the gradient.
    #[track_caller]
    pub fn amax(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        extreme(self, &AMAX, Which::Largest, dims, keepdim)
    }

    /// Returns the smallest elements over some dimensions (`torch.amin`).
    #[track_caller]
    pub fn amin(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        extreme(self, &AMIN, Which::Smallest, dims, keepdim)
    }

    /// Returns the largest elements along a dimension and their positions, which get the gradient (`torch.max`).
    #[track_caller]
    pub fn max_dim(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        with_positions(self, Which::Largest, dim, keepdim)
    }

    /// Returns the smallest elements along a dimension and their positions (`torch.min(x, dim)`).
    #[track_caller]
    pub fn min_dim(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        with_positions(self, Which::Smallest, dim, keepdim)
    }

    /// Returns the position of the first largest element along a dimension, or in the flattened tensor for `None`.
    #[track_caller]
    pub fn argmax(&self, dim: impl Into<Option<i64>>, keepdim: bool) -> Result<Tensor> {
        refuse_bool(self, "argmax(): does not support bool input")?;
        arg_extreme(self, Which::Largest, dim.into(), keepdim)
    }

    /// Returns the position of the first smallest element along a dimension, or in the flattened tensor for `None`.
    #[track_caller]
    pub fn argmin(&self, dim: impl Into<Option<i64>>, keepdim: bool) -> Result<Tensor> {
        refuse_bool(self, "argmin(): does not support bool input")?;
        arg_extreme(self, Which::Smallest, dim.into(), keepdim)
    }

    /// Tests whether all elements are nonzero. The result is a bool, or a u8 for a u8 tensor.
    #[track_caller]
    pub fn all(&self) -> Result<Tensor> {
        truth(self, Which::Smallest)
    }

    /// Tests whether any element is nonzero. The result is a bool, or a u8 for a u8 tensor.
    #[track_caller]
    pub fn any(&self) -> Result<Tensor> {
        truth(self, Which::Largest)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Largest,
    Smallest,
}

impl Which {
    fn reduce(self, x: &Tensor, reduced: &[bool], out: &Tensor) -> Result<()> {
        let reduction = if self == Which::Largest { kernels::AMAX } else { kernels::AMIN };
        kernels::reduce(reduction, x, reduced, out)
    }
}

#[track_caller]
fn extreme(
    x: &Tensor,
    operation: &'static Operation,
    which: Which,
    dims: &[i64],
    keepdim: bool,
) -> Result<Tensor> {
    check_not_empty(x, dims, operation)?;
    let reduced = reduced_dims(x, dims)?;
    let of_all = [&MAX, &MIN].into_iter().any(|of_all| std::ptr::eq(of_all, operation));
    ops::apply(Extreme { operation, which, reduced, keepdim, of_all }, [x])
}

/// Refuses an extreme of no elements. The error names the first empty dimension as the caller passed it.
fn check_not_empty(x: &Tensor, dims: &[i64], operation: &Operation) -> Result<()> {
    if x.numel() > 0 {
        return Ok(());
    }
    let operation = operation.name;
    if dims.is_empty() {
        return Err(ReduceError::Empty { operation }.into());
    }
    for dim in dims {
        if x.size(*dim)? == 0 {
            return Err(ReduceError::EmptyDim { operation, dim: *dim }.into());
        }
    }
    Ok(())
}

fn from_start(x: &Tensor, dim: i64) -> Result<i64> {
    Ok(x.layout().dim(dim)? as i64)
}

struct Extreme {
    operation: &'static Operation,
    which: Which,
    reduced: Vec<bool>,
    keepdim: bool,
    /// Whether this is `max()` or `min()`, whose gradient handles NaN in PyTorch. That of `amax` does not.
    of_all: bool,
}

impl Function<1> for Extreme {
    fn operation(&self) -> &'static Operation {
        self.operation
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        ctx.save_output();
        let out = x.uninit_beside(&reduced_sizes(x, &self.reduced, self.keepdim), x.dtype())?;
        self.which.reduce(x, &self.reduced, &out)?;
        Ok(out)
    }

    /// Equal extremes share the gradient evenly.
    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x, y] = saved.tensors()?;
        let is_extreme = x.eq(&spread(&y, x.sizes(), &self.reduced)?)?;
        if self.of_all {
            let is_extreme = is_extreme.maximum(&x.isnan()?)?; // A NaN equals nothing, but was the result.
            let share = grad.div(&is_extreme.sum()?)?;
            return Ok([Some(is_extreme.where_cond(&share, 0)?)]);
        }
        let mask = is_extreme.to(grad.dtype())?;
        let dims: Vec<i64> = (0..x.ndim()).filter(|dim| self.reduced[*dim]).map(|dim| dim as i64).collect();
        let count = mask.sum_dims(&dims, true)?;
        Ok([Some(mask.mul(&spread(grad, x.sizes(), &self.reduced)?)?.div(&count)?)])
    }
}

fn refuse_bool(x: &Tensor, message: &str) -> Result<()> {
    if x.dtype() == DType::Bool { Err(Error::custom(message)) } else { Ok(()) }
}

#[track_caller]
fn arg_extreme(x: &Tensor, which: Which, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
    let operation = if which == Which::Largest { &ARGMAX } else { &ARGMIN };
    let dim = dim.map(|dim| from_start(x, dim)).transpose()?;
    check_not_empty(x, dim.as_slice(), operation)?;
    let reduced = reduced_dims(x, dim.as_slice())?;
    ops::call(operation, &[x], |_| {
        let out = x.uninit_beside(&reduced_sizes(x, &reduced, keepdim), DType::I64)?;
        match which {
            Which::Largest => kernels::argmax(x, &reduced, &out)?,
            Which::Smallest => kernels::argmin(x, &reduced, &out)?,
        }
        Ok(out)
    })
}

#[track_caller]
fn with_positions(x: &Tensor, which: Which, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    let dim = from_start(x, dim)?;
    check_not_empty(x, &[dim], if which == Which::Largest { &MAX_DIM } else { &MIN_DIM })?;
    let positions = arg_extreme(x, which, Some(dim), keepdim)?;
    let reduced = reduced_dims(x, &[dim])?;
    let values = ops::apply(AtPositions { which, reduced }, [x, &positions])?;
    Ok((values, positions))
}

struct AtPositions {
    which: Which,
    reduced: Vec<bool>,
}

impl AtPositions {
    /// The reduced dimension. A 0-dim tensor has none.
    fn dim(&self) -> Option<usize> {
        self.reduced.iter().position(|reduced| *reduced)
    }

    /// Restores the reduced dimension, with size 1, in positions or values.
    fn kept(&self, x: &Tensor, sizes: &[usize]) -> Result<Tensor> {
        let with_ones =
            sizes.iter().zip(&self.reduced).map(|(size, reduced)| if *reduced { 1 } else { *size });
        Ok(reshaped(&contiguous(x)?, &with_ones.collect::<Vec<_>>()))
    }
}

impl Function<2> for AtPositions {
    fn operation(&self) -> &'static Operation {
        if self.which == Which::Largest { &MAX_DIM } else { &MIN_DIM }
    }

    fn forward(&self, ctx: &mut Context<2>, [x, positions]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([positions]);
        let Some(dim) = self.dim() else { return copy_of(x) };
        let out = x.uninit_beside(positions.sizes(), x.dtype())?;
        gather(x, dim, &self.kept(positions, x.sizes())?, &self.kept(&out, x.sizes())?)?;
        Ok(out)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [positions] = saved.tensors()?;
        let Some(dim) = self.dim() else { return Ok([Some(grad.clone()), None]) };
        let sizes = saved.input_sizes(0);
        let zeros = grad.new_full(sizes, 0)?;
        let grad_x =
            zeros.scatter_add(dim as i64, &self.kept(&positions, sizes)?, &self.kept(grad, sizes)?)?;
        Ok([Some(grad_x), None])
    }
}

#[track_caller]
fn truth(x: &Tensor, which: Which) -> Result<Tensor> {
    let operation = if which == Which::Smallest { &ALL } else { &ANY };
    ops::call(operation, &[x], |_| {
        let dtype = if x.dtype() == DType::U8 { DType::U8 } else { DType::Bool };
        let bools = x.detach().to(DType::Bool)?;
        let out = bools.uninit_beside(&[], dtype)?;
        match bools.numel() {
            0 => fill(&out, Scalar::Bool(which == Which::Smallest))?,
            _ => which.reduce(&bools, &vec![true; x.ndim()], &out)?,
        }
        Ok(out)
    })
}
