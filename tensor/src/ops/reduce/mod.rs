//! Reductions: operations that combine many numbers into one, such as sums, means and extremes.
//!
//! - [`sum`]: `sum`, `mean`, `var`, `std`, `norm`   - [`extreme`]: `max`, `argmin`, `all`, …
//! - [`cumsum`]: cumulative sums
//!
//! The order in which numbers are combined is part of the result: see `cpu/tree.rs`.

pub(in crate::ops) mod cumsum;
pub(crate) mod error;
pub(in crate::ops) mod extreme;
mod kernels;
pub(in crate::ops) mod sum;

use error::ReduceError;
pub(in crate::ops) use kernels::ROWS;

use crate::error::Result;
use crate::tensor::Tensor;

/// Flags the dimensions of a reduction. No dimension means all.
fn reduced_dims(x: &Tensor, dims: &[i64]) -> Result<Vec<bool>> {
    // PyTorch accepts 0 and −1 for a 0-dim tensor, but not both.
    let mut reduced = vec![dims.is_empty(); x.ndim().max(1)];
    for dim in dims {
        let dim = x.layout().dim(*dim)?;
        if std::mem::replace(&mut reduced[dim], true) {
            return Err(ReduceError::RepeatedDim { dim }.into());
        }
    }
    reduced.truncate(x.ndim());
    Ok(reduced)
}

/// The sizes of the result. `keepdim` keeps reduced dimensions with size 1.
fn reduced_sizes(x: &Tensor, reduced: &[bool], keepdim: bool) -> Vec<usize> {
    x.sizes()
        .iter()
        .zip(reduced)
        .filter(|(_, reduced)| keepdim || !**reduced)
        .map(|(size, reduced)| if *reduced { 1 } else { *size })
        .collect()
}
