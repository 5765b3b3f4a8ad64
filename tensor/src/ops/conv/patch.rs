//! The part of an image that a block of outputs is made from, copied with its padding.
//!
//! It takes the place of the matrix that a convolution is a product with (im2col), which would hold every element
//! once for each tap: here the taps only say where to begin reading.

use super::axis::Axis;
use bytemuck::Zeroable;

/// How a patch lies in memory: planes of every channel, in them rows of `width` places.
pub(super) struct Patch<'a> {
    pub(super) axes: &'a [Axis; 2],
    pub(super) channels: usize,
    /// Rows of a plane, and places in a row.
    height: usize,
    pub(super) width: usize,
}

impl<'a> Patch<'a> {
    /// For so many rows of outputs.
    pub(super) fn new(axes: &'a [Axis; 2], channels: usize, rows: usize) -> Patch<'a> {
        let [vertical, horizontal] = axes;
        let (height, width) = (rows + vertical.reach, horizontal.outputs + horizontal.reach);
        Patch { axes, channels, height, width }
    }

    fn channel_len(&self) -> usize {
        let [vertical, horizontal] = self.axes;
        vertical.planes.len() * horizontal.planes.len() * self.height * self.width
    }

    pub(super) fn len(&self) -> usize {
        self.channels * self.channel_len()
    }

    /// Where each tap begins to read, channel by channel, in the order of the weights.
    pub(super) fn taps(&self) -> Vec<usize> {
        let [vertical, horizontal] = self.axes;
        let mut taps = Vec::with_capacity(self.channels * vertical.taps.len() * horizontal.taps.len());
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
        taps
    }

    /// Copies it for outputs from row `first` on, out of an image of `channels` channels, each of `size`.
    pub(super) fn fill<T: Copy + Zeroable>(&self, first: usize, image: &[T], size: [usize; 2], to: &mut [T]) {
        let [vertical, horizontal] = self.axes;
        let columns: Vec<_> = horizontal
            .planes
            .iter()
            .map(|start| inside(*start, horizontal.step, size[1], self.width))
            .collect();
        let mut rows = to[..self.len()].chunks_exact_mut(self.width);
        for channel in image.chunks_exact(size[0] * size[1]) {
            for start in &vertical.planes {
                for &(left, right, column) in &columns {
                    let start = start + (first * vertical.step) as isize;
                    for (i, to) in rows.by_ref().take(self.height).enumerate() {
                        let row = start + (i * vertical.step) as isize;
                        if row < 0 || row >= size[0] as isize || left == right {
                            to.fill(T::zeroed());
                            continue;
                        }
                        let from = &channel[row as usize * size[1]..][column..size[1]];
                        to[..left].fill(T::zeroed());
                        to[right..].fill(T::zeroed());
                        let to = &mut to[left..right];
                        match horizontal.step {
                            1 => to.copy_from_slice(&from[..to.len()]),
                            step => to.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, x)| *to = *x),
                        }
                    }
                }
            }
        }
    }
}

/// Which of `places` places, `step` apart from `start` on, are inside of an image of `size`, and where the first of
/// them is.
fn inside(start: isize, step: usize, size: usize, places: usize) -> (usize, usize, usize) {
    let until = |end: isize| (end.max(0) as usize).div_ceil(step).min(places);
    let (left, right) = (until(-start), until(size as isize - start));
    if left == right {
        return (0, 0, 0);
    }
    (left, right, (start + (left * step) as isize) as usize)
}
