//! The gradient of the weight: for each element, the sum over all pixels of the input it was multiplied by, times the
//! gradient of the output. The sums run over blocks of image rows, assigned in order to *shares*, whose number depends
//! only on the sizes. The sums of the shares are added in order, so the number of threads does not affect the result.

use std::iter::repeat_n;

use super::lanes::{Correlated, Lanes, packed_len, with_memory};
use super::patch::Patch;
use super::{block_rows, forward_axes, share};
use crate::conv::ConvShape;
use crate::cpu::reserve::collect;
use crate::cpu::simd::vectorized;
use crate::error::Result;

/// The maximum number of shares, and of all their sums.
const SHARES: usize = 16;
const NUMBERS: usize = 1 << 23;

/// The number of filters in a group below which vectors run along pixels instead of filters.
const FEW_FILTERS: usize = 4;

struct CorrelateJob<'a, T> {
    share: usize,
    group: usize,
    first: usize,
    channels: usize,
    sums: &'a mut [T],
}

pub(super) fn correlate<T: Lanes>(
    shape: &ConvShape,
    x: &[T],
    dy: &[T],
    dw: &mut [T],
    threads: usize,
) -> Result<()> {
    dw.fill(T::zeroed());
    if x.is_empty() || dy.is_empty() {
        return Ok(());
    }
    let &ConvShape { n, c, h, w, k, r, s, groups, .. } = shape;
    let ([p, q], c_group, k_group) = (shape.out(), c / groups, k / groups);
    let axes = forward_axes(shape);
    let block = block_rows(p, |rows| Patch::new(&axes, c_group, rows).len());
    let blocks_of_image = p.div_ceil(block);
    let blocks = n * blocks_of_image;
    let shares = blocks.min(SHARES).min((NUMBERS / dw.len()).max(1));

    let parts = if k_group < FEW_FILTERS { 1 } else { threads.div_ceil(shares * groups).min(c_group) };
    let channels = c_group.div_ceil(parts);
    let parts = c_group.div_ceil(channels);
    let [tile_rows, lanes] = T::tile();
    // One row of sums per tap, one column per filter.
    let (rows, columns) = match k_group < FEW_FILTERS {
        true => (c_group * r * s, k_group),
        false => ((channels * r * s).next_multiple_of(tile_rows), k_group.next_multiple_of(lanes)),
    };
    let count = shares * groups * parts * rows * columns;
    let mut sums = collect(repeat_n(T::zeroed(), count), count)?;

    let jobs = sums.chunks_exact_mut(rows * columns).enumerate().map(|(i, sums)| {
        let (share, group, first) = (i / (groups * parts), i / parts % groups, i % parts * channels);
        CorrelateJob { share, group, first, channels: channels.min(c_group - first), sums }
    });
    let patch = Patch::new(&axes, channels, block);
    let taps = patch.taps()?;
    let steps = collect((0..block * q).map(|i| i / q * patch.width + i % q), block * q)?;
    share(threads, jobs.collect(), |job| {
        let patch = Patch::new(&axes, job.channels, block);
        let taps = &taps[..job.channels * r * s];
        with_memory(patch.room::<T>().saturating_add(packed_len::<T>(k_group)), |memory| {
            let (places, packed) = memory.split_at_mut(patch.room::<T>());
            for at in job.share * blocks / shares..(job.share + 1) * blocks / shares {
                let (image, top) = (at / blocks_of_image, at % blocks_of_image * block);
                let channel = image * c + job.group * c_group + job.first;
                patch.fill(top, &x[channel * h * w..][..job.channels * h * w], [h, w], places);
                let grads = &dy[(image * k + job.group * k_group) * p * q..][..k_group * p * q];
                let (grads, grads_stride) = (&grads[top * q..], p * q);
                let steps = &steps[..block.min(p - top) * q];
                if k_group < FEW_FILTERS {
                    for (filter, grads) in grads.chunks(grads_stride).enumerate() {
                        let sums = job.sums[filter..].iter_mut().step_by(k_group);
                        for (sum, tap) in sums.zip(taps) {
                            *sum = *sum + correlation(&grads[..steps.len()], &places[*tap..], q, patch.width);
                        }
                    }
                } else {
                    let (patch, c) = (&*places, &mut *job.sums);
                    let (packed, lanes) = (&mut *packed, k_group);
                    T::correlated(Correlated {
                        patch,
                        taps,
                        steps,
                        grads,
                        grads_stride,
                        lanes,
                        packed,
                        c,
                        c_stride: columns,
                    });
                }
            }
        })
    })?;

    let (first, others) = sums.split_at_mut(groups * parts * rows * columns);
    for other in others.chunks_exact(first.len()) {
        first.iter_mut().zip(other).for_each(|(sum, other)| *sum = *sum + *other);
    }
    for (i, dw) in dw.chunks_exact_mut(c_group * r * s).enumerate() {
        let (group, filter) = (i / k_group, i % k_group);
        let parts = first.chunks_exact(rows * columns).skip(group * parts).take(parts);
        for (dw, sums) in dw.chunks_mut(channels * r * s).zip(parts) {
            let column = sums[filter..].iter().step_by(columns);
            dw.iter_mut().zip(column).for_each(|(dw, sum)| *dw = *sum);
        }
    }
    Ok(())
}

/// The dot product of rows of `columns` numbers, the second's `stride` apart: 16 sums, added in a tree.
fn correlation<T: Lanes>(grads: &[T], places: &[T], columns: usize, stride: usize) -> T {
    vectorized!([T: Lanes] sixteen_sums::<T>, (grads: &[T], places: &[T], columns: usize, stride: usize) -> T)(
        grads, places, columns, stride,
    )
}

#[inline(always)]
fn sixteen_sums<T: Lanes>(grads: &[T], places: &[T], columns: usize, stride: usize) -> T {
    let (mut sums, mut at_ends) = ([T::zeroed(); 16], [T::zeroed(); 16]);
    for (grads, places) in grads.chunks_exact(columns).zip(places.chunks(stride)) {
        let (grads, grads_left) = grads.as_chunks::<16>();
        let (places, places_left) = places[..columns].as_chunks::<16>();
        for (grads, places) in grads.iter().zip(places) {
            for (sum, (a, b)) in sums.iter_mut().zip(grads.iter().zip(places)) {
                *sum = *sum + *a * *b;
            }
        }
        let (fours, ones) = at_ends.split_at_mut(grads_left.len() / 4 * 4);
        let (grads, grads_left) = grads_left.as_chunks::<4>();
        let (places, places_left) = places_left.as_chunks::<4>();
        for (sums, (grads, places)) in fours.as_chunks_mut::<4>().0.iter_mut().zip(grads.iter().zip(places)) {
            for (sum, (a, b)) in sums.iter_mut().zip(grads.iter().zip(places)) {
                *sum = *sum + *a * *b;
            }
        }
        for (sum, (a, b)) in ones.iter_mut().zip(grads_left.iter().zip(places_left)) {
            *sum = *sum + *a * *b;
        }
    }
    for (sum, at_end) in sums.iter_mut().zip(at_ends) {
        *sum = *sum + at_end;
    }
    let mut width = 16;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            sums[i] = sums[i] + sums[i + width];
        }
    }
    sums[0]
}
