//! A thread's context: that of `todevice-gpu` and this crate's additions. Code that runs for another thread, or again
//! later, takes along a [`FullContext`].

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) use todevice_gpu::host::thread::{CurrentDevice, OfThread, Part, Restore, ThreadContext};
use todevice_gpu::host::thread::{Local, local, parts};

use crate::cpu::pool;
use crate::dtype::DType;
use crate::machine::Machine;

/// This crate's part of a thread's context.
#[derive(Clone)]
pub(crate) struct TensorContext {
    /// The innermost entered machine; `None` for the default machine.
    pub machine: Option<Machine>,
    pub seed: Seed,
    pub ranges: OpenRanges,
    pub mode: Mode,
    pub autocast: Autocast,
    /// The data loading worker on this thread.
    pub worker: Option<CurrentWorker>,
    pub stand_ins: StandIns,
    pub saved_tensors_hooks: CurrentHooks,
}

/// A value whose type only a higher module can name.
pub(crate) type AnyValue = Option<Arc<dyn Any + Send + Sync>>;

parts!(
    TensorContext: Seed = seed, OpenRanges = ranges, Mode = mode, Autocast = autocast, Suspended = autocast.suspended,
    StandIns = stand_ins, CurrentHooks = saved_tensors_hooks,
);

/// The number and the seed of this thread's last call that seeded all GPUs. It also seeds the GPUs of machines that the
/// thread enters later. When the thread leaves a machine, calls made inside are forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(pub Option<(u64, u64)>);

/// The number of open `record_function` ranges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRanges(pub usize);

/// Whether autocast is suspended, as it is inside an operation.
#[derive(Clone, Copy)]
pub(crate) struct Suspended(pub bool);

/// The substitutes for parameters and buffers.
#[derive(Clone)]
pub(crate) struct StandIns(pub AnyValue);

/// The hooks that replace saved tensors: those of the checkpoint whose function is running.
#[derive(Clone)]
pub(crate) struct CurrentHooks(pub AnyValue);

#[derive(Clone, Copy)]
pub(crate) struct Mode {
    pub grad: bool,
    pub inference: bool,
}

#[derive(Clone)]
pub(crate) struct Autocast {
    pub cpu: Casting,
    pub cuda: Casting,
    pub cache_enabled: bool,
    /// The number of enclosing regions.
    pub depth: u32,
    pub suspended: Suspended,
    /// The cached casts of weights.
    pub weights: AnyValue,
}

#[derive(Clone, Copy)]
pub(crate) struct Casting {
    pub enabled: bool,
    pub dtype: DType,
}

/// Information about a data loading worker (`torch.utils.data.get_worker_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerInfo {
    /// The id of the worker, from 0.
    pub id: usize,
    /// The number of workers requested from the loader, even if some have no work.
    pub num_workers: usize,
    /// The seed of the worker's default generator: the epoch's base seed plus the id.
    pub seed: u64,
}

/// A worker, and the flag that asks it to stop.
#[derive(Clone)]
pub(crate) struct CurrentWorker {
    pub info: WorkerInfo,
    pub stop: Arc<AtomicBool>,
}

impl TensorContext {
    /// The context of a new thread.
    const FRESH: TensorContext = TensorContext {
        machine: None,
        seed: Seed(None),
        ranges: OpenRanges(0),
        mode: Mode { grad: true, inference: false },
        autocast: Autocast {
            cpu: Casting { enabled: false, dtype: DType::BF16 },
            cuda: Casting { enabled: false, dtype: DType::F16 },
            cache_enabled: true,
            depth: 0,
            suspended: Suspended(false),
            weights: None,
        },
        worker: None,
        stand_ins: StandIns(None),
        saved_tensors_hooks: CurrentHooks(None),
    };
}

thread_local! {
    static CONTEXT: Local<TensorContext> = const { local(TensorContext::FRESH) };
}

impl OfThread for TensorContext {
    #[inline(always)]
    fn with<R>(access: impl FnOnce(&Local<TensorContext>) -> R) -> R {
        CONTEXT.with(access)
    }
}

/// Ends a scope when dropped. Scopes end in the reverse order of their beginnings.
#[must_use]
pub struct Guard(#[allow(dead_code)] Box<dyn Any>);

impl Guard {
    pub(crate) fn of(guard: impl Any) -> Guard {
        Guard(Box::new(guard))
    }

    /// Lets the scope last as long as the thread, as `torch.set_grad_enabled(False)` does.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

#[derive(Clone)]
pub(crate) struct FullContext {
    pub gpu: ThreadContext,
    pub own: TensorContext,
}

impl FullContext {
    pub fn current() -> FullContext {
        FullContext {
            gpu: ThreadContext { is_alone: pool::is_alone(), ..ThreadContext::current() },
            own: TensorContext::current(),
        }
    }

    /// Returns the context of a new process, which computes alone if this thread does.
    pub fn of_new_process() -> FullContext {
        FullContext {
            gpu: ThreadContext { is_alone: pool::is_alone(), ..ThreadContext::FRESH },
            own: TensorContext::FRESH,
        }
    }

    /// Enters the context until the guards are dropped.
    #[inline(never)]
    pub fn enter(self) -> (Restore<ThreadContext>, Restore<TensorContext>) {
        (self.gpu.enter(), self.own.enter())
    }
}

#[cfg(test)]
mod tests;
