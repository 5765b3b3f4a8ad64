//! A thread's grad mode decides whether operations are recorded, and its hooks may replace their saved tensors.
//! Closures and guards change both for a time.

pub(crate) use crate::thread::Mode;
use crate::thread::{AnyValue, OfThread, Part, Restore, TensorContext};

impl Mode {
    pub(crate) fn current() -> Mode {
        TensorContext::read(|context| context.mode)
    }

    fn run<R>(self, scope: impl FnOnce() -> R) -> R {
        let _left = self.enter();
        scope()
    }

    fn without_grad(self) -> Mode {
        Mode { grad: false, ..self }
    }
}

/// Runs `scope` without recording: results do not require grad, and no tensors are saved (`torch.no_grad`).
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

/// Runs `scope` with recording, even inside `no_grad` (`torch.enable_grad`).
pub fn enable_grad<R>(scope: impl FnOnce() -> R) -> R {
    Mode { grad: true, ..Mode::current() }.run(scope)
}

/// Like [`no_grad`], but tensors created in `scope` can never take part in a recorded operation
/// (`torch.inference_mode`).
pub fn inference_mode<R>(scope: impl FnOnce() -> R) -> R {
    Mode { grad: false, inference: true }.run(scope)
}

/// Returns whether grad mode is on (`torch.is_grad_enabled`).
pub fn is_grad_enabled() -> bool {
    Mode::current().grad
}

/// Returns whether operations are recorded: never in inference mode, even inside [`enable_grad`].
pub(crate) fn is_recording() -> bool {
    let Mode { grad, inference } = Mode::current();
    grad && !inference
}

/// Returns whether inference mode is on (`torch.is_inference_mode_enabled`).
pub fn is_inference_mode_enabled() -> bool {
    Mode::current().inference
}

/// Disables recording while the guard lives (`NoGradGuard`).
pub(super) fn no_grad_guard() -> Restore<Mode> {
    Mode::current().without_grad().enter()
}

/// Returns the hooks for this thread's saved tensors. `saved.rs` defines their type.
pub(super) fn saved_tensors_hooks() -> AnyValue {
    TensorContext::read(|context| context.saved_tensors_hooks.0.clone())
}
