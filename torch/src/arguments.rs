//! The arguments of a call, checked against a signature as PyTorch's argument parser does.

use rustpython_vm::builtins::{PyBool, PyFloat, PyInt, PyList, PyStr, PyTuple};
use rustpython_vm::function::FuncArgs;
use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyRef, VirtualMachine};
use smallvec::SmallVec;
use todevice::{DType, Device, Generator, Operand, Scalar, Tensor, TensorOptions};

use crate::device::PyDevice;
use crate::dtype::PyDType;
use crate::fault::{Fault, Result, raise};
use crate::generator::PyGenerator;
use crate::schema::{Default, Kind, Parameter, Signature};
use crate::shared;
use crate::tensor::{PyTensor, not_here};

#[derive(Clone, Debug)]
pub enum Arg {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Ints(SmallVec<[i64; 4]>),
    Tensor(PyRef<PyTensor>),
    Tensors(Vec<PyRef<PyTensor>>),
    DType(DType),
    Device(Device),
    Generator(Generator),
    Any(PyObjectRef),
}

impl Arg {
    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Arg::Bool(value) => Some(Scalar::Bool(*value)),
            Arg::Int(value) => Some(Scalar::Int(*value)),
            Arg::Float(value) => Some(Scalar::Float(*value)),
            _ => None,
        }
    }
}

pub struct Arguments<'a> {
    pub vm: &'a VirtualMachine,
    pub signature: &'static Signature,
    args: SmallVec<[Arg; 8]>,
}

impl<'a> Arguments<'a> {
    /// Checks the arguments of a call. The error is PyTorch's, for a function with one signature.
    pub fn bind(
        signature: &'static Signature,
        given: &FuncArgs,
        vm: &'a VirtualMachine,
    ) -> Result<Arguments<'a>> {
        let parameters = &signature.parameters;
        let mut positional = &given.args[..];
        let mut args: SmallVec<[Arg; 8]> = SmallVec::new();
        let mut used = 0;
        for (i, parameter) in parameters.iter().enumerate() {
            let arg = if i < signature.positional && !positional.is_empty() {
                let is_last = i + 1 == signature.positional;
                if is_last && signature.varargs && is_int(&positional[0]) {
                    let ints = positional.iter().map(|object| int(object, vm));
                    let ints = ints.collect::<Option<SmallVec<_>>>();
                    let ints = ints.ok_or_else(|| mismatch(signature, i, parameter, &positional[0]));
                    positional = &[];
                    Arg::Ints(ints?)
                } else {
                    let object = &positional[0];
                    positional = &positional[1..];
                    convert(parameter, object, vm)?
                        .ok_or_else(|| mismatch(signature, i, parameter, object))?
                }
            } else if let Some(object) = given.kwargs.get(parameter.name).or_else(|| alias(given, parameter))
            {
                used += 1;
                convert(parameter, object, vm)?.ok_or_else(|| mismatch(signature, i, parameter, object))?
            } else {
                match parameter.default {
                    Some(default) => default_of(default),
                    None if parameter.optional => Arg::None,
                    None if signature.varargs && i + 1 == signature.positional => Arg::Ints(SmallVec::new()),
                    None => return Err(missing(signature, i)),
                }
            };
            args.push(arg);
        }
        if !positional.is_empty() {
            let (most, were) = (signature.positional, given.args.len());
            let s = if most == 1 { "" } else { "s" };
            return Err(raise(
                "TypeError",
                format!("{}() takes {most} positional argument{s} but {were} were given", signature.name),
            ));
        }
        if used < given.kwargs.len() {
            return Err(unexpected(signature, given));
        }
        Ok(Arguments { vm, signature, args })
    }

    /// The Python object of the tensor that this result is, if it is one of the arguments.
    pub fn object_of(&self, result: &Tensor) -> Option<PyObjectRef> {
        self.args.iter().find_map(|arg| match arg {
            Arg::Tensor(tensor) if tensor.holds(result) => Some(tensor.as_object().to_owned()),
            _ => None,
        })
    }

    pub fn arg(&self, i: usize) -> &Arg {
        &self.args[i]
    }

    pub fn is_none(&self, i: usize) -> bool {
        matches!(self.args[i], Arg::None)
    }

    pub fn t(&self, i: usize) -> Tensor {
        self.opt_t(i).unwrap_or_else(|| unreachable!("{} has a tensor there", self.signature.name))
    }

    pub fn opt_t(&self, i: usize) -> Option<Tensor> {
        match &self.args[i] {
            Arg::Tensor(tensor) => Some(tensor.get()),
            _ => None,
        }
    }

    pub fn object(&self, i: usize) -> PyRef<PyTensor> {
        match &self.args[i] {
            Arg::Tensor(tensor) => tensor.clone(),
            _ => unreachable!("{} has a tensor there", self.signature.name),
        }
    }

    pub fn tensors(&self, i: usize) -> Vec<Tensor> {
        match &self.args[i] {
            Arg::Tensors(tensors) => tensors.iter().map(|tensor| tensor.get()).collect(),
            Arg::Tensor(tensor) => vec![tensor.get()],
            _ => Vec::new(),
        }
    }

    pub fn operand<R>(&self, i: usize, use_it: impl FnOnce(Operand) -> R) -> R {
        match &self.args[i] {
            Arg::Tensor(tensor) => use_it(Operand::Tensor(&tensor.get())),
            _ => use_it(Operand::Scalar(self.scalar(i))),
        }
    }

    pub fn scalar(&self, i: usize) -> Scalar {
        self.opt_scalar(i).unwrap_or(Scalar::Int(0))
    }

    pub fn opt_scalar(&self, i: usize) -> Option<Scalar> {
        self.args[i].scalar()
    }

    pub fn int(&self, i: usize) -> i64 {
        self.opt_int(i).unwrap_or_default()
    }

    pub fn opt_int(&self, i: usize) -> Option<i64> {
        self.opt_scalar(i).map(Scalar::to_i64)
    }

    /// A number that must not be negative, or the error with this text.
    pub fn count(&self, i: usize, refused: impl FnOnce(i64) -> String) -> Result<usize> {
        let value = self.int(i);
        usize::try_from(value).map_err(|_| raise("RuntimeError", refused(value)))
    }

    pub fn float(&self, i: usize) -> f64 {
        self.opt_float(i).unwrap_or_default()
    }

    pub fn opt_float(&self, i: usize) -> Option<f64> {
        self.opt_scalar(i).map(Scalar::to_f64)
    }

    pub fn bool(&self, i: usize) -> bool {
        self.opt_scalar(i).is_some_and(|scalar| scalar.to_i64() != 0)
    }

    pub fn str(&self, i: usize) -> &str {
        match &self.args[i] {
            Arg::Str(text) => text,
            _ => "",
        }
    }

    pub fn ints(&self, i: usize) -> &[i64] {
        match &self.args[i] {
            Arg::Ints(ints) => ints,
            _ => &[],
        }
    }

    /// Sizes of a tensor to create.
    pub fn sizes(&self, i: usize) -> Result<Vec<usize>> {
        let sizes = self.ints(i);
        match sizes.iter().position(|size| *size < 0) {
            Some(at) => Err(raise(
                "RuntimeError",
                format!("Trying to create tensor with negative dimension {}: {sizes:?}", sizes[at]),
            )),
            None => Ok(sizes.iter().map(|size| *size as usize).collect()),
        }
    }

    pub fn dtype(&self, i: usize) -> Option<DType> {
        match self.args[i] {
            Arg::DType(dtype) => Some(dtype),
            _ => None,
        }
    }

    pub fn device(&self, i: usize) -> Option<Device> {
        match self.args[i] {
            Arg::Device(device) => Some(device),
            _ => None,
        }
    }

    pub fn generator(&self, i: usize) -> Option<&Generator> {
        match &self.args[i] {
            Arg::Generator(generator) => Some(generator),
            _ => None,
        }
    }

    pub fn any(&self, i: usize) -> Option<&PyObjectRef> {
        match &self.args[i] {
            Arg::Any(object) => Some(object),
            _ => None,
        }
    }

    /// The `**options` of a function that creates a tensor. They begin at argument `i`. Its result is pinned and requires
    /// a gradient after `finish`.
    pub fn options(&self, i: usize) -> TensorOptions {
        TensorOptions {
            dtype: self.dtype(i),
            device: self.device(i + 2).unwrap_or_default(),
            requires_grad: false,
        }
    }

    /// Likewise for `torch.zeros_like(x)`: dtype and device are those of `x`, unless others are given.
    pub fn options_like(&self, i: usize, like: &Tensor) -> TensorOptions {
        TensorOptions {
            dtype: self.dtype(i).or(Some(like.dtype())),
            device: self.device(i + 2).unwrap_or(like.device()),
            requires_grad: false,
        }
    }

    /// Applies the last of the `**options` to a new tensor: `pin_memory` and `requires_grad`.
    pub fn finish(&self, tensor: Tensor, i: usize) -> Result<Tensor> {
        let tensor = if self.bool(i + 3) { tensor.pin_memory()? } else { tensor };
        if !self.bool(i + 4) {
            return Ok(tensor);
        }
        match tensor.dtype().is_floating_point() {
            true => Ok(tensor.requires_grad_(true)?),
            false => Err(raise(
                "RuntimeError",
                "Only Tensors of floating point and complex dtype can require gradients",
            )),
        }
    }
}

/// `axis` is NumPy's name of `dim`, which PyTorch takes as well.
fn alias<'g>(given: &'g FuncArgs, parameter: &Parameter) -> Option<&'g PyObjectRef> {
    match parameter.name {
        "dim" => given.kwargs.get("axis"),
        "keepdim" => given.kwargs.get("keepdims"),
        _ => None,
    }
}

fn default_of(default: Default) -> Arg {
    match default {
        Default::None => Arg::None,
        Default::Bool(value) => Arg::Bool(value),
        Default::Int(value) => Arg::Int(value),
        Default::Float(value) => Arg::Float(value),
        Default::Str(value) => Arg::Str(value.to_owned()),
        Default::Ints(list) => Arg::Ints(list.split(',').filter_map(|int| int.trim().parse().ok()).collect()),
    }
}

fn is_int(object: &PyObject) -> bool {
    object.downcast_ref::<PyInt>().is_some() && object.downcast_ref::<PyBool>().is_none()
        || object.downcast_ref::<PyTensor>().is_some_and(|tensor| {
            let tensor = tensor.get();
            tensor.ndim() == 0 && !tensor.dtype().is_floating_point() && tensor.dtype() != DType::Bool
        })
}

/// The value of an integer, or of a tensor that holds one. PyTorch takes integers of 64 bits.
pub fn int(object: &PyObject, vm: &VirtualMachine) -> Option<i64> {
    if let Some(int) = object.downcast_ref::<PyInt>() {
        return int.try_to_primitive::<i64>(vm).ok();
    }
    let tensor = object.downcast_ref::<PyTensor>()?.get();
    let is_int = tensor.ndim() == 0 && !tensor.dtype().is_floating_point();
    is_int.then(|| tensor.item().ok().map(|value| value as i64)).flatten()
}

pub fn ints(object: &PyObject, vm: &VirtualMachine) -> Option<SmallVec<[i64; 4]>> {
    let of = |items: &[PyObjectRef]| items.iter().map(|item| int(item, vm)).collect();
    if let Some(tuple) = object.downcast_ref::<PyTuple>() {
        of(tuple.as_slice())
    } else if let Some(list) = object.downcast_ref::<PyList>() {
        of(&list.borrow_vec())
    } else {
        None
    }
}

fn tensors(object: &PyObject) -> Option<Vec<PyRef<PyTensor>>> {
    let of = |items: &[PyObjectRef]| {
        items.iter().map(|item| item.downcast_ref::<PyTensor>().map(|tensor| tensor.to_owned())).collect()
    };
    if let Some(tuple) = object.downcast_ref::<PyTuple>() {
        of(tuple.as_slice())
    } else if let Some(list) = object.downcast_ref::<PyList>() {
        of(&list.borrow_vec())
    } else {
        None
    }
}

/// A number of Python.
pub fn scalar(object: &PyObject, vm: &VirtualMachine) -> Result<Option<Arg>> {
    if let Some(value) = object.downcast_ref::<PyBool>() {
        let int = value.as_object().downcast_ref::<PyInt>();
        return Ok(int.map(|int| Arg::Bool(int.try_to_primitive::<i64>(vm).unwrap_or(0) != 0)));
    }
    if let Some(value) = object.downcast_ref::<PyInt>() {
        let value = value.try_to_primitive::<i64>(vm);
        return value.map(|value| Some(Arg::Int(value))).map_err(|_| overflow());
    }
    Ok(object.downcast_ref::<PyFloat>().map(|value| Arg::Float(value.to_f64())))
}

fn overflow() -> Fault {
    raise("RuntimeError", "Overflow when unpacking long long")
}

fn convert(parameter: &Parameter, object: &PyObject, vm: &VirtualMachine) -> Result<Option<Arg>> {
    let is_none = vm.is_none(object);
    if is_none && (parameter.optional || parameter.default == Some(Default::None)) {
        return Ok(Some(Arg::None));
    }
    let tensor = || object.downcast_ref::<PyTensor>().map(|tensor| Arg::Tensor(tensor.to_owned()));
    let number_in_tensor = || {
        let tensor = object.downcast_ref::<PyTensor>()?.get();
        (tensor.numel() == 1 && !tensor.requires_grad()).then_some(tensor)
    };
    Ok(match parameter.kind {
        Kind::Tensor => tensor(),
        Kind::Tensors => tensors(object).map(Arg::Tensors),
        Kind::Operand => match tensor() {
            Some(tensor) => Some(tensor),
            None => scalar(object, vm)?,
        },
        Kind::Scalar => match number_in_tensor() {
            Some(tensor) => Some(of_element(&tensor)?),
            None => scalar(object, vm)?,
        },
        Kind::Float => match number_in_tensor() {
            Some(tensor) => Some(Arg::Float(tensor.item()?)),
            None => scalar(object, vm)?,
        },
        Kind::Int => match scalar(object, vm)? {
            Some(Arg::Int(value)) => Some(Arg::Int(value)),
            Some(_) => None,
            None => int(object, vm).map(Arg::Int),
        },
        Kind::Bool => match scalar(object, vm)? {
            Some(Arg::Bool(value)) => Some(Arg::Bool(value)),
            Some(Arg::Int(value)) => Some(Arg::Bool(value != 0)),
            _ => None,
        },
        // One integer stands for a list of one: `x.sum(1)`.
        Kind::Ints => match int(object, vm).filter(|_| is_int(object)) {
            Some(one) => Some(Arg::Ints(SmallVec::from_slice(&[one]))),
            None => ints(object, vm).map(Arg::Ints),
        },
        Kind::Str => object.downcast_ref::<PyStr>().map(|text| Arg::Str(text.to_string())),
        Kind::DType => dtype(object, vm)?.map(Arg::DType),
        Kind::Device => device(object, vm)?.map(Arg::Device),
        Kind::Generator => object
            .downcast_ref::<PyGenerator>()
            .map(|generator| Arg::Generator(generator.generator().clone())),
        Kind::Layout => shared::registered("strided").filter(|strided| object.is(strided)).map(Arg::Any),
        Kind::Absent => return Err(not_here(&format!("the argument '{}'", parameter.name))),
        Kind::Any => Some(if is_none { Arg::None } else { Arg::Any(object.to_owned()) }),
    })
}

/// The only element of a tensor, as a number of Python.
pub fn of_element(tensor: &Tensor) -> Result<Arg> {
    Ok(match tensor.dtype() {
        DType::Bool => Arg::Bool(tensor.item()? != 0.0),
        dtype if dtype.is_floating_point() => Arg::Float(tensor.item()?),
        _ if tensor.numel() != 1 => Arg::Float(tensor.item()?), // its error
        _ => Arg::Int(tensor.to(DType::I64)?.detach().to_vec::<i64>()?[0]),
    })
}

pub fn dtype(object: &PyObject, vm: &VirtualMachine) -> Result<Option<DType>> {
    if let Some(dtype) = object.downcast_ref::<PyDType>() {
        return Ok(Some(dtype.dtype()));
    }
    // `dtype=float` is `torch.float64`.
    let types = &vm.ctx.types;
    Ok(if object.is(types.float_type) {
        Some(DType::F64)
    } else if object.is(types.int_type) {
        Some(DType::I64)
    } else if object.is(types.bool_type) {
        Some(DType::Bool)
    } else {
        None
    })
}

pub fn device(object: &PyObject, vm: &VirtualMachine) -> Result<Option<Device>> {
    if let Some(device) = object.downcast_ref::<PyDevice>() {
        return device.device().map(Some);
    }
    if let Some(name) = object.downcast_ref::<PyStr>() {
        return PyDevice::parse(&name.to_string())?.device().map(Some);
    }
    match int(object, vm) {
        Some(index) if index >= 0 => Ok(Some(Device::cuda(index as usize))),
        _ => Ok(None),
    }
}

fn mismatch(signature: &Signature, i: usize, parameter: &Parameter, given: &PyObject) -> Fault {
    let is_method = signature.parameters[0].name == "input";
    let at = match parameter.keyword_only {
        true => String::new(),
        false => format!(" (position {})", if is_method { i.max(1) } else { i + 1 }),
    };
    raise(
        "TypeError",
        format!(
            "{}(): argument '{}'{at} must be {}, not {}",
            signature.name,
            parameter.name,
            parameter.kind.name(),
            given.class().name()
        ),
    )
}

fn missing(signature: &Signature, i: usize) -> Fault {
    let is_required = |parameter: &&Parameter| parameter.default.is_none() && !parameter.optional;
    let names: Vec<String> = signature.parameters[i..]
        .iter()
        .filter(is_required)
        .map(|parameter| format!("\"{}\"", parameter.name))
        .collect();
    let s = if names.len() == 1 { "" } else { "s" };
    let (count, names) = (names.len(), names.join(", "));
    raise(
        "TypeError",
        format!("{}() missing {count} required positional argument{s}: {names}", signature.name),
    )
}

fn unexpected(signature: &Signature, given: &FuncArgs) -> Fault {
    let knows = |name: &String| {
        signature.parameters.iter().any(|parameter| {
            parameter.name == name
                || matches!((parameter.name, name.as_str()), ("dim", "axis") | ("keepdim", "keepdims"))
        })
    };
    match given.kwargs.keys().find(|name| !knows(name)) {
        Some(name) => {
            raise("TypeError", format!("{}() got an unexpected keyword argument '{name}'", signature.name))
        }
        None => {
            let name = given.kwargs.keys().next().map_or("", String::as_str);
            raise("TypeError", format!("{}() got multiple values for argument '{name}'", signature.name))
        }
    }
}

/// Refuses a keyword that a constructor does not know, and arguments by position beyond the first `positional` names.
pub fn expect_names(class: &str, given: &FuncArgs, names: &[&str], positional: usize) -> Result<()> {
    if let Some(name) = given.kwargs.keys().find(|name| !names.contains(&name.as_str())) {
        return Err(raise("TypeError", format!("{class}() got an unexpected keyword argument '{name}'")));
    }
    let were = given.args.len();
    if were > positional {
        let s = if positional == 1 { "" } else { "s" };
        let text = format!("{class}() takes {positional} positional argument{s} but {were} were given");
        return Err(raise("TypeError", text));
    }
    Ok(())
}

/// The types of the given arguments, for `received an invalid combination of arguments - got (…)`.
pub fn types_of(given: &FuncArgs) -> String {
    let positional = given.args.iter().map(|arg| arg.class().name().to_string());
    let keywords = given.kwargs.iter().map(|(name, arg)| format!("{name}={}", arg.class().name()));
    positional.chain(keywords).collect::<Vec<_>>().join(", ")
}
