//! The part of an image that a block of outputs needs, with its padding. Unlike im2col, it has each element once.

use super::axis::Axis;
use super::lanes::{ImageRows, Lanes};
use crate::cpu::reserve::reserve;
use crate::error::{GpuError, Result};

/// The layout of a patch: planes of every channel, with rows of `width` places.
pub(super) struct Patch<'a> {
    pub(super) axes: &'a [Axis; 2],
    pub(super) channels: usize,
    height: usize,
    pub(super) width: usize,
}

impl<'a> Patch<'a> {
    pub(super) fn new(axes: &'a [Axis; 2], channels: usize, rows: usize) -> Patch<'a> {
        let [vertical, horizontal] = axes;
        let (height, width) = (rows + vertical.reach, horizontal.outputs + horizontal.reach);
        Patch { axes, channels, height, width }
    }

    fn channel_len(&self) -> usize {
        let [down, across] = self.axes.each_ref().map(|axis| axis.planes.len());
        [across, self.height, self.width].into_iter().fold(down, usize::saturating_mul)
    }

    /// The number of elements, or `usize::MAX` on overflow.
    pub(super) fn len(&self) -> usize {
        self.channels.saturating_mul(self.channel_len())
    }

    /// The number of elements, plus one vector for accesses beyond them.
    pub(super) fn room<T: Lanes>(&self) -> usize {
        self.len().saturating_add(T::tile()[1])
    }

    /// The first position that each tap reads, by channel, in the order of the weights.
    pub(super) fn taps(&self) -> Result<Vec<usize>> {
        if self.len() == usize::MAX {
            return Err(GpuError::OutOfHostMemory { bytes: usize::MAX }.into());
        }
        let [vertical, horizontal] = self.axes;
        let mut taps = reserve(self.channels * vertical.taps.len() * horizontal.taps.len())?;
        for channel in 0..self.channels {
            for row in &vertical.taps {
                for column in &horizontal.taps {
                    let plane = row.plane * horizontal.planes.len() + column.plane;
                    taps.push(
                        channel * self.channel_len()
                            + (plane * self.height + row.offset) * self.width
                            + column.offset,
                    );
                }
            }
        }
        Ok(taps)
    }

    /// Copies the patch for outputs from row `first`, from channels of `size`. `to` has space for one more vector.
    pub(super) fn fill<T: Lanes>(&self, first: usize, image: &[T], size: [usize; 2], mut to: &mut [T]) {
        let [vertical, horizontal] = self.axes;
        let plane_len = self.height * self.width;
        for channel in 0..self.channels {
            for start in &vertical.planes {
                let start = start + (first * vertical.step) as isize;
                let (top, bottom, row) = inside(start, vertical.step, size[0], self.height);
                for start in &horizontal.planes {
                    let (left, right, column) = inside(*start, horizontal.step, size[1], self.width);
                    let at = (channel * size[0] + row) * size[1] + column;
                    to[..top * self.width].fill(T::zeroed());
                    let stride = vertical.step * size[1];
                    match horizontal.step {
                        1 => T::copy_rows(ImageRows {
                            from: image,
                            first: at,
                            stride,
                            rows: bottom - top,
                            to: &mut to[top * self.width..],
                            width: self.width,
                            left,
                            right,
                        }),
                        step => {
                            let rows = to[top * self.width..bottom * self.width].chunks_exact_mut(self.width);
                            for (i, row) in rows.enumerate() {
                                row[..left].fill(T::zeroed());
                                row[right..].fill(T::zeroed());
                                let from = image[at + i * stride..].iter().step_by(step);
                                row[left..right].iter_mut().zip(from).for_each(|(to, x)| *to = *x);
                            }
                        }
                    }
                    to[bottom * self.width..plane_len].fill(T::zeroed());
                    to = &mut to[plane_len..];
                }
            }
        }
    }
}

/// Returns the range of `places`, `step` apart from `start`, inside an image of `size`, and the position of the first.
fn inside(start: isize, step: usize, size: usize, places: usize) -> (usize, usize, usize) {
    let until = |end: isize| (end.max(0) as usize).div_ceil(step).min(places);
    let (left, right) = (until(-start), until(size as isize - start));
    if left == right {
        return (0, 0, 0);
    }
    (left, right, (start + (left * step) as isize) as usize)
}
