//! Whether operations are recorded: a property of the thread, changed for the length of a closure.

use std::cell::Cell;

#[derive(Clone, Copy)]
struct Mode {
    grad: bool,
    inference: bool,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode { grad: true, inference: false }) };
}

/// Runs `scope` under `mode` and restores the old one, also when `scope` panics.
fn with_mode<R>(mode: Mode, scope: impl FnOnce() -> R) -> R {
    struct Restore(Mode);
    impl Drop for Restore {
        fn drop(&mut self) {
            MODE.set(self.0);
        }
    }
    let _restore = Restore(MODE.replace(mode));
    scope()
}

/// Records nothing inside `scope`: results do not require grad, so nothing is kept for a backward pass
/// (`torch.no_grad`).
///
/// ```
/// # use todevice::{Tensor, no_grad};
/// let w = Tensor::new([2.0f32])?.requires_grad_(true)?;
/// let y = no_grad(|| w.mul(3.0))?;
/// assert!(!y.requires_grad());
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn no_grad<R>(scope: impl FnOnce() -> R) -> R {
    with_mode(Mode { grad: false, ..MODE.get() }, scope)
}

/// Records again inside a `no_grad` scope (`torch.enable_grad`).
pub fn enable_grad<R>(scope: impl FnOnce() -> R) -> R {
    with_mode(Mode { grad: true, ..MODE.get() }, scope)
}

/// Like [`no_grad`], and the tensors made can never enter a recorded computation
/// (`torch.inference_mode`).
pub fn inference_mode<R>(scope: impl FnOnce() -> R) -> R {
    with_mode(Mode { grad: false, inference: true }, scope)
}

/// Whether operations on this thread are recorded now (`torch.is_grad_enabled`).
pub fn is_grad_enabled() -> bool {
    MODE.get().grad
}

/// Whether operations on tensors that require grad get a node. In inference mode not even
/// [`enable_grad`] brings that back.
pub(crate) fn is_recording() -> bool {
    MODE.get().grad && !MODE.get().inference
}

/// Whether this thread is in [`inference_mode`] now.
pub fn is_inference_mode_enabled() -> bool {
    MODE.get().inference
}
