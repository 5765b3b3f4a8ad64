//! Values on their way from one interpreter to another, which is on another thread. `lib/_parcel.py` takes objects apart
//! into these.

use rustpython_vm::builtins::{PyBytes, PyFloat, PyInt, PyStr, PyTuple};
use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyResult, VirtualMachine};
use todevice::Tensor;

use crate::tensor::PyTensor;

#[derive(Clone)]
pub enum Parcel {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Bytes(Vec<u8>),
    Tuple(Vec<Parcel>),
    Tensor(Tensor),
}

impl Parcel {
    pub fn of(object: &PyObject, vm: &VirtualMachine) -> PyResult<Parcel> {
        if vm.is_none(object) {
            return Ok(Parcel::None);
        }
        if let Some(items) = object.downcast_ref::<PyTuple>() {
            let items = items.as_slice().iter().map(|item| Parcel::of(item, vm));
            return Ok(Parcel::Tuple(items.collect::<PyResult<_>>()?));
        }
        if let Some(tensor) = object.downcast_ref::<PyTensor>() {
            return Ok(Parcel::Tensor(tensor.get()));
        }
        if let Some(text) = object.downcast_ref::<PyStr>() {
            return Ok(Parcel::Str(text.to_string()));
        }
        if let Some(bytes) = object.downcast_ref::<PyBytes>() {
            return Ok(Parcel::Bytes(bytes.as_bytes().to_vec()));
        }
        if object.class().is(vm.ctx.types.bool_type) {
            return Ok(Parcel::Bool(object.to_owned().try_to_bool(vm)?));
        }
        if let Some(float) = object.downcast_ref::<PyFloat>() {
            return Ok(Parcel::Float(float.to_f64()));
        }
        match object.downcast_ref::<PyInt>() {
            Some(int) => Ok(Parcel::Int(int.try_to_primitive(vm)?)),
            None => Err(vm.new_type_error(format!("cannot pickle '{}' object", object.class().name()))),
        }
    }

    pub fn object(&self, vm: &VirtualMachine) -> PyObjectRef {
        match self {
            Parcel::None => vm.ctx.none(),
            Parcel::Bool(value) => vm.ctx.new_bool(*value).into(),
            Parcel::Int(value) => vm.ctx.new_int(*value).into(),
            Parcel::Float(value) => vm.ctx.new_float(*value).into(),
            Parcel::Str(text) => vm.ctx.new_str(text.as_str()).into(),
            Parcel::Bytes(bytes) => vm.ctx.new_bytes(bytes.clone()).into(),
            Parcel::Tuple(items) => {
                vm.ctx.new_tuple(items.iter().map(|item| item.object(vm)).collect()).into()
            }
            Parcel::Tensor(tensor) => PyTensor::wrap(tensor.clone(), vm),
        }
    }
}
