//! Softmax on the host, a row at a time. Sums run in the order of the reduction tree.

use bytemuck::Pod;
use rayon::prelude::*;

use crate::dtype::with_float;
use crate::error::{Error, Result};
use crate::ops::elementwise::Float;
use crate::ops::elementwise::blocks::elements_mut;
use crate::ops::reduce::tree;
use crate::ops::shape::dense;
use crate::ops::simd::{threads, vectorized};
use crate::storage::access;
use crate::tensor::Tensor;

/// From this many elements on a second thread pays.
const SMALLEST_PARALLEL: usize = 1 << 16;

#[inline(always)]
fn largest<T: Float>(row: &[T]) -> T {
    tree::all(row, T::lowest(), |a, b| a.larger(b))
}

#[inline(always)]
fn sum<T: Float>(row: &[T]) -> T {
    tree::all(row, T::zero(), |a, b| a.plus(b))
}

#[inline(always)]
fn softmax_row<T: Float>([x]: [&[T]; 1], out: &mut [T]) {
    let largest = largest(x);
    for (out, x) in out.iter_mut().zip(x) {
        *out = x.minus(largest).exp();
    }
    let total = sum(out);
    for out in out {
        *out = out.over(total);
    }
}

#[inline(always)]
fn log_softmax_row<T: Float>([x]: [&[T]; 1], out: &mut [T]) {
    let largest = largest(x);
    for (out, x) in out.iter_mut().zip(x) {
        *out = x.minus(largest).exp();
    }
    let log_total = sum(out).ln();
    for (out, x) in out.iter_mut().zip(x) {
        *out = x.minus(largest).minus(log_total);
    }
}

#[inline(always)]
fn softmax_backward_row<T: Float>([grad, y]: [&[T]; 2], out: &mut [T]) {
    for ((out, grad), y) in out.iter_mut().zip(grad).zip(y) {
        *out = grad.times(*y);
    }
    let total = sum(out);
    for ((out, grad), y) in out.iter_mut().zip(grad).zip(y) {
        *out = grad.minus(total).times(*y);
    }
}

#[inline(always)]
fn log_softmax_backward_row<T: Float>([grad, y]: [&[T]; 2], out: &mut [T]) {
    let total = sum(grad);
    for ((out, grad), y) in out.iter_mut().zip(grad).zip(y) {
        *out = grad.minus(y.exp().times(total));
    }
}

macro_rules! row_kernel {
    ($(#[$doc:meta])* $name:ident, $row:ident, $n:literal, $($input:ident),+) => {
        $(#[$doc])*
        pub(super) fn $name($($input: &Tensor,)+ out: &Tensor) -> Result<()> {
            with_float!(out.dtype(), T => {
                let kernel = vectorized!($row::<T>, (inputs: [&[T]; $n], out: &mut [T]));
                over_rows([$($input),+], out, kernel)
            }, else Err(Error::NotImplemented { operation: stringify!($name), dtype: out.dtype() }))
        }
    };
}
row_kernel!(softmax, softmax_row, 1, x);
row_kernel!(log_softmax, log_softmax_row, 1, x);
row_kernel!(softmax_backward, softmax_backward_row, 2, grad, y);
row_kernel!(log_softmax_backward, log_softmax_backward_row, 2, grad, y);

/// Runs `kernel` on each row of tensors of one shape: the last dimension is a row.
fn over_rows<T: Pod + Send + Sync, const N: usize>(
    inputs: [&Tensor; N],
    out: &Tensor,
    kernel: fn([&[T]; N], &mut [T]),
) -> Result<()> {
    let inputs: Vec<Tensor> = inputs.into_iter().map(dense).collect::<Result<_>>()?;
    let inputs: [&Tensor; N] = std::array::from_fn(|i| &inputs[i]);
    let length = out.sizes().last().copied().unwrap_or(1);
    if out.numel() == 0 {
        return Ok(());
    }
    access(inputs, [out], |inputs, [bytes]| {
        let inputs = inputs.map(|input| {
            let (bytes, tensor) = input.expect("the result is fresh memory");
            let start = tensor.storage_offset();
            &bytemuck::cast_slice::<u8, T>(bytes)[start..start + tensor.numel()]
        });
        let out = elements_mut::<T>(bytes, out);
        let run = |(row, out): (usize, &mut [T])| {
            kernel(inputs.map(|input| &input[row * length..(row + 1) * length]), out);
        };
        if out.len() < SMALLEST_PARALLEL || threads() == 1 {
            out.chunks_mut(length).enumerate().for_each(run);
        } else {
            let share = (out.len() / length).div_ceil(threads());
            out.par_chunks_mut(length).with_min_len(share).enumerate().for_each(run);
        }
    })
}
