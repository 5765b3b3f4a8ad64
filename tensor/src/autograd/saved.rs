//! Saved tensors: the tensors that a node keeps for its backward, and their lifetime.
//!
//! They are in `Node::saved`. Backward frees them as soon as the node has run, unless the graph is retained. A second
//! backward then finds `SavedTensors::Freed` at the first node that saved something, and fails with
//! `AutogradError::BackwardTwice`. They are also freed with the node, when the last tensor that leads to it is dropped.
//! A saved tensor remembers its version, so that a write in place is noticed.
//!
//! Saved-tensor hooks may take the tensors over. Those of a checkpoint (`torch.utils.checkpoint`) keep nothing, and
//! recompute the tensors when backward needs them.
//!
//! Not here: checkpoints, in `checkpoint.rs`, and the backward pass. Next in the spine: `autograd/engine.rs`.

use std::sync::Arc;

use smallvec::SmallVec;

use super::error::AutogradError;
use super::mode;
use crate::error::Result;
use crate::scope;
use crate::tensor::Tensor;

/// A tensor saved for backward, with the version of its memory at that time.
#[derive(Clone)]
pub(super) struct SavedTensor {
    pub(super) tensor: Option<Tensor>,
    version: u64,
    /// The operation that made it, for the error message if it is overwritten, where the tensor is kept without its
    /// history: an operation's own result would be in a reference cycle with the node.
    made_by: Option<&'static str>,
}

impl SavedTensor {
    pub(super) fn new(tensor: Option<&Tensor>) -> SavedTensor {
        SavedTensor { tensor: tensor.cloned(), version: tensor.map_or(0, Tensor::version), made_by: None }
    }

    /// Saves an operation's own result, with the name of its node.
    pub(super) fn output(tensor: &Tensor, made_by: &'static str) -> SavedTensor {
        SavedTensor { made_by: Some(made_by), ..SavedTensor::new(Some(tensor)) }
    }

    /// Whether it is a number of the program, as in `x * 2`, and no tensor. Only the operation and this hold it, where an
    /// interpreter would hold a tensor twice.
    pub(super) fn is_number(&self) -> bool {
        let is_number = |tensor: &Tensor| tensor.ndim() == 0 && !tensor.is_cuda() && tensor.handles() == 2;
        self.made_by.is_none() && self.tensor.as_ref().is_some_and(is_number)
    }

    /// The same tensor without the graph that computed it.
    pub(super) fn detached(&self) -> SavedTensor {
        let tensor = self.tensor.as_ref().map(|tensor| tensor.detached_from(tensor.place()));
        SavedTensor { tensor, made_by: self.made_by(), ..self.clone() }
    }

    /// The operation that made the present values.
    fn made_by(&self) -> Option<&'static str> {
        self.made_by.or_else(|| self.tensor.as_ref().and_then(Tensor::grad_fn))
    }

    pub(super) fn unpack(&self, place: scope::Place) -> Result<Option<Tensor>> {
        let Some(tensor) = &self.tensor else { return Ok(None) };
        if tensor.version() != self.version {
            return Err(AutogradError::ModifiedInPlace {
                tensor: (tensor.device().device_type(), tensor.dtype()),
                sizes: tensor.sizes().to_vec(),
                output_of: self.made_by(),
                version: tensor.version(),
                expected: self.version,
                place,
            }
            .into());
        }
        Ok(Some(tensor.clone()))
    }
}

/// The tensors that one node keeps.
pub(super) type SavedList = SmallVec<[SavedTensor; 2]>;

/// The saved tensors of a node, until backward frees them.
#[derive(Clone)]
pub(super) enum SavedTensors {
    Saved(SavedList),
    /// Hooks took the tensors. The function returns them, or others like them.
    Packed(Arc<dyn Fn() -> Result<SavedList> + Send + Sync>),
    Freed,
}

/// Takes over the tensors that a thread's nodes save (`torch.autograd.graph.saved_tensors_hooks`).
pub(super) struct SavedTensorsHooks {
    pub(super) pack: Box<dyn Fn(SavedList) -> SavedTensors + Send + Sync>,
}

impl SavedTensors {
    /// Keeps the tensors, or hands them to the hooks of this thread.
    pub(super) fn new(tensors: SavedList) -> SavedTensors {
        if tensors.is_empty() {
            return SavedTensors::Saved(tensors);
        }
        match mode::saved_tensors_hooks().and_then(|hooks| hooks.downcast::<SavedTensorsHooks>().ok()) {
            Some(hooks) => (hooks.pack)(tensors),
            None => SavedTensors::Saved(tensors),
        }
    }

    /// Returns the tensors, unpacked if necessary.
    // ANCHOR: saved
    pub(super) fn tensors(self) -> Result<SavedList> {
        match self {
            SavedTensors::Saved(tensors) => Ok(tensors),
            SavedTensors::Packed(unpack) => unpack(),
            SavedTensors::Freed => Err(AutogradError::BackwardTwice.into()),
        }
    }
    // ANCHOR_END: saved

    /// Frees the tensors. A node that saved nothing can be walked again, so it stays as it is.
    // ANCHOR: free
    pub(super) fn free(&mut self) {
        if !matches!(self, SavedTensors::Saved(tensors) if tensors.is_empty()) {
            *self = SavedTensors::Freed;
        }
    }
    // ANCHOR_END: free
}
