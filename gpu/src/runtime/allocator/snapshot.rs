//! The contents of device memory (`torch.cuda.memory_snapshot`): segments, blocks, and their holders.

use crate::base::place::Place;
use std::fmt;

use super::{Allocator, Block, BlockId, Contents, Pool};
use crate::contract::driver::{DevicePtr, StreamId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// Held by a tensor, or by a library such as cuBLAS.
    ActiveAllocated,
    /// Freed, but work on other streams may still use it.
    ActiveAwaitingFree,
    Inactive,
}

impl fmt::Display for BlockState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            BlockState::ActiveAllocated => "active_allocated",
            BlockState::ActiveAwaitingFree => "active_awaiting_free",
            BlockState::Inactive => "inactive",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    pub pointer: DevicePtr,
    pub size: u64,
    pub stream: StreamId,
    pub pool: Pool,
    /// Ordered by address, without gaps.
    pub blocks: Vec<BlockInfo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    pub pointer: DevicePtr,
    pub size: u64,
    pub state: BlockState,
    /// 0 if it is free.
    pub requested_size: u64,
    /// The line that requested it. `None` if it is free.
    pub place: Option<Place>,
}

impl Allocator {
    /// Lists all segments by address.
    pub fn snapshot(&self) -> impl Iterator<Item = SegmentInfo> {
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
            state: match contents {
                Some(Contents { events: 0, .. }) => BlockState::ActiveAllocated,
                Some(_) => BlockState::ActiveAwaitingFree,
                None => BlockState::Inactive,
            },
            requested_size: contents.map_or(0, |contents| contents.requested),
            place: contents.map(|contents| contents.place),
        }
    }
}
