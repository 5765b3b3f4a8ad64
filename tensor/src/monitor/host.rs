//! The host as `htop` shows it.

use std::time::Duration;

use crate::machine::Machine;
use crate::time::Instant;

/// This program as the operating system sees it ([`host`]).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Host {
    /// The time of the measurement.
    pub at: Instant,
    /// The CPU time of all threads of this program. Modelled on a machine with modelled time: the CPU's work, driver
    /// calls, waits for a GPU (CUDA spins) and data loading workers, but not sleeps or waits for a worker.
    pub cpu_time: Option<Duration>,
    /// The number of threads, if the system counts them.
    pub threads: Option<usize>,
    /// The program's memory in bytes (RSS, *resident set size*), including the memory of simulated GPUs.
    pub memory: Option<u64>,
    /// The computer's memory in bytes.
    pub memory_total: Option<u64>,
    /// The number of CPU cores.
    pub cores: Option<usize>,
}

impl Host {
    /// Returns the CPU usage since an earlier measurement, in percent of one core. `None` if no time has passed.
    pub fn cpu_usage_since(&self, earlier: &Host) -> Option<f64> {
        let worked = self.cpu_time?.checked_sub(earlier.cpu_time?)?;
        let passed = self.at - earlier.at;
        (!passed.is_zero()).then(|| 100.0 * worked.as_secs_f64() / passed.as_secs_f64())
    }
}

/// Returns the operating system's data about this program. In a web page only modelled times are available.
///
/// ```
/// use todevice::{Machine, Tensor, monitor};
///
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     let before = monitor::host();
///     Tensor::ones(&[1000]).unwrap();
///     let after = monitor::host();
///     assert_eq!(after.cpu_usage_since(&before), Some(100.0)); // one thread, which worked
/// });
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn host() -> Host {
    let machine = Machine::current();
    let of_system = of_system();
    let cpu_time = match machine.time_is_modelled() {
        true => Some(Duration::from_nanos(machine.host().cpu_time())),
        false => of_system.cpu_time,
    };
    Host { at: Instant::now(), cpu_time, ..of_system }
}

fn of_system() -> Host {
    let unknown = Host {
        at: Instant::now(),
        cpu_time: None,
        threads: None,
        memory: None,
        memory_total: None,
        cores: None,
    };
    #[cfg(not(target_family = "wasm"))]
    let unknown = ask(unknown);
    unknown
}

#[cfg(not(target_family = "wasm"))]
fn ask(unknown: Host) -> Host {
    use sysinfo::{MemoryRefreshKind, ProcessRefreshKind, ProcessesToUpdate, System};

    let cores = std::thread::available_parallelism().ok().map(usize::from);
    let (Ok(mut system), Ok(this)) = (System::new(), sysinfo::get_current_pid()) else {
        return Host { cores, ..unknown };
    };
    let what = ProcessRefreshKind::nothing().with_cpu().with_memory().with_tasks();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[this]), true, what);
    let process = system.process(this);
    Host {
        cpu_time: process.map(|process| Duration::from_millis(process.accumulated_cpu_time())),
        // All threads but the first are tasks.
        threads: process.and_then(|process| process.tasks()).map(|tasks| tasks.len() + 1),
        memory: process.map(|process| process.memory()),
        memory_total: Some(system.total_memory()).filter(|total| *total > 0),
        cores,
        ..unknown
    }
}
