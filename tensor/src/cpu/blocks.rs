//! Access to the operands of elementwise operations. Kernels get contiguous blocks of equal length. A contiguous
//! operand lends slices; a transposed one does so, too, if the others are transposed in the same way, because all
//! operands come in the order of memory. Any other operand (broadcast, or in another order) is gathered into a block. So a kernel is one plain loop, compiled once.

use bytemuck::Pod;

use crate::cpu::parallel::for_pieces;
use crate::cpu::pool::threads_for;
use crate::error::Result;
use crate::kernel::{Args, Cost, Input, Output, TwinResult};
use crate::shape::{Layout, MAX_DIMS};

/// The number of elements in a block, so that three blocks fit in the L1 cache.
pub(crate) const BLOCK: usize = 1024;

/// The elements of a layout in logical order, in as few strided runs as possible.
pub(crate) struct Runs {
    ndim: usize,
    sizes: [usize; MAX_DIMS],
    strides: [usize; MAX_DIMS],
    offset: usize,
}

impl Runs {
    pub(crate) fn of(layout: &Layout) -> Runs {
        let (ndim, sizes, strides) = layout.merged_dims();
        Runs { ndim: ndim.max(1), sizes, strides, offset: layout.offset }
    }

    pub(crate) fn contiguous_start(&self) -> Option<usize> {
        (self.ndim == 1 && (self.strides[0] == 1 || self.sizes[0] == 1)).then_some(self.offset)
    }

    #[inline(always)]
    fn block(&self, start: usize, length: usize) -> BlockAccess {
        let inner = self.ndim - 1;
        let (size, stride) = (self.sizes[inner], self.strides[inner]);
        match (inner, stride) {
            (0, 1) => BlockAccess::Contiguous(self.offset + start),
            (0, _) if size == 1 => BlockAccess::Contiguous(self.offset),
            (0, 0) => BlockAccess::Broadcast(self.offset),
            // Within one run, such as a broadcast row or a part of each row of a matrix.
            (1, 1) if start % size + length <= size => {
                BlockAccess::Contiguous(self.offset + start / size * self.strides[0] + start % size)
            }
            _ => BlockAccess::Strided,
        }
    }

    /// Calls `visit(position, stride, length)` for each run of the elements `start..start + length`.
    pub(crate) fn visit(&self, start: usize, length: usize, mut visit: impl FnMut(usize, usize, usize)) {
        if length == 0 {
            return; // An empty layout has no valid position.
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
            // Carry: when a dimension is finished, the next outer one advances.
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

    pub(crate) fn gather<T: Pod>(&self, values: &[T], start: usize, block: &mut [T]) {
        let mut filled = 0;
        self.visit(start, block.len(), |position, stride, length| {
            let target = &mut block[filled..filled + length];
            match stride {
                0 => target.fill(values[position]),
                1 => target.copy_from_slice(&values[position..position + length]),
                _ => {
                    for (i, target) in target.iter_mut().enumerate() {
                        *target = values[position + i * stride];
                    }
                }
            }
            filled += length;
        });
    }
}

enum BlockAccess {
    Contiguous(usize),
    /// One number, at this position, for all elements.
    Broadcast(usize),
    Strided,
}

/// Writes `block` to the elements from `start`, the reverse of [`Runs::gather`].
pub(crate) fn scatter<T: Pod>(runs: &Runs, block: &[T], start: usize, values: &mut [T]) {
    let mut taken = 0;
    runs.visit(start, block.len(), |position, stride, length| {
        for (i, value) in block[taken..taken + length].iter().enumerate() {
            values[position + i * stride] = *value;
        }
        taken += length;
    });
}

pub(crate) struct BlockReader<'a> {
    /// `None` for the output, which is about to be overwritten.
    source: Option<(&'a [u8], Runs)>,
}

impl<'a> BlockReader<'a> {
    /// Broadcasts the operand to the output's sizes. Inlined to build the large reader in place.
    #[inline(always)]
    pub(crate) fn new(input: &Input<'a>, sizes: &[usize]) -> Result<BlockReader<'a>> {
        let source = match input.bytes {
            None => None,
            Some(bytes) if input.layout.sizes() == sizes => Some((bytes, Runs::of(input.layout))),
            Some(bytes) => Some((bytes, Runs::of(&input.layout.expand(sizes)?))),
        };
        Ok(BlockReader { source })
    }

    pub(crate) fn is_output(&self) -> bool {
        self.source.is_none()
    }

    /// Returns the elements from `start`, borrowed or gathered into this operand's `scratch`. `None` for the output.
    pub(crate) fn read<'b, T: Pod>(
        &'b self,
        start: usize,
        length: usize,
        scratch: &'b mut Scratch,
    ) -> Option<&'b [T]> {
        let (bytes, runs) = self.source.as_ref()?;
        let values: &[T] = bytemuck::cast_slice(bytes);
        Some(match runs.block(start, length) {
            BlockAccess::Contiguous(first) => &values[first..first + length],
            BlockAccess::Broadcast(at) => scratch.of_number(values[at], length),
            BlockAccess::Strided => {
                let block = scratch.take(length);
                runs.gather(values, start, block);
                block
            }
        })
    }

    fn block<'b, T: Pod, O: Pod>(&'b self, start: usize, output: &[O], scratch: &'b mut Scratch) -> &'b [T] {
        if self.is_output() {
            let block = scratch.take(output.len());
            block.copy_from_slice(bytemuck::cast_slice(output));
            return block;
        }
        self.read(start, output.len(), scratch).unwrap_or_default()
    }
}

/// A block, created on demand and reused for later blocks. A small one is on the stack.
#[derive(Default)]
pub(crate) struct Scratch {
    small: [u64; SMALL],
    large: Vec<u64>,
    is_filled: bool,
}

const SMALL: usize = 16;

impl Scratch {
    fn take<T: Pod>(&mut self, length: usize) -> &mut [T] {
        self.is_filled = false;
        let words = (length * size_of::<T>()).div_ceil(size_of::<u64>());
        let block = if words <= SMALL { &mut self.small[..] } else { self.large(words) };
        &mut bytemuck::cast_slice_mut(block)[..length]
    }

    #[cold]
    #[inline(never)]
    fn large(&mut self, words: usize) -> &mut [u64] {
        if self.large.len() < words {
            self.large = vec![0; words];
        }
        &mut self.large
    }

    // Not inlined, so that the loop over contiguous blocks stays small.
    #[inline(never)]
    fn of_number<T: Pod>(&mut self, number: T, length: usize) -> &[T] {
        if length < BLOCK {
            let block = self.take(length);
            block.fill(number);
            return block;
        }
        if !self.is_filled {
            self.take(length).fill(number);
            self.is_filled = true;
        }
        &bytemuck::cast_slice(&self.large)[..length]
    }
}

/// Runs `share(start, out)` over parts of the output, on several threads if that is faster. A contiguous output has one
/// part per thread. `share` is `dyn`, so this is compiled for each type, not for each kernel.
pub(crate) fn for_shares<O: Pod + Send>(
    output: &mut Output,
    cost: Cost,
    share: &(dyn Fn(usize, &mut [O]) + Sync),
) {
    if !output.layout.is_contiguous() {
        return for_strided_blocks(output, share);
    }
    let out = output.elements::<O>();
    let threads = threads_for(out.len(), cost.smallest_parallel());
    let length = out.len().div_ceil(threads).next_multiple_of(BLOCK);
    for_pieces(threads, out, length, &|i, out| share(i * length, out));
}

/// Like [`for_shares`], block by block.
pub(crate) fn for_blocks<O: Pod + Send>(
    output: &mut Output,
    cost: Cost,
    block: &(dyn Fn(usize, &mut [O]) + Sync),
) {
    for_shares(output, cost, &|start, out: &mut [O]| {
        for (i, out) in out.chunks_mut(BLOCK).enumerate() {
            block(start + i * BLOCK, out);
        }
    });
}

/// Like [`for_shares`], for a strided output, through a block.
fn for_strided_blocks<O: Pod>(output: &mut Output, block: &dyn Fn(usize, &mut [O])) {
    let runs = Runs::of(output.layout);
    let values: &mut [O] = bytemuck::cast_slice_mut(output.bytes);
    let mut scratch = Scratch::default();
    let numel = output.layout.numel();
    for start in (0..numel).step_by(BLOCK) {
        let out = scratch.take(BLOCK.min(numel - start));
        runs.gather(values, start, out); // The input of an in-place operation.
        block(start, out);
        scatter(&runs, out, start, values);
    }
}

/// Compute `out = kernel(a, b, …)` element by element, with operands broadcast to the output's shape.
macro_rules! maps {
    ($($map:ident($($x:ident: $X:ident),+);)+) => {$(
        pub(crate) fn $map<$($X: Pod,)+ O: Pod + Send>(
            Args { inputs, outputs, .. }: Args<'_, '_>,
            cost: Cost,
            kernel: fn($(&[$X],)+ &mut [O]),
        ) -> TwinResult {
            let (out, [$($x),+]) = (&mut outputs[0], inputs) else { unreachable!("it takes so many") };
            $(let $x = BlockReader::new($x, out.layout.sizes())?;)+
            for_shares(out, cost, &|start, out| {
                $(let mut $x = (&$x, Scratch::default());)+
                for (i, out) in out.chunks_mut(BLOCK).enumerate() {
                    let start = start + i * BLOCK;
                    kernel($($x.0.block(start, out, &mut $x.1),)+ out);
                }
            });
            Ok(())
        }
    )+};
}
maps! {
    map1(a: A);
    map2(a: A, b: B);
    map3(a: A, b: B, c: C);
    map4(a: A, b: B, c: C, d: D);
}
