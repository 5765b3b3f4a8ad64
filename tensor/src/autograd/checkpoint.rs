//! Activation checkpointing (`torch.utils.checkpoint`): backward recomputes activations instead of saving them.

use crate::place::Place;
use std::mem;
use std::panic::Location;
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use super::error::AutogradError;
use super::graph::{History, Leaf, Meta};
use super::mode::is_recording;
use super::saved::{SavedList, SavedTensor, SavedTensors, SavedTensorsHooks};
use super::stand_ins;
use crate::amp;
use crate::device::Device;
use crate::error::Result;
use crate::gpu;
use crate::gpu::runtime::Cuda;
use crate::host_context::HostContext;
use crate::lock::lock;
use crate::random::{Mt19937, Philox};
use crate::scope;
use crate::tensor::Tensor;
use crate::thread::{Autocast, CurrentHooks, FullContext, Part, Restore, TensorContext, ThreadContext};

/// Runs `function` on `input` and saves only `input` for backward. `backward` runs the function again to recompute its
/// saved tensors (`torch.utils.checkpoint.checkpoint` with `use_reentrant=False`).
///
/// This trades a second forward pass for the memory of the activations. Gradients are bitwise equal: the second run
/// draws the same random numbers, on the CPU and on the input's device, and uses the same modes, autocast included.
/// Side effects occur twice, such as updates of batch norm statistics. The graph owns the function, so the function
/// must own or share its data.
///
/// ```
/// use std::sync::Arc;
/// use todevice::autograd::checkpoint;
/// use todevice::{Result, Tensor, nn, nn::Module};
///
/// let block = Arc::new(nn::Sequential::new((nn::Linear::new(8, 64)?, nn::ReLU, nn::Linear::new(64, 8)?)));
/// let x = Tensor::randn(&[32, 8])?;
/// let y = checkpoint({ let block = block.clone(); move |x| block.forward(x) }, &x)?;
/// y.square()?.mean()?.backward()?; // runs the block again
/// assert!(block.parameters()[0].grad().is_some());
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// `backward` returns an error if the second run saves tensors of a different number, size, dtype or device.
#[track_caller]
pub fn checkpoint<F>(function: F, input: &Tensor) -> Result<Tensor>
where
    F: Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
{
    if !is_recording() {
        return function(input);
    }
    let function = Arc::new(function);
    let again = {
        let (function, circumstances) = (function.clone(), SavedEnvironment::of(input)?);
        move |input: &Tensor| circumstances.recreate(|| function(input))
    };
    Checkpoint::new(input, scope::place_or(Location::caller()), Box::new(again)).forward(|| function(input))
}

/// A part of a forward pass whose nodes save nothing.
struct Checkpoint {
    /// Runs the part again on its input, under the conditions of the first run.
    again: Again,
    /// Saved like a node's tensors: inside another checkpoint, it is not kept.
    input: SavedTensors,
    requires_grad: bool,
    place: Place,
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
    fn new(input: &Tensor, place: Place, again: Again) -> Arc<Checkpoint> {
        Arc::new(Checkpoint {
            again,
            input: SavedTensors::new(SavedList::from_iter([SavedTensor::new(Some(input))])),
            requires_grad: input.requires_grad(),
            place,
            lists: Mutex::default(),
        })
    }

    /// Runs the function for the first time.
    fn forward<R>(self: Arc<Checkpoint>, function: impl FnOnce() -> R) -> R {
        let _left = enter_hooks(move |tensors| {
            let (checkpoint, list) = (self.clone(), self.note(&tensors));
            SavedTensors::Packed(Arc::new(move || checkpoint.take(list)))
        });
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
            input.set_history(History::Leaf(Leaf::of(&input)));
        }
        let lists = Arc::new(Mutex::new(Vec::new()));
        let _left = enter_hooks({
            let lists = lists.clone();
            move |tensors| {
                lock(&lists).push(tensors.iter().map(SavedTensor::detached).collect());
                SavedTensors::Saved(tensors)
            }
        });
        (self.again)(&input)?;
        Ok(mem::take(&mut *lock(&lists)))
    }
}

/// Packs this thread's saved tensors with `pack` until the guard is dropped.
fn enter_hooks(pack: impl Fn(SavedList) -> SavedTensors + Send + Sync + 'static) -> Restore<CurrentHooks> {
    CurrentHooks(Some(Arc::new(SavedTensorsHooks { pack: Box::new(pack) }))).enter()
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

struct SavedEnvironment {
    context: FullContext,
    host: Mt19937,
    gpu: Option<(Arc<Cuda>, usize, Philox)>,
}

impl SavedEnvironment {
    /// Captures the current state. Only the input's GPU has its generator saved.
    fn of(input: &Tensor) -> Result<SavedEnvironment> {
        let gpu = match input.device() {
            Device::Cpu => None,
            Device::Cuda { index, .. } => {
                let cuda = gpu::of(input.device())?;
                let philox = *cuda.generator(index);
                Some((cuda, index, philox))
            }
        };
        let FullContext { gpu: of_gpu, own } = FullContext::current();
        let own = TensorContext {
            stand_ins: stand_ins::copy(&own.stand_ins),
            autocast: Autocast { weights: None, ..own.autocast },
            ..own
        };
        let host = HostContext::default_generator().lock().clone();
        Ok(SavedEnvironment { context: FullContext { gpu: of_gpu, own }, host, gpu })
    }

    fn recreate<R>(&self, scope: impl FnOnce() -> R) -> R {
        let _left = self.context_again().enter();
        let _random = Random::replaced(self);
        scope()
    }

    /// Returns the context of the first run, except for the parts that belong to the current backward pass.
    fn context_again(&self) -> FullContext {
        let (then, now) = (self.context.clone(), FullContext::current());
        let ThreadContext { scope, is_alone, .. } = now.gpu;
        let TensorContext { ranges, saved_tensors_hooks, autocast, .. } = now.own;
        FullContext {
            gpu: ThreadContext { scope, is_alone, ..then.gpu },
            own: TensorContext {
                ranges,
                saved_tensors_hooks,
                autocast: amp::again(then.own.autocast, autocast),
                stand_ins: stand_ins::copy(&then.own.stand_ins),
                ..then.own
            },
        }
    }
}

/// Restores the generators after the second run, even during a panic.
struct Random<'a> {
    host: Mt19937,
    gpu: Option<(&'a Cuda, usize, Philox)>,
}

impl Random<'_> {
    fn replaced(by: &SavedEnvironment) -> Random<'_> {
        let host = mem::replace(&mut *HostContext::default_generator().lock(), by.host.clone());
        let gpu = by.gpu.as_ref().map(|(cuda, index, philox)| {
            (&**cuda, *index, mem::replace(&mut *cuda.generator(*index), *philox))
        });
        Random { host, gpu }
    }
}

impl Drop for Random<'_> {
    fn drop(&mut self) {
        mem::swap(&mut *HostContext::default_generator().lock(), &mut self.host);
        if let Some((cuda, index, philox)) = self.gpu {
            *cuda.generator(index) = philox;
        }
    }
}
