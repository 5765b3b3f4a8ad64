//! The pickler: writes the instructions of protocol 2 that `torch.load(weights_only=True)` accepts.

use std::collections::HashMap;
use std::sync::Arc;

use super::dict::{Class, Dict};
use super::error::SerializeError;
use super::names;
use super::rebuild::whole;
use super::unpickle::{DEEPEST, MOST_TEXT, unpickle};
use super::value::Value;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Pickles a value. Returns the pickle and its storages, as 1-D tensors in the order of their keys.
pub(super) fn pickle(value: &Value) -> Result<(Vec<u8>, Vec<Tensor>)> {
    let mut pickler = Pickler { out: vec![0x80, 2], ..Pickler::default() };
    pickler.value(value, 0)?;
    pickler.out.push(b'.');
    let Pickler { out, storages, .. } = pickler;
    // Rejects pickles that could not be read again.
    if out.len() > MOST_TEXT {
        return Err(SerializeError::TooManyValues.into());
    }
    let (read, _) = unpickle(&out)?;
    read.into_value(&mut |id| Ok(storages[id.key.parse::<usize>().map_err(Error::custom)?].clone()))?;
    Ok((out, storages))
}

#[derive(Default)]
struct Pickler {
    out: Vec<u8>,
    storages: Vec<Tensor>,
    /// Indices in `storages`, by address.
    keys: HashMap<usize, usize>,
}

impl Pickler {
    fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        if depth > DEEPEST {
            return Err(SerializeError::TooDeep.into());
        }
        match value {
            Value::None => self.out.push(b'N'),
            Value::Bool(truth) => self.out.push(if *truth { 0x88 } else { 0x89 }),
            Value::Int(number) => self.int(*number),
            Value::Float(number) => {
                self.out.push(b'G');
                self.out.extend(number.to_be_bytes());
            }
            Value::Str(text) => self.text(text),
            Value::Tensor(tensor) => self.tensor(tensor)?,
            Value::List(values) => {
                self.out.extend(b"](");
                values.iter().try_for_each(|value| self.value(value, depth + 1))?;
                self.out.push(b'e');
            }
            Value::Tuple(values) => {
                self.out.push(b'(');
                values.iter().try_for_each(|value| self.value(value, depth + 1))?;
                self.out.push(b't');
            }
            Value::Dict(dict) => {
                self.out.extend(match dict.class() {
                    Class::Dict => b"}(".as_slice(),
                    Class::OrderedDict => b"ccollections\nOrderedDict\n)R(",
                    Class::Counter => b"ccollections\nCounter\n)R(",
                });
                self.items(dict, depth)?;
                if let Some(attributes) = dict.attributes().filter(|_| dict.class() != Class::Dict) {
                    self.out.extend(b"}(");
                    self.items(attributes, depth)?;
                    self.out.push(b'b');
                }
            }
            Value::BigInt(number) => {
                let bytes = number.to_le_bytes();
                let length = u8::try_from(bytes.len()).map_err(|_| SerializeError::TooManyValues)?;
                self.out.extend([0x8a, length]);
                self.out.extend(bytes);
            }
            Value::Complex(re, im) => {
                self.out.extend(b"c__builtin__\ncomplex\n");
                for part in [re, im] {
                    self.value(&Value::Float(*part), depth + 1)?;
                }
                self.out.extend([0x86, b'R']);
            }
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::ByteArray(bytes) => {
                self.out.extend(b"c__builtin__\nbytearray\n");
                self.bytes(bytes);
                self.out.extend([0x85, b'R']);
            }
            Value::Set(keys) => {
                self.out.extend(b"c__builtin__\nset\n](");
                keys.iter().try_for_each(|key| self.value(&key.clone().into(), depth + 1))?;
                self.out.extend([b'e', 0x85, b'R']);
            }
            Value::Device(device) => {
                self.out.extend(b"ctorch\ndevice\n");
                self.text(device);
                self.out.extend([0x85, b'R']);
            }
            Value::Global(name) if names::is_layout(name) => {
                self.out.extend(b"ctorch.serialization\n_get_layout\n");
                self.text(name);
                self.out.extend([0x85, b'R']);
            }
            Value::Global(name) => {
                let (module, name) = name.rsplit_once('.').unwrap_or(("builtins", name));
                self.out.extend(format!("c{module}\n{name}\n").as_bytes());
            }
            Value::Storage(elements) => self.storage(elements)?,
        }
        Ok(())
    }

    fn items(&mut self, dict: &Dict, depth: usize) -> Result<()> {
        for (key, value) in dict.iter() {
            self.value(&key.clone().into(), depth + 1)?;
            self.value(value, depth + 1)?;
        }
        self.out.push(b'u');
        Ok(())
    }

    /// Writes `codecs.encode('…', 'latin1')`, one byte per character: protocol 2 has no bytes.
    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend(b"c_codecs\nencode\n");
        self.text(&bytes.iter().copied().map(char::from).collect::<String>());
        self.text("latin1");
        self.out.extend([0x86, b'R']);
    }

    fn int(&mut self, number: i64) {
        if let Ok(small) = i32::try_from(number) {
            self.out.push(b'J');
            self.out.extend(small.to_le_bytes());
        } else {
            self.out.extend([0x8a, 8]);
            self.out.extend(number.to_le_bytes());
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push(b'X');
        self.out.extend((text.len() as u32).to_le_bytes()); // A longer text fails the size limit.
        self.out.extend(text.as_bytes());
    }

    /// Writes `('storage', torch.FloatStorage, '0', 'cuda:1', 12)`.
    fn storage(&mut self, tensor: &Tensor) -> Result<()> {
        let all = whole(tensor)?;
        let address = Arc::as_ptr(tensor.storage()).addr();
        let key = *self.keys.entry(address).or_insert(self.storages.len());
        if key == self.storages.len() {
            self.storages.push(all);
        } else if self.storages[key].dtype() != tensor.dtype() {
            return Err(SerializeError::TwoTypes.into());
        }
        let numel = self.storages[key].numel();
        self.out.push(b'(');
        self.text("storage");
        self.out.extend(format!("ctorch\n{}Storage\n", tensor.dtype().scalar_type()).as_bytes());
        self.text(&key.to_string());
        self.text(&tensor.device().to_string());
        self.int(numel as i64);
        self.out.extend(b"tQ");
        Ok(())
    }

    /// Writes `_rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, OrderedDict())`.
    fn tensor(&mut self, tensor: &Tensor) -> Result<()> {
        self.out.extend(b"ctorch._utils\n_rebuild_tensor_v2\n(");
        self.storage(tensor)?;
        self.int(tensor.storage_offset() as i64);
        for numbers in [tensor.sizes(), tensor.strides()] {
            self.out.push(b'(');
            numbers.iter().for_each(|number| self.int(*number as i64));
            self.out.push(b't');
        }
        self.out.push(if tensor.requires_grad() { 0x88 } else { 0x89 });
        self.out.extend(b"ccollections\nOrderedDict\n)RtR");
        Ok(())
    }
}
