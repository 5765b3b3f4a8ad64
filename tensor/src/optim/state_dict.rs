//! Conversion of an optimizer's state to and from a [`Dict`], in PyTorch's layout. Parameters are numbered through all
//! groups, because only their order outlives a program.

use super::error::OptimError;
use super::groups::{GroupOptions, ParamGroups};
use crate::dtype::DType;
use crate::error::Result;
use crate::nn::Parameter;
use crate::ops::transfer::ToOptions;
use crate::serialize::{Dict, Key, Value, field, number, optional};
use crate::tensor::Tensor;

impl<O: GroupOptions<N>, const N: usize> ParamGroups<O, N> {
    pub(super) fn state_dict(&self) -> Dict {
        let (mut state, mut param_groups, mut next) = (Dict::new(), Vec::new(), 0);
        for (i, group) in self.groups.iter().enumerate() {
            let params: Vec<usize> = (next..next + group.params.len()).collect();
            next += params.len();
            for (id, kept) in params.iter().zip(&group.state) {
                if let Some(kept) = kept {
                    state.insert(*id, O::STATE.into_iter().zip(kept).collect::<Dict>());
                }
            }
            let (lr, initial_lr) = self.learning_rates.of_group(i);
            let mut entries = Dict::from_iter([("lr", lr)]);
            for (name, option) in group.options.to_dict() {
                entries.insert(name, option);
            }
            if let Some(initial_lr) = initial_lr {
                entries.insert("initial_lr", initial_lr);
            }
            entries.insert("params", params);
            param_groups.push(entries);
        }
        Dict::from_iter([("state", Value::Dict(state)), ("param_groups", param_groups.into())])
    }

    /// Reads and moves everything before any replacement.
    pub(super) fn load_state_dict(&mut self, dict: &Dict) -> Result<()> {
        let saved = field(dict, "param_groups", Value::as_list)?;
        let saved: Vec<&Dict> = saved.iter().map(Value::as_dict).collect::<Result<_>>()?;
        if saved.len() != self.groups.len() {
            return Err(OptimError::GroupCount.into());
        }
        let ids = saved.iter().map(|group| field(group, "params", Value::as_list));
        let ids: Vec<&[Value]> = ids.collect::<Result<_>>()?;
        if ids.iter().zip(&self.groups).any(|(ids, group)| ids.len() != group.params.len()) {
            return Err(OptimError::GroupSizes.into());
        }
        let saved_state = field(dict, "state", Value::as_dict)?;
        let (mut states, mut options, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for ((saved, ids), group) in saved.into_iter().zip(ids).zip(&self.groups) {
            let lr = field(saved, "lr", number)?;
            options.push(O::from_dict(lr, saved)?);
            rates.push((lr, optional(saved, "initial_lr", number)?));
            let state_of = |(id, parameter): (&Value, &Parameter)| match saved_state.get(id.as_int()?) {
                Some(saved) => {
                    kept_of(&parameter.tensor(), &id.as_int()?.into(), saved.as_dict()?, &O::STATE)
                }
                None => Ok(None),
            };
            states.push(ids.iter().zip(&group.params).map(state_of).collect::<Result<Vec<_>>>()?);
        }
        for ((group, options), state) in self.groups.iter_mut().zip(options).zip(states) {
            (group.options, group.state) = (options, state);
        }
        self.learning_rates.restore(rates);
        Ok(())
    }
}

/// Reads a checkpoint's option. A missing one means that the checkpoint belongs to another optimizer.
pub(super) fn option<'a, O: GroupOptions<N>, const N: usize, T>(
    saved: &'a Dict,
    name: &'static str,
    read: impl FnOnce(&'a Value) -> Result<T>,
) -> Result<T> {
    match saved.get(name) {
        None => Err(OptimError::NoOption { optimizer: O::OPTIMIZER, name }.into()),
        Some(_) => field(saved, name, read),
    }
}

/// Reads a checkpoint's boolean option, which older versions of PyTorch may lack.
pub(super) fn choice(saved: &Dict, name: &'static str) -> Result<bool> {
    match saved.get(name) {
        None | Some(Value::None) => Ok(false),
        Some(Value::Int(number)) => Ok(*number != 0), // Python accepts a number as a bool.
        Some(_) => field(saved, name, Value::as_bool),
    }
}

/// Errors if a checkpoint enables an option that this optimizer lacks.
pub(super) fn check_choice<O: GroupOptions<N>, const N: usize>(
    saved: &Dict,
    name: &'static str,
) -> Result<()> {
    match choice(saved, name)? {
        true => Err(OptimError::Choice { optimizer: O::OPTIMIZER, name }.into()),
        false => Ok(()),
    }
}

/// Returns a parameter's state in a checkpoint, if any, on the parameter's device and in its dtype, except for `step`.
fn kept_of<const N: usize>(
    parameter: &Tensor,
    id: &Key,
    saved: &Dict,
    names: &[&'static str; N],
) -> Result<Option<[Tensor; N]>> {
    if names.iter().all(|name| saved.get(*name).is_none_or(Value::is_none)) {
        return Ok(None);
    }
    let mut kept = Vec::with_capacity(N);
    for name in names {
        kept.push(match *name {
            "step" => step_of(saved.at("step")?)?,
            _ => like(parameter, id, name, field(saved, name, Value::as_tensor)?)?,
        });
    }
    Ok(kept.try_into().ok())
}

/// Reads a step count: a number becomes a host tensor, and a tensor keeps its device. Older files have an `int`.
fn step_of(value: &Value) -> Result<Tensor> {
    match value {
        Value::Tensor(step) if step.numel() == 1 => step.detach().to(DType::F32),
        Value::Tensor(step) => Err(OptimError::Step { sizes: step.sizes().to_vec() }.into()),
        other => Tensor::new(other.as_float()? as f32),
    }
}

fn like(parameter: &Tensor, id: &Key, name: &'static str, saved: &Tensor) -> Result<Tensor> {
    if saved.sizes() != parameter.sizes() {
        let (found, expected) = (saved.sizes().to_vec(), parameter.sizes().to_vec());
        return Err(OptimError::StateSizes { name, id: id.to_string(), found, expected }.into());
    }
    let to =
        ToOptions { device: Some(parameter.device()), dtype: Some(parameter.dtype()), ..Default::default() };
    saved.detach().to(to)
}
