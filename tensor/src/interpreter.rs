//! For an interpreter of Python: PyTorch's `with` blocks as guards, assignments to `x.data`, hooks written in another
//! language, and the steps of optimizers whose state the interpreter keeps.
//!
//! A program in Rust has closures for the first, and needs none of the others.

use std::sync::Arc;

use crate::amp::{AutocastOptions, begin_autocast};
use crate::autograd::Mode;
use crate::error::Result;
use crate::events::Trace;
use crate::gpu::{self, Stream};
use crate::host_context::HostContext;
use crate::machine::{Machine, begin_range};
use crate::nn::Parameter;
use crate::ops::scaler;
use crate::parallel::distributed::{Averaging, DistributedDataParallelOptions, RankScope, Ranks};
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
    // A leaf of other sizes has gradients of other sizes.
    let is_other_leaf = x.is_leaf() && x.requires_grad() && x.sizes() != data.sizes();
    if is_other_leaf && let Ok(leaf) = new.requires_grad_(true) {
        return leaf;
    }
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

/// Frees the workspaces of cuBLAS (`torch._C._cuda_clearCublasWorkspaces`).
pub fn clear_cublas_workspaces() {
    Machine::current().cuda().iter().for_each(|cuda| cuda.clear_workspaces());
}

/// Ranks whose programs the interpreter starts (`torch.multiprocessing`). Clones are the same ranks.
#[derive(Clone)]
pub struct Processes(Arc<Ranks>);

impl Processes {
    /// Makes ranks on the current machine. See [`Ranks::new`].
    pub fn new(world_size: usize) -> Result<Processes> {
        Ok(Processes(Arc::new(Ranks::new(world_size)?)))
    }

    /// Returns the number of ranks.
    pub fn world_size(&self) -> usize {
        self.0.world_size()
    }

    /// Makes this thread, which is new, a rank. Returns when it is its turn.
    pub fn begin(&self, rank: usize) -> Process {
        Process(self.0.begin(rank))
    }

    /// Makes the program that has called [`new`](Self::new) a rank, with its tensors. Returns an error with real GPUs.
    pub fn join(&self, rank: usize) -> Result<Process> {
        Ok(Process(self.0.join(rank)?))
    }

    /// Moves the clock of this thread to the latest of all ranks, after a wait for their end.
    pub fn wait_for_clocks(&self) {
        self.0.wait_for_clocks();
    }
}

/// A rank's program on this thread. The other ranks run when it waits for them, or ends.
pub struct Process(RankScope);

impl Process {
    /// Ends the program. `failure` is the first line of its error.
    pub fn end(self, failure: Option<String>) {
        self.0.end(failure);
    }
}

/// The gradients of a model whose modules are written in another language, averaged over ranks
/// (`torch.nn.parallel.DistributedDataParallel`).
pub struct DistributedModel(Averaging);

impl DistributedModel {
    /// `parameters` are leaves. See [`DistributedDataParallel::new`](crate::distributed::DistributedDataParallel::new).
    #[track_caller]
    pub fn new(
        parameters: Vec<(String, Tensor)>,
        buffers: Vec<(String, Tensor)>,
        options: DistributedDataParallelOptions,
    ) -> Result<DistributedModel> {
        let parameters = parameters.into_iter().map(|(name, leaf)| (name, Parameter::of_leaf(leaf)));
        Ok(DistributedModel(Averaging::new(parameters.collect(), buffers, options)?))
    }

    /// Switches averaging on or off for the next forward passes. Returns the earlier state.
    pub fn set_sync(&self, sync: bool) -> bool {
        self.0.set_sync(sync)
    }

    /// Returns each bucket's bytes and parameters, in sending order.
    pub fn buckets(&self) -> Vec<(usize, Vec<String>)> {
        self.0.buckets()
    }

    /// Begins a forward pass with rank 0's buffers. Returns whether its backward pass averages.
    #[track_caller]
    pub fn before_forward(&self, buffers: Vec<Tensor>) -> Result<bool> {
        self.0.before_forward(|| buffers)
    }

    /// Ends a forward pass with these results.
    pub fn after_forward(&self, averages: bool, outputs: &[&Tensor]) -> Result<()> {
        self.0.after_forward(averages, outputs)
    }
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
