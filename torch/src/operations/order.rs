//! Operations that sort. `todevice` has no kernel for them, so they are here for tensors on the host.

use std::cmp::Ordering;

use todevice::{DType, Tensor};

use super::{table, with_node};
use crate::arguments::Arguments;
use crate::fault::{Result, raise};
use crate::tensor::not_here;
use crate::value::Value;

/// NaN is the largest number, as in PyTorch.
fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The indices of the first `count` elements along a dimension, in order. Equal elements keep theirs.
fn order(x: &Tensor, dim: i64, descending: bool, count: Option<usize>, name: &str) -> Result<Tensor> {
    if x.is_cuda() {
        return Err(not_here(&format!("{name} on a GPU")));
    }
    if x.ndim() == 0 {
        if !matches!(dim, -1 | 0) {
            let text = format!("Dimension out of range (expected to be in range of [-1, 0], but got {dim})");
            return Err(raise("IndexError", text));
        }
        return Ok(Tensor::zeros((&[][..], DType::I64))?);
    }
    let size = x.size(dim)?;
    let count = count.unwrap_or(size);
    if count > size {
        return Err(raise("RuntimeError", "selected index k out of range"));
    }
    let last = x.detach().to(DType::F64)?.transpose(dim, -1)?;
    let mut sizes = last.sizes().to_vec();
    let values = last.to_vec::<f64>()?;
    let mut indices: Vec<i64> = Vec::with_capacity(values.len());
    for row in values.chunks(size.max(1)) {
        let mut places: Vec<usize> = (0..row.len()).collect();
        places.sort_by(|a, b| {
            let order = compare(row[*a], row[*b]);
            if descending { order.reverse() } else { order }
        });
        indices.extend(places[..count.min(places.len())].iter().map(|place| *place as i64));
    }
    if let Some(size) = sizes.last_mut() {
        *size = count;
    }
    Ok(Tensor::from_slice(&indices, &sizes)?.transpose(dim, -1)?.contiguous()?)
}

fn sorted(
    a: &Arguments,
    name: &'static str,
    descending: bool,
    count: Option<usize>,
    dim: i64,
) -> Result<Value> {
    let x = a.t(0);
    let indices = order(&x, dim, descending, count, name)?;
    let values = if x.ndim() == 0 { x.copy()? } else { take(&x, dim, &indices)? };
    let node = if name == "sort" { "SortBackward0" } else { "TopkBackward0" };
    Ok(Value::Named(name, vec![with_node(node, &values)?, indices]))
}

/// Truth values are taken as bytes: `gather` has no kernel for them.
fn take(x: &Tensor, dim: i64, indices: &Tensor) -> Result<Tensor> {
    Ok(match x.dtype() {
        DType::Bool => x.to(DType::U8)?.gather(dim, indices)?.to(DType::Bool)?,
        _ => x.gather(dim, indices)?,
    })
}

fn unique(x: &Tensor) -> Result<Tensor> {
    if x.is_cuda() {
        return Err(not_here("unique on a GPU"));
    }
    let flat = x.detach().reshape(&[-1])?;
    let values = flat.to(DType::F64)?.to_vec::<f64>()?;
    let mut sorted = values;
    sorted.sort_by(|a, b| compare(*a, *b));
    sorted.dedup();
    Ok(Tensor::from_slice(&sorted, &[sorted.len()])?.to(x.dtype())?)
}

table! {
    Both "sort(Tensor input, int dim=-1, bool descending=False)" => |a| sorted(a, "sort", a.bool(2), None, a.int(1))?;
    Both "argsort(Tensor input, int dim=-1, bool descending=False)" => |a| order(&a.t(0), a.int(1), a.bool(2), None, "argsort")?;
    Both "topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True)" => |a| {
        let count = a.count(1, |_| "selected index k out of range".to_owned())?;
        sorted(a, "topk", a.bool(3), Some(count), a.int(2))?
    };
    Both "unique(Tensor input, bool sorted=True)" => |a| unique(&a.t(0))?;
}
