//! Between tensors and lists of Python: `torch.tensor([[1, 2], [3, 4]])` and `x.tolist()`.

use rustpython_vm::builtins::{PyList, PyRange, PyTuple};
use rustpython_vm::{AsObject, PyObject, PyObjectRef, VirtualMachine};
use todevice::{DType, Tensor};

use super::PyTensor;
use crate::arguments::{Arg, of_element, scalar};
use crate::fault::{Result, raise};

/// The sizes of nested lists, and their numbers in order.
#[derive(Default)]
struct Nested {
    sizes: Vec<usize>,
    numbers: Vec<Arg>,
    /// The dtype of tensors among the numbers.
    of_tensors: Option<DType>,
}

/// The tensor of nested lists. Without a dtype, that of the numbers: float32, int64 or bool.
pub fn tensor(data: &PyObject, dtype: Option<DType>, vm: &VirtualMachine) -> Result<Tensor> {
    if let Some(tensor) = data.downcast_ref::<PyTensor>() {
        let tensor = tensor.get().detach().copy()?;
        return Ok(tensor.to(dtype.unwrap_or(tensor.dtype()))?);
    }
    let mut nested = Nested::default();
    nested.read(data, 0, vm)?;
    let Nested { sizes, numbers, of_tensors } = nested;
    let has = |is: fn(&Arg) -> bool| numbers.iter().any(is);
    let natural = match of_tensors {
        Some(dtype) => dtype,
        None if numbers.is_empty() || has(|number| matches!(number, Arg::Float(_))) => DType::F32,
        None if has(|number| matches!(number, Arg::Int(_))) => DType::I64,
        None => DType::Bool,
    };
    let dtype = dtype.unwrap_or(natural);
    let float = |number: &Arg| match number {
        Arg::Float(value) => *value,
        Arg::Int(value) => *value as f64,
        Arg::Bool(value) => f64::from(u8::from(*value)),
        _ => 0.0,
    };
    let int = |number: &Arg| match number {
        Arg::Float(value) => *value as i64,
        Arg::Int(value) => *value,
        Arg::Bool(value) => i64::from(*value),
        _ => 0,
    };
    let floats = || numbers.iter().map(float);
    let ints = || numbers.iter().map(int);
    let range = |low: i64, high: i64, name: &str| match ints().find(|value| !(low..=high).contains(value)) {
        Some(_) => {
            Err(raise("RuntimeError", format!("value cannot be converted to type {name} without overflow")))
        }
        None => Ok(()),
    };
    Ok(match dtype {
        DType::F32 => Tensor::from_slice(&floats().map(|value| value as f32).collect::<Vec<_>>(), &sizes)?,
        DType::F64 => Tensor::from_slice(&floats().collect::<Vec<_>>(), &sizes)?,
        DType::I64 => Tensor::from_slice(&ints().collect::<Vec<_>>(), &sizes)?,
        DType::I32 => {
            range(i32::MIN.into(), i32::MAX.into(), "int32")?;
            Tensor::from_slice(&ints().map(|value| value as i32).collect::<Vec<_>>(), &sizes)?
        }
        DType::U8 => {
            range(-255, 255, "uint8")?;
            Tensor::from_slice(&ints().map(|value| value as u8).collect::<Vec<_>>(), &sizes)?
        }
        DType::Bool => Tensor::from_slice(&floats().map(|value| value != 0.0).collect::<Vec<_>>(), &sizes)?,
        DType::F16 => Tensor::from_slice(&floats().map(todevice::f16::from_f64).collect::<Vec<_>>(), &sizes)?,
        DType::BF16 => {
            Tensor::from_slice(&floats().map(todevice::bf16::from_f64).collect::<Vec<_>>(), &sizes)?
        }
    })
}

impl Nested {
    fn read(&mut self, data: &PyObject, depth: usize, vm: &VirtualMachine) -> Result<()> {
        if let Some(number) = scalar(data, vm)? {
            self.numbers.push(number);
            return Ok(());
        }
        if let Some(tensor) = data.downcast_ref::<PyTensor>() {
            let tensor = tensor.get();
            if tensor.numel() != 1 {
                return Err(raise(
                    "ValueError",
                    "only one element tensors can be converted to Python scalars",
                ));
            }
            self.of_tensors =
                Some(self.of_tensors.map_or(tensor.dtype(), |dtype| dtype.promote(tensor.dtype())));
            self.numbers.push(of_element(&tensor)?);
            return Ok(());
        }
        let items: Vec<PyObjectRef> = if let Some(list) = data.downcast_ref::<PyList>() {
            list.borrow_vec().to_vec()
        } else if let Some(tuple) = data.downcast_ref::<PyTuple>() {
            tuple.as_slice().to_vec()
        } else if data.downcast_ref::<PyRange>().is_some() {
            vm.extract_elements_with(data, Ok)?
        } else {
            let class = data.class().name().to_string();
            let text = match depth {
                0 => format!("Could not infer dtype of {class}"),
                _ => format!("new(): invalid data type '{class}'"),
            };
            return Err(raise(if depth == 0 { "RuntimeError" } else { "TypeError" }, text));
        };
        match self.sizes.get(depth) {
            None if self.numbers.is_empty() => self.sizes.push(items.len()),
            None => return Err(raise("TypeError", "not a sequence")),
            Some(size) if *size != items.len() => {
                let text = format!("expected sequence of length {size} at dim {depth} (got {})", items.len());
                return Err(raise("ValueError", text));
            }
            Some(_) => {}
        }
        for item in items {
            let is_row = scalar(&item, vm)?.is_none() && item.downcast_ref::<PyTensor>().is_none();
            if !is_row && self.sizes.len() > depth + 1 {
                let class = item.class().name().to_string();
                return Err(raise(
                    "TypeError",
                    format!("expected a sequence at dim {}, got {class}", depth + 1),
                ));
            }
            self.read(&item, depth + 1, vm)?;
        }
        Ok(())
    }
}

/// Nested lists of numbers; a number for a tensor of no dimensions.
pub fn tolist(tensor: &Tensor, vm: &VirtualMachine) -> Result<PyObjectRef> {
    let tensor = tensor.detach();
    let numbers: Vec<PyObjectRef> = match tensor.dtype() {
        DType::Bool => {
            tensor.to_vec::<bool>()?.into_iter().map(|value| vm.ctx.new_bool(value).into()).collect()
        }
        dtype if dtype.is_floating_point() => {
            let values = tensor.to(DType::F64)?.to_vec::<f64>()?;
            values.into_iter().map(|value| vm.ctx.new_float(value).into()).collect()
        }
        _ => {
            let values = tensor.to(DType::I64)?.to_vec::<i64>()?;
            values.into_iter().map(|value| vm.ctx.new_int(value).into()).collect()
        }
    };
    Ok(nest(&mut numbers.into_iter(), tensor.sizes(), vm))
}

fn nest(
    numbers: &mut impl Iterator<Item = PyObjectRef>,
    sizes: &[usize],
    vm: &VirtualMachine,
) -> PyObjectRef {
    match sizes {
        [] => numbers.next().unwrap_or_else(|| vm.ctx.none()),
        [size, inner @ ..] => {
            let items = (0..*size).map(|_| nest(numbers, inner, vm)).collect();
            vm.ctx.new_list(items).into()
        }
    }
}
