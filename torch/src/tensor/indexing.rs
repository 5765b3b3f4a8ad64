//! `x[index]` and `x[index] = value`: numbers, slices, `...`, `None`, masks, and tensors or lists of indices.
//!
//! Numbers, slices, `...` and `None` make a view. Then masks and tensors of indices choose elements of it.

use rustpython_vm::builtins::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple};
use rustpython_vm::{AsObject, PyObject, PyObjectRef, VirtualMachine};
use todevice::{DType, Tensor};

use super::{PyTensor, lists};
use crate::arguments::{int, scalar};
use crate::fault::{Fault, Result, raise};
use crate::operations::type_name;

/// A view, and the tensors that index some of its dimensions.
struct Indexed {
    view: Tensor,
    by: Vec<(usize, Tensor)>,
}

pub fn get(x: &Tensor, index: &PyObject, vm: &VirtualMachine) -> Result<Tensor> {
    let Indexed { view, by } = read(x, index, vm)?;
    match &by[..] {
        [] => Ok(view),
        [(0, index)] => Ok(view.index(index)?),
        [(dim, index)] => by_one(&view, *dim, index),
        _ => by_several(&view, &by),
    }
}

pub fn set(x: &Tensor, index: &PyObject, value: &PyObject, vm: &VirtualMachine) -> Result<()> {
    let Indexed { view, by } = read(x, index, vm)?;
    let number = scalar(value, vm)?.and_then(|number| number.scalar());
    let tensor = match (number, value.downcast_ref::<PyTensor>()) {
        (Some(_), _) => None,
        (None, Some(tensor)) => Some(tensor.get()),
        (None, None) => {
            let class = value.class().name().to_string();
            return Err(raise("TypeError", format!("can't assign a {class} to a {}", type_name(x))));
        }
    };
    match (&by[..], number, tensor) {
        ([], Some(number), _) => drop(view.fill_(number)?),
        ([], None, Some(tensor)) => drop(view.copy_(&fitting(&tensor, &view)?)?),
        ([(0, index)], Some(number), _) => drop(view.index_put_(index, number)?),
        ([(0, index)], None, Some(tensor)) => {
            let tensor = tensor.to((view.device(), view.dtype()))?;
            drop(view.index_put_(index, &tensor)?);
        }
        ([(dim, index)], number, tensor) if index.dtype() != DType::Bool => {
            let front = view.transpose(0, *dim as i64)?;
            match (number, tensor) {
                (Some(number), _) => drop(front.index_put_(index, number)?),
                (None, Some(tensor)) if tensor.ndim() <= 1 && tensor.numel() == 1 => {
                    drop(front.index_put_(index, &tensor.to((view.device(), view.dtype()))?)?)
                }
                (None, Some(tensor)) => {
                    let tensor = tensor.to((view.device(), view.dtype()))?.transpose(0, *dim as i64)?;
                    drop(front.index_put_(index, &tensor)?);
                }
                _ => {}
            }
        }
        (by, number, tensor) => {
            let (rows, index, _) = rows(&view, by)?;
            if !rows.shares_storage(&view) {
                return Err(super::not_here(
                    "an assignment by several indices to a tensor that is not contiguous",
                ));
            }
            match (number, tensor) {
                (Some(number), _) => drop(rows.index_put_(&index, number)?),
                (None, Some(tensor)) => {
                    drop(rows.index_put_(&index, &tensor.to((view.device(), view.dtype()))?)?)
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// A value with leading dimensions of 1 may be assigned to a view that has fewer dimensions.
fn fitting(value: &Tensor, view: &Tensor) -> Result<Tensor> {
    let mut value = value.clone();
    while value.ndim() > view.ndim() && value.sizes()[0] == 1 {
        value = value.squeeze(0)?;
    }
    Ok(value)
}

fn read(x: &Tensor, index: &PyObject, vm: &VirtualMachine) -> Result<Indexed> {
    let items: Vec<PyObjectRef> = match index.downcast_ref::<PyTuple>() {
        Some(tuple) => tuple.as_slice().to_vec(),
        None => vec![index.to_owned()],
    };
    let consumes = |item: &PyObjectRef| -> usize {
        if vm.is_none(item)
            || item.downcast_ref::<PyEllipsis>().is_some()
            || item.downcast_ref::<PyBool>().is_some()
        {
            return 0;
        }
        match item.downcast_ref::<PyTensor>() {
            Some(tensor) if matches!(tensor.get().dtype(), DType::Bool | DType::U8) => tensor.get().ndim(),
            _ => 1,
        }
    };
    let taken: usize = items.iter().map(consumes).sum();
    if taken > x.ndim() {
        let is_number = |item: &PyObjectRef| item.downcast_ref::<PyInt>().is_some();
        return Err(match x.ndim() {
            0 if items.len() == 1 && items[0].downcast_ref::<PySlice>().is_some() => {
                raise("IndexError", "slice() cannot be applied to a 0-dim tensor.")
            }
            0 if items.len() == 1 && is_number(&items[0]) => raise(
                "IndexError",
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number",
            ),
            ndim => raise("IndexError", format!("too many indices for tensor of dimension {ndim}")),
        });
    }
    let mut view = x.clone();
    // Errors count the dimensions of the tensor, not those of the view.
    let (mut dim, mut by, mut seen) = (0, Vec::new(), 0);
    for item in &items {
        let at = seen;
        seen += if item.downcast_ref::<PyEllipsis>().is_some() { x.ndim() - taken } else { consumes(item) };
        if item.downcast_ref::<PyEllipsis>().is_some() {
            dim += x.ndim() - taken;
        } else if vm.is_none(item) {
            view = view.unsqueeze(dim as i64)?;
            dim += 1;
        } else if let Some(slice) = item.downcast_ref::<PySlice>() {
            view = sliced(&view, dim, slice, vm)?;
            dim += 1;
        } else if item.downcast_ref::<PyBool>().is_some() {
            let mask = Tensor::full(&[1], (truth(item, vm), view.device()))?;
            view = view.unsqueeze(dim as i64)?;
            by.push((dim, mask));
            dim += 1;
        } else if item.downcast_ref::<PyInt>().is_some() {
            let index = int(item, vm).ok_or_else(|| raise("IndexError", "the index is too large"))?;
            let size = view.sizes()[dim] as i64;
            if index < -size || index >= size {
                let text = format!("index {index} is out of bounds for dimension {at} with size {size}");
                return Err(raise("IndexError", text));
            }
            view = view.select(dim as i64, index)?;
        } else if let Some(tensor) = item.downcast_ref::<PyTensor>() {
            let tensor = tensor.get();
            if tensor.ndim() == 0 && !matches!(tensor.dtype(), DType::Bool | DType::U8) && items.len() == 1 {
                // `x[tensor(2)]` is a view, as `x[2]` is.
                return Ok(Indexed { view: view.index(&tensor)?, by });
            }
            let dims = consumes(item);
            by.push((dim, tensor));
            dim += dims;
        } else if item.downcast_ref::<PyList>().is_some() || item.downcast_ref::<PyTuple>().is_some() {
            by.push((dim, list(item, vm)?));
            dim += 1;
        } else {
            let class = item.class().name().to_string();
            let text = format!(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {class})"
            );
            return Err(raise("IndexError", text));
        }
    }
    Ok(Indexed { view, by })
}

fn truth(item: &PyObject, vm: &VirtualMachine) -> bool {
    item.to_owned().try_to_bool(vm).unwrap_or(false)
}

/// A list of indices or of truth values.
fn list(item: &PyObject, vm: &VirtualMachine) -> Result<Tensor> {
    let list = lists::tensor(item, None, vm)?;
    Ok(if list.numel() == 0 { list.to(DType::I64)? } else { list })
}

fn sliced(view: &Tensor, dim: usize, slice: &PySlice, vm: &VirtualMachine) -> Result<Tensor> {
    let number = |object: &PyObject| -> Result<Option<i64>> {
        match vm.is_none(object) {
            true => Ok(None),
            false => int(object, vm).map(Some).ok_or_else(|| {
                raise("TypeError", "slice indices must be integers or None or have an __index__ method")
            }),
        }
    };
    let optional = |object: &Option<PyObjectRef>| object.as_ref().map_or(Ok(None), |object| number(object));
    let step = optional(&slice.step)?.unwrap_or(1);
    if step < 0 {
        return Err(raise("ValueError", "step must be greater than zero"));
    }
    if step == 0 {
        return Err(raise("ValueError", "slice step cannot be zero"));
    }
    let size = *view
        .sizes()
        .get(dim)
        .ok_or_else(|| raise("IndexError", "slice() cannot be applied to a 0-dim tensor."))?;
    let (start, end) = (optional(&slice.start)?.unwrap_or(0), number(&slice.stop)?.unwrap_or(size as i64));
    // `x[:]` is a new view in PyTorch, too.
    Ok(view.slice(dim as i64, start, end, step as usize)?)
}

/// One tensor of indices, not at the first dimension: that dimension moves to the front, and back.
fn by_one(view: &Tensor, dim: usize, index: &Tensor) -> Result<Tensor> {
    let takes = if index.dtype() == DType::Bool { index.ndim() } else { 1 };
    let gives = if index.dtype() == DType::Bool { 1 } else { index.ndim() };
    let ndim = view.ndim();
    if index.ndim() == 1
        && index.dtype() != DType::Bool
        && index.device() == view.device()
        && is_in_range(view, dim, index)?
    {
        return Ok(view.index_select(dim as i64, index)?);
    }
    let front: Vec<i64> =
        (dim..dim + takes).chain(0..dim).chain(dim + takes..ndim).map(|dim| dim as i64).collect();
    let chosen = view.permute(&front)?.index(index)?;
    let back: Vec<i64> = (gives..gives + dim)
        .chain(0..gives)
        .chain(gives + dim..chosen.ndim())
        .map(|dim| dim as i64)
        .collect();
    Ok(chosen.permute(&back)?)
}

/// `index_select` takes no negative indices, so it is used only where a host can look at them.
fn is_in_range(view: &Tensor, dim: usize, index: &Tensor) -> Result<bool> {
    if index.is_cuda() || index.numel() == 0 {
        return Ok(false);
    }
    let (least, most) = (index.min()?.item()?, index.max()?.item()?);
    Ok(least >= 0.0 && most < view.sizes()[dim] as f64)
}

fn by_several(view: &Tensor, by: &[(usize, Tensor)]) -> Result<Tensor> {
    let (rows, index, at) = rows(view, by)?;
    let chosen = rows.index(&index)?;
    let gives = index.ndim();
    if at == 0 {
        return Ok(chosen);
    }
    let back: Vec<i64> =
        (gives..gives + at).chain(0..gives).chain(gives + at..chosen.ndim()).map(|dim| dim as i64).collect();
    Ok(chosen.permute(&back)?)
}

/// The indexed dimensions as one, in front of the others; an index into it; and where the result of it belongs.
fn rows(view: &Tensor, by: &[(usize, Tensor)]) -> Result<(Tensor, Tensor, usize)> {
    let mut indices: Vec<(usize, Tensor)> = Vec::new();
    for (dim, index) in by {
        if matches!(index.dtype(), DType::Bool | DType::U8) {
            let nonzero = index.nonzero()?;
            for i in 0..index.ndim() {
                indices.push((dim + i, nonzero.select(1, i as i64)?));
            }
        } else {
            indices.push((*dim, index.clone()));
        }
    }
    let dims: Vec<usize> = indices.iter().map(|(dim, _)| *dim).collect();
    let others: Vec<usize> = (0..view.ndim()).filter(|dim| !dims.contains(dim)).collect();
    let order: Vec<i64> = dims.iter().chain(&others).map(|dim| *dim as i64).collect();
    let front = view.permute(&order)?;
    let sizes: Vec<usize> = dims.iter().map(|dim| view.sizes()[*dim]).collect();
    let mut linear: Option<Tensor> = None;
    for ((dim, index), size) in indices.iter().zip(&sizes) {
        let index = index.to((view.device(), DType::I64))?;
        check(&index, *dim, *size)?;
        let index = index.lt(0i64)?.where_cond(&index.add(*size as i64)?, &index)?;
        linear = Some(match linear {
            None => index,
            Some(linear) => {
                linear.mul(*size as i64)?.add(&index).map_err(|error| shapes_differ(error, by))?
            }
        });
    }
    let linear = linear.unwrap_or_else(|| unreachable!("there are indices"));
    let shape: Vec<i64> = [sizes.iter().product::<usize>()]
        .into_iter()
        .chain(others.iter().map(|dim| view.sizes()[*dim]))
        .map(|size| size as i64)
        .collect();
    let adjacent = dims.windows(2).all(|pair| pair[1] == pair[0] + 1);
    Ok((front.reshape(&shape)?, linear, if adjacent { dims[0] } else { 0 }))
}

fn shapes_differ(error: todevice::Error, by: &[(usize, Tensor)]) -> Fault {
    if error.layout().is_none() {
        return error.into();
    }
    let shapes: Vec<String> = by.iter().map(|(_, index)| format!("{:?}", index.sizes())).collect();
    raise(
        "IndexError",
        format!(
            "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
            shapes.join(", ")
        ),
    )
}

/// An index of one dimension must not reach into the next. On a GPU, looking at it waits for the GPU.
fn check(index: &Tensor, dim: usize, size: usize) -> Result<()> {
    if index.numel() == 0 {
        return Ok(());
    }
    let (least, most) = (index.min()?.item()? as i64, index.max()?.item()? as i64);
    let wrong = if least < -(size as i64) { least } else { most };
    match least < -(size as i64) || most >= size as i64 {
        true => Err(raise(
            "IndexError",
            format!("index {wrong} is out of bounds for dimension {dim} with size {size}"),
        )),
        false => Ok(()),
    }
}
