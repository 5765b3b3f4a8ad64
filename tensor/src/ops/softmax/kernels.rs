//! The kernels of softmax, for one row each. Sums run in the order of the reduction tree.

use bytemuck::Pod;
use smallvec::SmallVec;

use crate::cpu::number::Float;
use crate::cpu::parallel::for_rows;
use crate::cpu::simd::vectorized;
use crate::cpu::tree;
use crate::error::Result;
use crate::kernel::{Args, TwinResult};
use crate::ops::launch::launch;
use crate::ops::plain::contiguous;
use crate::ops::row::{Row, row, rows};
use crate::tensor::Tensor;

#[inline(always)]
fn largest<T: Float>(row: &[T]) -> T {
    tree::all(row, T::lowest(), |a, b| a.larger(b))
}

#[inline(always)]
fn sum<T: Float>(row: &[T]) -> T {
    tree::all(row, T::zero(), |a, b| a + b)
}

#[inline(always)]
fn softmax_row<T: Float>([x]: [&[T]; 1], out: &mut [T]) {
    let largest = largest(x);
    for (out, x) in out.iter_mut().zip(x) {
        *out = (*x - largest).exp();
    }
    let total = sum(out);
    for out in out {
        *out = *out / total;
    }
}

#[inline(always)]
fn log_softmax_row<T: Float>([x]: [&[T]; 1], out: &mut [T]) {
    let largest = largest(x);
    for (out, x) in out.iter_mut().zip(x) {
        *out = (*x - largest).exp();
    }
    let log_total = sum(out).ln();
    for (out, x) in out.iter_mut().zip(x) {
        *out = *x - largest - log_total;
    }
}

pub(in crate::ops) fn log_softmax_of_row<T: Float>() -> fn([&[T]; 1], &mut [T]) {
    vectorized!([T: Float] log_softmax_row::<T>, (x: [&[T]; 1], out: &mut [T]))
}

#[inline(always)]
fn softmax_backward_row<T: Float>([grad, y]: [&[T]; 2], out: &mut [T]) {
    for ((out, grad), y) in out.iter_mut().zip(grad).zip(y) {
        *out = *grad * *y;
    }
    let total = sum(out);
    for ((out, grad), y) in out.iter_mut().zip(grad).zip(y) {
        *out = (*grad - total) * *y;
    }
}

#[inline(always)]
fn log_softmax_backward_row<T: Float>([grad, y]: [&[T]; 2], out: &mut [T]) {
    let total = sum(grad);
    for ((out, grad), y) in out.iter_mut().zip(grad).zip(y) {
        *out = *grad - y.exp() * total;
    }
}

rows! {
    pub(super) static SOFTMAX: Row = row! {
        name: "softmax", types: floats, geometry: LastDim, cost: Costly,
        parameters: [In(T), Out(T)],
        twin: |args| {
            over_rows(args, vectorized!(softmax_row::<T>, (inputs: [&[T]; 1], out: &mut [T])))
        },
    };
    pub(super) static LOG_SOFTMAX: Row = row! {
        name: "log_softmax", types: floats, geometry: LastDim, cost: Costly,
        parameters: [In(T), Out(T)],
        twin: |args| over_rows(args, log_softmax_of_row::<T>()),
    };
    pub(super) static SOFTMAX_BACKWARD: Row = row! {
        name: "softmax_backward", types: floats, geometry: LastDim, cost: Costly,
        parameters: [In(T), In(T), Out(T)],
        twin: |args| {
            over_rows(args, vectorized!(softmax_backward_row::<T>, (inputs: [&[T]; 2], out: &mut [T])))
        },
    };
    pub(super) static LOG_SOFTMAX_BACKWARD: Row = row! {
        name: "log_softmax_backward", types: floats, geometry: LastDim, cost: Costly,
        parameters: [In(T), In(T), Out(T)],
        twin: |args| over_rows(args, vectorized!(log_softmax_backward_row::<T>, (inputs: [&[T]; 2], out: &mut [T]))),
    };
}

pub(super) fn run<const N: usize>(kernel: &Row, inputs: [&Tensor; N], out: &Tensor) -> Result<()> {
    let inputs = inputs.iter().map(|input| contiguous(input)).collect::<Result<SmallVec<[Tensor; 2]>>>()?;
    launch(kernel.of(out.dtype())?, std::array::from_fn::<_, N, _>(|i| &inputs[i]), [out], &[], &[])
}

/// Runs `kernel` on the rows of tensors of one shape. A row is the last dimension.
fn over_rows<T: Pod + Send + Sync, const N: usize>(
    args: Args<'_, '_>,
    kernel: fn([&[T]; N], &mut [T]),
) -> TwinResult {
    let inputs: [&[T]; N] = std::array::from_fn(|i| args.inputs[i].elements());
    let length = args.outputs[0].layout.sizes().last().copied().unwrap_or(1);
    for_rows(args.outputs[0].elements(), length, |row, out: &mut [T]| {
        kernel(inputs.map(|input| &input[row * length..(row + 1) * length]), out);
    });
    Ok(())
}
