//! The context of a thread: that of `todevice-gpu` and this crate's additions.
//!
//! Code that runs on behalf of another thread, or again at another time, takes [`All`] of it along.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) use todevice_gpu::host::thread::{CurrentDevice, OfThread, Part, Restore, ThreadContext};
use todevice_gpu::host::thread::{Local, local, parts};

use crate::cpu::pool;
use crate::dtype::DType;
use crate::machine::Machine;

/// This crate's additions to the context of a thread.
#[derive(Clone)]
pub(crate) struct TensorContext {
    /// The machine that was entered last; `None` for the default one.
    pub machine: Option<Machine>,
    pub seed: Seed,
    pub ranges: OpenRanges,
    pub mode: Mode,
    pub autocast: Autocast,
    /// The data loading worker that runs on this thread.
    pub worker: Option<CurrentWorker>,
    pub stand_ins: StandIns,
    pub saved_tensors_hooks: CurrentHooks,
}

/// A value whose type only a higher module knows.
pub(crate) type AnyValue = Option<Arc<dyn Any + Send + Sync>>;

parts!(
    TensorContext: Seed = seed, OpenRanges = ranges, Mode = mode, Autocast = autocast, Suspended = autocast.suspended,
    StandIns = stand_ins, CurrentHooks = saved_tensors_hooks,
);

/// The last call on this thread that seeded all GPUs: its number and the seed. It also seeds the GPUs of machines that
/// the thread enters after the call. When the thread leaves a machine, calls that were made on that machine are
/// forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(pub Option<(u64, u64)>);

/// The number of open named ranges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRanges(pub usize);

/// Whether autocast is suspended: within an operation, whose parts are not cast again.
#[derive(Clone, Copy)]
pub(crate) struct Suspended(pub bool);

/// The tensors that replace those of parameters and buffers.
#[derive(Clone)]
pub(crate) struct StandIns(pub AnyValue);

/// The hooks that replace saved tensors: those of the checkpoint whose function is running.
#[derive(Clone)]
pub(crate) struct CurrentHooks(pub AnyValue);

/// Whether operations are recorded for autograd.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    pub grad: bool,
    pub inference: bool,
}

/// The state of autocast.
#[derive(Clone)]
pub(crate) struct Autocast {
    pub cpu: Casting,
    pub cuda: Casting,
    pub cache_enabled: bool,
    /// The number of enclosing regions.
    pub depth: u32,
    pub suspended: Suspended,
    /// The results of casting weights in the outermost region.
    pub weights: AnyValue,
}

/// The state of autocast for one device type.
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
    /// The number of workers that the loader was asked for, whether or not there was work for all of them.
    pub num_workers: usize,
    /// The seed of this worker's default generator: the epoch's base seed plus the id.
    pub seed: u64,
}

/// A worker, and whether it should stop because its work is no longer wanted.
#[derive(Clone)]
pub(crate) struct CurrentWorker {
    pub info: WorkerInfo,
    pub stop: Arc<AtomicBool>,
}

impl TensorContext {
    /// The context of a thread on which nothing has happened yet.
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

/// The whole context of a thread.
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

    /// The context of a new process, which computes alone if this thread does.
    pub fn of_new_process() -> FullContext {
        FullContext {
            gpu: ThreadContext { is_alone: pool::is_alone(), ..ThreadContext::FRESH },
            own: TensorContext::FRESH,
        }
    }

    /// Makes it the context of this thread until the guard is dropped.
    #[inline(never)]
    pub fn enter(self) -> (Restore<ThreadContext>, Restore<TensorContext>) {
        (self.gpu.enter(), self.own.enter())
    }
}

#[cfg(test)]
mod tests;
