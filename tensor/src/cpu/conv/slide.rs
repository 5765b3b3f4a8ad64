//! Slides kernels over images: the forward pass, and the gradient of the image, which is a convolution, too. A job is a
//! few output channels of one image. For each block of rows, it copies the patch and computes the outputs as weighted
//! sums. With a stride, the gradient of an image consists of several such convolutions for different elements.

use std::iter::repeat_n;

use super::axis::Axis;
use super::lanes::{Lanes, Weighted, with_memory};
use super::patch::Patch;
use super::{block_rows, share};
use crate::cpu::reserve::collect;
use crate::error::Result;

pub(super) struct ConvImages<'a, T> {
    pub(super) from: &'a [T],
    pub(super) from_size: [usize; 2],
    pub(super) to_size: [usize; 2],
    pub(super) channels: [usize; 2],
    pub(super) groups: usize,
    pub(super) bias: Option<&'a [T]>,
}

pub(super) struct Slide<T> {
    axes: [Axis; 2],
    /// The outputs are the elements of an image from `phase`, `stride` apart.
    phase: [usize; 2],
    stride: [usize; 2],
    channels: [usize; 2],
    /// Strips of a tile's height for each group, with one number of every row per step.
    weights: Vec<T>,
    weights_of_group: usize,
    block: usize,
    /// The distance between computed rows of outputs, before they are copied to the image.
    row_stride: usize,
    /// The positions in a patch that each tap, and each vector of outputs, read first.
    steps: Vec<usize>,
    starts: Vec<usize>,
}

impl<T: Lanes> Slide<T> {
    /// Prepares a convolution. `row` returns the weights of an output channel.
    pub(super) fn new<R: Iterator<Item = T>>(
        axes: [Axis; 2],
        phase: [usize; 2],
        stride: [usize; 2],
        channels: [usize; 2],
        groups: usize,
        row: impl Fn(usize) -> R,
    ) -> Result<Slide<T>> {
        let [height, lanes] = T::tile();
        let [outputs, columns] = axes.each_ref().map(|axis| axis.outputs);
        let block = block_rows(outputs, |rows| Patch::new(&axes, channels[0], rows).len());
        let patch = Patch::new(&axes, channels[0], block);
        let steps = patch.taps()?;

        // Vectors of outputs either restart in each row or continue across rows, with the outputs between rows dropped.
        let in_row = columns.div_ceil(lanes);
        let flat = flat_len(block, &patch, columns).div_ceil(lanes);
        let (row_stride, starts): (usize, Vec<usize>) = if block * in_row <= flat {
            let starts = (0..block * in_row).map(|i| i / in_row * patch.width + i % in_row * lanes);
            (in_row * lanes, collect(starts, block * in_row)?)
        } else {
            (patch.width, collect((0..flat).map(|vector| vector * lanes), flat)?)
        };

        let depth = steps.len();
        let weights_of_group = channels[1].next_multiple_of(height) * depth;
        let count = groups * weights_of_group;
        let mut weights = collect(repeat_n(T::zeroed(), count), count)?;
        if depth > 0 {
            for (group, strips) in weights.chunks_exact_mut(weights_of_group).enumerate() {
                for i in 0..channels[1] {
                    let to = strips[i / height * height * depth + i % height..].iter_mut().step_by(height);
                    to.zip(row(group * channels[1] + i)).for_each(|(to, weight)| *to = weight);
                }
            }
        }
        Ok(Slide {
            axes,
            phase,
            stride,
            channels,
            weights,
            weights_of_group,
            block,
            row_stride,
            steps,
            starts,
        })
    }

    fn patch(&self) -> Patch<'_> {
        Patch::new(&self.axes, self.channels[0], self.block)
    }

    fn room(&self, channels: usize) -> usize {
        self.patch().room::<T>().saturating_add(channels * self.starts.len() * T::tile()[1])
    }

    fn starts(&self, rows: usize) -> &[usize] {
        let lanes = T::tile()[1];
        let patch = self.patch();
        match self.row_stride == patch.width {
            true => &self.starts[..flat_len(rows, &patch, self.axes[1].outputs).div_ceil(lanes)],
            false => &self.starts[..rows * self.row_stride / lanes],
        }
    }

    fn run(&self, images: &ConvImages<T>, job: &mut SlideJob<T>, memory: &mut [T]) {
        let &mut SlideJob { image, group, first, ref mut out } = job;
        let [height, width] = images.to_size;
        let [outputs, columns] = self.axes.each_ref().map(|axis| axis.outputs);
        let rows = out.len() / (height * width);
        let from_len = images.from_size[0] * images.from_size[1];
        let from = (image * images.channels[0] + group * self.channels[0]) * from_len;
        let from = &images.from[from..][..self.channels[0] * from_len];
        let bias = images.bias.map(|bias| &bias[group * self.channels[1] + first..][..rows]);
        let weights = &self.weights[group * self.weights_of_group + first * self.steps.len()..];
        let (patch, aside) = memory.split_at_mut(self.patch().room::<T>());

        for top in (0..outputs).step_by(self.block) {
            let block = self.block.min(outputs - top);
            self.patch().fill(top, from, images.from_size, patch);
            let starts = self.starts(block);
            let aside_stride = starts.len() * T::tile()[1];
            let in_place =
                self.stride == [1, 1] && self.row_stride == columns && aside_stride == block * columns;
            let (c, c_stride) = match in_place {
                true => (&mut out[top * columns..], height * width),
                false => (&mut aside[..rows * aside_stride], aside_stride),
            };
            let (patch, steps) = (&*patch, self.steps.as_slice());
            T::weighted(Weighted { rows, bias, weights, patch, steps, starts, c, c_stride });
            if in_place {
                continue;
            }
            for (to, from) in out.chunks_exact_mut(height * width).zip(aside.chunks_exact(aside_stride)) {
                for (row, from) in (top..top + block).zip(from.chunks(self.row_stride)) {
                    let to = &mut to[(self.phase[0] + row * self.stride[0]) * width..][..width];
                    match self.stride[1] {
                        1 => to.copy_from_slice(&from[..columns]),
                        stride => {
                            let to = to[self.phase[1]..].iter_mut().step_by(stride);
                            to.zip(from).for_each(|(to, from)| *to = *from);
                        }
                    }
                }
            }
        }
    }
}

fn flat_len(rows: usize, patch: &Patch, columns: usize) -> usize {
    (rows - 1) * patch.width + columns
}

struct SlideJob<'a, T> {
    image: usize,
    group: usize,
    first: usize,
    out: &'a mut [T],
}

pub(super) fn slide<T: Lanes>(
    slides: &[Slide<T>],
    images: &ConvImages<T>,
    threads: usize,
    out: &mut [T],
) -> Result<()> {
    let size = images.to_size[0] * images.to_size[1];
    let rows = images.channels[1] / images.groups;
    let slides = || slides.iter().filter(|slide| !slide.steps.is_empty());
    if slides().map(|slide| slide.axes[0].outputs * slide.axes[1].outputs).sum::<usize>() < size {
        // Elements without gradient, and empty sums.
        out.fill(T::zeroed());
        if let Some(bias) = images.bias {
            let channels = out.chunks_exact_mut(size).zip(bias.iter().cycle());
            channels.for_each(|(channel, bias)| channel.fill(*bias));
        }
    }
    let parts = threads.div_ceil(out.len() / (rows * size));
    let rows_of_job = rows.div_ceil(parts).next_multiple_of(T::tile()[0]);
    let groups = out.chunks_mut(rows * size).enumerate().flat_map(|(i, out)| {
        let (image, group) = (i / images.groups, i % images.groups);
        let parts = out.chunks_mut(rows_of_job * size).enumerate();
        parts.map(move |(part, out)| SlideJob { image, group, first: part * rows_of_job, out })
    });
    let room = slides().map(|slide| slide.room(rows_of_job.min(rows))).max().unwrap_or(0);
    share(threads, groups.collect(), |job| {
        with_memory(room, |memory| slides().for_each(|slide| slide.run(images, job, memory)))
    })
}
