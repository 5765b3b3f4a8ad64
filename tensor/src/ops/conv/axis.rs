//! What a convolution reads along one dimension, brought into an order in which it reads without gaps.
//!
//! Output `o` takes, for tap `t` of the kernel, element `o · stride + t · dilation − padding` of the image. Of those
//! elements, the ones that are equal modulo the stride are put side by side, in a *plane* of their own. Then output
//! `o` finds what it takes at place `o + offset` of a plane, where both depend on the tap only: neighbouring outputs
//! read neighbouring places, whatever stride and dilation are.

/// One dimension: its outputs, planes and taps.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) outputs: usize,
    /// Where in the image the places of each plane begin, and how far apart they are. What is outside of the image
    /// is zero.
    pub(super) planes: Vec<isize>,
    pub(super) step: usize,
    pub(super) taps: Vec<Tap>,
    /// The largest offset.
    pub(super) reach: usize,
}

/// An element of the kernel along one dimension, and where its outputs begin to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tap {
    pub(super) index: usize,
    pub(super) plane: usize,
    pub(super) offset: usize,
}

impl Axis {
    /// The outputs of a convolution.
    pub(super) fn forward(
        outputs: usize,
        kernel: usize,
        stride: usize,
        padding: usize,
        dilation: usize,
    ) -> Axis {
        let mut planes = Vec::new();
        let mut tap = |index: usize| {
            let start = (index * dilation % stride) as isize - padding as isize;
            let plane = planes.iter().position(|plane| *plane == start).unwrap_or_else(|| {
                planes.push(start);
                planes.len() - 1
            });
            Tap { index, plane, offset: index * dilation / stride }
        };
        let taps: Vec<Tap> = (0..kernel).map(&mut tap).collect();
        let reach = (kernel - 1) * dilation / stride;
        Axis { outputs, planes, step: stride, taps, reach }
    }

    /// The elements `phase`, `phase + stride`, … of an image of `size`, as outputs of the convolution of the gradient
    /// that is their gradient. Element `phase + o · stride` was taken by output `o + (phase + padding − t · dilation)
    /// / stride`, if that is a whole number.
    pub(super) fn backward(
        size: usize,
        phase: usize,
        kernel: usize,
        stride: usize,
        padding: usize,
        dilation: usize,
    ) -> Axis {
        let offset = |index: usize| {
            let from = (phase + padding) as isize - (index * dilation) as isize;
            (from.rem_euclid(stride as isize) == 0).then(|| from.div_euclid(stride as isize))
        };
        let offsets = || (0..kernel).filter_map(|index| Some((index, offset(index)?)));
        let first = offsets().map(|(_, offset)| offset).min().unwrap_or(0);
        let tap = |(index, offset)| Tap { index, plane: 0, offset: (offset - first) as usize };
        let taps: Vec<Tap> = offsets().map(tap).collect();
        let reach = taps.iter().map(|tap| tap.offset).max().unwrap_or(0);
        Axis { outputs: (size - phase).div_ceil(stride), planes: vec![first], step: 1, taps, reach }
    }
}
