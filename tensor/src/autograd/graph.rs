//! The recorded graph: a node for every recorded operation, and a leaf for every tensor that the user made
//! and that requires grad.
//!
//! A tensor's [`History`] leads to its node or its leaf, and a node's edges lead to the nodes and leaves of its inputs.
//! So the graph lives as long as the result does.
//!
//! Not here: what a node saves. Next in the spine: `autograd/saved.rs`.

use std::cell::RefCell;
use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::function::ErasedFunction;
use super::saved::SavedTensors;
use crate::device::{Device, StreamKey};
use crate::dtype::DType;
use crate::error::Result;
use crate::lock::lock;
use crate::scope;
use crate::shape::Layout;
use crate::tensor::Tensor;

/// How gradients flow into a tensor.
#[derive(Clone, Default)]
pub(crate) enum History {
    /// It does not require grad.
    #[default]
    None,
    /// The user made it; gradients end here, unless the leaf is frozen.
    Leaf(Arc<Leaf>),
    /// A recorded operation made it; gradients go on through the node.
    Node(Arc<Node>),
}

impl History {
    /// Whether gradients flow: the value of `requires_grad`.
    pub(crate) fn flows(&self) -> bool {
        match self {
            History::None => false,
            History::Leaf(leaf) => !leaf.is_frozen(),
            History::Node(_) => true,
        }
    }

    /// The leaf, if gradients flow into it.
    pub(crate) fn leaf(&self) -> Option<&Arc<Leaf>> {
        match self {
            History::Leaf(leaf) => Some(leaf).filter(|leaf| !leaf.is_frozen()),
            _ => None,
        }
    }
}

/// The base of a view, and the properties that decide how autograd treats a write to their memory.
pub(crate) struct ViewOf {
    /// It is not a view itself.
    pub(crate) base: Tensor,
    pub(super) origin: Origin,
    /// The number of the view among the results of its operation.
    pub(super) output: usize,
    /// The version of the memory that the view's history belongs to.
    pub(super) version: AtomicU64,
}

/// Where a view was made (`CreationMeta`). Autograd records writes only to views that one recorded operation made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Recorded,
    NoGrad,
    InferenceMode,
    /// By an operation with several results, such as `split`.
    SeveralOutputs,
    /// By a user's own function.
    OwnFunction,
}

/// The accumulated gradient of a leaf (`AccumulateGrad`).
pub(crate) struct Leaf {
    /// Whether requires_grad is off now. The leaf keeps its gradient, and graphs recorded earlier still lead to it,
    /// so the flag cannot live in the tensor alone.
    frozen: AtomicBool,
    pub(super) grad: Mutex<Option<Tensor>>,
    pub(super) hooks: Mutex<Vec<Arc<Hook>>>,
    /// The tensor's layout. Its gradient gets the same strides.
    pub(super) layout: Layout,
}

type Hook = Box<dyn Fn(&Tensor) -> Result<()> + Send + Sync>;

impl Leaf {
    pub(super) fn of(tensor: &Tensor) -> Arc<Leaf> {
        let layout = tensor.layout().at_start();
        Arc::new(Leaf { frozen: false.into(), grad: Mutex::default(), hooks: Mutex::default(), layout })
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Relaxed)
    }

    pub(super) fn set_frozen(&self, frozen: bool) {
        self.frozen.store(frozen, Ordering::Relaxed);
    }

    pub(crate) fn grad(&self) -> Option<Tensor> {
        lock(&self.grad).clone()
    }

    pub(crate) fn set_grad(&self, grad: Option<Tensor>) {
        *lock(&self.grad) = grad;
    }

    pub(crate) fn add_hook(&self, hook: Hook) {
        lock(&self.hooks).push(Arc::new(hook));
    }
}

/// How a node computes the gradients of its inputs.
pub(super) enum Step {
    Function(Box<dyn ErasedFunction>),
    /// The operation was a view of its input: the layouts of the input and of the view. The engine computes the gradient.
    Part(Box<[Layout; 2]>),
}

/// One recorded operation.
// ANCHOR: node
pub(crate) struct Node {
    pub(super) step: Step,
    /// The destination of each input's gradient.
    pub(super) edges: SmallVec<[Edge; 2]>,
    pub(super) saved: Mutex<SavedTensors>,
    /// Larger for later operations. A node depends only on earlier ones, so this is a topological order.
    pub(super) sequence: u64,
    /// The recorded call in the user's program.
    pub(super) place: scope::Place,
    /// The stream it was launched on, if it ran on a GPU. Its backward runs there too.
    pub(super) stream: Option<StreamKey>,
}
// ANCHOR_END: node

/// An input of a recorded operation.
pub(super) struct Edge {
    /// `None`, unless the input required grad when this was recorded.
    pub(super) to: History,
    pub(super) input: Meta,
}

impl Edge {
    pub(super) fn of(input: &Tensor) -> Edge {
        let to = Some(input.history()).filter(History::flows).unwrap_or_default();
        Edge { to, input: Meta::of(input) }
    }

    /// Whether a gradient is needed, even if the leaf it leads to has been frozen since.
    pub(super) fn leads(&self) -> bool {
        !matches!(self.to, History::None)
    }
}

/// A tensor's properties, without its values.
#[derive(Clone, PartialEq)]
pub(super) struct Meta {
    pub(super) sizes: SmallVec<[usize; 4]>,
    pub(super) dtype: DType,
    pub(super) device: Device,
}

impl Meta {
    pub(super) fn of(tensor: &Tensor) -> Meta {
        Meta { sizes: tensor.sizes().into(), dtype: tensor.dtype(), device: tensor.device() }
    }
}

/// Formats it as Python does.
impl fmt::Display for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Meta { sizes, dtype, device } = self;
        write!(
            f,
            "{{'shape': torch.Size({sizes:?}), 'dtype': {dtype}, 'device': device(type='{}'",
            device.device_type()
        )?;
        if let Device::Cuda { index, .. } = device {
            write!(f, ", index={index}")?;
        }
        f.write_str(")}")
    }
}

/// The sequence number of the next node, larger than all earlier ones: backward runs later nodes first. All machines
/// share one counter, so that the order holds wherever a graph was built.
static NEXT_SEQUENCE: AtomicU64 = AtomicU64::new(0);

impl Node {
    pub(super) fn new(
        step: Step,
        edges: SmallVec<[Edge; 2]>,
        saved: SavedTensors,
        place: scope::Place,
        stream: Option<StreamKey>,
    ) -> Arc<Node> {
        let sequence = NEXT_SEQUENCE.fetch_add(1, Ordering::Relaxed);
        Arc::new(Node { step, edges, saved: Mutex::new(saved), sequence, place, stream })
    }

    pub(crate) fn name(&self) -> &'static str {
        match &self.step {
            Step::Function(function) => function.name(),
            Step::Part(_) => "AsStridedBackward0",
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let saved = self.saved.get_mut().unwrap_or_else(PoisonError::into_inner);
        free(Remains::Node(
            mem::replace(saved, SavedTensors::Freed),
            mem::take(&mut self.edges),
            mem::replace(&mut self.step, Step::Function(Box::new(()))),
        ));
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        let grad = self.grad.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let hooks = mem::take(self.hooks.get_mut().unwrap_or_else(PoisonError::into_inner));
        if grad.is_some() || !hooks.is_empty() {
            free(Remains::Leaf(grad, hooks));
        }
    }
}

/// The contents of a dropped node or leaf.
// Never read: they exist only to be dropped. A box would cost each node an allocation.
#[allow(dead_code, clippy::large_enum_variant)]
enum Remains {
    Node(SavedTensors, SmallVec<[Edge; 2]>, Step),
    Leaf(Option<Tensor>, Vec<Arc<Hook>>),
}

thread_local! {
    /// The remains still to be freed, while this thread frees some. It has no destructor, so that a tensor in another
    /// thread-local can be dropped when the thread ends.
    static PENDING: RefCell<Option<ManuallyDrop<Vec<Remains>>>> = const { RefCell::new(None) };
}

/// Frees the contents of a node or leaf.
///
/// They may own other nodes and leaves: through an edge, a saved tensor or a gradient, or in a hook's captures.
/// Those are freed afterwards, one by one from a list, instead of recursively: a chain of a million nodes would
/// overflow the stack.
fn free(remains: Remains) {
    /// Ends the work, even if a value captured by a hook panics when dropped.
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            drop(PENDING.take().map(ManuallyDrop::into_inner));
        }
    }
    let outermost = PENDING.with_borrow_mut(|pending| match pending {
        Some(list) => {
            list.push(remains); // The outermost call frees it.
            None
        }
        None => {
            *pending = Some(ManuallyDrop::default());
            Some(remains)
        }
    });
    let Some(remains) = outermost else { return };
    let _done = Done;
    drop(remains);
    while let Some(remains) = PENDING.with_borrow_mut(|pending| pending.as_mut()?.pop()) {
        drop(remains);
    }
}
