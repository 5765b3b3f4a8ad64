//! The sweep under a time limit, for use with a real card (`tests/card`): one family of operations, on all cores, until
//! the time is over, with a report of what was done and what was not.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::cuda_sweep::{FAMILIES, on_gpu};
use sweep::{Case, Tally, tally};
use todevice::prelude::*;

/// The results for a family.
#[derive(Default)]
struct Report {
    cases: usize,
    done: usize,
    compared: usize,
    refused: usize,
    /// The cases that differ, with the differences.
    differing: Vec<&'static str>,
    differences: String,
    not_done: Vec<&'static str>,
    /// The cases during which the GPU was lost: after some errors a process can no longer use it.
    lost: Vec<&'static str>,
}

/// Runs the cases in order on several threads until the time is over.
fn sweep_until(cases: &[Case], end: Instant, threads: usize) -> Report {
    let (next, lost) = (AtomicUsize::new(0), AtomicBool::new(false));
    let report = Mutex::new(Report { cases: cases.len(), ..Report::default() });
    let stop = || lost.load(Relaxed) || Instant::now() >= end;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                on_gpu(|| {
                    while let Some(case) = cases.get(next.fetch_add(1, Relaxed)) {
                        let tally = catch_unwind(AssertUnwindSafe(|| tally(case, &stop)));
                        let was_lost = tally.as_ref().map_or(true, |tally| tally.differing > 0) && is_lost();
                        lost.fetch_or(was_lost, Relaxed);
                        report.lock().unwrap().add(case.name, tally.ok(), was_lost);
                    }
                });
            });
        }
    });
    report.into_inner().unwrap()
}

/// Whether the GPU is unusable for this process.
fn is_lost() -> bool {
    let works = || Tensor::from_slice(&[1.0f32], &[1])?.to(Device::cuda(0))?.add(1.0)?.item();
    works().is_err()
}

impl Report {
    /// A case that panicked has no tally.
    fn add(&mut self, name: &'static str, tally: Option<Tally>, lost: bool) {
        let Some(tally) = tally else {
            self.differing.push(name);
            return;
        };
        self.compared += tally.ran;
        self.refused += tally.refused;
        if tally.differing > 0 {
            self.differing.push(name);
            self.differences += &tally.differences;
        }
        if lost {
            self.lost.push(name);
        }
        match tally.stopped {
            true => self.not_done.push(name),
            false => self.done += 1,
        }
    }

    fn text(&self, family: &str) -> String {
        let Report { cases, done, compared, refused, differing, differences, not_done, lost } = self;
        let list = |what: &str, names: &[&str]| match names {
            [] => String::new(),
            names => format!("\n{family}: {what}: {}", names.join(", ")),
        };
        format!(
            "{differences}{}{}{}\n{family}: {done} of {cases} cases done, {compared} results compared, {refused} times both refused, {} \
             differ",
            list("the GPU was lost during", lost),
            list("not done", not_done),
            list("differ", differing),
            differing.len()
        )
    }
}

#[test]
#[ignore = "tests/card runs it, with SWEEP_FAMILY and SWEEP_SECONDS in the environment"]
fn a_family_is_that_of_the_cpu_as_far_as_time_goes() {
    let set = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let (family, seconds) = (set("SWEEP_FAMILY"), set("SWEEP_SECONDS"));
    let (_, cases) = FAMILIES.iter().find(|(name, _)| *name == family).expect("a family of the list");
    let end = Instant::now() + Duration::from_secs_f64(seconds.parse().unwrap());
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8));
    let report = sweep_until(&cases(), end, threads);
    println!("{}", report.text(&family));
    assert!(report.differing.is_empty() && report.lost.is_empty(), "{family} differs");
}

#[test]
fn a_sweep_without_time_says_what_it_has_not_done() {
    let (_, cases) = FAMILIES[5];
    let cases = &cases()[..3];
    let report = sweep_until(cases, Instant::now(), 2);
    assert_eq!((report.done, report.compared, report.not_done.len()), (0, 0, 3));
    let said = report.text("losses");
    assert!(said.contains("\nlosses: not done: mse_loss "), "{said}");
    assert!(
        said.ends_with("\nlosses: 0 of 3 cases done, 0 results compared, 0 times both refused, 0 differ")
    );
}

#[test]
fn a_difference_in_one_case_is_told_and_the_others_go_on() {
    use sweep::{case, one, sizes};
    let small = || sizes(&[&[&[3]]]);
    let cases = [
        case("right", small(), |x| one(x[0].neg())),
        case("wrong", small(), |x| if x[0].is_cuda() { one(x[0].abs()) } else { one(x[0].neg()) }),
        case("panics", small(), |x| if x[0].is_cuda() { panic!("it does") } else { one(x[0].neg()) }),
        case("right too", small(), |x| one(x[0].neg())),
    ];
    let report = sweep_until(&cases, Instant::now() + Duration::from_secs(600), 1);
    assert_eq!((report.done, &report.differing[..]), (3, &["wrong", "panics"][..]));
    assert!(report.lost.is_empty() && report.compared > 20);
    assert!(report.differences.contains("\nwrong"), "{}", report.differences);
}
