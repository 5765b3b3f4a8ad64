//! What a checkpoint is made of.

use std::collections::HashMap;
use std::fmt;

use super::error::SerializeError;
use crate::error::Result;
use crate::python::{python_float, python_str};
use crate::tensor::Tensor;

/// What a checkpoint is made of: what `torch.load(weights_only=True)` gives without further ado.
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
    /// An `int`, as far as 64 bits hold it.
    Int(i64),
    /// A `float`.
    Float(f64),
    /// A `str`.
    Str(String),
    /// A `torch.Tensor`, with its storage: tensors that share one still do after loading.
    Tensor(Tensor),
    /// A `list`.
    List(Vec<Value>),
    /// A `tuple`.
    Tuple(Vec<Value>),
    /// A `dict`.
    Dict(Dict),
}

impl Value {
    /// What Python calls its type: `int`, `dict`, `Tensor`.
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
            Value::Dict(dict) if dict.ordered => "OrderedDict",
            Value::Dict(_) => "dict",
        }
    }

    /// Whether it is Python's `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }

    /// The truth, or an error that names what is there instead.
    pub fn as_bool(&self) -> Result<bool> {
        match self {
            Value::Bool(truth) => Ok(*truth),
            other => Err(other.is_not("bool")),
        }
    }

    /// The integer, or an error that names what is there instead.
    pub fn as_int(&self) -> Result<i64> {
        match self {
            Value::Int(number) => Ok(*number),
            other => Err(other.is_not("int")),
        }
    }

    /// The number, or an error that names what is there instead. Python's users write `lr=1` too: an `int` is taken.
    pub fn as_float(&self) -> Result<f64> {
        match self {
            Value::Float(number) => Ok(*number),
            Value::Int(number) => Ok(*number as f64),
            other => Err(other.is_not("float")),
        }
    }

    /// The text, or an error that names what is there instead.
    pub fn as_str(&self) -> Result<&str> {
        match self {
            Value::Str(text) => Ok(text),
            other => Err(other.is_not("str")),
        }
    }

    /// The tensor, or an error that names what is there instead.
    pub fn as_tensor(&self) -> Result<&Tensor> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(other.is_not("Tensor")),
        }
    }

    /// What is in the list or the tuple, or an error that names what is there instead.
    pub fn as_list(&self) -> Result<&[Value]> {
        match self {
            Value::List(values) | Value::Tuple(values) => Ok(values),
            other => Err(other.is_not("list")),
        }
    }

    /// The dict, or an error that names what is there instead.
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

/// As Python's `repr` writes it.
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
        }
    }
}

struct Joined<'v>(&'v [Value]);

impl fmt::Display for Joined<'_> {
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
    usize, count => Value::Int(count as i64); // Nothing is counted beyond 2⁶³.
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

/// A `list`.
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

/// A key of a [`Dict`]: PyTorch's checkpoints have strings and, in the `state` of an optimizer, integers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A `str`.
    Str(String),
    /// An `int`.
    Int(i64),
}

macro_rules! a_key_of {
    ($($type:ty, $key:ident => $made:expr;)*) => {$(
        impl From<$type> for Key {
            fn from($key: $type) -> Key {
                $made
            }
        }
    )*};
}
a_key_of! {
    &str, name => Key::Str(name.to_owned());
    String, name => Key::Str(name);
    i32, number => Key::Int(number.into());
    i64, number => Key::Int(number);
    usize, number => Key::Int(number as i64); // Nothing is counted beyond 2⁶³.
    &Key, key => key.clone();
}

/// As Python's `repr` writes it: `'weight'` or `0`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Str(name) => f.write_str(&python_str(name)),
            Key::Int(number) => write!(f, "{number}"),
        }
    }
}

/// A `dict`: values by key, in the order in which the keys were first inserted.
#[derive(Clone, Debug, Default)]
pub struct Dict {
    entries: Vec<(Key, Value)>,
    /// Where in `entries` a key is.
    places: HashMap<Key, usize>,
    ordered: bool,
}

impl Dict {
    /// An empty `dict`.
    pub fn new() -> Dict {
        Dict::default()
    }

    /// An empty `collections.OrderedDict`, which the state of a module is.
    pub fn ordered() -> Dict {
        Dict { ordered: true, ..Dict::default() }
    }

    /// Whether it was, and is to be written as, a `collections.OrderedDict`.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// The value of that key, if there is one (`dict.get`).
    pub fn get(&self, key: impl Into<Key>) -> Option<&Value> {
        self.places.get(&key.into()).map(|place| &self.entries[*place].1)
    }

    /// The value of that key, or Python's `KeyError` (`dict[key]`).
    pub fn at(&self, key: impl Into<Key>) -> Result<&Value> {
        let key = key.into();
        match self.places.get(&key) {
            Some(place) => Ok(&self.entries[*place].1),
            None => Err(SerializeError::Key { key: key.to_string() }.into()),
        }
    }

    /// Adds a value, or replaces the one of that key where it is, and gives the old one back.
    pub fn insert(&mut self, key: impl Into<Key>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.places.get(&key) {
            Some(place) => Some(std::mem::replace(&mut self.entries[*place].1, value)),
            None => {
                self.places.insert(key.clone(), self.entries.len());
                self.entries.push((key, value));
                None
            }
        }
    }

    /// Takes the value of that key out (`dict.pop`). Those behind it move up, which takes time in proportion to their number.
    pub fn remove(&mut self, key: impl Into<Key>) -> Option<Value> {
        let place = self.places.remove(&key.into())?;
        let (_, value) = self.entries.remove(place);
        for later in self.places.values_mut().filter(|later| **later > place) {
            *later -= 1;
        }
        Some(value)
    }

    /// Keys and values in order (`dict.items`).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Key, &Value)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// As Python's `repr` writes it.
impl fmt::Display for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [open, before, between, after, close] = match self.ordered {
            true => ["OrderedDict([", "(", ", ", ")", "])"],
            false => ["{", "", ": ", "", "}"],
        };
        f.write_str(open)?;
        for (i, (key, value)) in self.iter().enumerate() {
            write!(f, "{}{before}{key}{between}{value}{after}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str(close)
    }
}

impl<K: Into<Key>, V: Into<Value>> FromIterator<(K, V)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Dict {
        let mut dict = Dict::new();
        for (key, value) in entries {
            dict.insert(key, value);
        }
        dict
    }
}

/// Keys and values in order, taken out.
impl IntoIterator for Dict {
    type Item = (Key, Value);
    type IntoIter = std::vec::IntoIter<(Key, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}
