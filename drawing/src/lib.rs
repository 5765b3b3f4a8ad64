//! The pictures of the course, as SVG for a page, which shows it in its own colours, and some as text for a terminal. The tensor
//! crate records what there is to draw, and draws nothing.
//!
//! | picture | of |
//! | --- | --- |
//! | [`Timeline`] | what the GPUs did, and when: a [`Trace`](todevice::trace::Trace) |
//! | [`MemoryMap`] | what lies where in a GPU's memory: [`memory_snapshot`](todevice::cuda::memory_snapshot) |
//! | [`smi::table`] | what `nvidia-smi` says: [`monitor::gpu`](todevice::monitor::gpu) |
//! | [`placement::picture`] | which tensor lives where |
//! | [`chart`] | numbers |
//!
//! All of them write SVG with `svg.rs`, in the colours of `colour.rs`.

pub mod chart;
mod colour;
mod memory_map;
pub mod placement;
mod role;
pub mod smi;
mod svg;
mod timeline;

pub use memory_map::MemoryMap;
pub use role::Role;
pub use timeline::{Strip, Timeline, painted};
