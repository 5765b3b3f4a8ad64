//! Copies of transposed matrices, in tiles: a walk along rows would fetch a cache line per element.

use bytemuck::Pod;

use crate::cpu::parallel::for_pieces;
use crate::cpu::pool::threads_for;
use crate::kernel::{Args, Cost};
use crate::shape::Layout;

/// The side of a tile in elements: a cache line of f32s.
const SIDE: usize = 16;

/// A matrix, or a batch of matrices, with contiguous columns.
struct OnItsSide {
    step: usize,
    rows: usize,
    columns: usize,
    stride: usize,
}

impl OnItsSide {
    /// The matrices of a layout, if both sides are long enough to matter.
    fn of(layout: &Layout) -> Option<OnItsSide> {
        let (ndim, sizes, strides) = layout.merged_dims();
        let (step, [rows, columns], [across, stride]) = match ndim {
            2 => (0, [sizes[0], sizes[1]], [strides[0], strides[1]]),
            3 => (strides[0], [sizes[1], sizes[2]], [strides[1], strides[2]]),
            _ => return None,
        };
        let pays = across == 1 && stride > 1 && rows >= SIDE && columns >= SIDE;
        pays.then_some(OnItsSide { step, rows, columns, stride })
    }
}

/// Copies the input to the output if it is such a matrix. Returns whether it did.
pub(crate) fn copied<T: Pod + Send + Sync>(args: &mut Args<'_, '_>) -> bool {
    let (input, output) = (&args.inputs[0], &mut args.outputs[0]);
    let is_alike = input.layout.sizes() == output.layout.sizes() && output.layout.is_contiguous();
    let matrix = input.bytes.filter(|_| is_alike).zip(OnItsSide::of(input.layout));
    let Some((bytes, OnItsSide { step, rows, columns, stride })) = matrix else { return false };
    let values: &[T] = &bytemuck::cast_slice(bytes)[input.layout.offset..];
    let out = output.elements::<T>();
    let threads = threads_for(out.len(), Cost::Cheap.smallest_parallel());
    for (i, out) in out.chunks_mut(rows * columns).enumerate() {
        let values = &values[i * step..];
        for_pieces(threads, out, SIDE * columns, &|i, out| stripe(&values[i * SIDE..], stride, columns, out));
    }
    true
}

fn stripe<T: Pod>(values: &[T], stride: usize, columns: usize, out: &mut [T]) {
    let rows = out.len() / columns;
    let mut tile = [[T::zeroed(); SIDE]; SIDE];
    for first in (0..columns).step_by(SIDE) {
        let width = SIDE.min(columns - first);
        for column in 0..width {
            let line = &values[(first + column) * stride..][..rows];
            for (row, value) in line.iter().enumerate() {
                tile[row][column] = *value;
            }
        }
        for (out, tile) in out.chunks_mut(columns).zip(&tile) {
            out[first..first + width].copy_from_slice(&tile[..width]);
        }
    }
}
