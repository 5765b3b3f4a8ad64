//! The backward pass: propagates gradients from a result to the leaves, node by node, without recursion.
//!
//! A node runs when all nodes recorded later have run. It runs on the stream that its forward pass used. Its operations
//! are ordinary operations: they enter, launch and allocate just like those of the forward pass. A leaf is served, that
//! is, given its gradient, as soon as the last edge into it has been processed.
//!
//! Not here: gradients of single operations. This is the end of the spine.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::panic::Location;
use std::sync::Arc;

use super::error::AutogradError;
use super::function::saved_tensors;
use super::graph::{History, Leaf, Meta, Node, Step};
use super::mode::no_grad;
use crate::amp::without_autocast;
use crate::device::{Device, StreamKey, Streams};
use crate::error::Result;
use crate::gpu::runtime::Cuda;
use crate::host_context::HostContext;
use crate::lock::lock;
use crate::ops;
use crate::scope;
use crate::shape::{Layout, broadcast};
use crate::tensor::Tensor;

/// The keyword arguments of `Tensor.backward`.
#[derive(Clone, Debug, Default)]
pub struct BackwardOptions {
    /// The gradient with respect to the result. The default for a scalar is 1.
    pub gradient: Option<Tensor>,
    /// Keeps the saved tensors, so that backward can run through the same graph again.
    pub retain_graph: bool,
}

/// The keyword arguments of `torch.autograd.grad`.
#[derive(Clone, Debug, Default)]
pub struct GradOptions {
    /// The gradient with respect to the output. The default for a scalar is 1.
    pub grad_output: Option<Tensor>,
    /// Keeps the saved tensors for another backward pass.
    pub retain_graph: bool,
    /// Returns `None` for an input that the output does not depend on, instead of an error.
    pub allow_unused: bool,
}

impl Tensor {
    /// Computes the gradient of this scalar with respect to every leaf of its graph and adds it to the leaf's
    /// `grad`.
    ///
    /// Saved tensors are freed along the way, so memory use falls and a second call is an error;
    /// [`autograd::backward`](crate::autograd::backward) can retain them.
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        backward(self, BackwardOptions::default())
    }
}

/// [`Tensor::backward`] with keyword arguments (`torch.autograd.backward`).
///
/// ```
/// use todevice::autograd::{self, BackwardOptions};
/// use todevice::prelude::*;
///
/// let x = Tensor::new([1.0, 2.0])?.requires_grad_(true)?;
/// let y = x.square()?;
/// autograd::backward(&y, BackwardOptions { gradient: Some(Tensor::ones(&[2])?), ..Default::default() })?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), todevice::Error>(())
/// ```
#[track_caller]
pub fn backward(tensor: &Tensor, options: BackwardOptions) -> Result<()> {
    let _scope = scope::on_behalf_of(Location::caller());
    let seed = seed_gradient(tensor, options.gradient)?;
    without_autocast(|| {
        no_grad(|| walk(tensor, seed, options.retain_graph, |leaf, grad| leaf.accumulate(grad)))
    })
}

/// Returns the gradients of `output` with respect to `inputs`, without changing any `grad` (`torch.autograd.grad`).
///
/// The inputs must be leaves.
#[track_caller]
pub fn grad(output: &Tensor, inputs: &[&Tensor], options: GradOptions) -> Result<Vec<Option<Tensor>>> {
    let wanted: Vec<Arc<Leaf>> = inputs
        .iter()
        .map(|input| match input.history().leaf() {
            Some(leaf) => Ok(leaf.clone()),
            None => Err(AutogradError::DoesNotRequireGrad.into()),
        })
        .collect::<Result<_>>()?;
    let _scope = scope::on_behalf_of(Location::caller());
    let mut grads: Vec<Option<Tensor>> = vec![None; inputs.len()];
    let seed = seed_gradient(output, options.grad_output)?;
    let keep = |leaf: &Leaf, grad: Tensor| {
        for (slot, _) in grads.iter_mut().zip(&wanted).filter(|(_, wanted)| std::ptr::eq(&***wanted, leaf)) {
            *slot = Some(grad.clone());
        }
        Ok(grad)
    };
    without_autocast(|| no_grad(|| walk(output, seed, options.retain_graph, keep)))?;
    if !options.allow_unused && grads.iter().any(Option::is_none) {
        return Err(AutogradError::UnusedInGraph.into());
    }
    Ok(grads)
}

/// The initial gradient: the given one, or 1 for a scalar.
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
/// The nodes, the leaves and the edges into each leaf are counted first. A node runs after all nodes recorded
/// later, so its gradient is complete by then. A leaf receives its gradient, and `at_leaf` runs its hooks, as soon
/// as the last edge into it has been processed, while earlier operations are still pending. A walk that fails partway
/// therefore leaves the gradients of the leaves it has completed.
///
/// A node runs on the stream that its operation ran on, and a leaf receives its gradient on the stream of the first
/// operation that used it. When a gradient moves to another stream, that stream waits for it. At the end, the
/// streams that were current at the call of backward wait for those of the leaves.
#[track_caller]
fn walk(
    root: &Tensor,
    seed: Tensor,
    retain_graph: bool,
    at_leaf: impl FnMut(&Leaf, Tensor) -> Result<Tensor>,
) -> Result<()> {
    let place = scope::here();
    let _scope = scope::on_behalf_of(place);
    HostContext::spend(|host| &host.backward);
    let mut walk = Walk::to(&root.history());
    let done = walk.run(&root.history(), seed, retain_graph, place, at_leaf);
    done.and(walk.join())
}

/// The remaining work.
struct Walk {
    /// The pending nodes by sequence number, each with the sum of the gradients that have reached it so far.
    nodes: BTreeMap<u64, (Arc<Node>, Option<Tensor>)>,
    /// The pending leaves by address.
    leaves: HashMap<*const Leaf, PendingLeaf>,
    /// Leaves whose gradient is complete.
    complete: Vec<(Arc<Leaf>, PendingLeaf)>,
    /// The streams that were current at the call of backward.
    caller: Streams,
    /// The waits to add at the end: the first stream waits for the second.
    joins: Vec<(Arc<Cuda>, StreamKey, StreamKey)>,
}

/// A leaf that still awaits gradients.
struct PendingLeaf {
    /// The number of unprocessed edges into it.
    edges: usize,
    /// The sequence number of the first operation that used it.
    first: u64,
    /// That operation's stream, if it belongs to the leaf's device.
    stream: Option<StreamKey>,
    sum: Option<Tensor>,
}

impl Walk {
    /// Visits the whole graph that is reachable from `root`.
    fn to(root: &History) -> Walk {
        let (mut nodes, mut leaves) = (BTreeMap::new(), HashMap::new());
        let mut unseen = Vec::new();
        match root {
            History::None => {}
            History::Node(node) => unseen.push(node),
            History::Leaf(leaf) => {
                leaves.insert(Arc::as_ptr(leaf), PendingLeaf { edges: 1, first: 0, stream: None, sum: None });
            }
        }
        while let Some(node) = unseen.pop() {
            let Entry::Vacant(slot) = nodes.entry(node.sequence) else { continue };
            slot.insert((node.clone(), None));
            for edge in &node.edges {
                match &edge.to {
                    History::None => {}
                    History::Node(earlier) => unseen.push(earlier),
                    History::Leaf(leaf) => {
                        let stream = node.stream.filter(|stream| edge.input.device == device_of(*stream));
                        let found = leaves.entry(Arc::as_ptr(leaf));
                        let leaf =
                            found.or_insert(PendingLeaf { edges: 0, first: u64::MAX, stream, sum: None });
                        leaf.edges += 1;
                        if node.sequence < leaf.first {
                            (leaf.first, leaf.stream) = (node.sequence, stream);
                        }
                    }
                }
            }
        }
        Walk {
            nodes,
            leaves,
            complete: Vec::new(),
            caller: HostContext::current_streams(),
            joins: Vec::new(),
        }
    }

    fn run(
        &mut self,
        root: &History,
        seed: Tensor,
        retain_graph: bool,
        place: scope::Place,
        mut at_leaf: impl FnMut(&Leaf, Tensor) -> Result<Tensor>,
    ) -> Result<()> {
        self.send(root, Some(seed))?;
        self.serve(&mut at_leaf)?;
        // ANCHOR: run
        while let Some((_, (node, grad))) = self.nodes.pop_last() {
            let Some(grad) = grad else {
                // No gradient reached this node, so none flows on from it.
                node.edges.iter().try_for_each(|edge| self.send(&edge.to, None))?;
                self.serve(&mut at_leaf)?;
                continue;
            };
            let stream = node.stream.map(HostContext::enter_stream);
            let saved = saved_tensors(&node)?; // may recompute them
            let scope = scope::operation(node.name(), place);
            HostContext::spend(|host| &host.node);
            let grads = match &node.step {
                Step::Function(function) => function.backward(&node, &saved, &grad)?,
                Step::Part(layouts) => {
                    [Some(grad.spread_over(&layouts[0], &layouts[1])?)].into_iter().collect()
                }
            };
            drop((grad, saved, scope));
            if !retain_graph {
                lock(&node.saved).free();
            }
            for (index, (edge, grad)) in node.edges.iter().zip(grads).enumerate() {
                let grad = grad.map(|grad| fit(grad, &node, index)).transpose()?;
                self.send(&edge.to, grad)?;
            }
            drop(stream);
            self.serve(&mut at_leaf)?;
        }
        // ANCHOR_END: run
        Ok(())
    }

    /// Processes an edge: passes on a gradient made on the current stream, if there is one.
    fn send(&mut self, to: &History, grad: Option<Tensor>) -> Result<()> {
        match to {
            History::None => {}
            History::Node(node) => {
                if let (Some(grad), Some((_, sum))) = (grad, self.nodes.get_mut(&node.sequence)) {
                    add(sum, grad, node.stream)?;
                }
            }
            History::Leaf(leaf) => {
                let Some(awaited) = self.leaves.get_mut(&Arc::as_ptr(leaf)) else { return Ok(()) };
                if let Some(grad) = grad {
                    let memory = grad.storage().device();
                    let current = || memory.map(|memory| memory.find_stream(&self.caller));
                    awaited.stream = awaited.stream.or_else(current);
                    add(&mut awaited.sum, grad, awaited.stream)?;
                }
                awaited.edges -= 1;
                if awaited.edges == 0 {
                    self.complete.extend(
                        self.leaves.remove(&Arc::as_ptr(leaf)).map(|awaited| (leaf.clone(), awaited)),
                    );
                }
            }
        }
        Ok(())
    }

    /// Gives the leaves whose gradient is complete their gradients.
    // ANCHOR: serve
    fn serve(&mut self, at_leaf: &mut impl FnMut(&Leaf, Tensor) -> Result<Tensor>) -> Result<()> {
        for (leaf, awaited) in mem::take(&mut self.complete) {
            let Some(grad) = awaited.sum else { continue };
            HostContext::spend(|host| &host.node);
            let other = self.joined(&grad, awaited.stream);
            let _caller = HostContext::enter_streams(self.caller.clone());
            let _stream = awaited.stream.map(HostContext::enter_stream);
            let grad = at_leaf(&leaf, grad)?;
            if let (Some(memory), Some(caller)) = (grad.storage().device(), other) {
                memory.record_stream(caller.id);
            }
        }
        Ok(())
    }
    // ANCHOR_END: serve

    /// Returns the caller's stream, for a gradient that belongs to another stream, and records that it must
    /// wait for that stream at the end.
    fn joined(&mut self, grad: &Tensor, of_leaf: Option<StreamKey>) -> Option<StreamKey> {
        let (memory, of_leaf) = (grad.storage().device()?, of_leaf?);
        let caller = memory.find_stream(&self.caller);
        if caller == of_leaf {
            return None;
        }
        if !self.joins.iter().any(|(_, later, earlier)| (*later, *earlier) == (caller, of_leaf)) {
            self.joins.push((memory.cuda().clone(), caller, of_leaf));
        }
        Some(caller)
    }

    /// Makes the caller's streams wait for the leaves' streams.
    fn join(&self) -> Result<()> {
        self.joins.iter().try_for_each(|(cuda, later, earlier)| Ok(cuda.wait_stream(later.id, earlier.id)?))
    }
}

fn device_of(stream: StreamKey) -> Device {
    Device::Cuda { index: stream.id.device, machine: stream.machine }
}

/// Adds a gradient made on the current stream to a sum, on the stream that consumes it.
fn add(sum: &mut Option<Tensor>, grad: Tensor, consumer: Option<StreamKey>) -> Result<()> {
    hand_over(&grad, consumer)?;
    let _stream = consumer.map(HostContext::enter_stream);
    *sum = Some(match sum.take() {
        Some(sum) => sum.add(&grad)?,
        None => grad,
    });
    Ok(())
}

/// Makes the stream that consumes a gradient wait for the current stream, which produced it, and keeps the memory
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

/// Converts a gradient to the shape, dtype and device of the input it belongs to. It sums over the dimensions that
/// the forward pass broadcast, and converts back from the promoted dtype.
fn fit(grad: Tensor, node: &Node, index: usize) -> Result<Tensor> {
    let edge = &node.edges[index];
    let Meta { sizes, dtype, device } = &edge.input;
    let fits = grad.sizes() == &sizes[..] && grad.dtype() == *dtype && grad.device() == *device;
    if !edge.leads() || fits {
        return Ok(grad);
    }
    if broadcast(sizes, grad.sizes()).ok().as_deref() != Some(grad.sizes()) {
        let (got, expected) = (grad.sizes().to_vec(), sizes.to_vec());
        return Err(AutogradError::InvalidGradient { function: node.name(), index, got, expected }.into());
    }
    let grad = grad.sum_to_size(sizes)?.to(*dtype)?;
    on_device_of(*device, Some((node.name(), index)), grad)
}

/// Moves the gradient of a 0-dim tensor to that tensor's device, since a number on the host may have joined tensors
/// on a GPU. Any other gradient must already be there. `of` names the node that made it, and the index of the
/// input.
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
    /// Adds a gradient and runs the hooks. The first gradient becomes `grad`; later ones are added to it in place,
    /// so that a handle the user holds stays valid. Returns the gradient.
    ///
    /// A leaf that was frozen after the forward pass accumulates nothing.
    pub(super) fn accumulate(&self, grad: Tensor) -> Result<Tensor> {
        if self.is_frozen() {
            return Ok(grad);
        }
        // Locked throughout, so that a gradient added by another thread in the meantime is not lost.
        let mut slot = lock(&self.grad);
        let total = match &*slot {
            Some(total) => {
                total.add_(&grad)?;
                total.clone()
            }
            // A gradient that is shared or has other strides is copied: the sum a + b gives the same tensor to both
            // inputs.
            None => {
                let layout = match self.layout.is_dense() {
                    true => self.layout,
                    false => Layout::contiguous(grad.sizes())?,
                };
                let own = grad.is_sole_owner() && grad.layout().has_strides_of(&layout);
                let total = if own { grad } else { ops::plain::copy_in(layout, &grad)? };
                slot.insert(total).clone()
            }
        };
        drop(slot);
        let hooks = lock(&self.hooks).clone();
        hooks.iter().try_for_each(|hook| hook(&total))?;
        Ok(total)
    }
}
