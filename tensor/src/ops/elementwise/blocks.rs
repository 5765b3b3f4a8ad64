//! How an elementwise operation walks its operands.
//!
//! Kernels only ever see short contiguous blocks of equal length. A contiguous operand lends slices of
//! itself; any other one (transposed, broadcast, or the output of an in-place operation) is gathered
//! into a block on the stack. So a kernel is one plain loop, and there is one of it.

use bytemuck::Pod;
use rayon::prelude::*;

use crate::error::Result;
use crate::ops::shape;
use crate::ops::simd::threads;
use crate::shape::{Layout, MAX_DIMS};
use crate::storage::access;
use crate::tensor::Tensor;

/// Elements a kernel sees at a time: small enough for three of them to stay in the first-level cache.
const BLOCK: usize = 1024;

/// How much work one element is, to decide from when on a second thread pays.
///
/// Waking one costs about 17 µs, so below about 100 µs of work everything stays on the caller's.
#[derive(Clone, Copy)]
pub(crate) enum Cost {
    /// Additions, comparisons, copies.
    Cheap,
    /// Exponentials, divisions, roots.
    Costly,
}

impl Cost {
    fn smallest_parallel(self) -> usize {
        match self {
            Cost::Cheap => 1 << 18,
            Cost::Costly => 1 << 16,
        }
    }
}

/// The order in which the elements of a layout lie in memory, as few strided runs as possible.
pub(crate) struct Runs {
    ndim: usize,
    sizes: [usize; MAX_DIMS],
    strides: [usize; MAX_DIMS],
    offset: usize,
}

impl Runs {
    pub(crate) fn of(layout: &Layout) -> Runs {
        let mut runs = Runs { ndim: 0, sizes: [1; MAX_DIMS], strides: [0; MAX_DIMS], offset: layout.offset };
        for (size, stride) in layout.sizes().iter().zip(layout.strides()).filter(|(size, _)| **size != 1) {
            let last = runs.ndim.wrapping_sub(1);
            if runs.ndim > 0 && runs.strides[last] == stride * size {
                // The dimension before steps exactly over this one: together they are one run.
                runs.sizes[last] *= size;
                runs.strides[last] = *stride;
            } else {
                runs.sizes[runs.ndim] = *size;
                runs.strides[runs.ndim] = *stride;
                runs.ndim += 1;
            }
        }
        runs.ndim = runs.ndim.max(1);
        runs
    }

    /// Where the elements start, if they lie one after another.
    pub(crate) fn contiguous_start(&self) -> Option<usize> {
        (self.ndim == 1 && (self.strides[0] == 1 || self.sizes[0] == 1)).then_some(self.offset)
    }

    /// The step from element to element, if it is the same all the way.
    pub(crate) fn single_stride(&self) -> Option<usize> {
        (self.ndim == 1).then_some(self.strides[0])
    }

    /// Calls `visit(position, stride, length)` for the runs that make up the elements
    /// `start..start + length` in logical order.
    pub(crate) fn visit(&self, start: usize, length: usize, mut visit: impl FnMut(usize, usize, usize)) {
        if length == 0 {
            return; // Of an empty layout there is no position to speak of.
        }
        let inner = self.ndim - 1;
        let mut index = [0; MAX_DIMS];
        let mut rest = start;
        for dim in (0..self.ndim).rev() {
            index[dim] = rest % self.sizes[dim];
            rest /= self.sizes[dim];
        }
        let mut position =
            self.offset + (0..self.ndim).map(|dim| index[dim] * self.strides[dim]).sum::<usize>();
        let mut left = length;
        while left > 0 {
            let run = left.min(self.sizes[inner] - index[inner]);
            visit(position, self.strides[inner], run);
            left -= run;
            // Carry: the inner dimension is through, the next outer one advances, and so on.
            position -= index[inner] * self.strides[inner];
            index[inner] = 0;
            for dim in (0..inner).rev() {
                index[dim] += 1;
                position += self.strides[dim];
                if index[dim] < self.sizes[dim] {
                    break;
                }
                position -= index[dim] * self.strides[dim];
                index[dim] = 0;
            }
        }
    }

    /// Copies the elements from `start` on, in logical order, to fill `block`.
    pub(crate) fn gather<T: Pod>(&self, values: &[T], start: usize, block: &mut [T]) {
        let mut filled = 0;
        self.visit(start, block.len(), |position, stride, length| {
            let target = &mut block[filled..filled + length];
            match stride {
                0 => target.fill(values[position]),
                1 => target.copy_from_slice(&values[position..position + length]),
                _ => {
                    for (target, value) in target.iter_mut().zip(values[position..].iter().step_by(stride)) {
                        *target = *value;
                    }
                }
            }
            filled += length;
        });
    }
}

/// An operand of a kernel.
struct Operand<'a, T> {
    /// `None`: the operand is the output, about to be overwritten.
    source: Option<(&'a [T], Runs)>,
}

impl<'a, T: Pod> Operand<'a, T> {
    fn new(input: Option<(&'a [u8], &Tensor)>, sizes: &[usize]) -> Result<Operand<'a, T>> {
        let source = match input {
            None => None,
            Some((bytes, tensor)) => {
                Some((bytemuck::cast_slice(bytes), Runs::of(&tensor.layout().expand(sizes)?)))
            }
        };
        Ok(Operand { source })
    }

    /// The elements from `start` on that belong to the output block, lent or gathered into `scratch`.
    fn block<'b, O: Pod>(&'b self, start: usize, output: &[O], scratch: &'b mut Scratch<T>) -> &'b [T] {
        let length = output.len();
        match &self.source {
            Some((values, runs)) => match runs.contiguous_start() {
                Some(first) => &values[first + start..first + start + length],
                None => {
                    let block = scratch.take(length);
                    runs.gather(values, start, block);
                    block
                }
            },
            None => {
                let block = scratch.take(length);
                block.copy_from_slice(bytemuck::cast_slice(output));
                block
            }
        }
    }
}

/// A block on the stack, made only when an operand needs one.
struct Scratch<T>(Option<[T; BLOCK]>);

impl<T: Pod> Scratch<T> {
    fn take(&mut self, length: usize) -> &mut [T] {
        &mut self.0.get_or_insert_with(|| [T::zeroed(); BLOCK])[..length]
    }
}

/// Runs `block(start, out)` over all blocks of a contiguous output, on several threads if it pays.
///
/// `block` is `dyn`, one call in 1024 elements, so that this is compiled once for each type and not for
/// each kernel.
fn for_blocks<O: Pod + Send>(out: &mut [O], cost: Cost, block: &(dyn Fn(usize, &mut [O]) + Sync)) {
    let threads = threads();
    if out.len() < cost.smallest_parallel() || threads == 1 {
        for (i, out) in out.chunks_mut(BLOCK).enumerate() {
            block(i * BLOCK, out);
        }
        return;
    }
    let share = out.len().div_ceil(threads).next_multiple_of(BLOCK);
    out.par_chunks_mut(share).enumerate().for_each(|(chunk, out)| {
        for (i, out) in out.chunks_mut(BLOCK).enumerate() {
            block(chunk * share + i * BLOCK, out);
        }
    });
}

/// The elements of a contiguous tensor in its storage's bytes.
pub(crate) fn elements_mut<'a, T: Pod>(bytes: &'a mut [u8], tensor: &Tensor) -> &'a mut [T] {
    let start = tensor.storage_offset();
    &mut bytemuck::cast_slice_mut(bytes)[start..start + tensor.numel()]
}

/// Runs `compute` on a contiguous output: `out` itself, or a fresh tensor that is copied to it.
fn with_contiguous(out: &Tensor, compute: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    if out.is_contiguous() {
        return compute(out);
    }
    let fresh = Tensor::uninit(out.sizes(), out.dtype())?;
    compute(&fresh)?;
    shape::write(out, &fresh)
}

/// `out = kernel(a)`, element by element; operands broadcast to the output's shape.
pub(crate) fn map1<A: Pod + Sync, O: Pod + Send>(
    [a]: [&Tensor; 1],
    out: &Tensor,
    cost: Cost,
    kernel: fn(&[A], &mut [O]),
) -> Result<()> {
    with_contiguous(out, |out| {
        access([a], [out], |[a], [bytes]| {
            let a = Operand::<A>::new(a, out.sizes())?;
            for_blocks(elements_mut(bytes, out), cost, &|start, out| {
                let mut from_a = Scratch(None);
                kernel(a.block(start, out, &mut from_a), out);
            });
            Ok(())
        })?
    })
}

/// `out = kernel(a, b)`.
pub(crate) fn map2<A: Pod + Sync, B: Pod + Sync, O: Pod + Send>(
    [a, b]: [&Tensor; 2],
    out: &Tensor,
    cost: Cost,
    kernel: fn(&[A], &[B], &mut [O]),
) -> Result<()> {
    with_contiguous(out, |out| {
        access([a, b], [out], |[a, b], [bytes]| {
            let a = Operand::<A>::new(a, out.sizes())?;
            let b = Operand::<B>::new(b, out.sizes())?;
            for_blocks(elements_mut(bytes, out), cost, &|start, out| {
                let (mut from_a, mut from_b) = (Scratch(None), Scratch(None));
                kernel(a.block(start, out, &mut from_a), b.block(start, out, &mut from_b), out);
            });
            Ok(())
        })?
    })
}

/// `out = kernel(a, b, c)`.
pub(crate) fn map3<A: Pod + Sync, B: Pod + Sync, C: Pod + Sync, O: Pod + Send>(
    [a, b, c]: [&Tensor; 3],
    out: &Tensor,
    cost: Cost,
    kernel: fn(&[A], &[B], &[C], &mut [O]),
) -> Result<()> {
    with_contiguous(out, |out| {
        access([a, b, c], [out], |[a, b, c], [bytes]| {
            let a = Operand::<A>::new(a, out.sizes())?;
            let b = Operand::<B>::new(b, out.sizes())?;
            let c = Operand::<C>::new(c, out.sizes())?;
            for_blocks(elements_mut(bytes, out), cost, &|start, out| {
                let (mut from_a, mut from_b, mut from_c) = (Scratch(None), Scratch(None), Scratch(None));
                kernel(
                    a.block(start, out, &mut from_a),
                    b.block(start, out, &mut from_b),
                    c.block(start, out, &mut from_c),
                    out,
                );
            });
            Ok(())
        })?
    })
}
