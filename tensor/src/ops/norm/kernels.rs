//! The kernels of normalisation. Sums run in the order of the reduction tree.

use rayon::prelude::*;

use crate::dtype::{DType, Element, with_float};
use crate::error::{Error, Result};
use crate::ops::elementwise::Float;
use crate::ops::kernel::Parameter::{self, In, Int, Out};
use crate::ops::kernel::{Args, Cost, Geometry, KernelDef, launch};
use crate::ops::parts::{for_parts, for_parts_of_two, part};
use crate::ops::reduce::tree;
use crate::ops::simd::{threads, vectorized};
use crate::tensor::Tensor;

/// Every kernel of this file. Halves have none: what is calculated once and kept for the gradients is not rounded to
/// them, and weights may be f32s.
pub(crate) fn every_kernel() -> Vec<&'static KernelDef> {
    let each = [
        batch_norm_kernel,
        batch_norm_backward_kernel,
        running_stats_kernel,
        layer_norm_kernel,
        layer_norm_backward_kernel,
    ];
    each.into_iter().flat_map(|kernel| [DType::F32, DType::F64].into_iter().flat_map(kernel)).collect()
}

#[inline(always)]
fn sum<T: Float>(row: &[T]) -> T {
    tree::all(row, T::zero(), |a, b| a.plus(b))
}

/// How the channels of a batch lie: (batch, channels, positions).
#[derive(Clone, Copy)]
struct Channels {
    batch: usize,
    channels: usize,
    positions: usize,
}

impl Channels {
    fn of(sizes: &[usize]) -> Channels {
        Channels { batch: sizes[0], channels: sizes[1], positions: sizes[2] }
    }

    /// What a channel has in all samples, one after another.
    #[inline(always)]
    fn row<T: Copy>(self, x: &[T], channel: usize) -> Vec<T> {
        let mut row = Vec::with_capacity(self.batch * self.positions);
        for sample in x.chunks_exact(self.channels * self.positions) {
            row.extend_from_slice(part(sample, self.channels, channel));
        }
        row
    }

    /// What `work` finds out about each channel, on all threads if there is enough to do.
    fn each<R: Send>(self, work: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
        let elements = self.batch * self.channels * self.positions;
        if elements < Cost::Cheap.smallest_parallel() || threads() == 1 {
            return (0..self.channels).map(work).collect();
        }
        (0..self.channels).into_par_iter().with_min_len(self.channels.div_ceil(threads())).map(work).collect()
    }
}

/// What becomes of a channel's elements: `(x − mean) · scale + bias`.
#[derive(Clone, Copy)]
struct Normalize<T> {
    mean: T,
    scale: T,
    bias: T,
}

/// Mean and variance of each channel, `1 / √(variance + eps)`, and the channels normalised with them. When not training
/// mean and variance are those given.
pub(super) fn batch_norm(
    x: &Tensor,
    [weight, bias]: [&Tensor; 2],
    [running_mean, running_var]: [&Tensor; 2],
    stats: [&Tensor; 3],
    out: &Tensor,
    training: bool,
    eps: f64,
) -> Result<()> {
    let [mean, var, invstd] = stats;
    let inputs = [x, weight, bias, running_mean, running_var];
    launch(batch_norm_kernel(x.dtype())?, inputs, [mean, var, invstd, out], &[training.into()], &[eps])
}

fn batch_norm_kernel(dtype: DType) -> Result<&'static KernelDef> {
    with_float!(dtype, T => {
        const T_: Parameter = In(T::DTYPE);
        const OUT: Parameter = Out(T::DTYPE);
        const KERNEL: &KernelDef = &KernelDef {
            name: "batch_norm",
            types: &[T::DTYPE],
            parameters: &[T_, T_, T_, T_, T_, OUT, OUT, OUT, OUT, Int, Parameter::Float],
            geometry: Geometry::Rows,
            cost: Cost::Cheap,
            twin: |Args { inputs, outputs, ints, floats }| {
                let moments = vectorized!(moments::<T>, (x: &[T], channels: Channels, channel: usize) -> [T; 2]);
                let normalize = vectorized!(normalize::<T>, (x: &[T], how: &[Normalize<T>], out: &mut [T]));
                let (x, channels) = (inputs[0].elements::<T>(), Channels::of(inputs[0].layout.sizes()));
                let [weight, bias] = [inputs[1].entries::<T>(channels.channels)?, inputs[2].entries(channels.channels)?];
                let moments: Vec<[T; 2]> = if ints[0] != 0 {
                    channels.each(|channel| moments(x, channels, channel))
                } else {
                    let [mean, var] = [inputs[3].entries(channels.channels)?, inputs[4].entries(channels.channels)?];
                    (0..channels.channels).map(|channel| [mean(channel), var(channel)]).collect()
                };
                let [means, vars, invstds, out] = outputs else { unreachable!("the kernel has four outputs") };
                let mut how = Vec::with_capacity(channels.channels);
                for (channel, [mean, var]) in moments.into_iter().enumerate() {
                    let invstd = 1.0 / (var + floats[0] as T).sqrt();
                    means.elements()[channel] = mean;
                    vars.elements()[channel] = var;
                    invstds.elements()[channel] = invstd;
                    how.push(Normalize { mean, scale: invstd * weight(channel), bias: bias(channel) });
                }
                for_parts(out.elements(), channels.batch, x.len(), |sample, out| {
                    normalize(part(x, channels.batch, sample), &how, out);
                });
                Ok(())
            },
        };
        Ok(KERNEL)
    }, else Err(Error::NotImplemented { operation: "batch_norm", dtype }))
}

/// Mean and variance.
#[inline(always)]
fn moments<T: Float>(x: &[T], channels: Channels, channel: usize) -> [T; 2] {
    let mut row = channels.row(x, channel);
    let count = T::count(row.len());
    let mean = sum(&row).over(count);
    for x in &mut row {
        let deviation = x.minus(mean);
        *x = deviation.times(deviation);
    }
    [mean, sum(&row).over(count)]
}

#[inline(always)]
fn normalize<T: Float>(sample: &[T], how: &[Normalize<T>], out: &mut [T]) {
    let positions = sample.len() / how.len();
    for ((x, out), how) in sample.chunks(positions).zip(out.chunks_mut(positions)).zip(how) {
        for (x, out) in x.iter().zip(out) {
            *out = x.minus(how.mean).times(how.scale).plus(how.bias);
        }
    }
}

/// The gradients of weight, bias and input.
pub(super) fn batch_norm_backward(
    [grad, x, weight]: [&Tensor; 3],
    [mean, invstd]: [&Tensor; 2],
    [grad_weight, grad_bias, grad_x]: [&Tensor; 3],
    training: bool,
) -> Result<()> {
    let inputs = [grad, x, weight, mean, invstd];
    launch(
        batch_norm_backward_kernel(x.dtype())?,
        inputs,
        [grad_weight, grad_bias, grad_x],
        &[training.into()],
        &[],
    )
}

/// What the gradient of a channel's elements is: `(g − mean_grad − (x − mean) · slope) · scale`.
#[derive(Clone, Copy)]
struct Backward<T> {
    mean_grad: T,
    mean: T,
    slope: T,
    scale: T,
}

fn batch_norm_backward_kernel(dtype: DType) -> Result<&'static KernelDef> {
    with_float!(dtype, T => {
        const T_: Parameter = In(T::DTYPE);
        const OUT: Parameter = Out(T::DTYPE);
        const KERNEL: &KernelDef = &KernelDef {
            name: "batch_norm_backward",
            types: &[T::DTYPE],
            parameters: &[T_, T_, T_, T_, T_, OUT, OUT, OUT, Int],
            geometry: Geometry::Rows,
            cost: Cost::Cheap,
            twin: |Args { inputs, outputs, ints, .. }| {
                let sums = vectorized!(
                    gradient_sums::<T>,
                    (grad: &[T], x: &[T], channels: Channels, channel: usize, mean: T) -> [T; 2]
                );
                let gradients =
                    vectorized!(gradients::<T>, (grad: &[T], x: &[T], how: &[Backward<T>], out: &mut [T]));
                let (grad, x) = (inputs[0].elements::<T>(), inputs[1].elements::<T>());
                let channels = Channels::of(inputs[1].layout.sizes());
                let weight = inputs[2].entries::<T>(channels.channels)?;
                let (means, invstds) = (inputs[3].elements::<T>(), inputs[4].elements::<T>());
                let count = (channels.batch * channels.positions) as T;
                let sums = channels.each(|channel| sums(grad, x, channels, channel, means[channel]));
                let [grad_weight, grad_bias, grad_x] = outputs else { unreachable!("it has three outputs") };
                let mut how = Vec::with_capacity(channels.channels);
                for (channel, [sum, product]) in sums.into_iter().enumerate() {
                    let (mean, invstd) = (means[channel], invstds[channel]);
                    grad_weight.elements()[channel] = product * invstd;
                    grad_bias.elements()[channel] = sum;
                    let scale = invstd * weight(channel);
                    // Of given mean and variance x is no part.
                    let (mean_grad, slope) = match ints[0] {
                        0 => (0.0, 0.0),
                        _ => (sum / count, product * invstd * invstd / count),
                    };
                    how.push(Backward { mean_grad, mean, slope, scale });
                }
                for_parts(grad_x.elements(), channels.batch, x.len(), |sample, out| {
                    let [grad, x] = [grad, x].map(|all| part(all, channels.batch, sample));
                    gradients(grad, x, &how, out);
                });
                Ok(())
            },
        };
        Ok(KERNEL)
    }, else Err(Error::NotImplemented { operation: "batch_norm", dtype }))
}

/// The sum of the gradients, and that of their products with what x is above the mean.
#[inline(always)]
fn gradient_sums<T: Float>(grad: &[T], x: &[T], channels: Channels, channel: usize, mean: T) -> [T; 2] {
    let grad = channels.row(grad, channel);
    let mut row = channels.row(x, channel);
    for (x, grad) in row.iter_mut().zip(&grad) {
        *x = grad.times(x.minus(mean));
    }
    [sum(&grad), sum(&row)]
}

#[inline(always)]
fn gradients<T: Float>(grad: &[T], x: &[T], how: &[Backward<T>], out: &mut [T]) {
    let positions = x.len() / how.len();
    let rows = grad.chunks(positions).zip(x.chunks(positions)).zip(out.chunks_mut(positions));
    for (((grad, x), out), how) in rows.zip(how) {
        for ((grad, x), out) in grad.iter().zip(x).zip(out) {
            let above = x.minus(how.mean).times(how.slope);
            *out = grad.minus(how.mean_grad).minus(above).times(how.scale);
        }
    }
}

/// Moves the running mean and variance towards those of a batch, by `momentum`. `correction` makes its variance that of
/// a sample.
pub(super) fn running_stats(
    [mean, var]: [&Tensor; 2],
    [running_mean, running_var]: [&Tensor; 2],
    momentum: f64,
    correction: f64,
) -> Result<()> {
    let kernel = running_stats_kernel(mean.dtype())?;
    launch(kernel, [mean, var], [running_mean, running_var], &[], &[momentum, correction])
}

fn running_stats_kernel(dtype: DType) -> Result<&'static KernelDef> {
    with_float!(dtype, T => {
        const KERNEL: &KernelDef = &KernelDef {
            name: "running_stats",
            types: &[T::DTYPE],
            parameters: &[
                In(T::DTYPE), In(T::DTYPE), Out(T::DTYPE), Out(T::DTYPE), Parameter::Float, Parameter::Float,
            ],
            geometry: Geometry::Indexed,
            cost: Cost::Cheap,
            twin: |Args { inputs, outputs, floats, .. }| {
                let (momentum, keep) = (floats[0] as T, (1.0 - floats[0]) as T);
                for (i, factor) in [1.0, floats[1] as T].into_iter().enumerate() {
                    for (running, new) in outputs[i].elements::<T>().iter_mut().zip(inputs[i].elements::<T>()) {
                        *running = momentum * (*new * factor) + keep * *running;
                    }
                }
                Ok(())
            },
        };
        Ok(KERNEL)
    }, else Err(Error::NotImplemented { operation: "batch_norm", dtype }))
}

/// Each row of x normalised. `stats` gets its mean and `1 / √(variance + eps)`.
pub(super) fn layer_norm(
    x: &Tensor,
    [weight, bias]: [&Tensor; 2],
    out: &Tensor,
    stats: &Tensor,
    eps: f64,
) -> Result<()> {
    launch(layer_norm_kernel(x.dtype())?, [x, weight, bias], [out, stats], &[], &[eps])
}

fn layer_norm_kernel(dtype: DType) -> Result<&'static KernelDef> {
    with_float!(dtype, T => {
        const T_: Parameter = In(T::DTYPE);
        const KERNEL: &KernelDef = &KernelDef {
            name: "layer_norm",
            types: &[T::DTYPE],
            parameters: &[T_, T_, T_, Out(T::DTYPE), Out(T::DTYPE), Parameter::Float],
            geometry: Geometry::LastDim,
            cost: Cost::Cheap,
            twin: |Args { inputs, outputs, floats, .. }| {
                let row = vectorized!(
                    layer_norm_row::<T>,
                    (x: &[T], weight: &[T], bias: &[T], out: &mut [T], stats: &mut [T], eps: T)
                );
                let (x, rows) = (inputs[0].elements::<T>(), inputs[0].layout.sizes()[0]);
                let length = inputs[0].layout.sizes()[1];
                let [weight, bias] = [inputs[1].entries(length)?, inputs[2].entries(length)?]
                    .map(|entry| (0..length).map(entry).collect::<Vec<T>>());
                let [out, stats] = outputs else { unreachable!("the kernel has two outputs") };
                for_parts_of_two(out.elements(), stats.elements(), rows, x.len(), |i, out, stats| {
                    row(part(x, rows, i), &weight, &bias, out, stats, floats[0] as T);
                });
                Ok(())
            },
        };
        Ok(KERNEL)
    }, else Err(Error::NotImplemented { operation: "LayerNormKernelImpl", dtype }))
}

#[inline(always)]
fn layer_norm_row<T: Float>(x: &[T], weight: &[T], bias: &[T], out: &mut [T], stats: &mut [T], eps: T) {
    let count = T::count(x.len());
    let mean = sum(x).over(count);
    for (x, out) in x.iter().zip(&mut *out) {
        let deviation = x.minus(mean);
        *out = deviation.times(deviation);
    }
    let invstd = T::count(1).over(sum(out).over(count).plus(eps).root());
    for (((x, weight), bias), out) in x.iter().zip(weight).zip(bias).zip(out) {
        *out = x.minus(mean).times(invstd).times(*weight).plus(*bias);
    }
    stats.copy_from_slice(&[mean, invstd]);
}

/// The gradient of the input, and the products whose sums over the rows are that of the weight.
pub(super) fn layer_norm_backward(
    [grad, x, weight, stats]: [&Tensor; 4],
    [grad_x, products]: [&Tensor; 2],
) -> Result<()> {
    let inputs = [grad, x, weight, stats];
    launch(layer_norm_backward_kernel(x.dtype())?, inputs, [grad_x, products], &[], &[])
}

fn layer_norm_backward_kernel(dtype: DType) -> Result<&'static KernelDef> {
    with_float!(dtype, T => {
        const T_: Parameter = In(T::DTYPE);
        const KERNEL: &KernelDef = &KernelDef {
            name: "layer_norm_backward",
            types: &[T::DTYPE],
            parameters: &[T_, T_, T_, T_, Out(T::DTYPE), Out(T::DTYPE)],
            geometry: Geometry::LastDim,
            cost: Cost::Cheap,
            twin: |Args { inputs, outputs, .. }| {
                let row = vectorized!(
                    layer_norm_backward_row::<T>,
                    (grad: &[T], x: &[T], weight: &[T], stats: &[T], grad_x: &mut [T], products: &mut [T])
                );
                let [grad, x, stats] = [0, 1, 3].map(|i: usize| inputs[i].elements::<T>());
                let (rows, length) = (inputs[1].layout.sizes()[0], inputs[1].layout.sizes()[1]);
                let weight: Vec<T> = (0..length).map(inputs[2].entries(length)?).collect();
                let [grad_x, products] = outputs else { unreachable!("the kernel has two outputs") };
                for_parts_of_two(grad_x.elements(), products.elements(), rows, x.len(), |i, grad_x, products| {
                    let [grad, x, stats] = [grad, x, stats].map(|all| part(all, rows, i));
                    row(grad, x, &weight, stats, grad_x, products);
                });
                Ok(())
            },
        };
        Ok(KERNEL)
    }, else Err(Error::NotImplemented { operation: "LayerNormKernelImpl", dtype }))
}

/// With g the gradient times the weight and n = (x − mean) · invstd: `(g − mean of g − n · mean of g n) · invstd`.
#[inline(always)]
fn layer_norm_backward_row<T: Float>(
    grad: &[T],
    x: &[T],
    weight: &[T],
    stats: &[T],
    grad_x: &mut [T],
    products: &mut [T],
) {
    let (count, mean, invstd) = (T::count(x.len()), stats[0], stats[1]);
    let normal = |x: T| x.minus(mean).times(invstd);
    for (((grad, weight), x), out) in grad.iter().zip(weight).zip(x).zip(&mut *products) {
        *out = grad.times(*weight).times(normal(*x));
    }
    let mean_product = sum(products).over(count);
    for ((grad, weight), out) in grad.iter().zip(weight).zip(&mut *grad_x) {
        *out = grad.times(*weight);
    }
    let mean_grad = sum(grad_x).over(count);
    for (((grad, x), grad_x), product) in grad.iter().zip(x).zip(grad_x).zip(products) {
        let normal = normal(*x);
        *grad_x = grad_x.minus(mean_grad).minus(normal.times(mean_product)).times(invstd);
        *product = grad.times(normal);
    }
}
