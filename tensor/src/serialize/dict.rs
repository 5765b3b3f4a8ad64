use std::collections::HashMap;
use std::fmt;

use super::error::SerializeError;
use super::key::Key;
use super::value::Value;
use crate::error::Result;

/// A `dict`: values by key, in insertion order.
#[derive(Clone, Debug, Default)]
pub struct Dict {
    entries: Vec<(Key, Value)>,
    /// Indices in `entries`.
    places: HashMap<Key, usize>,
    class: Class,
    attributes: Option<Box<Dict>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Class {
    #[default]
    Dict,
    OrderedDict,
    Counter,
}

impl Class {
    pub(super) fn name(self) -> &'static str {
        match self {
            Class::Dict => "dict",
            Class::OrderedDict => "OrderedDict",
            Class::Counter => "Counter",
        }
    }
}

impl Dict {
    /// Creates an empty `dict`.
    pub fn new() -> Dict {
        Dict::default()
    }

    /// Creates an empty `collections.OrderedDict`, the class of a module's state dict.
    pub fn ordered() -> Dict {
        Dict::of(Class::OrderedDict)
    }

    /// Creates an empty `collections.Counter`.
    pub fn counter() -> Dict {
        Dict::of(Class::Counter)
    }

    pub(super) fn of(class: Class) -> Dict {
        Dict { class, ..Dict::default() }
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }

    /// Returns whether the dict is a `collections.OrderedDict`.
    pub fn is_ordered(&self) -> bool {
        self.class == Class::OrderedDict
    }

    /// Returns whether the dict is a `collections.Counter`.
    pub fn is_counter(&self) -> bool {
        self.class == Class::Counter
    }

    /// Returns the attributes of an `OrderedDict` or `Counter` (`__dict__`). A module's state dict has `_metadata`, the
    /// versions of its modules.
    pub fn attributes(&self) -> Option<&Dict> {
        self.attributes.as_deref()
    }

    /// Sets the attributes. A `dict` has none, so only an `OrderedDict` or `Counter` saves them.
    pub fn set_attributes(&mut self, attributes: Dict) {
        self.attributes = (!attributes.is_empty()).then(|| Box::new(attributes));
    }

    /// Returns the value of a key (`dict.get`).
    pub fn get(&self, key: impl Into<Key>) -> Option<&Value> {
        self.find(&key.into())
    }

    /// Returns the value of a key, or Python's `KeyError` (`dict[key]`).
    pub fn at(&self, key: impl Into<Key>) -> Result<&Value> {
        let key = key.into();
        self.find(&key).ok_or_else(|| SerializeError::Key { key: key.to_string() }.into())
    }

    /// Inserts a value or replaces it in place. Returns the old value.
    pub fn insert(&mut self, key: impl Into<Key>, value: impl Into<Value>) -> Option<Value> {
        self.put(key.into(), value.into())
    }

    fn find(&self, key: &Key) -> Option<&Value> {
        self.places.get(key).map(|place| &self.entries[*place].1)
    }

    fn put(&mut self, key: Key, value: Value) -> Option<Value> {
        match self.places.get(&key) {
            Some(place) => Some(std::mem::replace(&mut self.entries[*place].1, value)),
            None => {
                self.places.insert(key.clone(), self.entries.len());
                self.entries.push((key, value));
                None
            }
        }
    }

    /// Removes a key and returns its value (`dict.pop`), in time proportional to the number of later entries.
    pub fn remove(&mut self, key: impl Into<Key>) -> Option<Value> {
        let place = self.places.remove(&key.into())?;
        let (_, value) = self.entries.remove(place);
        for later in self.places.values_mut().filter(|later| **later > place) {
            *later -= 1;
        }
        Some(value)
    }

    /// Iterates over keys and values in order (`dict.items`).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Key, &Value)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// Iterates over the keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl fmt::Display for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [open, before, between, after, close] = match self.class {
            // The format before Python 3.12.
            Class::OrderedDict => ["OrderedDict([", "(", ", ", ")", "])"],
            Class::Counter if self.is_empty() => return f.write_str("Counter()"),
            Class::Counter => ["Counter({", "", ": ", "", "})"],
            Class::Dict => ["{", "", ": ", "", "}"],
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

impl IntoIterator for Dict {
    type Item = (Key, Value);
    type IntoIter = std::vec::IntoIter<(Key, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}
