//! The module `_serialize`: Python's objects as values of `todevice::serialize`, and back.

pub(crate) use _serialize::module_def;

#[rustpython_vm::pymodule]
mod _serialize {
    use rustpython_vm::builtins::{PyBytes, PyDict, PyList, PyStr, PyTuple};
    use rustpython_vm::function::ArgBytesLike;
    use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyResult, VirtualMachine};
    use todevice::Tensor;
    use todevice::serialize::{self, Dict, Key, MapLocation, Value};

    use crate::arguments::{self, Arg, scalar};
    use crate::device::PyDevice;
    use crate::dtype::PyDType;
    use crate::fault::{Result, raise};
    use crate::tensor::{PyTensor, in_python};

    #[pyfunction]
    fn to_bytes(object: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || {
            let bytes = serialize::to_bytes(value(&object, vm)?)?;
            Ok(vm.ctx.new_bytes(bytes).into())
        })
    }

    #[pyfunction]
    fn from_bytes(data: ArgBytesLike, map_location: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || {
            let place = match map_location.downcast_ref::<PyDict>() {
                Some(dict) => {
                    let pairs = dict.into_iter().map(|(from, to)| {
                        Ok::<_, crate::fault::Fault>((from.str(vm)?.to_string(), to.str(vm)?.to_string()))
                    });
                    MapLocation::map(pairs.collect::<Result<Vec<_>>>()?)
                }
                None => match arguments::device(&map_location, vm)? {
                    Some(device) => device.into(),
                    None => MapLocation::None,
                },
            };
            let value = serialize::from_bytes(&data.borrow_buf(), place)?;
            object(value, vm)
        })
    }

    fn value(object: &PyObject, vm: &VirtualMachine) -> Result<Value> {
        if vm.is_none(object) {
            return Ok(Value::None);
        }
        if let Some(tensor) = object.downcast_ref::<PyTensor>() {
            return Ok(Value::Tensor(tensor.get()));
        }
        match scalar(object, vm)? {
            Some(Arg::Bool(value)) => return Ok(Value::Bool(value)),
            Some(Arg::Int(value)) => return Ok(Value::Int(value)),
            Some(Arg::Float(value)) => return Ok(Value::Float(value)),
            _ => {}
        }
        if let Some(text) = object.downcast_ref::<PyStr>() {
            return Ok(Value::Str(text.to_string()));
        }
        if let Some(bytes) = object.downcast_ref::<PyBytes>() {
            return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
        }
        if let Some(device) = object.downcast_ref::<PyDevice>() {
            return Ok(Value::Device(device.as_object().str(vm)?.to_string()));
        }
        if let Some(dtype) = object.downcast_ref::<PyDType>() {
            return Ok(Value::Global(dtype.dtype().to_string()));
        }
        let all =
            |items: &[PyObjectRef]| items.iter().map(|item| value(item, vm)).collect::<Result<Vec<_>>>();
        if let Some(list) = object.downcast_ref::<PyList>() {
            return Ok(Value::List(all(&list.borrow_vec())?));
        }
        if let Some(tuple) = object.downcast_ref::<PyTuple>() {
            return Ok(Value::Tuple(all(tuple.as_slice())?));
        }
        if let Some(dict) = object.downcast_ref::<PyDict>() {
            let is_ordered = &*object.class().name() == "OrderedDict";
            let mut result = if is_ordered { Dict::ordered() } else { Dict::new() };
            for (key, item) in dict {
                result.insert(key_of(&key, vm)?, value(&item, vm)?);
            }
            if is_ordered && let Ok(metadata) = object.get_attr("_metadata", vm) {
                let mut attributes = Dict::new();
                attributes.insert("_metadata", value(&metadata, vm)?);
                result.set_attributes(attributes);
            }
            return Ok(Value::Dict(result));
        }
        let class = object.class();
        Err(raise(
            "NotImplementedError",
            format!(
                "torch.save of an object of class {} is not here: PyTorch has it, this course does not; save its `state_dict()`",
                class.name()
            ),
        ))
    }

    fn key_of(key: &PyObject, vm: &VirtualMachine) -> Result<Key> {
        if let Some(text) = key.downcast_ref::<PyStr>() {
            return Ok(text.to_string().as_str().into());
        }
        match scalar(key, vm)? {
            Some(Arg::Int(value)) => Ok(value.into()),
            Some(Arg::Bool(value)) => Ok(value.into()),
            Some(Arg::Float(value)) => Ok(value.into()),
            _ => Err(raise(
                "NotImplementedError",
                "torch.save of a dict whose keys are not strings or numbers is not here",
            )),
        }
    }

    fn object(value: Value, vm: &VirtualMachine) -> Result<PyObjectRef> {
        let all =
            |items: Vec<Value>| items.into_iter().map(|item| object(item, vm)).collect::<Result<Vec<_>>>();
        Ok(match value {
            Value::None => vm.ctx.none(),
            Value::Bool(value) => vm.ctx.new_bool(value).into(),
            Value::Int(value) => vm.ctx.new_int(value).into(),
            Value::Float(value) => vm.ctx.new_float(value).into(),
            Value::Str(value) => vm.ctx.new_str(value).into(),
            Value::Tensor(tensor) => tensor_object(tensor, vm),
            Value::List(items) => vm.ctx.new_list(all(items)?).into(),
            Value::Tuple(items) => vm.ctx.new_tuple(all(items)?).into(),
            Value::Bytes(bytes) => vm.ctx.new_bytes(bytes).into(),
            Value::Device(name) => PyDevice::parse(&name)?.into_object(vm),
            Value::Dict(dict) => dict_object(dict, vm)?,
            other => {
                let text = format!(
                    "torch.load of a {} is not here: PyTorch has it, this course does not",
                    other.kind()
                );
                return Err(raise("NotImplementedError", text));
            }
        })
    }

    fn tensor_object(tensor: Tensor, vm: &VirtualMachine) -> PyObjectRef {
        PyTensor::wrap(tensor, vm)
    }

    fn dict_object(dict: Dict, vm: &VirtualMachine) -> Result<PyObjectRef> {
        let result: PyObjectRef = match dict.is_ordered() {
            true => vm.import("collections", 0)?.get_attr("OrderedDict", vm)?.call((), vm)?,
            false => vm.ctx.new_dict().into(),
        };
        if let Some(attributes) = dict.attributes()
            && let Some(metadata) = attributes.get("_metadata")
        {
            result.set_attr("_metadata", object(metadata.clone(), vm)?, vm)?;
        }
        for (key, item) in dict.iter() {
            let key = object(Value::from(key.clone()), vm)?;
            result.set_item(&*key, object(item.clone(), vm)?, vm)?;
        }
        Ok(result)
    }
}
