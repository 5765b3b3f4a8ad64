//! What a thread does with the operations it runs: the grad mode decides whether they are recorded, and hooks may
//! replace the tensors that they save. Both are changed for the length of a closure or a guard.

pub(crate) use crate::thread::Mode;
use crate::thread::{AnyValue, OfThread, Part, Restore, TensorContext};

impl Mode {
    pub(crate) fn current() -> Mode {
        TensorContext::read(|context| context.mode)
    }

    /// Runs `scope` in this mode and restores the old one, also when `scope` panics.
    fn run<R>(self, scope: impl FnOnce() -> R) -> R {
        let _left = self.enter();
        scope()
    }

    fn without_grad(self) -> Mode {
        Mode { grad: false, ..self }
    }
}

/// Records nothing inside `scope`: results do not require grad, so nothing is kept for a backward pass
/// (`torch.no_grad`).
///
/// ```
/// # use todevice::{Tensor, no_grad};
/// let w = Tensor::new([2.0])?.requires_grad_(true)?;
/// let y = no_grad(|| w.mul(3.0))?;
/// assert!(!y.requires_grad());
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn no_grad<R>(scope: impl FnOnce() -> R) -> R {
    Mode::current().without_grad().run(scope)
}

/// Records operations again inside a `no_grad` scope (`torch.enable_grad`).
pub fn enable_grad<R>(scope: impl FnOnce() -> R) -> R {
    Mode { grad: true, ..Mode::current() }.run(scope)
}

/// Like [`no_grad`]; moreover, tensors made in `scope` can never take part in a recorded computation
/// (`torch.inference_mode`).
pub fn inference_mode<R>(scope: impl FnOnce() -> R) -> R {
    Mode { grad: false, inference: true }.run(scope)
}

/// Whether operations on this thread are recorded now (`torch.is_grad_enabled`).
pub fn is_grad_enabled() -> bool {
    Mode::current().grad
}

/// Whether operations on tensors that require grad get a node. In inference mode they do not, even in
/// [`enable_grad`].
pub(crate) fn is_recording() -> bool {
    let Mode { grad, inference } = Mode::current();
    grad && !inference
}

/// Whether this thread is in [`inference_mode`] now.
pub fn is_inference_mode_enabled() -> bool {
    Mode::current().inference
}

/// Records nothing while the guard lives (`NoGradGuard`).
pub(super) fn no_grad_guard() -> Restore<Mode> {
    Mode::current().without_grad().enter()
}

/// The hooks that replace the saved tensors of this thread's operations. `saved.rs` knows their type.
pub(super) fn saved_tensors_hooks() -> AnyValue {
    TensorContext::read(|context| context.saved_tensors_hooks.0.clone())
}
