//! The pickles of PyTorch's checkpoints, read.
//!
//! A pickle is a program: its instructions push values on a stack, put them together, and call functions by name. Python's own
//! unpickler calls whatever it is told to, which is why `torch.load` has `weights_only`: only the few functions that tensors
//! are rebuilt with. This one knows no others.

use std::collections::HashMap;
use std::rc::Rc;

use super::error::SerializeError;
use super::rebuild::{self, StorageId};
use super::value::{Dict, Key, Value};
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// The most instructions of a pickle, and values that may come of it.
pub(super) const MOST_VALUES: usize = 4_000_000;

/// The most bytes of a pickle, and of text that may come of it.
pub(super) const MOST_TEXT: usize = 64 << 20;

/// A list in two places of a pickle is two lists here, and there may be lists of such lists. So many values, or bytes of text,
/// may come of each byte: more than any checkpoint has, and few enough that a small file stands for little.
const MOST_PER_BYTE: usize = 64;

/// How deep lists, tuples and dicts may be within each other.
pub(super) const DEEPEST: usize = 200;

/// The value that a pickle stands for; `storage` finds the memory of its tensors.
pub(super) fn unpickle(pickle: &[u8], storage: &mut dyn FnMut(StorageId) -> Result<Tensor>) -> Result<Value> {
    let most = 10_000 + MOST_PER_BYTE * pickle.len();
    let (values, text) = (most.min(MOST_VALUES), most.min(MOST_TEXT));
    let mut unpickler = Unpickler { rest: pickle, values, text, ..Unpickler::default() };
    let top = unpickler.run(storage)?;
    unpickler.value(&top, 0)
}

/// What is on the stack. Lists, tuples, dicts, storages and tensors are elsewhere, by number: several places may share one,
/// and however deep they are within each other, each is dropped by itself.
#[derive(Clone)]
enum Item {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<str>),
    List(usize),
    Tuple(usize),
    Dict { group: usize, ordered: bool },
    Storage(usize),
    Tensor(usize),
    Global(Global),
}

/// What a pickle may name.
#[derive(Clone, Copy, PartialEq)]
enum Global {
    OrderedDict,
    Size,
    Device,
    RebuildTensor,
    RebuildTensorV2,
    RebuildParameter,
    StorageOf(DType),
    Type(DType),
}

impl Global {
    fn named(module: &str, name: &str) -> Result<Global> {
        use DType::{BF16, Bool, F16, F32, F64, I32, I64, U8};
        let mut types = [Bool, U8, I32, I64, F16, BF16, F32, F64].into_iter();
        let full = format!("{module}.{name}");
        match (module, name) {
            ("collections", "OrderedDict") => Ok(Global::OrderedDict),
            ("torch", "Size") => Ok(Global::Size),
            ("torch", "device") => Ok(Global::Device),
            ("torch._utils", "_rebuild_tensor") => Ok(Global::RebuildTensor),
            ("torch._utils", "_rebuild_tensor_v2") => Ok(Global::RebuildTensorV2),
            ("torch._utils", "_rebuild_parameter") => Ok(Global::RebuildParameter),
            ("torch", _) => match name.strip_suffix("Storage") {
                Some(of) => types.find(|dtype| dtype.scalar_type() == of).map(Global::StorageOf),
                None => types.find(|dtype| dtype.to_string() == full).map(Global::Type),
            }
            .ok_or_else(|| SerializeError::Global { name: full }.into()),
            _ => Err(SerializeError::Global { name: full }.into()),
        }
    }
}

#[derive(Default)]
struct Unpickler<'p> {
    rest: &'p [u8],
    stack: Vec<Item>,
    /// Where on the stack those begin that will be put together.
    marks: Vec<usize>,
    memo: HashMap<u32, Item>,
    /// What is in lists and tuples, and in dicts: key, value, key, value.
    groups: Vec<Vec<Item>>,
    storages: Vec<Tensor>,
    tensors: Vec<Tensor>,
    /// How many more values and bytes of text may come of it.
    values: usize,
    text: usize,
}

impl<'p> Unpickler<'p> {
    /// Runs the program, and gives what it ends with.
    fn run(&mut self, storage: &mut dyn FnMut(StorageId) -> Result<Tensor>) -> Result<Item> {
        for _ in 0..MOST_VALUES {
            let made = match self.number()? {
                [b'.'] => return self.pop_item(),
                // The protocol. What an unpickler must know of it shows in the instructions.
                [0x80] => {
                    self.take(1)?;
                    continue;
                }
                [b'('] => {
                    self.marks.push(self.stack.len());
                    continue;
                }
                [b'N'] => Item::None,
                [0x88] => Item::Bool(true),
                [0x89] => Item::Bool(false),
                [b'J'] => Item::Int(i32::from_le_bytes(self.number()?).into()),
                [b'K'] => Item::Int(u8::from_le_bytes(self.number()?).into()),
                [b'M'] => Item::Int(u16::from_le_bytes(self.number()?).into()),
                [0x8a] => self.long()?,
                [b'G'] => Item::Float(f64::from_be_bytes(self.number()?)),
                [b'X'] => {
                    let length = u32::from_le_bytes(self.number()?);
                    let text = str::from_utf8(self.take(length as usize)?);
                    Item::Str(text.map_err(|_| malformed("a str is not UTF-8"))?.into())
                }
                [b')'] => Item::Tuple(self.group(Vec::new())),
                [count @ 0x85..=0x87] => {
                    let items = self.pop_items(usize::from(count) - 0x84)?;
                    Item::Tuple(self.group(items))
                }
                [b't'] => {
                    let items = self.pop_mark()?;
                    Item::Tuple(self.group(items))
                }
                [b']'] => Item::List(self.group(Vec::new())),
                [b'}'] => Item::Dict { group: self.group(Vec::new()), ordered: false },
                [b'a'] => {
                    let item = self.pop_items(1)?;
                    self.extend_list(item)?;
                    continue;
                }
                [b'e'] => {
                    let items = self.pop_mark()?;
                    self.extend_list(items)?;
                    continue;
                }
                [b's'] => {
                    let item = self.pop_items(2)?;
                    self.extend_dict(item)?;
                    continue;
                }
                [b'u'] => {
                    let items = self.pop_mark()?;
                    self.extend_dict(items)?;
                    continue;
                }
                [b'q'] => {
                    let place = u8::from_le_bytes(self.number()?);
                    self.memo.insert(place.into(), self.top()?.clone());
                    continue;
                }
                [b'r'] => {
                    let place = u32::from_le_bytes(self.number()?);
                    self.memo.insert(place, self.top()?.clone());
                    continue;
                }
                [b'h'] => {
                    let place = u8::from_le_bytes(self.number()?);
                    self.remembered(place.into())?
                }
                [b'j'] => {
                    let place = u32::from_le_bytes(self.number()?);
                    self.remembered(place)?
                }
                [b'c'] => {
                    let (module, name) = (self.line()?, self.line()?);
                    Item::Global(Global::named(module, name)?)
                }
                [b'R'] => {
                    let (arguments, function) = (self.pop_item()?, self.pop_item()?);
                    self.call(&function, &arguments)?
                }
                [b'Q'] => {
                    let id = self.pop_item()?;
                    self.storages.push(storage(self.storage_id(&id)?)?);
                    Item::Storage(self.storages.len() - 1)
                }
                // The attributes of a module's state: the versions of its modules, which nothing here needs.
                [b'b'] => {
                    self.pop_item()?;
                    match self.top()? {
                        Item::Dict { ordered: true, .. } => continue,
                        _ => return Err(malformed("what is no OrderedDict is given attributes")),
                    }
                }
                [operand] => return Err(SerializeError::Operand { operand }.into()),
            };
            self.stack.push(made);
        }
        Err(SerializeError::TooManyValues.into())
    }

    fn take(&mut self, bytes: usize) -> Result<&'p [u8]> {
        let taken = self.rest.split_at_checked(bytes);
        let (taken, rest) = taken.ok_or_else(|| malformed("pickle data was truncated"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn number<const BYTES: usize>(&mut self) -> Result<[u8; BYTES]> {
        Ok(self.take(BYTES)?.try_into().expect("they are as many"))
    }

    /// An integer of as many bytes as the first one says.
    fn long(&mut self) -> Result<Item> {
        let [length] = self.number()?;
        let bytes = self.take(length.into())?;
        let sign = if bytes.last().is_some_and(|last| last >> 7 == 1) { 0xFF } else { 0 };
        let mut number = [sign; 8];
        let (low, high) = bytes.split_at(bytes.len().min(8));
        number[..low.len()].copy_from_slice(low);
        let number = i64::from_le_bytes(number);
        let fits = high.iter().all(|byte| *byte == sign) && (number < 0) == (sign != 0);
        if fits { Ok(Item::Int(number)) } else { Err(malformed("an int has more than 64 bits")) }
    }

    fn line(&mut self) -> Result<&'p str> {
        let end = self.rest.iter().position(|byte| *byte == b'\n');
        let line = self.take(end.ok_or_else(|| malformed("pickle data was truncated"))?)?;
        self.take(1)?;
        str::from_utf8(line).map_err(|_| malformed("a name is not UTF-8"))
    }

    fn top(&self) -> Result<&Item> {
        let floor = self.marks.last().copied().unwrap_or(0);
        self.stack[floor..].last().ok_or_else(|| malformed("unpickling stack underflow"))
    }

    fn pop_item(&mut self) -> Result<Item> {
        let top = self.top()?.clone();
        self.stack.pop();
        Ok(top)
    }

    fn pop_items(&mut self, count: usize) -> Result<Vec<Item>> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(count).filter(|from| *from >= floor) {
            Some(from) => Ok(self.stack.split_off(from)),
            None => Err(malformed("unpickling stack underflow")),
        }
    }

    /// What was pushed since the last mark.
    fn pop_mark(&mut self) -> Result<Vec<Item>> {
        let mark = self.marks.pop().ok_or_else(|| malformed("could not find MARK"))?;
        Ok(self.stack.split_off(mark))
    }

    fn group(&mut self, items: Vec<Item>) -> usize {
        self.groups.push(items);
        self.groups.len() - 1
    }

    fn extend_list(&mut self, items: Vec<Item>) -> Result<()> {
        let &Item::List(list) = self.top()? else { return Err(malformed("what is no list is appended to")) };
        self.groups[list].extend(items);
        Ok(())
    }

    fn extend_dict(&mut self, items: Vec<Item>) -> Result<()> {
        let &Item::Dict { group, .. } = self.top()? else {
            return Err(malformed("what is no dict has items set"));
        };
        if items.len() % 2 == 1 {
            return Err(malformed("odd number of items for SETITEMS"));
        }
        self.groups[group].extend(items);
        Ok(())
    }

    fn remembered(&self, place: u32) -> Result<Item> {
        self.memo.get(&place).cloned().ok_or_else(|| malformed("Memo value not found"))
    }

    /// What is in a tuple.
    fn tuple(&self, item: &Item) -> Option<&[Item]> {
        match item {
            Item::Tuple(tuple) => Some(&self.groups[*tuple]),
            _ => None,
        }
    }

    /// What is in a tuple of numbers that count something.
    fn counts(&self, item: &Item) -> Option<Vec<usize>> {
        self.tuple(item)?.iter().map(count).collect()
    }

    /// What one of the functions makes of its arguments.
    fn call(&mut self, function: &Item, arguments: &Item) -> Result<Item> {
        let arguments = self.tuple(arguments).ok_or_else(|| malformed("arguments are no tuple"))?;
        let tensor = match (function, arguments) {
            (Item::Global(Global::OrderedDict), []) => {
                return Ok(Item::Dict { group: self.group(Vec::new()), ordered: true });
            }
            (Item::Global(Global::Size), [sizes @ Item::Tuple(_)]) => return Ok(sizes.clone()),
            (Item::Global(Global::Device), [Item::Str(kind)]) => return Ok(Item::Str(kind.clone())),
            (Item::Global(Global::Device), [Item::Str(kind), Item::Int(index)]) => {
                return Ok(Item::Str(format!("{kind}:{index}").into()));
            }
            (Item::Global(Global::RebuildTensor), [storage, offset, sizes, strides]) => {
                self.rebuilt(storage, offset, sizes, strides, false)?
            }
            // Then come hooks for the gradient, and in newer versions what a backend knows of the tensor.
            (
                Item::Global(Global::RebuildTensorV2),
                [storage, offset, sizes, strides, Item::Bool(requires_grad), _] // Hooks,
                | [storage, offset, sizes, strides, Item::Bool(requires_grad), _, Item::None],
            ) => self.rebuilt(storage, offset, sizes, strides, *requires_grad)?,
            (Item::Global(Global::RebuildParameter), [Item::Tensor(data), Item::Bool(requires_grad), _]) => {
                let data = self.tensors[*data].detach();
                if *requires_grad { data.requiring_grad()? } else { data }
            }
            (Item::Global(_), _) => return Err(malformed("a function has other arguments than PyTorch gives it")),
            _ => return Err(malformed("what is no function is called")),
        };
        self.tensors.push(tensor);
        Ok(Item::Tensor(self.tensors.len() - 1))
    }

    fn rebuilt(
        &self,
        storage: &Item,
        offset: &Item,
        sizes: &Item,
        strides: &Item,
        requires_grad: bool,
    ) -> Result<Tensor> {
        match (storage, count(offset), self.counts(sizes), self.counts(strides)) {
            (Item::Storage(storage), Some(offset), Some(sizes), Some(strides))
                if sizes.len() == strides.len() =>
            {
                rebuild::tensor(&self.storages[*storage], offset, &sizes, &strides, requires_grad)
            }
            _ => Err(malformed("a tensor has no storage, or sizes, strides or an offset that none has")),
        }
    }

    /// `('storage', torch.FloatStorage, '0', 'cuda:1', 12)`
    fn storage_id(&self, id: &Item) -> Result<StorageId> {
        match self.tuple(id) {
            Some(
                [
                    Item::Str(kind),
                    Item::Global(Global::StorageOf(dtype)),
                    Item::Str(key),
                    Item::Str(location),
                    size,
                ],
            ) if &**kind == "storage" => {
                let numel = count(size).ok_or_else(|| malformed("a storage has a negative size"))?;
                Ok(StorageId { key: key.clone(), dtype: *dtype, location: location.clone(), numel })
            }
            _ => Err(malformed("Only persistent_load of storage is allowed")),
        }
    }

    /// What an item is once the program has run. One that is in itself has no end, and is refused as too deep.
    fn value(&mut self, item: &Item, depth: usize) -> Result<Value> {
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
            Item::Global(Global::Type(dtype)) => Value::Str(dtype.to_string()),
            Item::Tensor(tensor) => Value::Tensor(self.tensors[*tensor].clone()),
            Item::List(list) => Value::List(self.values(*list, depth)?),
            Item::Tuple(tuple) => Value::Tuple(self.values(*tuple, depth)?),
            Item::Dict { group, ordered } => {
                let mut dict = if *ordered { Dict::ordered() } else { Dict::new() };
                for place in (0..self.groups[*group].len()).step_by(2) {
                    let (key, value) =
                        (self.groups[*group][place].clone(), self.groups[*group][place + 1].clone());
                    let key = match key {
                        Item::Str(name) => Key::Str(self.text(&name)?),
                        Item::Int(number) => Key::Int(number),
                        other => {
                            let found = self.value(&other, depth + 1)?.kind();
                            return Err(SerializeError::KeyKind { found }.into());
                        }
                    };
                    let value = self.value(&value, depth + 1)?;
                    dict.insert(key, value);
                }
                Value::Dict(dict)
            }
            Item::Storage(_) | Item::Global(_) => {
                return Err(malformed("a storage or a function is saved by itself"));
            }
        })
    }

    fn values(&mut self, group: usize, depth: usize) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(self.groups[group].len().min(self.values));
        for place in 0..self.groups[group].len() {
            let item = self.groups[group][place].clone();
            values.push(self.value(&item, depth + 1)?);
        }
        Ok(values)
    }

    fn text(&mut self, text: &str) -> Result<String> {
        self.text = self.text.checked_sub(text.len()).ok_or(SerializeError::TooManyValues)?;
        Ok(text.to_owned())
    }
}

fn count(item: &Item) -> Option<usize> {
    match item {
        Item::Int(number) => usize::try_from(*number).ok(),
        _ => None,
    }
}

fn malformed(why: &'static str) -> crate::Error {
    SerializeError::Pickle { why }.into()
}
