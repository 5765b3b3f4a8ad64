//! The module `_cuda`: the part of `torch.cuda` in Rust. `lib/torch/cuda/__init__.py` has the names and the defaults.

pub use _cuda::PyStream;
pub(crate) use _cuda::module_def;

#[rustpython_vm::pymodule]
mod _cuda {
    use rustpython_vm::builtins::{PyDictRef, PyType};
    use rustpython_vm::function::{FuncArgs, OptionalOption, PyComparisonValue};
    use rustpython_vm::types::{Comparable, Constructor, Hashable, PyComparisonOp, Representable};
    use rustpython_vm::{
        AsObject, Py, PyObject, PyObjectRef, PyPayload, PyRef, PyResult, VirtualMachine, pyclass,
    };
    use todevice::cuda::{self, Event, EventOptions, SegmentType, Stream, SyncDebugMode};
    use todevice::{Device, interpreter};

    use crate::arguments::expect_names;
    use crate::device::PyDevice;
    use crate::fault::raise;
    use crate::guard::PyGuard;
    use crate::tensor::{PyTensor, in_python};

    type Done<T> = PyResult<T>;

    #[pyfunction]
    fn is_available() -> bool {
        cuda::is_available()
    }

    #[pyfunction]
    fn device_count() -> usize {
        cuda::device_count()
    }

    #[pyfunction]
    fn current_device(vm: &VirtualMachine) -> Done<usize> {
        in_python(vm, || Ok(cuda::current_device()?))
    }

    #[pyfunction]
    fn set_device(index: usize, vm: &VirtualMachine) -> Done<()> {
        in_python(vm, || Ok(cuda::set_device(index)?))
    }

    #[pyfunction]
    fn device(index: usize, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || Ok(PyGuard::wrap(interpreter::device(index)?, vm)))
    }

    #[pyfunction]
    fn get_device_name(index: usize, vm: &VirtualMachine) -> Done<String> {
        in_python(vm, || Ok(cuda::get_device_name(index)?))
    }

    #[pyfunction]
    fn get_device_capability(index: usize, vm: &VirtualMachine) -> Done<(u32, u32)> {
        in_python(vm, || Ok(cuda::get_device_capability(index)?))
    }

    #[pyfunction]
    fn get_arch_list(vm: &VirtualMachine) -> PyObjectRef {
        let list = cuda::get_arch_list().into_iter().map(|name| vm.ctx.new_str(name).into());
        vm.ctx.new_list(list.collect()).into()
    }

    #[pyfunction]
    fn can_device_access_peer(device: usize, peer: usize, vm: &VirtualMachine) -> Done<bool> {
        in_python(vm, || Ok(cuda::can_device_access_peer(device, peer)?))
    }

    #[pyfunction]
    fn get_device_properties(index: usize, vm: &VirtualMachine) -> Done<PyDictRef> {
        in_python(vm, || {
            let properties = cuda::get_device_properties(index)?;
            let dict = vm.ctx.new_dict();
            dict.set_item("name", vm.ctx.new_str(properties.name).into(), vm)?;
            let numbers: [(&str, u64); 9] = [
                ("major", properties.major.into()),
                ("minor", properties.minor.into()),
                ("total_memory", properties.total_memory),
                ("multi_processor_count", properties.multi_processor_count.into()),
                ("warp_size", properties.warp_size.into()),
                ("max_threads_per_block", properties.max_threads_per_block.into()),
                ("max_threads_per_multi_processor", properties.max_threads_per_multi_processor.into()),
                ("L2_cache_size", properties.l2_cache_size.into()),
                ("clock_rate", properties.clock_rate.into()),
            ];
            for (name, number) in numbers {
                dict.set_item(name, vm.ctx.new_int(number).into(), vm)?;
            }
            Ok(dict)
        })
    }

    #[pyfunction]
    fn is_bf16_supported(including_emulation: bool, vm: &VirtualMachine) -> Done<bool> {
        in_python(vm, || Ok(cuda::is_bf16_supported(including_emulation)?))
    }

    #[pyfunction]
    fn synchronize(index: Option<usize>, vm: &VirtualMachine) -> Done<()> {
        on(index, cuda::synchronize, vm)
    }

    /// Calls a function on a device, or on the current one.
    fn on<T>(
        index: Option<usize>,
        of_current: impl FnOnce() -> todevice::Result<T>,
        vm: &VirtualMachine,
    ) -> Done<T> {
        in_python(vm, || match index {
            Some(index) => Ok(cuda::device(index, of_current)??),
            None => Ok(of_current()?),
        })
    }

    // Memory of a device or of the current one.

    #[pyfunction]
    fn memory_allocated(index: Option<usize>, vm: &VirtualMachine) -> Done<u64> {
        on(index, || Ok(cuda::memory_allocated()), vm)
    }

    #[pyfunction]
    fn max_memory_allocated(index: Option<usize>, vm: &VirtualMachine) -> Done<u64> {
        on(index, || Ok(cuda::max_memory_allocated()), vm)
    }

    #[pyfunction]
    fn memory_reserved(index: Option<usize>, vm: &VirtualMachine) -> Done<u64> {
        on(index, || Ok(cuda::memory_reserved()), vm)
    }

    #[pyfunction]
    fn max_memory_reserved(index: Option<usize>, vm: &VirtualMachine) -> Done<u64> {
        on(index, || Ok(cuda::max_memory_reserved()), vm)
    }

    #[pyfunction]
    fn reset_peak_memory_stats(index: Option<usize>, vm: &VirtualMachine) -> Done<()> {
        on(index, || Ok(cuda::reset_peak_memory_stats()), vm)
    }

    #[pyfunction]
    fn reset_accumulated_memory_stats(index: Option<usize>, vm: &VirtualMachine) -> Done<()> {
        on(index, || Ok(cuda::reset_accumulated_memory_stats()), vm)
    }

    #[pyfunction]
    fn memory_stats(index: Option<usize>, vm: &VirtualMachine) -> Done<PyDictRef> {
        let stats = on(index, || Ok(cuda::memory_stats()), vm)?;
        let dict = vm.ctx.new_dict();
        for (name, value) in stats {
            dict.set_item(&*name, vm.ctx.new_int(value).into(), vm)?;
        }
        Ok(dict)
    }

    #[pyfunction]
    fn memory_summary(index: Option<usize>, abbreviated: bool, vm: &VirtualMachine) -> Done<String> {
        let summary = if abbreviated { cuda::memory_summary_abbreviated } else { cuda::memory_summary };
        on(index, || Ok(summary()), vm)
    }

    /// The segments of all devices, in the form of PyTorch's `memory_snapshot`.
    #[pyfunction]
    fn memory_snapshot(vm: &VirtualMachine) -> Done<Vec<PyObjectRef>> {
        let int = |value: u64| -> PyObjectRef { vm.ctx.new_int(value).into() };
        let text = |value: &str| -> PyObjectRef { vm.ctx.new_str(value).into() };
        let segments = cuda::memory_snapshot().into_iter().map(|segment| {
            let dict = vm.ctx.new_dict();
            let blocks: PyResult<Vec<PyObjectRef>> = segment
                .blocks
                .iter()
                .map(|block| {
                    let dict = vm.ctx.new_dict();
                    dict.set_item("address", int(block.address), vm)?;
                    dict.set_item("size", int(block.size), vm)?;
                    dict.set_item("requested_size", int(block.requested_size), vm)?;
                    dict.set_item("state", text(&block.state.to_string()), vm)?;
                    if let Some(place) = block.place {
                        let frame = vm.ctx.new_dict();
                        frame.set_item("filename", text(place.file()), vm)?;
                        frame.set_item("line", int(place.line().into()), vm)?;
                        dict.set_item("frames", vm.ctx.new_list(vec![frame.into()]).into(), vm)?;
                    }
                    Ok(dict.into())
                })
                .collect();
            dict.set_item("device", int(segment.device as u64), vm)?;
            dict.set_item("address", int(segment.address), vm)?;
            dict.set_item("total_size", int(segment.total_size), vm)?;
            dict.set_item("allocated_size", int(segment.allocated_size), vm)?;
            dict.set_item("active_size", int(segment.active_size), vm)?;
            dict.set_item("requested_size", int(segment.requested_size), vm)?;
            dict.set_item("stream", int(segment.stream.into()), vm)?;
            let kind = if matches!(segment.segment_type, SegmentType::Small) { "small" } else { "large" };
            dict.set_item("segment_type", text(kind), vm)?;
            dict.set_item("blocks", vm.ctx.new_list(blocks?).into(), vm)?;
            Ok(dict.into())
        });
        segments.collect()
    }

    #[pyfunction]
    fn empty_cache(vm: &VirtualMachine) -> Done<()> {
        in_python(vm, || Ok(cuda::empty_cache()?))
    }

    #[pyfunction]
    fn clear_cublas_workspaces() {
        interpreter::clear_cublas_workspaces();
    }

    #[pyfunction]
    fn mem_get_info(index: Option<usize>, vm: &VirtualMachine) -> Done<(u64, u64)> {
        on(index, cuda::mem_get_info, vm)
    }

    #[pyfunction]
    fn set_per_process_memory_fraction(fraction: f64, index: Option<usize>, vm: &VirtualMachine) -> Done<()> {
        on(index, || cuda::set_per_process_memory_fraction(fraction), vm)
    }

    #[pyfunction]
    fn get_per_process_memory_fraction(index: Option<usize>, vm: &VirtualMachine) -> Done<f64> {
        on(index, cuda::get_per_process_memory_fraction, vm)
    }

    #[pyfunction]
    fn set_allocator_settings(settings: String, vm: &VirtualMachine) -> Done<()> {
        in_python(vm, || Ok(cuda::set_allocator_settings(&settings)?))
    }

    #[pyfunction]
    fn caching_allocator_enable(value: bool) {
        cuda::caching_allocator_enable(value);
    }

    #[pyfunction]
    fn utilization(index: Option<usize>, vm: &VirtualMachine) -> Done<u32> {
        on(index, cuda::utilization, vm)
    }

    #[pyfunction]
    fn memory_usage(index: Option<usize>, vm: &VirtualMachine) -> Done<u32> {
        on(index, cuda::memory_usage, vm)
    }

    #[pyfunction]
    fn device_memory_used(index: Option<usize>, vm: &VirtualMachine) -> Done<u64> {
        on(index, cuda::device_memory_used, vm)
    }

    #[pyfunction]
    fn temperature(index: Option<usize>, vm: &VirtualMachine) -> Done<u32> {
        on(index, cuda::temperature, vm)
    }

    #[pyfunction]
    fn power_draw(index: Option<usize>, vm: &VirtualMachine) -> Done<u32> {
        on(index, cuda::power_draw, vm)
    }

    #[pyfunction]
    fn list_gpu_processes(vm: &VirtualMachine) -> Done<String> {
        in_python(vm, || Ok(cuda::list_gpu_processes()?))
    }

    #[pyfunction]
    fn manual_seed(seed: i64) {
        cuda::manual_seed(seed as u64);
    }

    #[pyfunction]
    fn manual_seed_all(seed: i64) {
        cuda::manual_seed_all(seed as u64);
    }

    #[pyfunction]
    fn get_rng_state(index: usize, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || Ok(PyTensor::wrap(cuda::get_rng_state(index)?, vm)))
    }

    #[pyfunction]
    fn set_rng_state(state: PyRef<PyTensor>, index: usize, vm: &VirtualMachine) -> Done<()> {
        in_python(vm, || Ok(cuda::set_rng_state(&state.get(), index)?))
    }

    #[pyfunction]
    fn set_sync_debug_mode(mode: usize, vm: &VirtualMachine) -> Done<()> {
        in_python(vm, || {
            let modes = [SyncDebugMode::Default, SyncDebugMode::Warn, SyncDebugMode::Error];
            let mode = modes
                .get(mode)
                .ok_or_else(|| raise("RuntimeError", "invalid value of debug_mode, expected one of 0,1,2"))?;
            Ok(cuda::set_sync_debug_mode(*mode)?)
        })
    }

    #[pyfunction]
    fn get_sync_debug_mode(vm: &VirtualMachine) -> Done<usize> {
        in_python(vm, || {
            Ok(match cuda::get_sync_debug_mode()? {
                SyncDebugMode::Default => 0,
                SyncDebugMode::Warn => 1,
                SyncDebugMode::Error => 2,
            })
        })
    }

    #[pyfunction]
    fn current_stream(index: usize, vm: &VirtualMachine) -> Done<PyStream> {
        in_python(vm, || Ok(PyStream(cuda::current_stream(Device::cuda(index))?)))
    }

    #[pyfunction]
    fn default_stream(index: usize, vm: &VirtualMachine) -> Done<PyStream> {
        in_python(vm, || Ok(PyStream(cuda::default_stream(Device::cuda(index))?)))
    }

    #[pyfunction]
    fn stream(stream: PyRef<PyStream>, vm: &VirtualMachine) -> PyObjectRef {
        PyGuard::wrap(interpreter::stream(&stream.0), vm)
    }

    #[pyattr]
    #[pyclass(module = "torch.cuda", name = "Stream")]
    #[derive(Debug, PyPayload)]
    pub struct PyStream(Stream);

    impl PyStream {
        pub fn stream(&self) -> &Stream {
            &self.0
        }
    }

    impl Constructor for PyStream {
        type Args = FuncArgs;

        fn py_new(_: &Py<PyType>, args: FuncArgs, vm: &VirtualMachine) -> PyResult<PyStream> {
            in_python(vm, || {
                // A stream of this course has no priority.
                expect_names("Stream", &args, &["device"], 1)?;
                let device = args.args.first().or_else(|| args.kwargs.get("device"));
                let device = device.map(|device| crate::arguments::device(device, vm)).transpose()?.flatten();
                let device = match device {
                    Some(device) => device,
                    None => Device::cuda(cuda::current_device()?),
                };
                Ok(PyStream(Stream::new(device)?))
            })
        }
    }

    impl Representable for PyStream {
        fn repr_str(zelf: &Py<Self>, _: &VirtualMachine) -> PyResult<String> {
            Ok(format!("{:?}", zelf.0))
        }
    }

    impl Comparable for PyStream {
        fn cmp(
            zelf: &Py<Self>,
            other: &PyObject,
            op: PyComparisonOp,
            _: &VirtualMachine,
        ) -> PyResult<PyComparisonValue> {
            op.eq_only(|| {
                Ok(match other.downcast_ref::<PyStream>() {
                    Some(other) => PyComparisonValue::Implemented(zelf.0 == other.0),
                    None => PyComparisonValue::NotImplemented,
                })
            })
        }
    }

    impl Hashable for PyStream {
        fn hash(zelf: &Py<Self>, vm: &VirtualMachine) -> PyResult<rustpython_vm::common::hash::PyHash> {
            vm.ctx.new_str(format!("{:?}", zelf.0)).as_object().hash(vm)
        }
    }

    #[pyclass(with(Constructor, Representable, Comparable, Hashable))]
    impl PyStream {
        #[pymethod]
        fn synchronize(&self, vm: &VirtualMachine) -> Done<()> {
            in_python(vm, || Ok(self.0.synchronize()?))
        }

        #[pymethod]
        fn query(&self, vm: &VirtualMachine) -> Done<bool> {
            in_python(vm, || Ok(self.0.query()?))
        }

        #[pymethod]
        fn wait_stream(&self, other: PyRef<PyStream>, vm: &VirtualMachine) -> Done<()> {
            in_python(vm, || Ok(self.0.wait_stream(&other.0)?))
        }

        #[pymethod]
        fn wait_event(&self, event: PyRef<PyEvent>, vm: &VirtualMachine) -> Done<()> {
            in_python(vm, || Ok(self.0.wait_event(&event.0)?))
        }

        #[pymethod]
        fn record_event(&self, event: OptionalOption<PyRef<PyEvent>>, vm: &VirtualMachine) -> PyResult {
            in_python(vm, || match event.flatten() {
                Some(event) => {
                    event.0.record_on(&self.0)?;
                    Ok(event.into())
                }
                None => Ok(PyEvent(self.0.record_event()?).into_pyobject(vm)),
            })
        }

        #[pygetset]
        fn device(&self, vm: &VirtualMachine) -> PyObjectRef {
            PyDevice::of(self.0.device()).into_object(vm)
        }
    }

    #[pyattr]
    #[pyclass(module = "torch.cuda", name = "Event")]
    #[derive(Debug, PyPayload)]
    pub struct PyEvent(Event);

    impl Constructor for PyEvent {
        type Args = FuncArgs;

        fn py_new(_: &Py<PyType>, args: FuncArgs, vm: &VirtualMachine) -> PyResult<PyEvent> {
            let timing = args.args.first().or_else(|| args.kwargs.get("enable_timing"));
            let enable_timing = match timing {
                Some(timing) => timing.clone().try_to_bool(vm)?,
                None => false,
            };
            in_python(vm, || {
                expect_names("Event", &args, &["enable_timing", "blocking", "interprocess"], 3)
            })?;
            Ok(PyEvent(Event::new(EventOptions { enable_timing })))
        }
    }

    #[pyclass(with(Constructor))]
    impl PyEvent {
        #[pymethod]
        fn record(&self, stream: OptionalOption<PyRef<PyStream>>, vm: &VirtualMachine) -> Done<()> {
            in_python(vm, || match stream.flatten() {
                Some(stream) => Ok(self.0.record_on(&stream.0)?),
                None => Ok(self.0.record()?),
            })
        }

        #[pymethod]
        fn wait(&self, stream: OptionalOption<PyRef<PyStream>>, vm: &VirtualMachine) -> Done<()> {
            in_python(vm, || match stream.flatten() {
                Some(stream) => Ok(self.0.wait_on(&stream.0)?),
                None => Ok(self.0.wait()?),
            })
        }

        #[pymethod]
        fn query(&self, vm: &VirtualMachine) -> Done<bool> {
            in_python(vm, || Ok(self.0.query()?))
        }

        #[pymethod]
        fn synchronize(&self, vm: &VirtualMachine) -> Done<()> {
            in_python(vm, || Ok(self.0.synchronize()?))
        }

        /// In milliseconds.
        #[pymethod]
        fn elapsed_time(&self, end: PyRef<PyEvent>, vm: &VirtualMachine) -> Done<f64> {
            in_python(vm, || Ok(self.0.elapsed_time(&end.0)?))
        }
    }
}
