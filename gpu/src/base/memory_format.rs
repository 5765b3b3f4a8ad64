//! The memory formats of images: the order of their dimensions in memory, apart from the order of their sizes.

use crate::base::shape::{Layout, LayoutError, MemoryFormat, Result};

/// N, H, W, C as dimensions of N×C×H×W.
const CHANNELS_LAST: [usize; 4] = [0, 2, 3, 1];

impl Layout {
    /// The layout of a copy of this tensor in a memory format.
    pub fn in_format(&self, format: MemoryFormat) -> Result<Layout> {
        match format {
            MemoryFormat::Contiguous => Layout::contiguous(self.sizes()),
            MemoryFormat::ChannelsLast if self.ndim() == 4 => Layout::packed_in(self.sizes(), &CHANNELS_LAST),
            MemoryFormat::ChannelsLast => Err(LayoutError::ChannelsLastDims),
            MemoryFormat::Preserve => self.like(),
        }
    }

    /// Whether the elements lie in the order of a memory format, without gaps. Only images can be channels-last.
    pub fn is_in_format(&self, format: MemoryFormat) -> bool {
        match format {
            MemoryFormat::Contiguous => self.is_contiguous(),
            MemoryFormat::ChannelsLast => self.ndim() == 4 && self.is_packed_in(&CHANNELS_LAST),
            MemoryFormat::Preserve => true,
        }
    }

    /// The format that the strides suggest, even if there are gaps (`suggest_memory_format` in PyTorch). The rules are
    /// PyTorch's; they take ambiguous layouts, as of one channel or one pixel, for row-major where they can.
    pub fn suggested_format(&self) -> MemoryFormat {
        if self.ndim() == 4 && self.has_order(&CHANNELS_LAST) {
            MemoryFormat::ChannelsLast
        } else {
            MemoryFormat::Contiguous
        }
    }

    /// Whether the strides are those of [`packed_in`](Self::packed_in). Unlike a row-major tensor, an empty one must have them.
    fn is_packed_in(&self, order: &[usize]) -> bool {
        let mut expected = 1;
        for dim in order.iter().rev().copied().filter(|dim| self.sizes()[*dim] != 1) {
            if self.strides()[dim] != expected {
                return false;
            }
            expected *= self.sizes()[dim];
        }
        true
    }

    /// Whether the strides rise from the last of these dimensions to the first, with the channels, dimension 1, last.
    fn has_order(&self, order: &[usize]) -> bool {
        let (sizes, strides) = (self.sizes(), self.strides());
        let mut least = 0;
        for dim in order.iter().rev().copied() {
            if sizes[dim] == 0 || strides[1] == 0 || strides[dim] < least || (dim == 0 && least == strides[1])
            {
                return false;
            }
            least = strides[dim] * sizes[dim].max(1);
        }
        true
    }

    /// Like [`suggested_format`](Self::suggested_format), for the layout of a result that is joined from several
    /// tensors. Volumes of sizes N×C×D×H×W keep their channels last, too.
    pub fn joined(sizes: &[usize], parts: &[Layout]) -> Result<Layout> {
        let order: &[usize] = if sizes.len() == 5 { &[0, 2, 3, 4, 1] } else { &CHANNELS_LAST };
        let is_last = |part: &Layout| part.ndim() == order.len() && part.has_order(order);
        match !parts.is_empty() && parts.iter().all(is_last) {
            true => Layout::packed_in(sizes, order),
            false => Layout::contiguous(sizes),
        }
    }
}
