//! Memory that a computing thread keeps between operations.

use std::cell::Cell;

use bytemuck::{Pod, Zeroable};

/// A unit of scratch memory, aligned to a cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct CacheLine([u8; 64]);

pub(super) type ScratchMemory = Cell<Vec<CacheLine>>;

pub(super) struct ThreadScratch {
    /// For the strips of a matrix product.
    pub(super) strips: ScratchMemory,
    /// For the parts of a convolution.
    pub(super) parts: ScratchMemory,
    /// Whether this is a helper that stays awake.
    pub(super) stays_awake: Cell<bool>,
}

thread_local! {
    pub(super) static THREAD: ThreadScratch = const {
        ThreadScratch { strips: Cell::new(Vec::new()), parts: Cell::new(Vec::new()), stays_awake: Cell::new(false) }
    };
}
