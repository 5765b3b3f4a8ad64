//! The backward pass: gradients flow from a result to the leaves, node by node, without recursion.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::Location;
use std::sync::{Arc, PoisonError};

use super::error::AutogradError;
use super::function::saved_tensors;
use super::graph::{Edge, History, Leaf, Meta, Node};
use super::mode::no_grad;
use crate::ambient::Ambient;
use crate::amp::without_autocast;
use crate::device::Device;
use crate::error::Result;
use crate::gpu::current_stream::{self as stream, StreamKey, Streams};
use crate::shape::broadcast;
use crate::tensor::Tensor;
use crate::{ops, scope};

/// The keyword arguments of `Tensor.backward`.
#[derive(Clone, Debug, Default)]
pub struct BackwardOptions {
    /// The gradient in the result itself; a scalar starts with 1.
    pub gradient: Option<Tensor>,
    /// Keeps the saved tensors, so that backward can run through the same graph again.
    pub retain_graph: bool,
}

/// The keyword arguments of `torch.autograd.grad`.
#[derive(Clone, Debug, Default)]
pub struct GradOptions {
    /// The gradient in the output itself; a scalar starts with 1.
    pub grad_output: Option<Tensor>,
    /// Keeps the saved tensors for another pass.
    pub retain_graph: bool,
    /// Answers `None` for an input the result does not depend on, instead of an error.
    pub allow_unused: bool,
}

impl Tensor {
    /// Computes the gradient of this scalar in every leaf of its graph and adds it to their `grad`s.
    ///
    /// The tensors saved for it are freed on the way, so memory falls and a second call is an error;
    /// [`backward_with`](Self::backward_with) can retain them.
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        self.backward_with(BackwardOptions::default())
    }

    /// `Tensor.backward(gradient=..., retain_graph=...)`.
    #[track_caller]
    pub fn backward_with(&self, options: BackwardOptions) -> Result<()> {
        let _scope = scope::on_behalf_of(Location::caller());
        let seed = seed_gradient(self, options.gradient)?;
        without_autocast(|| {
            no_grad(|| walk(self, seed, options.retain_graph, |leaf, grad| leaf.accumulate(grad)))
        })
    }
}

/// The gradients of `output` in `inputs`, without touching any `grad` (`torch.autograd.grad`).
///
/// The inputs must be leaves.
#[track_caller]
pub fn grad(output: &Tensor, inputs: &[&Tensor], options: GradOptions) -> Result<Vec<Option<Tensor>>> {
    let wanted: Vec<Arc<Leaf>> = inputs
        .iter()
        .map(|input| match input.history() {
            History::Leaf(leaf) => Ok(leaf),
            _ => Err(AutogradError::DoesNotRequireGrad.into()),
        })
        .collect::<Result<_>>()?;
    let _scope = scope::on_behalf_of(Location::caller());
    let mut grads: Vec<Option<Tensor>> = vec![None; inputs.len()];
    let seed = seed_gradient(output, options.grad_output)?;
    let keep = |leaf: &Leaf, grad: Tensor| {
        for (slot, _) in grads.iter_mut().zip(&wanted).filter(|(_, wanted)| std::ptr::eq(&***wanted, leaf)) {
            *slot = Some(grad.clone());
        }
        Ok(())
    };
    without_autocast(|| no_grad(|| walk(output, seed, options.retain_graph, keep)))?;
    if !options.allow_unused && grads.iter().any(Option::is_none) {
        return Err(AutogradError::UnusedInGraph.into());
    }
    Ok(grads)
}

/// The gradient to start from: the one given, or 1 for a scalar.
fn seed_gradient(root: &Tensor, given: Option<Tensor>) -> Result<Tensor> {
    root.check_history()?;
    if !root.requires_grad() {
        return Err(AutogradError::NoGraph.into());
    }
    match given {
        Some(grad) if grad.sizes() != root.sizes() => {
            let (grad, output) = (grad.sizes().to_vec(), root.sizes().to_vec());
            Err(AutogradError::GradientShape { grad, output }.into())
        }
        Some(grad) => on_device_of(root.device(), None, grad.detach().to(root.dtype())?),
        None if root.numel() != 1 => Err(AutogradError::ImplicitGradient.into()),
        None => no_grad(|| root.ones_like()),
    }
}

/// Walks the graph from the latest operation to the earliest, and gives each leaf the sum of its gradients.
///
/// A node runs when it is the latest one with a gradient pending. Everything that could still add to
/// its gradient was recorded after it, so that gradient is then complete.
///
/// A leaf is served when the last edge into it has been, and so one that is used several times gets one sum: what else
/// happens to its gradient (a hook, an average over several GPUs) need not wait for the end of the walk. A walk that fails
/// half way leaves the gradients that were complete by then, as PyTorch's does.
///
/// A node runs on the stream that its operation ran on. A gradient that goes to another stream is waited for
/// there; those of the leaves go to the streams that are current where backward was called.
#[track_caller]
fn walk(
    root: &Tensor,
    seed: Tensor,
    retain_graph: bool,
    mut at_leaf: impl FnMut(&Leaf, Tensor) -> Result<()>,
) -> Result<()> {
    let place = scope::here();
    let _scope = scope::on_behalf_of(place);
    Ambient::spend(|host| &host.backward);
    let root = root.history();
    let edges = edges_into_leaves(&root);
    let mut pending = Pending { caller: stream::snapshot(), edges, ..Pending::default() };
    pending.send(&root, seed)?;
    let mut serve = |pending: &mut Pending, to: &History| match pending.arrived(to) {
        Some((leaf, grad)) => {
            Ambient::spend(|host| &host.node);
            at_leaf(&leaf, grad)
        }
        None => Ok(()),
    };
    serve(&mut pending, &root)?;
    while let Some((_, (node, grad))) = pending.nodes.pop_last() {
        let stream = node.stream.map(stream::enter);
        let saved = saved_tensors(&node)?; // which may be computed again
        let scope = scope::operation(node.name(), place);
        Ambient::spend(|host| &host.node);
        let grads = node.step.backward(&node, &saved, &grad)?;
        drop((grad, saved, scope));
        if !retain_graph {
            node.saved.lock().unwrap_or_else(PoisonError::into_inner).free();
        }
        for (index, (edge, grad)) in node.edges.iter().zip(grads).enumerate() {
            if let Some(grad) = grad {
                pending.send(&edge.to, fit(grad, &node, index)?)?;
            }
        }
        drop(stream);
        node.edges.iter().try_for_each(|edge| serve(&mut pending, &edge.to))?;
    }
    // What is left has an edge from a node that no gradient has come to.
    pending.leaves.into_iter().flatten().try_for_each(|(leaf, grad)| {
        Ambient::spend(|host| &host.node);
        at_leaf(&leaf, grad)
    })
}

/// How many edges lead into each leaf, by its address, of those that a walk from here can take.
fn edges_into_leaves(root: &History) -> HashMap<*const Leaf, usize> {
    let (mut edges, mut seen, mut ahead) = (HashMap::new(), HashSet::new(), vec![root]);
    while let Some(to) = ahead.pop() {
        match to {
            History::Leaf(leaf) => *edges.entry(Arc::as_ptr(leaf)).or_insert(0) += 1,
            History::Node(node) if seen.insert(Arc::as_ptr(node)) => {
                ahead.extend(node.edges.iter().map(|edge| &edge.to));
            }
            History::Node(_) | History::None | History::Frozen(_) => {}
        }
    }
    edges
}

/// Gradients on their way: sums that more may still be added to.
#[derive(Default)]
struct Pending {
    nodes: BTreeMap<u64, (Arc<Node>, Tensor)>,
    /// In the order in which they were reached; nothing in the place of one that has been served.
    leaves: Vec<Option<(Arc<Leaf>, Tensor)>>,
    /// Where each leaf, by its address, stands in the list.
    places: HashMap<*const Leaf, usize>,
    /// How many edges into each leaf are still to be served.
    edges: HashMap<*const Leaf, usize>,
    /// The streams that were current where backward was called.
    caller: Streams,
}

impl Pending {
    /// Gives a gradient that was made on the current stream to who needs it next.
    fn send(&mut self, to: &History, grad: Tensor) -> Result<()> {
        let consumer = match to {
            History::None | History::Frozen(_) => return Ok(()),
            History::Node(node) => node.stream,
            History::Leaf(_) => grad.storage().device().map(|memory| memory.find_stream(&self.caller)),
        };
        hand_over(&grad, consumer)?;
        // Sums are made where they are needed.
        let _stream = consumer.map(stream::enter);
        match to {
            History::None | History::Frozen(_) => {}
            History::Node(node) => {
                let sum = sum_of(self.nodes.remove(&node.sequence).map(|(_, sum)| sum), grad)?;
                self.nodes.insert(node.sequence, (node.clone(), sum));
            }
            History::Leaf(leaf) => {
                let place = *self.places.entry(Arc::as_ptr(leaf)).or_insert(self.leaves.len());
                if place == self.leaves.len() {
                    self.leaves.push(None);
                }
                let sum = sum_of(self.leaves[place].take().map(|(_, sum)| sum), grad)?;
                self.leaves[place] = Some((leaf.clone(), sum));
            }
        }
        Ok(())
    }

    /// An edge has been served. The leaf that it leads into and the gradient of that, if it was the last one.
    fn arrived(&mut self, to: &History) -> Option<(Arc<Leaf>, Tensor)> {
        let History::Leaf(leaf) = to else { return None };
        let edges = self.edges.get_mut(&Arc::as_ptr(leaf))?;
        *edges -= 1;
        if *edges > 0 {
            return None;
        }
        self.leaves[*self.places.get(&Arc::as_ptr(leaf))?].take()
    }
}

/// Makes the stream that is to use a gradient wait for the one that made it, the current one, and keeps the memory
/// until both are done with it.
fn hand_over(grad: &Tensor, consumer: Option<StreamKey>) -> Result<()> {
    let (Some(memory), Some(consumer)) = (grad.storage().device(), consumer) else { return Ok(()) };
    let producer = memory.current_stream_key();
    if producer != consumer {
        memory.cuda().wait_stream(consumer.id, producer.id)?;
        memory.record_stream(consumer.id);
    }
    Ok(())
}

fn sum_of(sum: Option<Tensor>, grad: Tensor) -> Result<Tensor> {
    match sum {
        Some(sum) => sum.add(&grad),
        None => Ok(grad),
    }
}

/// Brings a gradient to the shape, type and device of the input it belongs to: what broadcasting repeated in
/// the forward pass is summed here, and what promotion converted is converted back.
fn fit(grad: Tensor, node: &Node, index: usize) -> Result<Tensor> {
    let Edge { to, input: Meta { sizes, dtype, device } } = &node.edges[index];
    let fits = grad.sizes() == &sizes[..] && grad.dtype() == *dtype && grad.device() == *device;
    if !to.flows() || fits {
        return Ok(grad);
    }
    if broadcast(sizes, grad.sizes()).ok().as_deref() != Some(grad.sizes()) {
        let (got, expected) = (grad.sizes().to_vec(), sizes.to_vec());
        return Err(AutogradError::InvalidGradient { function: node.name(), index, got, expected }.into());
    }
    let grad = ops::reduce::sum_to(&grad, sizes)?.to(*dtype)?;
    on_device_of(*device, Some((node.name(), index)), grad)
}

/// The gradient of a number goes where the number is: one of the host may have joined tensors of a GPU. Any
/// other must be there. `of` is the node that made it, and for which of its inputs.
fn on_device_of(device: Device, of: Option<(&'static str, usize)>, grad: Tensor) -> Result<Tensor> {
    if grad.device() == device || grad.ndim() == 0 {
        return grad.to(device);
    }
    Err(AutogradError::InvalidGradientDevice {
        function: of.map(|(function, _)| function),
        index: of.map_or(0, |(_, index)| index),
        got: grad.device(),
        expected: device,
    }
    .into())
}

impl Leaf {
    /// Adds a gradient. The first one becomes `grad`; later ones are added to it in place, so that a
    /// handle the user holds stays the gradient.
    pub(super) fn accumulate(&self, grad: Tensor) -> Result<()> {
        // Locked all through: a gradient that another thread adds meanwhile must not be lost.
        let mut slot = self.grad.lock().unwrap_or_else(PoisonError::into_inner);
        let total = match &*slot {
            Some(total) => {
                total.add_(&grad)?;
                total.clone()
            }
            // Anything that somebody else can see, or that is not dense, is copied: the sum of a + b
            // hands one and the same tensor to both.
            None => {
                let own = grad.is_sole_owner() && grad.is_contiguous();
                let total = if own { grad } else { ops::plain::copy_of(&grad)? };
                slot.insert(total).clone()
            }
        };
        drop(slot);
        let hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        hooks.iter().try_for_each(|hook| hook(&total))
    }
}
