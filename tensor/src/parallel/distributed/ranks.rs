use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::distributed::{DistributedError, RankError};
use crate::error::{Error, Result};
use crate::host_context::HostContext;
use crate::lock::lock;
use crate::machine::Machine;
use crate::ranks::{Ended, World};
use crate::thread::{CurrentDevice, FullContext, Part, Restore, TensorContext, ThreadContext};

/// Runs `program` on `world_size` ranks and returns the results in rank order (`torch.multiprocessing.spawn`, or
/// `torchrun --nproc-per-node`). [`Ranks`] runs a program in phases.
///
/// ```
/// use todevice::distributed::{self as dist, ReduceOp};
/// use todevice::{Device, Machine, Tensor, cuda};
///
/// let machine: Machine = "sim:t4x4".parse()?;
/// let sums = machine.enter(|| {
///     dist::spawn(4, |rank| {
///         cuda::set_device(rank)?;
///         dist::init_process_group("nccl")?;
///         let x = Tensor::full(&[2], (rank as f64, Device::cuda(rank)))?;
///         dist::all_reduce(&x, ReduceOp::Sum)?;
///         x.sum()?.item()
///     })
/// })?;
/// assert_eq!(sums, [12.0; 4]);
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// If ranks fail or panic, returns the first error, with its rank ([`Error::Rank`]).
pub fn spawn<T: Send>(world_size: usize, program: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    Ranks::new(world_size)?.run(program)
}

/// Ranks on the current machine, which run a program in phases.
///
/// A rank resembles a new process: its clock, generators, flags, caching allocator and streams are separate; it starts
/// without a process group, with `cuda:0` as the current device and grad mode on. Ranks share only what they send. A
/// GPU tensor stays with the rank that made it: captured tensors, and results for the caller, must be on the host.
///
/// Only one rank runs at a time, until it waits. Times do not depend on the order: all ranks' clocks start together.
/// Between phases a rank keeps its current device, process groups and clock. The end of a phase orders nothing and
/// takes no time.
///
/// In a web page, which has no threads, ranks run a phase one after another, and must not wait for another rank's work
/// in the same phase. Collectives on a GPU do not block the host; reading a result does, and so does a copy to the GPU
/// without `non_blocking`. A portable program does these at the start of a phase, or in the next phase:
///
/// ```
/// use todevice::distributed::{self as dist, Ranks, ReduceOp};
/// use todevice::{Device, Machine, Tensor, cuda};
///
/// let machine: Machine = "sim:h200x2".parse()?;
/// machine.enter(|| {
///     let ranks = Ranks::new(2)?;
///     let mut tensors = ranks.run(|rank| {
///         cuda::set_device(rank)?;
///         dist::init_process_group("nccl")?;
///         let x = Tensor::ones((&[1000], Device::cuda(rank)))?;
///         dist::all_reduce(&x, ReduceOp::Sum)?; // queued on the GPU
///         Ok(x)
///     })?;
///     let sums = ranks.run_each(&mut tensors, |_rank, x| x.sum()?.item())?; // waits for the GPU
///     assert_eq!(sums, [2000.0; 2]);
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub struct Ranks {
    parent: Machine,
    world: Arc<World>,
    ranks: Vec<RankMachine>,
}

struct RankMachine {
    machine: Machine,
    device: Mutex<usize>,
}

impl Ranks {
    /// Creates `world_size` ranks on the current machine. Returns an error if `world_size` is 0, if the system does not
    /// allow two open files per rank, and with real GPUs, whose collectives need NCCL.
    pub fn new(world_size: usize) -> Result<Ranks> {
        Ranks::made(world_size, cfg!(not(target_family = "wasm")))
    }

    /// Like [`new`](Self::new), but without threads, as in a web page: for tests.
    #[doc(hidden)]
    pub fn in_turns(world_size: usize) -> Result<Ranks> {
        Ranks::made(world_size, false)
    }

    fn made(world_size: usize, threads: bool) -> Result<Ranks> {
        if world_size == 0 {
            return Err(DistributedError::NoRanks.into());
        }
        let world = World::new(world_size, threads)
            .map_err(|error| DistributedError::Turns { ranks: world_size, why: error.to_string() })?;
        let parent = Machine::current();
        let rank = |rank| {
            let machine = parent.fork(rank, &world).ok_or(DistributedError::RealGpus)?;
            Ok(RankMachine { machine, device: Mutex::new(0) })
        };
        let ranks = (0..world_size).map(rank).collect::<Result<_>>()?;
        Ok(Ranks { parent, world, ranks })
    }

    /// Returns the number of ranks.
    pub fn world_size(&self) -> usize {
        self.ranks.len()
    }

    /// Runs a phase: `program` on every rank. Returns the results in rank order, or, after all ranks have ended, the
    /// first error ([`Error::Rank`]).
    pub fn run<T: Send>(&self, program: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
        self.run_each(&mut vec![(); self.ranks.len()], |rank, ()| program(rank))
    }

    /// Like [`run`](Self::run), with a state per rank, for example the result of an earlier phase. Also returns an
    /// error if the numbers of states and ranks differ.
    pub fn run_each<S: Send, T: Send>(
        &self,
        states: &mut [S],
        program: impl Fn(usize, &mut S) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (ranks, count) = (self.ranks.len(), states.len());
        if count != ranks {
            return Err(DistributedError::States { ranks, states: count }.into());
        }
        let places: Vec<_> = states.iter_mut().map(|state| Mutex::new((state, None))).collect();
        self.run_phase(&|rank| {
            let (state, value) = &mut *lock(&places[rank]);
            *value = Some(program(rank, state)?);
            Ok(())
        })?;
        let value =
            |place: Mutex<(_, Option<T>)>| place.into_inner().unwrap_or_else(PoisonError::into_inner).1;
        Ok(places.into_iter().filter_map(value).collect())
    }

    fn run_phase(&self, program: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        self.world.start_phase();
        let failed: Mutex<Vec<(usize, Error)>> = Mutex::default();
        let fail = |rank, error| lock(&failed).push((rank, error));
        let one = |rank, context: FullContext| {
            self.world.begin(rank);
            let (ended, result) = self.run_one(rank, context, program);
            if let Err(error) = result {
                fail(rank, error);
            }
            // The next rank must not continue earlier: its error could be recorded first.
            self.world.rank_ended(rank, ended);
        };
        let ranks = 0..self.ranks.len();
        if self.world.has_threads() {
            std::thread::scope(|scope| {
                let (one, fail) = (&one, &fail);
                let context = FullContext::of_new_process();
                for rank in ranks {
                    let builder = std::thread::Builder::new().name(format!("rank {rank}")).stack_size(STACK);
                    let context = context.clone();
                    let started = builder.spawn_scoped(scope, move || one(rank, context));
                    if let Err(error) = started {
                        let error = format!("a thread for a rank cannot be started: {error}");
                        fail(rank, Error::custom(error.clone()));
                        self.world.never_begins(rank, error);
                    }
                }
            });
        } else {
            ranks.for_each(|rank| one(rank, FullContext::of_new_process()));
        }
        self.wait_for_clocks();
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        first_cause(failed).map_or(Ok(()), |(rank, cause)| {
            Err(Error::Rank(Box::new(RankError { rank, of: self.ranks.len(), cause })))
        })
    }

    /// Begins a rank on this thread, when it is its turn.
    pub(crate) fn begin(&self, rank: usize) -> RankScope {
        let RankMachine { machine, .. } = &self.ranks[rank];
        self.world.begin(rank);
        let process = FullContext::of_new_process().enter();
        let entered = machine.context().enter();
        if let Some(cuda) = machine.cuda() {
            cuda.drive();
        }
        CurrentDevice(0).set();
        RankScope { world: self.world.clone(), rank, entered: Some((entered, process)) }
    }

    /// Makes the current machine a rank when it is its turn, with everything that it has, instead of the one that was
    /// made for it. Returns an error with real GPUs.
    pub(crate) fn join(&self, rank: usize) -> Result<RankScope> {
        self.world.begin(rank);
        match self.parent.join(rank, &self.world) {
            true => Ok(RankScope { world: self.world.clone(), rank, entered: None }),
            false => Err(DistributedError::RealGpus.into()),
        }
    }

    /// Moves this thread's clock to the latest of all ranks, as a wait for them does.
    pub(crate) fn wait_for_clocks(&self) {
        let latest = self.ranks.iter().map(|rank| rank.machine.clock().now()).max().unwrap_or(0);
        HostContext::lane().sleep_until(latest);
    }

    fn run_one(
        &self,
        rank: usize,
        context: FullContext,
        program: &dyn Fn(usize) -> Result<()>,
    ) -> (Ended, Result<()>) {
        let RankMachine { machine, device } = &self.ranks[rank];
        let run = || {
            let _process = context.enter();
            let _machine = machine.context().enter();
            if let Some(cuda) = machine.cuda() {
                cuda.drive();
            }
            let mut device = lock(device);
            CurrentDevice(*device).set();
            let result = program(rank);
            *device = HostContext::current_device();
            result
        };
        let result = catch_unwind(AssertUnwindSafe(run)).map_err(|panic| message_of(&*panic));
        match result {
            Ok(Ok(())) => (Ended::Returned, Ok(())),
            Ok(Err(error)) => {
                let first_line = error.to_string().lines().next().unwrap_or_default().to_owned();
                (Ended::Failed(first_line), Err(error))
            }
            Err(message) => {
                let error = Error::custom(format!("a rank panicked: {message}"));
                (Ended::Panicked(message), Err(error))
            }
        }
    }
}

/// A thread that is a rank.
pub(crate) struct RankScope {
    world: Arc<World>,
    rank: usize,
    entered: Option<(Entered, Entered)>,
}

type Entered = (Restore<ThreadContext>, Restore<TensorContext>);

impl RankScope {
    /// Ends the rank's program. `failure` is the first line of its error.
    pub(crate) fn end(self, failure: Option<String>) {
        let RankScope { world, rank, entered } = self;
        if entered.is_none() {
            Machine::current().leave();
        }
        drop(entered);
        world.rank_ended(rank, failure.map_or(Ended::Returned, Ended::Failed));
    }
}

const STACK: usize = 8 << 20;

/// Selects the root cause. An error about a missing rank is not a cause, and a late rank's error follows from the
/// errors of the ranks that waited for it.
fn first_cause(mut failed: Vec<(usize, Error)>) -> Option<(usize, Error)> {
    let follows = |(_, error): &(usize, Error)| match error.refusal() {
        Some(DistributedError::Meeting(meeting)) => 1 + u8::from(meeting.is_of_the_late()),
        _ => 0,
    };
    let first = (0..failed.len()).min_by_key(|i| follows(&failed[*i]))?;
    Some(failed.swap_remove(first))
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

impl Drop for Ranks {
    /// Keeps the ranks' work in active recordings.
    fn drop(&mut self) {
        self.parent.keep_what_ranks_did();
    }
}
