//! The context of a thread: that of `todevice-gpu`, and what this crate adds to it.
//!
//! Code that runs for another thread, or once more at another time, takes [`All`] of it along.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) use todevice_gpu::thread::{Context as GpuContext, OfThread, Restore};
use todevice_gpu::thread::{Local, local};

use crate::cpu::pool;
use crate::dtype::DType;
use crate::machine::Machine;

/// What this crate adds to the context of a thread.
#[derive(Clone)]
pub(crate) struct Context {
    /// The machine that was entered last; none on the default one.
    pub machine: Option<Machine>,
    /// The last call on this thread that seeded all GPUs: its number, and the seed. It also seeds the GPUs of machines that the
    /// thread enters after the call. When the thread leaves a machine, calls that were made on that machine are forgotten.
    pub seed: Option<(u64, u64)>,
    /// How many named ranges are open.
    pub ranges: usize,
    pub mode: Mode,
    pub autocast: Autocast,
    /// The data loading worker that runs here.
    pub worker: Option<CurrentWorker>,
    /// The tensors that stand for those of parameters and buffers.
    pub stand_ins: Above,
    /// The checkpoint whose function runs.
    pub checkpoint: Above,
}

/// Something of a type that only a module above knows.
pub(crate) type Above = Option<Arc<dyn Any + Send + Sync>>;

/// Whether operations are recorded.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    pub grad: bool,
    pub inference: bool,
}

/// What autocast does.
#[derive(Clone)]
pub(crate) struct Autocast {
    pub cpu: Casting,
    pub cuda: Casting,
    pub cache_enabled: bool,
    /// How many regions there are around.
    pub depth: u32,
    /// Within an operation, whose parts are not cast again.
    pub suspended: bool,
    /// What weights were cast to in the outermost region.
    pub weights: Above,
}

/// What autocast does on devices of a type.
#[derive(Clone, Copy)]
pub(crate) struct Casting {
    pub enabled: bool,
    pub dtype: DType,
}

/// Which worker this is (`torch.utils.data.get_worker_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerInfo {
    /// From 0.
    pub id: usize,
    /// How many workers the loader was asked for, whether or not there was work for all.
    pub num_workers: usize,
    /// The seed of this worker's default generator: the epoch's base seed plus the id.
    pub seed: u64,
}

/// A worker, and whether its work is no longer wanted.
#[derive(Clone)]
pub(crate) struct CurrentWorker {
    pub info: WorkerInfo,
    pub stop: Arc<AtomicBool>,
}

impl Context {
    /// That of a thread on which nothing has happened yet.
    const FRESH: Context = Context {
        machine: None,
        seed: None,
        ranges: 0,
        mode: Mode { grad: true, inference: false },
        autocast: Autocast {
            cpu: Casting { enabled: false, dtype: DType::BF16 },
            cuda: Casting { enabled: false, dtype: DType::F16 },
            cache_enabled: true,
            depth: 0,
            suspended: false,
            weights: None,
        },
        worker: None,
        stand_ins: None,
        checkpoint: None,
    };
}

struct Thread {
    context: Local<Context>,
    doomed: RefCell<Doomed>,
}

/// What is still to be freed, while the thread is freeing something. `autograd::graph` knows what that is.
pub(crate) type Doomed = Option<std::mem::ManuallyDrop<Box<dyn Any>>>;

thread_local! {
    static THREAD: Thread =
        const { Thread { context: local(Context::FRESH), doomed: RefCell::new(None) } };
}

impl OfThread for Context {
    #[inline]
    fn with<R>(access: impl FnOnce(&Local<Context>) -> R) -> R {
        THREAD.with(|thread| access(&thread.context))
    }
}

/// Not part of the context: what a thread frees is its own affair.
pub(crate) fn with_doomed<R>(access: impl FnOnce(&mut Doomed) -> R) -> R {
    THREAD.with(|thread| access(&mut thread.doomed.borrow_mut()))
}

/// The whole context of a thread.
#[derive(Clone)]
pub(crate) struct All {
    pub gpu: GpuContext,
    pub own: Context,
}

impl All {
    pub fn current() -> All {
        All {
            gpu: GpuContext { is_alone: pool::is_alone(), ..GpuContext::current() },
            own: Context::current(),
        }
    }

    /// That of a new process, which computes alone where this thread does.
    pub fn of_new_process() -> All {
        All { gpu: GpuContext { is_alone: pool::is_alone(), ..GpuContext::FRESH }, own: Context::FRESH }
    }

    /// Makes it the context of this thread until the guard is dropped.
    #[inline(never)]
    pub fn enter(self) -> (Restore<GpuContext, GpuContext>, Restore<Context, Context>) {
        (self.gpu.enter(), self.own.enter())
    }
}

#[cfg(test)]
mod tests;
