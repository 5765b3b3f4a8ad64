//! For an interpreter of Python: PyTorch's `with` blocks as guards, assignments to `x.data`, hooks written in another
//! language, and the steps of optimizers whose state the interpreter keeps.
//!
//! A program in Rust has closures for the first, and needs none of the others.

use crate::amp::{AutocastOptions, begin_autocast};
use crate::autograd::Mode;
use crate::error::Result;
use crate::events::Trace;
use crate::gpu::{self, Stream};
use crate::host_context::HostContext;
use crate::machine::{Machine, begin_range};
use crate::ops::scaler;
use crate::place::{Place, ScriptLine};
use crate::scope::{self, Leave};
use crate::tensor::Tensor;
pub use crate::thread::Guard;
use crate::thread::Part;

pub use crate::autograd::foreign::{on_gradient, record_foreign as record, saved_tensors_hooks};
pub use crate::dtype::result_type;
pub use crate::optim::{adam_step, sgd_step};

/// Attributes all work to a line of a script, unless it is part of the work of another line.
pub fn at_line(line: &'static ScriptLine) -> Leave {
    scope::on_behalf_of(Place::Script(line))
}

/// Begins `torch.set_grad_enabled`.
pub fn set_grad_enabled(grad: bool) -> Guard {
    Guard::of(Mode { grad, ..Mode::current() }.enter())
}

/// Begins `torch.inference_mode`.
pub fn inference_mode(inference: bool) -> Guard {
    Guard::of(Mode { grad: !inference, inference }.enter())
}

/// Begins `torch.autocast`.
pub fn autocast(options: AutocastOptions) -> Guard {
    Guard::of(begin_autocast(options))
}

/// Begins `torch.cuda.device`.
pub fn device(index: usize) -> Result<Guard> {
    Ok(Guard::of(gpu::begin_device(index)?))
}

/// Begins `torch.cuda.stream`.
pub fn stream(stream: &Stream) -> Guard {
    Guard::of(gpu::begin_stream(stream))
}

/// Begins `torch.profiler.record_function`.
#[track_caller]
pub fn record_function(name: &str) -> Guard {
    Guard::of(begin_range(name))
}

/// Returns `data` with the history of `x`, for `x.data = data`: gradients still accumulate where those of `x` do.
pub fn with_data(x: &Tensor, data: &Tensor) -> Tensor {
    let new = data.detached_from(data.place());
    new.set_history(x.history());
    new
}

/// The modelled time that the host spends on `optimizer.step()` and `optimizer.zero_grad()`, apart from its parameters.
pub fn spend_step() {
    HostContext::spend(|host| &host.step);
}

/// See [`spend_step`].
pub fn spend_zero_grad() {
    HostContext::spend(|host| &host.zero_grad);
}

/// Multiplies a gradient by `inv_scale`, and sets `found_inf` to 1 if an element is infinite or NaN
/// (`torch._amp_foreach_non_finite_check_and_unscale_`).
#[track_caller]
pub fn unscale(grad: &Tensor, inv_scale: &Tensor, found_inf: &Tensor) -> Result<()> {
    scaler::unscale(grad, inv_scale, found_inf)
}

/// Updates the scale of a gradient scaler (`torch._amp_update_scale_`).
#[track_caller]
pub fn update_scale(
    scale: &Tensor,
    growth_tracker: &Tensor,
    found_inf: &Tensor,
    [growth, backoff]: [f64; 2],
    growth_interval: u32,
) -> Result<()> {
    scaler::update_scale(scale, growth_tracker, found_inf, [growth, backoff], growth_interval)
}

/// A recording that is started and finished by two calls (`torch.profiler.profile`).
pub struct Recording {
    machine: Machine,
    number: u64,
}

impl Recording {
    /// Starts to record the current machine.
    pub fn start() -> Recording {
        let machine = Machine::current();
        let number = machine.start_recording();
        Recording { machine, number }
    }

    /// Returns what the machine has done since.
    pub fn finish(self) -> Trace {
        let trace = self.machine.trace_of(self.number);
        self.machine.stop_recording(self.number);
        trace
    }
}
