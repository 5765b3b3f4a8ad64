//! The functions that a pickle may call.

use std::rc::Rc;

use super::dict::Class;
use super::error::SerializeError;
use super::names;
use super::rebuild::{Rebuild, StorageId};
use super::unpickle::{Item, Unpickler, malformed, plain, refused};
use super::value::Value;
use crate::error::Result;

impl Unpickler<'_> {
    fn tuple(&self, item: &Item) -> Option<&[Item]> {
        match item {
            Item::Tuple(tuple) => Some(&self.groups[*tuple]),
            _ => None,
        }
    }

    fn counts(&self, item: &Item) -> Option<Vec<usize>> {
        self.tuple(item)?.iter().map(count).collect()
    }

    /// Returns the entries of a dict, or of a list of pairs: key, value, key, value.
    fn items(&mut self, item: &Item) -> Result<Option<Vec<Item>>> {
        let items = match item {
            Item::Dict { group, .. } => Some(self.groups[*group].clone()),
            Item::List(list) | Item::Tuple(list) => {
                let pair = |pair: &Item| match pair {
                    Item::List(pair) | Item::Tuple(pair) if self.groups[*pair].len() == 2 => {
                        Some(self.groups[*pair].clone())
                    }
                    _ => None,
                };
                self.groups[*list].iter().map(pair).collect::<Option<Vec<_>>>().map(|pairs| pairs.concat())
            }
            _ => None,
        };
        self.copies(items.as_ref().map_or(0, Vec::len))?;
        Ok(items)
    }

    fn dict(&mut self, class: Class, items: Vec<Item>) -> Item {
        Item::Dict { group: self.group(items), class }
    }

    fn tensor(&mut self, rebuild: Rebuild) -> Result<Item> {
        self.copies(rebuild.sizes.len())?;
        self.tensors.push(rebuild);
        Ok(Item::Tensor(self.tensors.len() - 1))
    }

    /// Calls an allowed function (`REDUCE`).
    pub(super) fn call(&mut self, function: &Item, arguments: &Item) -> Result<Item> {
        let Item::Global(name) = function else {
            let class = function.class();
            return Err(refused(format!(
                "Trying to call reduce for unrecognized function of <class '{class}'>"
            )));
        };
        let tuple = arguments;
        let arguments = self.tuple(tuple).ok_or_else(|| malformed("arguments are no tuple"))?.to_vec();
        let made = match (&**name, &arguments[..]) {
            ("collections.OrderedDict", []) => Some(self.dict(Class::OrderedDict, Vec::new())),
            ("collections.OrderedDict", [pairs]) => {
                self.items(pairs)?.map(|items| self.dict(Class::OrderedDict, items))
            }
            ("collections.Counter", []) => Some(self.dict(Class::Counter, Vec::new())),
            // No other item refers to these groups, so they need no copy.
            ("collections.Counter", [Item::Dict { group, .. }]) => {
                Some(Item::Dict { group: *group, class: Class::Counter })
            }
            ("builtins.set", []) => Some(Item::Set(self.group(Vec::new()))),
            ("builtins.set", [Item::List(group) | Item::Tuple(group) | Item::Set(group)]) => {
                Some(Item::Set(*group))
            }
            ("_codecs.encode", [Item::Str(text), Item::Str(encoding)]) => {
                Some(plain(Value::Bytes(self.encoded(text, encoding)?)))
            }
            ("builtins.bytearray", []) => Some(plain(Value::ByteArray(Vec::new()))),
            ("builtins.bytearray", [Item::Str(text), Item::Str(encoding)]) => {
                Some(plain(Value::ByteArray(self.encoded(text, encoding)?)))
            }
            ("builtins.bytearray", [Item::Plain(bytes)]) => match &**bytes {
                Value::Bytes(bytes) | Value::ByteArray(bytes) => {
                    self.copies(bytes.len())?;
                    Some(plain(Value::ByteArray(bytes.clone())))
                }
                _ => None,
            },
            ("builtins.complex", []) => Some(plain(Value::Complex(0.0, 0.0))),
            ("builtins.complex", [re]) => number(re).map(|re| plain(Value::Complex(re, 0.0))),
            ("builtins.complex", [re, im]) => {
                number(re).zip(number(im)).map(|(re, im)| plain(Value::Complex(re, im)))
            }
            ("torch.Size", []) => Some(Item::Tuple(self.group(Vec::new()))),
            ("torch.Size", [Item::List(sizes) | Item::Tuple(sizes)]) => Some(Item::Tuple(*sizes)),
            ("torch.device", [Item::Str(device)]) => Some(plain(Value::Device(device.to_string()))),
            ("torch.device", [Item::Str(kind), Item::Int(index)]) => {
                Some(plain(Value::Device(format!("{kind}:{index}"))))
            }
            ("torch.serialization._get_layout", [Item::Str(layout)]) if names::is_layout(layout) => {
                Some(Item::Global(layout.clone()))
            }
            ("torch.nn.parameter.Parameter", _) => Some(self.new_object(function, tuple)?),
            _ => self.rebuilt(name, &arguments)?,
        };
        made.ok_or_else(|| refused(format!("{name} is called with other arguments than PyTorch gives it")))
    }

    /// Calls a function that rebuilds tensors; `None` for unknown arguments.
    fn rebuilt(&mut self, function: &str, arguments: &[Item]) -> Result<Option<Item>> {
        let lacks = |tensor: String| Err(SerializeError::Lacks { tensor }.into());
        let Some(function) = function.strip_prefix("torch._utils.") else {
            return match (function, arguments) {
                // A tensor's attributes are dropped.
                (
                    "torch._tensor._rebuild_from_type_v2",
                    [function @ Item::Global(name), Item::Global(class), arguments, _],
                ) if name.starts_with("torch._utils.") => match &**class {
                    "torch.Tensor" | "torch.nn.parameter.Parameter" => {
                        self.call(function, arguments).map(Some)
                    }
                    class => lacks(format!("a tensor of the class {class}")),
                },
                (class, _) if class.ends_with("Tensor") => lacks(format!("a tensor made by {class}")),
                _ => Ok(None),
            };
        };
        let rebuilt = match (function, arguments) {
            ("_rebuild_tensor", [storage, offset, sizes, strides]) => {
                self.view(storage, offset, sizes, strides, false, &Item::None)?
            }
            // The other arguments are gradient hooks and metadata.
            ("_rebuild_tensor_v2", [storage, offset, sizes, strides, Item::Bool(requires_grad), _]) => {
                self.view(storage, offset, sizes, strides, *requires_grad, &Item::None)?
            }
            (
                "_rebuild_tensor_v2",
                [storage, offset, sizes, strides, Item::Bool(requires_grad), _, metadata],
            ) => self.view(storage, offset, sizes, strides, *requires_grad, metadata)?,
            (
                "_rebuild_tensor_v3",
                [
                    storage,
                    offset,
                    sizes,
                    strides,
                    Item::Bool(requires_grad),
                    _,
                    Item::Global(dtype),
                    rest @ ..,
                ],
            ) if rest.len() < 2 => {
                let Some(dtype) = names::dtype(dtype) else { return lacks(format!("a tensor of {dtype}")) };
                let metadata = rest.first().unwrap_or(&Item::None);
                let mut view = self.view(storage, offset, sizes, strides, *requires_grad, metadata)?;
                // From bytes to elements.
                let id = &mut view.storage;
                id.numel = id.numel * id.dtype.size() / dtype.size();
                id.dtype = dtype;
                view
            }
            ("_rebuild_parameter", [Item::Tensor(data), Item::Bool(requires_grad), _]) => {
                Rebuild { requires_grad: *requires_grad, ..self.tensors[*data].clone() }
            }
            ("_rebuild_parameter_with_state", [Item::Tensor(data), Item::Bool(requires_grad), _, _]) => {
                Rebuild { requires_grad: *requires_grad, ..self.tensors[*data].clone() }
            }
            // Tensors of other device types were saved from the host, the location of their storage.
            (
                "_rebuild_device_tensor_from_cpu_tensor",
                [Item::Tensor(data), Item::Global(dtype), device, Item::Bool(requires_grad)],
            ) if names::dtype(dtype) == Some(self.tensors[*data].storage.dtype) => {
                let mut data = self.tensors[*data].clone();
                let Item::Str(device) = device else { return Ok(None) };
                data.storage.location = device.clone();
                Rebuild { requires_grad: *requires_grad, ..data }
            }
            ("_rebuild_sparse_tensor", [Item::Global(layout), _]) => {
                return lacks(format!("a tensor of the layout {layout}"));
            }
            ("_rebuild_meta_tensor_no_storage", _) => return lacks("a tensor on the device meta".to_owned()),
            ("_rebuild_nested_tensor", _) => return lacks("a nested tensor (torch.nested)".to_owned()),
            ("_rebuild_qtensor", _) => return lacks("a quantized tensor".to_owned()),
            ("_rebuild_wrapper_subclass", [Item::Global(class), ..]) => {
                return lacks(format!("a tensor of the class {class}"));
            }
            _ => return Ok(None),
        };
        self.tensor(rebuilt).map(Some)
    }

    /// Creates a tensor in a storage. `metadata` has the negative bit.
    fn view(
        &self,
        storage: &Item,
        offset: &Item,
        sizes: &Item,
        strides: &Item,
        requires_grad: bool,
        metadata: &Item,
    ) -> Result<Rebuild> {
        let negative = match metadata {
            Item::None => false,
            Item::Dict { group, .. } => {
                let items = self.groups[*group].chunks_exact(2);
                items
                    .clone()
                    .any(|item| matches!(item, [Item::Str(key), Item::Bool(true)] if &**key == "neg"))
            }
            other => {
                return Err(refused(format!("the metadata of a tensor is a <class '{}'>", other.class())));
            }
        };
        match (storage, count(offset), self.counts(sizes), self.counts(strides)) {
            (Item::Storage(storage), Some(offset), Some(sizes), Some(strides))
                if sizes.len() == strides.len() =>
            {
                let storage = self.storages[*storage].clone();
                Ok(Rebuild { storage, offset, sizes, strides, requires_grad, negative })
            }
            _ => Err(malformed("a tensor has no storage, or sizes, strides or an offset that none has")),
        }
    }

    /// `codecs.encode`. Pickles use only latin1, one byte per character.
    fn encoded(&mut self, text: &str, encoding: &str) -> Result<Vec<u8>> {
        self.copies(text.len())?;
        let bytes = match &*encoding.to_ascii_lowercase().replace('-', "_") {
            "latin1" | "latin_1" => text.chars().map(|c| u8::try_from(c).ok()).collect(),
            "utf8" | "utf_8" => Some(text.as_bytes().to_vec()),
            _ => return Err(refused(format!("bytes are encoded as {encoding}, and not as latin1"))),
        };
        bytes.ok_or_else(|| malformed("bytes have a character that latin1 does not have"))
    }

    /// Creates an object of a class (`NEWOBJ`), like `__new__`.
    pub(super) fn new_object(&mut self, class: &Item, arguments: &Item) -> Result<Item> {
        let Item::Global(name) = class else {
            let class = class.class();
            return Err(refused(format!(
                "Can only create new object for nn.Parameter or classes allowlisted, but got {class}"
            )));
        };
        let items = self.tuple(arguments).ok_or_else(|| malformed("arguments are no tuple"))?.to_vec();
        match (&**name, &items[..]) {
            ("torch.nn.parameter.Parameter", [Item::Tensor(data), rest @ ..]) if rest.len() < 2 => {
                let requires_grad = matches!(rest, [] | [Item::Bool(true)]);
                self.tensor(Rebuild { requires_grad, ..self.tensors[*data].clone() })
            }
            // Their `__new__` ignores arguments.
            (
                "collections.OrderedDict" | "collections.Counter" | "builtins.set" | "builtins.bytearray",
                _,
            ) => {
                let none = self.group(Vec::new());
                self.call(class, &Item::Tuple(none))
            }
            ("torch.nn.parameter.Parameter", _) => {
                Err(refused(format!("{name} is called with other arguments than PyTorch gives it")))
            }
            _ => self.call(class, arguments),
        }
    }

    /// Sets an object's state (`BUILD`).
    pub(super) fn build(&mut self, object: &Item, state: &Item) -> Result<()> {
        match (object, state) {
            (
                Item::Dict { group, class: Class::OrderedDict | Class::Counter },
                Item::Dict { group: state, .. },
            ) => {
                let attributes = self.groups[*state].clone();
                self.copies(attributes.len())?;
                self.attributes.entry(*group).or_default().extend(attributes);
                Ok(())
            }
            (Item::Tensor(tensor), Item::Tuple(state)) => {
                let state = self.groups[*state].clone();
                let requires_grad = self.tensors[*tensor].requires_grad;
                self.tensors[*tensor] = match &state[..] {
                    [storage, offset, sizes, strides] => {
                        self.view(storage, offset, sizes, strides, requires_grad, &Item::None)?
                    }
                    [Item::Tensor(data), _, _, Item::Bool(requires_grad), _] => {
                        Rebuild { requires_grad: *requires_grad, ..self.tensors[*data].clone() }
                    }
                    [Item::Bool(requires_grad), _, _] => {
                        Rebuild { requires_grad: *requires_grad, ..self.tensors[*tensor].clone() }
                    }
                    _ => return Err(refused("a tensor is given a state that PyTorch gives none".to_owned())),
                };
                Ok(())
            }
            _ => Err(refused(format!(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got <class '{}'>",
                object.class()
            ))),
        }
    }

    /// Parses `('storage', torch.FloatStorage, '0', 'cuda:1', 12)`; in old files the tuple may also have a view, `('0',
    /// offset, size)`, or None.
    pub(super) fn storage_id(&self, id: &Item) -> Result<StorageId> {
        let Some(parts) = self.tuple(id) else {
            let class = id.class();
            return Err(refused(format!(
                "persistent_load id must be tuple or int, but got <class '{class}'>"
            )));
        };
        if !matches!(parts, [Item::Str(kind), ..] if &**kind == "storage") {
            let class = parts.first().map_or("NoneType", Item::class);
            return Err(refused(format!(
                "Only persistent_load of storage is allowed, but got <class '{class}'>"
            )));
        }
        let [_, Item::Global(class), Item::Str(key), Item::Str(location), numel, view @ ..] = parts else {
            return Err(malformed("a storage has no class, key, location or size"));
        };
        let name = names::storage_dtype(class).ok_or_else(|| malformed("a storage has an unknown class"))?;
        let dtype = names::dtype(name)
            .ok_or_else(|| SerializeError::Lacks { tensor: format!("a tensor of {name}") })?;
        let numel = count(numel).ok_or_else(|| malformed("a storage has a negative size"))?;
        let (start, seen) = match view {
            [] | [Item::None] => Some((0, numel)),
            [view] => match self.tuple(view) {
                Some([_, start, seen]) => count(start).zip(count(seen)),
                _ => None,
            },
            _ => None,
        }
        .filter(|(start, seen)| start.checked_add(*seen).is_some_and(|end| end <= numel))
        .ok_or_else(|| malformed("a storage is a view that is not in its storage"))?;
        let (key, location): (Rc<str>, Rc<str>) = (key.clone(), location.clone());
        Ok(StorageId { key, dtype, location, numel, start, seen })
    }
}

fn count(item: &Item) -> Option<usize> {
    match item {
        Item::Int(number) => usize::try_from(*number).ok(),
        _ => None,
    }
}

fn number(item: &Item) -> Option<f64> {
    match item {
        Item::Int(number) => Some(*number as f64),
        Item::Float(number) => Some(*number),
        _ => None,
    }
}
