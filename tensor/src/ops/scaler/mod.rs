//! The device part of a gradient scaler.

mod kernels;

pub(in crate::ops) use kernels::ROWS;

use crate::error::Result;
use crate::ops::{self, Operation, operations};
use crate::tensor::Tensor;

operations! {
    UNSCALE: Operation::new("_amp_foreach_non_finite_check_and_unscale_");
    UPDATE_SCALE: Operation::new("_amp_update_scale_");
}

/// Multiplies a gradient by `inv_scale`, and sets `found_inf` to 1 if an element is infinite or NaN
/// (`torch._amp_foreach_non_finite_check_and_unscale_`, for one gradient).
pub(crate) fn unscale(grad: &Tensor, inv_scale: &Tensor, found_inf: &Tensor) -> Result<()> {
    ops::call(&UNSCALE, &[grad, inv_scale, found_inf], |_| {
        kernels::unscale(grad, inv_scale, found_inf)?;
        grad.storage().bump_version();
        Ok(())
    })
}

/// Reduces the scale after infinite or NaN gradients, and increases it after `growth_interval` steps without any
/// (`torch._amp_update_scale_`).
pub(crate) fn update_scale(
    scale: &Tensor,
    growth_tracker: &Tensor,
    found_inf: &Tensor,
    [growth_factor, backoff_factor]: [f64; 2],
    growth_interval: u32,
) -> Result<()> {
    ops::call(&UPDATE_SCALE, &[scale, growth_tracker, found_inf], |_| {
        let factors = [growth_factor, backoff_factor];
        kernels::update_scale(scale, growth_tracker, found_inf, factors, growth_interval)?;
        for written in [scale, growth_tracker] {
            written.storage().bump_version();
        }
        Ok(())
    })
}
