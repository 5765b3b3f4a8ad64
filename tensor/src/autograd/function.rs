//! Differentiable operations: forward, saved tensors and backward (`torch.autograd.Function`). `apply` runs the
//! forward pass; if an input requires grad, the result gets a node with the function, its saved tensors, and an edge to
//! each input.
//!
//! Not here: nodes and their order. Next in the spine: `autograd/graph.rs`.

use std::array;

use smallvec::SmallVec;

use super::error::AutogradError;
use super::graph::{Edge, History, Node, Step};
use super::mode::{is_recording, no_grad_guard};
use super::saved::{SavedList, SavedTensor, SavedTensors};
use crate::error::{Error, Result};
use crate::gpu::runtime::DeviceMemory;
use crate::lock::lock;
use crate::operation::{Operation, enter};
use crate::scope;
use crate::tensor::Tensor;

/// A differentiable operation on `N` tensors. Its fields are its non-tensor arguments.
///
/// ```
/// use todevice::{Result, Tensor};
/// use todevice::autograd::{Context, Function, Operation, Saved};
///
/// struct Square;
///
/// static SQUARE: Operation = Operation::new("square").node("SquareBackward");
///
/// impl Function<1> for Square {
///     fn operation(&self) -> &'static Operation {
///         &SQUARE
///     }
///     fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
///         ctx.save_for_backward([x]);
///         x.mul(x)
///     }
///     fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
///         let [x] = saved.tensors()?;
///         Ok([Some(grad.mul(&x)?.mul(2.0)?)])
///     }
/// }
///
/// let x = Tensor::new([3.0])?.requires_grad_(true)?;
/// Square.apply([&x])?.sum()?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [6.0]);
/// # Ok::<(), todevice::Error>(())
/// ```
pub trait Function<const N: usize>: Send + Sync + Sized + 'static {
    /// The operation's name, and that of its graph node.
    fn operation(&self) -> &'static Operation;

    /// Computes the result and saves the tensors that [`backward`](Self::backward) needs, and nothing else. Operations
    /// inside it are not recorded.
    fn forward(&self, ctx: &mut Context<N>, inputs: [&Tensor; N]) -> Result<Tensor>;

    /// Returns the gradient with respect to every input, given the gradient with respect to the result.
    ///
    /// `None` where there is no gradient, or where [`Saved::needs_input_grad`] is false. A gradient may have the
    /// broadcast shape: the engine sums it down to the input's.
    fn backward(&self, saved: &Saved<N>, grad: &Tensor) -> Result<[Option<Tensor>; N]>;

    /// Runs the operation, and records it if an input requires grad.
    #[track_caller]
    fn apply(self, inputs: [&Tensor; N]) -> Result<Tensor> {
        let _scope = enter(self.operation(), &inputs)?;
        Ok(record(self, inputs)?.of_own_function())
    }
}

/// Collects the tensors that a forward pass saves.
pub struct Context<const N: usize> {
    recording: bool,
    needs: [bool; N],
    saved: SavedList,
    save_output: bool,
}

impl<const N: usize> Context<N> {
    fn new(inputs: [&Tensor; N]) -> Result<Context<N>> {
        let recording = records(&inputs)?;
        let needs = inputs.map(|input| recording && input.requires_grad());
        Ok(Context { recording, needs, saved: SmallVec::new(), save_output: false })
    }

    /// Computes the result. Operations inside are not recorded.
    fn run(&mut self, forward: &dyn Fn(&mut Context<N>) -> Result<Tensor>) -> Result<Tensor> {
        let _restore = self.recording.then(no_grad_guard);
        forward(self)
    }

    /// Whether the gradient of input `index` is needed.
    pub fn needs_input_grad(&self, index: usize) -> bool {
        self.needs.get(index).copied().unwrap_or(false)
    }

    /// Saves tensors for the backward pass. An input that no needed gradient depends on may be left out as `None`.
    ///
    /// Changing a saved tensor in place before it is used is an error; changing an unsaved one is not. This crate
    /// saves fewer tensors than PyTorch: pools, and convolutions whose weight needs no gradient, do not save their
    /// input. Where PyTorch reports such a change, these operations return the right gradient.
    pub fn save_for_backward<'a, T: Into<Option<&'a Tensor>>>(
        &mut self,
        tensors: impl IntoIterator<Item = T>,
    ) {
        if self.recording {
            self.saved.extend(tensors.into_iter().map(|tensor| SavedTensor::new(tensor.into())));
        }
    }

    /// Saves the result of this operation, after the other saved tensors.
    pub fn save_output(&mut self) {
        self.save_output = true;
    }
}

/// The information available to a backward pass.
pub struct Saved<'a, const N: usize> {
    tensors: &'a [SavedTensor],
    node: &'a Node,
}

impl<const N: usize> Saved<'_, N> {
    /// The tensors given to `save_for_backward`, then the output if it was saved.
    ///
    /// Returns an error if one has been overwritten since, if their number differs from `M`, or if one was saved as
    /// `None`.
    pub fn tensors<const M: usize>(&self) -> Result<[Tensor; M]> {
        let tensors = self.optional_tensors::<M>()?;
        if tensors.iter().any(Option::is_none) {
            return Err(self.misuse("requests a tensor that it saved as None"));
        }
        Ok(tensors.map(|tensor| tensor.expect("none is missing")))
    }

    /// Like [`tensors`](Self::tensors), for an operation that saves some tensors only when they are needed.
    pub fn optional_tensors<const M: usize>(&self) -> Result<[Option<Tensor>; M]> {
        if M != self.tensors.len() {
            return Err(self.misuse(&format!("requests {M} saved tensors, but saved {}", self.tensors.len())));
        }
        let mut tensors = array::from_fn(|_| None);
        for (tensor, saved) in tensors.iter_mut().zip(self.tensors) {
            *tensor = saved.unpack(self.node.place)?;
        }
        Ok(tensors)
    }

    fn misuse(&self, what: &str) -> Error {
        Error::custom(format!("Function {} {what}", self.node.name()))
    }

    /// Whether the gradient of input `index` is needed.
    pub fn needs_input_grad(&self, index: usize) -> bool {
        self.node.edges.get(index).is_some_and(Edge::leads)
    }

    /// The sizes of input `index`.
    pub fn input_sizes(&self, index: usize) -> &[usize] {
        self.node.edges.get(index).map_or(&[], |edge| &edge.input.sizes)
    }
}

/// A [`Function`] with its number of inputs erased, so that all nodes have one type.
pub(super) trait ErasedFunction: Send + Sync {
    fn name(&self) -> &'static str;
    /// Returns the gradients with respect to the node's inputs, from that of its result and its saved tensors.
    fn backward(&self, node: &Node, saved: &[SavedTensor], grad: &Tensor) -> Result<Grads>;
}

/// The gradient with respect to every input, where there is one.
pub(super) type Grads = SmallVec<[Option<Tensor>; 2]>;

/// Stands in for a node's function while the node is being freed.
impl ErasedFunction for () {
    fn name(&self) -> &'static str {
        ""
    }

    fn backward(&self, _: &Node, _: &[SavedTensor], _: &Tensor) -> Result<Grads> {
        Ok(SmallVec::new())
    }
}

struct FixedArity<F, const N: usize>(F);

impl<F: Function<N>, const N: usize> ErasedFunction for FixedArity<F, N> {
    fn name(&self) -> &'static str {
        self.0.operation().node_name()
    }

    fn backward(&self, node: &Node, saved: &[SavedTensor], grad: &Tensor) -> Result<Grads> {
        let mut grads = self.0.backward(&Saved::<N> { tensors: saved, node }, grad)?;
        Ok(taken(&mut grads))
    }
}

fn taken(grads: &mut [Option<Tensor>]) -> Grads {
    grads.iter_mut().map(Option::take).collect()
}

/// Clones the saved tensors instead of holding the lock: a user-defined backward may visit this graph again.
pub(super) fn saved_tensors(node: &Node) -> Result<SavedList> {
    let saved = lock(&node.saved).clone();
    saved.tensors()
}

/// Runs `function` on `inputs`, and gives its result a node if any input requires grad.
#[track_caller]
// ANCHOR: record
pub(crate) fn record<F: Function<N>, const N: usize>(function: F, inputs: [&Tensor; N]) -> Result<Tensor> {
    let mut ctx = Context::new(inputs)?;
    let place = scope::here();
    let mut output = ctx.run(&|ctx| function.forward(ctx, inputs))?.made_at(place);
    if output.is_view() && !inputs.iter().any(|input| input.shares_storage(&output)) {
        output = output.without_base();
    }
    match ctx.recording {
        true => recorded(output, Box::new(FixedArity::<F, N>(function)), &inputs, ctx, place),
        false => Ok(output),
    }
}
// ANCHOR_END: record

/// Whether operations on these inputs are recorded. Returns an error if an input's history is out of date.
pub(super) fn records(inputs: &[&Tensor]) -> Result<bool> {
    if !is_recording() {
        return Ok(false);
    }
    inputs.iter().try_for_each(|input| input.check_history())?;
    Ok(inputs.iter().any(|input| input.requires_grad()))
}

/// Gives an operation's result its node.
fn recorded<const N: usize>(
    mut output: Tensor,
    step: Box<dyn ErasedFunction>,
    inputs: &[&Tensor; N],
    Context { mut saved, save_output, .. }: Context<N>,
    place: scope::Place,
) -> Result<Tensor> {
    if inputs.iter().any(|input| input.is_same(&output)) {
        // The function returned its input: the result needs its own handle, or the node would replace the input's
        // history.
        output = output.with_layout(*output.layout());
    }
    if !output.dtype().is_floating_point() {
        return Ok(output);
    }
    output = output.of_recorded_view(inputs[0]);
    if save_output {
        saved.push(SavedTensor::output(&output.detached_from(place), step.name()));
    }
    if saved.iter().any(|saved| saved.tensor.as_ref().is_some_and(Tensor::is_inference)) {
        return Err(AutogradError::InferenceSaved.into());
    }
    Ok(attach(output, Step::Function(step), inputs, saved, place))
}

/// A recorded operation on any number of inputs that saves nothing, such as `cat`.
struct AnyArity<B> {
    operation: &'static Operation,
    backward: B,
}

impl<B: Fn(&Tensor) -> Result<Vec<Tensor>> + Send + Sync> ErasedFunction for AnyArity<B> {
    fn name(&self) -> &'static str {
        self.operation.node_name()
    }

    fn backward(&self, _: &Node, _: &[SavedTensor], grad: &Tensor) -> Result<Grads> {
        Ok((self.backward)(grad)?.into_iter().map(Some).collect())
    }
}

/// Gives `output`, computed from a list of inputs, a node if any of them requires grad.
#[track_caller]
pub(crate) fn record_list(
    operation: &'static Operation,
    inputs: &[&Tensor],
    output: Tensor,
    backward: impl Fn(&Tensor) -> Result<Vec<Tensor>> + Send + Sync + 'static,
) -> Result<Tensor> {
    let place = scope::here();
    let output = output.made_at(place);
    match records(inputs)? && output.dtype().is_floating_point() {
        true => {
            let step = Step::Function(Box::new(AnyArity { operation, backward }));
            Ok(attach(output, step, inputs, SmallVec::new(), scope::here()))
        }
        false => Ok(output),
    }
}

/// Makes `view` a strided part of its base, in any mode: the view itself was recorded.
#[track_caller]
pub(super) fn attach_part(view: &Tensor, base: &Tensor) {
    let step = Step::Part(Box::new([*base.layout(), *view.layout()]));
    attach(view.clone(), step, &[base], SmallVec::new(), scope::here());
}

pub(super) fn attach(
    output: Tensor,
    step: Step,
    inputs: &[&Tensor],
    saved: SavedList,
    place: scope::Place,
) -> Tensor {
    let edges = inputs.iter().map(|input| Edge::of(input)).collect();
    let stream = output.storage().device().map(DeviceMemory::current_stream_key);
    let node = Node::new(step, edges, SavedTensors::new(saved), place, stream);
    output.set_history(History::Node(node));
    output
}
