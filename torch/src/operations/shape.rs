//! Views, copies, and operations that join or split tensors.

use todevice::{CopyOptions, DType, MemoryFormat, Tensor, ToOptions};

use super::{table, with_node};
use crate::arguments::Arguments;
use crate::fault::{Result, raise};
use crate::tensor::not_here;
use crate::value::Value;

/// The number of a dimension that may count from the end.
pub(super) fn dim_of(x: &Tensor, dim: i64) -> Result<usize> {
    x.size(dim)?; // its error, if there is no such dimension
    Ok(if dim < 0 { dim + x.ndim() as i64 } else { dim } as usize)
}

fn split(a: &Arguments) -> Result<Value> {
    let (x, dim) = (a.t(0), a.int(2));
    let sizes = a.ints(1);
    let size = x.size(dim)? as i64;
    if sizes.iter().sum::<i64>() != size {
        return Err(raise(
            "RuntimeError",
            format!(
                "split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), but got split_sizes={sizes:?}"
            ),
        ));
    }
    let mut start = 0;
    let mut parts = Vec::new();
    for length in sizes {
        parts.push(x.narrow(dim, start, *length as usize)?);
        start += *length as usize;
    }
    Ok(Value::Tuple(parts))
}

/// `x.repeat(2, 3)`: views of size 1 that expand, and one copy.
fn repeat(x: &Tensor, times: &[i64]) -> Result<Tensor> {
    if times.len() < x.ndim() {
        return Err(raise(
            "RuntimeError",
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        ));
    }
    let mut x = x.clone();
    while x.ndim() < times.len() {
        x = x.unsqueeze(0)?;
    }
    let sizes = signed(&x);
    let apart: Vec<i64> = sizes.iter().flat_map(|size| [1, *size]).collect();
    let wide: Vec<i64> = sizes.iter().zip(times).flat_map(|(size, times)| [*times, *size]).collect();
    let result: Vec<i64> = sizes.iter().zip(times).map(|(size, times)| size * times).collect();
    let repeated = x.reshape(&apart)?.expand(&wide)?;
    Ok(repeated.copy()?.reshape(&result)?)
}

fn repeat_interleave(x: &Tensor, times: i64, dim: Option<i64>) -> Result<Tensor> {
    let (x, dim) = match dim {
        Some(dim) => (x.clone(), dim_of(x, dim)?),
        None => (x.reshape(&[-1])?, 0),
    };
    let mut wide = signed(&x);
    let mut result = wide.clone();
    wide.insert(dim + 1, times);
    result[dim] *= times;
    Ok(x.unsqueeze(dim as i64 + 1)?.expand(&wide)?.copy()?.reshape(&result)?)
}

fn squeeze_all(x: &Tensor) -> Result<Tensor> {
    let mut squeezed = x.clone();
    for dim in (0..x.ndim()).rev() {
        if x.sizes()[dim] == 1 {
            squeezed = squeezed.squeeze(dim as i64)?;
        }
    }
    // Without a dimension of size 1 it is a new view, too.
    Ok(if squeezed.ndim() == x.ndim() { x.view(&signed(x))? } else { squeezed })
}

fn movedim(x: &Tensor, from: i64, to: i64) -> Result<Tensor> {
    let (from, to) = (dim_of(x, from)?, dim_of(x, to)?);
    let mut order: Vec<i64> = (0..x.ndim()).filter(|dim| *dim != from).map(|dim| dim as i64).collect();
    order.insert(to, from as i64);
    Ok(x.permute(&order)?)
}

/// `x.view(torch.int32)`: the same bits, for types of one size on the host.
fn view_as(x: &Tensor, dtype: DType) -> Result<Tensor> {
    if x.dtype() == dtype {
        return Ok(x.view(&signed(x))?);
    }
    let host = x.to(todevice::Device::Cpu)?.detach();
    let sizes = x.sizes();
    let same = match (x.dtype(), dtype) {
        (DType::F32, DType::I32) => {
            let bits: Vec<i32> = host.to_vec::<f32>()?.into_iter().map(|x| x.to_bits() as i32).collect();
            Tensor::from_slice(&bits, sizes)?
        }
        (DType::I32, DType::F32) => {
            let bits: Vec<f32> =
                host.to_vec::<i32>()?.into_iter().map(|x| f32::from_bits(x as u32)).collect();
            Tensor::from_slice(&bits, sizes)?
        }
        (DType::F64, DType::I64) => {
            let bits: Vec<i64> = host.to_vec::<f64>()?.into_iter().map(|x| x.to_bits() as i64).collect();
            Tensor::from_slice(&bits, sizes)?
        }
        (from, to) => return Err(not_here(&format!("a view of {from} as {to}"))),
    };
    Ok(same.to(x.device())?)
}

/// The part of a matrix on one side of a diagonal.
fn triangle(x: &Tensor, diagonal: i64, upper: bool) -> Result<Tensor> {
    let (rows, columns) = match x.sizes() {
        [.., rows, columns] => (*rows as i64, *columns as i64),
        _ => {
            return Err(raise(
                "RuntimeError",
                &format!(
                    "{}: input tensor must have at least 2 dimensions",
                    if upper { "triu" } else { "tril" }
                )[..],
            ));
        }
    };
    let row = Tensor::arange(0i64, rows, (1i64, x.device()))?.unsqueeze(1)?;
    let column = Tensor::arange(0i64, columns, (1i64, x.device()))?;
    let distance = column.sub(&row)?;
    let keep = if upper { distance.ge(diagonal)? } else { distance.le(diagonal)? };
    Ok(keep.where_cond(x, 0i64)?.to(x.dtype())?)
}

fn flip(x: &Tensor, dims: &[i64]) -> Result<Tensor> {
    if x.ndim() == 0 {
        return Ok(x.copy()?);
    }
    let mut x = x.clone();
    for dim in dims {
        let size = x.size(*dim)? as i64;
        let backwards = Tensor::arange(size - 1, -1i64, (-1i64, x.device()))?;
        x = x.index_select(*dim, &backwards)?;
    }
    Ok(x)
}

pub(super) fn memory_format(a: &Arguments, i: usize, default: MemoryFormat) -> Result<MemoryFormat> {
    let Some(format) = a.any(i) else { return Ok(default) };
    match format.str(a.vm)?.to_string().as_str() {
        "torch.contiguous_format" => Ok(MemoryFormat::Contiguous),
        "torch.channels_last" => Ok(MemoryFormat::ChannelsLast),
        "torch.preserve_format" => Ok(MemoryFormat::Preserve),
        other => Err(not_here(&format!("memory_format={other}"))),
    }
}

fn clone(x: &Tensor, memory_format: MemoryFormat) -> Result<Tensor> {
    Ok(x.to(ToOptions { copy: true, memory_format, ..Default::default() })?)
}

fn narrow(a: &Arguments) -> Result<Tensor> {
    let (x, dim) = (a.t(0), a.int(1));
    let length = a.count(3, |_| "narrow(): length must be non-negative.".to_owned())?;
    let size = x.sizes()[dim_of(&x, dim)?] as i64;
    // A start below 0 counts from the end.
    let start = a.int(2);
    let start = usize::try_from(if start < 0 { start + size } else { start }).map_err(|_| {
        let text =
            format!("start out of range (expected to be in range of [-{size}, {size}], but got {start})");
        raise("IndexError", text)
    })?;
    Ok(x.narrow(dim, start, length)?)
}

table! {
    Method "view(Tensor input, dtype dtype)" => |a| view_as(&a.t(0), a.dtype(1).unwrap_or(DType::F32))?;
    Method "view(Tensor input, int[] size)" => |a| a.t(0).view(a.ints(1))?;
    Method "view_as(Tensor input, Tensor other)" => |a| a.t(0).view(&signed(&a.t(1)))?;
    Both "reshape(Tensor input, int[] shape)" => |a| a.t(0).reshape(a.ints(1))?;
    Method "reshape_as(Tensor input, Tensor other)" => |a| a.t(0).reshape(&signed(&a.t(1)))?;
    Both "flatten(Tensor input, int start_dim=0, int end_dim=-1)" => |a| a.t(0).flatten(a.int(1), a.int(2))?;
    Both "ravel(Tensor input)" => |a| a.t(0).reshape(&[-1])?;
    Both "unflatten(Tensor input, int dim, int[] sizes)" => |a| {
        let x = a.t(0);
        let dim = dim_of(&x, a.int(1))?;
        let mut sizes = signed(&x);
        sizes.splice(dim..dim + 1, a.ints(2).iter().copied());
        x.view(&sizes)?
    };
    Both "unsqueeze(Tensor input, int dim)" => |a| a.t(0).unsqueeze(a.int(1))?;
    Method "unsqueeze_(Tensor input, int dim)" => |a| { let x = a.object(0); x.replace(x.get().unsqueeze(a.int(1))?); x.get() };
    Both "squeeze(Tensor input)" => |a| squeeze_all(&a.t(0))?;
    Both "squeeze(Tensor input, int dim)" => |a| a.t(0).squeeze(a.int(1))?;
    Method "expand(Tensor input, int[] size)" => |a| a.t(0).expand(a.ints(1))?;
    Method "expand_as(Tensor input, Tensor other)" => |a| a.t(0).expand(&signed(&a.t(1)))?;
    Both "broadcast_to(Tensor input, int[] size)" => |a| a.t(0).expand(a.ints(1))?;
    Method "repeat(Tensor input, int[] repeats)" => |a| with_node("RepeatBackward0", &repeat(&a.t(0), a.ints(1))?)?;
    Both "tile(Tensor input, int[] dims)" => |a| { let x = a.t(0); let mut times = vec![1; x.ndim().saturating_sub(a.ints(1).len())]; times.extend(a.ints(1)); repeat(&x, &times)? };
    Both "repeat_interleave(Tensor input, int repeats, int? dim=None)" => |a| repeat_interleave(&a.t(0), a.int(1), a.opt_int(2))?;
    Both "permute(Tensor input, int[] dims)" => |a| a.t(0).permute(a.ints(1))?;
    Both "transpose(Tensor input, int dim0, int dim1)" => |a| a.t(0).transpose(a.int(1), a.int(2))?;
    Both "swapaxes(Tensor input, int axis0, int axis1)" => |a| a.t(0).transpose(a.int(1), a.int(2))?;
    Both "movedim(Tensor input, int source, int destination)" => |a| movedim(&a.t(0), a.int(1), a.int(2))?;
    Both "moveaxis(Tensor input, int source, int destination)" => |a| movedim(&a.t(0), a.int(1), a.int(2))?;
    Both "swapdims(Tensor input, int dim0, int dim1)" => |a| a.t(0).transpose(a.int(1), a.int(2))?;
    Function "concatenate(Tensor[] tensors, int dim=0)" => |a| Tensor::cat(&a.tensors(0), a.int(1))?;
    Both "t(Tensor input)" => |a| a.t(0).t()?;
    Both "select(Tensor input, int dim, int index)" => |a| a.t(0).select(a.int(1), a.int(2))?;
    Both "narrow(Tensor input, int dim, int start, int length)" => |a| narrow(a)?;
    Method "unfold(Tensor input, int dimension, int size, int step)" => |a| {
        let size = a.count(2, |size| format!("size is {size} but must be >= 0"))?;
        let step = a.count(3, |step| format!("step is {step} but must be > 0"))?;
        a.t(0).unfold(a.int(1), size, step)?
    };
    Both "split(Tensor input, int split_size, int dim=0)" => |a| {
        let size = a.count(1, |size| format!("split expects split_size be non-negative, but got split_size={size}"))?;
        a.t(0).split(size, a.int(2))?
    };
    Both "split(Tensor input, int[] split_size, int dim=0)" => |a| split(a)?;
    Both "chunk(Tensor input, int chunks, int dim=0)" => |a| {
        let chunks = a.count(1, |chunks| format!("chunk expects `chunks` to be greater than 0, got: {chunks}"))?;
        a.t(0).chunk(chunks, a.int(2))?
    };
    Both "unbind(Tensor input, int dim=0)" => |a| Value::Tuple(a.t(0).unbind(a.int(1))?);
    Both "tril(Tensor input, int diagonal=0)" => |a| triangle(&a.t(0), a.int(1), false)?;
    Both "triu(Tensor input, int diagonal=0)" => |a| triangle(&a.t(0), a.int(1), true)?;
    Both "flip(Tensor input, int[] dims)" => |a| with_node("FlipBackward0", &flip(&a.t(0), a.ints(1))?)?;
    Function "cat(Tensor[] tensors, int dim=0)" => |a| Tensor::cat(&a.tensors(0), a.int(1))?;
    Function "concat(Tensor[] tensors, int dim=0)" => |a| Tensor::cat(&a.tensors(0), a.int(1))?;
    Function "stack(Tensor[] tensors, int dim=0)" => |a| Tensor::stack(&a.tensors(0), a.int(1))?;
    Function "hstack(Tensor[] tensors)" => |a| { let all = a.tensors(0); let dim = i64::from(all.first().is_some_and(|x| x.ndim() > 1)); Tensor::cat(&all, dim)? };
    Function "vstack(Tensor[] tensors)" => |a| {
        let rows = a.tensors(0).into_iter().map(|x| if x.ndim() < 2 { x.reshape(&[1, -1]) } else { Ok(x) });
        Tensor::cat(&rows.collect::<todevice::Result<Vec<_>>>()?, 0)?
    };
    Both "clone(Tensor input, *, any? memory_format=None)" => |a| clone(&a.t(0), memory_format(a, 1, MemoryFormat::Preserve)?)?;
    Method "contiguous(Tensor input, *, any? memory_format=None)" => |a| a.t(0).contiguous_in(memory_format(a, 1, MemoryFormat::Contiguous)?)?;
    Both "detach(Tensor input)" => |a| a.t(0).detach();
    Method "detach_(Tensor input)" => |a| { let x = a.object(0); x.replace(x.get().detach()); x.get() };
    Method "copy_(Tensor input, Tensor src, bool non_blocking=False)" => |a| a.t(0).copy_with_(&a.t(1), CopyOptions { non_blocking: a.bool(2) })?;
    Method "pin_memory(Tensor input)" => |a| a.t(0).pin_memory()?;
    Method "type_as(Tensor input, Tensor other)" => |a| { let like = a.t(1); a.t(0).to((like.device(), like.dtype()))? };
}

fn signed(x: &Tensor) -> Vec<i64> {
    x.sizes().iter().map(|size| *size as i64).collect()
}
