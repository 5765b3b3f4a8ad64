use std::fmt;
use std::hash::{Hash, Hasher};

use super::value::{Joined, Value};
use crate::python::{python_float, python_str};

/// A key of a [`Dict`](super::Dict). PyTorch's checkpoints use strings and, in an optimizer's `state`, integers.
/// Equality is Python's: `True`, `1` and `1.0` are equal.
///
/// ```
/// use todevice::serialize::{Dict, Key};
///
/// let mut dict = Dict::from_iter([(Key::from(true), "first")]);
/// dict.insert(1, "second");
/// dict.insert(Key::from((1, "x")), "a tuple");
/// assert_eq!(dict.to_string(), "{True: 'second', (1, 'x'): 'a tuple'}");
/// ```
#[derive(Clone, Debug)]
pub enum Key {
    /// A `str`.
    Str(String),
    /// An `int`.
    Int(i64),
    /// Python's `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A `float`.
    Float(f64),
    /// A `tuple`.
    Tuple(Vec<Key>),
    /// Another hashable value: `bytes`, a `complex`, a `torch.device`, or a `Tensor`, which equals only itself.
    Other(Box<Value>),
}

/// A numeric key. As in Python, NaN equals no key.
#[derive(PartialEq)]
enum NumericKey {
    Int(i64),
    Float(f64),
}

impl Key {
    fn number(&self) -> Option<NumericKey> {
        match *self {
            Key::Bool(truth) => Some(NumericKey::Int(truth.into())),
            Key::Int(number) => Some(NumericKey::Int(number)),
            // From -2⁶³ to 2⁶³.
            Key::Float(number)
                if number.fract() == 0.0 && (-9.3e18..9.223_372_036_854_775e18).contains(&number) =>
            {
                Some(NumericKey::Int(number as i64))
            }
            Key::Float(number) => Some(NumericKey::Float(number)),
            _ => None,
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        match (self, other) {
            (Key::Str(a), Key::Str(b)) => a == b,
            (Key::None, Key::None) => true,
            (Key::Tuple(a), Key::Tuple(b)) => a == b,
            (Key::Other(a), Key::Other(b)) => match (&**a, &**b) {
                (Value::Tensor(a), Value::Tensor(b)) => a.is_same(b),
                // Other types print in full, so equal text means equal values.
                (a, b) => a.kind() == b.kind() && a.to_string() == b.to_string(),
            },
            _ => self.number().is_some_and(|number| Some(number) == other.number()),
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match (self, self.number()) {
            (_, Some(NumericKey::Int(number))) => number.hash(state),
            (_, Some(NumericKey::Float(number))) => number.to_bits().hash(state),
            (Key::Str(text), _) => text.hash(state),
            (Key::Tuple(keys), _) => keys.hash(state),
            (Key::Other(value), _) => value.kind().hash(state),
            _ => {}
        }
    }
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
    usize, number => Key::Int(number as i64); // Below 2⁶³.
    bool, truth => Key::Bool(truth);
    f64, number => Key::Float(number);
    Vec<Key>, keys => Key::Tuple(keys);
    &Key, key => key.clone();
}

impl<A: Into<Key>, B: Into<Key>> From<(A, B)> for Key {
    fn from((a, b): (A, B)) -> Key {
        Key::Tuple(vec![a.into(), b.into()])
    }
}

/// Formats like Python's `repr`: `'weight'` or `0`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Str(name) => f.write_str(&python_str(name)),
            Key::Int(number) => write!(f, "{number}"),
            Key::None => f.write_str("None"),
            Key::Bool(truth) => f.write_str(if *truth { "True" } else { "False" }),
            Key::Float(number) => f.write_str(&python_float(*number)),
            Key::Tuple(keys) if keys.len() == 1 => write!(f, "({},)", keys[0]),
            Key::Tuple(keys) => write!(f, "({})", Joined(keys)),
            Key::Other(value) => write!(f, "{value}"),
        }
    }
}
