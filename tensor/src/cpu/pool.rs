//! The threads that share the work of an operation.
//!
//! The system wakes a sleeping thread in 15 µs on a quiet laptop and in 100 µs or more on a virtual machine, as long as
//! many operations take. But the next operation often follows at once. So a helper stays awake for a moment after its
//! work, and the thread it helps waits for it actively. Both yield to other threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use rayon_core::{ThreadPool, ThreadPoolBuilder, Yield};
use todevice_gpu::host::thread::{OfThread, ThreadContext};

use super::thread::THREAD;

const MOMENT: Duration = Duration::from_micros(300);

/// The number of threads that a loop may use. A browser page has one. So has a user's job on a thread pool: while it
/// waited, its thread would run other jobs in the middle of an operation, under its locks and its grad mode.
pub(crate) fn threads() -> usize {
    if cfg!(target_family = "wasm") || is_alone() {
        return 1;
    }
    1 + helpers().map_or(0, ThreadPool::current_num_threads)
}

/// The number of threads for the work of an operation: all of them if the work justifies waking them. For at least a
/// quarter of that work, a helper that is awake and idle takes half of it. It begins within a few µs, ten times faster
/// than a sleeping one. Less work does not even read the number of threads, which would start them.
pub(crate) fn threads_for(work: usize, worth_waking: usize) -> usize {
    if cfg!(target_family = "wasm") || work < worth_waking / 4 {
        1
    } else if work >= worth_waking {
        threads()
    } else {
        1 + usize::from(IDLE.load(Ordering::Relaxed) > 0 && !is_alone())
    }
}

static IDLE: AtomicUsize = AtomicUsize::new(0);

/// While a `Busy` exists, one awake helper is not idle. It is dropped even if the work panics.
struct Busy;

impl Busy {
    fn new() -> Busy {
        IDLE.fetch_sub(1, Ordering::Relaxed);
        Busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        IDLE.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether this thread must compute alone, because it belongs to a thread pool, or a thread of a pool waits for it. A
/// pool's jobs, and the threads they start, keep all cores busy.
pub(crate) fn is_alone() -> bool {
    rayon_core::current_thread_index().is_some() || ThreadContext::read(|context| context.is_alone)
}

/// Runs `help` on `threads` threads, including this one. `help` is `dyn`, so rayon is compiled once beneath it.
pub(super) fn on_threads(threads: usize, help: &(dyn Fn() + Sync)) {
    let Some(pool) = helpers().filter(|_| threads > 1) else { return help() };
    let busy = AtomicUsize::new(threads - 1);
    // Unlike `join`, an in-place scope lets a thread outside the pool begin at once.
    pool.in_place_scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|_| {
                let is_awake = THREAD.with(|thread| thread.stays_awake.get());
                let busy_meanwhile = is_awake.then(Busy::new);
                help();
                drop(busy_meanwhile);
                if !is_awake {
                    pool.spawn(stay_awake);
                }
                busy.fetch_sub(1, Ordering::Release);
            });
        }
        help();
        let since = Instant::now();
        while busy.load(Ordering::Acquire) > 0 && since.elapsed() < MOMENT {
            thread::yield_now();
        }
    });
}

/// A job that keeps its thread awake until no other job has come for a moment.
fn stay_awake() {
    if THREAD.with(|thread| thread.stays_awake.replace(true)) {
        return; // One of the jobs that came.
    }
    let mut since = Instant::now();
    IDLE.fetch_add(1, Ordering::Relaxed);
    while since.elapsed() < MOMENT {
        match rayon_core::yield_now() {
            Some(Yield::Executed) => since = Instant::now(),
            _ => thread::yield_now(),
        }
    }
    IDLE.fetch_sub(1, Ordering::Relaxed);
    THREAD.with(|thread| thread.stays_awake.set(false));
}

/// The helper threads: one fewer than `RAYON_NUM_THREADS` or the number of cores, up to a maximum. They are not in
/// rayon's global pool, which belongs to the program. `None` with a single core, or if the system refuses threads.
fn helpers() -> Option<&'static ThreadPool> {
    static HELPERS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let start = || {
        const MOST_THREADS: usize = 256;
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let asked = env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse::<usize>().ok());
        let threads = asked.filter(|asked| *asked > 0).unwrap_or(cores).min(MOST_THREADS.max(cores));
        let pool = ThreadPoolBuilder::new().num_threads(threads - 1);
        (threads > 1).then(|| pool.build().ok()).flatten()
    };
    HELPERS.get_or_init(start).as_ref()
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn calls(threads: usize) -> usize {
        let calls = AtomicUsize::new(0);
        on_threads(threads, &|| _ = calls.fetch_add(1, Ordering::Relaxed));
        calls.into_inner()
    }

    #[test]
    fn many_threads_get_help_at_once() {
        let expected = |threads| if helpers().is_some() { threads } else { 1 };
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (1..200).for_each(|n| assert_eq!(calls(n % 5 + 1), expected(n % 5 + 1))));
            }
        });
    }

    #[test]
    fn a_helper_that_panics_is_told_of_and_helps_again() {
        let main = thread::current().id();
        let panics = || on_threads(2, &|| assert_eq!(thread::current().id(), main, "a helper"));
        assert_eq!(catch_unwind(AssertUnwindSafe(panics)).is_err(), helpers().is_some());
        assert!(calls(2) >= 1);
    }

    #[test]
    fn a_helper_with_nothing_to_do_goes_to_sleep() {
        let Some(pool) = helpers() else { return };
        let all_sleep = || {
            thread::sleep(100 * MOMENT);
            !pool.broadcast(|_| THREAD.with(|thread| thread.stays_awake.get())).contains(&true)
                && IDLE.load(Ordering::Relaxed) == 0
        };
        let main = thread::current().id();
        calls(2);
        let panics = || on_threads(2, &|| assert_eq!(thread::current().id(), main, "a helper"));
        _ = catch_unwind(AssertUnwindSafe(panics)); // A helper that panicked stays awake, too.
        assert!((0..1000).any(|_| all_sleep()));
    }

    #[test]
    fn a_helper_that_is_awake_takes_half_of_what_is_not_worth_waking_it() {
        assert_eq!([threads_for(24, 100), threads_for(100, 100)], [1, threads()]);
        // Other tests may keep the helper busy, or this thread from running.
        let helps = || {
            calls(2);
            threads_for(25, 100) == 2
        };
        assert_eq!((0..1000).any(|_| helps()), helpers().is_some());
    }
}
