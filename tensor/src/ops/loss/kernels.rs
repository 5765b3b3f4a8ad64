//! The kernels of the negative log likelihood. A target that is no class is an error on the host, and an
//! assertion that fails on a device.

use super::{CrossEntropyOptions, Reduction};
use crate::dtype::{DType, Element, Scalar, with_float};
use crate::error::{Error, Result};
use crate::ops::elementwise::Float;
use crate::ops::kernel::{Args, Cost, FLOATS, Geometry, Input, KernelDef, Parameter, launch};
use crate::ops::reduce::tree;
use crate::ops::shape::{collect, dense, number, reserve};
use crate::tensor::Tensor;

/// A kernel of scores or gradients, targets, the weights of the classes, and the options.
macro_rules! nll_kernel {
    ($name:literal, $T:ident, $geometry:ident, $twin:expr) => {{
        const KERNEL: &KernelDef = &KernelDef {
            name: $name,
            types: &[$T::DTYPE],
            parameters: &[
                Parameter::In($T::DTYPE),
                Parameter::In(DType::I64),
                Parameter::In($T::DTYPE),
                Parameter::Out($T::DTYPE),
                Parameter::Int,
                Parameter::Int,
            ],
            geometry: Geometry::$geometry,
            cost: Cost::Cheap,
            twin: $twin,
        };
        KERNEL
    }};
}

/// The loss of each row, or their sum or weighted mean.
pub(super) fn nll_loss(
    log_probs: &Tensor,
    target: &Tensor,
    options: &CrossEntropyOptions,
    out: &Tensor,
) -> Result<()> {
    let weight = weight_operand(options, out)?;
    let inputs = [&dense(log_probs)?, &dense(target)?, &weight];
    launch(nll_loss_kernel(out.dtype())?, inputs, [out], &numbers(options), &[])
}

fn nll_loss_kernel(dtype: DType) -> Result<&'static KernelDef> {
    with_float!(dtype, T => Ok(nll_kernel!("nll_loss", T, Rows, |args| {
        let classes = args.inputs[0].layout.sizes()[1];
        let targets = targets(&args, classes)?;
        let weight = weights::<T>(&args.inputs[2], classes)?;
        let values: &[T] = args.inputs[0].elements();
        let loss = |(row, class): (usize, &Option<usize>)| {
            class.map_or(0.0, |class| -weight(class) * values[row * classes + class])
        };
        let losses: Vec<T> = collect(targets.iter().enumerate().map(loss), targets.len())?;
        let reduction = reduction(&args);
        let out = args.outputs[0].elements::<T>();
        match reduction {
            Reduction::None => out.copy_from_slice(&losses),
            Reduction::Sum => out[0] = sum(&losses),
            Reduction::Mean => {
                out[0] = sum(&losses) / total_weight(&targets, &weight)?;
            }
        }
        Ok(())
    })
    .storing(dtype)), else Err(Error::NotImplemented { operation: "nll_loss_out_frame", dtype }))
}

/// Writes the gradients of the log-probabilities that count to `grad_x`, which holds zeros.
pub(super) fn nll_loss_backward(
    grad: &Tensor,
    target: &Tensor,
    options: &CrossEntropyOptions,
    grad_x: &Tensor,
) -> Result<()> {
    let weight = weight_operand(options, grad_x)?;
    let inputs = [&dense(grad)?, &dense(target)?, &weight];
    launch(nll_loss_backward_kernel(grad_x.dtype())?, inputs, [grad_x], &numbers(options), &[])
}

fn nll_loss_backward_kernel(dtype: DType) -> Result<&'static KernelDef> {
    with_float!(dtype, T => Ok(nll_kernel!("nll_loss_backward", T, LastDim, |args| {
        let classes = args.outputs[0].layout.sizes()[1];
        let targets = targets(&args, classes)?;
        let weight = weights::<T>(&args.inputs[2], classes)?;
        let reduction = reduction(&args);
        let total = match reduction {
            Reduction::Mean => total_weight(&targets, &weight)?,
            Reduction::Sum | Reduction::None => 1.0,
        };
        let grads: &[T] = args.inputs[0].elements();
        let grad_x = args.outputs[0].elements::<T>();
        for (row, class) in targets.iter().enumerate() {
            let Some(class) = class else { continue };
            let grad = grads[if reduction == Reduction::None { row } else { 0 }];
            grad_x[row * classes + class] = -weight(*class) * grad / total;
        }
        Ok(())
    })
    .storing(dtype)), else Err(Error::NotImplemented { operation: "nll_loss_out_frame", dtype }))
}

/// Every kernel of this file.
pub(crate) fn every_kernel() -> Vec<&'static KernelDef> {
    FLOATS
        .into_iter()
        .flat_map(|dtype| [nll_loss_kernel(dtype), nll_loss_backward_kernel(dtype)])
        .flatten()
        .collect()
}

/// The weights of the rows that count, together.
fn total_weight<T: Float>(targets: &[Option<usize>], weight: impl Fn(usize) -> T) -> Result<T> {
    let weights = targets.iter().map(|class| class.map_or(T::zero(), &weight));
    Ok(sum(&collect(weights, targets.len())?))
}

/// A sum in the order of the reduction tree.
fn sum<T: Float>(values: &[T]) -> T {
    tree::all(values, T::zero(), |a, b| a.plus(b))
}

/// The options as the kernels take them.
fn numbers(options: &CrossEntropyOptions) -> [i64; 2] {
    [options.ignore_index, options.reduction as i64]
}

fn reduction(args: &Args<'_, '_>) -> Reduction {
    [Reduction::Mean, Reduction::Sum, Reduction::None][args.ints[1] as usize]
}

/// The target of each row, `None` if it is ignored.
fn targets(args: &Args<'_, '_>, classes: usize) -> Result<Vec<Option<usize>>> {
    let ignore_index = args.ints[0];
    let check = |target: i64| match usize::try_from(target) {
        _ if target == ignore_index => Ok(None),
        Ok(class) if class < classes => Ok(Some(class)),
        _ => Err(Error::TargetOutOfBounds { target }),
    };
    let given: &[i64] = args.inputs[1].elements();
    let mut targets = reserve(given.len())?;
    for class in given {
        targets.push(check(*class)?);
    }
    Ok(targets)
}

/// The weights of the classes; without any, the number 1, which stands for all of them.
fn weight_operand(options: &CrossEntropyOptions, like: &Tensor) -> Result<Tensor> {
    match &options.weight {
        Some(weight) => Ok(weight.clone()),
        None => number(Scalar::Int(1), like.dtype()),
    }
}

/// The weight of each class.
fn weights<'a, T: bytemuck::Pod>(weight: &Input<'a>, classes: usize) -> Result<impl Fn(usize) -> T + 'a> {
    let layout = weight.layout.expand(&[classes])?;
    let (values, stride) = (weight.values::<T>(), layout.strides()[0]);
    Ok(move |class: usize| values[layout.offset + class * stride])
}
