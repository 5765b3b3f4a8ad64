//! Operations and hooks that are written in another language than Rust. [`interpreter`](crate::interpreter) has their
//! public names.

use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use super::error::AutogradError;
use super::function::{ErasedFunction, Grads, attach, records};
use super::graph::{History, Node, Step};
use super::saved::{SavedList, SavedTensor, SavedTensors, SavedTensorsHooks};
use crate::error::Result;
use crate::lock::lock;
use crate::scope;
use crate::tensor::Tensor;
use crate::thread::{CurrentHooks, Guard, Part};

/// An operation whose backward pass is written in another language.
struct Foreign<B>(&'static str, B);

impl<B: Fn(&Tensor) -> Result<Vec<Option<Tensor>>> + Send + Sync> ErasedFunction for Foreign<B> {
    fn name(&self) -> &'static str {
        self.0
    }

    fn backward(&self, _: &Node, _: &[SavedTensor], grad: &Tensor) -> Result<Grads> {
        Ok((self.1)(grad)?.into())
    }
}

/// Gives `output` a node of this name. `backward` returns the gradient of each input where there is one.
#[track_caller]
pub fn record_foreign(
    name: &'static str,
    inputs: &[&Tensor],
    output: Tensor,
    backward: impl Fn(&Tensor) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
) -> Result<Tensor> {
    if !records(inputs)? || !output.dtype().is_floating_point() {
        return Ok(output);
    }
    // A function may return its input, whose history must stay.
    let is_input = inputs.iter().any(|input| input.is_same(&output));
    let output = if is_input { output.with_layout(*output.layout()) } else { output };
    let step = Step::Function(Box::new(Foreign(name, backward)));
    Ok(attach(output, step, inputs, SmallVec::new(), scope::here()))
}

/// Calls `hook` with each gradient that reaches `x`, before it goes on; `hook` may return another one
/// (`Tensor.register_hook`). `x` is the result of a recorded operation.
pub fn on_gradient(
    x: &Tensor,
    hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
) -> Result<()> {
    let History::Node(node) = x.history() else { return Err(AutogradError::DoesNotRequireGrad.into()) };
    let before = x.detached_from(x.place());
    before.set_history(x.history());
    let pass = move |grad: &Tensor| Ok(vec![Some(hook(grad)?.unwrap_or_else(|| grad.clone()))]);
    let step = Step::Function(Box::new(Foreign(node.name(), pass)));
    attach(x.clone(), step, &[&before], SmallVec::new(), x.place());
    Ok(())
}

/// Begins `torch.autograd.graph.saved_tensors_hooks`: `pack` takes each tensor that is saved, and `unpack` returns it
/// for the backward pass.
pub fn saved_tensors_hooks<P: Send + Sync + 'static>(
    pack: impl Fn(&Tensor) -> Result<P> + Send + Sync + 'static,
    unpack: impl Fn(&P) -> Result<Tensor> + Send + Sync + 'static,
) -> Guard {
    let unpack = Arc::new(unpack);
    let pack = move |tensors: SavedList| {
        // PyTorch hides numbers from hooks.
        let are_numbers: SmallVec<[bool; 2]> = tensors.iter().map(SavedTensor::is_number).collect();
        let packed = tensors.iter().zip(&are_numbers).map(|(saved, is_number)| match &saved.tensor {
            Some(tensor) if !is_number => pack(tensor).map(Some),
            _ => Ok(None),
        });
        let packed: Result<Vec<Option<P>>> = packed.collect();
        let packed = Mutex::new(packed.map_err(Some));
        let keep = |(saved, is_number): (&SavedTensor, &bool)| match is_number {
            true => saved.clone(),
            false => SavedTensor::new(None),
        };
        let numbers: SavedList = tensors.iter().zip(&are_numbers).map(keep).collect();
        let unpack = unpack.clone();
        SavedTensors::Packed(Arc::new(move || match &mut *lock(&packed) {
            Ok(packed) => packed
                .iter()
                .zip(&numbers)
                .map(|(kept, number)| match kept {
                    Some(kept) => Ok(SavedTensor::new(Some(&unpack(kept)?))),
                    None => Ok(number.clone()),
                })
                .collect(),
            Err(error) => Err(error.take().unwrap_or_else(|| AutogradError::BackwardTwice.into())),
        }))
    };
    let hooks = SavedTensorsHooks { pack: Box::new(pack) };
    Guard::of(CurrentHooks(Some(Arc::new(hooks))).enter())
}
