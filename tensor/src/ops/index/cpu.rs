//! Indexing on the host. Indices are checked before anything is written.

use crate::dtype::with_dtype;
use crate::error::{Error, Result};
use crate::ops::elementwise::blocks::elements_mut;
use crate::ops::shape::{dense, reserve};
use crate::storage::access;
use crate::tensor::Tensor;

/// Addition that wraps for integers, as in every other operation.
trait Accumulate: bytemuck::Pod {
    fn accumulate(&mut self, other: Self);
}

macro_rules! accumulate {
    ($($T:ty: $add:expr),*) => {$(
        impl Accumulate for $T {
            fn accumulate(&mut self, other: $T) {
                *self = $add(*self, other);
            }
        }
    )*};
}
accumulate!(
    f32: |a, b| a + b,
    f64: |a, b| a + b,
    i64: i64::wrapping_add,
    i32: i32::wrapping_add,
    u8: u8::wrapping_add
);

/// The indices as positions in a dimension of `size` entries.
fn positions(index: &Tensor, size: usize, error: impl Fn(i64) -> Error) -> Result<Vec<usize>> {
    let position = |index: i64| match usize::try_from(index) {
        Ok(position) if position < size => Ok(position),
        _ => Err(error(index)),
    };
    let indices = index.to_vec::<i64>()?;
    let mut positions = reserve(indices.len())?;
    for index in indices {
        positions.push(position(index)?);
    }
    Ok(positions)
}

/// A tensor seen around one of its dimensions: `outer` blocks of `size` entries of `inner` elements each.
struct Around {
    size: usize,
    inner: usize,
}

impl Around {
    fn new(sizes: &[usize], dim: usize) -> Around {
        Around { size: sizes[dim], inner: sizes[dim + 1..].iter().product() }
    }
}

pub(super) fn index_select(x: &Tensor, dim: usize, index: &Tensor, out: &Tensor) -> Result<()> {
    let x = dense(x)?;
    let around = Around::new(x.sizes(), dim);
    let out_of_range = |index| Error::IndexOutOfRange { index, size: around.size };
    let positions = positions(index, around.size, out_of_range)?;
    with_dtype!(x.dtype(), T => access([&x], [out], |[input], [bytes]| {
        let (values, x) = input.expect("the result is fresh memory");
        let values = &bytemuck::cast_slice::<u8, T>(values)[x.storage_offset()..];
        let rows = elements_mut::<T>(bytes, out).chunks_mut(around.inner.max(1));
        for (i, row) in rows.enumerate() {
            let (outer, chosen) = (i / positions.len(), positions[i % positions.len()]);
            let start = (outer * around.size + chosen) * around.inner;
            row.copy_from_slice(&values[start..start + around.inner]);
        }
    }))
}

pub(super) fn index_add(target: &Tensor, dim: usize, index: &Tensor, source: &Tensor) -> Result<()> {
    let source = dense(source)?;
    let around = Around::new(target.sizes(), dim);
    let out_of_range = |index| Error::IndexOutOfRange { index, size: around.size };
    let positions = positions(index, around.size, out_of_range)?;
    with_dtype!(target.dtype(), T => access([&source], [target], |[input], [bytes]| {
        let (values, source) = input.expect("the source is another tensor");
        let start = source.storage_offset();
        let values = &bytemuck::cast_slice::<u8, T>(values)[start..start + source.numel()];
        let target = elements_mut::<T>(bytes, target);
        for (i, row) in values.chunks(around.inner.max(1)).enumerate() {
            let (outer, chosen) = (i / positions.len(), positions[i % positions.len()]);
            let start = (outer * around.size + chosen) * around.inner;
            for (target, value) in target[start..start + around.inner].iter_mut().zip(row) {
                target.accumulate(*value);
            }
        }
    }))
}

/// Calls `visit(position in x, position in index)` for every element of `index`: the first has the
/// coordinates of the second, but for dimension `dim`, where it has the index itself.
fn visit_gathered(
    x_sizes: &[usize],
    index_sizes: &[usize],
    dim: usize,
    positions: &[usize],
    mut visit: impl FnMut(usize, usize),
) {
    let mut coordinates = vec![0; index_sizes.len()];
    for (i, chosen) in positions.iter().enumerate() {
        let mut rest = i;
        for (coordinate, size) in coordinates.iter_mut().zip(index_sizes).rev() {
            *coordinate = rest % size;
            rest /= size;
        }
        coordinates[dim] = *chosen;
        visit(x_sizes.iter().zip(&coordinates).fold(0, |at, (size, c)| at * size + c), i);
    }
}

pub(super) fn gather(x: &Tensor, dim: usize, index: &Tensor, out: &Tensor) -> Result<()> {
    let x = dense(x)?;
    let size = x.sizes()[dim];
    let positions = positions(index, size, |index| Error::IndexOutOfBounds { index, dim, size })?;
    with_dtype!(x.dtype(), T => access([&x], [out], |[input], [bytes]| {
        let (values, x) = input.expect("the result is fresh memory");
        let values = &bytemuck::cast_slice::<u8, T>(values)[x.storage_offset()..];
        let out_values = elements_mut::<T>(bytes, out);
        visit_gathered(x.sizes(), index.sizes(), dim, &positions, |from, to| out_values[to] = values[from]);
    }))
}

pub(super) fn scatter_add(target: &Tensor, dim: usize, index: &Tensor, source: &Tensor) -> Result<()> {
    let source = dense(source)?;
    let size = target.sizes()[dim];
    let positions = positions(index, size, |index| Error::IndexOutOfBounds { index, dim, size })?;
    with_dtype!(target.dtype(), T => access([&source], [target], |[input], [bytes]| {
        let (values, source) = input.expect("the source is another tensor");
        let values = &bytemuck::cast_slice::<u8, T>(values)[source.storage_offset()..];
        let sizes = target.sizes();
        let target = elements_mut::<T>(bytes, target);
        visit_gathered(sizes, index.sizes(), dim, &positions, |to, from| target[to].accumulate(values[from]));
    }))
}
