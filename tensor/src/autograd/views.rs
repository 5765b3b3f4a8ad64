//! Views and recorded writes.
//!
//! A view shares memory with its base. A recorded write to the view changes the base, so the base gets a new node,
//! `CopySlices`: the gradient of the written part goes to the new values, the rest to the old base. A view whose memory
//! was written after it was made, through the base or through another view, gets a new node when it is used next,
//! `AsStridedBackward0`, that leads to the base as it is then.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error::{AutogradError, cpp_name};
use super::function::{attach_list, record_list};
use super::graph::{History, Leaf, Origin, ViewOf};
use super::mode::{is_grad_enabled, is_inference_mode_enabled};
use crate::dtype::Scalar;
use crate::error::{Result, TensorError};
use crate::operation::Operation;
use crate::ops::plain::{copy_in, fill, write};
use crate::shape::Layout;
use crate::tensor::Tensor;

static COPY_SLICES: Operation = Operation::new("copy_slices").node("CopySlices");
static AS_STRIDED: Operation = Operation::new("as_strided").node("AsStridedBackward0");

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
                self.set_history(strided_history(&view.base, self));
            }
            _ => {}
        }
    }

    /// Returns an error if the history of a view is lost: a recorded write to its memory is ambiguous.
    pub(crate) fn check_history(&self) -> Result<()> {
        match self.view_of() {
            Some(view) if view.origin != Origin::Recorded && view.is_behind(self) && self.has_history() => {
                Err(view.refused(self, true).into())
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if a recorded write to this view is ambiguous.
    pub(crate) fn check_recorded_write(&self) -> Result<()> {
        match self.view_of() {
            Some(view) if view.origin != Origin::Recorded => Err(view.refused(self, false).into()),
            _ => Ok(()),
        }
    }

    /// Records a write to a view in the history of its base. `new` has the new values, unless they are constant.
    #[track_caller]
    pub(crate) fn record_slice(&self, new: Option<&Tensor>) -> Result<()> {
        let Some(base) = self.base() else { return Ok(()) };
        let [whole, part] = [base, self].map(|tensor| *tensor.layout());
        let part = within(&whole, &part);
        let (device, is_rest_needed) = (new.map(Tensor::device), base.has_history());
        let inputs: Vec<&Tensor> = [base].into_iter().chain(new).collect();
        record_list(&COPY_SLICES, &inputs, base.clone(), move |grad| {
            if is_rest_needed && part.overlaps_itself() {
                return Err(TensorError::WriteOverlap.into());
            }
            let rest = copy_in(whole.at_start(), grad)?;
            let slice = rest.with_layout(part);
            let of_new = match device {
                Some(device) => Some(copy_in(Layout::contiguous(slice.sizes())?, &slice)?.to(device)?),
                None => None,
            };
            if is_rest_needed {
                fill(&slice, Scalar::Int(0))?;
            }
            Ok([rest].into_iter().chain(of_new).collect())
        })?;
        Ok(())
    }
}

/// The layout of a view in memory that begins with its base.
fn within(base: &Layout, view: &Layout) -> Layout {
    let mut part = view.at_start();
    part.offset = view.offset - base.offset;
    part
}

/// The history of a view as a strided part of its base.
fn strided_history(base: &Tensor, view: &Tensor) -> History {
    let whole = *base.layout();
    let part = within(&whole, view.layout());
    let backward = move |grad: &Tensor| {
        let sum = grad.uninit_with(whole.at_start(), grad.dtype())?;
        fill(&sum, Scalar::Int(0))?;
        add_to(&sum.with_layout(part), grad)?;
        Ok(vec![sum.as_new()])
    };
    // Recorded in any mode: the view was.
    attach_list(&AS_STRIDED, &[base], view.detach(), backward).last_history()
}

/// Adds a gradient to a part of zeros. Elements that share memory get the sum.
fn add_to(part: &Tensor, grad: &Tensor) -> Result<()> {
    if !part.layout().overlaps_itself() {
        return write(part, grad);
    }
    let repeated = (0..part.ndim()).find(|dim| part.strides()[*dim] == 0 && part.sizes()[*dim] > 1);
    if let Some(dim) = repeated {
        let dim = dim as i64;
        return add_to(&part.narrow(dim, 0, 1)?, &grad.sum_dims(&[dim], true)?);
    }
    // Windows that overlap: one after the other.
    let dim = (0..part.ndim()).filter(|dim| part.sizes()[*dim] > 1).min_by_key(|dim| part.sizes()[*dim]);
    let dim = dim.expect("a tensor that overlaps itself has several elements") as i64;
    for i in 0..part.size(dim)? as i64 {
        let (part, grad) = (part.select(dim, i)?, grad.select(dim, i)?);
        match part.layout().overlaps_itself() {
            true => add_to(&part, &grad)?,
            false => part.add_(&grad).map(drop)?,
        }
    }
    Ok(())
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
