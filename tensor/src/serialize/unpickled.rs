use std::collections::HashMap;

use super::dict::Dict;
use super::error::SerializeError;
use super::key::Key;
use super::rebuild::{Rebuild, StorageId};
use super::unpickle::{DEEPEST, Item, MOST_TEXT, MOST_VALUES};
use super::value::Value;
use crate::error::Result;
use crate::tensor::Tensor;

/// The maximum number of values, or bytes of text, per byte of the pickle: shared lists become separate, so nested ones
/// could grow exponentially.
const MOST_PER_BYTE: usize = 64;

pub(super) struct Unpickled {
    top: Item,
    groups: Vec<Vec<Item>>,
    attributes: HashMap<usize, Vec<Item>>,
    pub(super) storages: Vec<StorageId>,
    tensors: Vec<Rebuild>,
    /// The tensors built so far: a tensor that is referenced twice stays one.
    built: HashMap<usize, Tensor>,
    /// The remaining numbers of values and bytes of text.
    values: usize,
    text: usize,
}

type LoadStorage<'m> = dyn FnMut(&StorageId) -> Result<Tensor> + 'm;

impl Unpickled {
    pub(super) fn new(
        top: Item,
        groups: Vec<Vec<Item>>,
        attributes: HashMap<usize, Vec<Item>>,
        storages: Vec<StorageId>,
        tensors: Vec<Rebuild>,
        length: usize,
    ) -> Unpickled {
        let most = MOST_PER_BYTE.saturating_mul(length).saturating_add(10_000);
        let (values, text) = (most.min(MOST_VALUES), most.min(MOST_TEXT));
        Unpickled { top, groups, attributes, storages, tensors, built: HashMap::new(), values, text }
    }

    pub(super) fn into_value(mut self, memory: &mut LoadStorage) -> Result<Value> {
        let top = self.top.clone();
        self.value(&top, 0, memory)
    }

    /// Converts an item. A cyclic item is rejected as too deep.
    fn value(&mut self, item: &Item, depth: usize, memory: &mut LoadStorage) -> Result<Value> {
        if depth > DEEPEST {
            return Err(SerializeError::TooDeep.into());
        }
        self.values = self.values.checked_sub(1).ok_or(SerializeError::TooManyValues)?;
        Ok(match item {
            Item::None => Value::None,
            Item::Bool(truth) => Value::Bool(*truth),
            Item::Int(number) => Value::Int(*number),
            Item::Float(number) => Value::Float(*number),
            Item::Str(text) => Value::Str(self.text(text)?),
            Item::Global(name) => Value::Global(self.text(name)?),
            Item::Plain(value) => {
                if let Value::Bytes(bytes) | Value::ByteArray(bytes) = &**value {
                    self.spend(bytes.len())?;
                }
                (**value).clone()
            }
            Item::Tensor(place) => Value::Tensor(match self.built.get(place) {
                Some(tensor) => tensor.clone(),
                None => {
                    let rebuild = &self.tensors[*place];
                    let tensor = rebuild.tensor(&memory(&rebuild.storage)?)?;
                    self.built.insert(*place, tensor.clone());
                    tensor
                }
            }),
            Item::Storage(place) => {
                let StorageId { start, seen, .. } = self.storages[*place];
                let all = memory(&self.storages[*place])?;
                Value::Storage(all.narrow(0, start, seen)?)
            }
            Item::List(list) => Value::List(self.values(*list, depth, memory)?),
            Item::Tuple(tuple) => Value::Tuple(self.values(*tuple, depth, memory)?),
            Item::Set(set) => {
                // Keys of a dict and elements of a set follow the same rules.
                let mut keys = Dict::new();
                for place in 0..self.groups[*set].len() {
                    let key = self.groups[*set][place].clone();
                    keys.insert(self.key(&key, depth, memory)?, Value::None);
                }
                Value::Set(keys.into_iter().map(|(key, _)| key).collect())
            }
            Item::Dict { group, class } => {
                let mut dict = Dict::of(*class);
                for place in (0..self.groups[*group].len()).step_by(2) {
                    let (key, value) =
                        (self.groups[*group][place].clone(), self.groups[*group][place + 1].clone());
                    let key = self.key(&key, depth, memory)?;
                    let value = self.value(&value, depth + 1, memory)?;
                    dict.insert(key, value);
                }
                let mut attributes = Dict::new();
                for pair in self.attributes.get(group).cloned().unwrap_or_default().chunks_exact(2) {
                    let key = self.key(&pair[0], depth, memory)?;
                    let value = self.value(&pair[1], depth + 1, memory)?;
                    attributes.insert(key, value);
                }
                dict.set_attributes(attributes);
                Value::Dict(dict)
            }
        })
    }

    fn values(&mut self, group: usize, depth: usize, memory: &mut LoadStorage) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(self.groups[group].len().min(self.values));
        for place in 0..self.groups[group].len() {
            let item = self.groups[group][place].clone();
            values.push(self.value(&item, depth + 1, memory)?);
        }
        Ok(values)
    }

    fn key(&mut self, item: &Item, depth: usize, memory: &mut LoadStorage) -> Result<Key> {
        Ok(match item {
            Item::None => Key::None,
            Item::Bool(truth) => Key::Bool(*truth),
            Item::Int(number) => Key::Int(*number),
            Item::Float(number) => Key::Float(*number),
            Item::Str(name) => Key::Str(self.text(name)?),
            Item::Tuple(tuple) if depth < DEEPEST => {
                let mut keys = Vec::new();
                for place in 0..self.groups[*tuple].len() {
                    self.values = self.values.checked_sub(1).ok_or(SerializeError::TooManyValues)?;
                    let key = self.groups[*tuple][place].clone();
                    keys.push(self.key(&key, depth + 1, memory)?);
                }
                Key::Tuple(keys)
            }
            Item::Tuple(_) => return Err(SerializeError::TooDeep.into()),
            Item::List(_) | Item::Set(_) | Item::Dict { .. } | Item::Storage(_) => {
                return Err(SerializeError::Unhashable { class: item.class() }.into());
            }
            Item::Plain(value) if matches!(**value, Value::ByteArray(_)) => {
                return Err(SerializeError::Unhashable { class: item.class() }.into());
            }
            Item::Tensor(_) | Item::Global(_) | Item::Plain(_) => {
                Key::Other(Box::new(self.value(item, depth + 1, memory)?))
            }
        })
    }

    fn text(&mut self, text: &str) -> Result<String> {
        self.spend(text.len())?;
        Ok(text.to_owned())
    }

    fn spend(&mut self, bytes: usize) -> Result<()> {
        self.text = self.text.checked_sub(bytes).ok_or(SerializeError::TooManyValues)?;
        Ok(())
    }
}
