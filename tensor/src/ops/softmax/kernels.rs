//! The kernels of softmax, a row at a time. Sums run in the order of the reduction tree.

use bytemuck::Pod;

use crate::cpu::half::InHalves;
use crate::cpu::number::Float;
use crate::cpu::parallel::for_pieces;
use crate::cpu::simd::{threads, vectorized};
use crate::cpu::tree;
use crate::dtype::{DType, Element, with_float};
use crate::error::Result;
use crate::error::dtype::not_implemented;
use crate::kernel::{Args, Cost, FLOATS, Geometry, KernelDef, Parameter};
use crate::ops::launch::launch;
use crate::ops::plain::dense;
use crate::tensor::Tensor;

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
pub(in crate::ops) fn log_softmax_row<T: Float>([x]: [&[T]; 1], out: &mut [T]) {
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
    ($name:ident, $kernel:ident, $row:ident, $n:literal, $($input:ident),+) => {
        pub(super) fn $name($($input: &Tensor,)+ out: &Tensor) -> Result<()> {
            launch($kernel(out.dtype())?, [$(&dense($input)?),+], [out], &[], &[])
        }

        fn $kernel(dtype: DType) -> Result<&'static KernelDef> {
            with_float!(dtype, T => {
                const KERNEL: &KernelDef = &KernelDef {
                    name: stringify!($name),
                    types: &[T::DTYPE],
                    parameters: &[$({ stringify!($input); Parameter::In(T::DTYPE) },)+ Parameter::Out(T::DTYPE)],
                    geometry: Geometry::LastDim,
                    cost: Cost::Costly,
                    twin: |args| {
                        over_rows(args, vectorized!($row::<T>, (inputs: [&[T]; $n], out: &mut [T])));
                        Ok(())
                    },
                };
                Ok(KERNEL.storing(dtype))
            }, else Err(not_implemented(stringify!($name), dtype)))
        }
    };
}
row_kernel!(softmax, softmax_kernel, softmax_row, 1, x);
row_kernel!(log_softmax, log_softmax_kernel, log_softmax_row, 1, x);
row_kernel!(softmax_backward, softmax_backward_kernel, softmax_backward_row, 2, grad, y);
row_kernel!(log_softmax_backward, log_softmax_backward_kernel, log_softmax_backward_row, 2, grad, y);

/// Every kernel of this file.
pub(crate) fn every_kernel() -> Vec<&'static KernelDef> {
    let each = [softmax_kernel, log_softmax_kernel, softmax_backward_kernel, log_softmax_backward_kernel];
    each.into_iter().flat_map(|kernel| FLOATS.into_iter().flat_map(kernel)).collect()
}

/// Runs `kernel` on each row of tensors of one shape: the last dimension is a row.
fn over_rows<T: Pod + Send + Sync, const N: usize>(args: Args<'_, '_>, kernel: fn([&[T]; N], &mut [T])) {
    let inputs: [&[T]; N] = std::array::from_fn(|i| args.inputs[i].elements());
    let length = args.outputs[0].layout.sizes().last().copied().unwrap_or(1);
    for_rows(args.outputs[0].elements(), length, |row, out: &mut [T]| {
        kernel(inputs.map(|input| &input[row * length..(row + 1) * length]), out);
    });
}

/// Calls `run` with the number and the elements of each row of `out`, on several threads if it pays.
pub(in crate::ops) fn for_rows<T: Send>(out: &mut [T], length: usize, run: impl Fn(usize, &mut [T]) + Sync) {
    if out.is_empty() {
        return;
    }
    if out.len() < Cost::Costly.smallest_parallel() || threads() == 1 {
        out.chunks_mut(length).enumerate().for_each(|(row, out)| run(row, out));
    } else {
        for_pieces(out, length, &run);
    }
}
