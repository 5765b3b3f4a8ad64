use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::error::PoolError;
use crate::error::Result;
use crate::ops::row::block;

block! {
    /// The windows along one dimension. The numbers are checked, so nothing overflows.
    pub(in crate::ops) struct Windows {
        pub(in crate::ops) kernel: i64,
        pub(in crate::ops) stride: i64,
        /// The elements by which a window may extend beyond either edge.
        pub(in crate::ops) padding: i64,
        pub(in crate::ops) dilation: i64,
        pub(in crate::ops) size: i64,
        pub(in crate::ops) count: i64,
    }
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(in crate::ops) struct Grid {
    pub(in crate::ops) down: Windows,
    pub(in crate::ops) across: Windows,
}

impl Grid {
    /// The height and width of the plane, a window, and the grid.
    pub(in crate::ops) fn extents(&self) -> [[usize; 2]; 3] {
        let Grid { down, across } = self;
        [[down.size, across.size], [down.kernel, across.kernel], [down.count, across.count]]
            .map(|sizes| sizes.map(|size| size as usize))
    }
}

impl Windows {
    /// Creates as many windows as fit, and with `ceil_mode` one more that extends beyond the end.
    pub(in crate::ops) fn new(
        size: usize,
        [kernel, stride, padding, dilation]: [usize; 4],
        ceil_mode: bool,
    ) -> Result<Windows> {
        let number = |what: &str, number: usize| match i32::try_from(number) {
            Ok(number) => Ok(i64::from(number)),
            Err(_) => Err(PoolError::IntegerOutOfRange { what: format!("{what} {number} is not allowed") }),
        };
        let (kernel, stride) = (number("a kernel size of", kernel)?, number("a stride of", stride)?);
        let (padding, dilation) = (number("a padding of", padding)?, number("a dilation of", dilation)?);
        let size = number("an image's height or width of", size)?;
        if stride == 0 {
            return Err(PoolError::Stride.into());
        }
        if padding > ((kernel - 1) * dilation + 1) / 2 {
            return Err(PoolError::Padding { padding, kernel, dilation }.into());
        }
        let room = size + 2 * padding - dilation * (kernel - 1) - 1;
        let mut count = (room + if ceil_mode { stride - 1 } else { 0 }).div_euclid(stride) + 1;
        if ceil_mode && (count - 1) * stride >= size + padding {
            count -= 1;
        }
        Ok(Windows { kernel, stride, padding, dilation, size, count })
    }

    /// The start of window `o`, which may be negative.
    #[inline(always)]
    pub(in crate::ops) fn start(&self, o: usize) -> i64 {
        o as i64 * self.stride - self.padding
    }

    /// The elements of window `o`, for dilation 1.
    #[inline(always)]
    pub(in crate::ops) fn elements(&self, o: usize) -> Range<usize> {
        let (start, end) = (self.start(o), self.start(o) + self.kernel);
        start.max(0) as usize..end.min(self.size).max(0) as usize
    }

    pub(in crate::ops) fn overlap(&self) -> bool {
        self.stride <= (self.kernel - 1) * self.dilation
    }

    /// The number of elements in window `o` with padding, but none beyond the padding.
    #[inline(always)]
    pub(in crate::ops) fn padded_elements(&self, o: usize) -> i64 {
        (self.start(o) + self.kernel).min(self.size + self.padding) - self.start(o)
    }

    /// The position of element `k` of window `o`, unless it is padding.
    #[inline(always)]
    pub(in crate::ops) fn element(&self, o: usize, k: i64) -> Option<usize> {
        let at = self.start(o) + k * self.dilation;
        (0..self.size).contains(&at).then_some(at as usize)
    }

    /// The window whose element `k` is at position `i`.
    pub(in crate::ops) fn over(&self, i: usize, k: i64) -> Option<usize> {
        let start = i as i64 + self.padding - k * self.dilation;
        let is_one = start >= 0 && start % self.stride == 0 && start / self.stride < self.count;
        is_one.then_some((start / self.stride) as usize)
    }

    /// The windows whose element `k` is not padding, and the position of that element in the first.
    #[inline(always)]
    pub(in crate::ops) fn inside(&self, k: i64) -> (Range<usize>, usize) {
        let at = k * self.dilation - self.padding;
        let from = ((-at).max(0) + self.stride - 1) / self.stride;
        let to = if at < self.size { ((self.size - 1 - at) / self.stride + 1).min(self.count) } else { 0 };
        match from < to {
            true => (from as usize..to as usize, (at + from * self.stride) as usize),
            false => (0..0, 0),
        }
    }
}
