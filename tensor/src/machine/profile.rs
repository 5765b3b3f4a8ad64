//! Recording a part of a program, with named ranges.

use std::panic::Location;

use super::Machine;
use crate::events::{Range, Trace};
use crate::host_context::HostContext;
use crate::scope;
use crate::thread::{OfThread, OpenRanges, Part, TensorContext};

/// An active recording. It ends on drop, even during a panic.
pub(crate) struct Recording<'a> {
    machine: &'a Machine,
    number: u64,
}

impl<'a> Recording<'a> {
    pub(crate) fn start(machine: &'a Machine) -> Recording<'a> {
        Recording { machine, number: machine.recorder().start(machine.clock().now()) }
    }

    pub(crate) fn finish(self) -> Trace {
        self.machine.trace_of(self.number)
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.machine.stop_recording(self.number);
    }
}

/// Runs `scope` as a named range of the timeline (`torch.profiler.record_function`, an NVTX range). The range has the
/// time and the calls of the host. The GPU may do the work later.
///
/// Ranges may be nested. Without a recording they cost almost nothing. Ranges in data loading workers are not recorded.
///
/// ```
/// use todevice::trace::record_function;
/// use todevice::{Machine, Tensor};
///
/// let machine: Machine = "sim:t4".parse()?;
/// let (sum, trace) = machine.enter(|| {
///     machine.profile(|| {
///         let x = record_function("to the device", || Tensor::ones(&[2, 3])?.cuda())?;
///         record_function("sum", || x.sum()?.item())
///     })
/// });
/// assert_eq!(sum?, 6.0);
/// assert_eq!(trace.ranges[0].name, "to the device");
/// # Ok::<(), todevice::Error>(())
/// ```
#[track_caller]
pub fn record_function<R>(name: &str, scope: impl FnOnce() -> R) -> R {
    let _range = begin_range(name);
    scope()
}

/// Begins a range, which ends with the guard.
#[track_caller]
pub(crate) fn begin_range(name: &str) -> Option<OpenRange> {
    OpenRange::new(name)
}

/// A range that ends on drop.
pub(crate) struct OpenRange {
    machine: Machine,
    range: Range,
}

impl OpenRange {
    #[track_caller]
    fn new(name: &str) -> Option<OpenRange> {
        let machine = Machine::current();
        if HostContext::in_worker() || !machine.recorder().is_recording() {
            return None;
        }
        let depth = TensorContext::read(|context| context.ranges.0);
        OpenRanges(depth + 1).set();
        let (begin, place) = (machine.clock().now(), scope::place_or(Location::caller()));
        let range =
            Range { name: name.to_string(), place, begin, end: begin, depth, rank: HostContext::rank() };
        Some(OpenRange { machine, range })
    }
}

impl Drop for OpenRange {
    fn drop(&mut self) {
        OpenRanges(self.range.depth).set();
        self.range.end = self.machine.clock().now();
        self.machine.recorder().note_range(&self.range);
    }
}
