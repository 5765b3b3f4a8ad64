//! What a thread that computes keeps from one operation to the next.

use std::cell::Cell;

use bytemuck::{Pod, Zeroable};

/// The unit of memory to work in, which so begins on a cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct CacheLine([u8; 64]);

/// Memory to work in.
pub(super) type ScratchMemory = Cell<Vec<CacheLine>>;

pub(super) struct ThreadScratch {
    /// For the strips of a matrix product.
    pub(super) strips: ScratchMemory,
    /// For the parts of a convolution.
    pub(super) parts: ScratchMemory,
    /// Whether it is a helper that waits awake for something to do.
    pub(super) stays_awake: Cell<bool>,
}

thread_local! {
    pub(super) static THREAD: ThreadScratch = const {
        ThreadScratch { strips: Cell::new(Vec::new()), parts: Cell::new(Vec::new()), stays_awake: Cell::new(false) }
    };
}
