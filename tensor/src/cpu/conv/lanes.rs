//! The inner loops of convolutions in vector registers. Their tiles are those of a matrix product
//! (`cpu/gemm/kernel.rs`), but one factor is read directly from a patch.

use bytemuck::allocation::try_zeroed_vec;
use bytemuck::{Pod, Zeroable};

use crate::cpu::gemm::kernel::{self, Vector};
use crate::cpu::gemm::pack::{Strip, pack};
use crate::cpu::gemm::{GemmElement, KC, Matrix};
use crate::cpu::thread::{CacheLine, THREAD};
use crate::error::{GpuError, Result};

/// Weighted sums of a patch: `c[i][j] = Σₚ weights[i][p] · patch[steps[p] + j]`, where `j` covers one vector from each
/// of `starts`. Sums are cut into runs of [`KC`], as in a matrix product.
pub(super) struct Weighted<'a, T> {
    /// The number of rows of c, and the bias added to each row.
    pub(super) rows: usize,
    pub(super) bias: Option<&'a [T]>,
    /// In the layout of [`strips`].
    pub(super) weights: &'a [T],
    pub(super) patch: &'a [T],
    pub(super) steps: &'a [usize],
    pub(super) starts: &'a [usize],
    pub(super) c: &'a mut [T],
    pub(super) c_stride: usize,
}

/// Sums of a patch times gradients: `c[i][j] += Σₚ patch[taps[i] + steps[p]] · grads[j][p]`, also cut into [`KC`] runs.
pub(super) struct Correlated<'a, T> {
    pub(super) patch: &'a [T],
    pub(super) taps: &'a [usize],
    pub(super) steps: &'a [usize],
    /// One row per lane of c, `grads_stride` apart.
    pub(super) grads: &'a [T],
    pub(super) grads_stride: usize,
    pub(super) lanes: usize,
    pub(super) packed: &'a mut [T],
    /// The number of rows is a multiple of [`Lanes::tile`], with at least one row per tap. Rows are whole vectors.
    pub(super) c: &'a mut [T],
    pub(super) c_stride: usize,
}

/// Rows of an image, to be copied with zeros around them: `rows` rows of `from`, beginning at element `first`, fill the
/// places `left..right` of contiguous rows of `width` places.
pub(super) struct ImageRows<'a, T> {
    pub(super) from: &'a [T],
    pub(super) first: usize,
    pub(super) stride: usize,
    pub(super) rows: usize,
    /// One vector longer than the rows. The contents of that vector are undefined.
    pub(super) to: &'a mut [T],
    pub(super) width: usize,
    pub(super) left: usize,
    pub(super) right: usize,
}

pub(super) trait Lanes: GemmElement {
    /// The number of rows of a tile, and of elements in a vector.
    fn tile() -> [usize; 2];
    fn copy_rows(rows: ImageRows<Self>);
    fn weighted(sums: Weighted<Self>);
    fn correlated(sums: Correlated<Self>);
}

pub(super) fn packed_len<T: Lanes>(lanes: usize) -> usize {
    KC * lanes.next_multiple_of(2 * T::tile()[1])
}

macro_rules! lanes {
    ($element:ty, $avx512:ident, $avx2:ident, $portable:ident) => {
        impl Lanes for $element {
            fn tile() -> [usize; 2] {
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx512f") {
                    return [8, 64 / size_of::<$element>()];
                } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    return [6, 32 / size_of::<$element>()];
                }
                [PORTABLE_ROWS, kernel::$portable::LANES]
            }

            fn copy_rows(rows: ImageRows<Self>) {
                rows.check();
                // SAFETY: `check` has passed, and the processor has the detected instructions.
                unsafe {
                    #[cfg(target_arch = "x86_64")]
                    if is_x86_feature_detected!("avx512f") {
                        return copy_rows_avx512::<std::arch::x86_64::$avx512>(rows);
                    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                        return copy_rows_avx2::<std::arch::x86_64::$avx2>(rows);
                    }
                    copy_rows::<kernel::$portable>(rows)
                }
            }

            fn weighted(sums: Weighted<Self>) {
                sums.check();
                // SAFETY: `check` has passed, and the processor has the detected instructions.
                unsafe {
                    #[cfg(target_arch = "x86_64")]
                    if is_x86_feature_detected!("avx512f") {
                        return weighted_avx512::<std::arch::x86_64::$avx512>(sums);
                    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                        return weighted_avx2::<std::arch::x86_64::$avx2>(sums);
                    }
                    weighted::<kernel::$portable, PORTABLE_ROWS, PORTABLE_FEW>(sums)
                }
            }

            fn correlated(sums: Correlated<Self>) {
                sums.check();
                // SAFETY: `check` has passed, and the processor has the detected instructions.
                unsafe {
                    #[cfg(target_arch = "x86_64")]
                    if is_x86_feature_detected!("avx512f") {
                        return correlated_avx512::<std::arch::x86_64::$avx512>(sums);
                    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                        return correlated_avx2::<std::arch::x86_64::$avx2>(sums);
                    }
                    correlated::<kernel::$portable, PORTABLE_ROWS, PORTABLE_FEW>(sums)
                }
            }
        }
    };
}
lanes!(f32, __m512, __m256, Floats);
lanes!(f64, __m512d, __m256d, Doubles);

const PORTABLE_ROWS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 4 };
const PORTABLE_FEW: usize = PORTABLE_ROWS / 2;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn copy_rows_avx512<V: Vector>(rows: ImageRows<V::Element>) {
    // SAFETY: the caller's promise.
    unsafe { copy_rows::<V>(rows) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn copy_rows_avx2<V: Vector>(rows: ImageRows<V::Element>) {
    // SAFETY: the caller's promise.
    unsafe { copy_rows::<V>(rows) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn weighted_avx512<V: Vector>(sums: Weighted<V::Element>) {
    // SAFETY: the caller's promise.
    unsafe { weighted::<V, 8, 4>(sums) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn weighted_avx2<V: Vector>(sums: Weighted<V::Element>) {
    // SAFETY: the caller's promise.
    unsafe { weighted::<V, 6, 3>(sums) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn correlated_avx512<V: Vector>(sums: Correlated<V::Element>) {
    // SAFETY: the caller's promise.
    unsafe { correlated::<V, 8, 4>(sums) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn correlated_avx2<V: Vector>(sums: Correlated<V::Element>) {
    // SAFETY: the caller's promise.
    unsafe { correlated::<V, 6, 3>(sums) }
}

impl<T: Lanes> ImageRows<'_, T> {
    /// Panics unless all reads and writes are in bounds.
    fn check(&self) {
        assert!(self.left <= self.right && self.right <= self.width, "places outside of a row");
        let last = self.first + self.rows.saturating_sub(1) * self.stride;
        assert!(last + self.right - self.left <= self.from.len(), "the image is too small");
        assert!(self.rows * self.width + T::tile()[1] <= self.to.len(), "there is no room for the rows");
    }
}

/// Copies whole vectors. The next writes overwrite the excess at the end of a row.
#[inline(always)]
unsafe fn copy_rows<V: Vector>(rows: ImageRows<V::Element>) {
    let ImageRows { from, first, stride, rows, to, width, left, right } = rows;
    let (len, end, to) = (right - left, from.len(), to.as_mut_ptr());
    // SAFETY: every write begins within a row, so it ends within one vector after the last row. Reads are in bounds.
    unsafe {
        let zeros = |from: *mut V::Element, len: usize| {
            for i in (0..len).step_by(V::LANES) {
                V::splat(V::Element::zeroed()).store(from.add(i));
            }
        };
        for row in 0..rows {
            let (at, to) = (first + row * stride, to.add(row * width));
            zeros(to, left);
            for i in (0..len).step_by(V::LANES) {
                let (from, to) = (from.as_ptr().add(at + i), to.add(left + i));
                if at + i + V::LANES <= end {
                    V::load(from).store(to);
                } else {
                    (i..len).for_each(|j| *to.add(j - i) = *from.add(j - i));
                    break;
                }
            }
            zeros(to.add(right), width - right);
        }
    }
}

impl<T: Lanes> Weighted<'_, T> {
    fn check(&self) {
        let [tile_rows, lanes] = T::tile();
        let most = |places: &[usize]| places.iter().copied().max().unwrap_or(0);
        assert!(most(self.steps) + most(self.starts) + lanes <= self.patch.len(), "the patch is too short");
        let rows = self.rows.next_multiple_of(tile_rows);
        assert!(rows * self.steps.len() <= self.weights.len(), "the weights are too few");
        assert!(self.bias.is_none_or(|bias| bias.len() >= self.rows), "the bias is too short");
        let last_row = self.rows.saturating_sub(1) * self.c_stride;
        assert!(last_row + self.starts.len() * lanes <= self.c.len(), "c is too small");
    }
}

impl<T: Lanes> Correlated<'_, T> {
    fn check(&self) {
        let [tile_rows, vector] = T::tile();
        let most = |places: &[usize]| places.iter().copied().max().unwrap_or(0);
        assert!(most(self.taps) + most(self.steps) < self.patch.len(), "the patch is too short");
        let last_row = self.lanes.saturating_sub(1) * self.grads_stride;
        assert!(last_row + self.steps.len() <= self.grads.len(), "the gradients are too few");
        assert!(packed_len::<T>(self.lanes) <= self.packed.len(), "there is no room to pack");
        assert!(self.lanes.next_multiple_of(vector) <= self.c_stride, "c is too narrow");
        let rows = self.taps.len().next_multiple_of(tile_rows);
        assert!(rows * self.c_stride <= self.c.len(), "c is too small");
    }
}

#[inline(always)]
unsafe fn weighted<V: Vector, const ROWS: usize, const FEW: usize>(sums: Weighted<V::Element>) {
    let Weighted { rows, bias, weights, patch, steps, starts, c, c_stride } = sums;
    let depth = steps.len();
    for p in (0..depth).step_by(KC) {
        let steps = &steps[p..depth.min(p + KC)];
        let bias = bias.filter(|_| p + KC >= depth);
        for (j, starts) in starts.chunks(2).enumerate() {
            for i in (0..rows).step_by(ROWS) {
                // SAFETY: the strip of weights, the reads and the tile are within the checked bounds.
                unsafe {
                    let a = weights.as_ptr().add(i * depth + p * ROWS);
                    let to = To {
                        start: c.as_mut_ptr().add(i * c_stride + j * 2 * V::LANES),
                        stride: c_stride,
                        rows: ROWS.min(rows - i),
                        add: p > 0,
                        bias: bias.map(|bias| bias.as_ptr().add(i)),
                    };
                    match *starts {
                        [left, right] => {
                            let b = [left, right].map(|start| patch.as_ptr().add(start));
                            match to.rows {
                                1 => weighted_tile::<V, ROWS, 1, 2>(steps, a, b, to),
                                rows if rows <= FEW => weighted_tile::<V, ROWS, FEW, 2>(steps, a, b, to),
                                _ => weighted_tile::<V, ROWS, ROWS, 2>(steps, a, b, to),
                            }
                        }
                        [start] => {
                            let b = [patch.as_ptr().add(start)];
                            match to.rows {
                                1 => weighted_tile::<V, ROWS, 1, 1>(steps, a, b, to),
                                rows if rows <= FEW => weighted_tile::<V, ROWS, FEW, 1>(steps, a, b, to),
                                _ => weighted_tile::<V, ROWS, ROWS, 1>(steps, a, b, to),
                            }
                        }
                        _ => unreachable!("chunks of two"),
                    }
                }
            }
        }
    }
}

/// The destination of a tile: first element, row stride, number of rows, whether it is added to, and the rows' bias.
#[derive(Clone, Copy)]
struct To<T> {
    start: *mut T,
    stride: usize,
    rows: usize,
    add: bool,
    bias: Option<*const T>,
}

/// Computes a tile of `ROWS` rows by `VECTORS` vectors of [`Weighted`]. Strips of weights are `WIDTH` wide.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
#[cfg_attr(target_family = "wasm", inline(never))] // as in a matrix product
unsafe fn weighted_tile<V: Vector, const WIDTH: usize, const ROWS: usize, const VECTORS: usize>(
    steps: &[usize],
    a: *const V::Element,
    b: [*const V::Element; VECTORS],
    to: To<V::Element>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let zero = V::splat(V::Element::zeroed());
        let mut sums = [[zero; VECTORS]; ROWS];
        for (p, step) in steps.iter().enumerate() {
            let mut b_row = [zero; VECTORS];
            for (vector, b) in b_row.iter_mut().zip(b) {
                *vector = V::load(b.add(*step));
            }
            for (i, row) in sums.iter_mut().enumerate() {
                let factor = V::splat(*a.add(p * WIDTH + i));
                for (sum, vector) in row.iter_mut().zip(b_row) {
                    *sum = factor.mul_add(vector, *sum);
                }
            }
        }
        put(sums, to);
    }
}

#[inline(always)]
unsafe fn put<V: Vector, const ROWS: usize, const VECTORS: usize>(
    mut sums: [[V; VECTORS]; ROWS],
    to: To<V::Element>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let place = |i: usize, v: usize| to.start.add(i * to.stride + v * V::LANES);
        // Read everything before the first write, as in a matrix product.
        if to.add {
            for (i, row) in sums.iter_mut().enumerate().take(to.rows) {
                for (v, sum) in row.iter_mut().enumerate() {
                    *sum = V::load(place(i, v)).add(*sum);
                }
            }
        }
        for (i, row) in sums.iter_mut().enumerate().take(to.rows) {
            for (v, sum) in row.iter_mut().enumerate() {
                if let Some(bias) = to.bias {
                    *sum = sum.add(V::splat(*bias.add(i)));
                }
                sum.store(place(i, v));
            }
        }
    }
}

#[inline(always)]
unsafe fn correlated<V: Vector, const ROWS: usize, const FEW: usize>(sums: Correlated<V::Element>) {
    let Correlated { patch, taps, steps, grads, grads_stride, lanes, packed, c, c_stride } = sums;
    let width = 2 * V::LANES;
    for (run, steps) in steps.chunks(KC).enumerate() {
        let depth = steps.len();
        for j in (0..lanes).step_by(width) {
            let lanes = width.min(lanes - j);
            // SAFETY: the gradients, their packed copy, the reads and the tile are within the checked bounds. A tile
            // with more rows than taps repeats the last tap.
            unsafe {
                let from = Matrix {
                    start: grads.as_ptr().add(j * grads_stride + run * KC),
                    strides: [grads_stride, 1],
                };
                let b = packed.as_mut_ptr().add(j * KC);
                pack::<V, ROWS>(from, Strip { lanes, width, depth }, b);
                for i in (0..taps.len()).step_by(ROWS) {
                    let left = taps.len() - i;
                    let to = To {
                        start: c.as_mut_ptr().add(i * c_stride + j),
                        stride: c_stride,
                        rows: ROWS,
                        add: true,
                        bias: None,
                    };
                    let taps = &taps[i..];
                    match (left > FEW, lanes > V::LANES) {
                        (true, true) => correlated_tile::<V, ROWS, 2>(patch, taps, steps, b, to),
                        (true, false) => correlated_tile::<V, ROWS, 1>(patch, taps, steps, b, to),
                        (false, true) => correlated_tile::<V, FEW, 2>(patch, taps, steps, b, to),
                        (false, false) => correlated_tile::<V, FEW, 1>(patch, taps, steps, b, to),
                    }
                }
            }
        }
    }
}

#[cfg_attr(not(target_family = "wasm"), inline(always))]
#[cfg_attr(target_family = "wasm", inline(never))] // as in a matrix product
unsafe fn correlated_tile<V: Vector, const ROWS: usize, const VECTORS: usize>(
    patch: &[V::Element],
    taps: &[usize],
    steps: &[usize],
    b: *const V::Element,
    to: To<V::Element>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut a = [patch.as_ptr(); ROWS];
        for (i, a) in a.iter_mut().enumerate() {
            *a = patch.as_ptr().add(taps[i.min(taps.len() - 1)]);
        }
        let zero = V::splat(V::Element::zeroed());
        let mut sums = [[zero; VECTORS]; ROWS];
        for (p, step) in steps.iter().enumerate() {
            let mut b_row = [zero; VECTORS];
            for (v, vector) in b_row.iter_mut().enumerate() {
                *vector = V::load(b.add((p * 2 + v) * V::LANES));
            }
            for (row, a) in sums.iter_mut().zip(a) {
                let factor = V::splat(*a.add(*step));
                for (sum, vector) in row.iter_mut().zip(b_row) {
                    *sum = factor.mul_add(vector, *sum);
                }
            }
        }
        put(sums, to);
    }
}

/// The maximum number of bytes that a thread keeps.
const KEPT: usize = 4 << 20;

/// Lends memory for `len` numbers with arbitrary contents.
pub(super) fn with_memory<T: Pod>(len: usize, work: impl FnOnce(&mut [T])) -> Result<()> {
    let mut memory = THREAD.with(|thread| thread.parts.take());
    let bytes = len.saturating_mul(size_of::<T>());
    let lines = bytes.div_ceil(size_of::<CacheLine>());
    if memory.len() < lines {
        memory = try_zeroed_vec(lines).map_err(|()| GpuError::OutOfHostMemory { bytes })?;
    }
    work(&mut bytemuck::cast_slice_mut(&mut memory)[..len]);
    if bytes <= KEPT {
        THREAD.with(|thread| thread.parts.set(memory));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_if_it_is_little_and_refused_if_there_is_none() {
        let lines = || THREAD.with(|thread| thread.parts.take().len());
        with_memory::<f32>(100, |memory| memory.fill(1.0)).unwrap();
        assert_eq!(lines(), 100 * 4 / 64 + 1);
        with_memory::<f32>(KEPT / 4 + 1, |memory| memory.fill(1.0)).unwrap();
        assert_eq!(lines(), 0);
        let refused = with_memory::<f64>(usize::MAX, |_| panic!("there is no such memory"));
        let refused = refused.unwrap_err();
        assert!(matches!(refused.gpu(), Some(GpuError::OutOfHostMemory { bytes: usize::MAX })), "{refused}");
    }
}
