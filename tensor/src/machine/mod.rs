//! A machine and everything it owns: GPUs, clock, default generators, host memory, warnings. Only the default machine
//! is global. Tests enter separate machines, so they run in parallel without sharing a generator or a GPU.

mod environment;
pub(crate) mod error;
mod profile;
mod races;
mod spec;

use error::MachineError;
use profile::Recording;
pub(crate) use profile::begin_range;
pub use profile::record_function;
pub use spec::{GpuSpec, SimulatedGpus, parse_seed};

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};

use crate::device::MachineId;
use crate::error::{Error, Result};
use crate::events::{Counters, Recorder, TRACE, Trace};
#[cfg(not(target_family = "wasm"))]
use crate::gpu::nvidia::Nvidia;
use crate::gpu::runtime::Cuda;
use crate::gpu::simulated::{Simulated, SimulatedOptions};
use crate::host_context::HostContext;
use crate::host_memory::HostMemory;
use crate::host_profile::HOSTS;
use crate::libraries::Libraries;
use crate::lock::lock;
use crate::others::RankProcess;
use crate::random::Generator;
use crate::ranks::{Member, World};
use crate::thread::{CurrentDevice, FullContext, OfThread, Part, Seed, TensorContext, ThreadContext};
use crate::time::Clock;

/// A host and the GPUs that it sees. Clones share it.
///
/// ```
/// use todevice::{Machine, Tensor, cuda, Device};
///
/// let machine: Machine = "sim:t4x2".parse()?; // as after --gpu
/// machine.enter(|| {
///     assert_eq!(cuda::device_count(), 2);
///     let x = Tensor::zeros((&[3], Device::cuda(1)))?;
///     assert_eq!(x.device().to_string(), "cuda:1");
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Clone)]
pub struct Machine(Arc<MachineState>);

struct MachineState {
    host: Arc<HostContext>,
    gpus: GpuSpec,
    cuda: Option<Arc<Cuda>>,
    recorder: Arc<Mutex<Recorder>>,
    /// The rank, if there are several.
    member: Mutex<Option<Member>>,
    /// The GPUs of the ranks that this machine has started.
    ranks: Mutex<Vec<Weak<Cuda>>>,
    /// State of other modules, one value per type.
    kept: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    /// The number of the last call that seeded its GPUs.
    seeded: AtomicU64,
}

static DEFAULT: LazyLock<Machine> =
    LazyLock::new(|| Machine::build(GpuSpec::None, HostContext::default_one(), |_| None));

/// The number of calls that seeded all GPUs.
static SEEDS: AtomicU64 = AtomicU64::new(0);

impl Machine {
    /// Creates a host without a GPU (`--gpu none`). Its generator is seeded like a new `torch.Generator`.
    #[allow(clippy::new_without_default)] // `Machine::default()` would read as "the default machine".
    pub fn new() -> Machine {
        Machine::build(GpuSpec::None, HostContext::new(Clock::real()), |_| None)
    }

    /// Creates a host with simulated GPUs (`--gpu sim:t4`).
    pub fn simulated(gpus: SimulatedGpus) -> Machine {
        let host = gpus.host_profile();
        let options = SimulatedOptions {
            profile: gpus.card(),
            host,
            count: gpus.visible_count(),
            memory: gpus.memory,
            others: gpus.others.unwrap_or(0),
            seed: gpus.seed,
            setup: gpus.setup,
        };
        Machine::build(GpuSpec::Simulated(gpus), HostContext::like(host, Clock::default()), |clock| {
            Some(Box::new(Simulated::new(options, clock)))
        })
    }

    /// Opens this computer with its NVIDIA GPUs (`--gpu real`). Returns an error if they cannot be used.
    #[cfg(not(target_family = "wasm"))]
    pub fn real() -> Result<Machine> {
        let clock = Clock::real();
        let driver = Nvidia::open(clock.clone()).map_err(MachineError::Unavailable)?;
        Ok(Machine::build(GpuSpec::Real, HostContext::new(clock), |_| Some(Box::new(driver))))
    }

    /// A web page cannot use the GPUs of its computer.
    #[cfg(target_family = "wasm")]
    pub fn real() -> Result<Machine> {
        Err(MachineError::Unavailable("a page in a browser has no NVIDIA driver".to_owned()).into())
    }

    #[cfg(test)]
    pub(crate) fn with_driver(driver: impl FnOnce(Clock) -> Box<dyn Libraries>) -> Machine {
        Machine::build(GpuSpec::Auto, HostContext::new(Clock::default()), |clock| Some(driver(clock)))
    }

    fn build(
        gpus: GpuSpec,
        host: Arc<HostContext>,
        driver: impl FnOnce(Clock) -> Option<Box<dyn Libraries>>,
    ) -> Machine {
        let (id, clock) = (host.id(), host.clock());
        let recorder = Arc::<Mutex<Recorder>>::default();
        let cuda = driver(clock.clone())
            .map(|driver| Arc::new(Cuda::new(driver, id, clock.clone(), recorder.clone())));
        cuda.iter().for_each(|cuda| host.set_gpus(cuda.device_count()));
        Machine::of(gpus, host, cuda, recorder, None)
    }

    fn of(
        gpus: GpuSpec,
        host: Arc<HostContext>,
        cuda: Option<Arc<Cuda>>,
        recorder: Arc<Mutex<Recorder>>,
        member: Option<Member>,
    ) -> Machine {
        let (member, ranks, kept) = (Mutex::new(member), Mutex::default(), Mutex::default());
        let seeded = AtomicU64::new(0);
        Machine(Arc::new(MachineState { host, gpus, cuda, recorder, member, ranks, kept, seeded }))
    }

    /// Creates one rank's view of this machine, which starts now, like a separate process. `None` with real GPUs.
    pub(crate) fn fork(&self, rank: usize, world: &Arc<World>) -> Option<Machine> {
        let first_op = lock(&self.0.recorder).numbers_of_a_rank();
        let member = Member { rank, world: world.clone() };
        let clock = if self.time_is_modelled() { Clock::default() } else { self.clock().clone() };
        clock.advance_to(HostContext::now());
        let host = self.0.host.fork(rank, clock.clone());
        let process = RankProcess { number: rank, first_op, others: Arc::new(member.clone()) };
        let cuda = match self.cuda() {
            Some(cuda) => Some(cuda.fork(process, host.id(), clock)?),
            None => None,
        };
        cuda.iter().for_each(|cuda| host.set_gpus(cuda.device_count()));
        let mut ranks = lock(&self.0.ranks);
        ranks.retain(|rank| rank.strong_count() > 0);
        ranks.extend(cuda.as_ref().map(Arc::downgrade));
        let gpus = self.0.gpus.clone();
        let machine = Machine::of(gpus, host, cuda, self.0.recorder.clone(), Some(member));
        // Seeds of the parent program do not apply to a new process.
        machine.0.seeded.store(u64::MAX, Ordering::Relaxed);
        Some(machine)
    }

    /// Returns a module's state on this machine, created at its first use.
    pub(crate) fn kept<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut kept = lock(&self.0.kept);
        let one = kept.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default())).clone();
        one.downcast().unwrap_or_else(|_| unreachable!("it is kept by its type"))
    }

    /// The machine that this thread entered last, else the default one.
    pub fn current() -> Machine {
        TensorContext::read(|context| context.machine.clone()).unwrap_or_else(|| DEFAULT.clone())
    }

    pub(crate) fn id(&self) -> MachineId {
        self.0.host.id()
    }

    pub(crate) fn member(&self) -> Option<Member> {
        lock(&self.0.member).clone()
    }

    /// Makes this machine a rank, with everything that it has. Returns false with real GPUs.
    pub(crate) fn join(&self, rank: usize, world: &Arc<World>) -> bool {
        let member = Member { rank, world: world.clone() };
        let has_joined = self.cuda().is_none_or(|cuda| cuda.join(Arc::new(member.clone())));
        *lock(&self.0.member) = Some(member).filter(|_| has_joined);
        has_joined
    }

    pub(crate) fn leave(&self) {
        *lock(&self.0.member) = None;
    }

    pub(crate) fn host(&self) -> &Arc<HostContext> {
        &self.0.host
    }

    pub(crate) fn cuda(&self) -> Option<&Arc<Cuda>> {
        self.0.cuda.as_ref()
    }

    /// Runs `scope` on this machine. Its default generators continue from this thread's earlier seeds and states.
    pub fn enter<R>(&self, scope: impl FnOnce() -> R) -> R {
        self.follow_seeds();
        let _left = self.context().enter();
        scope()
    }

    /// The context of this thread's code on this machine.
    #[inline(never)]
    pub(crate) fn context(&self) -> FullContext {
        self.context_of(self.0.host.context())
    }

    fn context_of(&self, gpu: ThreadContext) -> FullContext {
        FullContext { gpu, own: TensorContext { machine: Some(self.clone()), ..TensorContext::current() } }
    }

    fn follow_seeds(&self) {
        if let Some((number, seed)) = TensorContext::read(|context| context.seed.0)
            && self.0.seeded.fetch_max(number, Ordering::Relaxed) < number
        {
            self.cuda().iter().for_each(|cuda| cuda.manual_seed(seed));
        }
        self.0.host.generator().follow(&HostContext::default_generator());
    }

    /// Runs `scope` on a separate clock, like another thread.
    pub(crate) fn enter_lane<R>(&self, lane: Clock, scope: impl FnOnce() -> R) -> R {
        let host = self.0.host.entered_as(None, lane, HostContext::in_worker());
        let gpu = ThreadContext { host: Some(host), device: CurrentDevice(0), ..ThreadContext::current() };
        let _left = self.context_of(gpu).enter();
        scope()
    }

    /// Seeds the generators of all GPUs, here and on machines that this thread enters later.
    pub(crate) fn seed_gpus(&self, seed: u64) {
        let number = SEEDS.fetch_add(1, Ordering::Relaxed) + 1;
        Seed(Some((number, seed))).set();
        self.0.seeded.fetch_max(number, Ordering::Relaxed);
        self.cuda().iter().for_each(|cuda| cuda.manual_seed(seed));
    }

    /// The default generator of operations (`torch.default_generator`).
    pub fn default_generator() -> Generator {
        HostContext::default_generator()
    }

    /// Host memory statistics: the bytes of tensors, their peak, and the bytes kept for reuse.
    pub fn host_memory(&self) -> &HostMemory {
        self.0.host.host_memory()
    }

    /// Returns this machine with `CUDA_VISIBLE_DEVICES=list`: with only the listed GPUs, the first as `cuda:0`.
    ///
    /// ```
    /// use todevice::{Machine, cuda, monitor};
    ///
    /// let machine: Machine = "sim:t4x4".parse()?;
    /// machine.with_visible_devices("2,0")?.enter(|| {
    ///     assert_eq!(cuda::device_count(), 2); // cuda:0 is the third GPU, cuda:1 the first
    ///     assert!(cuda::get_device_properties(2).is_err());
    ///     assert_eq!(monitor::topology().unwrap().gpu_count(), 4); // nvidia-smi sees all
    /// });
    /// // A number that no GPU has ends the list.
    /// machine.with_visible_devices("1,-1,0")?.enter(|| assert_eq!(cuda::device_count(), 1));
    /// machine.with_visible_devices("")?.enter(|| assert!(!cuda::is_available()));
    /// # Ok::<(), todevice::Error>(())
    /// ```
    ///
    /// Returns an error with real GPUs: the variable must be set before the program starts.
    pub fn with_visible_devices(&self, list: &str) -> Result<Machine> {
        match self.gpus() {
            GpuSpec::Real => {
                let why =
                    format!("with real GPUs, {} must be set before the program starts", environment::VISIBLE);
                Err(MachineError::Unavailable(why).into())
            }
            gpus => gpus.visible(list).bare_machine(),
        }
    }

    /// Returns a machine like this one for `NCCL_P2P_DISABLE=1`: collectives go through host memory. Copies with `.to`
    /// still go directly between GPUs, because the variable is NCCL's.
    ///
    /// Returns an error with real GPUs: the variable must be set before the program starts.
    pub fn with_nccl_p2p_disabled(&self) -> Result<Machine> {
        match self.gpus() {
            GpuSpec::Real => {
                let why =
                    format!("with real GPUs, {} must be set before the program starts", environment::P2P);
                Err(MachineError::Unavailable(why).into())
            }
            gpus => gpus.without_nccl_p2p().bare_machine(),
        }
    }

    #[doc(hidden)]
    pub fn visible_devices(list: &str, count: usize) -> Vec<usize> {
        environment::visible(list, count)
    }

    /// The GPUs that it was created with, as in `--gpu`.
    pub fn gpus(&self) -> &GpuSpec {
        &self.0.gpus
    }

    /// Limits its program to `count` more operations. Later ones fail
    /// ([`NoMoreOperations`](crate::errors::TensorError)), which stops endless programs.
    pub fn limit_operations(&self, count: u64) {
        self.0.host.limit_operations(count);
    }

    /// Passes warnings to `handler`: PyTorch's texts, each at most once, or once per line of the program. Warnings
    /// about the machine's creation ([`GpuSpec::machine`]) come first.
    pub fn on_warning(&self, handler: impl Fn(&str) + Send + Sync + 'static) {
        self.0.host.on_warning(handler);
    }
}

impl Machine {
    /// Whether time is virtual: the GPUs are simulated, or the program is a web page, which has no clock.
    pub fn time_is_modelled(&self) -> bool {
        self.clock().is_virtual()
    }

    /// The clock of a data loading worker, separate if time is virtual.
    pub(crate) fn worker_lane(&self) -> Clock {
        if self.time_is_modelled() { Clock::default() } else { self.clock().clone() }
    }
}

impl Machine {
    /// The numbers of launches, copies, bytes, synchronizations and allocations since the machine was created. Subtract
    /// two readings to get the numbers between them.
    pub fn counters(&self) -> Counters {
        self.recorder().counters
    }

    /// Starts recording driver calls and the times of their work, for [`trace`](Self::trace).
    pub fn start_trace(&self) {
        self.prepare_recording();
        self.recorder().start_trace(self.clock().now());
    }

    /// Waits for the GPUs, and returns the recording since [`start_trace`](Self::start_trace). The wait is not
    /// recorded.
    pub fn trace(&self) -> Trace {
        self.trace_of(TRACE)
    }

    /// Runs `scope`, and records the work of this machine (`torch.profiler.profile`).
    ///
    /// Like PyTorch's profiler, this waits for the GPUs after `scope`. The wait is neither recorded nor counted.
    /// Recordings may be nested, also in [`start_trace`](Self::start_trace), and each one is complete.
    ///
    /// ```
    /// use todevice::{Device, Machine, Tensor, cuda};
    ///
    /// let machine: Machine = "sim:t4".parse()?;
    /// machine.enter(|| {
    ///     let x = Tensor::ones((&[64, 64], Device::cuda(0)))?;
    ///     let (y, trace) = machine.profile(|| x.matmul(&x));
    ///     assert_eq!(y?.sum()?.item()?, 262144.0);
    ///     assert_eq!(trace.kernels(0)[0].name, "gemm");
    ///     Ok::<(), todevice::Error>(())
    /// })?;
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn profile<R>(&self, scope: impl FnOnce() -> R) -> (R, Trace) {
        self.prepare_recording();
        let recording = Recording::start(self);
        let result = scope();
        (result, recording.finish())
    }

    pub(crate) fn recorder(&self) -> MutexGuard<'_, Recorder> {
        lock(&self.0.recorder)
    }

    /// Adds the GPUs' work so far to the active recordings.
    fn prepare_recording(&self) {
        if let Some(cuda) = self.cuda() {
            cuda.fetch_spans();
            cuda.record_spans(true);
        }
    }

    /// Starts a recording, and returns its number.
    pub(crate) fn start_recording(&self) -> u64 {
        self.prepare_recording();
        self.recorder().start(self.clock().now())
    }

    pub(crate) fn stop_recording(&self, number: u64) {
        let mut recorder = self.recorder();
        recorder.stop(number);
        if let Some(cuda) = self.cuda().filter(|_| !recorder.is_recording()) {
            cuda.record_spans(false);
        }
    }

    /// Waits for all work, and returns a recording's trace.
    pub(crate) fn trace_of(&self, recording: u64) -> Trace {
        let mut devices = Vec::new();
        self.keep_what_ranks_did();
        if let Some(cuda) = self.cuda() {
            cuda.finish_recorded();
            devices = (0..cuda.device_count()).map(|device| cuda.properties(device).name.clone()).collect();
        }
        self.recorder().trace(recording, self.to_string(), devices, self.time_is_modelled())
    }

    /// Waits for the ranks' work on the GPUs, and adds it to the active recordings.
    pub(crate) fn keep_what_ranks_did(&self) {
        if self.recorder().is_recording() {
            let ranks = lock(&self.0.ranks).clone();
            ranks.iter().filter_map(Weak::upgrade).for_each(|cuda| cuda.finish_recorded());
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.0.host.clock()
    }
}

/// Parses a machine from the value of `--gpu`.
impl FromStr for Machine {
    type Err = Error;

    fn from_str(text: &str) -> Result<Machine> {
        text.parse::<GpuSpec>()?.bare_machine()
    }
}

/// Describes the GPUs: `no GPU`, `2 x Tesla T4 (simulated)`, `Tesla T4 (simulated), host: pytorch`.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cuda() {
            None => f.write_str("no GPU")?,
            Some(cuda) if cuda.device_count() == 0 => f.write_str("no GPU")?,
            Some(cuda) if cuda.device_count() == 1 => f.write_str(&cuda.properties(0).name)?,
            Some(cuda) => write!(f, "{} x {}", cuda.device_count(), cuda.properties(0).name)?,
        }
        match &self.0.gpus {
            GpuSpec::Simulated(gpus) if gpus.host != HOSTS[0].key => write!(f, ", host: {}", gpus.host),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Machine({self})")
    }
}

/// Seeds the machine's default generators of the CPU and its GPUs, and returns the CPU's (`torch.manual_seed`).
/// Machines that the thread enters later are seeded too.
///
/// As in PyTorch, the CPU uses only the low 32 bits. Negative seeds are two's complements: `-1i64 as u64`.
pub fn manual_seed(seed: u64) -> Generator {
    Machine::current().seed_gpus(seed);
    HostContext::default_generator().manual_seed(seed)
}
