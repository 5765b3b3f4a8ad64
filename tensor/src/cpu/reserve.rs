//! Vectors that may find no memory.

use crate::error::{GpuError, Result};

/// The values in a vector, or an error if there are more than memory.
pub(crate) fn collect<T>(values: impl Iterator<Item = T>, count: usize) -> Result<Vec<T>> {
    let mut vector = reserve(count)?;
    vector.extend(values);
    Ok(vector)
}

/// An empty vector with room for `count` values, or an error if there is none.
pub(crate) fn reserve<T>(count: usize) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    let bytes = count.saturating_mul(size_of::<T>());
    vector.try_reserve_exact(count).map_err(|_| GpuError::OutOfHostMemory { bytes })?;
    Ok(vector)
}
