//! Saved tensors: where a node keeps what its backward needs, and until when.
//!
//! They are in `Node::saved`. Backward frees them as soon as the node has run, unless the graph is retained; a second
//! backward then fails at the first node that saved something, with `SavedTensors::Freed`. They are also freed with the
//! node, when the last tensor that leads to it is dropped. A saved tensor remembers its version, so that a write in
//! place is noticed.
//!
//! A checkpoint (`torch.utils.checkpoint`) saves only its input: it runs its function once more when the tensors are
//! needed.
//!
//! Not here: who asks for them. Next in the spine: `autograd/engine.rs`.

use std::mem;
use std::panic::Location;
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use super::error::AutogradError;
use super::graph::{History, Meta};
use crate::error::Result;
use crate::lock::lock;
use crate::tensor::Tensor;
use crate::thread::{CurrentCheckpoint, OfThread, Part, Restore, TensorContext};

/// A tensor saved for backward, with the version of its memory at that time.
#[derive(Clone)]
pub(super) struct SavedTensor {
    pub(super) tensor: Option<Tensor>,
    version: u64,
    /// The operation that made it, for the error message if it is overwritten. An operation's own result is kept
    /// without its history, which would create a reference cycle with the node.
    made_by: Option<&'static str>,
}

impl SavedTensor {
    pub(super) fn new(tensor: Option<&Tensor>) -> SavedTensor {
        SavedTensor {
            tensor: tensor.cloned(),
            version: tensor.map_or(0, Tensor::version),
            made_by: tensor.and_then(Tensor::grad_fn),
        }
    }

    /// Saves an operation's own result, with the name of its node.
    pub(super) fn output(tensor: &Tensor, made_by: &'static str) -> SavedTensor {
        SavedTensor { made_by: Some(made_by), ..SavedTensor::new(Some(tensor)) }
    }

    /// The same without the graph that computed it.
    fn detached(&self) -> SavedTensor {
        let tensor = self.tensor.as_ref().map(|tensor| tensor.detached_from(tensor.place()));
        SavedTensor { tensor, ..self.clone() }
    }

    pub(super) fn unpack(&self, place: &'static Location<'static>) -> Result<Option<Tensor>> {
        let Some(tensor) = &self.tensor else { return Ok(None) };
        if tensor.version() != self.version {
            return Err(AutogradError::ModifiedInPlace {
                tensor: (tensor.device().device_type(), tensor.dtype()),
                sizes: tensor.sizes().to_vec(),
                output_of: self.made_by,
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
    /// The node ran in a checkpoint. Backward takes its tensors from the list with this index of the second run.
    Recomputed(Arc<Checkpoint>, usize),
    Freed,
}

impl SavedTensors {
    /// Keeps the tensors, or hands them to the checkpoint that is running on this thread.
    pub(super) fn new(tensors: SavedList) -> SavedTensors {
        if tensors.is_empty() {
            return SavedTensors::Saved(tensors);
        }
        match CheckpointRun::current().as_deref() {
            Some(CheckpointRun::Forward(checkpoint)) => {
                let list = checkpoint.note(&tensors);
                return SavedTensors::Recomputed(checkpoint.clone(), list);
            }
            Some(CheckpointRun::Again(lists)) => {
                lock(lists).push(tensors.iter().map(SavedTensor::detached).collect());
            }
            None => {}
        }
        SavedTensors::Saved(tensors)
    }

    /// Returns the tensors, recomputed if necessary.
    // ANCHOR: saved
    pub(super) fn tensors(self) -> Result<SavedList> {
        match self {
            SavedTensors::Saved(tensors) => Ok(tensors),
            SavedTensors::Recomputed(checkpoint, list) => checkpoint.take(list),
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

/// A run of a checkpoint on a thread: its first, or the recomputation.
enum CheckpointRun {
    /// For the first time: nothing is kept.
    Forward(Arc<Checkpoint>),
    /// Once more: what its nodes save, list by list.
    Again(Mutex<Vec<SavedList>>),
}

impl CheckpointRun {
    fn current() -> Option<Arc<CheckpointRun>> {
        TensorContext::read(|context| context.checkpoint.0.clone())?.downcast().ok()
    }

    fn enter(self: Arc<CheckpointRun>) -> Restore<CurrentCheckpoint> {
        CurrentCheckpoint(Some(self)).enter()
    }
}

/// A part of a forward pass whose nodes save nothing.
pub(super) struct Checkpoint {
    /// Runs the part again on its input, under the conditions of the first run.
    again: Again,
    /// Saved like a node's tensors: inside another checkpoint, it is not kept.
    input: SavedTensors,
    requires_grad: bool,
    place: &'static Location<'static>,
    lists: Mutex<Lists>,
}

type Again = Box<dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync>;

/// The tensors saved by a checkpoint's nodes, node by node.
#[derive(Default)]
struct Lists {
    /// From the first run: only the tensors' properties.
    first: Vec<SmallVec<[Option<Meta>; 2]>>,
    /// From the second run: each list until its node takes it.
    again: Vec<Option<SavedList>>,
}

impl Checkpoint {
    pub(super) fn new(input: &Tensor, place: &'static Location<'static>, again: Again) -> Arc<Checkpoint> {
        Arc::new(Checkpoint {
            again,
            input: SavedTensors::new(SavedList::from_iter([SavedTensor::new(Some(input))])),
            requires_grad: input.requires_grad(),
            place,
            lists: Mutex::default(),
        })
    }

    /// Runs the function for the first time.
    pub(super) fn forward<R>(self: Arc<Checkpoint>, function: impl FnOnce() -> R) -> R {
        let _left = Arc::new(CheckpointRun::Forward(self)).enter();
        function()
    }

    /// Records the properties of the tensors a node would keep, and returns the index of their list.
    fn note(&self, tensors: &SavedList) -> usize {
        let first = &mut lock(&self.lists).first;
        first.push(meta(tensors));
        first.len() - 1
    }

    /// Returns a node's tensors. The first call recomputes those of all nodes.
    fn take(&self, list: usize) -> Result<SavedList> {
        let found = |lists: &mut Lists| lists.again.get_mut(list).and_then(Option::take);
        if let Some(tensors) = found(&mut lock(&self.lists)) {
            return Ok(tensors);
        }
        let again = self.compute_again()?;
        let mut lists = lock(&self.lists);
        check_alike(&lists.first, &again)?;
        // Lists that an earlier backward pass did not take are dropped after the lock is released.
        let _old = mem::replace(&mut lists.again, again.into_iter().map(Some).collect());
        let tensors = found(&mut lists).unwrap_or_default();
        drop(lists);
        Ok(tensors)
    }

    fn compute_again(&self) -> Result<Vec<SavedList>> {
        let kept = self.input.clone().tensors()?;
        let Some(input) = kept.first().map(|input| input.unpack(self.place)).transpose()?.flatten() else {
            return Ok(Vec::new());
        };
        // The graph of the second run ends at this input, and is freed once its lists exist.
        let input = input.detached_from(input.place());
        if self.requires_grad {
            input.set_history(History::Leaf(Default::default()));
        }
        let around = Arc::new(CheckpointRun::Again(Mutex::default()));
        let left = around.clone().enter();
        (self.again)(&input)?;
        drop(left);
        match &*around {
            CheckpointRun::Again(lists) => Ok(mem::take(&mut *lock(lists))),
            CheckpointRun::Forward(_) => Ok(Vec::new()),
        }
    }
}

fn meta(tensors: &SavedList) -> SmallVec<[Option<Meta>; 2]> {
    tensors.iter().map(|saved| saved.tensor.as_ref().map(Meta::of)).collect()
}

/// Returns an error unless the recomputed tensors match those of the first run, apart from their values.
fn check_alike(first: &[SmallVec<[Option<Meta>; 2]>], again: &[SavedList]) -> Result<()> {
    let again: Vec<_> = again.iter().map(meta).collect();
    let (count, count_again) = (first.concat().len(), again.concat().len());
    if first.len() != again.len() || count != count_again {
        return Err(AutogradError::CheckpointCount { first: count, again: count_again }.into());
    }
    let pairs = first.concat().into_iter().zip(again.concat()).enumerate();
    let differ: Vec<String> = pairs
        .filter(|(_, (first, again))| first != again)
        .map(|(index, (first, again))| {
            let [first, again] =
                [first, again].map(|meta| meta.map_or("None".to_owned(), |meta| meta.to_string()));
            format!("tensor at position {index}:\nsaved metadata: {first}\nrecomputed metadata: {again}\n")
        })
        .collect();
    match differ.is_empty() {
        true => Ok(()),
        false => Err(AutogradError::CheckpointMeta { tensors: differ.concat() }.into()),
    }
}
