//! Automatic differentiation: operations record a graph, and `backward` walks it in reverse.
//!
//! - `function`: differentiable operations, forward beside backward.
//! - `saved`: saved tensors.
//! - `graph`: nodes, edges and leaves.
//! - `gradient`: the autograd methods of tensors.
//! - `engine`: the backward pass.
//! - `foreign`: operations and hooks of an interpreter.
//! - `mode`: `no_grad`, `enable_grad` and `inference_mode`.
//! - `reach`: the leaves behind a result.
//! - `stand_ins`: temporary substitutes for a module's tensors.
//! - `views`, `strided`: the history of views whose memory was written, and its gradient.
//! - `checkpoint`: recomputes activations instead of saving them.
//! - `gradcheck`: compares gradients with finite differences.

mod checkpoint;
mod engine;
pub(crate) mod error;
pub(crate) mod foreign;
mod function;
pub(crate) mod gradcheck;
mod gradient;
mod graph;
mod mode;
mod reach;
mod saved;
pub(crate) mod stand_ins;
mod strided;
mod views;

#[doc(hidden)]
pub use crate::operation::CastPolicy;
pub use crate::operation::Operation;
pub use checkpoint::checkpoint;
pub use engine::{BackwardOptions, GradOptions, backward, grad};
pub use function::{Context, Function, Saved};
pub use gradcheck::{GradcheckOptions, gradcheck};
pub use mode::{enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad};

pub(crate) use function::{record, record_list};
pub(crate) use graph::{History, ViewOf};
pub(crate) use mode::{Mode, is_recording};
pub(crate) use reach::Reach;
