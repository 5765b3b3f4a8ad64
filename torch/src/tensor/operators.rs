//! The operators of Python on tensors: `x + 1`, `2 / x`, `a @ b`, `x[mask] |= …`, `x < y`, `-x`, `bool(x)`.

use rustpython_vm::function::PyComparisonValue;
use rustpython_vm::protocol::{PyMappingMethods, PyNumberMethods};
use rustpython_vm::types::{AsMapping, AsNumber, Comparable, PyComparisonOp};
use rustpython_vm::{AsObject, Py, PyObject, PyResult, VirtualMachine, atomic_func};
use todevice::{Operand, Scalar, Tensor};

use super::{PyTensor, in_python, indexing};
use crate::arguments::{Arg, scalar};
use crate::fault::{Result, raise};
use crate::operations::integers;

type Binary = fn(&Tensor, Operand) -> Result<Tensor>;
type NumberFirst = fn(Scalar, &Tensor) -> Result<Tensor>;

enum Other {
    Tensor(Tensor),
    Number(Scalar),
}

impl Other {
    fn of(object: &PyObject, vm: &VirtualMachine) -> Result<Option<Other>> {
        if let Some(tensor) = object.downcast_ref::<PyTensor>() {
            return Ok(Some(Other::Tensor(tensor.get())));
        }
        Ok(scalar(object, vm)?.and_then(|number| number.scalar()).map(Other::Number))
    }
}

/// `a ∘ b`, where one of both is a tensor.
fn binary(a: &PyObject, b: &PyObject, vm: &VirtualMachine, of: Binary, reflected: NumberFirst) -> PyResult {
    in_python(vm, || {
        let (Some(left), Some(right)) = (Other::of(a, vm)?, Other::of(b, vm)?) else {
            return Ok(vm.ctx.not_implemented());
        };
        let result = match (left, right) {
            (Other::Tensor(a), Other::Tensor(b)) => of(&a, Operand::Tensor(&b))?,
            (Other::Tensor(a), Other::Number(b)) => of(&a, Operand::Scalar(b))?,
            (Other::Number(a), Other::Tensor(b)) => reflected(a, &b)?,
            (Other::Number(_), Other::Number(_)) => return Ok(vm.ctx.not_implemented()),
        };
        Ok(PyTensor::wrap(result, vm))
    })
}

/// `a ∘= b`. The object stays the same.
fn in_place(a: &PyObject, b: &PyObject, vm: &VirtualMachine, of: Binary) -> PyResult {
    in_python(vm, || {
        let (Some(target), Some(other)) = (a.downcast_ref::<PyTensor>(), Other::of(b, vm)?) else {
            return Ok(vm.ctx.not_implemented());
        };
        match other {
            Other::Tensor(other) => of(&target.get(), Operand::Tensor(&other))?,
            Other::Number(other) => of(&target.get(), Operand::Scalar(other))?,
        };
        Ok(a.to_owned())
    })
}

fn unary(x: &PyObject, vm: &VirtualMachine, of: fn(&Tensor) -> Result<Tensor>) -> PyResult {
    in_python(vm, || {
        let Some(tensor) = x.downcast_ref::<PyTensor>() else { return Ok(vm.ctx.not_implemented()) };
        Ok(PyTensor::wrap(of(&tensor.get())?, vm))
    })
}

/// A number first, by an operator of Rust: `2 - x`.
macro_rules! number_first {
    ($number:ident $operator:tt $x:ident) => {
        match $number {
            Scalar::Bool(value) => i64::from(value) $operator $x,
            Scalar::Int(value) => value $operator $x,
            Scalar::Float(value) => value $operator $x,
        }
    };
}

macro_rules! operator {
    ($method:ident) => {
        |a, b| Ok(Tensor::$method(a, b)?)
    };
}

fn as_tensor(number: Scalar, like: &Tensor) -> Result<Tensor> {
    Ok(Tensor::full(&[], (number, like.device()))?)
}

impl AsNumber for PyTensor {
    fn as_number() -> &'static PyNumberMethods {
        static METHODS: PyNumberMethods = PyNumberMethods {
            add: Some(|a, b, vm| {
                binary(a, b, vm, operator!(add), |number, x| Ok(number_first!(number + x)?))
            }),
            subtract: Some(|a, b, vm| {
                binary(a, b, vm, operator!(sub), |number, x| Ok(number_first!(number - x)?))
            }),
            multiply: Some(|a, b, vm| {
                binary(a, b, vm, operator!(mul), |number, x| Ok(number_first!(number * x)?))
            }),
            true_divide: Some(|a, b, vm| {
                binary(a, b, vm, operator!(div), |number, x| Ok(number_first!(number / x)?))
            }),
            floor_divide: Some(|a, b, vm| {
                binary(a, b, vm, integers::floor_divide, |number, x| {
                    integers::floor_divide(&as_tensor(number, x)?, Operand::Tensor(x))
                })
            }),
            remainder: Some(|a, b, vm| binary(a, b, vm, integers::remainder, integers::remainder_of_number)),
            power: Some(|a, b, _, vm| binary(a, b, vm, integers::pow, integers::pow_of_number)),
            matrix_multiply: Some(|a, b, vm| {
                let (Some(a), Some(b)) = (a.downcast_ref::<PyTensor>(), b.downcast_ref::<PyTensor>()) else {
                    return Ok(vm.ctx.not_implemented());
                };
                in_python(vm, || Ok(PyTensor::wrap(a.get().matmul(&b.get())?, vm)))
            }),
            and: Some(|a, b, vm| {
                binary(a, b, vm, integers::and, |a, b| integers::and(b, Operand::Scalar(a)))
            }),
            or: Some(|a, b, vm| binary(a, b, vm, integers::or, |a, b| integers::or(b, Operand::Scalar(a)))),
            xor: Some(|a, b, vm| {
                binary(a, b, vm, integers::xor, |a, b| integers::xor(b, Operand::Scalar(a)))
            }),
            lshift: Some(|a, b, vm| {
                binary(a, b, vm, integers::shift_left, |_, _| {
                    Err(super::not_here("a number shifted by a tensor"))
                })
            }),
            rshift: Some(|a, b, vm| {
                binary(a, b, vm, integers::shift_right, |_, _| {
                    Err(super::not_here("a number shifted by a tensor"))
                })
            }),
            inplace_add: Some(|a, b, vm| in_place(a, b, vm, operator!(add_))),
            inplace_subtract: Some(|a, b, vm| in_place(a, b, vm, operator!(sub_))),
            inplace_multiply: Some(|a, b, vm| in_place(a, b, vm, operator!(mul_))),
            inplace_true_divide: Some(|a, b, vm| in_place(a, b, vm, operator!(div_))),
            inplace_floor_divide: Some(|a, b, vm| {
                in_place(a, b, vm, |a, b| Ok(a.copy_(&integers::floor_divide(a, b)?)?))
            }),
            inplace_remainder: Some(|a, b, vm| {
                in_place(a, b, vm, |a, b| Ok(a.copy_(&integers::remainder(a, b)?)?))
            }),
            inplace_power: Some(|a, b, _, vm| in_place(a, b, vm, |a, b| Ok(a.copy_(&integers::pow(a, b)?)?))),
            inplace_and: Some(|a, b, vm| in_place(a, b, vm, |a, b| Ok(a.copy_(&integers::and(a, b)?)?))),
            inplace_or: Some(|a, b, vm| in_place(a, b, vm, |a, b| Ok(a.copy_(&integers::or(a, b)?)?))),
            inplace_xor: Some(|a, b, vm| in_place(a, b, vm, |a, b| Ok(a.copy_(&integers::xor(a, b)?)?))),
            negative: Some(|x, vm| unary(x.obj, vm, |x| Ok(x.neg()?))),
            positive: Some(|x, _| Ok(x.obj.to_owned())),
            absolute: Some(|x, vm| unary(x.obj, vm, |x| Ok(x.abs()?))),
            invert: Some(|x, vm| unary(x.obj, vm, integers::not)),
            boolean: Some(|x, vm| match x.obj.downcast_ref::<PyTensor>() {
                Some(tensor) => in_python(vm, || Ok(tensor.get().is_nonzero()?)),
                None => Ok(true),
            }),
            int: Some(|x, vm| {
                number(x.obj, vm, |arg| match arg {
                    Arg::Float(value) if value.is_nan() => {
                        Err(raise("ValueError", "cannot convert float NaN to integer"))
                    }
                    Arg::Float(value) if value.is_infinite() => {
                        Err(raise("OverflowError", "cannot convert float infinity to integer"))
                    }
                    Arg::Float(value) => Ok(Arg::Int(value as i64)),
                    Arg::Bool(value) => Ok(Arg::Int(i64::from(value))),
                    arg => Ok(arg),
                })
            }),
            float: Some(|x, vm| {
                number(x.obj, vm, |arg| match arg {
                    Arg::Int(value) => Ok(Arg::Float(value as f64)),
                    Arg::Bool(value) => Ok(Arg::Float(f64::from(u8::from(value)))),
                    arg => Ok(arg),
                })
            }),
            index: Some(|x, vm| {
                number(x.obj, vm, |arg| match arg {
                    Arg::Float(_) => Err(raise(
                        "TypeError",
                        "only integer tensors of a single element can be converted to an index",
                    )),
                    Arg::Bool(value) => Ok(Arg::Int(i64::from(value))),
                    arg => Ok(arg),
                })
            }),
            ..PyNumberMethods::NOT_IMPLEMENTED
        };
        &METHODS
    }
}

/// The only element as a number of Python.
fn number(x: &PyObject, vm: &VirtualMachine, of: fn(Arg) -> Result<Arg>) -> PyResult {
    in_python(vm, || {
        let Some(tensor) = x.downcast_ref::<PyTensor>() else { return Ok(vm.ctx.not_implemented()) };
        if tensor.get().numel() != 1 {
            return Err(raise("ValueError", "only one element tensors can be converted to Python scalars"));
        }
        let arg = of(crate::arguments::of_element(&tensor.get())?)?;
        Ok(crate::value::Value::from(arg).into_object(vm)?)
    })
}

impl Comparable for PyTensor {
    fn slot_richcompare(
        zelf: &PyObject,
        other: &PyObject,
        op: PyComparisonOp,
        vm: &VirtualMachine,
    ) -> PyResult<rustpython_vm::function::Either<rustpython_vm::PyObjectRef, PyComparisonValue>> {
        use rustpython_vm::function::Either;
        let of: Binary = match op {
            PyComparisonOp::Eq => operator!(eq),
            PyComparisonOp::Ne => operator!(ne),
            PyComparisonOp::Lt => operator!(lt),
            PyComparisonOp::Le => operator!(le),
            PyComparisonOp::Gt => operator!(gt),
            _ => operator!(ge),
        };
        let result = binary(zelf, other, vm, of, |_, _| Err(super::not_here("this comparison")))?;
        match result.is(&vm.ctx.not_implemented()) {
            true => Ok(Either::B(PyComparisonValue::NotImplemented)),
            false => Ok(Either::A(result)),
        }
    }

    fn cmp(_: &Py<Self>, _: &PyObject, _: PyComparisonOp, _: &VirtualMachine) -> PyResult<PyComparisonValue> {
        Ok(PyComparisonValue::NotImplemented)
    }
}

impl AsMapping for PyTensor {
    fn as_mapping() -> &'static PyMappingMethods {
        static METHODS: std::sync::LazyLock<PyMappingMethods> =
            std::sync::LazyLock::new(|| PyMappingMethods {
                length: atomic_func!(|mapping, vm| {
                    let tensor = of_mapping(mapping.obj).get();
                    match tensor.sizes().first() {
                        Some(size) => Ok(*size),
                        None => Err(vm.new_type_error("len() of a 0-d tensor".to_owned())),
                    }
                }),
                subscript: atomic_func!(|mapping, index, vm| {
                    in_python(vm, || {
                        Ok(PyTensor::wrap(indexing::get(&of_mapping(mapping.obj).get(), index, vm)?, vm))
                    })
                }),
                ass_subscript: atomic_func!(|mapping, index, value, vm| {
                    in_python(vm, || match value {
                        Some(value) => indexing::set(&of_mapping(mapping.obj).get(), index, &value, vm),
                        None => Err(raise("TypeError", "Tensor does not support deleting items")),
                    })
                }),
                ..PyMappingMethods::NOT_IMPLEMENTED
            });
        &METHODS
    }
}

fn of_mapping(object: &PyObject) -> &Py<PyTensor> {
    object.downcast_ref::<PyTensor>().unwrap_or_else(|| unreachable!("it is a method of tensors"))
}
