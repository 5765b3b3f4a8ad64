//! Entries of a state dict, with errors that name the key.

use super::dict::Dict;
use super::error::SerializeError;
use super::value::Value;
use crate::error::Result;

/// Reads an entry. A missing key is Python's `KeyError`.
pub(crate) fn field<'a, T>(
    dict: &'a Dict,
    key: &'static str,
    read: impl FnOnce(&'a Value) -> Result<T>,
) -> Result<T> {
    dict.at(key)?;
    Ok(optional(dict, key, read)?.expect("it is there"))
}

/// Like [`field`], for an entry that older states lack.
pub(crate) fn optional<'a, T>(
    dict: &'a Dict,
    key: &'static str,
    read: impl FnOnce(&'a Value) -> Result<T>,
) -> Result<Option<T>> {
    let value = dict.get(key).map(read).transpose();
    value.map_err(|error| SerializeError::Field { key, error: error.to_string() }.into())
}

/// Reads a non-negative integer.
pub(crate) fn count(value: &Value) -> Result<u64> {
    let number = whole(value)?;
    u64::try_from(number).map_err(|_| SerializeError::Negative { number }.into())
}

/// Reads an integer or a whole float: PyTorch accepts `step_size=2.0`.
pub(crate) fn whole(value: &Value) -> Result<i64> {
    match value {
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 2f64.powi(53) => Ok(*number as i64),
        other => other.as_int(),
    }
}

/// Reads a number or a tensor of one element, such as `lr=torch.tensor(0.1)`.
pub(crate) fn number(value: &Value) -> Result<f64> {
    match value {
        Value::Tensor(tensor) if tensor.numel() == 1 => tensor.item(),
        other => other.as_float(),
    }
}
