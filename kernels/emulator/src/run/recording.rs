//! The recorded steps of a warp.

use super::launch::Shape;
use crate::ir::LANES;
use crate::ir::debug::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// From 1.
    pub launch: u64,
    pub block: [u32; 3],
    pub warp: u32,
}

#[derive(Clone, Debug)]
pub struct Recording {
    pub wanted: Wanted,
    pub kernel: u32,
    pub shape: Shape,
    pub steps: Vec<Step>,
    pub end: End,
    pub regions: Vec<Region>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Returned,
    Limit,
    Error,
}

/// A statement executed by some lanes together.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The index in [`crate::ir::debug::Debug`].
    pub statement: u32,
    pub active: u32,
    pub event: Event,
    pub variables: Vec<Change>,
    /// Shared cells that this warp changed.
    pub shared: Vec<Cells>,
    /// Shared cells that other warps changed since the previous step.
    pub others: Vec<Cells>,
    pub accesses: Vec<Access>,
    pub exited: u32,
    /// Live lanes that are not active, and their next statement; `None` at the kernel's end.
    pub elsewhere: Vec<(u32, Option<u32>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    None,
    Barrier,
    Opened,
    /// The lanes wait for other lanes of their warp.
    Lanes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Out of scope, or a shared cell without a write.
    #[default]
    Nothing,
    Unwritten,
    Bits(u64),
}

/// New contents of a part of a variable, for its lanes in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub variable: u32,
    pub part: u32,
    pub lanes: u32,
    pub contents: Vec<Content>,
}

/// New contents of successive cells of a shared variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    pub variable: u32,
    pub first: u32,
    pub contents: Vec<Content>,
}

/// An access to global or shared memory, with each lane's address and the contents afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    pub kind: AccessKind,
    pub ty: crate::ir::Prim,
    pub lanes: u32,
    pub addresses: [u64; LANES],
    pub contents: [Content; LANES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Load,
    Store,
    Atomic,
}

/// Named memory: an array, or the allocation of a pointer parameter.
#[derive(Clone, Debug)]
pub struct Region {
    pub name: String,
    /// The address of the name, and the range of the memory.
    pub start: u64,
    pub range: std::ops::RangeInclusive<u64>,
    pub element_size: u64,
    pub kind: Option<Kind>,
}

impl Recording {
    /// The named memory that contains an address, and the address's distance from the name in bytes.
    pub fn region(&self, address: u64) -> Option<(&Region, i64)> {
        let inside = self.regions.iter().filter(|region| region.range.contains(&address));
        let before = inside.clone().filter(|region| region.start <= address);
        // If several pointers point into the memory, the nearest before the address, and the first of equal ones.
        let nearest = before.rev().max_by_key(|region| region.start);
        let region = nearest.or_else(|| inside.min_by_key(|region| region.start))?;
        Some((region, address.wrapping_sub(region.start) as i64))
    }

    pub fn warps(&self) -> u32 {
        self.shape.block.iter().product::<u32>().div_ceil(LANES as u32)
    }

    pub fn exists(&self) -> bool {
        self.wanted.block.iter().zip(self.shape.grid).all(|(at, count)| *at < count)
            && self.wanted.warp < self.warps()
    }

    pub fn lanes(&self) -> u32 {
        let threads = self.shape.block.iter().product::<u32>();
        threads.saturating_sub(self.wanted.warp * LANES as u32).min(LANES as u32)
    }
}
