//! Splitting and merging of blocks, and the pools of free blocks.

use std::collections::BTreeSet;

use super::{Allocator, Block, BlockId, FreeBlock, Pool};
use crate::contract::driver::DevicePtr;

impl Allocator {
    /// Splits off the part of a newly found block beyond `size` bytes, if it is large enough. That part stays free.
    pub(super) fn cut_to_size(&mut self, block: BlockId, size: u64) {
        let found = self.blocks[block];
        let pool = found.pool;
        let remaining = found.size - size;
        if self.settings.should_split(pool, size, remaining) {
            let rest = self.insert(Block {
                pointer: DevicePtr(found.pointer.0 + size),
                size: remaining,
                previous: Some(block),
                ..found
            });
            if let Some(next) = found.next {
                self.blocks[next].previous = Some(rest);
            }
            self.blocks[block].next = Some(rest);
            self.blocks[block].size = size;
            self.add_to_pool(rest);
            if found.is_split() {
                self.stats.inactive_split_bytes.decrease(pool, size);
            } else {
                self.stats.inactive_split.increase(pool, 1);
                self.stats.inactive_split_bytes.increase(pool, remaining);
            }
        } else if found.is_split() {
            self.stats.inactive_split.decrease(pool, 1);
            self.stats.inactive_split_bytes.decrease(pool, found.size);
        }
    }

    /// Merges a newly freed block with its free neighbors, and adds the result to its pool.
    pub(super) fn return_to_pool(&mut self, block: BlockId) {
        let Block { pool, previous, next, .. } = self.blocks[block];
        let previous = self.take_if_free(previous);
        let next = self.take_if_free(next);
        let merged = [previous, next].into_iter().flatten();
        let (blocks, bytes) =
            merged.fold((0, 0), |(blocks, bytes), block| (blocks + 1, bytes + self.blocks[block].size));

        if let Some(next) = next {
            self.absorb_next(block, next);
        }
        if let Some(previous) = previous {
            self.absorb_next(previous, block);
        }
        let whole = previous.unwrap_or(block);
        self.add_to_pool(whole);

        let (new_blocks, new_bytes) = match self.blocks[whole] {
            whole if whole.is_split() => (1, whole.size),
            _ => (0, 0),
        };
        self.stats.inactive_split.replace(pool, blocks, new_blocks);
        self.stats.inactive_split_bytes.replace(pool, bytes, new_bytes);
    }

    fn take_if_free(&mut self, neighbour: Option<BlockId>) -> Option<BlockId> {
        let neighbour = neighbour.filter(|&neighbour| self.blocks[neighbour].contents.is_none())?;
        self.remove_from_pool(neighbour);
        Some(neighbour)
    }

    /// Merges a block with the next one, so that the first block of a segment stays the first.
    fn absorb_next(&mut self, block: BlockId, next: BlockId) {
        let absorbed = self.blocks[next];
        self.blocks[block].size += absorbed.size;
        self.blocks[block].next = absorbed.next;
        if let Some(after) = absorbed.next {
            self.blocks[after].previous = Some(block);
        }
        self.vacant.push(next);
    }

    pub(super) fn insert(&mut self, block: Block) -> BlockId {
        match self.vacant.pop() {
            Some(vacant) => {
                self.blocks[vacant] = block;
                vacant
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() - 1
            }
        }
    }

    pub(super) fn free_blocks(&mut self, pool: Pool) -> &mut BTreeSet<FreeBlock> {
        match pool {
            Pool::Large => &mut self.large_blocks,
            Pool::Small => &mut self.small_blocks,
        }
    }

    pub(super) fn add_to_pool(&mut self, block: BlockId) {
        let Block { pointer, size, stream, pool, .. } = self.blocks[block];
        self.free_blocks(pool).insert(FreeBlock { stream: stream.number, size, pointer, block });
    }

    pub(super) fn remove_from_pool(&mut self, block: BlockId) {
        let Block { pointer, size, stream, pool, .. } = self.blocks[block];
        self.free_blocks(pool).remove(&FreeBlock { stream: stream.number, size, pointer, block });
    }
}
