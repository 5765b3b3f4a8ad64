use crate::error::{GpuError, Result};

/// Collects the values in a vector, or errors if there is not enough memory.
pub(crate) fn collect<T>(values: impl Iterator<Item = T>, count: usize) -> Result<Vec<T>> {
    let mut vector = reserve(count)?;
    vector.extend(values);
    Ok(vector)
}

/// Returns an empty vector with capacity for `count` values, or an error if there is not enough memory.
pub(crate) fn reserve<T>(count: usize) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    let bytes = count.saturating_mul(size_of::<T>());
    vector.try_reserve_exact(count).map_err(|_| GpuError::OutOfHostMemory { bytes })?;
    Ok(vector)
}
