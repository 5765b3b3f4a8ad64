//! The kernels of normalisation. Sums run in the order of the reduction tree. `X` is the dtype of the input, and `W`
//! the dtype of the weight, bias and running statistics: the same, or f32 with a half type. Computation and saved
//! values are in `C`, which is f32 for half types.

use std::iter::zip;

use bytemuck::Pod;

use crate::bf16;
use crate::cpu::half::Stored;
use crate::cpu::number::Float;
use crate::cpu::parts::{for_parts, for_shares, part};
use crate::cpu::simd::vectorized;
use crate::cpu::tree::{self, CHUNK, LANES};
use crate::dtype::{DType, Element, Memory};
use crate::error::Result;
use crate::f16;
use crate::kernel::{Args, Input, KernelDef, TwinResult};
use crate::ops::launch::launch;
use crate::ops::row::{Row, row, rows};
use crate::tensor::Tensor;

/// A row with a kernel for each pair of dtypes of input and parameters: equal, or f32 parameters with a half type.
macro_rules! normalizing {
    ($name:literal, [$($parameter:ident $(($P:ty))?),+ $(,)?], $geometry:ident, $twin:expr) => {
        normalizing!(@ $name, [$($parameter $(($P))?),+], $geometry, $twin,
            F32 [f32 f32], F64 [f64 f64], F16 [f16 f16], BF16 [bf16 bf16], F16_F32 [f16 f32], BF16_F32 [bf16 f32])
    };
    (@ $name:literal, $parameters:tt, $geometry:ident, $twin:expr, $($KERNEL:ident [$X:ident $W:ident]),+) => {{
        $(static $KERNEL: KernelDef = {
            #[allow(dead_code)]
            type X = $X;
            #[allow(dead_code)]
            type W = $W;
            #[allow(dead_code)]
            type C = <X as Memory>::Math;
            const TYPES: &[DType] = type_key::<X, W>();
            row!(@kernel $name, TYPES, $parameters, $geometry, Cheap, $twin, None)
        };)+
        Row { name: $name, refused_as: $name, kernels: &[$(&$KERNEL),+] }
    }};
}

const fn type_key<X: Element, W: Element>() -> &'static [DType] {
    match (X::DTYPE, W::DTYPE) {
        (DType::F16, DType::F32) => &[DType::F16, DType::F32],
        (DType::BF16, DType::F32) => &[DType::BF16, DType::F32],
        (DType::F32, _) => &[DType::F32],
        (DType::F64, _) => &[DType::F64],
        (DType::F16, _) => &[DType::F16],
        _ => &[DType::BF16],
    }
}

rows! {
    BATCH_NORM: normalizing!("batch_norm", [
        In(X), In(W), In(W), In(W), In(W), Out(C), Out(C), Out(C), Out(X), Int, Float,
    ], Rows, batch_norm_twin::<X, W, C>);
    BATCH_NORM_BACKWARD: normalizing!("batch_norm_backward", [
        In(X), In(X), In(W), In(C), In(C), Out(W), Out(W), Out(X), Int,
    ], Rows, batch_norm_backward_twin::<X, W, C>).refused_as("batch_norm");
    RUNNING_STATS: row!("running_stats", each_float, [
        In(C), In(C), Out(T), Out(T), Float, Float,
    ], Indexed, Cheap, running_stats_twin::<T, C>).refused_as("batch_norm");
    LAYER_NORM: normalizing!("layer_norm", [
        In(X), In(W), In(W), Out(X), Out(C), Float,
    ], LastDim, layer_norm_twin::<X, W, C>).refused_as("LayerNormKernelImpl");
    LAYER_NORM_BACKWARD: normalizing!("layer_norm_backward", [
        In(X), In(X), In(W), In(C), Out(X),
    ], LastDim, layer_norm_backward_twin::<X, W, C>).refused_as("LayerNormKernelImpl");
    LAYER_NORM_SUMS: row!("layer_norm_sums", each_float, [
        In(T), In(T), In(C), Out(C), Out(C),
    ], Warps, Cheap, layer_norm_sums_twin::<T, C>).refused_as("LayerNormKernelImpl");
}

fn kernel(row: &Row, x: &Tensor, weight: &Tensor) -> Result<&'static KernelDef> {
    let types = [x.dtype(), weight.dtype()];
    row.of_types(if types[0] == types[1] { &types[..1] } else { &types })
}

#[inline(always)]
fn sum<C: Float>(row: &[C]) -> C {
    tree::all(row, C::zero(), |a, b| a + b)
}

/// Reads the entries of a vector, or of a number that stands for all of them.
fn vector<W: Stored>(input: &Input, length: usize) -> Result<Vec<W::Math>> {
    let (entries, mut room) = ((0..length).map(input.entries(length)?).collect::<Vec<W>>(), Vec::new());
    Ok(W::read(&entries, &mut room).to_vec())
}

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

    fn row<X: Stored>(self, x: &[X], channel: usize) -> Vec<X::Math> {
        let (mut row, mut room) = (Vec::with_capacity(self.batch * self.positions), Vec::new());
        for sample in x.chunks_exact(self.channels * self.positions) {
            row.extend_from_slice(X::read(part(sample, self.channels, channel), &mut room));
        }
        row
    }

    fn each<R: Pod + Send>(self, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
        let elements = self.batch * self.channels * self.positions;
        let mut found = vec![R::zeroed(); self.channels];
        for_parts(&mut found, self.channels, elements, |channel, found| found[0] = work(channel));
        found
    }
}

/// The normalisation of a channel: `(x − mean) · scale + bias`.
#[derive(Clone, Copy)]
struct Normalize<C> {
    mean: C,
    scale: C,
    bias: C,
}

/// Normalises each channel. Writes its mean, sum of squared deviations, and `1 / √(variance + eps)` to `stats`. Without
/// `training`, normalises by the running mean and variance.
pub(super) fn batch_norm(
    x: &Tensor,
    [weight, bias]: [&Tensor; 2],
    [running_mean, running_var]: [&Tensor; 2],
    stats: [&Tensor; 3],
    out: &Tensor,
    training: bool,
    eps: f64,
) -> Result<()> {
    let [mean, squares, invstd] = stats;
    let kernel = kernel(&BATCH_NORM, x, weight)?;
    let inputs = [x, weight, bias, running_mean, running_var];
    launch(kernel, inputs, [mean, squares, invstd, out], &[training.into()], &[eps])
}

fn batch_norm_twin<X: Stored<Math = C>, W: Stored<Math = C>, C: Float>(args: Args<'_, '_>) -> TwinResult {
    let Args { inputs, outputs, ints, floats, .. } = args;
    let moments = vectorized!([C: Float] moments::<C>, (row: Vec<C>) -> [C; 2]);
    let normalize = vectorized!([C: Float] normalize::<C>, (x: &[C], how: &[Normalize<C>], out: &mut [C]));
    let (x, channels) = (inputs[0].elements::<X>(), Channels::of(inputs[0].layout.sizes()));
    let vector = |i: usize| vector::<W>(&inputs[i], channels.channels);
    let (weight, bias) = (vector(1)?, vector(2)?);
    let count = if ints[0] != 0 { C::count(channels.batch * channels.positions) } else { C::count(1) };
    let moments: Vec<[C; 2]> = if ints[0] != 0 {
        channels.each(|channel| moments(channels.row(x, channel)))
    } else {
        zip(vector(3)?, vector(4)?).map(|(mean, var)| [mean, var]).collect()
    };
    let [means, all_squares, invstds, out] = outputs else { unreachable!("the kernel has four outputs") };
    let mut how = Vec::with_capacity(channels.channels);
    for (channel, [mean, squares]) in moments.into_iter().enumerate() {
        let invstd = C::count(1) / (squares / count + C::from_f64(floats[0])).root();
        means.elements()[channel] = mean;
        all_squares.elements()[channel] = squares;
        invstds.elements()[channel] = invstd;
        let (scale, bias) = (invstd * weight[channel], bias[channel]);
        how.push(match scale.to_f64().is_finite() {
            true => Normalize { mean, scale, bias },
            // PyTorch's CPU formula, which turns an infinite weight into NaNs: x · scale + (bias − mean · scale).
            false => Normalize { mean: C::zero(), scale, bias: bias - mean * scale },
        });
    }
    let nothing = &mut vec![(); channels.batch][..];
    for_shares(out.elements::<X>(), nothing, channels.batch, x.len(), &|first, out, samples| {
        let (mut of_x, mut of_out) = (Vec::new(), Vec::new());
        for (i, out) in out.chunks_mut(out.len() / samples.len()).enumerate() {
            let x = X::read(part(x, channels.batch, first + i), &mut of_x);
            X::write(out, &mut of_out, |out| normalize(x, &how, out));
        }
    });
    Ok(())
}

/// Returns the mean, and the sum of the squared deviations from it.
#[inline(always)]
fn moments<C: Float>(mut row: Vec<C>) -> [C; 2] {
    let count = C::count(row.len());
    let mean = sum(&row) / count;
    for x in &mut row {
        let deviation = *x - mean;
        *x = deviation * deviation;
    }
    [mean, sum(&row)]
}

#[inline(always)]
fn normalize<C: Float>(sample: &[C], how: &[Normalize<C>], out: &mut [C]) {
    let positions = sample.len() / how.len();
    for ((x, out), how) in sample.chunks(positions).zip(out.chunks_mut(positions)).zip(how) {
        for (x, out) in x.iter().zip(out) {
            *out = (*x - how.mean) * how.scale + how.bias;
        }
    }
}

pub(super) fn batch_norm_backward(
    [grad, x, weight]: [&Tensor; 3],
    [mean, invstd]: [&Tensor; 2],
    [grad_weight, grad_bias, grad_x]: [&Tensor; 3],
    training: bool,
) -> Result<()> {
    let kernel = kernel(&BATCH_NORM_BACKWARD, x, weight)?;
    let inputs = [grad, x, weight, mean, invstd];
    launch(kernel, inputs, [grad_weight, grad_bias, grad_x], &[training.into()], &[])
}

/// The gradient of a channel: `(g − mean_grad − (x − mean) · slope) · scale`.
#[derive(Clone, Copy)]
struct Backward<C> {
    mean_grad: C,
    mean: C,
    slope: C,
    scale: C,
}

fn batch_norm_backward_twin<X: Stored<Math = C>, W: Stored<Math = C>, C: Float>(
    args: Args<'_, '_>,
) -> TwinResult {
    let Args { inputs, outputs, ints, .. } = args;
    let sums = vectorized!([C: Float] gradient_sums::<C>, (grad: Vec<C>, x: Vec<C>, mean: C) -> [C; 2]);
    let of_batch =
        vectorized!([C: Float] gradients::<C>, (grad: &[C], x: &[C], how: &[Backward<C>], out: &mut [C]));
    let of_given = vectorized!([C: Float] gradients_of_given::<C>, (grad: &[C], x: &[C], how: &[Backward<C>], out: &mut [C]));
    let gradients = if ints[0] != 0 { of_batch } else { of_given };
    let (grad, x) = (inputs[0].elements::<X>(), inputs[1].elements::<X>());
    let channels = Channels::of(inputs[1].layout.sizes());
    let weight = vector::<W>(&inputs[2], channels.channels)?;
    let (means, invstds) = (inputs[3].elements::<C>(), inputs[4].elements::<C>());
    let count = C::count(channels.batch * channels.positions);
    let sums =
        channels.each(|channel| sums(channels.row(grad, channel), channels.row(x, channel), means[channel]));
    let [grad_weight, grad_bias, grad_x] = outputs else { unreachable!("it has three outputs") };
    let mut how = Vec::with_capacity(channels.channels);
    for (channel, [sum, product]) in sums.into_iter().enumerate() {
        let (mean, invstd) = (means[channel], invstds[channel]);
        grad_weight.elements()[channel] = W::narrow(product * invstd);
        grad_bias.elements()[channel] = W::narrow(sum);
        let scale = invstd * weight[channel];
        let slope = product * invstd * invstd / count;
        how.push(Backward { mean_grad: sum / count, mean, slope, scale });
    }
    let nothing = &mut vec![(); channels.batch][..];
    for_shares(grad_x.elements::<X>(), nothing, channels.batch, x.len(), &|first, out, samples| {
        let (mut of_grad, mut of_x, mut of_out) = (Vec::new(), Vec::new(), Vec::new());
        for (i, out) in out.chunks_mut(out.len() / samples.len()).enumerate() {
            let sample = |all| part(all, channels.batch, first + i);
            let (grad, x) = (X::read(sample(grad), &mut of_grad), X::read(sample(x), &mut of_x));
            X::write(out, &mut of_out, |out| gradients(grad, x, &how, out));
        }
    });
    Ok(())
}

/// Returns the sum of the gradients, and the sum of their products with `x − mean`.
#[inline(always)]
fn gradient_sums<C: Float>(grad: Vec<C>, mut row: Vec<C>, mean: C) -> [C; 2] {
    for (x, grad) in row.iter_mut().zip(&grad) {
        *x = *grad * (*x - mean);
    }
    [sum(&grad), sum(&row)]
}

#[inline(always)]
fn gradients<C: Float>(grad: &[C], x: &[C], how: &[Backward<C>], out: &mut [C]) {
    let positions = x.len() / how.len();
    let rows = grad.chunks(positions).zip(x.chunks(positions)).zip(out.chunks_mut(positions));
    for (((grad, x), out), how) in rows.zip(how) {
        for ((grad, x), out) in grad.iter().zip(x).zip(out) {
            let above = (*x - how.mean) * how.slope;
            *out = (*grad - how.mean_grad - above) * how.scale;
        }
    }
}

/// The gradients for a given mean and variance do not depend on x, which may be infinite.
#[inline(always)]
fn gradients_of_given<C: Float>(grad: &[C], _: &[C], how: &[Backward<C>], out: &mut [C]) {
    let positions = grad.len() / how.len();
    for ((grad, out), how) in grad.chunks(positions).zip(out.chunks_mut(positions)).zip(how) {
        for (grad, out) in grad.iter().zip(out) {
            *out = *grad * how.scale;
        }
    }
}

/// Moves the running mean and variance towards those of a batch, by `momentum`. Each channel has `count` elements, and
/// `squares` is the sum of their squared deviations. As in PyTorch on the CPU, the sample variance is computed in f64,
/// and bfloat16 is rounded at every step.
pub(super) fn running_stats(
    [mean, squares]: [&Tensor; 2],
    [running_mean, running_var]: [&Tensor; 2],
    momentum: f64,
    count: usize,
) -> Result<()> {
    let kernel = RUNNING_STATS.of(running_mean.dtype())?;
    let floats = [momentum, (count - 1) as f64];
    launch(kernel, [mean, squares], [running_mean, running_var], &[], &floats)
}

fn running_stats_twin<T: Stored<Math = C> + Element, C: Float>(
    Args { inputs, outputs, floats, .. }: Args<'_, '_>,
) -> TwinResult {
    let round = |x: C| if T::DTYPE == DType::BF16 { T::narrow(x).widen() } else { x };
    let momentum = round(C::from_f64(floats[0]));
    let (keep, count) = (round(C::count(1) - momentum), C::from_f64(floats[1]));
    let [means, vars] = outputs else { unreachable!("the kernel has two outputs") };
    for (running, mean) in means.elements::<T>().iter_mut().zip(inputs[0].elements::<C>()) {
        *running = T::narrow(round(momentum * round(*mean)) + round(keep * running.widen()));
    }
    for (running, squares) in vars.elements::<T>().iter_mut().zip(inputs[1].elements::<C>()) {
        let (var, kept) = (round(round(*squares) / count), round(keep * running.widen()));
        let var = momentum.to_f64() * var.to_f64() + kept.to_f64();
        *running = T::narrow(C::from_f64(var));
    }
    Ok(())
}

/// Normalises each row of x. Writes the row's mean and `1 / √(variance + eps)` to `stats`.
pub(super) fn layer_norm(
    x: &Tensor,
    [weight, bias]: [&Tensor; 2],
    out: &Tensor,
    stats: &Tensor,
    eps: f64,
) -> Result<()> {
    launch(kernel(&LAYER_NORM, x, weight)?, [x, weight, bias], [out, stats], &[], &[eps])
}

fn layer_norm_twin<X: Stored<Math = C>, W: Stored<Math = C>, C: Float>(args: Args<'_, '_>) -> TwinResult {
    let Args { inputs, outputs, floats, .. } = args;
    let row = vectorized!(
        [C: Float] layer_norm_row::<C>,
        (x: &[C], weight: &[C], bias: &[C], out: &mut [C], eps: C) -> [C; 2]
    );
    let (x, rows, length) =
        (inputs[0].elements::<X>(), inputs[0].layout.sizes()[0], inputs[0].layout.sizes()[1]);
    let (weight, bias) = (vector::<W>(&inputs[1], length)?, vector::<W>(&inputs[2], length)?);
    let [out, stats] = outputs else { unreachable!("the kernel has two outputs") };
    for_shares(out.elements::<X>(), stats.elements(), rows, x.len(), &|first, out, stats| {
        let (mut of_x, mut of_out) = (Vec::new(), Vec::new());
        for (i, (out, stats)) in zip(out.chunks_mut(length), stats.chunks_mut(2)).enumerate() {
            let x = X::read(part(x, rows, first + i), &mut of_x);
            X::write(out, &mut of_out, |out| {
                stats.copy_from_slice(&row(x, &weight, &bias, out, C::from_f64(floats[0])));
            });
        }
    });
    Ok(())
}

#[inline(always)]
fn layer_norm_row<C: Float>(x: &[C], weight: &[C], bias: &[C], out: &mut [C], eps: C) -> [C; 2] {
    let count = C::count(x.len());
    let mean = sum(x) / count;
    for (x, out) in x.iter().zip(&mut *out) {
        let deviation = *x - mean;
        *out = deviation * deviation;
    }
    let invstd = C::count(1) / (sum(out) / count + eps).root();
    for (((x, weight), bias), out) in x.iter().zip(weight).zip(bias).zip(out) {
        *out = (*x - mean) * invstd * *weight + *bias;
    }
    [mean, invstd]
}

pub(super) fn layer_norm_backward(inputs: [&Tensor; 4], grad_x: &Tensor) -> Result<()> {
    let [_, x, weight, _] = inputs;
    launch(kernel(&LAYER_NORM_BACKWARD, x, weight)?, inputs, [grad_x], &[], &[])
}

fn layer_norm_backward_twin<X: Stored<Math = C>, W: Stored<Math = C>, C: Float>(
    args: Args<'_, '_>,
) -> TwinResult {
    let Args { inputs, outputs, .. } = args;
    let row = vectorized!(
        [C: Float] layer_norm_backward_row::<C>,
        (grad: &[C], x: &[C], weight: &[C], stats: &[C], grad_x: &mut [C])
    );
    let (grad, x) = (inputs[0].elements::<X>(), inputs[1].elements::<X>());
    let (rows, length) = (inputs[1].layout.sizes()[0], inputs[1].layout.sizes()[1]);
    let (weight, stats) = (vector::<W>(&inputs[2], length)?, inputs[3].elements::<C>());
    let nothing = &mut vec![(); rows][..];
    for_shares(outputs[0].elements::<X>(), nothing, rows, x.len(), &|first, grad_x, _| {
        let (mut of_grad, mut of_x, mut of_out) = (Vec::new(), Vec::new(), Vec::new());
        for (i, grad_x) in grad_x.chunks_mut(length).enumerate() {
            let grad = X::read(part(grad, rows, first + i), &mut of_grad);
            let x = X::read(part(x, rows, first + i), &mut of_x);
            let stats = part(stats, rows, first + i);
            X::write(grad_x, &mut of_out, |grad_x| row(grad, x, &weight, stats, grad_x));
        }
    });
    Ok(())
}

/// Computes `(g − mean of g − n · mean of g n) · invstd`, where g is gradient · weight and n = (x − mean) · invstd.
#[inline(always)]
fn layer_norm_backward_row<C: Float>(grad: &[C], x: &[C], weight: &[C], stats: &[C], grad_x: &mut [C]) {
    let (count, mean, invstd) = (C::count(x.len()), stats[0], stats[1]);
    let normal = |x: C| (x - mean) * invstd;
    for (((grad, weight), x), out) in grad.iter().zip(weight).zip(x).zip(&mut *grad_x) {
        *out = *grad * *weight * normal(*x);
    }
    let mean_product = sum(grad_x) / count;
    for ((grad, weight), out) in grad.iter().zip(weight).zip(&mut *grad_x) {
        *out = *grad * *weight;
    }
    let mean_grad = sum(grad_x) / count;
    for (x, grad_x) in x.iter().zip(grad_x) {
        *grad_x = (*grad_x - mean_grad - normal(*x) * mean_product) * invstd;
    }
}

/// Sums the terms of the gradients of weight and bias, `n · grad` and `grad`, for each column and chunk of rows.
pub(super) fn layer_norm_sums([grad, x, stats]: [&Tensor; 3], sums: [&Tensor; 2]) -> Result<()> {
    launch(LAYER_NORM_SUMS.of(x.dtype())?, [grad, x, stats], sums, &[], &[])
}

pub(super) const ROWS_OF_A_CHUNK: usize = CHUNK;

/// The number of columns summed together: few enough for their lanes to fit in the L2 cache, and half a page of each
/// row, because the hardware does not prefetch across pages.
const TILE: usize = 512;

/// The partial sums of a lane for a tile of columns: for the weight, and for the bias.
type LaneFn<C> = [[C; TILE]; 2];

fn layer_norm_sums_twin<X: Stored<Math = C>, C: Float>(args: Args<'_, '_>) -> TwinResult {
    let Args { inputs, outputs, .. } = args;
    let take_in = vectorized!(
        [C: Float] take_in::<C>,
        (lane: &mut LaneFn<C>, grad: &[C], x: &[C], stats: &[C], is_first: bool)
    );
    let together = vectorized!([C: Float] together::<C>, (lanes: &mut [LaneFn<C>], used: usize) -> LaneFn<C>);
    let [grad, x] = [0, 1].map(|i: usize| inputs[i].elements::<X>());
    let (stats, length) = (inputs[2].elements::<C>(), inputs[1].layout.sizes()[1]);
    let [of_weight, of_bias] = outputs else { unreachable!("the kernel has two outputs") };
    let chunks = of_weight.layout.sizes()[1];
    for_shares(of_weight.elements(), of_bias.elements(), length, x.len(), &|first, of_weight, of_bias| {
        let (mut of_grad, mut of_x) = (Vec::new(), Vec::new());
        let mut lanes = vec![[[C::zero(); TILE]; 2]; LANES];
        let tiles = zip(of_weight.chunks_mut(TILE * chunks), of_bias.chunks_mut(TILE * chunks));
        for (tile, (of_weight, of_bias)) in tiles.enumerate() {
            let start = first + tile * TILE;
            let columns = start..start + of_weight.len() / chunks;
            let matrix = zip(grad.chunks(CHUNK * length), x.chunks(CHUNK * length));
            for (chunk, ((grad, x), stats)) in zip(matrix, stats.chunks(CHUNK * 2)).enumerate() {
                let rows = zip(zip(grad.chunks(length), x.chunks(length)), stats.chunks(2));
                for (row, ((grad, x), stats)) in rows.enumerate() {
                    let grad = X::read(&grad[columns.clone()], &mut of_grad);
                    let x = X::read(&x[columns.clone()], &mut of_x);
                    take_in(&mut lanes[row % LANES], grad, x, stats, row < LANES);
                }
                let [weight, bias] = together(&mut lanes, (stats.len() / 2).min(LANES));
                for column in 0..columns.len() {
                    of_weight[column * chunks + chunk] = weight[column];
                    of_bias[column * chunks + chunk] = bias[column];
                }
            }
        }
    });
    Ok(())
}

#[inline(always)]
fn take_in<C: Float>(lane: &mut LaneFn<C>, grad: &[C], x: &[C], stats: &[C], is_first: bool) {
    let [weight, bias] = lane;
    let (mean, invstd) = (stats[0], stats[1]);
    let row = zip(grad, x).map(|(grad, x)| (*grad * ((*x - mean) * invstd), *grad));
    for ((weight, bias), (product, grad)) in zip(zip(weight, bias), row) {
        (*weight, *bias) = if is_first { (product, grad) } else { (*weight + product, *bias + grad) };
    }
}

#[inline(always)]
fn together<C: Float>(lanes: &mut [LaneFn<C>], used: usize) -> LaneFn<C> {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width.min(used.saturating_sub(width)) {
            let (low, high) = lanes.split_at_mut(lane + width);
            for (a, b) in zip(low[lane].as_flattened_mut(), high[0].as_flattened()) {
                *a += *b;
            }
        }
        width /= 2;
    }
    lanes[0]
}
