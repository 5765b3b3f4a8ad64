//! The reads of a convolution along one dimension, without gaps. For tap `t` of the kernel, output `o` reads element `o
//! · stride + t · dilation − padding` of the image. Elements congruent modulo the stride form a *plane*. Output `o`
//! then reads place `o + offset` of a plane, where plane and offset depend only on the tap. So neighbouring outputs
//! read neighbouring places, for any stride and dilation. Taps without common elements have separate planes.

use crate::sort;

#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) outputs: usize,
    /// The image position where each plane begins, and the step between places. Outside the image are zeros.
    pub(super) planes: Vec<isize>,
    pub(super) step: usize,
    pub(super) taps: Vec<Tap>,
    pub(super) reach: usize,
}

/// A kernel element along one dimension, and the place that its first output reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tap {
    pub(super) index: usize,
    pub(super) plane: usize,
    pub(super) offset: usize,
}

impl Axis {
    pub(super) fn forward(
        outputs: usize,
        kernel: usize,
        stride: usize,
        padding: usize,
        dilation: usize,
    ) -> Axis {
        let taps = (0..kernel).map(|index| (index, (index * dilation) as isize - padding as isize));
        Axis::new(outputs, stride, taps.collect())
    }

    /// Creates the axis of the convolution for the image's gradient. Its outputs are every `stride`-th element of an
    /// image of `size`, from `phase`. In the forward pass, output `o + (phase + padding − t · dilation) / stride` read
    /// element `phase + o · stride`, if that is an integer.
    pub(super) fn backward(
        size: usize,
        phase: usize,
        kernel: usize,
        stride: usize,
        padding: usize,
        dilation: usize,
    ) -> Axis {
        let taps = (0..kernel).filter_map(|index| {
            let from = (phase + padding) as isize - (index * dilation) as isize;
            (from.rem_euclid(stride as isize) == 0).then(|| (index, from.div_euclid(stride as isize)))
        });
        Axis::new((size - phase).div_ceil(stride), 1, taps.collect())
    }

    /// Arranges taps, given the position in the image that each tap's first output reads.
    fn new(outputs: usize, step: usize, taps: Vec<(usize, isize)>) -> Axis {
        let mut starts: Vec<isize> = taps.iter().map(|(_, start)| *start).collect();
        sort::few(&mut starts, |start| *start);
        // The start of each plane, and of its last tap.
        let mut planes: Vec<[isize; 2]> = Vec::new();
        for start in starts {
            let goes_on = |[_, last]: &&mut [isize; 2]| {
                let gap = start.abs_diff(*last);
                gap.is_multiple_of(step) && gap / step <= outputs
            };
            match planes.iter_mut().rev().find(goes_on) {
                Some([_, last]) => *last = start,
                None => planes.push([start; 2]),
            }
        }
        let reach = planes.iter().map(|[first, last]| first.abs_diff(*last) / step).max().unwrap_or(0);
        let place = |(index, start): (usize, isize)| {
            let has = |[first, last]: &[isize; 2]| {
                (*first..=*last).contains(&start) && first.abs_diff(start).is_multiple_of(step)
            };
            let plane = planes.iter().position(has).expect("each start has a plane");
            Tap { index, plane, offset: planes[plane][0].abs_diff(start) / step }
        };
        let taps = taps.into_iter().map(place).collect();
        Axis { outputs, planes: planes.into_iter().map(|[first, _]| first).collect(), step, taps, reach }
    }
}
