//! The machine a program runs on, and what it owns: its GPUs, its clock, default random numbers, host
//! memory, warnings.
//!
//! Nothing here is global but the default machine. A machine can be entered for a scope, so tests
//! run side by side without sharing a random stream or a GPU.

mod races;
mod spec;

pub use races::RaceCheck;
pub(crate) use races::{RACE, RaceLog};
pub use spec::{GpuSpec, SimulatedGpus, parse_seed};

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::backends::Backends;
#[cfg(test)]
use crate::cuda::driver::Driver;
#[cfg(not(target_family = "wasm"))]
use crate::cuda::nvidia::Nvidia;
use crate::cuda::runtime::Cuda;
use crate::cuda::simulated::host::{HostProfile, HostTime, LAPTOP_8_CORES};
use crate::cuda::simulated::{Simulated, SimulatedOptions};
use crate::ops::scope::Place;
use crate::random::Generator;
use crate::storage::HostMemory;
use crate::time::Clock;
use crate::trace::{Counters, Recorder, Recording, TRACE, Trace};

/// A host and the GPUs it sees. Clones share it.
///
/// ```
/// use todevice::{Machine, Tensor, cuda, Device};
///
/// let machine: Machine = "sim:t4x2".parse().unwrap(); // as after --gpu
/// machine.enter(|| {
///     assert_eq!(cuda::device_count(), 2);
///     let x = Tensor::zeros_with(&[3], Device::cuda(1))?;
///     assert_eq!(x.device().to_string(), "cuda:1");
///     Ok::<(), todevice::Error>(())
/// }).unwrap();
/// ```
#[derive(Clone)]
pub struct Machine(Arc<State>);

/// Tells machines apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MachineId(u32);

struct State {
    id: MachineId,
    gpus: GpuSpec,
    clock: Clock,
    /// For how long threads with clocks of their own worked, in nanoseconds, where time is virtual.
    others_worked: AtomicU64,
    cuda: Option<Arc<Cuda>>,
    recorder: Arc<Mutex<Recorder>>,
    generator: Generator,
    memory: Arc<HostMemory>,
    backends: Mutex<Backends>,
    /// Of what, and where, if a warning is for each line that gives it.
    warned: Mutex<HashSet<(&'static str, Option<Place>)>>,
    /// Receives warnings. The crate itself never prints.
    on_warning: Mutex<Option<Arc<dyn Fn(&str) + Send + Sync>>>,
    /// Warnings of how the machine was made, until somebody hears them.
    untold: Mutex<Vec<String>>,
}

/// What counts for all machines: their numbers, and those of graph nodes.
static NEXT_MACHINE: AtomicU32 = AtomicU32::new(0);
static NEXT_SEQUENCE: AtomicU64 = AtomicU64::new(0);
static DEFAULT: LazyLock<Machine> = LazyLock::new(Machine::new);

/// A machine entered on a thread.
struct Entered {
    machine: Machine,
    /// Stands in for the machine's own generator: a data loading worker draws from its own stream.
    generator: Option<Generator>,
    /// The thread's own clock on a machine whose time is virtual; the first thread's is the machine's.
    lane: Clock,
    /// A data loading worker may not touch a GPU.
    is_worker: bool,
}

thread_local! {
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
    /// `torch.cuda.current_device()` of this thread.
    static CURRENT_DEVICE: Cell<usize> = const { Cell::new(0) };
}

impl Machine {
    /// A host with no GPU (`--gpu none`), its generator seeded like a fresh `torch.Generator`.
    #[allow(clippy::new_without_default)] // `Machine::default()` would read as "the default machine".
    pub fn new() -> Machine {
        Machine::build(GpuSpec::None, Clock::real(), |_| None)
    }

    /// A host with simulated GPUs, all of one kind (`--gpu sim:t4`).
    pub fn simulated(gpus: SimulatedGpus) -> Machine {
        let options = SimulatedOptions {
            profile: gpus.profile(),
            count: gpus.count,
            memory: gpus.memory,
            others: gpus.others.unwrap_or(0),
            seed: gpus.seed,
        };
        Machine::build(GpuSpec::Simulated(gpus), Clock::default(), |(id, clock, recorder)| {
            let driver = Simulated::new(options, clock.clone());
            Some(Arc::new(Cuda::new(Box::new(driver), id, clock.clone(), recorder.clone())))
        })
    }

    /// This computer with its NVIDIA GPUs (`--gpu real`), or why they cannot be used.
    #[cfg(not(target_family = "wasm"))]
    pub fn real() -> Result<Machine, String> {
        let clock = Clock::real();
        let driver = Nvidia::open(clock.clone())?;
        Ok(Machine::build(GpuSpec::Real, clock, |(id, clock, recorder)| {
            Some(Arc::new(Cuda::new(Box::new(driver), id, clock.clone(), recorder.clone())))
        }))
    }

    /// A page of a browser cannot use the GPUs of the computer it is shown on.
    #[cfg(target_family = "wasm")]
    pub fn real() -> Result<Machine, String> {
        Err("a page of a browser has no NVIDIA driver".to_owned())
    }

    /// A host with GPUs behind a driver of a test's own.
    #[cfg(test)]
    pub(crate) fn with_driver(driver: impl FnOnce(Clock) -> Box<dyn Driver>) -> Machine {
        Machine::build(GpuSpec::Auto, Clock::default(), |(id, clock, recorder)| {
            Some(Arc::new(Cuda::new(driver(clock.clone()), id, clock.clone(), recorder.clone())))
        })
    }

    fn build(
        gpus: GpuSpec,
        clock: Clock,
        cuda: impl FnOnce((MachineId, &Clock, &Arc<Mutex<Recorder>>)) -> Option<Arc<Cuda>>,
    ) -> Machine {
        let id = MachineId(NEXT_MACHINE.fetch_add(1, Ordering::Relaxed));
        let recorder = Arc::<Mutex<Recorder>>::default();
        Machine(Arc::new(State {
            id,
            gpus,
            cuda: cuda((id, &clock, &recorder)),
            recorder,
            clock,
            others_worked: AtomicU64::new(0),
            generator: Generator::new(),
            memory: Arc::new(HostMemory::new()),
            backends: Mutex::default(),
            warned: Mutex::new(HashSet::new()),
            on_warning: Mutex::new(None),
            untold: Mutex::default(),
        }))
    }

    /// The machine entered last on this thread, else the default one.
    pub fn current() -> Machine {
        ENTERED
            .with_borrow(|entered| entered.last().map(|entered| entered.machine.clone()))
            .unwrap_or_else(|| DEFAULT.clone())
    }

    pub(crate) fn id(&self) -> MachineId {
        self.0.id
    }

    pub(crate) fn cuda(&self) -> Option<&Arc<Cuda>> {
        self.0.cuda.as_ref()
    }

    /// Runs `scope` on this machine.
    pub fn enter<R>(&self, scope: impl FnOnce() -> R) -> R {
        // Where it is entered already nothing changes: a data loading worker stays one.
        let again = ENTERED.with_borrow(|entered| {
            let entered = entered.last().filter(|entered| entered.machine.id() == self.id())?;
            Some((entered.generator.clone(), entered.lane.clone(), entered.is_worker))
        });
        let (generator, lane, is_worker) = again.unwrap_or((None, self.0.clock.clone(), false));
        self.enter_as(generator, lane, is_worker, scope)
    }

    /// Runs `scope` as a data loading worker of this machine, with a generator and a clock of its own.
    pub(crate) fn enter_as_worker<R>(
        &self,
        generator: Generator,
        lane: Clock,
        scope: impl FnOnce() -> R,
    ) -> R {
        self.enter_as(Some(generator), lane, true, scope)
    }

    /// Runs `scope` on a clock of its own: what another thread does meanwhile.
    pub(crate) fn enter_lane<R>(&self, lane: Clock, scope: impl FnOnce() -> R) -> R {
        self.enter_as(None, lane, Machine::in_worker(), scope)
    }

    fn enter_as<R>(
        &self,
        generator: Option<Generator>,
        lane: Clock,
        is_worker: bool,
        scope: impl FnOnce() -> R,
    ) -> R {
        struct Leave {
            device: usize,
        }
        impl Drop for Leave {
            fn drop(&mut self) {
                ENTERED.with_borrow_mut(|entered| entered.pop());
                CURRENT_DEVICE.set(self.device);
            }
        }
        let entered = Entered { machine: self.clone(), generator, lane, is_worker };
        ENTERED.with_borrow_mut(|stack| stack.push(entered));
        let _leave = Leave { device: CURRENT_DEVICE.replace(0) }; // Also when `scope` panics.
        scope()
    }

    /// Whether this thread is a data loading worker.
    pub(crate) fn in_worker() -> bool {
        ENTERED.with_borrow(|entered| entered.last().is_some_and(|entered| entered.is_worker))
    }

    pub(crate) fn current_device() -> usize {
        CURRENT_DEVICE.get()
    }

    /// Changes this thread's current device, and returns the one before.
    pub(crate) fn replace_current_device(index: usize) -> usize {
        CURRENT_DEVICE.replace(index)
    }

    /// The generator operations draw from when none is given (`torch.default_generator`).
    pub fn default_generator() -> Generator {
        ENTERED
            .with_borrow(|entered| {
                let entered = entered.last()?;
                Some(entered.generator.clone().unwrap_or_else(|| entered.machine.0.generator.clone()))
            })
            .unwrap_or_else(|| DEFAULT.0.generator.clone())
    }

    /// Bytes of host memory held by tensors, their peak, and the bytes kept for reuse.
    pub fn host_memory(&self) -> &HostMemory {
        &self.0.memory
    }

    pub(crate) fn memory() -> Arc<HostMemory> {
        ENTERED
            .with_borrow(|entered| entered.last().map(|entered| entered.machine.0.memory.clone()))
            .unwrap_or_else(|| DEFAULT.0.memory.clone())
    }

    /// Reads or changes the flags of the current machine.
    pub(crate) fn backends<R>(access: impl FnOnce(&mut Backends) -> R) -> R {
        let on = |machine: &Machine| {
            access(&mut machine.0.backends.lock().unwrap_or_else(PoisonError::into_inner))
        };
        ENTERED.with_borrow(|entered| on(entered.last().map_or(&DEFAULT, |entered| &entered.machine)))
    }

    /// Which GPUs it was made with, as `--gpu` names them.
    pub fn gpus(&self) -> &GpuSpec {
        &self.0.gpus
    }

    /// Gives the machine's warnings to `handler`: PyTorch's texts, each at most once, or once for each line of the
    /// program that it is about. First come those of how the machine was made ([`GpuSpec::machine`]).
    pub fn on_warning(&self, handler: impl Fn(&str) + Send + Sync + 'static) {
        let handler = Arc::new(handler);
        *self.0.on_warning.lock().unwrap_or_else(PoisonError::into_inner) = Some(handler.clone());
        let untold = std::mem::take(&mut *self.0.untold.lock().unwrap_or_else(PoisonError::into_inner));
        untold.iter().for_each(|warning| handler(warning));
    }

    /// Keeps warnings for whoever asks for them first.
    fn warn_later(&self, warnings: Vec<String>) {
        self.0.untold.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
    }

    /// Warns of `topic` if it has not been warned of on this machine.
    pub(crate) fn warn_once(topic: &'static str, message: impl FnOnce() -> String) {
        Machine::warn_once_at(topic, None, message);
    }

    /// The same for each line of the program.
    pub(crate) fn warn_once_at(topic: &'static str, place: Option<Place>, message: impl FnOnce() -> String) {
        let machine = Machine::current();
        let Some(handler) = machine.warning_handler() else { return };
        if machine.0.warned.lock().unwrap_or_else(PoisonError::into_inner).insert((topic, place)) {
            handler(&message());
        }
    }

    /// Warns, each time.
    pub(crate) fn warn(message: &str) {
        if let Some(handler) = Machine::current().warning_handler() {
            handler(message);
        }
    }

    /// Out of its lock before it is called: a handler may warn, or set another handler.
    fn warning_handler(&self) -> Option<Arc<dyn Fn(&str) + Send + Sync>> {
        self.0.on_warning.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A number for a new graph node, larger than all before: later nodes run first in backward.
    /// One counter for all machines, so that the order holds wherever a graph was built.
    pub(crate) fn next_sequence() -> u64 {
        NEXT_SEQUENCE.fetch_add(1, Ordering::Relaxed)
    }
}

/// Time.
impl Machine {
    /// Whether time on this machine is virtual: its GPUs are simulated, or it is a page of a browser, where
    /// there is no clock.
    pub fn time_is_modelled(&self) -> bool {
        self.0.clock.is_virtual()
    }

    /// Now, on this thread's lane.
    pub(crate) fn now() -> u64 {
        ENTERED
            .with_borrow(|entered| entered.last().map(|entered| entered.lane.now()))
            .unwrap_or_else(|| DEFAULT.0.clock.now())
    }

    /// The clock of this thread.
    pub(crate) fn lane() -> Clock {
        ENTERED
            .with_borrow(|entered| entered.last().map(|entered| entered.lane.clone()))
            .unwrap_or_else(|| DEFAULT.0.clock.clone())
    }

    /// The clock of a data loading worker: its own where time is virtual.
    pub(crate) fn worker_lane(&self) -> Clock {
        if self.0.clock.is_virtual() { Clock::default() } else { self.0.clock.clone() }
    }

    /// Adds what data loading workers worked, in nanoseconds.
    pub(crate) fn others_worked(&self, nanoseconds: u64) {
        self.0.others_worked.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// For how long threads of this machine have had a core until now, in nanoseconds, where time is virtual.
    pub(crate) fn cpu_time(&self) -> u64 {
        self.0.clock.worked() + self.0.others_worked.load(Ordering::Relaxed)
    }

    /// Lets virtual time pass on this thread's lane, by as much as its host takes for something. Where time
    /// is real this is no more than a look.
    pub(crate) fn charge(time: impl FnOnce(&HostProfile) -> HostTime) {
        ENTERED.with_borrow(|entered| match entered.last() {
            Some(Entered { lane, .. }) if lane.is_virtual() => {
                let HostTime { nanoseconds, cores } = time(&LAPTOP_8_CORES);
                lane.advance(nanoseconds);
                lane.helped(nanoseconds * (cores as u64 - 1));
            }
            _ => {}
        });
    }
}

/// What the GPUs did.
impl Machine {
    /// How many launches, copies, bytes, synchronizations and allocations there were since the machine was
    /// made. The difference of two is what happened in between.
    pub fn counters(&self) -> Counters {
        self.recorder().counters
    }

    /// From now on notes every call of the driver, and when the work ran, for [`trace`](Self::trace).
    pub fn start_trace(&self) {
        self.prepare_recording();
        self.recorder().start_trace(self.0.clock.now());
    }

    /// What was noted since [`start_trace`](Self::start_trace). It waits for the GPUs, so that all work they were
    /// given is in it; that wait is neither noted nor counted.
    pub fn trace(&self) -> Trace {
        self.trace_of(TRACE)
    }

    /// Runs `scope`, and records what this machine is asked to do in it (`torch.profiler.profile`).
    ///
    /// The work that `scope` queued is in the trace also if it ends later: when `scope` has returned, this waits
    /// for the GPUs, as PyTorch's profiler does. That wait is neither noted nor counted. Recordings may nest, and
    /// one may run within [`start_trace`](Self::start_trace): each sees all there is to see.
    ///
    /// ```
    /// use todevice::{Device, Machine, Tensor, cuda};
    ///
    /// let machine: Machine = "sim:t4".parse().unwrap();
    /// machine.enter(|| {
    ///     let x = Tensor::ones_with(&[64, 64], Device::cuda(0))?;
    ///     let (y, trace) = machine.profile(|| x.matmul(&x));
    ///     assert_eq!(y?.sum()?.item()?, 262144.0);
    ///     assert!(trace.to_chrome_json().contains("gemm"));
    ///     assert!(trace.to_svg().starts_with("<svg "));
    ///     Ok::<(), todevice::Error>(())
    /// }).unwrap();
    /// ```
    pub fn profile<R>(&self, scope: impl FnOnce() -> R) -> (R, Trace) {
        self.prepare_recording();
        let recording = Recording::start(self);
        let result = scope();
        (result, recording.finish())
    }

    pub(crate) fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.0.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what the GPUs have done so far to the recordings that run, before another one starts.
    fn prepare_recording(&self) {
        if let Some(cuda) = self.cuda() {
            cuda.fetch_spans();
            cuda.record_spans(true);
        }
    }

    /// Ends a recording.
    pub(crate) fn stop_recording(&self, number: u64) {
        let mut recorder = self.recorder();
        recorder.stop(number);
        if let Some(cuda) = self.cuda().filter(|_| !recorder.is_recording()) {
            cuda.record_spans(false);
        }
    }

    /// What a recording has seen, all work done.
    pub(crate) fn trace_of(&self, recording: u64) -> Trace {
        let mut devices = Vec::new();
        if let Some(cuda) = self.cuda() {
            cuda.finish_recorded();
            devices = (0..cuda.device_count()).map(|device| cuda.properties(device).name.clone()).collect();
        }
        self.recorder().trace(recording, devices, self.time_is_modelled())
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }
}

/// A machine by what stands after `--gpu`.
impl FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> Result<Machine, String> {
        text.parse::<GpuSpec>()?.bare_machine()
    }
}

/// The GPUs, for people: `no GPU`, `Tesla T4 (simulated)`, `2 x Tesla T4 (simulated)`.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cuda() {
            None => f.write_str("no GPU"),
            Some(cuda) if cuda.device_count() == 1 => f.write_str(&cuda.properties(0).name),
            Some(cuda) => write!(f, "{} x {}", cuda.device_count(), cuda.properties(0).name),
        }
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Machine({self})")
    }
}

/// Seeds the machine's default generators, that of the CPU and those of its GPUs, and returns the CPU's
/// (`torch.manual_seed`).
///
/// As in PyTorch only the low 32 bits feed the stream. A negative seed is its two's complement:
/// `-1i64 as u64`.
pub fn manual_seed(seed: u64) -> Generator {
    if let Some(cuda) = Machine::current().cuda() {
        cuda.manual_seed(seed);
    }
    Machine::default_generator().manual_seed(seed)
}
