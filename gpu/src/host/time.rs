//! The clock of a machine: virtual if its GPUs are simulated, else the real one.
//!
//! A simulated GPU has no speed of its own, so on its machine all time is modelled: CPU operations, copies and kernels
//! take the times given by the profiles of host and device, and [`Instant`] reads that clock. Its times are *modelled*,
//! and output that shows one says so.

use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::host::host_context::HostContext;

/// The time of a host thread in nanoseconds, counted from the creation of the clock. Clones are the same clock.
#[derive(Clone, Debug)]
pub enum Clock {
    /// Advances when it is told how long something takes.
    Virtual(Arc<Lane>),
    /// Advances by itself.
    #[cfg(not(target_family = "wasm"))]
    Real(std::time::Instant),
}

/// A thread of a simulated host.
#[derive(Debug, Default)]
pub struct Lane {
    now: AtomicU64,
    /// The part of that time that it slept.
    slept: AtomicU64,
    /// The time that other cores worked for it.
    helped: AtomicU64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::Virtual(Arc::default())
    }
}

impl Clock {
    /// The real clock; a virtual one in a browser page, where there is no real one.
    pub fn real() -> Clock {
        #[cfg(not(target_family = "wasm"))]
        return Clock::Real(std::time::Instant::now());
        #[cfg(target_family = "wasm")]
        Clock::default()
    }

    #[inline]
    pub fn is_virtual(&self) -> bool {
        matches!(self, Clock::Virtual(_))
    }

    pub fn now(&self) -> u64 {
        match self {
            Clock::Virtual(lane) => lane.now.load(Ordering::Relaxed),
            #[cfg(not(target_family = "wasm"))]
            Clock::Real(start) => start.elapsed().as_nanos() as u64,
        }
    }

    /// The host works, or waits, for this long. Real time passes on its own.
    pub fn advance(&self, nanoseconds: u64) {
        match self {
            Clock::Virtual(lane) => _ = lane.now.fetch_add(nanoseconds, Ordering::Relaxed),
            #[cfg(not(target_family = "wasm"))]
            Clock::Real(_) => {}
        }
    }

    /// The host waits until then, by spinning, as CUDA does. The clock does not go back.
    pub fn advance_to(&self, then: u64) {
        match self {
            Clock::Virtual(lane) => _ = lane.now.fetch_max(then, Ordering::Relaxed),
            #[cfg(not(target_family = "wasm"))]
            Clock::Real(_) => {}
        }
    }

    /// The thread sleeps until then, and leaves its core to others. Real sleeping happens elsewhere.
    pub fn sleep_until(&self, then: u64) {
        match self {
            Clock::Virtual(lane) => {
                let now = lane.now.fetch_max(then, Ordering::Relaxed);
                lane.slept.fetch_add(then.saturating_sub(now), Ordering::Relaxed);
            }
            #[cfg(not(target_family = "wasm"))]
            Clock::Real(_) => {}
        }
    }

    /// Adds time that other cores worked for this thread.
    pub fn helped(&self, nanoseconds: u64) {
        match self {
            Clock::Virtual(lane) => _ = lane.helped.fetch_add(nanoseconds, Ordering::Relaxed),
            #[cfg(not(target_family = "wasm"))]
            Clock::Real(_) => {}
        }
    }

    /// The time that this thread had a core, plus the time that others worked for it; 0 for real threads, which the
    /// operating system measures.
    pub fn worked(&self) -> u64 {
        match self {
            Clock::Virtual(lane) => {
                let awake =
                    lane.now.load(Ordering::Relaxed).saturating_sub(lane.slept.load(Ordering::Relaxed));
                awake + lane.helped.load(Ordering::Relaxed)
            }
            #[cfg(not(target_family = "wasm"))]
            Clock::Real(_) => 0,
        }
    }
}

/// Sleeps for a while (`time.sleep`): virtual time passes at once.
///
/// ```
/// use std::time::Duration;
/// use todevice::Machine;
/// use todevice::time::{Instant, sleep};
///
/// let machine: Machine = "sim:t4".parse()?;
/// let slept = machine.enter(|| {
///     let start = Instant::now();
///     sleep(Duration::from_secs(3600));
///     start.elapsed()
/// });
/// assert_eq!(slept, Duration::from_secs(3600));
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn sleep(time: Duration) {
    match HostContext::lane() {
        lane @ Clock::Virtual(_) => lane.sleep_until(lane.now().saturating_add(time.as_nanos() as u64)),
        #[cfg(not(target_family = "wasm"))]
        Clock::Real(_) => std::thread::sleep(time),
    }
}

/// A moment on the clock of the machine (`time.perf_counter`): modelled where time is virtual
/// (`Machine::time_is_modelled`), measured elsewhere.
///
/// ```
/// use todevice::Machine;
/// use todevice::time::Instant;
///
/// let machine: Machine = "sim:t4".parse()?;
/// let elapsed = machine.enter(|| {
///     let start = Instant::now();
///     todevice::Tensor::zeros(&[1000, 1000]).unwrap();
///     start.elapsed()
/// });
/// assert!(elapsed > std::time::Duration::ZERO);
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(u64);

impl Instant {
    /// The current time, on this thread's clock of the current machine.
    #[inline]
    pub fn now() -> Instant {
        Instant(HostContext::now())
    }

    /// The time since this moment.
    pub fn elapsed(self) -> Duration {
        Instant::now() - self
    }
}

/// The time between two moments; zero if the second is the later one.
impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
