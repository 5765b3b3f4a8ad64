//! A product on one thread: which part of A and B is used when, and from where.
//!
//! Three loops around the tile. Outermost, `k` in runs of [`KC`]; within it the rows of A in blocks that
//! fit the second-level cache; within that the columns of B in panels as wide as a tile, which fit the
//! first-level cache; innermost, the tiles of C where that block and that panel meet.
//!
//! An operand is read where it lies if a tile can do so quickly, and copied ("packed") otherwise, so that
//! what a tile reads step by step lies side by side. A copy costs about as much as using the operand once
//! or twice, so it is made only if each part is used more often.

use super::kernel::{Vector, tile};
use super::{GemmElement, KC};
use bytemuck::{Pod, Zeroable};
use std::cell::RefCell;

/// Rows in a block of A: 256 KiB of f32, a quarter of the second-level cache of a small processor.
const BLOCK_ROWS: usize = 1024;

/// What to compute: C = A·B or C += A·B, by address. `c` is row-major with `c_stride` from row to row.
pub(crate) struct Product<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: *const T,
    pub a_strides: [usize; 2],
    pub b: *const T,
    pub b_strides: [usize; 2],
    pub c: *mut T,
    pub c_stride: usize,
    pub accumulate: bool,
}

/// Memory for packed operands, kept from call to call; one cache line is the unit, so it starts on one.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct CacheLine([u8; 64]);

thread_local! {
    static PACKED: RefCell<Vec<CacheLine>> = const { RefCell::new(Vec::new()) };
}

/// Computes `product` in tiles of `ROWS` rows by two vectors; `FEW` is the height of the lower tile used
/// where at most that many rows are left over.
///
/// # Safety
/// As for [`Vector`]; every element that `product` names is in bounds and no other thread touches its `c`.
#[inline(always)]
pub(super) unsafe fn run<V: Vector, const ROWS: usize, const FEW: usize>(product: &Product<V::Element>) {
    let columns = 2 * V::LANES;
    let depth = KC.min(product.k);
    let block_rows = BLOCK_ROWS.min(product.m).next_multiple_of(ROWS);
    let bytes = (block_rows + columns) * depth * size_of::<V::Element>();
    // Taken rather than borrowed in a closure: code in a closure is not compiled for the caller's vectors.
    let mut lines = PACKED.take();
    if lines.len() * size_of::<CacheLine>() < bytes {
        lines.resize(bytes.div_ceil(size_of::<CacheLine>()), CacheLine::zeroed());
    }
    let packed: &mut [V::Element] = bytemuck::cast_slice_mut(&mut lines);
    let (packed_b, packed_a) = packed.split_at_mut(columns * depth);
    // SAFETY: the caller's promise.
    unsafe { blocks::<V, ROWS, FEW>(product, packed_a.as_mut_ptr(), packed_b.as_mut_ptr()) }
    PACKED.set(lines);
}

/// The loops of [`run`], with room for a packed block of A and a packed panel of B.
#[inline(always)]
unsafe fn blocks<V: Vector, const ROWS: usize, const FEW: usize>(
    product: &Product<V::Element>,
    packed_a: *mut V::Element,
    packed_b: *mut V::Element,
) {
    let &Product { m, n, k, a, a_strides, b, b_strides, c, c_stride, accumulate } = product;
    let columns = 2 * V::LANES;
    let pack_a = n > 512 || a_strides[1] != 1 && n > 2 * columns;
    let pack_b = b_strides[1] != 1 || m > 2 * ROWS;
    // SAFETY: all offsets below stay within m, n and k, so the pointers stay within what the caller vouches
    // for; what is packed has room for a whole panel even where fewer rows or columns are left.
    unsafe {
        for p in (0..k).step_by(KC) {
            let depth = KC.min(k - p);
            let add = accumulate || p > 0;
            for block in (0..m).step_by(BLOCK_ROWS) {
                let block_end = m.min(block + BLOCK_ROWS);
                for i in (block..block_end).step_by(ROWS) {
                    let rows = ROWS.min(block_end - i);
                    if pack_a || rows < ROWS {
                        let from = a.add(i * a_strides[0] + p * a_strides[1]);
                        let to = packed_a.add((i - block) * depth);
                        pack::<V, ROWS>(from, a_strides, rows, depth, to, ROWS);
                    }
                }
                for j in (0..n).step_by(columns) {
                    let width = columns.min(n - j);
                    let mut b_panel = b.add(p * b_strides[0] + j * b_strides[1]);
                    let mut b_stride = b_strides[0];
                    if pack_b || width < columns {
                        pack::<V, ROWS>(
                            b_panel,
                            [b_strides[1], b_strides[0]],
                            width,
                            depth,
                            packed_b,
                            columns,
                        );
                        b_panel = packed_b;
                        b_stride = columns;
                    }
                    for i in (block..block_end).step_by(ROWS) {
                        let rows = ROWS.min(block_end - i);
                        let (a_panel, a_strides) = if pack_a || rows < ROWS {
                            (packed_a.add((i - block) * depth).cast_const(), [1, ROWS])
                        } else {
                            (a.add(i * a_strides[0] + p * a_strides[1]), a_strides)
                        };
                        let c_tile = c.add(i * c_stride + j);
                        if rows == ROWS && width == columns {
                            tile::<V, ROWS, 2>(
                                depth, a_panel, a_strides, b_panel, b_stride, c_tile, c_stride, add,
                            );
                        } else {
                            part_of_tile::<V, ROWS, FEW>(
                                depth, a_panel, a_strides, b_panel, b_stride, c_tile, c_stride, add, rows,
                                width,
                            );
                        }
                    }
                }
            }
        }
    }
}

/// At the edges of C: computes the smallest tile that holds `rows`×`width` on the side and copies that much.
#[inline(always)]
unsafe fn part_of_tile<V: Vector, const ROWS: usize, const FEW: usize>(
    k: usize,
    a: *const V::Element,
    a_strides: [usize; 2],
    b: *const V::Element,
    b_stride: usize,
    c: *mut V::Element,
    c_stride: usize,
    add: bool,
    rows: usize,
    width: usize,
) {
    // SAFETY: the caller's promise; the side tile has room for the largest tile there is.
    unsafe {
        let zero: V::Element = Zeroable::zeroed();
        let mut side = [[zero; 32]; ROWS];
        let s = side.as_mut_ptr().cast::<V::Element>();
        match (rows > FEW, width > V::LANES) {
            (true, true) => tile::<V, ROWS, 2>(k, a, a_strides, b, b_stride, s, 32, false),
            (true, false) => tile::<V, ROWS, 1>(k, a, a_strides, b, b_stride, s, 32, false),
            (false, true) => tile::<V, FEW, 2>(k, a, a_strides, b, b_stride, s, 32, false),
            (false, false) => tile::<V, FEW, 1>(k, a, a_strides, b, b_stride, s, 32, false),
        }
        for i in 0..rows {
            let to = std::slice::from_raw_parts_mut(c.add(i * c_stride), width);
            for (to, &from) in to.iter_mut().zip(&side[i]) {
                *to = if add { *to + from } else { from };
            }
        }
    }
}

/// Copies a panel, `lanes` wide and `k` long, so that the lanes of one step lie side by side and each step
/// is `width` from the last. The lanes beyond `lanes` are left as they are: what a tile computes from them
/// is not looked at. Strides: from lane to lane, from step to step.
#[inline(always)]
unsafe fn pack<V: Vector, const ROWS: usize>(
    from: *const V::Element,
    strides: [usize; 2],
    lanes: usize,
    k: usize,
    to: *mut V::Element,
    width: usize,
) {
    let [lane_stride, step] = strides;
    // SAFETY: offsets stay within `lanes` and `k`, for which the caller vouches.
    unsafe {
        if step == 1 {
            let (square_lanes, square_k) = (lanes - lanes % V::SQUARE, k - k % V::SQUARE);
            for lane in (0..square_lanes).step_by(V::SQUARE) {
                for p in (0..square_k).step_by(V::SQUARE) {
                    V::transpose(
                        from.add(lane * lane_stride + p),
                        lane_stride,
                        to.add(p * width + lane),
                        width,
                    );
                }
            }
            copy(from, strides, 0..square_lanes, square_k..k, to, width);
            copy(from, strides, square_lanes..lanes, 0..k, to, width);
        } else if lane_stride == 1 && lanes == 2 * V::LANES {
            for p in 0..k {
                V::load(from.add(p * step)).store(to.add(p * width));
                V::load(from.add(p * step + V::LANES)).store(to.add(p * width + V::LANES));
            }
        } else if lane_stride == 1 && lanes == ROWS {
            for p in 0..k {
                let column = from.add(p * step).cast::<[V::Element; ROWS]>();
                to.add(p * width).cast::<[V::Element; ROWS]>().write_unaligned(column.read_unaligned());
            }
        } else {
            copy(from, strides, 0..lanes, 0..k, to, width);
        }
    }
}

/// [`pack`], element by element.
#[inline(always)]
unsafe fn copy<T: GemmElement>(
    from: *const T,
    strides: [usize; 2],
    lanes: std::ops::Range<usize>,
    steps: std::ops::Range<usize>,
    to: *mut T,
    width: usize,
) {
    for p in steps {
        for lane in lanes.clone() {
            // SAFETY: the caller vouches for these lanes and steps.
            unsafe { *to.add(p * width + lane) = *from.add(lane * strides[0] + p * strides[1]) };
        }
    }
}
