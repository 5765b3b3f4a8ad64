//! The module `_processes`: the other processes of a program, for `torch.multiprocessing`.
//!
//! Each is a thread with an interpreter and a rank of its own. All begin together, when the program first waits for one
//! of them or becomes a rank itself.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustpython_vm::{PyResult, VirtualMachine};
use todevice::interpreter::{Process, Processes};

use crate::interrupt;
use crate::parcel::Parcel;
use crate::run;

pub(crate) use _processes::module_def;

/// The time between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Of a child's thread. A RecursionError comes long before this is full.
const STACK: usize = 256 << 20;

thread_local! {
    /// This thread's part in the ranks: of a program that has become one, or of a child.
    static RANK: RefCell<Option<Process>> = const { RefCell::new(None) };
    static IN_CHILD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The end of a child: its status, its traceback, and the number of children that ended before.
#[derive(Clone)]
struct End {
    status: u8,
    failure: Option<String>,
    order: usize,
}

struct Batch {
    ranks: Processes,
    ends: Mutex<HashMap<usize, End>>,
    /// The number of children that have ended.
    ended: AtomicUsize,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    items: Mutex<VecDeque<Parcel>>,
    changed: Condvar,
}

static NUMBER: AtomicU64 = AtomicU64::new(1);
static QUEUES: LazyLock<Mutex<HashMap<u64, Arc<Queue>>>> = LazyLock::new(Mutex::default);
/// Parcels for several readers, and the number of those that have not read it.
static KEPT: LazyLock<Mutex<HashMap<u64, (Parcel, usize)>>> = LazyLock::new(Mutex::default);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this thread is a child of the program.
pub fn is_child() -> bool {
    IN_CHILD.with_borrow(Option::is_some)
}

/// Ends this thread's rank, so that the others can run.
pub fn leave(failure: Option<String>) {
    if let Some(rank) = RANK.take() {
        rank.end(failure);
    }
}

/// Waits until `done` has an answer, or for so many seconds. Ctrl-C ends it.
fn wait<T, R>(
    (mutex, changed): (&Mutex<T>, &Condvar),
    seconds: Option<f64>,
    mut done: impl FnMut(&mut T) -> Option<R>,
    vm: &VirtualMachine,
) -> PyResult<Option<R>> {
    let deadline =
        seconds.and_then(|seconds| Instant::now().checked_add(Duration::try_from_secs_f64(seconds).ok()?));
    let mut state = lock(mutex);
    loop {
        if let Some(answer) = done(&mut state) {
            return Ok(Some(answer));
        }
        let left = deadline.map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(None);
        }
        if !is_child() {
            interrupt::raise_pending(vm)?;
        }
        state = changed.wait_timeout(state, left.min(LOOK)).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// The line of a traceback that names the exception.
fn last_line(traceback: &str) -> String {
    let is_of_report =
        |line: &&str| line.starts_with([' ', '=']) || line.starts_with("error[") || line.is_empty();
    traceback.lines().rev().find(|line| !is_of_report(line)).unwrap_or_default().to_owned()
}

impl Batch {
    /// Starts a child, which waits for its turn.
    fn start(self: &Arc<Batch>, slot: usize, parcel: Parcel) -> std::io::Result<()> {
        let (batch, source) = (self.clone(), run::source());
        let child = move || {
            RANK.set(Some(batch.ranks.begin(slot)));
            IN_CHILD.set(Some(String::new()));
            let status = catch_unwind(AssertUnwindSafe(|| run::run_child(&source, &parcel))).unwrap_or(101);
            let failure = IN_CHILD.take().filter(|_| status != 0);
            // Before the others run, whose errors may follow from this one's.
            let order = batch.ended.fetch_add(1, Ordering::Relaxed);
            leave(failure.as_ref().map(|text| last_line(text)));
            lock(&batch.ends).insert(slot, End { status, failure, order });
            batch.changed.notify_all();
        };
        thread::Builder::new().name(format!("rank {slot}")).stack_size(STACK).spawn(child).map(drop)
    }
}

#[rustpython_vm::pymodule]
mod _processes {
    use rustpython_vm::{PyObjectRef, PyPayload, pyclass};

    use super::*;
    use crate::fault::raise;
    use crate::tensor::in_python;

    #[pyattr]
    #[pyclass(module = "torch", name = "_Batch")]
    #[derive(PyPayload)]
    pub struct PyBatch(Arc<Batch>);

    impl std::fmt::Debug for PyBatch {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("PyBatch")
        }
    }

    #[pyfunction]
    fn batch(world_size: usize, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || {
            let (ends, ended, changed) = (Mutex::default(), AtomicUsize::new(0), Condvar::new());
            let batch = Batch { ranks: Processes::new(world_size)?, ends, ended, changed };
            Ok(PyBatch(Arc::new(batch)).into_pyobject(vm))
        })
    }

    #[pyclass]
    impl PyBatch {
        #[pymethod]
        fn start(&self, slot: usize, object: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
            let parcel = Parcel::of(&object, vm)?;
            in_python(vm, || {
                let text = |error| format!("a process needs a thread of {} MiB: {error}", STACK >> 20);
                self.0.start(slot, parcel).map_err(|error| raise("RuntimeError", text(error)))
            })
        }

        /// Makes this program a rank.
        #[pymethod]
        fn join(&self, rank: usize, vm: &VirtualMachine) -> PyResult<()> {
            in_python(vm, || {
                let process = self.0.ranks.join(rank)?;
                RANK.set(Some(process));
                Ok(())
            })
        }

        /// The end of a child, (status, traceback, order), or None if it has not come after so many seconds.
        #[pymethod]
        fn wait(
            &self,
            slot: usize,
            seconds: Option<f64>,
            vm: &VirtualMachine,
        ) -> PyResult<Option<(u8, Option<String>, usize)>> {
            run::flush(vm);
            let end = wait((&self.0.ends, &self.0.changed), seconds, |ends| ends.get(&slot).cloned(), vm)?;
            Ok(end.map(|end| {
                self.0.ranks.wait_for_clocks();
                (end.status, end.failure, end.order)
            }))
        }
    }

    /// Whether this interpreter is that of a child.
    #[pyfunction]
    fn is_child() -> bool {
        super::is_child()
    }

    #[pyfunction]
    fn is_rank() -> bool {
        RANK.with_borrow(Option::is_some)
    }

    /// Ends this program's part in the ranks.
    #[pyfunction]
    fn leave() {
        super::leave(None);
    }

    /// Keeps the traceback of a child.
    #[pyfunction]
    fn fail(traceback: String) {
        IN_CHILD.set(Some(traceback));
    }

    /// The name, the source and the arguments of the program.
    #[pyfunction]
    fn program() -> (String, String) {
        let source = run::source();
        (source.name.clone(), source.text.clone())
    }

    #[pyfunction]
    fn new_queue() -> u64 {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        lock(&QUEUES).insert(number, Arc::default());
        number
    }

    fn queue(number: u64) -> Arc<Queue> {
        lock(&QUEUES).entry(number).or_default().clone()
    }

    #[pyfunction]
    fn put(number: u64, object: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
        let parcel = Parcel::of(&object, vm)?;
        let queue = queue(number);
        lock(&queue.items).push_back(parcel);
        queue.changed.notify_all();
        Ok(())
    }

    /// A tuple of the first item, or None if none has come after so many seconds.
    #[pyfunction]
    fn get(number: u64, seconds: Option<f64>, vm: &VirtualMachine) -> PyResult<Option<PyObjectRef>> {
        let queue = queue(number);
        let item = wait((&queue.items, &queue.changed), seconds, VecDeque::pop_front, vm)?;
        Ok(item.map(|item| vm.ctx.new_tuple(vec![item.object(vm)]).into()))
    }

    #[pyfunction]
    fn length(number: u64) -> usize {
        lock(&queue(number).items).len()
    }

    /// Keeps an object for so many readers. Returns its number.
    #[pyfunction]
    fn keep(object: PyObjectRef, readers: usize, vm: &VirtualMachine) -> PyResult<u64> {
        let parcel = Parcel::of(&object, vm)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        lock(&KEPT).insert(number, (parcel, readers));
        Ok(number)
    }

    #[pyfunction]
    fn kept(number: u64, vm: &VirtualMachine) -> PyResult {
        let mut kept = lock(&KEPT);
        let Some((parcel, readers)) = kept.get_mut(&number) else {
            return Err(vm.new_runtime_error("an object of another rank is gone".to_owned()));
        };
        let parcel = parcel.clone();
        *readers -= 1;
        if *readers == 0 {
            kept.remove(&number);
        }
        drop(kept);
        Ok(parcel.object(vm))
    }
}
