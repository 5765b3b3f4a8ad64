//! What lies where (`torch.cuda.memory_snapshot`): every segment, its blocks, and who holds them.

use std::panic::Location;

use super::{Allocator, Block, BlockId, Pool};
use crate::cuda::driver::{DevicePtr, StreamId};

/// A segment as reports show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentInfo {
    pub(crate) pointer: DevicePtr,
    pub(crate) size: u64,
    pub(crate) stream: StreamId,
    pub(crate) pool: Pool,
    /// In the order of their addresses, without gaps.
    pub(crate) blocks: Vec<BlockInfo>,
}

/// A block as reports show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockInfo {
    pub(crate) pointer: DevicePtr,
    pub(crate) size: u64,
    pub(crate) allocated: bool,
    /// Bytes asked for; 0 if it is free.
    pub(crate) requested_size: u64,
    /// The line that asked; none if it is free.
    pub(crate) place: Option<&'static Location<'static>>,
}

impl Allocator {
    /// All segments with their blocks as they are now, in the order of their addresses.
    pub(crate) fn snapshot(&self) -> impl Iterator<Item = SegmentInfo> {
        self.segments.values().map(|&first| {
            let Block { pointer, stream, pool, .. } = self.blocks[first];
            let in_order = std::iter::successors(Some(first), |&block| self.blocks[block].next);
            let blocks: Vec<BlockInfo> = in_order.map(|block| self.block_info(block)).collect();
            let size = blocks.iter().map(|block| block.size).sum();
            SegmentInfo { pointer, size, stream, pool, blocks }
        })
    }

    fn block_info(&self, block: BlockId) -> BlockInfo {
        let Block { pointer, size, contents, .. } = self.blocks[block];
        BlockInfo {
            pointer,
            size,
            allocated: contents.is_some(),
            requested_size: contents.map_or(0, |contents| contents.requested),
            place: contents.map(|contents| contents.place),
        }
    }
}
