//! What is around the code that runs on a thread: the host of the machine it is on, with the clock, default random numbers,
//! memory, flags and warnings that belong to it, and what of these the thread has to itself.
//!
//! Nothing here is global but the default host. Of GPUs no more is known here than how many there are.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use crate::base::device::MachineId;
use crate::base::figure::Figure;
use crate::base::flags::Backends;
use crate::base::lock::lock;
use crate::base::place::Place;
use crate::base::random::Generator;
use crate::host::host_memory::HostMemory;
use crate::host::host_profile::{HostProfile, HostTime, LAPTOP_8_CORES};
use crate::host::thread::{Context, CurrentDevice, OfThread, Part};
use crate::host::time::Clock;

/// The host of a machine.
pub struct Ambient {
    id: MachineId,
    clock: Clock,
    /// How long things take here, where time is virtual.
    profile: &'static HostProfile,
    /// For how long threads with clocks of their own worked, in nanoseconds, where time is virtual.
    others_worked: AtomicU64,
    generator: Generator,
    memory: Arc<HostMemory>,
    backends: Mutex<Backends>,
    /// Of what, and where, if a warning is for each line that gives it.
    warned: Mutex<HashSet<(&'static str, Option<Place>)>>,
    /// Receives warnings. The crate itself never prints.
    on_warning: Arc<Mutex<Option<Arc<dyn Fn(&str) + Send + Sync>>>>,
    /// Warnings of how the machine was made, until somebody hears them.
    untold: Mutex<Vec<String>>,
    /// How many GPUs the machine has: set once, when it is made.
    gpus: OnceLock<usize>,
    /// How many more operations its program may ask for, where somebody has said so.
    operations_left: Arc<Mutex<Option<u64>>>,
    is_limited: AtomicBool,
    /// Which of several processes has it so.
    process: Option<usize>,
}

static DEFAULT: LazyLock<Arc<Ambient>> = LazyLock::new(|| Ambient::new(Clock::real()));

/// The host that a thread has entered, and what the thread has of it to itself.
#[derive(Clone)]
pub struct Entered {
    ambient: Arc<Ambient>,
    /// Stands in for the machine's own generator: a data loading worker draws from its own stream.
    generator: Option<Generator>,
    /// The thread's own clock on a machine whose time is virtual; the first thread's is the machine's.
    lane: Clock,
    /// A data loading worker may not touch a GPU.
    is_worker: bool,
}

/// Reads something of what this thread is on.
fn of_current<R>(read: impl FnOnce(&Ambient) -> R) -> R {
    of_entered(|entered| read(entered.map_or(&DEFAULT, |entered| &entered.ambient)))
}

fn of_entered<R>(read: impl FnOnce(Option<&Entered>) -> R) -> R {
    Context::read(|context| read(context.host.as_ref()))
}

impl Ambient {
    pub fn new(clock: Clock) -> Arc<Ambient> {
        Ambient::like(&LAPTOP_8_CORES, clock)
    }

    /// A host of this kind.
    pub fn like(profile: &'static HostProfile, clock: Clock) -> Arc<Ambient> {
        Arc::new(Ambient {
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

    /// What another process on the same computer has of this host. Generator, flags and clock are its own;
    /// memory, the handler of warnings and the number of operations left are shared.
    pub fn fork(&self, process: usize, clock: Clock) -> Arc<Ambient> {
        Arc::new(Ambient {
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

    /// The number of the process that this thread is of, if there are several: its rank.
    pub fn rank() -> Option<usize> {
        of_current(|ambient| ambient.process)
    }

    pub fn host_profile(&self) -> &'static HostProfile {
        self.profile
    }

    /// Where a thread that has entered nothing is.
    pub fn default_one() -> Arc<Ambient> {
        DEFAULT.clone()
    }

    #[inline]
    pub fn id(&self) -> MachineId {
        self.id
    }

    /// The machine that this thread is on.
    #[inline]
    pub fn current_id() -> MachineId {
        of_current(Ambient::id)
    }

    /// Says how many GPUs the machine has. Not said where there is no driver.
    pub fn set_gpus(&self, gpus: usize) {
        let _ = self.gpus.set(gpus);
    }

    /// How many GPUs there are on the machine that this thread is on.
    pub fn gpus() -> usize {
        of_current(|ambient| ambient.gpus.get().copied().unwrap_or(0))
    }

    /// Whether the machine that this thread is on has a driver, if only one that shows no GPU.
    pub fn has_driver() -> bool {
        of_current(|ambient| ambient.gpus.get().is_some())
    }

    /// Runs `scope` here.
    pub fn enter<R>(self: &Arc<Ambient>, scope: impl FnOnce() -> R) -> R {
        let _left = self.context().enter();
        scope()
    }

    /// The context of code that this thread runs here. Where it has entered this host already nothing changes: a data loading
    /// worker stays one.
    pub fn context(self: &Arc<Ambient>) -> Context {
        let again = of_entered(|entered| entered.filter(|entered| entered.ambient.id == self.id).cloned());
        let host = again.unwrap_or_else(|| self.entered_as(None, self.clock.clone(), false));
        Context { host: Some(host), device: CurrentDevice(0), ..Context::current() }
    }

    /// What a thread has of this host that draws from this generator if there is one, on a clock of its own.
    pub fn entered_as(
        self: &Arc<Ambient>,
        generator: Option<Generator>,
        lane: Clock,
        is_worker: bool,
    ) -> Entered {
        Entered { ambient: self.clone(), generator, lane, is_worker }
    }

    /// Whether this thread is a data loading worker.
    #[inline]
    pub fn in_worker() -> bool {
        of_entered(|entered| entered.is_some_and(|entered| entered.is_worker))
    }

    /// `torch.cuda.current_device()` of this thread.
    #[inline]
    pub fn current_device() -> usize {
        Context::read(|context| context.device.0)
    }

    /// The generator operations draw from when none is given (`torch.default_generator`).
    pub fn default_generator() -> Generator {
        let own = of_entered(|entered| entered.and_then(|entered| entered.generator.clone()));
        own.unwrap_or_else(|| of_current(|ambient| ambient.generator.clone()))
    }

    /// The machine's own generator.
    pub fn generator(&self) -> &Generator {
        &self.generator
    }

    /// Lets the program ask for so many more operations.
    pub fn limit_operations(&self, count: u64) {
        *lock(&self.operations_left) = Some(count);
        self.is_limited.store(true, Ordering::Relaxed);
    }

    /// Counts an operation. Says whether the program may ask for it.
    #[inline]
    pub fn count_operation() -> bool {
        of_current(|ambient| !ambient.is_limited.load(Ordering::Relaxed) || ambient.one_less())
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
        of_current(|ambient| ambient.memory.clone())
    }

    /// Reads or changes the flags of the current machine.
    pub fn backends<R>(access: impl FnOnce(&mut Backends) -> R) -> R {
        of_current(|ambient| access(&mut lock(&ambient.backends)))
    }
}

/// Warnings.
impl Ambient {
    /// Gives warnings to `handler`, beginning with those that nobody has heard yet.
    pub fn on_warning(&self, handler: impl Fn(&str) + Send + Sync + 'static) {
        let handler = Arc::new(handler);
        *lock(&self.on_warning) = Some(handler.clone());
        let untold = std::mem::take(&mut *lock(&self.untold));
        untold.iter().for_each(|warning| handler(warning));
    }

    /// Keeps warnings for whoever asks for them first.
    pub fn warn_later(&self, warnings: Vec<String>) {
        lock(&self.untold).extend(warnings);
    }

    /// Warns of `topic` if it has not been warned of on this machine.
    pub fn warn_once(topic: &'static str, message: impl FnOnce() -> String) {
        Ambient::warn_once_at(topic, None, message);
    }

    /// The same for each line of the program.
    pub fn warn_once_at(topic: &'static str, place: Option<Place>, message: impl FnOnce() -> String) {
        let Some(handler) = Ambient::warning_handler() else { return };
        let is_new = of_current(|ambient| lock(&ambient.warned).insert((topic, place)));
        if is_new {
            handler(&message());
        }
    }

    /// Warns, each time.
    pub fn warn(message: &str) {
        if let Some(handler) = Ambient::warning_handler() {
            handler(message);
        }
    }

    /// Out of its lock before it is called: a handler may warn, or set another handler.
    fn warning_handler() -> Option<Arc<dyn Fn(&str) + Send + Sync>> {
        of_current(|ambient| lock(&ambient.on_warning).clone())
    }
}

/// Time.
impl Ambient {
    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Now, on this thread's lane.
    #[inline]
    pub fn now() -> u64 {
        of_entered(|entered| entered.map_or(&DEFAULT.clock, |entered| &entered.lane).now())
    }

    /// The clock of this thread.
    #[inline]
    pub fn lane() -> Clock {
        of_entered(|entered| entered.map_or(&DEFAULT.clock, |entered| &entered.lane).clone())
    }

    /// Adds what data loading workers worked, in nanoseconds.
    pub fn others_worked(&self, nanoseconds: u64) {
        self.others_worked.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// For how long threads of this machine have had a core until now, in nanoseconds, where time is virtual.
    pub fn cpu_time(&self) -> u64 {
        self.clock.worked() + self.others_worked.load(Ordering::Relaxed)
    }

    /// Lets virtual time pass on this thread's lane, by as much as its host takes for something. Where time
    /// is real this is no more than a look.
    pub fn charge(time: impl FnOnce(&HostProfile) -> HostTime) {
        of_entered(|entered| match entered {
            Some(Entered { lane, ambient, .. }) if lane.is_virtual() => {
                let HostTime { nanoseconds, cores } = time(ambient.profile);
                lane.advance(nanoseconds);
                lane.helped(nanoseconds * (cores as u64 - 1));
            }
            _ => {}
        });
    }

    /// [`charge`](Self::charge) for a figure of the host's, on one core.
    pub fn spend(figure: impl FnOnce(&HostProfile) -> &Figure) {
        Ambient::charge(|host| HostTime::of_one_core(figure(host).nanoseconds()));
    }

    /// The same, `count` times.
    pub fn spend_on_each(count: usize, figure: impl FnOnce(&HostProfile) -> &Figure) {
        Ambient::charge(|host| HostTime::of_one_core(figure(host).nanoseconds() * count as u64));
    }
}
