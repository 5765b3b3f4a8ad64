//! A module's values by name, taken out and put back.

use std::collections::HashMap;

use super::error::ModuleError;
use super::module::Module;
use super::parameter::{Buffer, Parameter};
use crate::autograd::no_grad;
use crate::error::{Error, HalfDone, Result};
use crate::serialize::{Dict, Key, Value};
use crate::sort;
use crate::tensor::Tensor;

/// Tensors by name, in the order of the module (`Module.state_dict()`).
#[derive(Clone, Debug, Default)]
pub struct StateDict(Vec<(String, Tensor)>);

impl StateDict {
    /// The tensor of that name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, tensor)| tensor)
    }

    /// Adds a tensor, or replaces the one of that name.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        let name = name.into();
        match self.0.iter_mut().find(|(key, _)| *key == name) {
            Some((_, old)) => *old = tensor,
            None => self.0.push((name, tensor)),
        }
    }

    /// Takes the tensor of that name out.
    pub fn remove(&mut self, name: &str) -> Option<Tensor> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    /// Names and tensors in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.0.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// A copy with memory of its own, which further training does not change: to keep the best weights so
    /// far, since a clone shares the module's memory.
    pub fn copy(&self) -> Result<StateDict> {
        let copy = |(name, tensor): &(String, Tensor)| Ok((name.clone(), tensor.copy()?));
        Ok(StateDict(self.0.iter().map(copy).collect::<Result<_>>()?))
    }

    /// The number of tensors.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Tensor)> for StateDict {
    fn from_iter<I: IntoIterator<Item = (String, Tensor)>>(tensors: I) -> StateDict {
        // A file may name many: each is not compared with all before it.
        let mut state = StateDict::default();
        let mut places = HashMap::new();
        for (name, tensor) in tensors {
            match places.insert(name.clone(), state.len()) {
                None => state.0.push((name, tensor)),
                Some(place) => {
                    state.0[place].1 = tensor;
                    places.insert(name, place);
                }
            }
        }
        state
    }
}

/// A `collections.OrderedDict` of tensors, as PyTorch saves it.
impl From<&StateDict> for Value {
    fn from(state: &StateDict) -> Value {
        let mut dict = Dict::ordered();
        state.iter().for_each(|(name, tensor)| drop(dict.insert(name, tensor)));
        dict.into()
    }
}

impl From<StateDict> for Value {
    fn from(state: StateDict) -> Value {
        Value::from(&state)
    }
}

/// The names that did not meet when a state was loaded without `strict`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncompatibleKeys {
    /// Names the module has and the state has not.
    pub missing_keys: Vec<String>,
    /// Names the state has and the module has not.
    pub unexpected_keys: Vec<String>,
}

pub(super) fn of<M: Module + ?Sized>(module: &M) -> StateDict {
    let mut state = StateDict::default();
    state.add("", module.own_parameters(), module.own_buffers(), module.children());
    state
}

impl StateDict {
    /// Parameters before buffers, a module before its children; a shared tensor under each of its names.
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
            let prefix = format!("{prefix}{name}.");
            self.add(&prefix, child.own_parameters(), child.own_buffers(), child.children());
        }
    }
}

/// Out of a checkpoint. Errors, in PyTorch's words, if it is no dict, or has something else than tensors.
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
        dict.iter().map(tensor).collect()
    }
}

/// The names of all modules, as they begin the names of tensors, in the order in which PyTorch visits them.
fn prefixes(prefix: String, children: Vec<(String, &dyn Module)>, found: &mut Vec<String>) {
    found.push(prefix.clone());
    for (name, child) in children {
        prefixes(format!("{prefix}{name}."), child.children(), found);
    }
}

/// Copies a state into a module's own.
pub(super) fn load<M: Module + ?Sized>(
    module: &M,
    state: &StateDict,
    strict: bool,
) -> Result<IncompatibleKeys> {
    let mut modules = Vec::new();
    prefixes(String::new(), module.children(), &mut modules);
    load_into(module.name(), &modules, &of(module), state, strict)
}

fn load_into(
    module: &'static str,
    modules: &[String],
    own: &StateDict,
    state: &StateDict,
    strict: bool,
) -> Result<IncompatibleKeys> {
    let not_in = |names: &StateDict, other: &StateDict| -> Vec<String> {
        names.iter().filter(|(name, _)| other.get(name).is_none()).map(|(name, _)| name.to_string()).collect()
    };
    let mut keys = IncompatibleKeys { missing_keys: not_in(own, state), unexpected_keys: not_in(state, own) };
    // PyTorch finds them module by module: each in the innermost module that its name leads to.
    let innermost = |name: &String| {
        let around = modules.iter().enumerate().filter(|(_, prefix)| name.starts_with(*prefix));
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
            target.copy_(source).map(drop).map_err(half)
        })
    })?;
    Ok(keys)
}
