use std::fmt;

use super::big_int::BigInt;
use super::dict::Dict;
use super::error::SerializeError;
use super::key::Key;
use super::names;
use crate::dtype::DType;
use crate::error::Result;
use crate::python::{python_bytes, python_float, python_str};
use crate::tensor::Tensor;

/// A value in a checkpoint, of any type that `torch.load(weights_only=True)` returns.
///
/// ```
/// use todevice::Tensor;
/// use todevice::serialize::{Dict, Value};
///
/// let mut checkpoint = Dict::new();
/// checkpoint.insert("epoch", 3);
/// checkpoint.insert("weight", Tensor::zeros(&[2])?);
/// assert_eq!(checkpoint.at("epoch")?.as_int()?, 3);
/// assert_eq!(checkpoint.at("weight")?.as_int().unwrap_err().to_string(), "expected int, found Tensor");
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Python's `None`.
    #[default]
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An `int` that fits in 64 bits.
    Int(i64),
    /// A `float`.
    Float(f64),
    /// A `str`.
    Str(String),
    /// A `torch.Tensor`. Tensors that share a storage still share it after loading.
    Tensor(Tensor),
    /// A `list`.
    List(Vec<Value>),
    /// A `tuple`.
    Tuple(Vec<Value>),
    /// A `dict`.
    Dict(Dict),
    /// An `int` of more than 64 bits.
    BigInt(BigInt),
    /// A `complex`.
    Complex(f64, f64),
    /// `bytes`.
    Bytes(Vec<u8>),
    /// A `bytearray`.
    ByteArray(Vec<u8>),
    /// A `set`, in the order of the file.
    Set(Vec<Key>),
    /// A `torch.device`, by its name: `cuda:1`, `mps`.
    Device(String),
    /// A constant, class or function, by its full name: `torch.int16`, `torch.strided`, `torch.Size`.
    Global(String),
    /// A bare storage (`torch.TypedStorage`), as a 1-D tensor of all its elements.
    Storage(Tensor),
}

impl Value {
    /// Returns the name of Python's type: `int`, `dict`, `Tensor`.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::Tensor(_) => "Tensor",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Dict(dict) => dict.class().name(),
            Value::BigInt(_) => "int",
            Value::Complex(..) => "complex",
            Value::Bytes(_) => "bytes",
            Value::ByteArray(_) => "bytearray",
            Value::Set(_) => "set",
            Value::Device(_) => "device",
            Value::Global(name) => names::class_of(name),
            Value::Storage(_) => "TypedStorage",
        }
    }

    /// Returns whether the value is `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }

    /// Returns the bool, or an error with the actual type.
    pub fn as_bool(&self) -> Result<bool> {
        match self {
            Value::Bool(truth) => Ok(*truth),
            other => Err(other.is_not("bool")),
        }
    }

    /// Returns the integer, or an error with the actual type.
    pub fn as_int(&self) -> Result<i64> {
        match self {
            Value::Int(number) => Ok(*number),
            Value::BigInt(number) => Err(SerializeError::Overflow { number: number.to_string() }.into()),
            other => Err(other.is_not("int")),
        }
    }

    /// Returns the number, or an error with the actual type. Accepts an `int`, as in `lr=1`.
    pub fn as_float(&self) -> Result<f64> {
        match self {
            Value::Float(number) => Ok(*number),
            Value::Int(number) => Ok(*number as f64),
            Value::BigInt(number) => Ok(number.to_f64()),
            other => Err(other.is_not("float")),
        }
    }

    /// Returns the string, or an error with the actual type.
    pub fn as_str(&self) -> Result<&str> {
        match self {
            Value::Str(text) => Ok(text),
            other => Err(other.is_not("str")),
        }
    }

    /// Returns the tensor, or an error with the actual type.
    pub fn as_tensor(&self) -> Result<&Tensor> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(other.is_not("Tensor")),
        }
    }

    /// Returns the items of a list or tuple, or an error with the actual type.
    pub fn as_list(&self) -> Result<&[Value]> {
        match self {
            Value::List(values) | Value::Tuple(values) => Ok(values),
            other => Err(other.is_not("list")),
        }
    }

    /// Returns the dict, or an error with the actual type.
    pub fn as_dict(&self) -> Result<&Dict> {
        match self {
            Value::Dict(dict) => Ok(dict),
            other => Err(other.is_not("dict")),
        }
    }

    fn is_not(&self, expected: &'static str) -> crate::Error {
        SerializeError::Kind { expected, found: self.kind() }.into()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("None"),
            Value::Bool(truth) => f.write_str(if *truth { "True" } else { "False" }),
            Value::Int(number) => write!(f, "{number}"),
            Value::Float(number) => f.write_str(&python_float(*number)),
            Value::Str(text) => f.write_str(&python_str(text)),
            Value::Tensor(tensor) => write!(f, "{tensor}"),
            Value::List(values) => write!(f, "[{}]", Joined(values)),
            Value::Tuple(values) if values.len() == 1 => write!(f, "({},)", values[0]),
            Value::Tuple(values) => write!(f, "({})", Joined(values)),
            Value::Dict(dict) => write!(f, "{dict}"),
            Value::BigInt(number) => write!(f, "{number}"),
            Value::Complex(re, im) => f.write_str(&python_complex(*re, *im)),
            Value::Bytes(bytes) => f.write_str(&python_bytes(bytes)),
            // Python escapes single quotes in a bytearray unnecessarily.
            Value::ByteArray(bytes) => {
                let text = python_bytes(bytes);
                write!(f, "bytearray({})", if text.ends_with('"') { text.replace('\'', "\\'") } else { text })
            }
            Value::Set(keys) if keys.is_empty() => f.write_str("set()"),
            Value::Set(keys) => write!(f, "{{{}}}", Joined(keys)),
            Value::Device(device) => match device.split_once(':') {
                Some((kind, index)) => write!(f, "device(type={}, index={index})", python_str(kind)),
                None => write!(f, "device(type={})", python_str(device)),
            },
            Value::Global(name) => f.write_str(&names::repr(name)),
            Value::Storage(elements) => write_storage(elements, f),
        }
    }
}

/// `(1+2j)`, or `2j` if the real part is 0.
fn python_complex(re: f64, im: f64) -> String {
    let part = |number: f64| {
        let text = python_float(number);
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    if re == 0.0 && re.is_sign_positive() {
        return format!("{}j", part(im));
    }
    let sign = if im.is_sign_negative() && !im.is_nan() { "" } else { "+" };
    format!("({}{sign}{}j)", part(re), part(im))
}

/// Formats like `torch.TypedStorage`: one element per line, then dtype, device and length.
fn write_storage(elements: &Tensor, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let dtype = elements.dtype();
    let numbers =
        elements.to(DType::F64).and_then(|numbers| numbers.to_vec::<f64>()).map_err(|_| fmt::Error)?;
    let integers =
        elements.to(DType::I64).and_then(|numbers| numbers.to_vec::<i64>()).map_err(|_| fmt::Error)?;
    for (number, integer) in numbers.into_iter().zip(integers) {
        match dtype {
            DType::Bool => writeln!(f, " {}", Value::Bool(integer != 0))?,
            _ if dtype.is_floating_point() => writeln!(f, " {}", python_float(number))?,
            _ => writeln!(f, " {integer}")?,
        }
    }
    if elements.numel() == 0 {
        f.write_str(" \n")?;
    }
    let (device, numel) = (elements.device(), elements.numel());
    write!(f, "[torch.storage.TypedStorage(dtype={dtype}, device={device}) of size {numel}]")
}

pub(super) struct Joined<'v, V>(pub(super) &'v [V]);

impl<V: fmt::Display> fmt::Display for Joined<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, value) in self.0.iter().enumerate() {
            write!(f, "{}{value}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

macro_rules! a_value_of {
    ($($type:ty, $value:ident => $made:expr;)*) => {$(
        impl From<$type> for Value {
            fn from($value: $type) -> Value {
                $made
            }
        }
    )*};
}
a_value_of! {
    bool, truth => Value::Bool(truth);
    i32, number => Value::Int(number.into());
    i64, number => Value::Int(number);
    usize, count => Value::Int(count as i64); // Below 2⁶³.
    f64, number => Value::Float(number);
    &str, text => Value::Str(text.to_owned());
    String, text => Value::Str(text);
    Tensor, tensor => Value::Tensor(tensor);
    &Tensor, tensor => Value::Tensor(tensor.clone());
    Dict, dict => Value::Dict(dict);
    &Dict, dict => Value::Dict(dict.clone());
    &Value, value => value.clone();
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::None, Into::into)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

/// A `tuple`, such as `betas`.
impl<A: Into<Value>, B: Into<Value>> From<(A, B)> for Value {
    fn from((a, b): (A, B)) -> Value {
        Value::Tuple(vec![a.into(), b.into()])
    }
}

impl From<Key> for Value {
    fn from(key: Key) -> Value {
        match key {
            Key::Str(name) => Value::Str(name),
            Key::Int(number) => Value::Int(number),
            Key::None => Value::None,
            Key::Bool(truth) => Value::Bool(truth),
            Key::Float(number) => Value::Float(number),
            Key::Tuple(keys) => Value::Tuple(keys.into_iter().map(Value::from).collect()),
            Key::Other(value) => *value,
        }
    }
}
