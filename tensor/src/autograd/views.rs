//! The history of views. `ops/written_view.rs` records the writes.
//!
//! A view shares memory with its base. A recorded write to the view changes the base, so the base gets a new node,
//! `CopySlices`. A view whose memory was written after it was made, through the base or through another view, gets a new
//! node when it is used next, `AsStridedBackward0`, that leads to the base as it is then.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error::{AutogradError, cpp_name};
use super::function::attach_part;
use super::graph::{History, Leaf, Origin, ViewOf};
use super::mode::{is_grad_enabled, is_inference_mode_enabled};
use crate::error::Result;
use crate::tensor::Tensor;

impl ViewOf {
    /// A view of `tensor` made now. A view of a view has the same base.
    pub(crate) fn new(tensor: &Tensor) -> ViewOf {
        let origin = match tensor.view_of().map_or(Origin::Recorded, |view| view.origin) {
            _ if is_inference_mode_enabled() => Origin::InferenceMode,
            _ if !is_grad_enabled() => Origin::NoGrad,
            origin => origin,
        };
        let base = tensor.base().unwrap_or(tensor).clone();
        ViewOf { base, origin, output: 0, version: AtomicU64::new(tensor.version()) }
    }

    fn is_behind(&self, view: &Tensor) -> bool {
        self.version.load(Ordering::Relaxed) != view.version()
    }

    /// The error of a recorded write to `view`, or, if `to_base`, to other tensors with its memory.
    fn refused(&self, view: &Tensor, to_base: bool) -> AutogradError {
        let node = match view.last_history() {
            History::Node(node) => Some(node.name()),
            History::Leaf(_) | History::None => None,
        };
        AutogradError::ViewWritten { text: view_written(self.origin, self.output, node, to_base) }
    }
}

impl Tensor {
    /// Marks a new view as made by a recorded operation. Its forward pass ran under `no_grad`.
    pub(super) fn of_recorded_view(mut self, input: &Tensor) -> Tensor {
        let origin = input.view_of().map_or(Origin::Recorded, |view| view.origin);
        if let Some(view) = self.view_of_mut() {
            view.origin = origin;
        }
        self
    }

    /// Marks a new view as one of several results of an operation.
    pub(crate) fn among_several(mut self, output: usize) -> Tensor {
        if let Some(view) = self.view_of_mut() {
            view.output = output;
            if is_grad_enabled() && !is_inference_mode_enabled() {
                view.origin = Origin::SeveralOutputs;
            }
        }
        self
    }

    /// Marks a new view as the result of a user's own function.
    pub(super) fn of_own_function(mut self) -> Tensor {
        if let Some(view) = self.view_of_mut() {
            view.origin = Origin::OwnFunction;
        }
        self
    }

    /// Gives a view a new history if its memory was written since its history was set.
    pub(crate) fn follow_writes(&self) {
        let Some(view) = self.view_of() else { return };
        if !self.has_history() {
            return;
        }
        let is_behind = view.is_behind(self);
        match self.last_history() {
            // The view was made under `no_grad`, or before the base required grad.
            History::None if !is_behind => self.set_history(History::Leaf(Leaf::of(self))),
            History::None | History::Node(_) if is_behind && view.origin == Origin::Recorded => {
                view.version.store(self.version(), Ordering::Relaxed);
                attach_part(self, &view.base);
            }
            _ => {}
        }
    }

    /// Returns an error if a view has lost its history: its memory was written, and PyTorch refuses to follow the write.
    pub(crate) fn check_history(&self) -> Result<()> {
        match self.view_of() {
            Some(view) if view.origin != Origin::Recorded && view.is_behind(self) && self.has_history() => {
                Err(view.refused(self, true).into())
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if PyTorch refuses to record a write to this view.
    pub(crate) fn check_recorded_write(&self) -> Result<()> {
        match self.view_of() {
            Some(view) if view.origin != Origin::Recorded => Err(view.refused(self, false).into()),
            _ => Ok(()),
        }
    }
}

/// PyTorch's message for a recorded write to a view, or to the memory of a view, that it cannot record.
fn view_written(origin: Origin, output: usize, node: Option<&str>, to_base: bool) -> String {
    let written = if to_base { "its base or another view of its base has been" } else { "is being" };
    let (mode, block) = match origin {
        Origin::InferenceMode => ("inference mode", "inference_mode"),
        _ => ("no_grad mode", "no_grad"),
    };
    let is_of_mode = matches!(origin, Origin::InferenceMode | Origin::NoGrad);
    let view = match node {
        Some(node) if is_of_mode => {
            format!("Output {output} of {} is a view of a view which was created in {mode}", cpp_name(node))
        }
        Some(node) => format!("Output {output} of {} is a view", cpp_name(node)),
        None => format!("A view was created in {mode}"),
    };
    let written_in = match (node, origin) {
        (Some(_), _) if !is_of_mode => "modified inplace.",
        (_, Origin::InferenceMode) => "modified inplace in normal mode.",
        _ => "modified inplace with grad mode enabled.",
    };
    let reason = match origin {
        Origin::SeveralOutputs => {
            " This view is the output of a function that returns multiple views. Such functions do not allow the output views to be \
             modified inplace. You should replace the inplace operation by an out-of-place one."
                .to_owned()
        }
        Origin::OwnFunction => {
            " This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to \
             handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect \
             gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
                .to_owned()
        }
        Origin::Recorded => String::new(),
        Origin::NoGrad | Origin::InferenceMode => format!(
            " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the \
             view and the inplace either both inside the {block} block (if you don't want the inplace to be tracked) or both \
             outside (if you want the inplace to be tracked)."
        ),
    };
    format!("{view} and {written} {written_in}{reason}")
}
