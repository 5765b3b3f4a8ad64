//! The context of a thread's code: the host of its machine (clock, default generator, memory, flags and warnings), and
//! the thread's replacements of these. Only the default host is global.

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

pub struct HostContext {
    id: MachineId,
    clock: Clock,
    profile: &'static HostProfile,
    /// The total work of threads with separate clocks, in nanoseconds, if time is virtual.
    others_worked: AtomicU64,
    generator: Generator,
    memory: Arc<HostMemory>,
    backends: Mutex<Backends>,
    /// The topics of past warnings, with the line if a topic warns once per line.
    warned: Mutex<HashSet<(&'static str, Option<Place>)>>,
    /// Receives warnings. The crate never prints them.
    on_warning: Arc<Mutex<Option<Arc<dyn Fn(&str) + Send + Sync>>>>,
    /// Warnings from the creation of the machine, for the first handler.
    untold: Mutex<Vec<String>>,
    /// Set when the machine is created.
    gpus: OnceLock<usize>,
    /// Shared by all processes. `None` without a limit.
    operations_left: Arc<Mutex<Option<u64>>>,
    is_limited: AtomicBool,
    /// The number of the owning process, if there are several.
    process: Option<usize>,
}

static DEFAULT: LazyLock<Arc<HostContext>> = LazyLock::new(|| HostContext::new(Clock::real()));

/// A thread's entry into a host.
#[derive(Clone)]
pub struct Entered {
    host: Arc<HostContext>,
    /// Replaces the machine's generator in a data loading worker.
    generator: Option<Generator>,
    /// The thread's clock, if time is virtual. The first thread has the machine's clock.
    lane: Clock,
    /// A data loading worker may not use a GPU.
    is_worker: bool,
}

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

    /// Returns the host of another process on the same computer. Generator, flags and clock are separate. Memory, the
    /// warning handler and the limit of operations are shared.
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

    /// The rank of this thread's process, if there are several.
    pub fn rank() -> Option<usize> {
        of_current(|host| host.process)
    }

    pub fn host_profile(&self) -> &'static HostProfile {
        self.profile
    }

    /// The host of threads that have entered none.
    pub fn default_one() -> Arc<HostContext> {
        DEFAULT.clone()
    }

    #[inline]
    pub fn id(&self) -> MachineId {
        self.id
    }

    #[inline]
    pub fn current_id() -> MachineId {
        of_current(HostContext::id)
    }

    /// Not called without a driver.
    pub fn set_gpus(&self, gpus: usize) {
        let _ = self.gpus.set(gpus);
    }

    pub fn gpus() -> usize {
        of_current(|host| host.gpus.get().copied().unwrap_or(0))
    }

    /// Whether the current machine has a driver, even one without a GPU.
    pub fn has_driver() -> bool {
        of_current(|host| host.gpus.get().is_some())
    }

    pub fn enter<R>(self: &Arc<HostContext>, scope: impl FnOnce() -> R) -> R {
        let _left = self.context().enter();
        scope()
    }

    /// Returns the context for code on this host. A data loading worker that has entered the host stays one.
    pub fn context(self: &Arc<HostContext>) -> ThreadContext {
        let again = of_entered(|entered| entered.filter(|entered| entered.host.id == self.id).cloned());
        let host = again.unwrap_or_else(|| self.entered_as(None, self.clock.clone(), false));
        ThreadContext { host: Some(host), device: CurrentDevice(0), ..ThreadContext::current() }
    }

    /// Creates an entry with a separate clock, and a separate generator if one is given.
    pub fn entered_as(
        self: &Arc<HostContext>,
        generator: Option<Generator>,
        lane: Clock,
        is_worker: bool,
    ) -> Entered {
        Entered { host: self.clone(), generator, lane, is_worker }
    }

    #[inline]
    pub fn in_worker() -> bool {
        of_entered(|entered| entered.is_some_and(|entered| entered.is_worker))
    }

    /// `torch.cuda.current_device()`
    #[inline]
    pub fn current_device() -> usize {
        ThreadContext::read(|context| context.device.0)
    }

    #[inline]
    pub fn current_stream(machine: MachineId, device: usize) -> StreamId {
        ThreadContext::read(|context| StreamId::current_in(&context.streams, machine, device))
    }

    pub fn current_streams() -> Streams {
        ThreadContext::read(|context| context.streams.clone())
    }

    /// Makes a stream current until the guard is dropped.
    pub fn enter_stream(key: StreamKey) -> Restore<Streams> {
        let mut streams = HostContext::current_streams();
        streams.retain(|other| other.machine != key.machine || other.id.device != key.id.device);
        if key.id.number != 0 {
            streams.push(key);
        }
        streams.enter()
    }

    /// Replaces the current streams of this thread until the guard is dropped.
    pub fn enter_streams(streams: Streams) -> Restore<Streams> {
        streams.enter()
    }

    /// `torch.default_generator`
    pub fn default_generator() -> Generator {
        let own = of_entered(|entered| entered.and_then(|entered| entered.generator.clone()));
        own.unwrap_or_else(|| of_current(|host| host.generator.clone()))
    }

    pub fn generator(&self) -> &Generator {
        &self.generator
    }

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

    pub fn backends<R>(access: impl FnOnce(&mut Backends) -> R) -> R {
        of_current(|host| access(&mut lock(&host.backends)))
    }
}

impl HostContext {
    /// Sends warnings to `handler`, beginning with the stored ones.
    pub fn on_warning(&self, handler: impl Fn(&str) + Send + Sync + 'static) {
        let handler = Arc::new(handler);
        *lock(&self.on_warning) = Some(handler.clone());
        let untold = std::mem::take(&mut *lock(&self.untold));
        untold.iter().for_each(|warning| handler(warning));
    }

    pub fn warn_later(&self, warnings: Vec<String>) {
        lock(&self.untold).extend(warnings);
    }

    /// Warns about `topic` once per machine.
    pub fn warn_once(topic: &'static str, message: impl FnOnce() -> String) {
        HostContext::warn_once_at(topic, None, message);
    }

    /// Warns about `topic` once for each line of the program.
    pub fn warn_once_at(topic: &'static str, place: Option<Place>, message: impl FnOnce() -> String) {
        let Some(handler) = HostContext::warning_handler() else { return };
        let is_new = of_current(|host| lock(&host.warned).insert((topic, place)));
        if is_new {
            handler(&message());
        }
    }

    pub fn warn(message: &str) {
        if let Some(handler) = HostContext::warning_handler() {
            handler(message);
        }
    }

    /// Clones the handler and releases its lock, because a handler may warn or set another handler.
    fn warning_handler() -> Option<Arc<dyn Fn(&str) + Send + Sync>> {
        of_current(|host| lock(&host.on_warning).clone())
    }
}

impl HostContext {
    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    #[inline]
    pub fn now() -> u64 {
        of_entered(|entered| entered.map_or(&DEFAULT.clock, |entered| &entered.lane).now())
    }

    #[inline]
    pub fn lane() -> Clock {
        of_entered(|entered| entered.map_or(&DEFAULT.clock, |entered| &entered.lane).clone())
    }

    /// Adds the work of data loading workers, in nanoseconds.
    pub fn others_worked(&self, nanoseconds: u64) {
        self.others_worked.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The CPU time of all threads in nanoseconds, if time is virtual.
    pub fn cpu_time(&self) -> u64 {
        self.clock.worked() + self.others_worked.load(Ordering::Relaxed)
    }

    /// Advances this thread's clock by a cost on this host, if time is virtual.
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

    /// [`charge`](Self::charge) for one figure, on one core.
    pub fn spend(figure: impl FnOnce(&HostProfile) -> &Figure) {
        HostContext::charge(|host| HostTime::of_one_core(figure(host).nanoseconds()));
    }

    /// The same, `count` times.
    pub fn spend_on_each(count: usize, figure: impl FnOnce(&HostProfile) -> &Figure) {
        HostContext::charge(|host| HostTime::of_one_core(figure(host).nanoseconds() * count as u64));
    }
}
