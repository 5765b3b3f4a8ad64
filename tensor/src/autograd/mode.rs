//! Grad modes: whether operations are recorded. A mode belongs to a thread and is changed for the length of a
//! closure.

use std::cell::Cell;

/// The modes of a thread, which can be carried over to another thread.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    grad: bool,
    inference: bool,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode { grad: true, inference: false }) };
}

/// The mode of a new thread: operations are recorded.
impl Default for Mode {
    fn default() -> Mode {
        Mode { grad: true, inference: false }
    }
}

impl Mode {
    pub(crate) fn current() -> Mode {
        MODE.get()
    }

    /// Runs `scope` in this mode and restores the old one, even if `scope` panics.
    pub(crate) fn enter<R>(self, scope: impl FnOnce() -> R) -> R {
        let _restore = self.until_dropped();
        scope()
    }

    /// Enters this mode until the returned guard is dropped.
    pub(super) fn until_dropped(self) -> Restore {
        Restore(MODE.replace(self))
    }

    pub(super) fn without_grad(self) -> Mode {
        Mode { grad: false, ..self }
    }
}

/// Restores the thread's mode on drop.
pub(super) struct Restore(Mode);

impl Drop for Restore {
    fn drop(&mut self) {
        MODE.set(self.0);
    }
}

/// Runs `scope` without recording: results do not require grad, so nothing is saved for a backward pass
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
    Mode::current().without_grad().enter(scope)
}

/// Records operations again inside a `no_grad` scope (`torch.enable_grad`).
pub fn enable_grad<R>(scope: impl FnOnce() -> R) -> R {
    Mode { grad: true, ..Mode::current() }.enter(scope)
}

/// Like [`no_grad`]; moreover, tensors made in `scope` can never take part in a recorded computation
/// (`torch.inference_mode`).
pub fn inference_mode<R>(scope: impl FnOnce() -> R) -> R {
    Mode { grad: false, inference: true }.enter(scope)
}

/// Whether operations on this thread are recorded now (`torch.is_grad_enabled`).
pub fn is_grad_enabled() -> bool {
    Mode::current().grad
}

/// Whether operations on tensors that require grad get a node. In inference mode they do not, even in
/// [`enable_grad`].
pub(crate) fn is_recording() -> bool {
    Mode::current().grad && !MODE.get().inference
}

/// Whether this thread is in [`inference_mode`] now.
pub fn is_inference_mode_enabled() -> bool {
    Mode::current().inference
}
