//! The host of a simulated machine: what calls of the driver and work of the CPU take on it.

use crate::figure::{Figure, Unit};
use crate::kernel::Work;
use Unit::{GigabytesPerSecond, GigaflopsPerSecond, Microseconds, MicrosecondsPerMebibyte};

/// A kind of host.
#[derive(Debug)]
pub struct HostProfile {
    // Calls of the driver, until they return or begin to wait.
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
    /// The copy to or from the driver's staging memory.
    pub staging: Figure,
    // Work of the CPU.
    /// One operation of this crate, before its kernel: checks, the result's memory, the graph's node.
    pub dispatch: Figure,
    /// Handing work to the thread pool and getting it back.
    pub thread_wake: Figure,
    pub memory_of_one_core: Figure,
    pub memory_of_all_cores: Figure,
    pub elementwise_of_one_core: Figure,
    pub elementwise_of_all_cores: Figure,
    /// A rule of thumb of cuDNN's.
    pub choose_algorithm: Figure,
    pub gemm_of_one_core: Figure,
    pub gemm_of_all_cores: Figure,
    /// One item of a data set that lies in memory.
    pub fetch: Figure,
    /// Starting a worker of a loader, which is a thread here, and waiting for its end.
    pub worker: Figure,
    /// A batch on its way from a worker to the caller, and the order for another.
    pub hand_over: Figure,
}

const CALL: &str = "usual range of traces of the CUDA runtime";
const LAPTOP: &str = "a laptop of about 2024 with 8 cores";

/// How long something takes, and how many cores are at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTime {
    pub nanoseconds: u64,
    pub cores: usize,
}

impl HostTime {
    fn of_one_core(nanoseconds: u64) -> HostTime {
        HostTime { nanoseconds, cores: 1 }
    }
}

/// The cores of the one host that is modelled.
pub const MODELLED_CORES: usize = 8;

/// A typical laptop.
pub static LAPTOP_8_CORES: HostProfile = HostProfile {
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
    free_host: Figure::guess(300.0, Microseconds, "taken to be somewhat less than taking it"),
    enable_peer_access: Figure::guess(2_000.0, Microseconds, CALL),
    context: Figure::guess(150_000.0, Microseconds, "0.1 to 0.3 s with lazy loading"),
    staging: Figure::guess(8.0, GigabytesPerSecond, LAPTOP),
    dispatch: Figure::guess(0.8, Microseconds, "the order of this crate's own operations"),
    thread_wake: Figure::measured(17.0, Microseconds, "a rayon join from outside the pool, this crate"),
    memory_of_one_core: Figure::guess(20.0, GigabytesPerSecond, LAPTOP),
    memory_of_all_cores: Figure::guess(50.0, GigabytesPerSecond, LAPTOP),
    elementwise_of_one_core: Figure::guess(16.0, GigaflopsPerSecond, LAPTOP),
    elementwise_of_all_cores: Figure::guess(100.0, GigaflopsPerSecond, LAPTOP),
    gemm_of_one_core: Figure::guess(50.0, GigaflopsPerSecond, LAPTOP),
    gemm_of_all_cores: Figure::guess(300.0, GigaflopsPerSecond, LAPTOP),
    fetch: Figure::guess(0.5, Microseconds, "an index and a view, this crate"),
    worker: Figure::measured(
        30.0,
        Microseconds,
        "each more worker of an epoch, this crate, EPYC with 2 cores",
    ),
    hand_over: Figure::measured(5.0, Microseconds, "each more empty batch, this crate, EPYC with 2 cores"),
};

impl HostProfile {
    /// How long a kernel's twin takes: bound by memory or by arithmetic, on one core or on all, whichever is done
    /// first.
    #[inline]
    pub fn kernel_time(&self, work: &Work) -> HostTime {
        let one = roofline(work, &self.memory_of_one_core, &self.elementwise_of_one_core);
        let all = roofline(work, &self.memory_of_all_cores, &self.elementwise_of_all_cores);
        self.one_or_all(one, all)
    }

    /// How long a matrix product takes.
    pub fn gemm_time(&self, work: &Work) -> HostTime {
        let one = roofline(work, &self.memory_of_one_core, &self.gemm_of_one_core);
        let all = roofline(work, &self.memory_of_all_cores, &self.gemm_of_all_cores);
        self.one_or_all(one, all)
    }

    /// What takes so many nanoseconds on one core, or on all.
    fn one_or_all(&self, one: f64, all: f64) -> HostTime {
        let all = self.thread_wake.nanoseconds() as f64 + all;
        match one <= all {
            true => HostTime::of_one_core(one as u64),
            false => HostTime { nanoseconds: all as u64, cores: MODELLED_CORES },
        }
    }

    /// How long an operation takes before its first kernel.
    #[inline]
    pub fn dispatch_time(&self) -> HostTime {
        HostTime::of_one_core(self.dispatch.nanoseconds())
    }

    /// How long reading an item of a data set takes.
    pub fn fetch_time(&self) -> HostTime {
        HostTime::of_one_core(self.fetch.nanoseconds())
    }

    /// How long a worker of a loader takes to start and to end.
    pub fn worker_time(&self) -> HostTime {
        HostTime::of_one_core(self.worker.nanoseconds())
    }

    /// How long it takes to get a batch from a worker.
    pub fn hand_over_time(&self) -> HostTime {
        HostTime::of_one_core(self.hand_over.nanoseconds())
    }

    /// How long taking page-locked memory takes.
    pub(super) fn malloc_host_time(&self, bytes: usize) -> u64 {
        let mebibytes = bytes as f64 / 1048576.0;
        self.malloc_host.nanoseconds() + (self.malloc_host_growth.value * mebibytes * 1e3) as u64
    }
}

fn roofline(work: &Work, memory: &Figure, arithmetic: &Figure) -> f64 {
    let flops = if work.double { 2 * work.flops } else { work.flops };
    memory.time_of(work.bytes).max(arithmetic.time_of(flops))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_work_stays_on_one_core_and_large_work_is_shared() {
        let time = |bytes| LAPTOP_8_CORES.kernel_time(&Work { bytes, flops: bytes / 8, double: false });
        assert_eq!(time(20_000), HostTime::of_one_core(1_000));
        assert_eq!(time(50_000_000), HostTime { nanoseconds: 17_000 + 1_000_000, cores: 8 });
    }

    #[test]
    fn double_precision_takes_twice_as_long() {
        let time =
            |double| LAPTOP_8_CORES.gemm_time(&Work { bytes: 0, flops: 1_000_000, double }).nanoseconds;
        assert_eq!((time(false), time(true)), (20_000, 17_000 + 6_666));
    }
}
