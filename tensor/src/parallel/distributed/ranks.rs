//! Ranks: one program per GPU, each of which sees itself as one process of several.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::distributed::{DistributedError, RankError};
use crate::error::{Error, Result};
use crate::host_context::HostContext;
use crate::lock::lock;
use crate::machine::Machine;
use crate::ranks::{Ended, World};
use crate::thread::{CurrentDevice, FullContext, Part};

/// Runs `program` once for each of `world_size` ranks, and returns their results in rank order
/// (`torch.multiprocessing.spawn`, or a program started by `torchrun --nproc-per-node`).
///
/// See [`Ranks`], which runs a program in phases.
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
/// If ranks return errors or panic, returns the error of the first, with its rank ([`Error::Rank`]).
pub fn spawn<T: Send>(world_size: usize, program: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    Ranks::new(world_size)?.run(program)
}

/// Several ranks on the current machine, which run a program phase by phase.
///
/// A rank is like a process: it has its own clock, generators, flags, caching allocator and streams, and starts
/// like a new process, with no process group, `cuda:0` as its current device, and gradient recording on. Ranks
/// share only what they send each other. Tensors that a rank captures or returns must be on the host or stay with
/// the rank: a GPU tensor belongs to the rank that made it.
///
/// One rank runs at a time, and another one runs when it has to wait. Times do not depend on the order: each rank
/// has its own clock, and all start at the same moment. From phase to phase a rank keeps its current device, its
/// process groups and its clock. The end of a phase orders nothing, and takes no time.
///
/// Natively each rank has a thread. A web page has no threads: the ranks run a phase one after the other, so no
/// rank may wait for something that another has yet to do in the same phase. Collectives on a GPU do not make the
/// host wait. Reading a result does, and so does a copy to the GPU that is not `non_blocking`. So a program that
/// must run in both places does these at the start of a phase, or in the next phase:
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
    /// Its current device between phases.
    device: Mutex<usize>,
}

impl Ranks {
    /// Creates `world_size` ranks on the current machine.
    ///
    /// Returns an error if `world_size` is 0, if the system does not allow two open files per rank, and on a
    /// machine with real GPUs, whose collectives need NCCL.
    pub fn new(world_size: usize) -> Result<Ranks> {
        Ranks::made(world_size, cfg!(not(target_family = "wasm")))
    }

    /// Like [`new`](Self::new) without threads, as in a web page: for tests.
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

    /// The number of ranks.
    pub fn world_size(&self) -> usize {
        self.ranks.len()
    }

    /// Runs a phase: `program` once on every rank. Returns their results in rank order.
    ///
    /// If ranks fail, returns the first error once all have ended ([`Error::Rank`]).
    pub fn run<T: Send>(&self, program: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
        self.run_each(&mut vec![(); self.ranks.len()], |rank, ()| program(rank))
    }

    /// Runs a phase in which each rank has its own state, for example one returned by an earlier phase.
    ///
    /// Also returns an error if the numbers of states and ranks differ.
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
        // In the order in which the ranks ended.
        let failed: Mutex<Vec<(usize, Error)>> = Mutex::default();
        let fail = |rank, error| lock(&failed).push((rank, error));
        let one = |rank, context: FullContext| {
            self.world.begin(rank);
            let (ended, result) = self.run_one(rank, context, program);
            if let Err(error) = result {
                fail(rank, error);
            }
            // The next rank continues only now. If it did so earlier, its error could be recorded before this one's.
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
        let latest = self.ranks.iter().map(|rank| rank.machine.clock().now()).max().unwrap_or(0);
        HostContext::lane().sleep_until(latest); // The program that started the ranks waits for all of them.
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        first_cause(failed).map_or(Ok(()), |(rank, cause)| {
            Err(Error::Rank(Box::new(RankError { rank, of: self.ranks.len(), cause })))
        })
    }

    /// Runs one rank's part of a phase, once it is that rank's turn.
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

/// The stack size of a program's main thread.
const STACK: usize = 8 << 20;

/// Selects the error that caused the others. Errors about ranks that did not arrive are not causes, and the error
/// of a late rank follows from the errors of the ranks that waited for it.
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
    /// Keeps the ranks' work in the active recordings.
    fn drop(&mut self) {
        self.parent.keep_what_ranks_did();
    }
}
