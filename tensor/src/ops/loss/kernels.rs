//! The kernels of `nll_loss` and `cross_entropy`. A wrong target is an error on the host, an assertion on a device.

use super::error::LossError;
use super::{CrossEntropyOptions, Reduction};
use crate::cpu::number::Float;
use crate::cpu::parallel::for_rows;
use crate::cpu::reserve::{collect, reserve};
use crate::cpu::simd::vectorized;
use crate::cpu::tree;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::kernel::{Args, Input, TwinResult};
use crate::ops::launch::launch;
use crate::ops::plain::{contiguous, number, reshaped};
use crate::ops::row::{Row, row, rows};
use crate::ops::softmax::log_softmax_of_row;
use crate::tensor::Tensor;

rows! {
    // Inputs: scores or gradients, targets, class weights.
    static NLL_LOSS: Row = row! {
        name: "nll_loss", refused_as: "nll_loss_out_frame", types: floats, geometry: Rows, cost: Cheap,
        parameters: [In(T), In(i64), In(T), Out(T), Int, Int],
        twin: nll_loss_twin::<T>,
    };
    static NLL_LOSS_BACKWARD: Row = row! {
        name: "nll_loss_backward", refused_as: "nll_loss_out_frame",
        types: floats, geometry: LastDim, cost: Cheap,
        parameters: [In(T), In(i64), In(T), Out(T), Int, Int],
        twin: nll_loss_backward_twin::<T>,
    };
    static CROSS_ENTROPY: Row = row! {
        name: "cross_entropy", types: floats, geometry: LastDim, cost: Costly,
        parameters: [In(T), In(i64), In(T), Out(T), Out(T), Int],
        twin: cross_entropy_twin::<T>,
    };
    static CROSS_ENTROPY_MEAN: Row = row! {
        name: "cross_entropy_mean", refused_as: "cross_entropy", types: floats, geometry: Rows, cost: Cheap,
        parameters: [In(T), In(i64), In(T), Out(T), Out(f64), Int, Int, Int],
        twin: cross_entropy_mean_twin::<T>,
    };
    static CROSS_ENTROPY_BACKWARD: Row = row! {
        name: "cross_entropy_backward", refused_as: "cross_entropy",
        types: floats, geometry: Indexed, cost: Costly,
        parameters: [In(T), In(T), In(i64), In(T), In(f64), Out(T), Int],
        twin: cross_entropy_backward_twin::<T>,
    };
}

pub(super) fn nll_loss(
    log_probs: &Tensor,
    target: &Tensor,
    options: &CrossEntropyOptions,
    out: &Tensor,
) -> Result<()> {
    let weight = weight_operand(options, out)?;
    let inputs = [&contiguous(log_probs)?, &contiguous(target)?, &weight];
    launch(NLL_LOSS.of(out.dtype())?, inputs, [out], &numbers(options), &[])
}

fn nll_loss_twin<T: Float>(args: Args<'_, '_>) -> TwinResult {
    let classes = args.inputs[0].layout.sizes()[1];
    let targets = targets(&args.inputs[1], args.ints[0], classes)?;
    let weight = args.inputs[2].entries::<T>(classes)?;
    let values: &[T] = args.inputs[0].elements();
    let loss = |(row, class): (usize, &Option<usize>)| {
        class.map_or(T::zero(), |class| -weight(class) * values[row * classes + class])
    };
    let losses: Vec<T> = collect(targets.iter().enumerate().map(loss), targets.len())?;
    let reduction = reduction(args.ints[1]);
    let out = args.outputs[0].elements::<T>();
    match reduction {
        Reduction::None => out.copy_from_slice(&losses),
        Reduction::Sum => out[0] = sum(&losses),
        Reduction::Mean => {
            out[0] = sum(&losses) / total_weight(&targets, &weight)?;
        }
    }
    Ok(())
}

/// Writes the nonzero gradients of the log-probabilities to `grad_x`, which holds zeros.
pub(super) fn nll_loss_backward(
    grad: &Tensor,
    target: &Tensor,
    options: &CrossEntropyOptions,
    grad_x: &Tensor,
) -> Result<()> {
    let weight = weight_operand(options, grad_x)?;
    let inputs = [&contiguous(grad)?, &contiguous(target)?, &weight];
    launch(NLL_LOSS_BACKWARD.of(grad_x.dtype())?, inputs, [grad_x], &numbers(options), &[])
}

fn nll_loss_backward_twin<T: Float>(args: Args<'_, '_>) -> TwinResult {
    let classes = args.outputs[0].layout.sizes()[1];
    let targets = targets(&args.inputs[1], args.ints[0], classes)?;
    let weight = args.inputs[2].entries::<T>(classes)?;
    let reduction = reduction(args.ints[1]);
    let total = match reduction {
        Reduction::Mean => total_weight(&targets, &weight)?,
        Reduction::Sum | Reduction::None => T::count(1),
    };
    let grads: &[T] = args.inputs[0].elements();
    let grad_x = args.outputs[0].elements::<T>();
    for (row, class) in targets.iter().enumerate() {
        let Some(class) = class else { continue };
        let grad = grads[if reduction == Reduction::None { row } else { 0 }];
        grad_x[row * classes + class] = -weight(*class) * grad / total;
    }
    Ok(())
}

pub(super) fn cross_entropy(
    scores: &Tensor,
    target: &Tensor,
    options: &CrossEntropyOptions,
    [log_probs, losses]: [&Tensor; 2],
) -> Result<()> {
    let weight = weight_operand(options, losses)?;
    let inputs = [&contiguous(scores)?, &contiguous(target)?, &weight];
    launch(CROSS_ENTROPY.of(losses.dtype())?, inputs, [log_probs, losses], &[options.ignore_index], &[])
}

fn cross_entropy_twin<T: Float>(args: Args<'_, '_>) -> TwinResult {
    let classes = args.inputs[0].layout.sizes()[1];
    let targets = targets(&args.inputs[1], args.ints[0], classes)?;
    let weight = args.inputs[2].entries::<T>(classes)?;
    let scores: &[T] = args.inputs[0].elements();
    let [log_probs, losses] = args.outputs else { unreachable!("it has two outputs") };
    let log_probs = log_probs.elements::<T>();
    let log_softmax = log_softmax_of_row::<T>();
    for_rows(log_probs, classes, |row, out| log_softmax([&scores[row * classes..][..classes]], out));
    for (row, (loss, class)) in losses.elements::<T>().iter_mut().zip(targets).enumerate() {
        *loss = class.map_or(T::zero(), |class| -weight(class) * log_probs[row * classes + class]);
    }
    Ok(())
}

/// Computes the sum or mean of the losses, and the divisor of their sum, an f64 because it exceeds the half types.
pub(super) fn cross_entropy_mean(
    losses: &Tensor,
    target: &Tensor,
    classes: usize,
    options: &CrossEntropyOptions,
    [out, divisor]: [&Tensor; 2],
) -> Result<()> {
    let weight = weight_operand(options, losses)?;
    let [ignore_index, reduction] = numbers(options);
    launch(
        CROSS_ENTROPY_MEAN.of(losses.dtype())?,
        [losses, &contiguous(target)?, &weight],
        [out, divisor],
        &[classes as i64, ignore_index, reduction],
        &[],
    )
}

fn cross_entropy_mean_twin<T: Float>(args: Args<'_, '_>) -> TwinResult {
    let classes = args.ints[0] as usize;
    let total = match reduction(args.ints[2]) {
        Reduction::Mean => {
            let targets = targets(&args.inputs[1], args.ints[1], classes)?;
            total_weight(&targets, args.inputs[2].entries::<T>(classes)?)?
        }
        Reduction::Sum | Reduction::None => T::count(1),
    };
    args.outputs[0].elements::<T>()[0] = sum(args.inputs[0].elements::<T>()) / total;
    args.outputs[1].elements::<f64>()[0] = total.to_f64();
    Ok(())
}

pub(super) fn cross_entropy_backward(
    grad: &Tensor,
    log_probs: &Tensor,
    target: &Tensor,
    divisor: Option<&Tensor>,
    options: &CrossEntropyOptions,
    out: &Tensor,
) -> Result<()> {
    let weight = weight_operand(options, out)?;
    let one = number(Scalar::Int(1), DType::F64)?;
    let inputs = [&contiguous(grad)?, log_probs, &contiguous(target)?, &weight, divisor.unwrap_or(&one)];
    launch(CROSS_ENTROPY_BACKWARD.of(out.dtype())?, inputs, [out], &[options.ignore_index], &[])
}

fn cross_entropy_backward_twin<T: Float>(args: Args<'_, '_>) -> TwinResult {
    let sizes = args.outputs[0].layout.sizes();
    let (rows, classes) = (sizes[0], sizes[1]);
    let grad = args.inputs[0].entries::<T>(rows)?;
    let log_probs: &[T] = args.inputs[1].elements();
    let targets = targets(&args.inputs[2], args.ints[0], classes)?;
    let weight = args.inputs[3].entries::<T>(classes)?;
    let divisor = T::from_f64(args.inputs[4].entries::<f64>(1)?(0));
    let others = vectorized!([T: Float] gradients_of_others::<T>, (log_probs: &[T], grad: T, out: &mut [T]));
    for_rows(args.outputs[0].elements::<T>(), classes, |row, out| {
        let class = targets[row];
        let grad = class.map_or(T::zero(), |class| -weight(class) * grad(row) / divisor);
        others(&log_probs[row * classes..][..classes], grad, out);
        if let Some(class) = class {
            out[class] += grad;
        }
    });
    Ok(())
}

/// Writes the gradients of a row's scores as if every class were incorrect.
#[inline(always)]
fn gradients_of_others<T: Float>(log_probs: &[T], grad: T, out: &mut [T]) {
    for (out, log_prob) in out.iter_mut().zip(log_probs) {
        *out = T::zero() - log_prob.exp() * grad;
    }
}

fn total_weight<T: Float>(targets: &[Option<usize>], weight: impl Fn(usize) -> T) -> Result<T> {
    let weights = targets.iter().map(|class| class.map_or(T::zero(), &weight));
    Ok(sum(&collect(weights, targets.len())?))
}

/// Sums in the order of the reduction tree.
fn sum<T: Float>(values: &[T]) -> T {
    tree::all(values, T::zero(), |a, b| a + b)
}

fn numbers(options: &CrossEntropyOptions) -> [i64; 2] {
    [options.ignore_index, options.reduction as i64]
}

fn reduction(number: i64) -> Reduction {
    [Reduction::Mean, Reduction::Sum, Reduction::None][number as usize]
}

/// Returns each row's target, or `None` for an ignored row.
fn targets(given: &Input<'_>, ignore_index: i64, classes: usize) -> Result<Vec<Option<usize>>> {
    let check = |target: i64| match usize::try_from(target) {
        _ if target == ignore_index => Ok(None),
        Ok(class) if class < classes => Ok(Some(class)),
        _ => Err(LossError::TargetOutOfBounds { target }),
    };
    let given: &[i64] = given.elements();
    let mut targets = reserve(given.len())?;
    for class in given {
        targets.push(check(*class)?);
    }
    Ok(targets)
}

/// Returns the class weights, or 1 for all classes.
fn weight_operand(options: &CrossEntropyOptions, like: &Tensor) -> Result<Tensor> {
    match &options.weight {
        Some(weight) => Ok(reshaped(&contiguous(weight)?, &[weight.numel()])), // Weights of images may have any shape.
        None => number(Scalar::Int(1), like.dtype()),
    }
}
