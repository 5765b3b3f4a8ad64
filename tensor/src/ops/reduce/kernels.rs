//! The kernels of reductions, in the order of [`tree`](crate::cpu::tree). They treat a tensor as a matrix: `rows`
//! results of `length` elements each. Adjacent in memory are either the elements of one result (rows) or those of
//! neighbouring results (columns). Each case has a loop along memory.

use bytemuck::Pod;

use crate::cpu::blocks::Runs;
use crate::cpu::number::Number;
use crate::cpu::parallel::for_pieces;
use crate::cpu::pool::threads_for;
use crate::cpu::reserve::reserve;
use crate::cpu::simd::vectorized;
use crate::cpu::tree::{self, CHUNK, LANES};
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernel::{Args, TwinResult};
use crate::ops::elementwise::cast;
use crate::ops::launch::launch;
use crate::ops::row::{Row, row, rows};
use crate::shape::Layout;
use crate::tensor::Tensor;

/// A type, and the operation that combines its values.
pub(super) trait Monoid: Send + Sync + 'static {
    type Value: Pod + Element;
    const IDENTITY: Self::Value;
    fn combine(a: Self::Value, b: Self::Value) -> Self::Value;
}

pub(super) struct Sum<T>(std::marker::PhantomData<T>);
pub(super) struct Largest<T>(std::marker::PhantomData<T>);
pub(super) struct Smallest<T>(std::marker::PhantomData<T>);

impl<T: Identities> Monoid for Sum<T> {
    type Value = T;
    const IDENTITY: T = T::ZERO;
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.plus(b)
    }
}

impl<T: Identities> Monoid for Largest<T> {
    type Value = T;
    const IDENTITY: T = T::LOWEST;
    #[inline(always)]
    #[allow(clippy::eq_op)] // A NaN, once found, stays.
    fn combine(a: T, b: T) -> T {
        if b > a || b != b { b } else { a }
    }
}

impl<T: Identities> Monoid for Smallest<T> {
    type Value = T;
    const IDENTITY: T = T::HIGHEST;
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn combine(a: T, b: T) -> T {
        if b < a || b != b { b } else { a }
    }
}

/// The identities of the three reductions.
pub(super) trait Identities: Number + PartialOrd + Pod + Element {
    const ZERO: Self;
    const LOWEST: Self;
    const HIGHEST: Self;
}

/// `f32: 0.0, f32::NEG_INFINITY, f32::INFINITY;` lists zero, the lowest and the highest value.
macro_rules! impl_identities {
    ($($T:ty: $zero:literal, $lowest:expr, $highest:expr;)*) => {$(
        impl Identities for $T {
            const ZERO: $T = $zero;
            const LOWEST: $T = $lowest;
            const HIGHEST: $T = $highest;
        }
    )*};
}
impl_identities! {
    f32: 0.0, f32::NEG_INFINITY, f32::INFINITY;
    f64: 0.0, f64::NEG_INFINITY, f64::INFINITY;
    i64: 0, i64::MIN, i64::MAX;
    i32: 0, i32::MIN, i32::MAX;
    u8: 0, u8::MIN, u8::MAX;
}

/// The approximate number of elements that justify a second thread.
const SMALLEST_PARALLEL: usize = 1 << 18;

/// Views a tensor as one row per result, and returns the length of a row. The view is a matrix if the strides allow,
/// else it has the kept dimensions first and the reduced ones last.
fn rows(x: &Tensor, reduced: &[bool]) -> Result<(Tensor, usize)> {
    let (kept, gone): (Vec<usize>, Vec<usize>) = (0..x.ndim()).partition(|dim| !reduced[*dim]);
    let [results, length] = [&kept, &gone].map(|dims| dims.iter().map(|dim| x.sizes()[*dim]).product());
    let dims: Vec<usize> = kept.into_iter().chain(gone).collect();
    let rows = x.layout().permute(&dims);
    Ok((x.with_layout(rows.view(&[results, length])?.unwrap_or(rows)), length))
}

/// If rows are the columns of a matrix, returns the step between the elements of a result.
fn columns(rows: &Layout, length: usize) -> Option<usize> {
    match (rows.sizes(), rows.strides()) {
        (&[columns, rows], &[1, step]) if columns > 1 && rows == length && step >= columns => Some(step),
        _ => None,
    }
}

/// The same for a batch of matrices: the step between matrices, their columns, and the step within a column.
fn matrices(rows: &Layout, length: usize) -> Option<[usize; 3]> {
    match (rows.sizes(), rows.strides()) {
        (&[_, columns, rows], &[from_each_to_next, 1, step])
            if columns > 1 && rows == length && step >= columns =>
        {
            Some([from_each_to_next, columns, step])
        }
        _ => None,
    }
}

/// The kernels of a reduction: for whole rows, and for their chunks, whose results are not rounded to half types.
pub(super) struct ReductionKernels {
    rows: &'static Row,
    chunks: &'static Row,
}

pub(super) const SUM: ReductionKernels = ReductionKernels { rows: &SUM_OF_ROWS, chunks: &SUM_OF_CHUNKS };
pub(super) const AMAX: ReductionKernels = ReductionKernels { rows: &AMAX_OF_ROWS, chunks: &AMAX_OF_CHUNKS };
pub(super) const AMIN: ReductionKernels = ReductionKernels { rows: &AMIN_OF_ROWS, chunks: &AMIN_OF_CHUNKS };

rows! {
    // The integer is the length of a row. Integers below i64 are summed as i64.
    static SUM_OF_ROWS: Row = row! {
        name: "sum", types: sums, geometry: Rows, cost: Cheap,
        parameters: [In(T), Out(T), Int],
        twin: reduce_twin::<Sum<T>>,
    };
    static SUM_OF_CHUNKS: Row = row! {
        name: "sum_chunks", types: sums, geometry: Warps, cost: Cheap,
        parameters: [In(T), Out(C), Int],
        twin: chunks_twin::<Sum<T>>,
    };
    static AMAX_OF_ROWS: Row = row! {
        name: "amax", types: numbers, geometry: Rows, cost: Cheap,
        parameters: [In(T), Out(T), Int],
        twin: reduce_twin::<Largest<T>>,
    };
    static AMAX_OF_CHUNKS: Row = row! {
        name: "amax_chunks", types: numbers, geometry: Warps, cost: Cheap,
        parameters: [In(T), Out(C), Int],
        twin: chunks_twin::<Largest<T>>,
    };
    static AMIN_OF_ROWS: Row = row! {
        name: "amin", types: numbers, geometry: Rows, cost: Cheap,
        parameters: [In(T), Out(T), Int],
        twin: reduce_twin::<Smallest<T>>,
    };
    static AMIN_OF_CHUNKS: Row = row! {
        name: "amin_chunks", types: numbers, geometry: Warps, cost: Cheap,
        parameters: [In(T), Out(C), Int],
        twin: chunks_twin::<Smallest<T>>,
    };
    static ARGMAX: Row = row! {
        name: "argmax", types: numbers, geometry: Rows, cost: Cheap,
        parameters: [In(T), Out(i64), Int],
        twin: |args| positions::<T>(args, true),
    };
    static ARGMIN: Row = row! {
        name: "argmin", types: numbers, geometry: Rows, cost: Cheap,
        parameters: [In(T), Out(i64), Int],
        twin: |args| positions::<T>(args, false),
    };
}

/// Reduces the flagged dimensions of `x` into `out`, which has the kept dimensions in order.
pub(super) fn reduce(reduction: ReductionKernels, x: &Tensor, reduced: &[bool], out: &Tensor) -> Result<()> {
    let ReductionKernels { rows: rows_at_once, chunks: of_chunks } = reduction;
    let (rows, length) = rows(x, reduced)?;
    let chunks = length.div_ceil(CHUNK);
    let many_chunks =
        if columns(rows.layout(), length).is_some() { MANY_CHUNKS_OF_COLUMNS } else { MANY_CHUNKS };
    if !out.is_cuda() || chunks < many_chunks || out.numel() >= MANY_ROWS {
        return launch(rows_at_once.of(x.dtype())?, [&rows], [out], &[length as i64], &[]);
    }
    // With few but long rows, one block per row would leave most of the device idle. So the chunks are reduced first,
    // then their results. The order is the tree's in both cases.
    let calculated = if out.dtype().is_half() { DType::F32 } else { out.dtype() };
    let partials = out.uninit_beside(&[out.numel(), chunks], calculated)?;
    launch(of_chunks.of(x.dtype())?, [&rows], [&partials], &[length as i64], &[])?;
    let whole = if out.dtype().is_half() { out.uninit_beside(out.sizes(), calculated)? } else { out.clone() };
    launch(rows_at_once.of(calculated)?, [&partials], [&whole], &[chunks as i64], &[])?;
    if out.is_same(&whole) {
        Ok(())
    } else {
        launch(cast(whole.dtype(), out.dtype())?, [&whole], [out], &[], &[])
    }
}

/// The least chunks per row and the most rows for a two-step reduction on a device. A block reduces 8 chunks of a row
/// at once, one per warp. For columns, its warps share a chunk of 32 columns.
const MANY_CHUNKS: usize = 8;
const MANY_CHUNKS_OF_COLUMNS: usize = 2;
const MANY_ROWS: usize = 1024;

fn reduce_twin<R: Monoid>(args: Args<'_, '_>) -> TwinResult {
    let (x, out) = (&args.inputs[0], &mut args.outputs[0]);
    let length = args.ints[0] as usize;
    let (values, out) = (x.values::<R::Value>(), out.elements::<R::Value>());
    if length == 0 {
        out.fill(R::IDENTITY);
        return Ok(());
    }
    match (columns(x.layout, length), matrices(x.layout, length)) {
        (Some(step), _) => reduce_columns::<R>(&values[x.layout.offset..], step, length, out),
        (None, Some([from_each_to_next, columns, step])) => {
            let values = &values[x.layout.offset..];
            let reduce = |i: usize, out: &mut [R::Value]| {
                columns_of_tiles::<R>(&values[i * from_each_to_next..], step, length, out);
            };
            for_pieces(threads_for(x.layout.numel(), SMALLEST_PARALLEL), out, columns, &reduce);
        }
        (None, None) => reduce_rows::<R>(values, Runs::of(x.layout), length, out),
    }
    Ok(())
}

/// Reduces the chunks of each row, for few but long rows.
fn chunks_twin<R: Monoid>(args: Args<'_, '_>) -> TwinResult {
    let (x, out) = (&args.inputs[0], &mut args.outputs[0]);
    let (values, length) = (x.values(), args.ints[0] as usize);
    let chunks = out.layout.sizes()[1];
    let out = out.elements::<R::Value>();
    if let Some(step) = columns(x.layout, length) {
        chunks_of_columns::<R>(&values[x.layout.offset..], step, length, out);
        return Ok(());
    }
    let chunk_at = chunk_at::<R>(values, Runs::of(x.layout), length);
    let threads = threads_for(x.layout.numel(), SMALLEST_PARALLEL);
    let share = out.len().div_ceil(threads);
    let reduce = |part: usize, out: &mut [R::Value]| {
        for (i, out) in out.iter_mut().enumerate() {
            let chunk = part * share + i;
            *out = chunk_at(chunk / chunks, chunk % chunks);
        }
    };
    for_pieces(threads, out, share, &reduce);
    Ok(())
}

/// [`tree::chunk`] for this reducer, compiled for this CPU.
fn chunk_of<R: Monoid>() -> fn(&[R::Value]) -> R::Value {
    #[inline(always)]
    fn lanes<R: Monoid>(values: &[R::Value]) -> R::Value {
        tree::chunk(values, R::IDENTITY, R::combine)
    }
    vectorized!([R: Monoid] lanes::<R>, (values: &[R::Value]) -> R::Value)
}

fn chunk_at<R: Monoid>(
    values: &[R::Value],
    runs: Runs,
    length: usize,
) -> impl Fn(usize, usize) -> R::Value + Sync {
    let chunk = chunk_of::<R>();
    move |row, i| {
        let (start, length) = (row * length + i * CHUNK, CHUNK.min(length - i * CHUNK));
        match runs.contiguous_start() {
            Some(first) => chunk(&values[first + start..first + start + length]),
            None => {
                let mut block = [R::IDENTITY; CHUNK];
                runs.gather(values, start, &mut block[..length]);
                chunk(&block[..length])
            }
        }
    }
}

fn reduce_rows<R: Monoid>(values: &[R::Value], runs: Runs, length: usize, out: &mut [R::Value]) {
    let chunk = chunk_of::<R>();
    let chunk_of_row = chunk_at::<R>(values, runs, length);
    let chunks = length.div_ceil(CHUNK);
    let row = |row: usize| match chunks {
        1 => chunk_of_row(row, 0),
        _ => tree::finish((0..chunks).map(|i| chunk_of_row(row, i)).collect(), R::IDENTITY, chunk),
    };
    let threads = threads_for(out.len() * length, SMALLEST_PARALLEL);
    if out.len() >= threads {
        let share = out.len().div_ceil(threads);
        for_pieces(threads, out, share, &|part, out| {
            for (i, out) in out.iter_mut().enumerate() {
                *out = row(part * share + i);
            }
        });
    } else {
        for (i, out) in out.iter_mut().enumerate() {
            let mut partials = vec![R::IDENTITY; chunks];
            for_pieces(threads, &mut partials, 1, &|c, partial| partial[0] = chunk_of_row(i, c));
            *out = tree::finish(partials, R::IDENTITY, chunk);
        }
    }
}

/// The number of columns reduced together, whose lanes fit in the L1 cache.
const TILE: usize = 32;

/// Reduces neighbouring results together: element `i` of result `c` is `values[i * row_stride + c]`.
fn reduce_columns<R: Monoid>(values: &[R::Value], row_stride: usize, length: usize, out: &mut [R::Value]) {
    let threads = threads_for(out.len() * length, SMALLEST_PARALLEL);
    for_pieces(threads, out, TILE, &|i, out| {
        columns_of_tiles::<R>(&values[i * TILE..], row_stride, length, out)
    });
}

fn columns_of_tiles<R: Monoid>(values: &[R::Value], row_stride: usize, length: usize, out: &mut [R::Value]) {
    let tile = |i: usize, out: &mut [R::Value]| {
        let first = i * TILE;
        let mut partials: Vec<[R::Value; TILE]> = Vec::with_capacity(length.div_ceil(CHUNK));
        for start in (0..length).step_by(CHUNK) {
            let rows = CHUNK.min(length - start);
            partials.push(column_chunk::<R>(
                &values[start * row_stride + first..],
                row_stride,
                rows,
                out.len(),
            ));
        }
        while partials.len() > 1 {
            partials = partials
                .chunks(CHUNK)
                .map(|chunk| {
                    let flat: &[R::Value] = chunk.as_flattened();
                    column_chunk::<R>(flat, TILE, chunk.len(), out.len())
                })
                .collect();
        }
        out.copy_from_slice(&partials[0][..out.len()]);
    };
    out.chunks_mut(TILE).enumerate().for_each(|(i, out)| tile(i, out));
}

/// Reduces the chunks of each column. The results are stored column by column.
fn chunks_of_columns<R: Monoid>(values: &[R::Value], step: usize, length: usize, out: &mut [R::Value]) {
    let chunks = length.div_ceil(CHUNK);
    let tile = |i: usize, out: &mut [R::Value]| {
        for chunk in 0..chunks {
            let start = chunk * CHUNK;
            let rows = CHUNK.min(length - start);
            let from = &values[start * step + i * TILE..];
            let results = column_chunk::<R>(from, step, rows, out.len() / chunks);
            for (out, result) in out[chunk..].iter_mut().step_by(chunks).zip(results) {
                *out = result;
            }
        }
    };
    for_pieces(threads_for(out.len() * CHUNK, SMALLEST_PARALLEL), out, TILE * chunks, &tile);
}

/// Reduces a chunk of up to [`TILE`] columns: [`tree::chunk`], vectorised across columns.
fn column_chunk<R: Monoid>(
    values: &[R::Value],
    row_stride: usize,
    rows: usize,
    columns: usize,
) -> [R::Value; TILE] {
    #[inline(always)]
    fn lanes<R: Monoid>(
        values: &[R::Value],
        row_stride: usize,
        rows: usize,
        columns: usize,
    ) -> [R::Value; TILE] {
        let mut lanes = [[R::IDENTITY; TILE]; LANES];
        for row in 0..rows {
            let from = &values[row * row_stride..row * row_stride + columns];
            let lane = &mut lanes[row % LANES];
            if row < LANES {
                lane[..columns].copy_from_slice(from);
            } else if columns == TILE {
                for (lane, value) in lane.iter_mut().zip(from) {
                    *lane = R::combine(*lane, *value);
                }
            } else {
                for (lane, value) in lane[..columns].iter_mut().zip(from) {
                    *lane = R::combine(*lane, *value);
                }
            }
        }
        let used = rows.min(LANES);
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width.min(used.saturating_sub(width)) {
                let (low, high) = lanes.split_at_mut(lane + width);
                for (a, b) in low[lane].iter_mut().zip(&high[0]) {
                    *a = R::combine(*a, *b);
                }
            }
            width /= 2;
        }
        lanes[0]
    }
    let best = vectorized!(
        [R: Monoid] lanes::<R>,
        (values: &[R::Value], row_stride: usize, rows: usize, columns: usize) -> [R::Value; TILE]
    );
    best(values, row_stride, rows, columns)
}

/// Finds the first extreme of each row. A NaN is more extreme than any number.
fn positions<T: Pod + PartialOrd>(args: Args<'_, '_>, largest: bool) -> TwinResult {
    let (x, out) = (&args.inputs[0], &mut args.outputs[0]);
    let runs = Runs::of(x.layout);
    let length = args.ints[0] as usize;
    let mut row = reserve(length)?;
    row.resize(length, T::zeroed());
    for (i, out) in out.elements::<i64>().iter_mut().enumerate() {
        let row = match runs.contiguous_start() {
            Some(start) => &x.values()[start + i * length..][..length],
            None => {
                runs.gather(x.values(), i * length, &mut row);
                &row
            }
        };
        *out = match largest {
            true => position(row, |a, b| a > b),
            false => position(row, |a, b| a < b),
        } as i64;
    }
    Ok(())
}

/// Returns the position of the first NaN, or of the first number that no other beats. It finds the extreme first,
/// because a loop that tracks positions is not vectorised.
#[allow(clippy::eq_op)] // Only a NaN differs from itself.
fn position<T: Pod + PartialOrd>(row: &[T], beats: impl Fn(T, T) -> bool) -> usize {
    let (blocks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [row[0]; LANES];
    for block in blocks {
        for lane in 0..LANES {
            let value = block[lane];
            let wins = beats(value, lanes[lane]) | (value != value);
            lanes[lane] = if wins { value } else { lanes[lane] };
        }
    }
    let best =
        lanes.iter().chain(rest).fold(row[0], |best, value| if beats(*value, best) { *value } else { best });
    let has_nan = lanes.iter().chain(rest).any(|value| value != value);
    let is_it = |value: &T| if has_nan { value != value } else { *value == best };
    let has_it = |block: &[T; LANES]| block.iter().fold(false, |found, value| found | is_it(value));
    let before = LANES * blocks.iter().position(has_it).unwrap_or(blocks.len());
    before + row[before..].iter().position(is_it).unwrap_or(0)
}

pub(super) fn argmax(x: &Tensor, reduced: &[bool], out: &Tensor) -> Result<()> {
    let (rows, length) = rows(x, reduced)?;
    launch(ARGMAX.of(x.dtype())?, [&rows], [out], &[length as i64], &[])
}

pub(super) fn argmin(x: &Tensor, reduced: &[bool], out: &Tensor) -> Result<()> {
    let (rows, length) = rows(x, reduced)?;
    launch(ARGMIN.of(x.dtype())?, [&rows], [out], &[length as i64], &[])
}
