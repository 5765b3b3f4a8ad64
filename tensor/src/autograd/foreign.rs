//! Operations and hooks that are written in another language, for `interpreter.rs`.

use smallvec::SmallVec;

use super::error::AutogradError;
use super::function::{ErasedFunction, Grads, attach, records};
use super::graph::{History, Node, Step};
use super::saved::SavedTensor;
use crate::error::Result;
use crate::scope;
use crate::tensor::Tensor;

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
#[doc(hidden)]
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
    Ok(attach(
        output,
        Step::Function(Box::new(Foreign(name, backward))),
        inputs,
        SmallVec::new(),
        scope::here(),
    ))
}

/// Calls `hook` with each gradient that reaches `x`, before it goes on; `hook` may return another one
/// (`Tensor.register_hook`). `x` is the result of a recorded operation.
#[doc(hidden)]
pub fn on_gradient(
    x: &Tensor,
    hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
) -> Result<()> {
    let History::Node(node) = x.history() else { return Err(AutogradError::DoesNotRequireGrad.into()) };
    let before = x.detached_from(x.place());
    before.set_history(x.history());
    let pass = move |grad: &Tensor| Ok(vec![Some(hook(grad)?.unwrap_or_else(|| grad.clone()))]);
    attach(
        x.clone(),
        Step::Function(Box::new(Foreign(node.name(), pass))),
        &[&before],
        SmallVec::new(),
        x.place(),
    );
    Ok(())
}
