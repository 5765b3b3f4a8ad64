//! The host's side of a monitor: what `htop` says of this program.

use std::time::Duration;

use crate::machine::Machine;
use crate::time::Instant;

/// What the operating system says of this program ([`host`]).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Host {
    /// When it was asked.
    pub at: Instant,
    /// For how long threads of this program have had a core, all of them together. On a machine whose time is modelled
    /// so is this: the CPU's work, calls of the driver, waits for a GPU (in which CUDA keeps asking), and what data
    /// loading workers do; not sleeping, nor waiting for a worker.
    pub cpu_time: Option<Duration>,
    /// How many threads it has, where the system counts them.
    pub threads: Option<usize>,
    /// Bytes of the computer's memory that it has in use (RSS, *resident set size*). What simulated GPUs hold is among
    /// them.
    pub memory: Option<u64>,
    /// Bytes of memory that the computer has.
    pub memory_total: Option<u64>,
    /// Cores that the computer has.
    pub cores: Option<usize>,
}

impl Host {
    /// Percent of one core that the program has had since an earlier look: 100 is one thread that never rests. Nothing
    /// if no time has passed.
    pub fn cpu_usage_since(&self, earlier: &Host) -> Option<f64> {
        let worked = self.cpu_time?.checked_sub(earlier.cpu_time?)?;
        let passed = self.at - earlier.at;
        (!passed.is_zero()).then(|| 100.0 * worked.as_secs_f64() / passed.as_secs_f64())
    }
}

/// What the operating system says of this program now. A page of a browser is told nothing by it: there only modelled
/// times are known.
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
        true => Some(Duration::from_nanos(machine.ambient().cpu_time())),
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

/// Fills in what the operating system tells.
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
        // The threads beside the first.
        threads: process.and_then(|process| process.tasks()).map(|tasks| tasks.len() + 1),
        memory: process.map(|process| process.memory()),
        memory_total: Some(system.total_memory()).filter(|total| *total > 0),
        cores,
        ..unknown
    }
}
