//! The clock of a machine: virtual where GPUs are simulated, the real one elsewhere.
//!
//! A simulated GPU has no speed of its own, so on its machine all time is modelled: CPU operations, copies
//! and kernels take what the profiles of host and device say they take, and [`Instant`] reads that clock.
//! Times of it are *modelled*, and whoever prints one says so.

use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::host::ambient::Ambient;

/// The time of a thread of the host in nanoseconds, counted from when the clock was made. Clones are the same clock.
#[derive(Clone, Debug)]
pub enum Clock {
    /// Moves when somebody says how long something takes.
    Virtual(Arc<Lane>),
    /// Moves by itself.
    #[cfg(not(target_family = "wasm"))]
    Real(std::time::Instant),
}

/// A thread of a simulated host.
#[derive(Debug, Default)]
pub struct Lane {
    now: AtomicU64,
    /// How much of that it slept.
    slept: AtomicU64,
    /// For how long other cores worked for it.
    helped: AtomicU64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::Virtual(Arc::default())
    }
}

impl Clock {
    /// The real one; in a browser's page, where there is none, a virtual one.
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

    /// The host works, or waits, for this long. Real time passes without being told.
    pub fn advance(&self, nanoseconds: u64) {
        match self {
            Clock::Virtual(lane) => _ = lane.now.fetch_add(nanoseconds, Ordering::Relaxed),
            #[cfg(not(target_family = "wasm"))]
            Clock::Real(_) => {}
        }
    }

    /// The host waits until then, and asks all the time whether it has come, as CUDA does; it does not go back.
    pub fn advance_to(&self, then: u64) {
        match self {
            Clock::Virtual(lane) => _ = lane.now.fetch_max(then, Ordering::Relaxed),
            #[cfg(not(target_family = "wasm"))]
            Clock::Real(_) => {}
        }
    }

    /// The thread sleeps until then, and leaves its core to others. Real time is waited for elsewhere.
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

    /// Other cores worked for this thread.
    pub fn helped(&self, nanoseconds: u64) {
        match self {
            Clock::Virtual(lane) => _ = lane.helped.fetch_add(nanoseconds, Ordering::Relaxed),
            #[cfg(not(target_family = "wasm"))]
            Clock::Real(_) => {}
        }
    }

    /// For how long this thread had a core, and others worked for it; 0 of real threads, whom the operating system
    /// knows.
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

/// Lets this thread do nothing for a while (`time.sleep`): virtual time passes at once.
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
    match Ambient::lane() {
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
    /// Now, on this thread's lane of the current machine.
    #[inline]
    pub fn now() -> Instant {
        Instant(Ambient::now())
    }

    /// The time since then.
    pub fn elapsed(self) -> Duration {
        Instant::now() - self
    }
}

/// The time between two moments; none if the second is the later one.
impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
