use std::collections::HashMap;

use super::error::ModuleError;
use super::module::Module;
use super::parameter::{Buffer, Parameter};
use crate::autograd::no_grad;
use crate::error::{Error, HalfDone, Result};
use crate::serialize::{Dict, Key, Value};
use crate::sort;
use crate::tensor::Tensor;

/// PyTorch's attribute for the versions of a state's modules, and a version's key in it.
const METADATA: &str = "_metadata";
const VERSION: &str = "version";

/// Tensors by name, in the order of the module (`Module.state_dict()`).
#[derive(Clone, Debug, Default)]
pub struct StateDict {
    tensors: Vec<(String, Tensor)>,
    /// The versions of the modules by name (`_metadata`). A state assembled by hand has none.
    versions: Vec<(String, i64)>,
}

impl StateDict {
    /// Returns the tensor with a name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|(key, _)| key == name).map(|(_, tensor)| tensor)
    }

    /// Adds a tensor, or replaces the one with that name.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        let name = name.into();
        match self.tensors.iter_mut().find(|(key, _)| *key == name) {
            Some((_, old)) => *old = tensor,
            None => self.tensors.push((name, tensor)),
        }
    }

    /// Removes and returns the tensor with a name.
    pub fn remove(&mut self, name: &str) -> Option<Tensor> {
        let at = self.tensors.iter().position(|(key, _)| key == name)?;
        Some(self.tensors.remove(at).1)
    }

    /// Iterates over names and tensors, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Returns a copy in new memory, for example to keep the best weights. (A clone shares the module's memory.) Like
    /// `{name: tensor.clone() for …}` in Python, the copy has no module versions.
    pub fn copy(&self) -> Result<StateDict> {
        self.tensors.iter().map(|(name, tensor)| Ok((name.clone(), tensor.copy()?))).collect()
    }

    /// Returns the number of tensors.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Returns whether there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }
}

impl FromIterator<(String, Tensor)> for StateDict {
    fn from_iter<I: IntoIterator<Item = (String, Tensor)>>(tensors: I) -> StateDict {
        // A map, because a file may contain many names.
        let mut state = StateDict::default();
        let mut places = HashMap::new();
        for (name, tensor) in tensors {
            match places.insert(name.clone(), state.len()) {
                None => state.tensors.push((name, tensor)),
                Some(place) => {
                    state.tensors[place].1 = tensor;
                    places.insert(name, place);
                }
            }
        }
        state
    }
}

/// Converts to a `collections.OrderedDict` of tensors, as PyTorch saves it.
impl From<&StateDict> for Value {
    fn from(state: &StateDict) -> Value {
        let mut dict = Dict::ordered();
        state.iter().for_each(|(name, tensor)| drop(dict.insert(name, tensor)));
        if !state.versions.is_empty() {
            let mut metadata = Dict::ordered();
            for (module, version) in &state.versions {
                metadata.insert(module.as_str(), Dict::from_iter([(VERSION, *version)]));
            }
            dict.set_attributes(Dict::from_iter([(METADATA, metadata)]));
        }
        dict.into()
    }
}

impl From<StateDict> for Value {
    fn from(state: StateDict) -> Value {
        Value::from(&state)
    }
}

/// The names that did not match in a load without `strict`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncompatibleKeys {
    /// Names in the module but not in the state.
    pub missing_keys: Vec<String>,
    /// Names in the state but not in the module.
    pub unexpected_keys: Vec<String>,
}

pub(super) fn of<M: Module + ?Sized>(module: &M) -> StateDict {
    let mut state = StateDict::default();
    state.versions.push((String::new(), module.state_version()));
    state.add("", module.own_parameters(), module.own_buffers(), module.children());
    state
}

impl StateDict {
    fn version(&self, module: &str) -> Option<i64> {
        self.versions.iter().rfind(|(of, _)| of == module).map(|(_, version)| *version)
    }

    /// Adds parameters before buffers, and a module before its children. A shared tensor is added under each name.
    fn add(
        &mut self,
        prefix: &str,
        parameters: Vec<(&'static str, Parameter)>,
        buffers: Vec<(&'static str, Buffer)>,
        children: Vec<(String, &dyn Module)>,
    ) {
        for (name, parameter) in parameters {
            self.insert(format!("{prefix}{name}"), parameter.tensor().detach());
        }
        for (name, buffer) in buffers {
            self.insert(format!("{prefix}{name}"), buffer.tensor());
        }
        for (name, child) in children {
            self.versions.push((format!("{prefix}{name}"), child.state_version()));
            let prefix = format!("{prefix}{name}.");
            self.add(&prefix, child.own_parameters(), child.own_buffers(), child.children());
        }
    }
}

/// Reads a checkpoint. Errors, in PyTorch's words, if it is not a dict, or contains values that are not tensors.
impl TryFrom<&Value> for StateDict {
    type Error = Error;

    fn try_from(value: &Value) -> Result<StateDict> {
        let class = |value: &Value| match value.kind() {
            "OrderedDict" => "collections.OrderedDict",
            kind => kind,
        };
        let Value::Dict(dict) = value else {
            return Err(ModuleError::NotADict { class: class(value) }.into());
        };
        let tensor = |(key, value): (&Key, &Value)| match (key, value) {
            (Key::Str(name), Value::Tensor(tensor)) => Ok((name.clone(), tensor.clone())),
            (Key::Str(name), other) => {
                Err(ModuleError::NotATensor { name: name.clone(), class: class(other) }.into())
            }
            (key, value) => Err(ModuleError::NotAState { key: key.to_string(), kind: value.kind() }.into()),
        };
        let mut state: StateDict = dict.iter().map(tensor).collect::<Result<_>>()?;
        if let Some(Value::Dict(metadata)) = dict.attributes().and_then(|attributes| attributes.get(METADATA))
        {
            for (module, of_module) in metadata.iter() {
                if let (Key::Str(module), Value::Dict(of_module)) = (module, of_module)
                    && let Some(Value::Int(version)) = of_module.get(VERSION)
                {
                    state.versions.push((module.clone(), *version));
                }
            }
        }
        Ok(state)
    }
}

#[derive(Default)]
struct Visited {
    prefixes: Vec<String>,
    /// The names of tensors that are newer than the state's version, so it may lack them.
    optional: Vec<String>,
}

impl Visited {
    fn visit(
        &mut self,
        prefix: &str,
        optional: &[&str],
        children: Vec<(String, &dyn Module)>,
        state: &StateDict,
    ) {
        self.prefixes.push(prefix.to_owned());
        self.optional.extend(optional.iter().map(|name| format!("{prefix}{name}")));
        for (name, child) in children {
            let name = format!("{prefix}{name}");
            let optional = child.optional_in_state(state.version(&name));
            self.visit(&format!("{name}."), optional, child.children(), state);
        }
    }
}

pub(super) fn load<M: Module + ?Sized>(
    module: &M,
    state: &StateDict,
    strict: bool,
) -> Result<IncompatibleKeys> {
    let optional = module.optional_in_state(state.version(""));
    load_into((module.name(), &of(module), optional, module.children()), state, strict)
}

fn load_into(
    (module, own, optional, children): (&str, &StateDict, &[&str], Vec<(String, &dyn Module)>),
    state: &StateDict,
    strict: bool,
) -> Result<IncompatibleKeys> {
    let mut modules = Visited::default();
    modules.visit("", optional, children, state);
    let not_in = |names: &StateDict, other: &StateDict| -> Vec<String> {
        names.iter().filter(|(name, _)| other.get(name).is_none()).map(|(name, _)| name.to_string()).collect()
    };
    let mut keys = IncompatibleKeys { missing_keys: not_in(own, state), unexpected_keys: not_in(state, own) };
    keys.missing_keys.retain(|name| !modules.optional.contains(name));
    // PyTorch finds unexpected names module by module, each in the innermost module that matches.
    let innermost = |name: &String| {
        let around = modules.prefixes.iter().enumerate().filter(|(_, prefix)| name.starts_with(*prefix));
        around.max_by_key(|(_, prefix)| prefix.len()).map(|(place, _)| place)
    };
    sort::by_key(&mut keys.unexpected_keys, innermost);
    let quoted =
        |names: &[String]| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let mut problems = Vec::new();
    if strict && !keys.unexpected_keys.is_empty() {
        problems.push(format!("Unexpected key(s) in state_dict: {}. ", quoted(&keys.unexpected_keys)));
    }
    if strict && !keys.missing_keys.is_empty() {
        problems.insert(0, format!("Missing key(s) in state_dict: {}. ", quoted(&keys.missing_keys)));
    }
    for (name, target) in own.iter() {
        if let Some(source) = state.get(name)
            && source.sizes() != target.sizes()
            && !is_old_number(target, source)
        {
            problems.push(format!(
                "size mismatch for {name}: copying a param with shape torch.Size({:?}) from checkpoint, the shape \
                 in current model is torch.Size({:?}).",
                source.sizes(),
                target.sizes()
            ));
        }
    }
    if !problems.is_empty() {
        return Err(ModuleError::StateDict { module: module.to_string(), problems }.into());
    }
    let copies = own.iter().filter_map(|(name, target)| state.get(name).map(|source| (target, source)));
    let copies: Vec<(&Tensor, &Tensor)> = copies.collect();
    no_grad(|| {
        copies.iter().enumerate().try_for_each(|(done, (target, source))| {
            let half = HalfDone::after(
                done,
                copies.len(),
                "parameters and buffers were copied: the same call, with memory for it, does the rest",
            );
            let source = if is_old_number(target, source) { &source.reshape(&[])? } else { source };
            target.copy_(source).map(drop).map_err(half)
        })
    })?;
    Ok(keys)
}

/// PyTorch before 0.4 had no 0-dim tensors, and saved a number as one element.
fn is_old_number(target: &Tensor, source: &Tensor) -> bool {
    target.ndim() == 0 && source.sizes() == [1]
}
