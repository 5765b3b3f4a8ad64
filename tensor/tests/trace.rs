//! Recordings of a part of a program, and their contents.

use crate::each_case::each_case;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use todevice::prelude::*;
use todevice::trace::{Trace, record_function};
use todevice::{Machine, cuda};

fn on<R>(gpus: &str, test: impl FnOnce(&Machine) -> Result<R>) -> R {
    let machine: Machine = gpus.parse().unwrap();
    machine.enter(|| test(&machine)).unwrap()
}

/// The names of the devices' work.
fn work(trace: &Trace) -> Vec<String> {
    trace.work.iter().map(|work| work.call.kind.name()).collect()
}

/// The ranges that the program named, each before the ranges inside it.
fn ranges(trace: &Trace) -> Vec<String> {
    let mut ranges: Vec<_> = trace.ranges.iter().collect();
    ranges.sort_by_key(|range| (range.begin, range.depth));
    ranges.into_iter().map(|range| range.name.clone()).collect()
}

#[test]
fn a_recording_has_what_happened_in_it_and_nothing_else() {
    on("sim:t4", |machine| {
        let x = Tensor::ones(&[1000])?.cuda()?;
        let (before, trace) = machine.profile(|| (x.exp(), machine.counters()));
        assert_eq!(work(&trace), ["exp_f32"], "it has ended, though nobody waited in the scope");
        assert_eq!(machine.counters(), before.1, "what the recording waited for is not counted");
        x.sin()?;
        assert_eq!(work(&machine.profile(|| ()).1).len(), 0, "what was queued before is not in it");
        assert!(machine.trace().calls.is_empty(), "no trace was asked for");
        Ok(())
    });
}

#[test]
fn recordings_nest_and_leave_a_trace_alone() {
    let calls = |trace: &Trace| (work(trace), ranges(trace));
    on("sim:t4", |machine| {
        let x = Tensor::ones(&[1000])?.cuda()?;
        machine.start_trace();
        x.exp()?;
        let (inner, outer) = machine.profile(|| {
            record_function("one", || x.sin())?;
            let (_, inner) = machine.profile(|| record_function("two", || x.cos()));
            x.tanh()?;
            Ok::<_, Error>(inner)
        });
        x.abs()?;
        let text = |list: &[&str]| list.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert_eq!(calls(&inner?), (text(&["cos_f32"]), text(&["two"])));
        assert_eq!(calls(&outer), (text(&["sin_f32", "cos_f32", "tanh_f32"]), text(&["one", "two"])));
        let all = text(&["exp_f32", "sin_f32", "cos_f32", "tanh_f32", "abs_f32"]);
        assert_eq!(calls(&machine.trace()), (all, text(&["one", "two"])));
        // A trace started inside a recording does not remove anything from it.
        let (_, around) = machine.profile(|| {
            x.exp()?;
            machine.start_trace();
            x.sin()
        });
        assert_eq!(calls(&around).0, ["exp_f32", "sin_f32"]);
        assert_eq!(calls(&machine.trace()).0, ["sin_f32"]);
        Ok(())
    });
}

#[test]
fn a_recording_changes_no_time_within_it_and_starts_no_device() {
    let timed = |record: bool| {
        on("sim:t4x2", |machine| {
            let x = Tensor::ones(&[1000])?.cuda()?;
            cuda::synchronize()?;
            let start = todevice::time::Instant::now();
            let work = || record_function("work", || x.exp()?.sum()?.item().map(|_| start.elapsed()));
            let time = if record { machine.profile(work).0? } else { work()? };
            assert!(start.elapsed() < Duration::from_millis(1), "the second device was not touched");
            Ok(time)
        })
    };
    assert_eq!(timed(true), timed(false));
}

#[test]
fn a_panic_ends_recordings_and_ranges() {
    on("sim:t4", |machine| {
        let x = Tensor::ones(&[10])?.cuda()?;
        let (caught, trace) = machine.profile(|| {
            catch_unwind(AssertUnwindSafe(|| {
                machine.profile(|| {
                    record_function("outer", || record_function("inner", || panic!("on purpose")))
                })
            }))
        });
        assert!(caught.is_err());
        assert_eq!(ranges(&trace), ["outer", "inner"]);
        // Later events have the same depth as without it.
        let (_, after) = machine.profile(|| record_function("after", || x.exp()));
        assert_eq!(ranges(&after), ["after"]);
        assert_eq!(after.ranges[0].depth, 0);
        Ok(())
    });
}

#[test]
fn names_work_where_there_is_no_gpu_and_where_nothing_is_recorded() {
    on("none", |machine| {
        assert_eq!(record_function("unseen", || 3), 3);
        let (value, trace) =
            machine.profile(|| record_function("seen", || Tensor::ones(&[3])?.sum()?.item()));
        assert_eq!((value?, ranges(&trace)), (3.0, vec!["seen".to_string()]));
        assert!(!trace.modelled);
        Ok(())
    });
}

#[test]
fn what_workers_name_is_not_recorded() {
    struct Named;
    impl todevice::data::Dataset for Named {
        type Sample = Tensor;
        fn len(&self) -> usize {
            8
        }
        fn get(&self, _: usize) -> Result<Tensor> {
            record_function("item", || Tensor::ones(&[2]))
        }
    }
    on("sim:t4", |machine| {
        each_case([(0, 8), (1, 0)], |(num_workers, expected)| -> Result<()> {
            let options = DataLoaderOptions { batch_size: 4, num_workers, ..Default::default() };
            let loader = DataLoader::new(Named, options)?;
            let (batches, trace) = machine.profile(|| loader.iter().count());
            assert_eq!((batches, ranges(&trace).len()), (2, expected), "{num_workers} workers");
            Ok(())
        });
        Ok(())
    });
}
