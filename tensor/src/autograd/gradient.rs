//! Autograd methods of tensors: `requires_grad`, `grad_fn` and the accumulated gradient.

use super::error::AutogradError;
use super::graph::{History, Leaf};
use super::mode::is_inference_mode_enabled;
use crate::error::Result;
use crate::tensor::Tensor;

impl Tensor {
    /// Returns whether operations on this tensor are recorded (`Tensor.requires_grad`).
    pub fn requires_grad(&self) -> bool {
        self.has_history()
    }

    /// Sets whether operations on this leaf are recorded (`Tensor.requires_grad_`). Returns the same tensor.
    pub fn requires_grad_(&self, requires_grad: bool) -> Result<Tensor> {
        // A tensor may already be a leaf without `requires_grad` if its gradient was set first.
        if requires_grad && !self.dtype().is_floating_point() {
            return Err(AutogradError::RequiresGradDType.into());
        }
        if requires_grad && self.is_inference() && !is_inference_mode_enabled() {
            return Err(AutogradError::InferenceRequiresGrad.into());
        }
        match self.history() {
            History::Node(_) if !requires_grad => {
                return Err(AutogradError::RequiresGradNonLeaf { to: false }.into());
            }
            History::None if requires_grad => self.set_history(History::Leaf(Leaf::of(self))),
            // Freezing keeps the gradient and the hooks, and unfreezing restores them.
            History::Leaf(leaf) => leaf.set_frozen(!requires_grad),
            History::Node(_) | History::None => {}
        }
        Ok(self.clone())
    }

    /// Like [`requires_grad_`](Self::requires_grad_), with PyTorch's error text for a new tensor.
    pub(crate) fn requiring_grad(&self) -> Result<Tensor> {
        match self.dtype().is_floating_point() {
            true => self.requires_grad_(true),
            false => Err(AutogradError::MadeToRequireGrad.into()),
        }
    }

    /// Returns whether this tensor is a leaf: not the result of a recorded operation. Gradients accumulate in leaves.
    pub fn is_leaf(&self) -> bool {
        !matches!(self.history(), History::Node(_))
    }

    /// Returns the name of this tensor's node (`MulBackward0`).
    pub fn grad_fn(&self) -> Option<&'static str> {
        match self.history() {
            History::Node(node) => Some(node.name()),
            _ => None,
        }
    }

    /// Returns the accumulated gradient (`Tensor.grad`). Only leaves have one.
    pub fn grad(&self) -> Option<Tensor> {
        match self.history() {
            History::Leaf(leaf) => leaf.grad(),
            _ => None,
        }
    }

    /// Replaces the gradient; `None` clears it. The gradient must match the tensor's shape, dtype and device.
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        if let Some(grad) = &grad {
            if grad.sizes() != self.sizes() {
                let (grad, tensor) = (grad.sizes().into(), self.sizes().into());
                return Err(AutogradError::AssignGradient { grad, tensor }.into());
            }
            if grad.dtype() != self.dtype() {
                let (grad, tensor) = (grad.dtype(), self.dtype());
                return Err(AutogradError::AssignGradientDType { grad, tensor }.into());
            }
            if grad.device() != self.device() {
                let (grad, tensor) = (grad.device(), self.device());
                return Err(AutogradError::AssignGradientDevice { grad, tensor }.into());
            }
        }
        match (self.history(), grad) {
            (History::Leaf(leaf), grad) => leaf.set_grad(grad),
            (History::Node(_), _) => return Err(AutogradError::RequiresGradNonLeaf { to: true }.into()),
            (History::None, None) => {}
            (History::None, grad) => {
                let leaf = Leaf::of(self);
                leaf.set_frozen(true);
                leaf.set_grad(grad);
                self.set_history(History::Leaf(leaf));
            }
        }
        Ok(())
    }

    /// Calls `hook` with this leaf's gradient after each accumulation (`Tensor.register_post_accumulate_grad_hook`).
    /// PyTorch also calls it for a leaf that was frozen after the forward pass.
    pub fn register_post_accumulate_grad_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<()> + Send + Sync + 'static,
    ) -> Result<()> {
        match self.history().leaf() {
            Some(leaf) => {
                leaf.add_hook(Box::new(hook));
                Ok(())
            }
            None => Err(AutogradError::DoesNotRequireGrad.into()),
        }
    }
}
