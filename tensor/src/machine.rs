//! The machine a program runs on, and what it owns: default random numbers, host memory, warnings.
//!
//! Nothing here is global but the default machine. A machine can be entered for a scope, so tests
//! run side by side without sharing a random stream.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::random::Generator;
use crate::storage::HostMemory;

/// A host and the GPUs it sees. Clones share it.
///
/// So far every machine is a host without a GPU; `cuda::is_available()` is false on it.
#[derive(Clone)]
pub struct Machine(Arc<State>);

struct State {
    generator: Generator,
    memory: Arc<HostMemory>,
    warned: Mutex<HashSet<&'static str>>,
    /// Receives warnings. The crate itself never prints.
    on_warning: Mutex<Option<Arc<dyn Fn(&str) + Send + Sync>>>,
    next_sequence: AtomicU64,
}

static DEFAULT: LazyLock<Machine> = LazyLock::new(Machine::new);

thread_local! {
    /// The machines entered on this thread, and the generator that stands in for the machine's own
    /// (a data loading worker draws from its own stream).
    static ENTERED: RefCell<Vec<(Machine, Option<Generator>)>> = const { RefCell::new(Vec::new()) };
}

impl Machine {
    /// A host with no GPU (`--gpu none`), its generator seeded like a fresh `torch.Generator`.
    #[allow(clippy::new_without_default)] // `Machine::default()` would read as "the default machine".
    pub fn new() -> Machine {
        Machine(Arc::new(State {
            generator: Generator::new(),
            memory: Arc::new(HostMemory::new()),
            warned: Mutex::new(HashSet::new()),
            on_warning: Mutex::new(None),
            next_sequence: AtomicU64::new(0),
        }))
    }

    /// The machine entered last on this thread, else the default one.
    pub fn current() -> Machine {
        ENTERED
            .with_borrow(|entered| entered.last().map(|(machine, _)| machine.clone()))
            .unwrap_or_else(|| DEFAULT.clone())
    }

    /// Runs `scope` on this machine.
    pub fn enter<R>(&self, scope: impl FnOnce() -> R) -> R {
        self.enter_with(None, scope)
    }

    /// The same with another default generator, as a data loading worker has one.
    pub(crate) fn enter_with<R>(&self, generator: Option<Generator>, scope: impl FnOnce() -> R) -> R {
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                ENTERED.with_borrow_mut(|entered| entered.pop());
            }
        }
        ENTERED.with_borrow_mut(|entered| entered.push((self.clone(), generator)));
        let _leave = Leave; // Also when `scope` panics.
        scope()
    }

    /// The generator operations draw from when none is given (`torch.default_generator`).
    pub fn default_generator() -> Generator {
        ENTERED
            .with_borrow(|entered| {
                entered
                    .last()
                    .map(|(machine, own)| own.clone().unwrap_or_else(|| machine.0.generator.clone()))
            })
            .unwrap_or_else(|| DEFAULT.0.generator.clone())
    }

    /// Bytes of host memory held by tensors, their peak, and the bytes kept for reuse.
    pub fn host_memory(&self) -> &HostMemory {
        &self.0.memory
    }

    pub(crate) fn memory() -> Arc<HostMemory> {
        ENTERED
            .with_borrow(|entered| entered.last().map(|(machine, _)| machine.0.memory.clone()))
            .unwrap_or_else(|| DEFAULT.0.memory.clone())
    }

    /// Gives the machine's warnings to `handler`: PyTorch's texts, each at most once.
    pub fn on_warning(&self, handler: impl Fn(&str) + Send + Sync + 'static) {
        *self.0.on_warning.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(handler));
    }

    /// Warns of `topic` if it has not been warned of on this machine.
    pub(crate) fn warn_once(topic: &'static str, message: impl FnOnce() -> String) {
        let machine = Machine::current();
        // Out of the lock before it is called: a handler may warn, or set another handler.
        let handler = machine.0.on_warning.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(handler) = handler else { return };
        if machine.0.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(topic) {
            handler(&message());
        }
    }

    /// A number for a new graph node, larger than all before: later nodes run first in backward.
    /// One counter for all machines, so that the order holds wherever a graph was built.
    pub(crate) fn next_sequence() -> u64 {
        DEFAULT.0.next_sequence.fetch_add(1, Ordering::Relaxed)
    }
}

/// The GPUs, in a word.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no GPU")
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Machine({self})")
    }
}

/// Seeds the machine's default generator and returns it (`torch.manual_seed`).
///
/// As in PyTorch only the low 32 bits feed the stream. A negative seed is its two's complement:
/// `-1i64 as u64`.
pub fn manual_seed(seed: u64) -> Generator {
    Machine::default_generator().manual_seed(seed)
}
