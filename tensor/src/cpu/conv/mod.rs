//! The three products of a convolution in host memory.
//!
//! | pass | a row of factors | is multiplied by | for each |
//! | --- | --- | --- | --- |
//! | forward | a kernel | the part of x that it covers | element of y |
//! | backward data | the weights of a channel in all kernels | the gradient of the outputs that covered it | element of x |
//! | backward filter | one place of the kernel, moved over x | the gradient in y | element of the weight |
//!
//! The first two share [`slide`]. The third is in [`correlate`].

mod axis;
mod correlate;
#[allow(unsafe_code)] // SIMD kernels.
mod lanes;
mod patch;
mod slide;
mod ways;

pub(crate) use ways::compute;

use std::sync::OnceLock;

use bytemuck::{cast_slice as cast, cast_slice_mut as cast_mut};

use crate::conv::{ConvPass, ConvShape};
use crate::cpu::half::{narrow_all, widened};
use crate::cpu::parallel::for_pieces;
use crate::cpu::pool;
use crate::cpu::reserve::collect;
use crate::dtype::DType;
use crate::error::Result;
use crate::error::dtype::not_implemented;

use axis::Axis;
use lanes::Lanes;
use slide::{ConvImages, Slide};

/// Computes one of the products of a convolution. The operands are dense, in the order of [`ConvPass`].
pub(crate) fn run_conv(
    pass: ConvPass,
    shape: &ConvShape,
    dtype: DType,
    a: &[u8],
    b: &[u8],
    out: &mut [u8],
) -> Result<()> {
    run_conv_with_bias(pass, shape, dtype, a, b, None, out)
}

/// Like [`run_conv`], with a bias for each channel of y.
pub(crate) fn run_conv_with_bias(
    pass: ConvPass,
    shape: &ConvShape,
    dtype: DType,
    a: &[u8],
    b: &[u8],
    bias: Option<&[u8]>,
    out: &mut [u8],
) -> Result<()> {
    let threads = pool::threads_for(shape.flops().try_into().unwrap_or(usize::MAX), WORTH_SHARING);
    match dtype {
        DType::F32 => run::<f32>(pass, shape, cast(a), cast(b), bias.map(cast), cast_mut(out), threads)?,
        DType::F64 => run::<f64>(pass, shape, cast(a), cast(b), bias.map(cast), cast_mut(out), threads)?,
        DType::F16 | DType::BF16 => {
            let [a, b] = [a, b].map(|operand| widened(dtype, cast(operand)));
            let (a, b) = (a?, b?);
            let bias = bias.map(|bias| widened(dtype, cast(bias))).transpose()?;
            let mut wide = collect(std::iter::repeat_n(0.0, out.len() / 2), out.len() / 2)?;
            run::<f32>(pass, shape, &a, &b, bias.as_deref(), &mut wide, threads)?;
            narrow_all(dtype, &wide, cast_mut(out));
        }
        dtype => return Err(not_implemented("slow_conv2d_cpu", dtype)),
    }
    Ok(())
}

fn run<T: Lanes>(
    pass: ConvPass,
    shape: &ConvShape,
    a: &[T],
    b: &[T],
    bias: Option<&[T]>,
    out: &mut [T],
    threads: usize,
) -> Result<()> {
    match pass {
        _ if out.is_empty() => Ok(()),
        ConvPass::Forward => forward(shape, a, b, bias, out, threads),
        ConvPass::BackwardData => backward_data(shape, a, b, out, threads),
        ConvPass::BackwardFilter => correlate::correlate(shape, a, b, out, threads),
    }
}

fn forward<T: Lanes>(
    shape: &ConvShape,
    x: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    y: &mut [T],
    threads: usize,
) -> Result<()> {
    let &ConvShape { c, h, w, k, r, s, groups, .. } = shape;
    let depth = c / groups * r * s;
    let row = |filter: usize| weight[filter * depth..][..depth].iter().copied();
    let slide = Slide::new(forward_axes(shape), [0; 2], [1; 2], [c / groups, k / groups], groups, row)?;
    let images =
        ConvImages { from: x, from_size: [h, w], to_size: shape.out(), channels: [c, k], groups, bias };
    slide::slide(&[slide], &images, threads, y)
}

fn backward_data<T: Lanes>(
    shape: &ConvShape,
    dy: &[T],
    weight: &[T],
    dx: &mut [T],
    threads: usize,
) -> Result<()> {
    let &ConvShape { c, h, w, k, r, s, stride, padding, dilation, groups, .. } = shape;
    let (c_group, k_group) = (c / groups, k / groups);
    // With a large stride, most phases have no taps and most elements no gradient.
    let phases = |dim: usize, size: usize, kernel: usize| -> Vec<(usize, Axis)> {
        let axis = |phase| Axis::backward(size, phase, kernel, stride[dim], padding[dim], dilation[dim]);
        let phases = (0..stride[dim].min(size)).map(|phase| (phase, axis(phase)));
        phases.filter(|(_, axis)| !axis.taps.is_empty()).collect()
    };
    let (row_phases, column_phases) = (phases(0, h, r), phases(1, w, s));
    let mut slides = Vec::new();
    for (row_phase, rows) in &row_phases {
        for (column_phase, columns) in &column_phases {
            let taps: Vec<usize> = (rows.taps.iter())
                .flat_map(|row| columns.taps.iter().map(move |column| row.index * s + column.index))
                .collect();
            let row = |channel: usize| {
                let (group, channel) = (channel / c_group, channel % c_group);
                let kernel = move |filter: usize| {
                    &weight[((group * k_group + filter) * c_group + channel) * r * s..][..r * s]
                };
                let taps = &taps;
                (0..k_group).map(kernel).flat_map(move |kernel| taps.iter().map(|tap| kernel[*tap]))
            };
            let (axes, phase) = ([rows.clone(), columns.clone()], [*row_phase, *column_phase]);
            slides.push(Slide::new(axes, phase, stride, [k_group, c_group], groups, row)?);
        }
    }
    let images = ConvImages {
        from: dy,
        from_size: shape.out(),
        to_size: [h, w],
        channels: [k, c],
        groups,
        bias: None,
    };
    slide::slide(&slides, &images, threads, dx)
}

fn forward_axes(shape: &ConvShape) -> [Axis; 2] {
    let &ConvShape { r, s, stride, padding, dilation, .. } = shape;
    let [p, q] = shape.out();
    [
        Axis::forward(p, r, stride[0], padding[0], dilation[0]),
        Axis::forward(q, s, stride[1], padding[1], dilation[1]),
    ]
}

/// The number of floating-point operations below which a second thread costs more than it saves.
const WORTH_SHARING: usize = 16_000_000;

/// The number of output rows in a block, so that a patch stays in a fast cache. Sums over pixels end with their block,
/// so this number is part of the result and the same on every machine.
fn block_rows(outputs: usize, patch_len: impl Fn(usize) -> usize) -> usize {
    const PATCH: usize = 1 << 16;
    let one = patch_len(1);
    let another = patch_len(2) - one;
    let most = 1 + PATCH.saturating_sub(one) / another.max(1);
    outputs.div_ceil(outputs.div_ceil(most).max(1)).max(1)
}

/// Runs the jobs on `threads` threads. A thread that has finished takes the next few jobs.
fn share<J: Send>(
    threads: usize,
    mut jobs: Vec<J>,
    work: impl Fn(&mut J) -> Result<()> + Sync,
) -> Result<()> {
    let failed = OnceLock::new();
    for_pieces(threads, &mut jobs, 1, &|_, jobs| {
        if failed.get().is_none()
            && let Err(error) = jobs.iter_mut().try_for_each(&work)
        {
            let _ = failed.set(error); // One error is enough.
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits<T: Lanes>(threads: usize, pass: ConvPass, shape: &ConvShape, number: fn(f64) -> T) -> Vec<u8> {
        let numbers = |count: usize, seed: usize| -> Vec<T> {
            (0..count).map(|i| number(((i + 1) * (7919 + 2 * seed) % 10007) as f64 / 10007.0 - 0.5)).collect()
        };
        let [x, weight, y] = shape.elements();
        let (a, b, out) = match pass {
            ConvPass::Forward => (x, weight, y),
            ConvPass::BackwardData => (y, weight, x),
            ConvPass::BackwardFilter => (x, y, weight),
        };
        let bias = numbers(shape.k, 3);
        let bias = (pass == ConvPass::Forward).then_some(bias.as_slice());
        let mut out = vec![number(f64::NAN); out];
        run(pass, shape, &numbers(a, 1), &numbers(b, 2), bias, &mut out, threads).unwrap();
        cast(&out).to_vec()
    }

    #[test]
    fn gives_the_same_bits_on_any_number_of_threads() {
        let plain = |n, c, h, w, k| ConvShape {
            n,
            c,
            h,
            w,
            k,
            r: 3,
            s: 3,
            stride: [1, 1],
            padding: [1, 1],
            dilation: [1, 1],
            groups: 1,
        };
        let shapes = [
            plain(5, 3, 9, 9, 7),
            plain(1, 70, 12, 13, 50),
            plain(40, 9, 8, 8, 33),
            plain(2, 8, 150, 80, 9),
            ConvShape { groups: 8, ..plain(3, 8, 20, 21, 16) },
            ConvShape { groups: 2, stride: [2, 3], ..plain(2, 24, 20, 21, 34) },
        ];
        for shape in shapes {
            for pass in [ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardFilter] {
                let one =
                    [bits(1, pass, &shape, |number| number as f32), bits(1, pass, &shape, |number| number)];
                for threads in [2, 3, 8] {
                    let several = [
                        bits(threads, pass, &shape, |number| number as f32),
                        bits(threads, pass, &shape, |number| number),
                    ];
                    assert!(several == one, "{threads} threads, {pass:?}, {shape:?}");
                }
            }
        }
    }
}
