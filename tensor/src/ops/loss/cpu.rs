//! The negative log likelihood on the host. Targets are checked by now: the class of each row, `None` if it
//! is ignored.

use super::{CrossEntropyOptions, Reduction};
use crate::dtype::{Element, with_float};
use crate::error::{Error, Result};
use crate::ops::elementwise::blocks::elements_mut;
use crate::ops::reduce::tree;
use crate::ops::shape::{collect, dense};
use crate::storage::access;
use crate::tensor::Tensor;

/// The loss of each row, or their sum or weighted mean.
pub(super) fn nll_loss(
    log_probs: &Tensor,
    targets: &[Option<usize>],
    options: &CrossEntropyOptions,
    out: &Tensor,
) -> Result<()> {
    let classes = log_probs.sizes()[1];
    let log_probs = dense(log_probs)?;
    with_float!(log_probs.dtype(), T => {
        let weights = weights::<T>(options, 1.0, classes)?;
        access([&log_probs], [out], |[input], [bytes]| {
            let (values, log_probs) = input.expect("the result is fresh memory");
            let values = &bytemuck::cast_slice::<u8, T>(values)[log_probs.storage_offset()..];
            let loss = |(row, class): (usize, &Option<usize>)| {
                class.map_or(0.0, |class| -weights[class] * values[row * classes + class])
            };
            let losses: Vec<T> = collect(targets.iter().enumerate().map(loss), targets.len())?;
            let sum = |values: &[T]| tree::all(values, 0.0, |a, b| a + b);
            let out = elements_mut::<T>(bytes, out);
            match options.reduction {
                Reduction::None => out.copy_from_slice(&losses),
                Reduction::Sum => out[0] = sum(&losses),
                Reduction::Mean => out[0] = sum(&losses) / total_weight(targets, &weights),
            }
            Ok(())
        })?
    }, else Err(Error::NotImplemented { operation: "nll_loss_out_frame", dtype: out.dtype() }))
}

/// Writes the gradients of the log-probabilities that count to `grad_x`, which holds zeros.
pub(super) fn nll_loss_backward(
    grad: &Tensor,
    targets: &[Option<usize>],
    options: &CrossEntropyOptions,
    grad_x: &Tensor,
) -> Result<()> {
    let classes = grad_x.sizes()[1];
    let grad = dense(grad)?;
    with_float!(grad.dtype(), T => {
        let weights = weights::<T>(options, 1.0, classes)?;
        let total = match options.reduction {
            Reduction::Mean => total_weight(targets, &weights),
            Reduction::Sum | Reduction::None => 1.0,
        };
        access([&grad], [grad_x], |[input], [bytes]| {
            let (values, grad) = input.expect("the result is fresh memory");
            let values = &bytemuck::cast_slice::<u8, T>(values)[grad.storage_offset()..];
            let grad_x = elements_mut::<T>(bytes, grad_x);
            for (row, class) in targets.iter().enumerate() {
                let Some(class) = class else { continue };
                let grad = values[if options.reduction == Reduction::None { row } else { 0 }];
                grad_x[row * classes + class] = -weights[*class] * grad / total;
            }
        })
    }, else Err(Error::NotImplemented { operation: "nll_loss_out_frame", dtype: grad.dtype() }))
}

/// The weight of each class.
fn weights<T: Element>(options: &CrossEntropyOptions, one: T, classes: usize) -> Result<Vec<T>> {
    match &options.weight {
        Some(weight) => weight.to_vec::<T>(),
        None => Ok(vec![one; classes]),
    }
}

/// The sum of the weights of the targets that count: their number, if all weights are 1.
fn total_weight<T: Copy + std::iter::Sum>(targets: &[Option<usize>], weights: &[T]) -> T {
    targets.iter().flatten().map(|class| weights[*class]).sum()
}
