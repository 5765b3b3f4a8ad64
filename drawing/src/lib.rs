//! The pictures of the course, as SVG for a page, which shows them in its own colours, and some also as text for a
//! terminal. The tensor crate records the data and draws nothing.
//!
//! | picture | shows |
//! | --- | --- |
//! | [`Timeline`] | the work of the GPUs over time: a [`Trace`](todevice::trace::Trace) |
//! | [`MemoryMap`] | the layout of a GPU's memory: [`memory_snapshot`](todevice::cuda::memory_snapshot) |
//! | [`smi::table`] | the table of `nvidia-smi`: [`monitor::gpu`](todevice::monitor::gpu) |
//! | [`Comparison`] | several recordings, one below the other |
//! | [`MemoryHistory`] | the layout of a GPU's memory over time, change by change |
//! | [`Filling`] | how much of a GPU's memory each owner holds over time |
//! | [`placement::picture`] | which tensor is in which memory |
//! | [`link::picture`], [`quadrants::picture`], [`ladder::picture`], [`bits::picture`], [`algorithms::picture`], [`orders::picture`], [`memory_formats::picture`] | one idea of a chapter each |
//! | [`moments::picture`] | a reader's results from all chapters |
//! | [`chart`] | numbers |
//!
//! A [`Drawing`] is a picture in all its forms: for a page, for a phone, and for a terminal. All drawings are
//! written as SVG by `svg.rs`, in the colours of `colour.rs`.

pub mod algorithms;
pub mod bits;
pub mod chart;
#[cfg(test)]
mod checks;
mod colour;
mod drawing;
mod filling;
pub mod ladder;
pub mod link;
pub mod memory_formats;
mod memory_map;
pub mod moments;
pub mod orders;
pub mod placement;
pub mod printable;
pub mod quadrants;
mod role;
pub mod smi;
mod svg;
mod timeline;
pub mod words;

pub use drawing::Drawing;
pub use filling::{Filling, Owner};
pub use memory_map::{MemoryHistory, MemoryMap};
pub use role::Role;
pub use timeline::{Comparison, Recorded, Strip, Timeline, painted};
