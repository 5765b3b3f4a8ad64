//! The environment of the code on a thread: the host of its machine, with its clock, default generator, memory, flags
//! and warnings, and the thread's own replacements of these.
//!
//! Nothing here is global except the default host. Of GPUs only their number is known here.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use crate::base::device::{MachineId, StreamId, StreamKey, Streams};
use crate::base::figure::Figure;
use crate::base::flags::Backends;
use crate::base::lock::lock;
use crate::base::place::Place;
use crate::base::random::Generator;
use crate::host::host_memory::HostMemory;
use crate::host::host_profile::{HostProfile, HostTime, LAPTOP_8_CORES};
use crate::host::thread::{CurrentDevice, OfThread, Part, Restore, ThreadContext};
use crate::host::time::Clock;

/// The host of a machine.
pub struct HostContext {
    id: MachineId,
    clock: Clock,
    /// The costs of operations here, if time is virtual.
    profile: &'static HostProfile,
    /// The total time that threads with clocks of their own have worked, in nanoseconds, if time is virtual.
    others_worked: AtomicU64,
    generator: Generator,
    memory: Arc<HostMemory>,
    backends: Mutex<Backends>,
    /// Topics already warned about, with the line if the warning is given once per line.
    warned: Mutex<HashSet<(&'static str, Option<Place>)>>,
    /// Receives warnings. The crate itself never prints them.
    on_warning: Arc<Mutex<Option<Arc<dyn Fn(&str) + Send + Sync>>>>,
    /// Warnings from the creation of the machine, until a handler receives them.
    untold: Mutex<Vec<String>>,
    /// The number of GPUs of the machine: set once, when it is created.
    gpus: OnceLock<usize>,
    /// The number of operations that the program may still request, if limited.
    operations_left: Arc<Mutex<Option<u64>>>,
    is_limited: AtomicBool,
    /// The number of the process that owns it, if there are several.
    process: Option<usize>,
}

static DEFAULT: LazyLock<Arc<HostContext>> = LazyLock::new(|| HostContext::new(Clock::real()));

/// The host that a thread has entered, and the thread's own replacements.
#[derive(Clone)]
pub struct Entered {
    host: Arc<HostContext>,
    /// Replaces the machine's own generator: a data loading worker draws from its own stream.
    generator: Option<Generator>,
    /// The thread's own clock on a machine with virtual time; the first thread's clock is the machine's.
    lane: Clock,
    /// Whether the thread is a data loading worker, which may not touch a GPU.
    is_worker: bool,
}

/// Reads from the host that this thread is on.
fn of_current<R>(read: impl FnOnce(&HostContext) -> R) -> R {
    of_entered(|entered| read(entered.map_or(&DEFAULT, |entered| &entered.host)))
}

fn of_entered<R>(read: impl FnOnce(Option<&Entered>) -> R) -> R {
    ThreadContext::read(|context| read(context.host.as_ref()))
}

impl HostContext {
    pub fn new(clock: Clock) -> Arc<HostContext> {
        HostContext::like(&LAPTOP_8_CORES, clock)
    }

    /// A host with this profile.
    pub fn like(profile: &'static HostProfile, clock: Clock) -> Arc<HostContext> {
        Arc::new(HostContext {
            id: MachineId::next(),
            clock,
            profile,
            others_worked: AtomicU64::new(0),
            generator: Generator::new(),
            memory: Arc::default(),
            backends: Mutex::default(),
            warned: Mutex::default(),
            on_warning: Arc::default(),
            untold: Mutex::default(),
            gpus: OnceLock::new(),
            operations_left: Arc::default(),
            is_limited: AtomicBool::new(false),
            process: None,
        })
    }

    /// This host as seen by another process on the same computer. Generator, flags and clock are its own; memory, the
    /// handler of warnings and the number of remaining operations are shared.
    pub fn fork(&self, process: usize, clock: Clock) -> Arc<HostContext> {
        Arc::new(HostContext {
            id: MachineId::next(),
            clock,
            profile: self.profile,
            others_worked: AtomicU64::new(0),
            generator: Generator::new(),
            memory: self.memory.clone(),
            backends: Mutex::default(),
            warned: Mutex::default(),
            on_warning: self.on_warning.clone(),
            untold: Mutex::default(),
            gpus: OnceLock::new(),
            operations_left: self.operations_left.clone(),
            is_limited: AtomicBool::new(self.is_limited.load(Ordering::Relaxed)),
            process: Some(process),
        })
    }

    /// The number of this thread's process, if there are several: its rank.
    pub fn rank() -> Option<usize> {
        of_current(|host| host.process)
    }

    pub fn host_profile(&self) -> &'static HostProfile {
        self.profile
    }

    /// The host of a thread that has entered none.
    pub fn default_one() -> Arc<HostContext> {
        DEFAULT.clone()
    }

    #[inline]
    pub fn id(&self) -> MachineId {
        self.id
    }

    /// The machine that this thread is on.
    #[inline]
    pub fn current_id() -> MachineId {
        of_current(HostContext::id)
    }

    /// Sets the number of GPUs of the machine. Not called if there is no driver.
    pub fn set_gpus(&self, gpus: usize) {
        let _ = self.gpus.set(gpus);
    }

    /// The number of GPUs of the machine that this thread is on.
    pub fn gpus() -> usize {
        of_current(|host| host.gpus.get().copied().unwrap_or(0))
    }

    /// Whether the machine that this thread is on has a driver, even one that reports no GPU.
    pub fn has_driver() -> bool {
        of_current(|host| host.gpus.get().is_some())
    }

    /// Runs `scope` on this host.
    pub fn enter<R>(self: &Arc<HostContext>, scope: impl FnOnce() -> R) -> R {
        let _left = self.context().enter();
        scope()
    }

    /// The context for code that this thread runs here. If the thread has already entered this host, its entry is kept:
    /// a data loading worker stays one.
    pub fn context(self: &Arc<HostContext>) -> ThreadContext {
        let again = of_entered(|entered| entered.filter(|entered| entered.host.id == self.id).cloned());
        let host = again.unwrap_or_else(|| self.entered_as(None, self.clock.clone(), false));
        ThreadContext { host: Some(host), device: CurrentDevice(0), ..ThreadContext::current() }
    }

    /// The entry of a thread on this host with a clock of its own, and a generator of its own if one is given.
    pub fn entered_as(
        self: &Arc<HostContext>,
        generator: Option<Generator>,
        lane: Clock,
        is_worker: bool,
    ) -> Entered {
        Entered { host: self.clone(), generator, lane, is_worker }
    }

    /// Whether this thread is a data loading worker.
    #[inline]
    pub fn in_worker() -> bool {
        of_entered(|entered| entered.is_some_and(|entered| entered.is_worker))
    }

    /// `torch.cuda.current_device()` of this thread.
    #[inline]
    pub fn current_device() -> usize {
        ThreadContext::read(|context| context.device.0)
    }

    /// This thread's current stream on a device.
    #[inline]
    pub fn current_stream(machine: MachineId, device: usize) -> StreamId {
        ThreadContext::read(|context| StreamId::current_in(&context.streams, machine, device))
    }

    /// All current streams of this thread.
    pub fn current_streams() -> Streams {
        ThreadContext::read(|context| context.streams.clone())
    }

    /// Makes a stream the current one of its device on this thread until the guard is dropped.
    pub fn enter_stream(key: StreamKey) -> Restore<Streams> {
        let mut streams = HostContext::current_streams();
        streams.retain(|other| other.machine != key.machine || other.id.device != key.id.device);
        if key.id.number != 0 {
            streams.push(key);
        }
        streams.enter()
    }

    /// Makes these the current streams of this thread until the guard is dropped.
    pub fn enter_streams(streams: Streams) -> Restore<Streams> {
        streams.enter()
    }

    /// The generator that operations draw from by default (`torch.default_generator`).
    pub fn default_generator() -> Generator {
        let own = of_entered(|entered| entered.and_then(|entered| entered.generator.clone()));
        own.unwrap_or_else(|| of_current(|host| host.generator.clone()))
    }

    /// The machine's own generator.
    pub fn generator(&self) -> &Generator {
        &self.generator
    }

    /// Limits the program to this many more operations.
    pub fn limit_operations(&self, count: u64) {
        *lock(&self.operations_left) = Some(count);
        self.is_limited.store(true, Ordering::Relaxed);
    }

    /// Counts an operation. Returns whether the program may run it.
    #[inline]
    pub fn count_operation() -> bool {
        of_current(|host| !host.is_limited.load(Ordering::Relaxed) || host.one_less())
    }

    #[cold]
    fn one_less(&self) -> bool {
        let mut left = lock(&self.operations_left);
        let Some(count) = left.as_mut() else { return true };
        *count = match count.checked_sub(1) {
            Some(fewer) => fewer,
            None => return false,
        };
        true
    }

    pub fn host_memory(&self) -> &HostMemory {
        &self.memory
    }

    #[inline]
    pub fn memory() -> Arc<HostMemory> {
        of_current(|host| host.memory.clone())
    }

    /// Accesses the flags of the current machine.
    pub fn backends<R>(access: impl FnOnce(&mut Backends) -> R) -> R {
        of_current(|host| access(&mut lock(&host.backends)))
    }
}

/// Warnings.
impl HostContext {
    /// Sends warnings to `handler`, beginning with those that no handler has received yet.
    pub fn on_warning(&self, handler: impl Fn(&str) + Send + Sync + 'static) {
        let handler = Arc::new(handler);
        *lock(&self.on_warning) = Some(handler.clone());
        let untold = std::mem::take(&mut *lock(&self.untold));
        untold.iter().for_each(|warning| handler(warning));
    }

    /// Stores warnings for the first handler.
    pub fn warn_later(&self, warnings: Vec<String>) {
        lock(&self.untold).extend(warnings);
    }

    /// Warns about `topic`, once per machine.
    pub fn warn_once(topic: &'static str, message: impl FnOnce() -> String) {
        HostContext::warn_once_at(topic, None, message);
    }

    /// Warns about `topic`, once for each line of the program.
    pub fn warn_once_at(topic: &'static str, place: Option<Place>, message: impl FnOnce() -> String) {
        let Some(handler) = HostContext::warning_handler() else { return };
        let is_new = of_current(|host| lock(&host.warned).insert((topic, place)));
        if is_new {
            handler(&message());
        }
    }

    /// Warns every time.
    pub fn warn(message: &str) {
        if let Some(handler) = HostContext::warning_handler() {
            handler(message);
        }
    }

    /// Returns a clone of the handler, with its lock released: a handler may warn, or set another handler.
    fn warning_handler() -> Option<Arc<dyn Fn(&str) + Send + Sync>> {
        of_current(|host| lock(&host.on_warning).clone())
    }
}

/// Time.
impl HostContext {
    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The current time on this thread's clock.
    #[inline]
    pub fn now() -> u64 {
        of_entered(|entered| entered.map_or(&DEFAULT.clock, |entered| &entered.lane).now())
    }

    /// The clock of this thread.
    #[inline]
    pub fn lane() -> Clock {
        of_entered(|entered| entered.map_or(&DEFAULT.clock, |entered| &entered.lane).clone())
    }

    /// Adds the time that data loading workers worked, in nanoseconds.
    pub fn others_worked(&self, nanoseconds: u64) {
        self.others_worked.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The total time that threads of this machine have had a core, in nanoseconds, if time is virtual.
    pub fn cpu_time(&self) -> u64 {
        self.clock.worked() + self.others_worked.load(Ordering::Relaxed)
    }

    /// Advances this thread's virtual clock by the cost of something on this host. Does nothing if time is real.
    pub fn charge(time: impl FnOnce(&HostProfile) -> HostTime) {
        of_entered(|entered| match entered {
            Some(Entered { lane, host, .. }) if lane.is_virtual() => {
                let HostTime { nanoseconds, cores } = time(host.profile);
                lane.advance(nanoseconds);
                lane.helped(nanoseconds * (cores as u64 - 1));
            }
            _ => {}
        });
    }

    /// [`charge`](Self::charge) for one figure of the host, on one core.
    pub fn spend(figure: impl FnOnce(&HostProfile) -> &Figure) {
        HostContext::charge(|host| HostTime::of_one_core(figure(host).nanoseconds()));
    }

    /// The same, `count` times.
    pub fn spend_on_each(count: usize, figure: impl FnOnce(&HostProfile) -> &Figure) {
        HostContext::charge(|host| HostTime::of_one_core(figure(host).nanoseconds() * count as u64));
    }
}
