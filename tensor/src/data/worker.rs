//! Workers make batches off the caller's thread.
//!
//! A worker's batches depend only on its jobs, its seed, and the context of the thread that started the epoch. Without
//! threads, as in a browser, the caller's thread makes the same batches; only [`Worker`] is aware of the difference.
//! Modelled times are the host profile's, for threads or, like PyTorch's workers, processes.

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

/// A function that each worker calls with its id, after seeding and before its first batch (`worker_init_fn`).
pub type WorkerInitFn = Arc<dyn Fn(usize) -> Result<()> + Send + Sync>;

pub(super) type Fetch<B> = Arc<dyn Fn(&[usize]) -> Result<B> + Send + Sync>;

/// Returns the current worker's id and seed; `None` outside of workers (`torch.utils.data.get_worker_info`).
pub fn get_worker_info() -> Option<WorkerInfo> {
    TensorContext::read(|context| context.worker.as_ref().map(|worker| worker.info))
}

/// Returns an error in a worker whose iterator was dropped, which ends the batch early. No caller sees it.
pub(super) fn check_wanted() -> Result<()> {
    let gone = |worker: &CurrentWorker| worker.stop.load(Ordering::Relaxed);
    let stop = TensorContext::read(|context| context.worker.as_ref().is_some_and(gone));
    if stop { Err(Error::custom("the iterator of this DataLoader is gone")) } else { Ok(()) }
}

pub(super) struct Plan<B> {
    pub fetch: Fetch<B>,
    pub worker_init_fn: Option<WorkerInitFn>,
    pub num_workers: usize,
    pub base_seed: u64,
    /// The line that started the epoch, which becomes the origin of the workers' tensors.
    pub place: Place,
    /// The timeout of a batch; zero for none.
    pub timeout: Duration,
    pub threads: bool,
    pub pin: bool,
}

/// The workers of one iterator, or of successive ones if persistent. Worker `k % num_workers` makes batch `k`.
pub(super) struct WorkerPool<B> {
    plan: Plan<B>,
    machine: Machine,
    /// The context of the thread that started the epoch: PyTorch's workers are forks, with its grad mode and autocast.
    context: Box<FullContext>,
    /// Started with their first batch, so never more workers than batches.
    workers: Vec<Worker<B>>,
    sent: usize,
    received: usize,
    stop: Arc<AtomicBool>,
    /// The modelled time of the pinning thread.
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

    pub fn outstanding(&self) -> usize {
        self.sent - self.received
    }

    /// Requests a batch. Returns an error if a new worker is needed and cannot start.
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

    /// Lets the caller's clock wait for the batch, and records the time that the workers spent on it.
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
            // The other workers may be stuck, too, so the pool joins none of them. Each thread ends after its sample.
            self.workers.iter_mut().for_each(Worker::detach);
        }
        self.received += 1;
        done
    }

    /// Pins batches one after another, like PyTorch's pinning thread. Only one thread may drive a simulated GPU, so the
    /// caller's thread does it, but its modelled time starts when the batch is ready.
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

    /// Prepares persistent workers for another epoch. Outstanding batches of an epoch that ended early are discarded,
    /// so that the workers' random numbers do not depend on the workers' speed.
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
            // The caller's checkpoint does not cover the worker's operations.
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
        // Stops all workers before the first is joined.
        self.stop.store(true, Ordering::Relaxed);
    }
}

enum Worker<B> {
    OnThread(WorkerThread<B>),
    /// Makes its batches on the caller's thread, on request.
    InCaller {
        desk: Box<WorkerEnvironment<B>>,
        jobs: VecDeque<LoadJob>,
    },
}

struct LoadJob {
    indices: Vec<usize>,
    sent_at: u64,
}

/// In virtual time, `ready_at` depends only on the jobs, not on the scheduling of threads.
struct ReadyBatch<B> {
    batch: Result<B>,
    ready_at: u64,
    /// The time that other threads spent on it.
    worked: u64,
}

struct WorkerThread<B> {
    id: usize,
    /// Unbounded, but the iterator limits the outstanding batches: a worker never blocks on sending.
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

    fn detach(&mut self) {
        if let Worker::OnThread(worker) = self {
            worker.thread = None;
        }
    }

    fn send(&mut self, job: LoadJob) {
        match self {
            Worker::OnThread(worker) => {
                if let Some(jobs) = &worker.jobs {
                    // If the worker is gone, `receive` reports it.
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
        self.jobs = None; // Ends the thread.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A worker's state, which makes its results independent of its thread.
struct WorkerEnvironment<B> {
    info: WorkerInfo,
    context: FullContext,
    lane: Clock,
    stop: Arc<AtomicBool>,
    init_fn: Option<WorkerInitFn>,
    /// The error of the init function, returned for every batch.
    init_failure: Option<Failure>,
    fetch: Fetch<B>,
}

impl<B> WorkerEnvironment<B> {
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

/// Calls the user's code. A panic becomes a failure.
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
