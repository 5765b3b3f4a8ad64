//! Packing: copies a strip of A or B so that each step of a tile reads contiguous memory. A strip has *lanes*, rows of
//! A or columns of B, and each step over `k` takes one number from every lane.

use super::block::Matrix;
use super::kernel::{Vector, prefetch};

/// The dimensions of a strip: `lanes` by `depth` numbers, with steps `width` apart in the copy.
#[derive(Clone, Copy)]
pub(crate) struct Strip {
    pub lanes: usize,
    pub width: usize,
    pub depth: usize,
}

/// Copies a strip whose lanes are the rows of `from`. Missing lanes keep old values; their results are ignored.
///
/// # Safety
/// As for [`Vector`]; `from` is valid for `lanes` by `depth`, and `to` for `depth` times `width`.
#[inline(always)]
pub(crate) unsafe fn pack<V: Vector, const ROWS: usize>(
    from: Matrix<V::Element>,
    strip: Strip,
    to: *mut V::Element,
) {
    let Strip { lanes, width, depth } = strip;
    let [lane_stride, step] = from.strides;
    // SAFETY: all offsets are less than `lanes` and `depth`.
    unsafe {
        if step == 1 {
            // Lanes are contiguous, so this is a transpose: squares in registers first, then the rest.
            let (whole_lanes, whole_depth) = (lanes - lanes % V::SQUARE, depth - depth % V::SQUARE);
            for lane in (0..whole_lanes).step_by(V::SQUARE) {
                for p in (0..whole_depth).step_by(V::SQUARE) {
                    V::transpose(from.at(lane, p).start, lane_stride, to.add(p * width + lane), width);
                }
            }
            let first = if whole_lanes == lanes { whole_depth } else { 0 };
            for p in first..depth {
                let done = if p < whole_depth { whole_lanes } else { 0 };
                for lane in done..lanes {
                    *to.add(p * width + lane) = *from.at(lane, p).start;
                }
            }
        } else if lane_stride == 1 && lanes == 2 * V::LANES {
            // Steps are contiguous, as in a row-major B. The hardware does not prefetch the next strip's lines.
            for p in 0..depth {
                let (from, to) = (from.start.add(p * step), to.add(p * width));
                V::load(from).store(to);
                V::load(from.add(V::LANES)).store(to.add(V::LANES));
                prefetch(from.wrapping_add(2 * V::LANES));
            }
        } else if lane_stride == 1 && lanes == ROWS {
            // Likewise for a transposed A.
            for p in 0..depth {
                let column = from.start.add(p * step).cast::<[V::Element; ROWS]>();
                to.add(p * width).cast::<[V::Element; ROWS]>().write_unaligned(column.read_unaligned());
            }
        } else {
            for p in 0..depth {
                for lane in 0..lanes {
                    *to.add(p * width + lane) = *from.at(lane, p).start;
                }
            }
        }
    }
}
