//! The costs of driver calls and CPU work on a simulated machine's host.

use std::sync::Mutex;

use todevice_figures::figure::{Figure, Unit};
use todevice_figures::figure_file::{FigureSet, figures_by_name};

use crate::base::kernel::KernelWork;
use Unit::{GigabytesPerSecond, GigaflopsPerSecond, Microseconds, MicrosecondsPerMebibyte};

/// A computer, and the costs of the framework on it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostProfile {
    /// The name for `--host`.
    pub key: &'static str,
    pub name: &'static str,
    // Driver calls, until they return or begin to wait.
    pub launch: Figure,
    pub copy: Figure,
    pub memset: Figure,
    pub event_create: Figure,
    pub event_record: Figure,
    pub wait_event: Figure,
    pub query: Figure,
    pub synchronize: Figure,
    pub stream_create: Figure,
    pub memory_info: Figure,
    pub malloc_host: Figure,
    pub malloc_host_growth: Figure,
    pub free_host: Figure,
    pub enable_peer_access: Figure,
    /// The first use of a device.
    pub context: Figure,
    /// A copy to or from the driver's staging buffer.
    pub staging: Figure,
    // Work of the CPU.
    /// One operation without its kernel: checks, allocation of the result, the autograd node.
    pub dispatch: Figure,
    /// A backward pass without its nodes.
    pub backward: Figure,
    /// An autograd node or leaf, besides its operations.
    pub node: Figure,
    /// An optimizer step without its parameters.
    pub step: Figure,
    /// A parameter of Adam or AdamW, besides one operation.
    pub adam_parameter: Figure,
    /// A parameter of SGD, besides one operation.
    pub sgd_parameter: Figure,
    pub zero_grad: Figure,
    /// Handing work to the thread pool and back.
    pub thread_wake: Figure,
    pub memory_of_one_core: Figure,
    pub memory_of_all_cores: Figure,
    pub elementwise_of_one_core: Figure,
    pub elementwise_of_all_cores: Figure,
    /// The choice of an algorithm by cuDNN's heuristic.
    pub choose_algorithm: Figure,
    pub gemm_of_one_core: Figure,
    pub gemm_of_all_cores: Figure,
    /// One item of an in-memory data set.
    pub fetch: Figure,
    /// Copying a row of a `TensorDataset` into a batch, if rows are not gathered at once.
    pub row: Figure,
    /// Starting and joining a loader's worker, a thread or a process.
    pub worker: Figure,
    /// Passing a batch from a worker to the caller, and requesting the next.
    pub hand_over: Figure,
}

const CALL: &str = "usual range of traces of the CUDA runtime";
const LAPTOP: &str = "a laptop of about 2024 with 8 cores";
const IN_OPERATIONS: &str = "included in the time of this crate's operations";

/// A duration, and the number of cores that work during it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTime {
    pub nanoseconds: u64,
    pub cores: usize,
}

impl HostTime {
    pub fn of_one_core(nanoseconds: u64) -> HostTime {
        HostTime { nanoseconds, cores: 1 }
    }
}

pub const MODELLED_CORES: usize = 8;

pub static LAPTOP_8_CORES: HostProfile = HostProfile {
    key: "laptop",
    name: "a laptop with 8 cores",
    launch: Figure::measured(5.0, Microseconds, "4 to 6 µs a launch in a loop, susun-blog, RTX 5070 Ti"),
    copy: Figure::guess(5.0, Microseconds, CALL),
    memset: Figure::guess(4.0, Microseconds, CALL),
    event_create: Figure::guess(0.6, Microseconds, CALL),
    event_record: Figure::guess(1.5, Microseconds, CALL),
    wait_event: Figure::guess(1.0, Microseconds, CALL),
    query: Figure::guess(0.8, Microseconds, CALL),
    synchronize: Figure::guess(3.0, Microseconds, CALL),
    stream_create: Figure::guess(10.0, Microseconds, CALL),
    choose_algorithm: Figure::guess(20.0, Microseconds, CALL),
    memory_info: Figure::guess(20.0, Microseconds, CALL),
    malloc_host: Figure::guess(500.0, Microseconds, "2.3 ms up to 1 MB about 2010, University of Virginia"),
    malloc_host_growth: Figure::guess(
        120.0,
        MicrosecondsPerMebibyte,
        "61 ms for 512 MB about 2010, University of Virginia",
    ),
    free_host: Figure::guess(300.0, Microseconds, "assumed to take somewhat less time than malloc_host"),
    enable_peer_access: Figure::guess(2_000.0, Microseconds, CALL),
    context: Figure::guess(150_000.0, Microseconds, "0.1 to 0.3 s with lazy loading"),
    staging: Figure::guess(8.0, GigabytesPerSecond, LAPTOP),
    dispatch: Figure::guess(0.8, Microseconds, "the order of magnitude of this crate's own operations"),
    backward: Figure::guess(0.0, Microseconds, IN_OPERATIONS),
    node: Figure::guess(0.0, Microseconds, IN_OPERATIONS),
    step: Figure::guess(0.0, Microseconds, IN_OPERATIONS),
    adam_parameter: Figure::guess(0.0, Microseconds, IN_OPERATIONS),
    sgd_parameter: Figure::guess(0.0, Microseconds, IN_OPERATIONS),
    zero_grad: Figure::guess(
        0.0,
        Microseconds,
        "this crate's zero_grad only frees memory, and does not call CUDA",
    ),
    thread_wake: Figure::measured(17.0, Microseconds, "a rayon join from outside the pool, this crate"),
    memory_of_one_core: Figure::guess(20.0, GigabytesPerSecond, LAPTOP),
    memory_of_all_cores: Figure::guess(50.0, GigabytesPerSecond, LAPTOP),
    elementwise_of_one_core: Figure::guess(16.0, GigaflopsPerSecond, LAPTOP),
    elementwise_of_all_cores: Figure::guess(100.0, GigaflopsPerSecond, LAPTOP),
    gemm_of_one_core: Figure::guess(50.0, GigaflopsPerSecond, LAPTOP),
    gemm_of_all_cores: Figure::guess(300.0, GigaflopsPerSecond, LAPTOP),
    fetch: Figure::guess(0.5, Microseconds, "an index and a view, this crate"),
    row: Figure::guess(0.0, Microseconds, "this crate takes all rows of a batch in one operation"),
    worker: Figure::measured(
        30.0,
        Microseconds,
        "each additional worker in an epoch, this crate, EPYC with 2 cores",
    ),
    hand_over: Figure::measured(
        5.0,
        Microseconds,
        "each additional empty batch, this crate, EPYC with 2 cores",
    ),
};

/// The same laptop with PyTorch's costs: the shortest times of PyTorch 2.11 on one thread of an EPYC, with one-element
/// tensors (`tests/bench/host.py`).
///
/// A module's overhead over its operation, 1.5 µs for a ReLU and 3 µs for a Linear, is not modelled. A training step of
/// lab 03's network takes 225 µs on the modelled CPU. PyTorch took 245.
pub static PYTORCH: HostProfile = HostProfile {
    key: "pytorch",
    name: "the same laptop with PyTorch's cost of an operation",
    dispatch: Figure::measured(2.1, Microseconds, "an addition that is recorded, PyTorch 2.11"),
    backward: Figure::measured(13.0, Microseconds, "backward() of one sum less its nodes, PyTorch 2.11"),
    node: Figure::measured(
        3.3,
        Microseconds,
        "a third of a Linear's backward pass, minus its operations, PyTorch 2.11",
    ),
    step: Figure::measured(15.0, Microseconds, "Adam.step() that finds no gradient, PyTorch 2.11"),
    adam_parameter: Figure::measured(23.0, Microseconds, "Adam.step() of 4 parameters, PyTorch 2.11"),
    sgd_parameter: Figure::measured(5.5, Microseconds, "SGD.step() with momentum, PyTorch 2.11"),
    zero_grad: Figure::measured(7.2, Microseconds, "zero_grad() of 4 parameters, PyTorch 2.11"),
    row: Figure::measured(2.3, Microseconds, "batches of 64 and of 32 rows, PyTorch 2.11"),
    worker: Figure::measured(
        20_000.0,
        Microseconds,
        "each additional worker process in an epoch, PyTorch 2.11",
    ),
    hand_over: Figure::measured(32.0, Microseconds, "each additional empty batch, PyTorch 2.11"),
    ..LAPTOP_8_CORES
};

/// The built-in hosts. The first is the default.
pub static HOSTS: [&HostProfile; 2] = [&LAPTOP_8_CORES, &PYTORCH];

static LOADED: Mutex<Vec<&'static HostProfile>> = Mutex::new(Vec::new());

impl FigureSet for HostProfile {
    const KIND: &'static str = "host";
    const ENDING: &'static str = ".host";

    figures_by_name!(
        launch copy memset event_create event_record wait_event query synchronize stream_create memory_info malloc_host
        malloc_host_growth free_host enable_peer_access context staging dispatch backward node step adam_parameter
        sgd_parameter zero_grad thread_wake memory_of_one_core memory_of_all_cores elementwise_of_one_core
        elementwise_of_all_cores choose_algorithm gemm_of_one_core gemm_of_all_cores fetch row worker hand_over
    );

    fn built_in() -> &'static [&'static HostProfile] {
        &HOSTS
    }

    fn loaded() -> &'static Mutex<Vec<&'static HostProfile>> {
        &LOADED
    }

    fn key(&self) -> &'static str {
        self.key
    }

    fn with_key(self, key: &'static str) -> HostProfile {
        HostProfile { key, ..self }
    }

    /// Work that this crate includes elsewhere, or omits.
    fn may_be_zero(name: &str) -> bool {
        LAPTOP_8_CORES.figure(name).is_some_and(|figure| figure.value == 0.0)
    }

    fn set_word(&mut self, name: &str, value: &'static str) -> Option<Result<(), String>> {
        match name {
            "name" if !value.is_empty() => self.name = value,
            "name" => return Some(Err("the name is empty".to_owned())),
            _ => return None,
        }
        Some(Ok(()))
    }
}

impl HostProfile {
    /// The maximum of the times for memory and arithmetic, on one core or on all, whichever is faster.
    #[inline]
    pub fn kernel_time(&self, work: &KernelWork) -> HostTime {
        let one = roofline(work, &self.memory_of_one_core, &self.elementwise_of_one_core);
        let all = roofline(work, &self.memory_of_all_cores, &self.elementwise_of_all_cores);
        self.one_or_all(one, all)
    }

    pub fn gemm_time(&self, work: &KernelWork) -> HostTime {
        let one = roofline(work, &self.memory_of_one_core, &self.gemm_of_one_core);
        let all = roofline(work, &self.memory_of_all_cores, &self.gemm_of_all_cores);
        self.one_or_all(one, all)
    }

    /// Returns the faster of one core and all cores. Arguments are in nanoseconds.
    fn one_or_all(&self, one: f64, all: f64) -> HostTime {
        let all = self.thread_wake.nanoseconds() as f64 + all;
        match one <= all {
            true => HostTime::of_one_core(one as u64),
            false => HostTime { nanoseconds: all as u64, cores: MODELLED_CORES },
        }
    }

    /// In nanoseconds.
    pub(crate) fn malloc_host_time(&self, bytes: usize) -> u64 {
        let mebibytes = bytes as f64 / 1048576.0;
        self.malloc_host.nanoseconds() + (self.malloc_host_growth.value * mebibytes * 1e3) as u64
    }
}

fn roofline(work: &KernelWork, memory: &Figure, arithmetic: &Figure) -> f64 {
    let flops = if work.double { 2 * work.flops } else { work.flops };
    memory.time_of(work.bytes).max(arithmetic.time_of(flops))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_work_stays_on_one_core_and_large_work_is_shared() {
        let time = |bytes| LAPTOP_8_CORES.kernel_time(&KernelWork { bytes, flops: bytes / 8, double: false });
        assert_eq!(time(20_000), HostTime::of_one_core(1_000));
        assert_eq!(time(50_000_000), HostTime { nanoseconds: 17_000 + 1_000_000, cores: 8 });
    }

    #[test]
    fn double_precision_takes_twice_as_long() {
        let time =
            |double| LAPTOP_8_CORES.gemm_time(&KernelWork { bytes: 0, flops: 1_000_000, double }).nanoseconds;
        assert_eq!((time(false), time(true)), (20_000, 17_000 + 6_666));
    }
}
