//! A product on one thread. A tile of C is computed from a strip of A, as high as the tile, and a strip of B, as wide
//! as the tile, both [`KC`] long. The order of the loops keeps strips in caches: a strip of B in the L1 cache for 128
//! rows of A, and those rows in the L2 cache for 1024 columns of B.
//!
//! A tile can read a strip of A in any layout, and a strip of B with contiguous rows. A packed copy is faster to read
//! and costs about as much as two uses, so a strip is packed if it is used often, has a bad layout, or is narrow.

use super::KC;
use super::kernel::{Tile, Vector, tile};
use super::pack::{Strip, pack};
use crate::cpu::thread::{CacheLine, THREAD};
use bytemuck::Zeroable;

/// The rows of A and columns of B processed together: 128 KiB and 1 MiB of f32.
const ROWS_TOGETHER: usize = 128;
const COLUMNS_TOGETHER: usize = 1024;

pub(crate) struct Matrix<T> {
    pub start: *const T,
    pub strides: [usize; 2],
}

impl<T> Clone for Matrix<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Matrix<T> {}

impl<T> Matrix<T> {
    /// The rest of the matrix from an element.
    ///
    /// # Safety
    /// The element is in bounds.
    #[inline(always)]
    pub unsafe fn at(self, row: usize, column: usize) -> Self {
        // SAFETY: the caller's promise.
        Matrix { start: unsafe { self.start.add(row * self.strides[0] + column * self.strides[1]) }, ..self }
    }

    #[inline(always)]
    pub fn transposed(self) -> Self {
        Matrix { strides: [self.strides[1], self.strides[0]], ..self }
    }
}

/// The product to compute: C = A·B, or C += A·B to accumulate. Rows of C are contiguous and `c_stride` apart.
pub(crate) struct Product<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: Matrix<T>,
    pub b: Matrix<T>,
    pub c: *mut T,
    pub c_stride: usize,
    pub accumulate: bool,
}

/// Computes `product` in tiles of `ROWS` rows by two vectors, or of `FEW` rows where these are enough.
///
/// # Safety
/// As for [`Vector`]; every element of `product` is in bounds, and nothing else accesses its C.
#[inline(always)]
pub(super) unsafe fn run<V: Vector, const ROWS: usize, const FEW: usize>(product: &Product<V::Element>) {
    let columns = 2 * V::LANES;
    let depth = KC.min(product.k);
    let a_length = product.m.min(ROWS_TOGETHER).next_multiple_of(ROWS) * depth;
    let b_length = product.n.min(COLUMNS_TOGETHER).next_multiple_of(columns) * depth;
    let lines = ((a_length + b_length) * size_of::<V::Element>()).div_ceil(size_of::<CacheLine>());

    // Taken and put back, because a closure would not be compiled for the caller's instruction set.
    let mut memory = THREAD.with(|thread| thread.strips.take());
    if memory.len() < lines {
        memory.resize(lines, CacheLine::zeroed());
    }
    let strips: &mut [V::Element] = bytemuck::cast_slice_mut(&mut memory);
    let (a_strips, b_strips) = strips.split_at_mut(a_length);
    // SAFETY: the caller's promise; the memory holds all strips that are processed together.
    unsafe { tiles::<V, ROWS, FEW>(product, a_strips.as_mut_ptr(), b_strips.as_mut_ptr()) };
    THREAD.with(|thread| thread.strips.set(memory));
}

#[inline(always)]
unsafe fn tiles<V: Vector, const ROWS: usize, const FEW: usize>(
    product: &Product<V::Element>,
    a_strips: *mut V::Element,
    b_strips: *mut V::Element,
) {
    let &Product { m, n, k, a, b, c, c_stride, accumulate } = product;
    let columns = 2 * V::LANES;
    // A strip of A is used once per strip of B, and vice versa.
    let pack_a = n > 16 * columns || (a.strides[1] != 1 && n > 2 * columns);
    let pack_b = m > 2 * ROWS || b.strides[1] != 1;
    // If all rows are processed together, a strip of B is used once, and its memory is reused.
    let keep_b = m > ROWS_TOGETHER;

    for p in (0..k).step_by(KC) {
        let depth = KC.min(k - p);
        let add = accumulate || p > 0;
        for left in (0..n).step_by(COLUMNS_TOGETHER) {
            let right = n.min(left + COLUMNS_TOGETHER);
            for top in (0..m).step_by(ROWS_TOGETHER) {
                let bottom = m.min(top + ROWS_TOGETHER);
                // SAFETY: i, j and p are less than m, n and k, so every strip and tile begins in bounds. It ends in
                // bounds, too, because only full tiles are computed in place, from full strips.
                unsafe {
                    for i in (top..bottom).step_by(ROWS) {
                        let rows = ROWS.min(bottom - i);
                        if pack_a || rows < ROWS {
                            let strip = Strip { lanes: rows, width: ROWS, depth };
                            pack::<V, ROWS>(a.at(i, p), strip, a_strips.add((i - top) * depth));
                        }
                    }
                    for j in (left..right).step_by(columns) {
                        let width = columns.min(right - j);
                        let mut b_strip = b.at(p, j);
                        if pack_b || width < columns {
                            let to = b_strips.add(if keep_b { (j - left) * depth } else { 0 });
                            if top == 0 {
                                let strip = Strip { lanes: width, width: columns, depth };
                                pack::<V, ROWS>(b_strip.transposed(), strip, to);
                            }
                            b_strip = Matrix { start: to, strides: [columns, 1] };
                        }
                        for i in (top..bottom).step_by(ROWS) {
                            let rows = ROWS.min(bottom - i);
                            let mut a_strip = a.at(i, p);
                            if pack_a || rows < ROWS {
                                a_strip =
                                    Matrix { start: a_strips.add((i - top) * depth), strides: [1, ROWS] };
                            }
                            let c = Tile { start: c.add(i * c_stride + j), stride: c_stride, add };
                            if rows == ROWS && width == columns {
                                tile::<V, ROWS, 2>(depth, a_strip, b_strip, c);
                            } else {
                                part_of_tile::<V, ROWS, FEW>(depth, a_strip, b_strip, c, rows, width);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Computes the part of a tile inside C: computes the smallest tile that covers it, in a buffer, and copies the part.
#[inline(always)]
unsafe fn part_of_tile<V: Vector, const ROWS: usize, const FEW: usize>(
    depth: usize,
    a: Matrix<V::Element>,
    b: Matrix<V::Element>,
    c: Tile<V::Element>,
    rows: usize,
    width: usize,
) {
    const WIDEST: usize = 32;
    let mut side = [[V::Element::zeroed(); WIDEST]; ROWS];
    let aside = Tile { start: side.as_mut_ptr().cast(), stride: WIDEST, add: false };
    // SAFETY: no tile is larger than `side`; the rest is the caller's promise.
    unsafe {
        match (rows > FEW, width > V::LANES) {
            (true, true) => tile::<V, ROWS, 2>(depth, a, b, aside),
            (true, false) => tile::<V, ROWS, 1>(depth, a, b, aside),
            (false, true) => tile::<V, FEW, 2>(depth, a, b, aside),
            (false, false) => tile::<V, FEW, 1>(depth, a, b, aside),
        }
        for (i, row) in side[..rows].iter().enumerate() {
            let to = std::slice::from_raw_parts_mut(c.start.add(i * c.stride), width);
            for (to, &sum) in to.iter_mut().zip(row) {
                *to = if c.add { *to + sum } else { sum };
            }
        }
    }
}
