//! What a node keeps for its backward pass, and what it lets go of because a checkpoint computes it again.

use std::mem;
use std::panic::Location;
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use super::error::AutogradError;
use super::graph::{History, Meta};
use crate::error::Result;
use crate::lock::lock;
use crate::tensor::Tensor;
use crate::thread::{AroundCheckpoint, Context, OfThread, Part, Restore};

/// A tensor kept for backward, with the version of its memory at that time.
#[derive(Clone)]
pub(super) struct SavedTensor {
    pub(super) tensor: Option<Tensor>,
    version: u64,
    /// What made it, for the message if it was overwritten. The operation's own result is kept without
    /// its history, which would hold the node that holds it.
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

    /// The result of an operation, by the name of its node.
    pub(super) fn output(tensor: &Tensor, made_by: &'static str) -> SavedTensor {
        SavedTensor { made_by: Some(made_by), ..SavedTensor::new(Some(tensor)) }
    }

    /// The same without the graph that it was computed by.
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

/// What one node keeps.
pub(super) type Kept = SmallVec<[SavedTensor; 2]>;

/// The saved tensors of a node, until backward frees them.
#[derive(Clone)]
pub(super) enum SavedTensors {
    Kept(Kept),
    /// It was within a checkpoint, and its tensors are this list of those that are computed again.
    Dropped(Arc<Checkpoint>, usize),
    Freed,
}

impl SavedTensors {
    /// Keeps them, or lets a checkpoint that is under way on this thread do what it does.
    pub(super) fn new(tensors: Kept) -> SavedTensors {
        if tensors.is_empty() {
            return SavedTensors::Kept(tensors);
        }
        match Around::current().as_deref() {
            Some(Around::Forward(checkpoint)) => {
                let list = checkpoint.note(&tensors);
                return SavedTensors::Dropped(checkpoint.clone(), list);
            }
            Some(Around::Again(lists)) => {
                lock(lists).push(tensors.iter().map(SavedTensor::detached).collect());
            }
            None => {}
        }
        SavedTensors::Kept(tensors)
    }

    /// The tensors, computed again if that is what it takes.
    pub(super) fn tensors(self) -> Result<Kept> {
        match self {
            SavedTensors::Kept(tensors) => Ok(tensors),
            SavedTensors::Dropped(checkpoint, list) => checkpoint.take(list),
            SavedTensors::Freed => Err(AutogradError::BackwardTwice.into()),
        }
    }

    /// Frees them. A node that saved nothing can be walked again, so it stays as it is.
    pub(super) fn free(&mut self) {
        if !matches!(self, SavedTensors::Kept(tensors) if tensors.is_empty()) {
            *self = SavedTensors::Freed;
        }
    }
}

/// Which checkpoint's function is running on a thread, and for which time.
enum Around {
    /// For the first time: nothing is kept.
    Forward(Arc<Checkpoint>),
    /// Once more: what its nodes save, list by list.
    Again(Mutex<Vec<Kept>>),
}

impl Around {
    fn current() -> Option<Arc<Around>> {
        Context::read(|context| context.checkpoint.0.clone())?.downcast().ok()
    }

    fn enter(self: Arc<Around>) -> Restore<AroundCheckpoint> {
        AroundCheckpoint(Some(self)).enter()
    }
}

/// A part of a forward pass whose nodes keep nothing.
pub(super) struct Checkpoint {
    /// Runs the part on its input, as it ran the first time.
    again: Again,
    /// Kept as a node keeps its tensors: within another checkpoint, not at all.
    input: SavedTensors,
    requires_grad: bool,
    place: &'static Location<'static>,
    lists: Mutex<Lists>,
}

type Again = Box<dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync>;

/// What the nodes of a checkpoint save, node by node.
#[derive(Default)]
struct Lists {
    /// The first time: what these tensors were.
    first: Vec<SmallVec<[Option<Meta>; 2]>>,
    /// When they were computed again: each list until its node takes it.
    again: Vec<Option<Kept>>,
}

impl Checkpoint {
    pub(super) fn new(input: &Tensor, place: &'static Location<'static>, again: Again) -> Arc<Checkpoint> {
        Arc::new(Checkpoint {
            again,
            input: SavedTensors::new(Kept::from_iter([SavedTensor::new(Some(input))])),
            requires_grad: input.requires_grad(),
            place,
            lists: Mutex::default(),
        })
    }

    /// Runs the function for the first time.
    pub(super) fn forward<R>(self: Arc<Checkpoint>, function: impl FnOnce() -> R) -> R {
        let _left = Arc::new(Around::Forward(self)).enter();
        function()
    }

    /// Notes what a node would keep.
    fn note(&self, tensors: &Kept) -> usize {
        let first = &mut lock(&self.lists).first;
        first.push(meta(tensors));
        first.len() - 1
    }

    /// The tensors of a node. The first that asks has all of them computed again.
    fn take(&self, list: usize) -> Result<Kept> {
        let found = |lists: &mut Lists| lists.again.get_mut(list).and_then(Option::take);
        if let Some(tensors) = found(&mut lock(&self.lists)) {
            return Ok(tensors);
        }
        let again = self.compute_again()?;
        let mut lists = lock(&self.lists);
        check_alike(&lists.first, &again)?;
        // What a backward pass before did not come by to take is dropped after the lock.
        let _old = mem::replace(&mut lists.again, again.into_iter().map(Some).collect());
        let tensors = found(&mut lists).unwrap_or_default();
        drop(lists);
        Ok(tensors)
    }

    fn compute_again(&self) -> Result<Vec<Kept>> {
        let kept = self.input.clone().tensors()?;
        let Some(input) = kept.first().map(|input| input.unpack(self.place)).transpose()?.flatten() else {
            return Ok(Vec::new());
        };
        // The graph of the second time ends here, and goes when its lists are there.
        let input = input.detached_from(input.place());
        if self.requires_grad {
            input.set_history(History::Leaf(Default::default()));
        }
        let around = Arc::new(Around::Again(Mutex::default()));
        let left = around.clone().enter();
        (self.again)(&input)?;
        drop(left);
        match &*around {
            Around::Again(lists) => Ok(mem::take(&mut *lock(lists))),
            Around::Forward(_) => Ok(Vec::new()),
        }
    }
}

fn meta(tensors: &Kept) -> SmallVec<[Option<Meta>; 2]> {
    tensors.iter().map(|saved| saved.tensor.as_ref().map(Meta::of)).collect()
}

/// An error unless what was computed again is what was there the first time, values aside.
fn check_alike(first: &[SmallVec<[Option<Meta>; 2]>], again: &[Kept]) -> Result<()> {
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
