//! The part of an image that a block of outputs is computed from, copied with its padding.
//!
//! It replaces the matrix of im2col, which would hold every element once for each tap: here the taps only say where to
//! begin reading.

use super::axis::Axis;
use super::lanes::{ImageRows, Lanes};
use crate::cpu::reserve::reserve;
use crate::error::{GpuError, Result};

/// The layout of a patch in memory: planes of every channel, with rows of `width` places.
pub(super) struct Patch<'a> {
    pub(super) axes: &'a [Axis; 2],
    pub(super) channels: usize,
    /// The number of rows in a plane, and of places in a row.
    height: usize,
    pub(super) width: usize,
}

impl<'a> Patch<'a> {
    /// The patch for `rows` rows of outputs.
    pub(super) fn new(axes: &'a [Axis; 2], channels: usize, rows: usize) -> Patch<'a> {
        let [vertical, horizontal] = axes;
        let (height, width) = (rows + vertical.reach, horizontal.outputs + horizontal.reach);
        Patch { axes, channels, height, width }
    }

    fn channel_len(&self) -> usize {
        let [down, across] = self.axes.each_ref().map(|axis| axis.planes.len());
        [across, self.height, self.width].into_iter().fold(down, usize::saturating_mul)
    }

    /// The number of elements, or `usize::MAX` if it overflows.
    pub(super) fn len(&self) -> usize {
        self.channels.saturating_mul(self.channel_len())
    }

    /// The number of elements, plus one vector that may be read or written beyond them.
    pub(super) fn room<T: Lanes>(&self) -> usize {
        self.len().saturating_add(T::tile()[1])
    }

    /// Where each tap begins to read, channel by channel, in the order of the weights.
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

    /// Copies the patch for outputs from row `first` on, from an image whose channels have `size`. The memory `to` has
    /// room for one vector more.
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

/// The range of those of `places` places, `step` apart from `start` on, that are inside an image of `size`, and the
/// position of the first of them.
fn inside(start: isize, step: usize, size: usize, places: usize) -> (usize, usize, usize) {
    let until = |end: isize| (end.max(0) as usize).div_ceil(step).min(places);
    let (left, right) = (until(-start), until(size as isize - start));
    if left == right {
        return (0, 0, 0);
    }
    (left, right, (start + (left * step) as isize) as usize)
}
