//! Automatic differentiation: a graph recorded while operations run, walked backwards by `backward`.
//!
//! - `function`: what an operation has to say for itself, forward beside backward.
//! - `saved`: what it keeps for its backward pass.
//! - `graph`: the nodes that are recorded, and leaves, where gradients end up.
//! - `gradient`: what a tensor has of it.
//! - `engine`: the walk.
//! - `mode`: `no_grad`, `enable_grad` and `inference_mode`.
//! - `reach`: which leaves a result was made from.
//! - `stand_ins`: other tensors in the place of a module's, for a while.
//! - `checkpoint`: computing again what was not kept.

mod checkpoint;
mod engine;
pub(crate) mod error;
mod function;
mod gradient;
mod graph;
mod mode;
mod reach;
mod saved;
pub(crate) mod stand_ins;

#[doc(hidden)]
pub use crate::operation::Cast;
pub use crate::operation::Operation;
pub use checkpoint::checkpoint;
pub use engine::{BackwardOptions, GradOptions, backward, grad};
pub use function::{Context, Function, Saved};
pub use mode::{enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad};

pub(crate) use function::{record, record_list};
pub(crate) use graph::History;
pub(crate) use mode::is_recording;
pub(crate) use reach::Reach;
