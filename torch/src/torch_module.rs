//! The module `_torch`: everything of `torch` that is written in Rust, apart from `torch.cuda`.
//!
//! `lib/torch/__init__.py` takes the names from here.

pub(crate) use _torch::module_def;

#[rustpython_vm::pymodule]
mod _torch {
    use rustpython_vm::builtins::{PyModule, PyTupleRef};
    use rustpython_vm::class::PyClassImpl;
    use rustpython_vm::{AsObject, Py, PyObjectRef, PyPayload, PyRef, PyResult, VirtualMachine};
    use todevice::amp::{self, AutocastOptions};
    use todevice::optim::{AdamOptions, SGDOptions};
    use todevice::{Device, DeviceType, Machine, Tensor, autograd, backends, interpreter};

    use crate::arguments;
    use crate::callback;
    use crate::device::PyDevice;
    use crate::dtype::{self, PyDType};
    use crate::fault::raise;
    use crate::generator::PyGenerator;
    use crate::guard::PyGuard;
    use crate::operations;
    use crate::shared::{self, Callback};
    use crate::tensor::{PyTensor, in_python};

    type Object<T> = PyRef<T>;

    pub(crate) fn module_exec(vm: &VirtualMachine, module: &Py<PyModule>) -> PyResult<()> {
        let ctx = &vm.ctx;
        module.set_attr("Tensor", PyTensor::make_static_type(), vm)?;
        module.set_attr("dtype", PyDType::make_static_type(), vm)?;
        module.set_attr("device", PyDevice::make_static_type(), vm)?;
        module.set_attr("Generator", PyGenerator::make_static_type(), vm)?;
        PyGuard::make_static_type();
        for (dtype, names) in dtype::ALL {
            for name in names {
                module.set_attr(ctx.intern_str(*name), PyDType::object(dtype, vm), vm)?;
            }
        }
        operations::add_methods(vm);
        operations::add_functions(module, vm)?;
        __module_exec(vm, module);
        Ok(())
    }

    /// Gives Rust a class or a function that is written in Python.
    #[pyfunction]
    fn register(name: String, object: PyObjectRef) {
        shared::register(&name, object);
    }

    /// Gives the class of tensors a method that is written in Python.
    #[pyfunction]
    fn add_method(name: String, method: PyObjectRef, vm: &VirtualMachine) {
        PyTensor::class(&vm.ctx).set_attr(vm.ctx.intern_str(name), method);
    }

    // Scopes.

    #[pyfunction]
    fn set_grad_enabled(mode: bool, vm: &VirtualMachine) -> PyObjectRef {
        PyGuard::wrap(interpreter::set_grad_enabled(mode), vm)
    }

    #[pyfunction]
    fn inference_mode(mode: bool, vm: &VirtualMachine) -> PyObjectRef {
        PyGuard::wrap(interpreter::inference_mode(mode), vm)
    }

    #[pyfunction]
    fn is_grad_enabled() -> bool {
        autograd::is_grad_enabled()
    }

    #[pyfunction]
    fn is_inference_mode_enabled() -> bool {
        autograd::is_inference_mode_enabled()
    }

    #[pyfunction]
    fn autocast(
        device_type: String,
        dtype: PyObjectRef,
        enabled: bool,
        cache_enabled: Option<bool>,
        vm: &VirtualMachine,
    ) -> PyResult {
        in_python(vm, || {
            let options = AutocastOptions {
                device_type: type_named(&device_type)?,
                dtype: arguments::dtype(&dtype, vm)?,
                enabled,
                cache_enabled,
            };
            Ok(PyGuard::wrap(interpreter::autocast(options), vm))
        })
    }

    fn type_named(name: &str) -> crate::fault::Result<DeviceType> {
        match name {
            "cpu" => Ok(DeviceType::Cpu),
            "cuda" => Ok(DeviceType::Cuda),
            other => Err(raise(
                "RuntimeError",
                format!("User specified an unsupported autocast device_type '{other}'"),
            )),
        }
    }

    #[pyfunction]
    fn is_autocast_enabled(device_type: String, vm: &VirtualMachine) -> PyResult<bool> {
        in_python(vm, || Ok(amp::is_autocast_enabled(type_named(&device_type)?)))
    }

    #[pyfunction]
    fn get_autocast_dtype(device_type: String, vm: &VirtualMachine) -> PyResult {
        in_python(vm, || Ok(PyDType::object(amp::get_autocast_dtype(type_named(&device_type)?), vm)))
    }

    #[pyfunction]
    fn record_function(name: String, vm: &VirtualMachine) -> PyObjectRef {
        let _place = crate::place::of_script(vm);
        PyGuard::wrap(interpreter::record_function(&name), vm)
    }

    #[pyfunction]
    fn saved_tensors_hooks(pack: PyObjectRef, unpack: PyObjectRef, vm: &VirtualMachine) -> PyObjectRef {
        PyGuard::wrap(callback::saved_tensors_hooks(pack, unpack), vm)
    }

    // Random numbers.

    #[pyfunction]
    fn manual_seed(seed: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        let seed = seed.try_index(vm)?;
        let seed = seed
            .try_to_primitive::<i64>(vm)
            .map(|seed| seed as u64)
            .or_else(|_| seed.try_to_primitive::<u64>(vm))?;
        Ok(PyGenerator::wrap(todevice::manual_seed(seed), vm))
    }

    #[pyfunction]
    fn default_generator(vm: &VirtualMachine) -> PyObjectRef {
        PyGenerator::wrap(Machine::default_generator(), vm)
    }

    #[pyfunction]
    fn get_rng_state(vm: &VirtualMachine) -> PyResult {
        in_python(vm, || Ok(PyTensor::wrap(todevice::get_rng_state()?, vm)))
    }

    #[pyfunction]
    fn set_rng_state(state: Object<PyTensor>, vm: &VirtualMachine) -> PyResult<()> {
        in_python(vm, || Ok(todevice::set_rng_state(&state.get())?))
    }

    // Autograd.

    #[pyfunction]
    fn grad(
        output: Object<PyTensor>,
        inputs: PyTupleRef,
        grad_output: PyObjectRef,
        retain_graph: bool,
        allow_unused: bool,
        vm: &VirtualMachine,
    ) -> PyResult {
        in_python(vm, || {
            let inputs: Option<Vec<Tensor>> = inputs
                .iter()
                .map(|input| input.downcast_ref::<PyTensor>().map(|input| input.get()))
                .collect();
            let inputs = inputs.ok_or_else(|| raise("TypeError", "grad() expects tensors"))?;
            let options = autograd::GradOptions {
                grad_output: grad_output.downcast_ref::<PyTensor>().map(|grad| grad.get()),
                retain_graph,
                allow_unused,
            };
            let grads = autograd::grad(&output.get(), &inputs.iter().collect::<Vec<_>>(), options)?;
            let objects = grads.into_iter().map(|grad| match grad {
                Some(grad) => PyTensor::wrap(grad, vm),
                None => vm.ctx.none(),
            });
            Ok(vm.ctx.new_tuple(objects.collect()).into())
        })
    }

    /// Gives the result of a `torch.autograd.Function` its node.
    #[pyfunction]
    fn record(
        name: String,
        inputs: PyTupleRef,
        output: Object<PyTensor>,
        backward: PyObjectRef,
        vm: &VirtualMachine,
    ) -> PyResult {
        in_python(vm, || {
            let inputs: Vec<Tensor> = inputs
                .iter()
                .filter_map(|input| input.downcast_ref::<PyTensor>().map(|input| input.get()))
                .collect();
            let (backward, count) = (Callback::new(backward), inputs.len());
            let given = output.get();
            let recorded = interpreter::record(
                shared::interned(name),
                &inputs.iter().collect::<Vec<_>>(),
                given.clone(),
                move |grad| callback::tensors_of(&backward, grad, count),
            )?;
            Ok(if recorded.is_same(&given) {
                output.as_object().to_owned()
            } else {
                PyTensor::wrap(recorded, vm)
            })
        })
    }

    #[pyfunction]
    fn on_gradient(tensor: Object<PyTensor>, hook: PyObjectRef, vm: &VirtualMachine) -> PyResult<()> {
        let hook = Callback::new(hook);
        in_python(vm, || {
            Ok(interpreter::on_gradient(&tensor.get(), move |grad| callback::tensor_of(&hook, grad))?)
        })
    }

    // Optimizers and scalers keep their state in Python.

    #[pyfunction]
    fn adam_step(
        tensors: PyTupleRef,
        numbers: PyTupleRef,
        decoupled: bool,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        in_python(vm, || {
            let [parameter, grad, step, exp_avg, exp_avg_sq] = tensors_of::<5>(&tensors)?;
            let [lr, beta1, beta2, eps, weight_decay] = numbers_of::<5>(&numbers, vm)?;
            let options = AdamOptions { lr, betas: (beta1, beta2), eps, weight_decay };
            Ok(interpreter::adam_step(&parameter, &grad, &[step, exp_avg, exp_avg_sq], options, decoupled)?)
        })
    }

    #[pyfunction]
    fn sgd_step(
        tensors: PyTupleRef,
        buffer: PyObjectRef,
        is_first: bool,
        numbers: PyTupleRef,
        nesterov: bool,
        maximize: bool,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        in_python(vm, || {
            let [parameter, grad] = tensors_of::<2>(&tensors)?;
            let [lr, momentum, dampening, weight_decay] = numbers_of::<4>(&numbers, vm)?;
            let buffer = buffer.downcast_ref::<PyTensor>().map(|buffer| buffer.get());
            let options = SGDOptions { lr, momentum, dampening, weight_decay, nesterov, maximize };
            Ok(interpreter::sgd_step(&parameter, &grad, buffer.as_ref(), is_first, options)?)
        })
    }

    #[pyfunction]
    fn spend_step() {
        interpreter::spend_step();
    }

    #[pyfunction]
    fn spend_zero_grad() {
        interpreter::spend_zero_grad();
    }

    #[pyfunction]
    fn unscale(
        grad: Object<PyTensor>,
        inv_scale: Object<PyTensor>,
        found_inf: Object<PyTensor>,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        in_python(vm, || Ok(interpreter::unscale(&grad.get(), &inv_scale.get(), &found_inf.get())?))
    }

    #[pyfunction]
    fn update_scale(
        tensors: PyTupleRef,
        growth: f64,
        backoff: f64,
        interval: u32,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        in_python(vm, || {
            let [scale, tracker, found_inf] = tensors_of::<3>(&tensors)?;
            Ok(interpreter::update_scale(&scale, &tracker, &found_inf, [growth, backoff], interval)?)
        })
    }

    fn tensors_of<const N: usize>(tuple: &PyTupleRef) -> crate::fault::Result<[Tensor; N]> {
        let tensors: Option<Vec<Tensor>> =
            tuple.iter().map(|tensor| tensor.downcast_ref::<PyTensor>().map(|tensor| tensor.get())).collect();
        tensors
            .and_then(|tensors| tensors.try_into().ok())
            .ok_or_else(|| raise("TypeError", format!("expected {N} tensors")))
    }

    fn numbers_of<const N: usize>(tuple: &PyTupleRef, vm: &VirtualMachine) -> crate::fault::Result<[f64; N]> {
        let mut numbers = [0.0; N];
        for (number, object) in numbers.iter_mut().zip(tuple.iter()) {
            *number = match object.downcast_ref::<PyTensor>() {
                Some(tensor) => tensor.get().item()?,
                None => object.try_float(vm)?.to_f64(),
            };
        }
        Ok(numbers)
    }

    // Settings.

    #[pyfunction]
    fn use_deterministic_algorithms(mode: bool) {
        backends::use_deterministic_algorithms(mode);
    }

    #[pyfunction]
    fn are_deterministic_algorithms_enabled() -> bool {
        backends::are_deterministic_algorithms_enabled()
    }

    #[pyfunction]
    fn cudnn_flags() -> (bool, bool, bool, bool, usize) {
        use todevice::backends::cudnn;
        (
            cudnn::enabled(),
            cudnn::benchmark(),
            cudnn::deterministic(),
            cudnn::allow_tf32(),
            cudnn::benchmark_limit(),
        )
    }

    #[pyfunction]
    fn set_cudnn_flags(enabled: bool, benchmark: bool, deterministic: bool, allow_tf32: bool, limit: usize) {
        use todevice::backends::cudnn;
        cudnn::set_enabled(enabled);
        cudnn::set_benchmark(benchmark);
        cudnn::set_deterministic(deterministic);
        cudnn::set_allow_tf32(allow_tf32);
        cudnn::set_benchmark_limit(limit);
    }

    #[pyfunction]
    fn cudnn_version() -> Option<usize> {
        todevice::backends::cudnn::version()
    }

    #[pyfunction]
    fn matmul_allow_tf32() -> bool {
        backends::cuda::matmul::allow_tf32()
    }

    #[pyfunction]
    fn set_matmul_allow_tf32(allow: bool) {
        backends::cuda::matmul::set_allow_tf32(allow);
    }

    #[pyfunction]
    fn has_simulated_time() -> bool {
        Machine::current().time_is_modelled()
    }

    #[pyfunction]
    fn on_cpu() -> String {
        Device::Cpu.to_string()
    }
}
