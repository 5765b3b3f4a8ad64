//! The order in which a reduction combines its elements.
//!
//! Floating-point sums depend on it, so it is the same on the CPU, with any number of threads, and in a CUDA kernel.
//! Elements are taken in logical order, in chunks of 1024.
//!
//! - Within a chunk, lane `j` of 32 combines elements `j`, `j + 32`, `j + 64`, … in order. Then lane `j` combines with
//!   lane `j + 16`, then with `j + 8`, `j + 4`, `j + 2`, `j + 1`, like the threads of a warp.
//! - The results of the chunks are reduced in the same way, until one is left.
//!
//! A lane without elements takes no part. The rounding error of a sum grows with the logarithm of its length.

pub(crate) const CHUNK: usize = 1024;

/// The number of lanes of a chunk: the threads of a warp.
pub(crate) const LANES: usize = 32;

#[inline(always)]
pub(crate) fn chunk<T: Copy>(values: &[T], identity: T, combine: impl Fn(T, T) -> T) -> T {
    let mut lanes = [identity; LANES];
    let used = values.len().min(LANES);
    lanes[..used].copy_from_slice(&values[..used]);
    if values.len() > LANES {
        let mut rows = values[LANES..].chunks_exact(LANES);
        for row in &mut rows {
            for (lane, value) in lanes.iter_mut().zip(row) {
                *lane = combine(*lane, *value);
            }
        }
        for (lane, value) in lanes.iter_mut().zip(rows.remainder()) {
            *lane = combine(*lane, *value);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width.min(used.saturating_sub(width)) {
            lanes[lane] = combine(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

pub(crate) fn finish<T: Copy>(mut partials: Vec<T>, identity: T, chunk: impl Fn(&[T]) -> T) -> T {
    while partials.len() > 1 {
        partials = partials.chunks(CHUNK).map(&chunk).collect();
    }
    partials.first().copied().unwrap_or(identity)
}

#[inline(always)]
pub(crate) fn all<T: Copy>(values: &[T], identity: T, combine: impl Fn(T, T) -> T + Copy) -> T {
    if values.len() <= CHUNK {
        return chunk(values, identity, combine);
    }
    let chunk = |values: &[T]| chunk(values, identity, combine);
    finish(values.chunks(CHUNK).map(chunk).collect(), identity, chunk)
}
