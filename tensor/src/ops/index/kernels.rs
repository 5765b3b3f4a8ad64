//! The indexing kernels, which check every index before any write. On a device, a bad index fails an assertion.

use super::error::IndexError;
use crate::cpu::number::Number;
use crate::cpu::reserve::reserve;
use crate::dtype::Memory;
use crate::error::Result;
use crate::kernel::{Args, TwinResult};
use crate::ops::launch::launch;
use crate::ops::plain::{contiguous, reshaped};
use crate::ops::row::{Row, row, rows};
use crate::tensor::Tensor;

/// Adds to a sum. Integers wrap around. A sum of half types is rounded after each addition, because it is stored.
fn accumulate<T: Memory<Math: Number>>(sum: &mut T, value: T) {
    *sum = T::narrow(sum.widen().plus(value.widen()));
}

fn positions(indices: &[i64], size: usize, error: impl Fn(i64) -> IndexError) -> Result<Vec<usize>> {
    let mut positions = reserve(indices.len())?;
    for index in indices {
        match usize::try_from(*index) {
            Ok(position) if position < size => positions.push(position),
            _ => return Err(error(*index).into()),
        }
    }
    Ok(positions)
}

/// Makes the tensor contiguous. A 0-dim tensor becomes a vector.
fn indexed(x: &Tensor) -> Result<Tensor> {
    if x.ndim() == 0 { Ok(reshaped(x, &[1])) } else { contiguous(x) }
}

/// A tensor split at a dimension: `outer` blocks of `size` entries of `inner` elements.
struct DimSplit {
    size: usize,
    inner: usize,
}

impl DimSplit {
    fn new(sizes: &[usize], dim: usize) -> DimSplit {
        DimSplit { size: sizes[dim], inner: sizes[dim + 1..].iter().product() }
    }
}

rows! {
    pub(super) static REMAINDER: Row = row! {
        name: "remainder", types: [i64], cost: Cheap,
        element: |index: T, size: T| -> T { index.rem_euclid(size) },
    };
    // Inputs, indices, output, and the dimension of the selection.
    static INDEX_SELECT: Row = row! {
        name: "index_select", types: each, geometry: Indexed, cost: Cheap,
        parameters: [In(T), In(i64), Out(T), Int],
        twin: index_select_twin::<T>,
    };
    static INDEX_ADD: Row = row! {
        name: "index_add", types: each, geometry: Indexed, cost: Cheap,
        parameters: [In(T), In(i64), Out(T), Int],
        twin: index_add_twin::<T>,
    };
    static GATHER: Row = row! {
        name: "gather", types: each, geometry: Indexed, cost: Cheap,
        parameters: [In(T), In(i64), Out(T), Int],
        twin: gather_twin::<T>,
    };
    static SCATTER_ADD: Row = row! {
        name: "scatter_add", types: each, geometry: Indexed, cost: Cheap,
        parameters: [In(T), In(i64), Out(T), Int],
        twin: scatter_add_twin::<T>,
    };
}

pub(super) fn index_select(x: &Tensor, dim: usize, index: &Tensor, out: &Tensor) -> Result<()> {
    launch(INDEX_SELECT.of(x.dtype())?, [&indexed(x)?, &contiguous(index)?], [out], &[dim as i64], &[])
}

fn index_select_twin<T: bytemuck::Pod>(args: Args<'_, '_>) -> TwinResult {
    let (x, index) = (&args.inputs[0], &args.inputs[1]);
    let (sizes, dim) = (x.layout.sizes(), args.ints[0] as usize);
    let around = DimSplit::new(sizes, dim);
    // PyTorch has another function, with other messages, for dimension 1 and for empty tensors.
    let out_of_range = |index| match dim == 1 || (sizes.len() > 1 && x.layout.numel() == 0) {
        true => IndexError::OutOfData { index, size: around.size },
        false => IndexError::OutOfRange { index, size: around.size },
    };
    let positions = positions(index.elements(), around.size, out_of_range)?;
    let values: &[T] = x.elements();
    for (i, row) in args.outputs[0].elements::<T>().chunks_mut(around.inner.max(1)).enumerate() {
        let (outer, chosen) = (i / positions.len(), positions[i % positions.len()]);
        let start = (outer * around.size + chosen) * around.inner;
        row.copy_from_slice(&values[start..start + around.inner]);
    }
    Ok(())
}

pub(super) fn index_add(target: &Tensor, dim: usize, index: &Tensor, source: &Tensor) -> Result<()> {
    let target = &indexed(target)?;
    launch(
        INDEX_ADD.of(target.dtype())?,
        [&contiguous(source)?, &contiguous(index)?],
        [target],
        &[dim as i64],
        &[],
    )
}

fn index_add_twin<T: Memory<Math: Number>>(args: Args<'_, '_>) -> TwinResult {
    let (source, index, target) = (&args.inputs[0], &args.inputs[1], &mut args.outputs[0]);
    let around = DimSplit::new(target.layout.sizes(), args.ints[0] as usize);
    let out_of_range = |index| IndexError::OutOfRange { index, size: around.size };
    let positions = positions(index.elements(), around.size, out_of_range)?;
    let target: &mut [T] = target.elements();
    for (i, row) in source.elements::<T>().chunks(around.inner.max(1)).enumerate() {
        let (outer, chosen) = (i / positions.len(), positions[i % positions.len()]);
        let start = (outer * around.size + chosen) * around.inner;
        for (target, value) in target[start..start + around.inner].iter_mut().zip(row) {
            accumulate(target, *value);
        }
    }
    Ok(())
}

/// Calls `visit(position in x, position in index)` for every element of `index`. Both positions have the same
/// coordinates, except in dimension `dim`, where x's coordinate is the index.
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

pub(crate) fn gather(x: &Tensor, dim: usize, index: &Tensor, out: &Tensor) -> Result<()> {
    launch(GATHER.of(x.dtype())?, [&indexed(x)?, &indexed(index)?], [out], &[dim as i64], &[])
}

fn gather_twin<T: bytemuck::Pod>(args: Args<'_, '_>) -> TwinResult {
    let (x, index) = (&args.inputs[0], &args.inputs[1]);
    let dim = args.ints[0] as usize;
    let size = x.layout.sizes()[dim];
    let out_of_bounds = |index| IndexError::ElementOutOfBounds { index, dim, size };
    let positions = positions(index.elements(), size, out_of_bounds)?;
    let (values, out) = (x.elements::<T>(), args.outputs[0].elements::<T>());
    let (x_sizes, index_sizes) = (x.layout.sizes(), index.layout.sizes());
    visit_gathered(x_sizes, index_sizes, dim, &positions, |from, to| out[to] = values[from]);
    Ok(())
}

pub(super) fn scatter_add(target: &Tensor, dim: usize, index: &Tensor, source: &Tensor) -> Result<()> {
    let (target, index) = (&indexed(target)?, &indexed(index)?);
    launch(SCATTER_ADD.of(target.dtype())?, [&contiguous(source)?, index], [target], &[dim as i64], &[])
}

fn scatter_add_twin<T: Memory<Math: Number>>(args: Args<'_, '_>) -> TwinResult {
    let (source, index, target) = (&args.inputs[0], &args.inputs[1], &mut args.outputs[0]);
    let dim = args.ints[0] as usize;
    let sizes = target.layout.sizes();
    let size = sizes[dim];
    let out_of_bounds = |index| IndexError::ElementOutOfBounds { index, dim, size };
    let positions = positions(index.elements(), size, out_of_bounds)?;
    let (values, target) = (source.elements::<T>(), target.elements::<T>());
    visit_gathered(sizes, index.layout.sizes(), dim, &positions, |to, from| {
        accumulate(&mut target[to], values[from]);
    });
    Ok(())
}
