//! The unpickler. A pickle is a program: its instructions push values on a stack, combine them, and call functions by
//! name. Python's unpickler calls any function; like `weights_only` of `torch.load`, this one has only those that
//! rebuild tensors, in `calls`.

use std::collections::HashMap;
use std::rc::Rc;

use super::big_int::BigInt;
use super::dict::Class;
use super::error::SerializeError;
use super::names;
use super::rebuild::{Rebuild, StorageId};
use super::unpickled::Unpickled;
use super::value::Value;
use crate::error::Result;

/// The maximum number of instructions, and of values in the result.
pub(super) const MOST_VALUES: usize = 4_000_000;

/// The maximum bytes of a pickle, and of text in its result.
pub(super) const MOST_TEXT: usize = 64 << 20;

/// The items or bytes that called functions may copy, per byte of the pickle.
const MOST_COPIES_PER_BYTE: usize = 4;

/// The maximum nesting depth.
pub(super) const DEEPEST: usize = 200;

/// Runs the pickle at the start of `bytes`. Returns its result and the rest. Allocates no tensors.
pub(super) fn unpickle(bytes: &[u8]) -> Result<(Unpickled, &[u8])> {
    let may_copy = 10_000 + MOST_COPIES_PER_BYTE * bytes.len().min(MOST_TEXT);
    let mut unpickler = Unpickler { rest: bytes, may_copy, ..Unpickler::default() };
    let top = unpickler.run()?;
    let Unpickler { rest, groups, attributes, storages, tensors, .. } = unpickler;
    let length = bytes.len() - rest.len();
    Ok((Unpickled::new(top, groups, attributes, storages, tensors, length), rest))
}

/// An item on the stack. Lists, tuples, dicts, storages and tensors are indices, so that items can be shared, and a
/// drop is never recursive.
#[derive(Clone)]
pub(super) enum Item {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<str>),
    List(usize),
    Tuple(usize),
    Set(usize),
    Dict {
        group: usize,
        class: Class,
    },
    Storage(usize),
    Tensor(usize),
    /// The full name of a class, function or constant.
    Global(Rc<str>),
    /// A value without inner values.
    Plain(Rc<Value>),
}

impl Item {
    pub(super) fn class(&self) -> &'static str {
        match self {
            Item::None => "NoneType",
            Item::Bool(_) => "bool",
            Item::Int(_) => "int",
            Item::Float(_) => "float",
            Item::Str(_) => "str",
            Item::List(_) => "list",
            Item::Tuple(_) => "tuple",
            Item::Set(_) => "set",
            Item::Dict { class, .. } => class.name(),
            Item::Storage(_) => "TypedStorage",
            Item::Tensor(_) => "Tensor",
            Item::Global(name) => names::class_of(name),
            Item::Plain(value) => value.kind(),
        }
    }
}

#[derive(Default)]
pub(super) struct Unpickler<'p> {
    rest: &'p [u8],
    stack: Vec<Item>,
    /// The stack positions of marks.
    marks: Vec<usize>,
    memo: HashMap<u32, Item>,
    /// Lists, tuples and sets, and dicts as key, value, key, value.
    pub(super) groups: Vec<Vec<Item>>,
    /// The attributes of dicts, by group: key, value, key, value.
    pub(super) attributes: HashMap<usize, Vec<Item>>,
    pub(super) storages: Vec<StorageId>,
    pub(super) tensors: Vec<Rebuild>,
    /// The remaining number of items and bytes to copy.
    may_copy: usize,
}

impl<'p> Unpickler<'p> {
    fn run(&mut self) -> Result<Item> {
        for _ in 0..MOST_VALUES {
            let made = match self.number()? {
                [b'.'] => return self.pop_item(),
                // The protocol version, which the instructions imply.
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
                    self.text(length as usize)?
                }
                // Python 2's `str`.
                [b'U'] => {
                    let length = u8::from_le_bytes(self.number()?);
                    self.text(length.into())?
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
                [b'}'] => Item::Dict { group: self.group(Vec::new()), class: Class::Dict },
                [0x8f] => Item::Set(self.group(Vec::new())),
                [b'a'] => {
                    let item = self.pop_items(1)?;
                    self.extend_list(item, "append to")?;
                    continue;
                }
                [b'e'] => {
                    let items = self.pop_mark()?;
                    self.extend_list(items, "extend")?;
                    continue;
                }
                [b's'] => {
                    let item = self.pop_items(2)?;
                    self.extend_dict(item, "SETITEM")?;
                    continue;
                }
                [b'u'] => {
                    let items = self.pop_mark()?;
                    self.extend_dict(items, "SETITEMS")?;
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
                    Item::Global(names::allowed(module, name)?.into())
                }
                [b'R'] => {
                    let (arguments, function) = (self.pop_item()?, self.pop_item()?);
                    self.call(&function, &arguments)?
                }
                [0x81] => {
                    let (arguments, class) = (self.pop_item()?, self.pop_item()?);
                    self.new_object(&class, &arguments)?
                }
                [b'Q'] => {
                    let id = self.pop_item()?;
                    let id = self.storage_id(&id)?;
                    self.storages.push(id);
                    Item::Storage(self.storages.len() - 1)
                }
                [b'b'] => {
                    let state = self.pop_item()?;
                    let object = self.top()?.clone();
                    self.build(&object, &state)?;
                    continue;
                }
                [operand] => return Err(SerializeError::Operand { operand }.into()),
            };
            self.stack.push(made);
        }
        Err(SerializeError::TooManyValues.into())
    }

    // Called often by `run`: inlining would enlarge the web page's download.

    #[inline(never)]
    fn take(&mut self, bytes: usize) -> Result<&'p [u8]> {
        let taken = self.rest.split_at_checked(bytes);
        let (taken, rest) = taken.ok_or_else(|| malformed("pickle data was truncated"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn number<const BYTES: usize>(&mut self) -> Result<[u8; BYTES]> {
        Ok(self.take(BYTES)?.try_into().expect("they are as many"))
    }

    /// Reads an integer after its length in bytes.
    fn long(&mut self) -> Result<Item> {
        let [length] = self.number()?;
        let bytes = self.take(length.into())?;
        let sign = if bytes.last().is_some_and(|last| last >> 7 == 1) { 0xFF } else { 0 };
        let mut number = [sign; 8];
        let (low, high) = bytes.split_at(bytes.len().min(8));
        number[..low.len()].copy_from_slice(low);
        let number = i64::from_le_bytes(number);
        let fits = high.iter().all(|byte| *byte == sign) && (number < 0) == (sign != 0);
        Ok(match fits {
            true => Item::Int(number),
            false => plain(Value::BigInt(BigInt::from_le_bytes(bytes))),
        })
    }

    #[inline(never)]
    fn text(&mut self, length: usize) -> Result<Item> {
        let bytes = self.take(length)?;
        match str::from_utf8(bytes) {
            Ok(text) => Ok(Item::Str(text.into())),
            // Python writes unpaired surrogates, as in file names, in three bytes.
            Err(_) if bytes.windows(2).any(|pair| pair[0] == 0xed && pair[1] >= 0xa0) => {
                Err(SerializeError::Surrogate.into())
            }
            Err(_) => Err(malformed("a str is not UTF-8")),
        }
    }

    #[inline(never)]
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

    #[inline(never)]
    fn pop_item(&mut self) -> Result<Item> {
        let top = self.top()?.clone();
        self.stack.pop();
        Ok(top)
    }

    #[inline(never)]
    fn pop_items(&mut self, count: usize) -> Result<Vec<Item>> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(count).filter(|from| *from >= floor) {
            Some(from) => Ok(self.stack.split_off(from)),
            None => Err(malformed("unpickling stack underflow")),
        }
    }

    /// Pops the items since the last mark.
    #[inline(never)]
    fn pop_mark(&mut self) -> Result<Vec<Item>> {
        let mark = self.marks.pop().ok_or_else(|| malformed("could not find MARK"))?;
        Ok(self.stack.split_off(mark))
    }

    #[inline(never)]
    pub(super) fn group(&mut self, items: Vec<Item>) -> usize {
        self.groups.push(items);
        self.groups.len() - 1
    }

    pub(super) fn copies(&mut self, count: usize) -> Result<()> {
        self.may_copy = self.may_copy.checked_sub(count).ok_or(SerializeError::TooManyValues)?;
        Ok(())
    }

    fn extend_list(&mut self, items: Vec<Item>, verb: &str) -> Result<()> {
        match *self.top()? {
            Item::List(list) => self.groups[list].extend(items),
            ref other => {
                return Err(refused(format!("Can only {verb} lists, but got <class '{}'>", other.class())));
            }
        }
        Ok(())
    }

    fn extend_dict(&mut self, items: Vec<Item>, operand: &str) -> Result<()> {
        match *self.top()? {
            Item::Dict { .. } if items.len() % 2 == 1 => Err(malformed("odd number of items for SETITEMS")),
            Item::Dict { group, .. } => {
                self.groups[group].extend(items);
                Ok(())
            }
            ref other => Err(refused(format!(
                "Can only {operand} for dict, collections.OrderedDict, collections.Counter, but got <class '{}'>",
                other.class()
            ))),
        }
    }

    #[inline(never)]
    fn remembered(&self, place: u32) -> Result<Item> {
        self.memo.get(&place).cloned().ok_or_else(|| malformed("Memo value not found"))
    }
}

#[inline(never)]
pub(super) fn plain(value: Value) -> Item {
    Item::Plain(Rc::new(value))
}

/// The error for a pickle that no pickler writes.
#[cold]
#[inline(never)]
pub(super) fn malformed(why: &'static str) -> crate::Error {
    SerializeError::Pickle { why }.into()
}

/// The error for a pickle that exceeds `weights_only`.
#[cold]
#[inline(never)]
pub(super) fn refused(why: String) -> crate::Error {
    SerializeError::Refused { why }.into()
}
