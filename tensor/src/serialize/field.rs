//! Reading the entries of a state, with errors that name them.

use super::error::SerializeError;
use super::value::{Dict, Value};
use crate::error::Result;

/// The entry of that key, as `read` takes it. One that is not there is Python's `KeyError`; one of another type says which.
pub(crate) fn field<'a, T>(
    dict: &'a Dict,
    key: &'static str,
    read: impl FnOnce(&'a Value) -> Result<T>,
) -> Result<T> {
    let value = dict.at(key)?;
    read(value).map_err(|error| SerializeError::Field { key, error: error.to_string() }.into())
}

/// The same for a count: a whole number that is not negative.
pub(crate) fn count(value: &Value) -> Result<u64> {
    let number = value.as_int()?;
    u64::try_from(number).map_err(|_| SerializeError::Negative { number }.into())
}
