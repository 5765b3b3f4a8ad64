//! The clock of a machine: virtual if its GPUs are simulated, else real.
//!
//! A simulated GPU has no real speed, so all time on its machine is *modelled*: CPU operations, copies and kernels take
//! the times in the profiles of host and device, and [`Instant`] reads that clock.

use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::host::host_context::HostContext;

/// A host thread's time in nanoseconds since the creation of the clock. Clones are the same clock.
#[derive(Clone, Debug)]
pub enum Clock {
    /// Advances by modelled times.
    Virtual(Arc<Lane>),
    #[cfg(not(target_family = "wasm"))]
    Real(std::time::Instant),
}

/// The virtual time of a host thread.
#[derive(Debug, Default)]
pub struct Lane {
    now: AtomicU64,
    slept: AtomicU64,
    /// Time that other cores worked for it.
    helped: AtomicU64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::Virtual(Arc::default())
    }
}

impl Clock {
    /// The real clock. A browser page has none, and gets a virtual clock.
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

    /// The host works or waits for this long. A real clock ignores it.
    pub fn advance(&self, nanoseconds: u64) {
        match self {
            Clock::Virtual(lane) => _ = lane.now.fetch_add(nanoseconds, Ordering::Relaxed),
            #[cfg(not(target_family = "wasm"))]
            Clock::Real(_) => {}
        }
    }

    /// The host spins until `then`, as CUDA does. The clock does not go back.
    pub fn advance_to(&self, then: u64) {
        match self {
            Clock::Virtual(lane) => _ = lane.now.fetch_max(then, Ordering::Relaxed),
            #[cfg(not(target_family = "wasm"))]
            Clock::Real(_) => {}
        }
    }

    /// The thread sleeps until `then`, and leaves its core to others. A real clock ignores it.
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

    /// The core time of this thread and its helpers. 0 for real threads, which the operating system measures.
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

/// Sleeps (`time.sleep`). Virtual time passes at once.
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

/// A moment on the machine's clock (`time.perf_counter`), modelled or measured (`Machine::time_is_modelled`).
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
    #[inline]
    pub fn now() -> Instant {
        Instant(HostContext::now())
    }

    pub fn elapsed(self) -> Duration {
        Instant::now() - self
    }
}

/// The time between two moments, or zero if the second is later.
impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
