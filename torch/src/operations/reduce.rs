//! Operations that combine elements: sums, means, extremes.

use todevice::{DType, Tensor, interpreter};

use super::elementwise::boolean;
use super::{table, with_node};
use crate::arguments::Arguments;
use crate::fault::{Result, raise};
use crate::value::Value;

fn cast(x: Tensor, dtype: Option<DType>) -> Result<Tensor> {
    Ok(match dtype {
        Some(dtype) => x.to(dtype)?,
        None => x,
    })
}

fn all_dims(x: &Tensor) -> Vec<i64> {
    (0..x.ndim() as i64).collect()
}

/// All dimensions where none is given, as in `x.sum(dim=())`.
fn dims(a: &Arguments, i: usize, x: &Tensor) -> Vec<i64> {
    match a.ints(i) {
        [] => all_dims(x),
        dims => dims.to_vec(),
    }
}

fn along(a: &Arguments, of: fn(&Tensor, &[i64], bool) -> todevice::Result<Tensor>) -> Result<Tensor> {
    let x = cast(a.t(0), a.dtype(3))?;
    Ok(of(&x, &dims(a, 1, &x), a.bool(2))?)
}

fn deviation(
    a: &Arguments,
    of: fn(&Tensor, &[i64], usize, bool) -> todevice::Result<Tensor>,
) -> Result<Tensor> {
    let x = a.t(0);
    let correction = if a.is_none(2) {
        1
    } else {
        a.count(2, |correction| format!("the course has no negative correction, but got {correction}"))?
    };
    Ok(of(&x, &dims(a, 1, &x), correction, a.bool(3))?)
}

fn arg(a: &Arguments, of: fn(&Tensor, Option<i64>, bool) -> todevice::Result<Tensor>) -> Result<Tensor> {
    Ok(of(&a.t(0), a.opt_int(1), a.bool(2))?)
}

/// Whether elements along a dimension are true: an extreme of truth values.
fn truth(a: &Arguments, all: bool) -> Result<Tensor> {
    let x = boolean(&a.t(0))?.to(DType::U8)?;
    let dims = dims(a, 1, &x);
    Ok(if all { x.amin(&dims, a.bool(2))? } else { x.amax(&dims, a.bool(2))? }.to(DType::Bool)?)
}

fn norm(a: &Arguments) -> Result<Tensor> {
    let x = a.t(0);
    let p = match a.arg(1) {
        crate::arguments::Arg::Any(object) => match crate::arguments::scalar(object, a.vm)? {
            Some(crate::arguments::Arg::Int(value)) => value as f64,
            Some(crate::arguments::Arg::Float(value)) => value,
            _ if object.str(a.vm)?.to_string() == "fro" => 2.0,
            _ => return Err(raise("RuntimeError", "norm(): p must be a number or 'fro'")),
        },
        _ => 2.0,
    };
    if !x.dtype().is_floating_point() {
        let text = "linalg.vector_norm: Expected a floating point or complex tensor as input. Got";
        return Err(raise("RuntimeError", format!("{text} {}", x.dtype().scalar_type())));
    }
    let (dims, keep) = (dims(a, 2, &x), a.bool(3));
    let norm = match p {
        2.0 if dims.len() == x.ndim() && !keep => return Ok(x.norm()?),
        2.0 => return two_norm(&x, dims, keep),
        1.0 => x.abs()?.sum_dims(&dims, keep)?,
        f64::INFINITY => x.abs()?.amax(&dims, keep)?,
        f64::NEG_INFINITY => x.abs()?.amin(&dims, keep)?,
        0.0 => x.ne(0.0)?.to(x.dtype())?.sum_dims(&dims, keep)?,
        p => x.abs()?.pow(p)?.sum_dims(&dims, keep)?.pow(1.0 / p)?,
    };
    with_node(NORM, &norm)
}

const NORM: &str = "LinalgVectorNormBackward0";

/// Its gradient is 0 where the norm is.
fn two_norm(x: &Tensor, mut dims: Vec<i64>, keep: bool) -> Result<Tensor> {
    let detached = x.detach();
    let norm = detached.square()?.sum_dims(&dims, keep)?.sqrt()?;
    dims.iter_mut().for_each(|dim| *dim = dim.rem_euclid(x.ndim().max(1) as i64));
    dims.sort_unstable();
    let saved = norm.clone();
    Ok(interpreter::record(NORM, &[x], norm, move |grad| {
        let (mut grad, mut norm) = (grad.clone(), saved.detach());
        if !keep {
            for dim in &dims {
                (grad, norm) = (grad.unsqueeze(*dim)?, norm.unsqueeze(*dim)?);
            }
        }
        let scale = grad.div(&norm)?.masked_fill(&norm.eq(0.0)?, 0.0)?;
        Ok(vec![Some(detached.mul(&scale)?)])
    })?)
}

/// The first of two operands, whose numbers of dimensions are checked. `matmul` would take others.
fn with_dims(a: &Arguments, [first, second]: [usize; 2]) -> Result<Tensor> {
    let (x, y) = (a.t(0), a.t(1));
    if (x.ndim(), y.ndim()) != (first, second) {
        let name = a.signature.name;
        let (left, right) = (x.ndim(), y.ndim());
        let text =
            format!("{name}: expected {first}D and {second}D tensors, but got {left}D and {right}D tensors");
        return Err(raise("RuntimeError", text));
    }
    Ok(x)
}

fn named(name: &'static str, (values, indices): (Tensor, Tensor)) -> Value {
    Value::Named(name, vec![values, indices])
}

table! {
    Both "sum(Tensor input, *, dtype? dtype=None)" => |a| cast(a.t(0), a.dtype(1))?.sum()?;
    Both "sum(Tensor input, int[]? dim, bool keepdim=False, *, dtype? dtype=None)" => |a| along(a, Tensor::sum_dims)?;
    Both "mean(Tensor input, *, dtype? dtype=None)" => |a| cast(a.t(0), a.dtype(1))?.mean()?;
    Both "mean(Tensor input, int[]? dim, bool keepdim=False, *, dtype? dtype=None)" => |a| along(a, Tensor::mean_dims)?;
    Both "var(Tensor input, int[]? dim=None, *, int? correction=1, bool keepdim=False)" => |a| deviation(a, Tensor::var)?;
    Both "var(Tensor input, int[]? dim=None, bool unbiased=True, bool keepdim=False)" => |a| deviation(a, Tensor::var)?;
    Both "var(Tensor input, bool unbiased=True)" => |a| { let x = a.t(0); x.var(&all_dims(&x), usize::from(a.bool(1)), false)? };
    Both "std(Tensor input, int[]? dim=None, *, int? correction=1, bool keepdim=False)" => |a| deviation(a, Tensor::std)?;
    Both "std(Tensor input, int[]? dim=None, bool unbiased=True, bool keepdim=False)" => |a| deviation(a, Tensor::std)?;
    Both "std(Tensor input, bool unbiased=True)" => |a| { let x = a.t(0); x.std(&all_dims(&x), usize::from(a.bool(1)), false)? };
    Both "norm(Tensor input, any? p=None, int[]? dim=None, bool keepdim=False)" => |a| norm(a)?;
    Both "max(Tensor input)" => |a| a.t(0).max()?;
    Both "max(Tensor input, int dim, bool keepdim=False)" => |a| named("max", a.t(0).max_dim(a.int(1), a.bool(2))?);
    Both "max(Tensor input, Tensor other)" => |a| a.t(0).maximum(&a.t(1))?;
    Both "min(Tensor input)" => |a| a.t(0).min()?;
    Both "min(Tensor input, int dim, bool keepdim=False)" => |a| named("min", a.t(0).min_dim(a.int(1), a.bool(2))?);
    Both "min(Tensor input, Tensor other)" => |a| a.t(0).minimum(&a.t(1))?;
    Both "amax(Tensor input, int[] dim=(), bool keepdim=False)" => |a| a.t(0).amax(a.ints(1), a.bool(2))?;
    Both "amin(Tensor input, int[] dim=(), bool keepdim=False)" => |a| a.t(0).amin(a.ints(1), a.bool(2))?;
    Both "argmax(Tensor input, int? dim=None, bool keepdim=False)" => |a| arg(a, |x, dim, keep| x.argmax(dim, keep))?;
    Both "argmin(Tensor input, int? dim=None, bool keepdim=False)" => |a| arg(a, |x, dim, keep| x.argmin(dim, keep))?;
    Both "all(Tensor input)" => |a| a.t(0).all()?;
    Both "any(Tensor input)" => |a| a.t(0).any()?;
    Both "all(Tensor input, int[]? dim=None, bool keepdim=False)" => |a| truth(a, true)?;
    Both "any(Tensor input, int[]? dim=None, bool keepdim=False)" => |a| truth(a, false)?;
    Both "cumsum(Tensor input, int dim, *, dtype? dtype=None)" => |a| cast(a.t(0), a.dtype(2))?.cumsum(a.int(1))?;
    Both "softmax(Tensor input, int dim, dtype? dtype=None)" => |a| cast(a.t(0), a.dtype(2))?.softmax(a.int(1))?;
    Both "log_softmax(Tensor input, int dim, dtype? dtype=None)" => |a| cast(a.t(0), a.dtype(2))?.log_softmax(a.int(1))?;
    Both "logsumexp(Tensor input, int dim, bool keepdim=False)" => |a| {
        let (x, dim) = (a.t(0), a.int(1));
        let most = x.amax(&[dim], true)?.detach();
        let sum = x.sub(&most)?.exp()?.sum_dims(&[dim], true)?.log()?.add(&most)?;
        with_node("LogsumexpBackward0", &if a.bool(2) { sum } else { sum.squeeze(dim)? })?
    };
    Both "count_nonzero(Tensor input)" => |a| a.t(0).ne(0i64)?.sum()?;
    Both "matmul(Tensor input, Tensor other)" => |a| a.t(0).matmul(&a.t(1))?;
    Both "mm(Tensor input, Tensor mat2)" => |a| a.t(0).mm(&a.t(1))?;
    Both "bmm(Tensor input, Tensor mat2)" => |a| a.t(0).bmm(&a.t(1))?;
    Both "mv(Tensor input, Tensor vec)" => |a| with_dims(a, [2, 1])?.matmul(&a.t(1))?;
    Both "dot(Tensor input, Tensor tensor)" => |a| with_dims(a, [1, 1])?.matmul(&a.t(1))?;
    Both "outer(Tensor input, Tensor vec2)" => |a| with_dims(a, [1, 1])?.unsqueeze(1)?.mul(&a.t(1))?;
}
