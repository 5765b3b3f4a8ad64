//! The result of an operation, on its way to Python.

use rustpython_vm::{PyObjectRef, PyResult, VirtualMachine};
use todevice::{DType, Device, Scalar, Tensor};

use crate::arguments::{Arg, Arguments};
use crate::device::PyDevice;
use crate::dtype::PyDType;
use crate::shared;
use crate::tensor::PyTensor;

pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Tensor(Tensor),
    Tuple(Vec<Tensor>),
    /// `torch.return_types.max(values=…, indices=…)`
    Named(&'static str, Vec<Tensor>),
    Size(Vec<usize>),
    Ints(Vec<i64>),
    DType(DType),
    Device(Device),
    Object(PyObjectRef),
}

impl Value {
    pub fn to_object(self, arguments: &Arguments) -> PyResult {
        let vm = arguments.vm;
        match self {
            Value::Tensor(tensor) => match arguments.object_of(&tensor) {
                Some(object) => Ok(object),
                None => Ok(PyTensor::wrap(tensor, vm)),
            },
            other => other.into_object(vm),
        }
    }

    pub fn into_object(self, vm: &VirtualMachine) -> PyResult {
        let objects =
            |tensors: Vec<Tensor>| tensors.into_iter().map(|tensor| PyTensor::wrap(tensor, vm)).collect();
        Ok(match self {
            Value::None => vm.ctx.none(),
            Value::Bool(value) => vm.ctx.new_bool(value).into(),
            Value::Int(value) => vm.ctx.new_int(value).into(),
            Value::Float(value) => vm.ctx.new_float(value).into(),
            Value::Str(value) => vm.ctx.new_str(value).into(),
            Value::Tensor(tensor) => PyTensor::wrap(tensor, vm),
            Value::Tuple(tensors) => vm.ctx.new_tuple(objects(tensors)).into(),
            Value::Named(name, tensors) => match shared::registered(name) {
                Some(class) => class.call((vm.ctx.new_tuple(objects(tensors)),), vm)?,
                None => vm.ctx.new_tuple(objects(tensors)).into(),
            },
            Value::Size(sizes) => size(&sizes, vm)?,
            Value::Ints(ints) => {
                vm.ctx.new_tuple(ints.into_iter().map(|int| vm.ctx.new_int(int).into()).collect()).into()
            }
            Value::DType(dtype) => PyDType::object(dtype, vm),
            Value::Device(device) => PyDevice::of(device).into_object(vm),
            Value::Object(object) => object,
        })
    }
}

/// `torch.Size([2, 3])`
pub fn size(sizes: &[usize], vm: &VirtualMachine) -> PyResult {
    let tuple = vm.ctx.new_tuple(sizes.iter().map(|size| vm.ctx.new_int(*size).into()).collect());
    match shared::registered("Size") {
        Some(class) => class.call((tuple,), vm),
        None => Ok(tuple.into()),
    }
}

impl From<Arg> for Value {
    fn from(arg: Arg) -> Value {
        match arg {
            Arg::Bool(value) => Value::Bool(value),
            Arg::Int(value) => Value::Int(value),
            Arg::Float(value) => Value::Float(value),
            _ => Value::None,
        }
    }
}

macro_rules! from {
    ($($type:ty => $Variant:ident),* $(,)?) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$Variant(value)
            }
        })*
    };
}

from! {
    bool => Bool, i64 => Int, f64 => Float, String => Str, Tensor => Tensor, Vec<Tensor> => Tuple, DType => DType,
    Device => Device, PyObjectRef => Object,
}

impl From<()> for Value {
    fn from((): ()) -> Value {
        Value::None
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        Value::Int(value as i64)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Int(value as i64)
    }
}

impl From<Scalar> for Value {
    fn from(value: Scalar) -> Value {
        match value {
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Int(value) => Value::Int(value),
            Scalar::Float(value) => Value::Float(value),
        }
    }
}
