//! The module `_profiler`: what the GPUs did while a program was recorded, as a list of events.

pub(crate) use _profiler::module_def;

#[rustpython_vm::pymodule]
mod _profiler {
    use rustpython_vm::{PyObjectRef, PyResult, VirtualMachine};
    use todevice::interpreter::Recording;
    use todevice::trace::EventKind;

    use std::cell::RefCell;
    use std::collections::HashMap;

    thread_local! {
        static RUNNING: RefCell<HashMap<u64, Recording>> = RefCell::default();
    }

    #[pyfunction]
    fn start() -> u64 {
        RUNNING.with_borrow_mut(|running| {
            let number = running.keys().max().map_or(1, |last| last + 1);
            running.insert(number, Recording::start());
            number
        })
    }

    /// Ends a recording: (name, whether it ran on a GPU, microseconds), of all calls and of all work.
    #[pyfunction]
    fn stop(number: u64, vm: &VirtualMachine) -> PyResult<PyObjectRef> {
        let recording = RUNNING.with_borrow_mut(|running| running.remove(&number));
        let trace = recording.map(Recording::finish).unwrap_or_default();
        let mut events: Vec<PyObjectRef> = Vec::new();
        let mut add = |name: &str, on_gpu: bool, start: u64, end: u64| {
            events.push(
                vm.ctx
                    .new_tuple(vec![
                        vm.ctx.new_str(name).into(),
                        vm.ctx.new_bool(on_gpu).into(),
                        vm.ctx.new_float(start as f64 / 1e3).into(),
                        vm.ctx.new_float((end - start) as f64 / 1e3).into(),
                    ])
                    .into(),
            );
        };
        for call in &trace.calls {
            let name = match &call.kind {
                // PyTorch's libraries launch kernels, too, and its profiler sees only those.
                EventKind::Gemm { .. } | EventKind::Convolution { .. } => "cudaLaunchKernel",
                kind => kind.call(),
            };
            add(name, false, call.begin, call.end);
        }
        for work in &trace.work {
            let name = work.call.kind.name();
            add(&name, true, work.span.start, work.span.end);
        }
        for range in &trace.ranges {
            add(&range.name, false, range.begin, range.end);
        }
        Ok(vm.ctx.new_list(events).into())
    }
}
