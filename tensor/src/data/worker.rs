//! Workers: making batches off the caller's thread, with no visible difference to the caller.
//!
//! What a worker makes depends on three things only: the jobs it was given, in order; the seed of its own
//! generator; and the context of the thread that began the epoch. So it makes the same batches on a thread of
//! its own as it does in the caller's, where there are no threads to be had (in a browser). [`Worker`]
//! knows the difference, nothing else does.
//!
//! Where time is modelled, workers take the times in the host's profile: those of threads, even if they run on the
//! caller's thread, or those of processes, like PyTorch's workers.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::batch::{self, Batch};
use super::error::DataError;
use crate::amp;
use crate::error::{Error, Result};
use crate::host_context::HostContext;
use crate::machine::Machine;
use crate::random::Generator;
use crate::scope::{Place, Scope};
pub use crate::thread::WorkerInfo;
use crate::thread::{CurrentCheckpoint, CurrentWorker, FullContext, OfThread, TensorContext, ThreadContext};
use crate::time::Clock;

/// A function called in each worker, with its id, before its first batch (`worker_init_fn`). The worker's generator
/// has been seeded by then.
pub type WorkerInitFn = Arc<dyn Fn(usize) -> Result<()> + Send + Sync>;

/// Makes the batch of the given indices.
pub(super) type Fetch<B> = Arc<dyn Fn(&[usize]) -> Result<B> + Send + Sync>;

/// Inside a worker of a [`DataLoader`](super::DataLoader) what it is, elsewhere `None`
/// (`torch.utils.data.get_worker_info`).
pub fn get_worker_info() -> Option<WorkerInfo> {
    TensorContext::read(|context| context.worker.as_ref().map(|worker| worker.info))
}

/// Returns an error in a worker whose iterator has been dropped, so that a batch of slow samples ends early. Nobody
/// is left to see the error.
pub(super) fn check_wanted() -> Result<()> {
    let gone = |worker: &CurrentWorker| worker.stop.load(Ordering::Relaxed);
    let stop = TensorContext::read(|context| context.worker.as_ref().is_some_and(gone));
    if stop { Err(Error::custom("the iterator of this DataLoader was dropped")) } else { Ok(()) }
}

/// The settings shared by all workers of a pool.
pub(super) struct Plan<B> {
    pub fetch: Fetch<B>,
    pub worker_init_fn: Option<WorkerInitFn>,
    pub num_workers: usize,
    pub base_seed: u64,
    /// The line that started the epoch, recorded as the place where the workers' tensors are made.
    pub place: Place,
    /// The time to wait for a batch; zero waits forever.
    pub timeout: Duration,
    /// Whether workers run on threads of their own.
    pub threads: bool,
    /// Whether batches are pinned.
    pub pin: bool,
}

/// The workers of one iterator or, if they are persistent, of successive iterators.
///
/// Batches go to the workers in turn: batch `k` to worker `k % num_workers`, and each worker makes its batches in
/// order. So the next batch always comes from a known worker, and no reordering is needed.
pub(super) struct WorkerPool<B> {
    plan: Plan<B>,
    machine: Machine,
    /// That of the thread that began the epoch: PyTorch's workers are forks, so they record or cast as it does.
    context: Box<FullContext>,
    /// Started when there is a first batch for them: never more than there are batches.
    workers: Vec<Worker<B>>,
    sent: usize,
    received: usize,
    stop: Arc<AtomicBool>,
    /// The clock of the thread that pins the workers' batches.
    pin_lane: Clock,
}

impl<B: Batch> WorkerPool<B> {
    pub fn new(plan: Plan<B>) -> WorkerPool<B> {
        let (machine, context) = (Machine::current(), Box::new(FullContext::current()));
        let stop = Arc::new(AtomicBool::new(false));
        let pin_lane = machine.worker_lane();
        WorkerPool { plan, machine, context, workers: Vec::new(), sent: 0, received: 0, stop, pin_lane }
    }

    pub fn base_seed(&self) -> u64 {
        self.plan.base_seed
    }

    /// The number of batches requested but not yet received.
    pub fn outstanding(&self) -> usize {
        self.sent - self.received
    }

    /// Requests a batch. Returns an error if this needs a new worker that cannot be started.
    pub fn send(&mut self, indices: Vec<usize>) -> Result<()> {
        let id = self.sent % self.plan.num_workers;
        if id == self.workers.len() {
            self.workers.push(Worker::start(self.desk(id), self.plan.threads)?);
            HostContext::spend(|host| &host.worker);
        }
        self.workers[id].send(LoadJob { indices, sent_at: HostContext::now() });
        self.sent += 1;
        Ok(())
    }

    /// Waits for the oldest outstanding batch. The outer error is a timeout.
    pub fn receive(&mut self) -> Result<Result<B>> {
        let done = self.receive_unpinned()?;
        let done = if self.plan.pin { self.pin(done) } else { done };
        Ok(self.hand_over(done))
    }

    /// The caller sleeps until a batch is ready, and takes it. The machine then records the time that others worked
    /// for it.
    fn hand_over(&self, done: ReadyBatch<B>) -> Result<B> {
        self.machine.host().others_worked(done.worked);
        HostContext::lane().sleep_until(done.ready_at);
        HostContext::spend(|host| &host.hand_over);
        done.batch
    }

    fn receive_unpinned(&mut self) -> Result<ReadyBatch<B>> {
        let id = self.received % self.plan.num_workers;
        let done = self.workers[id].receive(self.plan.timeout);
        if done.is_err() {
            // Whatever delays one worker may delay the others, so the pool stops waiting for any of them. Each
            // thread ends by itself when its sample is done, if ever.
            self.workers.iter_mut().for_each(Worker::detach);
        }
        self.received += 1;
        done
    }

    /// Does the work of PyTorch's pinning thread, one batch after the other, as they come from the workers.
    ///
    /// Only one thread may drive a simulated GPU, so pinning happens on the caller's thread, at the last moment.
    /// Its time is charged as if a thread had started as soon as the batch was there.
    fn pin(&self, done: ReadyBatch<B>) -> ReadyBatch<B> {
        self.pin_lane.sleep_until(done.ready_at);
        let before = self.pin_lane.worked();
        let pin = |batch| {
            let device = HostContext::current_device();
            self.machine.enter_lane(self.pin_lane.clone(), || batch::pin(batch)).map_err(|error| {
                DataError::PinThread { kind: error.kind(), device, cause: Arc::new(error) }.into()
            })
        };
        let batch = done.batch.and_then(pin);
        let worked = done.worked + self.pin_lane.worked() - before;
        ReadyBatch { batch, ready_at: self.pin_lane.now(), worked }
    }

    /// Prepares persistent workers for another epoch. Batches that were requested by an epoch left early are
    /// received and discarded, so that the workers' random numbers do not depend on how far they had got.
    pub fn begin_epoch(&mut self) -> Result<()> {
        while self.outstanding() > 0 {
            let done = self.receive_unpinned()?;
            drop(self.hand_over(done));
        }
        (self.sent, self.received) = (0, 0);
        Ok(())
    }

    fn desk(&self, id: usize) -> WorkerEnvironment<B> {
        let Plan { num_workers, base_seed, place, threads, .. } = self.plan;
        let info = WorkerInfo { id, num_workers, seed: base_seed.wrapping_add(id as u64) };
        let (lane, stop) = (self.machine.worker_lane(), self.stop.clone());
        let generator = Generator::new().manual_seed(info.seed);
        let host = self.machine.host().entered_as(Some(generator), lane.clone(), true);
        let FullContext { gpu, own } = *self.context.clone();
        let context = FullContext {
            gpu: ThreadContext {
                host: Some(host),
                scope: Scope::at(place),
                // PyTorch's workers compute on one thread each, too.
                is_alone: threads || gpu.is_alone,
                ..gpu
            },
            // What the caller computes again in its backward pass is not the worker's work.
            own: TensorContext {
                worker: Some(CurrentWorker { info, stop: stop.clone() }),
                autocast: amp::anew(own.autocast),
                checkpoint: CurrentCheckpoint(None),
                ..own
            },
        };
        WorkerEnvironment {
            info,
            context,
            lane,
            stop,
            init_fn: self.plan.worker_init_fn.clone(),
            init_failure: None,
            fetch: self.plan.fetch.clone(),
        }
    }
}

impl<B> Drop for WorkerPool<B> {
    fn drop(&mut self) {
        // All workers are told to stop before the first one is joined.
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// One worker, on a thread or on the caller's.
enum Worker<B> {
    OnThread(WorkerThread<B>),
    /// Makes its batch on the caller's thread when the batch is requested.
    InCaller {
        desk: Box<WorkerEnvironment<B>>,
        jobs: VecDeque<LoadJob>,
    },
}

/// A batch to make, and the time it was requested.
struct LoadJob {
    indices: Vec<usize>,
    sent_at: u64,
}

/// A batch, and the time it was ready. On a machine with virtual time this follows from the jobs alone, however the
/// threads were scheduled.
struct ReadyBatch<B> {
    batch: Result<B>,
    ready_at: u64,
    /// The time that threads other than the caller's worked on it.
    worked: u64,
}

struct WorkerThread<B> {
    id: usize,
    /// Both queues are unbounded, but the iterator bounds the outstanding batches, so no worker ever waits to
    /// deliver a batch.
    jobs: Option<Sender<LoadJob>>,
    batches: Receiver<ReadyBatch<B>>,
    thread: Option<JoinHandle<()>>,
}

impl<B: Send + 'static> Worker<B> {
    fn start(desk: WorkerEnvironment<B>, threads: bool) -> Result<Worker<B>> {
        if !threads {
            return Ok(Worker::InCaller { desk: Box::new(desk), jobs: VecDeque::new() });
        }
        let id = desk.info.id;
        let (jobs, inbox) = mpsc::channel();
        let (outbox, batches) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(format!("DataLoader worker {id}"))
            .spawn(move || desk.work(inbox, outbox))
            .map_err(|error| DataError::WorkerStart { worker: id, reason: error.to_string() })?;
        Ok(Worker::OnThread(WorkerThread { id, jobs: Some(jobs), batches, thread: Some(thread) }))
    }

    /// Detaches the thread, which ends by itself.
    fn detach(&mut self) {
        if let Worker::OnThread(worker) = self {
            worker.thread = None;
        }
    }

    fn send(&mut self, job: LoadJob) {
        match self {
            Worker::OnThread(worker) => {
                if let Some(jobs) = &worker.jobs {
                    // If the worker is gone, receiving its batch will report it.
                    let _ = jobs.send(job);
                }
            }
            Worker::InCaller { jobs, .. } => jobs.push_back(job),
        }
    }

    /// Receives the next batch. The outer error is a timeout.
    fn receive(&mut self, timeout: Duration) -> Result<ReadyBatch<B>> {
        match self {
            Worker::OnThread(worker) => worker.receive(timeout),
            Worker::InCaller { desk, jobs } => {
                Ok(desk.make(&jobs.pop_front().expect("a batch that was sent for")))
            }
        }
    }
}

impl<B> WorkerThread<B> {
    fn receive(&mut self, timeout: Duration) -> Result<ReadyBatch<B>> {
        let batch = if timeout.is_zero() {
            self.batches.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            self.batches.recv_timeout(timeout)
        };
        match batch {
            Ok(batch) => Ok(batch),
            Err(RecvTimeoutError::Timeout) => {
                Err(DataError::Timeout { seconds: timeout.as_secs_f64() }.into())
            }
            Err(RecvTimeoutError::Disconnected) => {
                let cause = Error::custom("the worker exited unexpectedly");
                let batch = Err(Failure { kind: "panic", cause: Arc::new(cause) }.in_worker(self.id));
                Ok(ReadyBatch { batch, ready_at: 0, worked: 0 })
            }
        }
    }
}

impl<B> Drop for WorkerThread<B> {
    fn drop(&mut self) {
        self.jobs = None; // Closing the queue ends the thread.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A worker's environment: everything that makes its results independent of where it runs.
struct WorkerEnvironment<B> {
    info: WorkerInfo,
    context: FullContext,
    /// The clock of this worker.
    lane: Clock,
    stop: Arc<AtomicBool>,
    /// The init function, if it has not been called yet.
    init_fn: Option<WorkerInitFn>,
    /// A failed initialization is the error of all of this worker's batches.
    init_failure: Option<Failure>,
    fetch: Fetch<B>,
}

impl<B> WorkerEnvironment<B> {
    /// The main loop of a worker's thread.
    fn work(mut self, inbox: Receiver<LoadJob>, outbox: Sender<ReadyBatch<B>>) {
        for job in inbox {
            if self.stop.load(Ordering::Relaxed) || outbox.send(self.make(&job)).is_err() {
                break;
            }
        }
    }

    fn make(&mut self, job: &LoadJob) -> ReadyBatch<B> {
        self.lane.sleep_until(job.sent_at);
        let before = self.lane.worked();
        if let Some(init_fn) = self.init_fn.take() {
            self.init_failure = self.enter(|| attempt(|| init_fn(self.info.id))).err();
        }
        let batch = match &self.init_failure {
            Some(failure) => Err(failure.clone()),
            None => self.enter(|| attempt(|| (self.fetch)(&job.indices))),
        };
        let batch = batch.map_err(|failure| failure.in_worker(self.info.id));
        ReadyBatch { batch, ready_at: self.lane.now(), worked: self.lane.worked() - before }
    }

    fn enter<R>(&self, scope: impl FnOnce() -> R) -> R {
        let _left = self.context.clone().enter();
        scope()
    }
}

/// The reason why a worker could not make a batch, before the worker is named.
#[derive(Clone)]
struct Failure {
    kind: &'static str,
    cause: Arc<Error>,
}

impl Failure {
    fn in_worker(self, worker: usize) -> Error {
        DataError::Worker { worker, kind: self.kind, cause: self.cause }.into()
    }
}

/// Calls the user's code. A panic in it is returned as a failure and does not end the worker.
fn attempt<R>(call: impl FnOnce() -> Result<R>) -> Result<R, Failure> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| Failure { kind: error.kind(), cause: Arc::new(error) }),
        Err(panic) => Err(Failure { kind: "panic", cause: Arc::new(Error::custom(panic_message(&*panic))) }),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}
